// Drives gander with @a2a-js/sdk: a message, a stream, a question and its answer. Usage: node drive.mjs URL TOKEN
import { randomUUID } from 'node:crypto';
import { importJWK } from 'jose';
import { verifyAgentCardSignature } from '@a2a-js/sdk';
import {
  ClientFactory, ClientFactoryOptions, JsonRpcTransportFactory, RestTransportFactory, createAuthenticatingFetchWithRetry,
} from '@a2a-js/sdk/client';

const [url, token] = process.argv.slice(2);
/** A client that sends this token with whatever it asks. */
async function bearing(token, at = url) {
  const headers = async () => ({ Authorization: `Bearer ${token}` });
  const fetchImpl = createAuthenticatingFetchWithRetry(fetch, { headers, shouldRetryWithHeaders: async () => undefined });
  const transports = [new JsonRpcTransportFactory({ fetchImpl }), new RestTransportFactory({ fetchImpl })];
  const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, { transports });
  return new ClientFactory(options).createFromUrl(at);
}
const client = await bearing(token);
const message = (prefix, { text, ...more } = {}) => ({
  messageId: `${prefix}-${randomUUID()}`,
  role: 1,
  parts: [{ content: { $case: 'text', value: text ?? 'hello' } }],
  contextId: '',
  taskId: '',
  extensions: [],
  referenceTaskIds: [],
  metadata: undefined,
  ...more,
});
const send = (said) => ({ tenant: '', message: said, configuration: undefined, metadata: undefined });

const cases = {
  async verifies() {
    const card = await (await fetch(`${url}/.well-known/agent-card.json`)).json();
    const verify = verifyAgentCardSignature(async (kid, jku) => {
      const { keys } = await (await fetch(jku)).json();
      return importJWK(keys.find((key) => key.kid === kid), 'ES256');
    });
    await verify(card);
    await verify({ ...card, name: 'another' }).then(
      () => Promise.reject(new Error('a changed card passes')),
      () => undefined,
    );
  },
  async sends() {
    const result = await client.sendMessage(send(message('tck-artifact-text')));
    const text = JSON.stringify(result);
    if (!text.includes('Generated text content')) throw new Error(text);
  },
  async streams() {
    let all = '';
    for await (const event of client.sendMessageStream(send(message('tck-stream-001')))) all += JSON.stringify(event);
    if (!all.includes('Stream hello ') || !all.includes('from TCK')) throw new Error(all);
  },
  async answers() {
    const asked = await client.sendMessage(send(message('tck-input-required')));
    const task = asked.task ?? asked;
    const done = await client.sendMessage(send(message('m', { taskId: task.id, contextId: task.contextId })));
    const text = JSON.stringify(done);
    if (!text.includes('Heard: hello')) throw new Error(text);
  },
  /** The agent itself asks before a command, and a message with the task's id allows or refuses it. */
  async asks_and_runs() {
    const agent = await bearing(token, `${url}/a2a/gander/`);
    for (const word of ['yes', 'no']) {
      const calls = [[{ tool: 'shell', args: { command: `touch js-${word}` } }], [{ text: 'All done.' }]];
      const asked = await agent.sendMessage(send(message('m', { text: `[[script:${JSON.stringify(calls)}]]` })));
      const task = asked.task ?? asked;
      if (!JSON.stringify(task.status).includes(`touch js-${word}`)) throw new Error(JSON.stringify(task));
      const done = await agent.sendMessage(send(message('m', { text: word, taskId: task.id, contextId: task.contextId })));
      if (!JSON.stringify(done).includes('All done.')) throw new Error(JSON.stringify(done));
    }
  },
  async no_way_in() {
    const stranger = await bearing('wrong');
    const error = await stranger.sendMessage(send(message('m'))).then(() => 'none', (error) => error);
    if (!/401|[Uu]nauth|token/.test(String(error))) throw new Error(String(error));
  },
};

for (const [name, check] of Object.entries(cases)) {
  try {
    await check();
    console.log('pass', `js-${name}`);
  } catch (error) {
    console.log('fail', `js-${name}`, String(error).replaceAll('\n', ' ').slice(0, 300));
  }
}
