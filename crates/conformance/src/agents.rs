//! The agents that `gander-conformance serve` adds to those of the product.

use std::sync::Arc;

use gander_domain::{AgentManifest, Capability};
use gander_gateway::protocols::a2a::MESSAGE_ONLY_CAPABILITY;
use gander_runtime::backend::handler::{Handler, HandlerBackend};
use gander_services::agents::Agent;
use gander_store::Store;

use crate::{a2a_tck, acp_rest_agents, adk_scripted};

/// Every conformance agent: those that the Agent Communication Protocol's own test suite asks for, those of the A2A and ADK
/// kits, and some for measuring.
pub fn agents(store: &Arc<dyn Store>) -> Vec<Agent> {
    vec![
        handler_agent("echo", "Says what it was told", acp_rest_agents::Echo),
        handler_agent("slow_echo", "Says what it was told, a second later", acp_rest_agents::SlowEcho),
        handler_agent(
            "history_echo",
            "Says everything that was said, then what it was told",
            acp_rest_agents::HistoryEcho,
        ),
        handler_agent("history", "Says how many messages there were before", acp_rest_agents::History),
        handler_agent("awaiter", "Waits for any message, then ends", acp_rest_agents::Awaiter),
        handler_agent("approve", "Asks whether it may, then says what it heard", acp_rest_agents::Approve),
        handler_agent("failer", "Fails for what it was told", acp_rest_agents::Failer),
        handler_agent("raiser", "Fails before it says anything", acp_rest_agents::Failer),
        handler_agent("crash", "Ends without a word", acp_rest_agents::Crash),
        handler_agent("sessioner", "Says which session it serves", acp_rest_agents::Sessioner),
        typed_agent("mime_types", "Says the same in four languages of the web", acp_rest_agents::MimeTypes),
        handler_agent("base64_encoding", "Shows a picture and says so", acp_rest_agents::Picture),
        handler_agent("artifact_producer", "Makes a text, a table and a picture", acp_rest_agents::Artifacts),
        handler_agent("parts", "Says as many words as it was told, one at a time", acp_rest_agents::Words),
        handler_agent("slow", "Says a word every fifth of a second, for ten minutes", acp_rest_agents::Slow),
        handler_agent("rich", "Thinks, uses a tool, speaks and shows, each in its own form", acp_rest_agents::Rich),
        a2a_tck_agent(),
        scripted_agent("wire", "A scripted agent for wire tests.", store),
        scripted_agent("resumable", "Resumable agent.", store),
    ]
}

/// The agent that the A2A kits ask for: it may answer with a message and no task.
fn a2a_tck_agent() -> Agent {
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
    Agent::new(manifest, Arc::new(HandlerBackend(a2a_tck::TckAgent)))
}

/// The agents behind our captures of the Agent Development Kit.
fn scripted_agent(name: &str, description: &str, store: &Arc<dyn Store>) -> Agent {
    let (any, long_running) = (|| vec!["*/*".to_owned()], vec!["start_job".to_owned()]);
    let manifest = AgentManifest { takes: any(), gives: any(), ..AgentManifest::new(name, name, description) };
    let manifest = AgentManifest { long_running, ..manifest };
    Agent::new(manifest, Arc::new(adk_scripted::ScriptedAgent { store: Arc::clone(store) }))
}

fn handler_agent(name: &str, description: &str, handler: impl Handler) -> Agent {
    let any = || vec!["*/*".to_owned()];
    let manifest = AgentManifest { takes: any(), gives: any(), ..AgentManifest::new(name, name, description) };
    Agent::new(manifest, Arc::new(HandlerBackend(handler)))
}

fn typed_agent(name: &str, description: &str, handler: impl Handler) -> Agent {
    let types = |types: &[&str]| types.iter().map(|kind| (*kind).to_owned()).collect();
    let takes = types(&["text/plain", "application/json"]);
    let gives = types(&["text/html", "application/json", "application/javascript", "text/css"]);
    let manifest = AgentManifest { takes, gives, ..AgentManifest::new(name, name, description) };
    Agent::new(manifest, Arc::new(HandlerBackend(handler)))
}
