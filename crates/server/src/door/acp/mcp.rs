//! MCP servers that a client names for its session.

use gander_agent::mcp::{PromptSpec, Reach, Spec, Transport};
use gander_agent::tools::Guard;
use gander_wire::acp::schema::{EnvVariable, HttpHeader, McpServer};
use gander_wire::acp::{Offer, Refusal};

use crate::app::Peer;
use crate::door::Desk;
pub(super) use crate::door::extensions::may_start;

/// Servers that one client may bring along.
const MOST: usize = 32;

/// The servers as we start them, or why not. Whoever may start programs may also reach any address.
pub(super) fn specs(desk: &Desk, peer: &Peer, servers: &[McpServer]) -> Result<Vec<Spec>, Refusal> {
    if servers.len() > MOST {
        return Err(Refusal::BadParams(format!("more than {MOST} MCP servers: {}", servers.len())));
    }
    servers.iter().map(|server| spec(server, may_start(desk, peer))).collect()
}

/// A prompt as a command.
pub(super) fn offer(prompt: &PromptSpec) -> Offer {
    let wanted = prompt.arguments.iter().map(|argument| argument.name.as_str());
    let hint = wanted.collect::<Vec<_>>().join(" ");
    Offer { name: prompt.command(), description: prompt.description.clone(), hint }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the schema's enum is open")]
fn spec(server: &McpServer, may_start: bool) -> Result<Spec, Refusal> {
    let (name, transport) = match server {
        McpServer::Stdio(_) if !may_start => {
            let text = "a client on the network may not start programs unless server.allow_remote_commands is true";
            return Err(Refusal::BadParams(text.to_owned()));
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
            return Err(Refusal::BadParams(
                "MCP servers of this kind are not supported, see mcpCapabilities".to_owned(),
            ));
        }
    };
    Ok(Spec::new(name.clone(), transport))
}
