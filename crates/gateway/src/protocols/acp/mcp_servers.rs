//! MCP servers that a client names for its session.

use gander_domain::ServiceError;
use gander_mcp::{Reach, Spec, Transport};
use gander_services::Services;
use gander_tools::Guard;
use gander_wire::acp::schema::{EnvVariable, HttpHeader, McpServer};

use crate::ClientPeer;
pub(super) use gander_services::extension_changes::may_name_program;

/// Servers that one client may bring along.
const MAX_SERVERS: usize = 32;

/// The servers as we start them, or why not. Whoever may start programs may also reach any address.
pub(super) fn mcp_server_specs(
    services: &Services,
    peer: &ClientPeer,
    servers: &[McpServer],
) -> Result<Vec<Spec>, ServiceError> {
    if servers.len() > MAX_SERVERS {
        return Err(ServiceError::BadParams(format!("more than {MAX_SERVERS} MCP servers: {}", servers.len())));
    }
    servers.iter().map(|server| mcp_server_spec(server, may_name_program(services, &peer.caller))).collect()
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the schema's enum is open")]
fn mcp_server_spec(server: &McpServer, may_start: bool) -> Result<Spec, ServiceError> {
    let (name, transport) = match server {
        McpServer::Stdio(_) if !may_start => {
            let text = "a client on the network may not start programs unless server.allow_remote_commands is true";
            return Err(ServiceError::BadParams(text.to_owned()));
        }
        McpServer::Stdio(stdio) => {
            let env = stdio.env.iter().map(|EnvVariable { name, value, .. }| (name.clone(), value.clone())).collect();
            (&stdio.name, Transport::Stdio { command: stdio.command.clone(), args: stdio.args.clone(), env })
        }
        McpServer::Http(http) => {
            let headers = http.headers.iter().map(|HttpHeader { name, value, .. }| (name.clone(), value.clone()));
            let reach = if may_start { Reach::Anywhere } else { Reach::Guarded(Guard::default()) };
            (&http.name, Transport::Http { url: http.url.clone(), headers: headers.collect(), reach, client_id: None })
        }
        _ => {
            return Err(ServiceError::BadParams(
                "MCP servers of this kind are not supported, see mcpCapabilities".to_owned(),
            ));
        }
    };
    Ok(Spec::new(name.clone(), transport))
}
