//! What agents are, for pages that draw them.

use std::sync::Arc;

use gander_domain::{AgentManifest, SlashCommand};
use serde_json::{Map, Value, json};

use crate::slash_command_list::slash_command_list;

/// A tool, as far as pages show it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolInfo {
    /// Its name.
    pub name: String,
    /// One paragraph.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: Value,
}

/// `GET /list-apps?detailed=true`.
pub fn adk_app_list<'a>(agents: impl Iterator<Item = &'a AgentManifest>) -> Value {
    json!({ "apps": agents.map(|agent| adk_app_object(agent, Value::Null)).collect::<Vec<_>>() })
}

/// `GET /apps/{app}/app-info`: an agent with its slash commands, and below it the ways in which it works.
pub fn adk_app_info(
    agent: &AgentManifest,
    tools: &[ToolInfo],
    commands: &[SlashCommand],
    ways: &[(Arc<AgentManifest>, Vec<ToolInfo>)],
) -> Value {
    let names = ways.iter().map(|(way, _)| way.name.as_str()).collect::<Vec<_>>();
    let mut agents = Map::from_iter([(agent.name.clone(), adk_agent_object(agent, tools, &names))]);
    agents.extend(ways.iter().map(|(way, tools)| (way.name.clone(), adk_agent_object(way, tools, &[]))));
    let mut info = adk_app_object(agent, Value::Object(agents));
    info["commands"] = slash_command_list(commands);
    info
}

fn adk_agent_object(agent: &AgentManifest, tools: &[ToolInfo], below: &[&str]) -> Value {
    let declared = |tool: &ToolInfo| {
        let ToolInfo { name, description, parameters } = tool;
        json!({ "functionDeclarations": [
            { "description": description, "name": name, "parametersJsonSchema": parameters },
        ] })
    };
    json!({
        "name": agent.name,
        "description": agent.description,
        "instruction": "",
        "tools": tools.iter().map(declared).collect::<Vec<_>>(),
        "sub_agents": below,
    })
}

/// `GET /dev/apps/{app}/build_graph`.
pub fn adk_agent_build_graph(agent: &AgentManifest, tools: &[ToolInfo], model: Option<&str>) -> Value {
    json!({
        "name": agent.name,
        "root_agent": {
            "name": agent.name,
            "description": agent.description,
            "rerun_on_resume": false,
            "wait_for_output": false,
            "sub_agents": [],
            "model": model.unwrap_or_default(),
            "instruction": "",
            "global_instruction": "",
            "tools": tools.iter().map(|tool| json!({ "name": tool.name, "description": tool.description })).collect::<Vec<_>>(),
        },
    })
}

/// The same as a drawing, in the language of Graphviz.
pub fn adk_agent_dot_graph(agent: &AgentManifest, tools: &[ToolInfo], dark: bool) -> String {
    let (paper, ink) = if dark { ("#0F172A", "#F8FAFC") } else { ("#F8FAFC", "#0F172A") };
    let root = quote_adk_graph_name(&agent.name);
    let nodes: String =
        tools.iter().map(|tool| format!("\t{root} -> {}\n", quote_adk_graph_name(&tool.name))).collect();
    format!(
        "digraph {{\n\tgraph [bgcolor=\"{paper}\" rankdir=LR]\n\tnode [color=\"{ink}\" fontcolor=\"{ink}\" shape=rect style=rounded]\n\tedge [color=\"{ink}\"]\n\t{root}\n{nodes}}}\n"
    )
}

fn adk_app_object(agent: &AgentManifest, agents: Value) -> Value {
    json!({
        "name": agent.name,
        "rootAgentName": agent.name,
        "description": agent.description,
        "language": "rust",
        "isComputerUse": false,
        "modes": agent.modes.iter().map(|mode| (mode.id.clone(), json!(mode.category))).collect::<Map<_, _>>(),
        "agents": agents,
    })
}

fn quote_adk_graph_name(name: &str) -> String {
    format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))
}
