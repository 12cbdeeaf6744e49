// The runtime of @assistant-ui/react-google-adk against gander. Prints `pass NAME` or `fail NAME reason`.
import { AdkEventAccumulator, createAdkSessionAdapter, createAdkStream } from '@assistant-ui/react-google-adk';

// Usage: node assistant_ui.mjs URL TOKEN
const [base, token] = process.argv.slice(2);
const headers = { Authorization: `Bearer ${token}` };
const ways = (appName) => {
  const where = { appName, userId: 'aui', headers };
  return { ...createAdkSessionAdapter({ apiUrl: base, ...where }), stream: createAdkStream({ api: base, ...where }) };
};
const { adapter, load, artifacts, stream } = ways('wire');

async function step(name, work) {
  try {
    await work();
    console.log(`pass assistant-ui:${name}`);
  } catch (problem) {
    console.log(`fail assistant-ui:${name} ${String(problem?.stack ?? problem).replaceAll('\n', ' ')}`);
  }
}

function must(fact, what) {
  if (!fact) throw new Error(`not so: ${what}`);
}

let session;

const say = (content) => send(stream, session, { id: `m-${content}`, type: 'human', content });

async function send(stream, externalId, message) {
  const accumulator = new AdkEventAccumulator();
  const options = { initialize: async () => ({ externalId }), abortSignal: new AbortController().signal };
  for await (const event of await stream([message], options)) accumulator.processEvent(event);
  return accumulator;
}

await step('initialize', async () => {
  session = (await adapter.initialize('local-1')).externalId;
  must(session, 'a session was made');
});
await step('stream', async () => {
  const messages = JSON.stringify((await say('tool')).getMessages());
  must(messages.includes('get_weather') && messages.includes('celsius'), messages);
});
await step('confirmation', async () => {
  const asked = JSON.stringify((await say('confirm')).getToolConfirmations());
  must(asked.includes('delete_file'), asked);
});
await step('list', async () => must(JSON.stringify(await adapter.list()).includes(session), 'it is listed'));
await step('load', async () => must(JSON.stringify(await load(session)).includes('get_weather'), 'it is loaded'));
await step('artifacts', async () => {
  await say('artifact');
  must(JSON.stringify(await artifacts.list(session)).includes('note.txt'), 'listed');
});
await step('asked', async () => {
  const { adapter, stream } = ways('gander');
  const { externalId } = await adapter.initialize('local-2');
  for (const confirmed of [true, false]) {
    const calls = [[{ tool: 'shell', args: { command: `touch aui-${confirmed}` } }], [{ text: 'All done.' }]];
    const content = `[[script:${JSON.stringify(calls)}]]`;
    const [asked] = (await send(stream, externalId, { id: `a-${confirmed}`, type: 'human', content })).getToolConfirmations();
    must(JSON.stringify(asked).includes(`touch aui-${confirmed}`), JSON.stringify(asked));
    const reply = { type: 'tool', name: 'adk_request_confirmation', tool_call_id: asked.toolCallId };
    const told = await send(stream, externalId, { ...reply, id: `r-${confirmed}`, content: JSON.stringify({ confirmed }) });
    must(JSON.stringify(told.getMessages()).includes('All done.'), JSON.stringify(told.getMessages()));
  }
});
await step('stranger', async () => {
  const stranger = createAdkStream({ api: base, appName: 'wire', userId: 'aui', headers: { Authorization: 'Bearer wrong' } });
  const message = { id: 's', type: 'human', content: 'x' };
  const error = await send(stranger, session, message).then(() => 'none', (error) => error.message);
  must(error.includes('401'), error);
});
process.exit(0);
