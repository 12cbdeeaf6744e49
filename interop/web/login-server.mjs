// An MCP server with one tool that wants a login: its own authorization server, where a person presses one button.

import { createHash, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';

export class LoginServer {
  #codes = new Map();
  #tokens = new Set();

  static async start() {
    const server = new LoginServer();
    server.http = createServer((request, response) => void server.#handle(request, response));
    await new Promise((resolve) => server.http.listen(0, '127.0.0.1', resolve));
    server.base = `http://127.0.0.1:${server.http.address().port}`;
    server.url = `${server.base}/mcp`;
    return server;
  }

  async stop() {
    this.http.closeAllConnections();
    await new Promise((resolve) => this.http.close(resolve));
  }

  async #handle(request, response) {
    const { pathname, searchParams } = new URL(request.url, this.base);
    const body = await new Promise((resolve) => {
      let text = '';
      request.on('data', (piece) => (text += piece)).on('end', () => resolve(text));
    });
    const json = (value, status = 200, headers = {}) => response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value));
    if (pathname.startsWith('/.well-known/oauth-protected-resource')) return json({ resource: this.url, authorization_servers: [this.base] });
    if (pathname.startsWith('/.well-known/oauth-authorization-server')) return json(this.#metadata());
    if (pathname === '/register') return json({ ...JSON.parse(body), client_id: 'the-client' }, 201);
    if (pathname === '/authorize') return this.#authorize(searchParams, response);
    if (pathname === '/token') return this.#token(new URLSearchParams(body), json);
    if (pathname !== '/mcp') return json({}, 404);
    if (!this.#tokens.has((request.headers.authorization ?? '').replace('Bearer ', ''))) {
      return json({}, 401, { 'www-authenticate': `Bearer resource_metadata="${this.base}/.well-known/oauth-protected-resource/mcp"` });
    }
    if (request.method !== 'POST') return json({}, 405);
    return this.#mcp(JSON.parse(body), json, response);
  }

  #metadata() {
    return {
      issuer: this.base, authorization_endpoint: `${this.base}/authorize`, token_endpoint: `${this.base}/token`, registration_endpoint: `${this.base}/register`,
      response_types_supported: ['code'], grant_types_supported: ['authorization_code', 'refresh_token'], code_challenge_methods_supported: ['S256'],
      token_endpoint_auth_methods_supported: ['none'],
    };
  }

  /** A page with a button, as a person sees one. */
  #authorize(query, response) {
    const code = randomUUID();
    this.#codes.set(code, query.get('code_challenge'));
    const back = new URL(query.get('redirect_uri'));
    back.searchParams.set('code', code);
    back.searchParams.set('state', query.get('state') ?? '');
    response.writeHead(200, { 'content-type': 'text/html' }).end(`<!doctype html><title>Log in</title><form action="${back.origin}${back.pathname}">
      ${[...back.searchParams].map(([name, value]) => `<input type="hidden" name="${name}" value="${value}">`).join('')}<button>Approve</button></form>`);
  }

  #token(form, json) {
    const challenge = this.#codes.get(form.get('code'));
    const proof = createHash('sha256').update(form.get('code_verifier') ?? '').digest('base64url');
    if (challenge === undefined || challenge !== proof) return json({ error: 'invalid_grant' }, 400);
    const token = randomUUID();
    this.#tokens.add(token);
    return json({ access_token: token, token_type: 'Bearer', expires_in: 3600 });
  }

  #mcp({ id, method, params }, json, response) {
    if (id === undefined) return response.writeHead(202).end();
    const results = {
      initialize: { protocolVersion: params?.protocolVersion ?? '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'meadow', version: '1' } },
      'tools/list': { tools: [{ name: 'graze', description: 'Grazes', inputSchema: { type: 'object' } }] },
      ping: {},
    };
    const answer = results[method] ? { result: results[method] } : { error: { code: -32601, message: 'no such method' } };
    return json({ jsonrpc: '2.0', id, ...answer });
  }
}
