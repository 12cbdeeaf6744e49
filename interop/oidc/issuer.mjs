// An issuer of OpenID Connect that others wrote and certified (npm: oidc-provider), set up as a company would for gander.
// Usage: node issuer.mjs PORT KEYS, where KEYS names the set of signing keys: another name is a rotation.

import { generateKeyPairSync } from 'node:crypto';
import Provider from 'oidc-provider';

const [port, keys] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;
const key = (alg, made) => ({ ...made.privateKey.export({ format: 'jwk' }), alg, use: 'sig', kid: `${alg}-${keys}` });
const service = (client_id) => ({
  client_id, client_secret: 'a-secret-of-no-worth', grant_types: ['client_credentials'], redirect_uris: [], response_types: [], token_endpoint_auth_method: 'client_secret_post',
});

const provider = new Provider(issuer, {
  clients: [
    { client_id: 'gander-cli', application_type: 'native', token_endpoint_auth_method: 'none', grant_types: ['urn:ietf:params:oauth:grant-type:device_code', 'refresh_token'], redirect_uris: [], response_types: [] },
    service('service'), service('curve'), service('short'),
  ],
  jwks: { keys: [key('RS256', generateKeyPairSync('rsa', { modulusLength: 2048 })), key('ES256', generateKeyPairSync('ec', { namedCurve: 'P-256' }))] },
  scopes: ['openid', 'offline_access', 'gander:prompt'],
  findAccount: (_, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
  issueRefreshToken: () => true,
  features: {
    devInteractions: { enabled: true },
    deviceFlow: { enabled: true },
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => undefined,
      useGrantedResource: () => true,
      getResourceServerInfo: (_, audience, client) => ({
        audience,
        scope: 'gander:prompt',
        accessTokenFormat: 'jwt',
        // The person's is about to end from the start: it has to be refreshed before it is used.
        accessTokenTTL: { short: 1, 'gander-cli': 45 }[client.clientId] ?? 600,
        jwt: { sign: { alg: client.clientId === 'curve' ? 'ES256' : 'RS256' } },
      }),
    },
  },
  cookies: { keys: ['a-cookie-key-of-no-worth'] },
});
provider.listen(Number(port), '127.0.0.1', () => console.log(issuer));
