//! Agents with known behaviour, for checking clients and protocols. They are there only if the server is told so.

mod echo;
mod tck;

use std::sync::Arc;

use gander_domain::{AgentManifest, Capability};

use super::agents::Agent;
use super::handler::{Handled, Handler};
use crate::door::a2a::MERE_MESSAGES;

/// All of them.
pub fn agents() -> Vec<Agent> {
    vec![agent("echo", "Says what it was told", echo::Echo), tck()]
}

/// The agent that the A2A kits ask for: it may answer with a message and no task.
fn tck() -> Agent {
    let mere = Capability { name: MERE_MESSAGES.to_owned(), description: "May answer with a mere message".to_owned() };
    let any = || vec!["*/*".to_owned()];
    let manifest = AgentManifest {
        takes: any(),
        gives: any(),
        capabilities: vec![mere],
        ..AgentManifest::new("tck", "tck", "Does what the A2A kits ask for")
    };
    Agent::new(manifest, Arc::new(Handled(tck::Tck)))
}

fn agent(name: &str, description: &str, handler: impl Handler) -> Agent {
    let any = || vec!["*/*".to_owned()];
    let manifest = AgentManifest { takes: any(), gives: any(), ..AgentManifest::new(name, name, description) };
    Agent::new(manifest, Arc::new(Handled(handler)))
}
