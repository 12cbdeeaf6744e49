//! The agents that `gander-conformance serve` adds to those of the product.

use std::sync::Arc;

use gander::handler::PromptHandler;
use gander_domain::{AgentManifest, Capability};
use gander_gateway::protocols::a2a::MESSAGE_ONLY_CAPABILITY;
use gander_services::agents::Agent;
use gander_store::Store;

use crate::{a2a_tck, acp_rest_agents, adk_scripted, demo_script};

/// Every conformance agent: those that the Agent Communication Protocol's own test suite asks for, those of the A2A and ADK
/// kits, and some for measuring.
pub fn agents(store: &Arc<dyn Store>) -> Vec<Agent> {
    let agent = |name: &str, description: &str, handler| handler_agent(store, name, description, handler);
    let mut agents = vec![
        agent("echo", "Says what it was told", PromptHandler::durable(acp_rest_agents::echo_prompt)),
        agent(
            "slow_echo",
            "Says what it was told, a second later",
            PromptHandler::durable(acp_rest_agents::echo_prompt_slowly),
        ),
        agent(
            "history_echo",
            "Says everything that was said, then what it was told",
            PromptHandler::durable(acp_rest_agents::echo_history),
        ),
        agent(
            "history",
            "Says how many messages there were before",
            PromptHandler::durable(acp_rest_agents::count_history),
        ),
        agent(
            "awaiter",
            "Waits for any message, then ends",
            PromptHandler::durable(acp_rest_agents::await_any_message),
        ),
        agent(
            "approve",
            "Asks whether it may, then says what it heard",
            PromptHandler::durable(acp_rest_agents::ask_for_approval),
        ),
        agent("failer", "Fails for what it was told", PromptHandler::durable(acp_rest_agents::fail_prompt)),
        agent("raiser", "Fails before it says anything", PromptHandler::durable(acp_rest_agents::fail_prompt)),
        agent("crash", "Ends without a word", PromptHandler::durable(acp_rest_agents::crash_in_prompt)),
        agent("sessioner", "Says which session it serves", PromptHandler::durable(acp_rest_agents::name_session)),
        mime_types_agent(store),
    ];
    agents.extend(agents_for_measuring(store));
    agents.extend([
        a2a_tck_agent(store),
        scripted_agent("wire", "A scripted agent for wire tests.", store),
        scripted_agent("resumable", "Resumable agent.", store),
    ]);
    agents
}

/// Those that show, stream and take their time.
fn agents_for_measuring(store: &Arc<dyn Store>) -> Vec<Agent> {
    let agent = |name: &str, description: &str, handler| handler_agent(store, name, description, handler);
    vec![
        agent("base64_encoding", "Shows a picture and says so", PromptHandler::durable(acp_rest_agents::show_picture)),
        agent(
            "artifact_producer",
            "Makes a text, a table and a picture",
            PromptHandler::durable(acp_rest_agents::produce_artifacts),
        ),
        agent(
            "parts",
            "Says as many words as it was told, one at a time",
            PromptHandler::durable(acp_rest_agents::say_words),
        ),
        agent(
            "slow",
            "Says a word every fifth of a second, for ten minutes",
            PromptHandler::durable(acp_rest_agents::tick_for_minutes),
        ),
        agent(
            "rich",
            "Thinks, uses a tool, speaks and shows, each in its own form",
            PromptHandler::durable(acp_rest_agents::do_everything),
        ),
        agent(
            "handler",
            "Does what a script of the demo model says",
            PromptHandler::in_memory(demo_script::play_demo_script),
        ),
    ]
}

fn handler_agent(store: &Arc<dyn Store>, name: &str, description: &str, handler: PromptHandler) -> Agent {
    let any = || vec!["*/*".to_owned()];
    let manifest = AgentManifest { takes: any(), gives: any(), ..AgentManifest::new(name, name, description) };
    Agent::new(manifest, handler.into_backend(store))
}

/// The agent that the A2A kits ask for: it may answer with a message and no task.
fn a2a_tck_agent(store: &Arc<dyn Store>) -> Agent {
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
    Agent::new(manifest, PromptHandler::durable(a2a_tck::answer_tck).into_backend(store))
}

/// The agents behind our captures of the Agent Development Kit.
fn scripted_agent(name: &str, description: &str, store: &Arc<dyn Store>) -> Agent {
    let (any, long_running) = (|| vec!["*/*".to_owned()], vec!["start_job".to_owned()]);
    let manifest = AgentManifest { takes: any(), gives: any(), ..AgentManifest::new(name, name, description) };
    let manifest = AgentManifest { long_running, ..manifest };
    Agent::new(manifest, Arc::new(adk_scripted::ScriptedAgent { store: Arc::clone(store) }))
}

fn mime_types_agent(store: &Arc<dyn Store>) -> Agent {
    let types = |types: &[&str]| types.iter().map(|kind| (*kind).to_owned()).collect();
    let takes = types(&["text/plain", "application/json"]);
    let gives = types(&["text/html", "application/json", "application/javascript", "text/css"]);
    let manifest = AgentManifest::new("mime_types", "mime_types", "Says the same in four languages of the web");
    let manifest = AgentManifest { takes, gives, ..manifest };
    Agent::new(manifest, PromptHandler::durable(acp_rest_agents::say_in_mime_types).into_backend(store))
}
