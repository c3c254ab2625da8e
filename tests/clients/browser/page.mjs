// What a person sees of the admin page: `page.mjs PAGE MCP TOKEN` opens PAGE, has a call refused at MCP while it is open, and
// prints what the page then shows as one JSON object (page.rs: Seen).
import { launch } from './launch.mjs';

const [url, mcp, token] = process.argv.slice(2);

async function refused(name) {
  const meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {}, 'io.modelcontextprotocol/clientInfo': { name: 'page', version: '1' } };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: {}, _meta: meta } });
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': name, authorization: `Bearer ${token}` };
  return (await (await fetch(mcp, { method: 'POST', headers, body })).json()).error.data.error;
}

// Runs in the page.
function look() {
  const texts = (selector, within = document) => [...within.querySelectorAll(selector)].map((node) => node.textContent);
  const matrix = document.querySelector('.matrix');
  const roles = texts('thead th', matrix);
  const cells = [...matrix.querySelectorAll('tbody tr')].flatMap((row) => {
    const all = texts('th, td', row);
    return all.slice(3).map((may, at) => `${row.querySelector('code').textContent} ${roles[at + 3]} ${may}`);
  });
  return {
    state: document.querySelector('#state').textContent,
    refusals: [...document.querySelectorAll('#refusals-rows tr')].map((row) => texts('td', row)),
    titles: texts('.drifted h3'),
    was: texts('.diff .was'),
    now: texts('.diff .now'),
    marked: texts('.diff .now mark'),
    unseen: texts('.diff .unseen'),
    images: document.images.length,
    cells,
    captions: document.querySelectorAll('table > caption').length === document.querySelectorAll('table').length,
    hit: globalThis.hit ?? null,
    violations: globalThis.violations,
  };
}

const browser = await launch();
try {
  const page = await browser.newPage();
  const errors = [], asked = new Set();
  page.on('pageerror', (fault) => errors.push(String(fault)));
  page.on('dialog', (dialog) => { errors.push(dialog.message()); dialog.dismiss(); });
  page.on('request', (request) => request.url().startsWith('data:') || asked.add(new URL(request.url()).host));
  await page.evaluateOnNewDocument(() => {
    globalThis.violations = [];
    document.addEventListener('securitypolicyviolation', (event) => globalThis.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
  });
  await page.setViewport({ width: 1280, height: 900 });
  await page.goto(url);
  await page.waitForSelector('.diff .now');
  const before = await page.evaluate(() => document.querySelectorAll('#refusals-rows tr').length);
  const reason = await refused('update_case');
  await page.waitForFunction((before) => document.querySelectorAll('#refusals-rows tr').length > before, {}, before);
  const seen = await page.evaluate(look);
  const said = await page.evaluate(() => document.querySelector('#said').textContent);
  // The filter leaves what it names.
  await page.type('#filter', 'update_case');
  await page.waitForFunction(() => document.querySelectorAll('.matrix tbody tr')[0]?.textContent.includes('update_case'));
  const filtered = await page.evaluate(() => document.querySelector('.matrix').querySelectorAll('tbody tr').length);
  await page.setViewport({ width: 390, height: 844, isMobile: true, hasTouch: true });
  const phone = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  // The policy holds whoever tries: script that a text would have brought does not run.
  const inert = await page.evaluate(() => {
    try {
      document.body.innerHTML = '<img src=x onerror="globalThis.hit = 2">';
      return false;
    } catch {
      return true;
    }
  });
  console.log(JSON.stringify({ ...seen, before, reason, said, filtered, phone, inert, errors, asked: [...asked].sort() }));
} finally {
  await browser.close();
}
