//! How servers are: as they are now, and after they were started once to see whether they work.

use std::sync::Arc;

use super::network_prompt;
use super::server::{McpServer, ServerPhase};
use super::servers::{ServerState, ServerStatus, Servers};

/// What came of starting a server once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriedServer {
    /// How it is now.
    pub status: ServerStatus,
    /// It failed, and seems to have missed the network.
    pub wants_network: bool,
    /// The last of what its program complained about.
    pub stderr: String,
}

impl Servers {
    /// Starts all of them and waits until each is ready or has failed.
    pub async fn try_all(&self) -> Vec<TriedServer> {
        self.wait_until_settled().await;
        let tried = self.all_servers().into_iter().map(|server| {
            let view = server.current_view();
            let stderr = view.outage.map(|outage| outage.stderr).unwrap_or_default();
            let wants_network = view.offline && matches!(view.phase, ServerPhase::Failed(_));
            TriedServer { status: self.server_status(&server), wants_network, stderr }
        });
        tried.collect()
    }

    /// Lets the program of the server of this name use the network from now on; false if there is none.
    pub fn grant_network(&self, name: &str) -> bool {
        let server = self.all_servers().into_iter().find(|server| server.spec.name == name);
        server.is_some_and(|server| {
            network_prompt::grant_network(&self.env, &server.spec);
            true
        })
    }

    /// Lets those that run sleep: whoever needs one starts it again.
    pub fn sleep_all(&self) {
        self.all_servers().iter().for_each(|server| server.request_sleep());
    }

    /// How one of them is.
    pub(super) fn server_status(&self, server: &Arc<McpServer>) -> ServerStatus {
        let view = server.current_view();
        let (tools, changed): (Vec<_>, Vec<_>) =
            view.catalogue.tools.iter().partition(|offered| self.is_pinned(server, offered));
        ServerStatus {
            name: server.name.clone(),
            place: server.spec.command_or_url(),
            state: match view.phase {
                ServerPhase::Asleep => ServerState::Asleep,
                ServerPhase::Starting => ServerState::Starting,
                ServerPhase::Ready => ServerState::Ready,
                ServerPhase::Locked => ServerState::Locked,
                ServerPhase::Failed(reason) => ServerState::Failed(reason),
            },
            tools: tools.into_iter().map(|offered| offered.spec.name.clone()).collect(),
            changed: changed.into_iter().map(|offered| offered.tool.clone()).collect(),
        }
    }
}
