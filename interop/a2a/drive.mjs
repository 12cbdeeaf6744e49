// Drives gander with @a2a-js/sdk: a message, a stream, a question and its answer. Usage: node drive.mjs URL
import { randomUUID } from 'node:crypto';
import { importJWK } from 'jose';
import { verifyAgentCardSignature } from '@a2a-js/sdk';
import { ClientFactory } from '@a2a-js/sdk/client';

const url = process.argv[2];
const client = await new ClientFactory().createFromUrl(url);
const message = (prefix, more = {}) => ({
  messageId: `${prefix}-${randomUUID()}`,
  role: 1,
  parts: [{ content: { $case: 'text', value: 'hello' } }],
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
};

for (const [name, check] of Object.entries(cases)) {
  try {
    await check();
    console.log('pass', `js-${name}`);
  } catch (error) {
    console.log('fail', `js-${name}`, String(error).replaceAll('\n', ' ').slice(0, 300));
  }
}
