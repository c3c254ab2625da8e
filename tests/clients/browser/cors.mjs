// What pages of two origins see of an MCP server on a third: `cors.mjs URL TOKEN PORT` prints it as one JSON object
// (browser.rs: Seen). The pages are http://127.0.0.1:PORT, which may call, and http://localhost:PORT, which may not.
import { createServer } from 'node:http';
import { launch } from './launch.mjs';

const [url, token, port] = process.argv.slice(2);

const site = createServer((_, response) => {
  response.setHeader('content-type', 'text/html').end('<!doctype html><title>An agent in a page</title>');
});
await new Promise((ready) => site.listen(port, ready));

// Runs in the page: sends one request, and what script may read of the answer.
async function ask(url, init) {
  try {
    const response = await fetch(url, init);
    const { status, type } = response;
    const headers = Object.fromEntries(response.headers);
    return { status, type, headers, body: type === 'opaque' ? '' : await response.text() };
  } catch (fault) {
    return { blocked: fault.name };
  }
}

const meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
  'io.modelcontextprotocol/clientInfo': { name: 'page', version: '1' },
};

function post(method, params, authorization) {
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': method,
  };
  if (params.name) headers['mcp-name'] = params.name;
  if (authorization) headers.authorization = authorization;
  const body = JSON.stringify({ jsonrpc: '2.0', id: 'p1', method, params: { ...params, _meta: meta } });
  return { method: 'POST', headers, body };
}

const bearer = `Bearer ${token}`;
const listing = post('tools/list', {}, bearer);
const call = (name, args, authorization) => post('tools/call', { name, arguments: args }, authorization);

const browser = await launch();
try {
  const page = async (host) => {
    const page = await browser.newPage();
    await page.goto(`http://${host}:${port}/`);
    return (init, path) => page.evaluate(ask, path ? new URL(path, url).href : url, init);
  };
  const [allowed, foreign] = [await page('127.0.0.1'), await page('localhost')];
  const told = {
    listing: await allowed(listing),
    called: await allowed(call('search_cases', { query: 'printer' }, bearer)),
    refused: await allowed(call('export_cases', {}, bearer)),
    challenged: await allowed(call('search_cases', { query: 'printer' })),
    metadata: await allowed({}, '/.well-known/oauth-protected-resource/mcp'),
    // A page that asks first is told no by the browser; one that may send without asking, by Portcullis.
    foreign: await foreign(listing),
    unasked: await foreign({ method: 'POST', mode: 'no-cors', body: listing.body }),
  };
  console.log(JSON.stringify(told));
} finally {
  await browser.close();
  site.close();
}
