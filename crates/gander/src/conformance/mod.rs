//! Agents with known behaviour, for checking clients and protocols. They are there only if the server is told so.

mod simple;
mod tck;
mod wire;
mod wire_tools;

use std::sync::Arc;

use gander_domain::{AgentManifest, Capability};
use gander_gateway::protocols::a2a::MESSAGE_ONLY_CAPABILITY;
use gander_runtime::backend::handler::{Handled, Handler};
use gander_services::agents::Agent;
use gander_store::Store;

/// All of them: those that the Agent Communication Protocol's own test suite asks for, and some for measuring.
pub fn agents(store: &Arc<dyn Store>) -> Vec<Agent> {
    vec![
        agent("echo", "Says what it was told", simple::Echo),
        agent("slow_echo", "Says what it was told, a second later", simple::SlowEcho),
        agent("history_echo", "Says everything that was said, then what it was told", simple::HistoryEcho),
        agent("history", "Says how many messages there were before", simple::History),
        agent("awaiter", "Waits for any message, then ends", simple::Awaiter),
        agent("approve", "Asks whether it may, then says what it heard", simple::Approve),
        agent("failer", "Fails for what it was told", simple::Failer),
        agent("raiser", "Fails before it says anything", simple::Failer),
        agent("crash", "Ends without a word", simple::Crash),
        agent("sessioner", "Says which session it serves", simple::Sessioner),
        typed("mime_types", "Says the same in four languages of the web", simple::MimeTypes),
        agent("base64_encoding", "Shows a picture and says so", simple::Picture),
        agent("artifact_producer", "Makes a text, a table and a picture", simple::Artifacts),
        agent("parts", "Says as many words as it was told, one at a time", simple::Words),
        agent("slow", "Says a word every fifth of a second, for ten minutes", simple::Slow),
        agent("rich", "Thinks, uses a tool, speaks and shows, each in its own form", simple::Rich),
        tck(),
        scripted("wire", "A scripted agent for wire tests.", store),
        scripted("resumable", "Resumable agent.", store),
    ]
}

/// The agent that the A2A kits ask for: it may answer with a message and no task.
fn tck() -> Agent {
    let mere = Capability {
        name: MESSAGE_ONLY_CAPABILITY.to_owned(),
        description: "May answer with a mere message".to_owned(),
    };
    let any = || vec!["*/*".to_owned()];
    let manifest = AgentManifest {
        takes: any(),
        gives: any(),
        capabilities: vec![mere],
        ..AgentManifest::new("tck", "tck", "Does what the A2A kits ask for")
    };
    Agent::new(manifest, Arc::new(Handled(tck::Tck)))
}

/// The agents behind our captures of the Agent Development Kit.
fn scripted(name: &str, description: &str, store: &Arc<dyn Store>) -> Agent {
    let (any, long_running) = (|| vec!["*/*".to_owned()], vec!["start_job".to_owned()]);
    let manifest = AgentManifest { takes: any(), gives: any(), ..AgentManifest::new(name, name, description) };
    let manifest = AgentManifest { long_running, ..manifest };
    Agent::new(manifest, Arc::new(wire::Wire { store: Arc::clone(store) }))
}

fn agent(name: &str, description: &str, handler: impl Handler) -> Agent {
    let any = || vec!["*/*".to_owned()];
    let manifest = AgentManifest { takes: any(), gives: any(), ..AgentManifest::new(name, name, description) };
    Agent::new(manifest, Arc::new(Handled(handler)))
}

fn typed(name: &str, description: &str, handler: impl Handler) -> Agent {
    let types = |types: &[&str]| types.iter().map(|kind| (*kind).to_owned()).collect();
    let takes = types(&["text/plain", "application/json"]);
    let gives = types(&["text/html", "application/json", "application/javascript", "text/css"]);
    let manifest = AgentManifest { takes, gives, ..AgentManifest::new(name, name, description) };
    Agent::new(manifest, Arc::new(Handled(handler)))
}
