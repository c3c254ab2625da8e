// The headless Chromium that `make tools` installed, for tests that need a browser. TOOLS_DIR is the folder of the tools
// (scripts/tools.sh). The browser keeps its profile in TMPDIR and ends with this process.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const tools = process.env.TOOLS_DIR;
const driver = createRequire(`${tools}/suite/`).resolve('puppeteer-core');

// A puppeteer-core `Browser`.
export async function launch() {
  const { default: puppeteer } = await import(pathToFileURL(driver));
  return puppeteer.launch({
    executablePath: `${tools}/browser/chromium`,
    // Not the arguments that its package suggests: they switch the same-origin policy off. Tests run in containers, as root as
    // well, where there is no sandbox and little shared memory to be had; they load pages of their own only.
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
    headless: 'shell',
    pipe: true,
  });
}
