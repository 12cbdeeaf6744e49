//! Agents with known behaviour, for checking clients and protocols. They are there only if the server is told so.

mod echo;

use std::sync::Arc;

use gander_domain::AgentManifest;

use super::agents::Agent;
use super::handler::{Handled, Handler};

/// All of them.
pub fn agents() -> Vec<Agent> {
    vec![agent("echo", "Says what it was told", echo::Echo)]
}

fn agent(name: &str, description: &str, handler: impl Handler) -> Agent {
    let any = || vec!["*/*".to_owned()];
    let manifest = AgentManifest { takes: any(), gives: any(), ..AgentManifest::new(name, name, description) };
    Agent::new(manifest, Arc::new(Handled(handler)))
}
