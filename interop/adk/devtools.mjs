// The REST client of @google/adk-devtools against gander. Prints `pass NAME` or `fail NAME reason`.
import { AdkApiClient } from '@google/adk-devtools';

const where = { appName: 'wire', userId: 'js' };
const client = new AdkApiClient({ backendUrl: process.argv[2] });

async function step(name, work) {
  try {
    await work();
    console.log(`pass devtools:${name}`);
  } catch (problem) {
    console.log(`fail devtools:${name} ${String(problem?.message ?? problem).replaceAll('\n', ' ')}`);
  }
}

function must(fact, what) {
  if (!fact) throw new Error(`not so: ${what}`);
}

async function all(stream) {
  const events = [];
  for await (const event of stream) events.push(event);
  return events;
}

const run = (sessionId, newMessage) => all(client.runAsync({ ...where, sessionId, newMessage, streaming: true }));
const session = `js-${Date.now()}`;

await step('apps', async () => must((await client.listApps()).includes('wire'), 'wire is listed'));
await step('create', async () => {
  const made = await client.createSession({ ...where, sessionId: session, state: { a: 1 } });
  must(made.id === session && made.state.a === 1, JSON.stringify(made));
});
await step('run', async () => {
  const events = await run(session, 'think');
  const last = events.at(-1);
  must(last.content.parts[0].thought && last.content.parts[1].text === 'The answer is 42.', JSON.stringify(last));
});
await step('artifacts', async () => {
  await run(session, 'artifact');
  const named = { ...where, sessionId: session, artifactName: 'note.txt' };
  must((await client.listArtifacts({ ...where, sessionId: session })).join() === 'note.txt', 'listed');
  must((await client.listArtifactVersions(named)).join() === '0', 'versions');
  const part = await client.loadArtifact({ ...named, version: 0 });
  must(atob(part.inlineData.data) === 'hello artifact', JSON.stringify(part));
  await client.deleteArtifact(named);
  must((await client.listArtifacts({ ...where, sessionId: session })).length === 0, 'deleted');
});
await step('errors', async () => {
  let threw = 0;
  for (const [id, text] of [[session, 'raise'], ['ghost', 'x']]) await run(id, text).catch(() => threw++);
  must(threw === 2, `${threw} of 2 threw`);
});
await step('history', async () => {
  must((await client.listAllSessions({ userId: 'js' })).length === 1, 'one session');
  must((await client.getSession({ ...where, sessionId: session })).events.length > 5, 'events');
  await client.deleteSession({ ...where, sessionId: session });
  must((await client.listAllSessions({ userId: 'js' })).length === 0, 'deleted');
});
process.exit(0);
