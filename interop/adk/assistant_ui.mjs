// The runtime of @assistant-ui/react-google-adk against gander. Prints `pass NAME` or `fail NAME reason`.
import { AdkEventAccumulator, createAdkSessionAdapter, createAdkStream } from '@assistant-ui/react-google-adk';

const base = process.argv[2];
const where = { appName: 'wire', userId: 'aui' };
const { adapter, load, artifacts } = createAdkSessionAdapter({ apiUrl: base, ...where });
const stream = createAdkStream({ api: base, ...where });

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

async function say(content) {
  const accumulator = new AdkEventAccumulator();
  const options = {
    initialize: async () => ({ externalId: session }),
    abortSignal: new AbortController().signal,
  };
  for await (const event of await stream([{ id: `m-${content}`, type: 'human', content }], options)) {
    accumulator.processEvent(event);
  }
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
process.exit(0);
