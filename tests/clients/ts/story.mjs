// What the TypeScript SDK's client sees: `story.mjs story|gated|older URL TOKEN` prints it as one JSON object (clients.rs).
// SDK_DIR is the folder whose node_modules holds the SDK (scripts/tools.sh).
import { createRequire } from 'node:module';

const require = createRequire(`${process.env.SDK_DIR}/`);
const { Client, ProtocolError, StreamableHTTPClientTransport } = require('@modelcontextprotocol/client');

const [kind, url, token] = process.argv.slice(2);
const options = kind === 'older' ? {} : { versionNegotiation: { mode: 'auto' } };
const client = new Client({ name: 'story', version: '1' }, options);
const requestInit = { headers: { authorization: `Bearer ${token}` } };
const connecting = () => client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));

// The error of a call that must not succeed.
async function refused(call) {
  try {
    await call;
  } catch (fault) {
    if (fault instanceof ProtocolError) return { code: fault.code, message: fault.message, data: fault.data ?? null };
    throw fault;
  }
  throw new Error('expected a JSON-RPC error, the call succeeded');
}

async function story() {
  await connecting();
  const search = async () => {
    const { structuredContent } = await client.callTool({ name: 'search_cases', arguments: { query: 'printer' } });
    return structuredContent;
  };
  const told = {
    instructions: client.getInstructions() ?? null,
    tools: (await client.listTools()).tools.map((tool) => tool.name),
    templates: (await client.listResourceTemplates()).resourceTemplates.map((template) => template.name),
    allowed: await search(),
    refused: [
      await refused(client.callTool({ name: 'export_cases', arguments: {} })),
      await refused(client.callTool({ name: 'update_case', arguments: { id: '17' } })),
      await refused(client.readResource({ uri: 'cases://case/17/internal' })),
    ],
    after: await search(),
    prompt: (await client.getPrompt({ name: 'triage', arguments: { id: '17' } })).messages[0].content.text,
    resource: (await client.readResource({ uri: 'cases://case/17' })).contents[0].text,
  };
  await client.close();
  return told;
}

async function gated() {
  await connecting();
  const search = () => client.callTool({ name: 'search_cases', arguments: { query: 'printer' } });
  const told = { denied: await refused(search()), allowed: (await search()).structuredContent };
  await client.close();
  return told;
}

// An older client may also see the refusal as an HTTP error, with the JSON-RPC error in its text.
async function older() {
  try {
    await connecting();
  } catch (fault) {
    return { text: `${fault.message}`, code: fault.code ?? null };
  }
  throw new Error('expected a refusal, the client connected');
}

console.log(JSON.stringify(await { story, gated, older }[kind]()));
