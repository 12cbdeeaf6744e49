//! An agent's manifest as this protocol shows it.

use gander_domain::roster::dns_label;
use gander_domain::{AgentManifest, LinkKind, SlashCommand};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::slash_command_list::slash_command_list;

/// All agents.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AgentList {
    /// Their manifests.
    pub agents: Vec<Value>,
}

/// How an agent did lately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct AgentStats {
    /// Tokens per run.
    pub avg_run_tokens: f64,
    /// Seconds per run.
    pub avg_run_time_seconds: f64,
    /// Runs that came to their end, of a hundred.
    pub success_rate: f64,
}

/// The manifest, with the slash commands of its sessions, and with figures if it ever ran.
pub fn acp_rest_agent_manifest(agent: &AgentManifest, commands: &[SlashCommand], figures: Option<AgentStats>) -> Value {
    let mut shown = json!({
        "name": dns_label(&agent.name),
        "description": agent.description,
        "input_content_types": agent.takes,
        "output_content_types": agent.gives,
        "metadata": acp_rest_manifest_metadata(agent, commands),
    });
    if let Some(figures) = figures {
        shown["status"] = json!(figures);
    }
    shown
}

fn acp_rest_manifest_metadata(agent: &AgentManifest, commands: &[SlashCommand]) -> Map<String, Value> {
    let links = agent.links.iter().map(|link| json!({ "type": manifest_link_type(link.kind), "url": link.url }));
    let modes = agent.modes.iter().map(|mode| (mode.id.clone(), json!(mode.category)));
    let annotations = json!({
        "beeai_ui": { "ui_type": "chat", "display_name": agent.title, "tools": [] },
        "gander": { "modes": modes.collect::<Map<_, _>>(), "commands": slash_command_list(commands) },
    });
    let entries = [
        ("annotations", annotations),
        ("programming_language", json!("Rust")),
        ("framework", json!("gander")),
        ("capabilities", json!(agent.capabilities)),
        ("tags", json!(agent.tags)),
        ("links", Value::Array(links.collect())),
    ];
    let filled = |value: &Value| value.as_array().is_none_or(|list| !list.is_empty());
    entries.into_iter().filter(|(_, value)| filled(value)).map(|(name, value)| (name.to_owned(), value)).collect()
}

fn manifest_link_type(kind: LinkKind) -> &'static str {
    match kind {
        LinkKind::SourceCode => "source-code",
        LinkKind::ContainerImage => "container-image",
        LinkKind::Homepage => "homepage",
        LinkKind::Documentation => "documentation",
    }
}
