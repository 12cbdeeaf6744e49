"""An MCP server behind OAuth, of the official Python SDK: its routes, its checks; here only what it keeps in memory.

Usage: guarded.py PORT LIFETIME, the seconds that an access token is good for.
"""

import secrets
import sys
import time

from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

PORT, LIFETIME = int(sys.argv[1]), int(sys.argv[2])
BASE = f"http://127.0.0.1:{PORT}"
SCOPE = "user"


class Register(OAuthAuthorizationServerProvider):
    """Everybody who asks is let in, as if a person had said yes on the page."""

    def __init__(self):
        self.clients, self.codes, self.tokens, self.refreshes, self.renewed = {}, {}, {}, {}, 0

    async def get_client(self, client_id):
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull):
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client, params: AuthorizationParams):
        code = AuthorizationCode(
            code=secrets.token_urlsafe(24),
            client_id=client.client_id,
            scopes=params.scopes or [SCOPE],
            expires_at=time.time() + 300,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(self, client, authorization_code):
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client, authorization_code):
        del self.codes[authorization_code.code]
        return self.issue(client, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client, refresh_token):
        return self.refreshes.get(refresh_token)

    async def exchange_refresh_token(self, client, refresh_token, scopes):
        del self.refreshes[refresh_token.token]
        self.renewed += 1
        return self.issue(client, scopes or refresh_token.scopes, refresh_token.resource)

    async def load_access_token(self, token):
        return self.tokens.get(token)

    async def revoke_token(self, token):
        self.tokens.pop(token.token, None)

    def issue(self, client, scopes, resource):
        access, refresh = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        expires_at = int(time.time()) + LIFETIME
        self.tokens[access] = AccessToken(
            token=access, client_id=client.client_id, scopes=scopes, expires_at=expires_at, resource=resource
        )
        self.refreshes[refresh] = RefreshToken(token=refresh, client_id=client.client_id, scopes=scopes, resource=resource)
        return OAuthToken(access_token=access, token_type="Bearer", expires_in=LIFETIME, scope=" ".join(scopes), refresh_token=refresh)


register = Register()
auth = AuthSettings(
    issuer_url=BASE,
    resource_server_url=f"{BASE}/mcp",
    required_scopes=[SCOPE],
    validate_token_resource=True,
    client_registration_options=ClientRegistrationOptions(enabled=True, valid_scopes=[SCOPE], default_scopes=[SCOPE]),
)
server = MCPServer("guarded", auth_server_provider=register, auth=auth)


@server.tool()
def renewals() -> str:
    """How often a token was renewed"""
    return f"renewed {register.renewed} times"


server.run("streamable-http", host="127.0.0.1", port=PORT)
