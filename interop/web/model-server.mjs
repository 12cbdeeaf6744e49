// A model that costs something and can think more or less: chat completions on loopback, one sentence for everything.

import { createServer } from 'node:http';

export class ModelServer {
  /** The bodies of all calls. */
  calls = [];

  static async start() {
    const server = new ModelServer();
    server.http = createServer((request, response) => void server.#handle(request, response));
    await new Promise((resolve) => server.http.listen(0, '127.0.0.1', resolve));
    server.base = `http://127.0.0.1:${server.http.address().port}/v1`;
    return server;
  }

  /** As a settings file names it. */
  get settings() {
    return `[model]\ndefault = "meadow/goose"\n\n[providers.meadow]\nengine = "openai_chat"\ntitle = "Meadow"\nbase_url = "${this.base}"\nkey_variables = []\ndefault_model = "goose"\n\n[providers.meadow.models]\ngoose = { thinking = true, effort = "word", window = 128000, max_output = 4096, input = 1000.0, output = 2000.0 }\n`;
  }

  async stop() {
    this.http.closeAllConnections();
    await new Promise((resolve) => this.http.close(resolve));
  }

  async #handle(request, response) {
    let body = '';
    for await (const piece of request) body += piece;
    if (request.method === 'GET') {
      return response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ object: 'list', data: [{ id: 'goose', object: 'model' }] }));
    }
    this.calls.push(JSON.parse(body));
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const chunk = (fields) => response.write(`data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 0, model: 'goose', ...fields })}\n\n`);
    chunk({ choices: [{ index: 0, delta: { role: 'assistant', content: 'Geese cost money.' }, finish_reason: null }] });
    chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] });
    chunk({ choices: [], usage: { prompt_tokens: 1000, completion_tokens: 200, total_tokens: 1200 } });
    return response.end('data: [DONE]\n\n');
  }
}
