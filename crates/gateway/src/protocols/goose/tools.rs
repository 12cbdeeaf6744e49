//! Tools as goose's objects.

use std::path::Path;

use gander_domain::{SessionView, ToolSpec};
use gander_services::Services;
use gander_tools::{BuiltIn, Group};
use serde_json::{Value, json};

/// The tools of our own that a session has, by name.
pub fn goose_session_tools(services: &Services, view: &SessionView) -> Vec<Value> {
    let extensions = services.extensions.built_ins(view);
    filtered_goose_tools(services, view, |group| extensions.offers_group(group))
}

/// The same of one extension alone.
pub fn goose_extension_tools(services: &Services, view: &SessionView, extension: &str) -> Vec<Value> {
    let wanted = BuiltIn::from_name(extension).filter(|wanted| services.extensions.built_ins(view).is_enabled(*wanted));
    filtered_goose_tools(services, view, |group| wanted.is_some() && BuiltIn::of_group(group) == wanted)
}

fn filtered_goose_tools(services: &Services, view: &SessionView, is_wanted: impl Fn(Group) -> bool) -> Vec<Value> {
    let mode = services.agent_catalog.modes_in(Path::new(&view.workspace)).selected_mode(&view.settings);
    let offered = mode.filter_tools(&services.tools).filter(|tool| is_wanted(tool.group));
    let mut tools: Vec<&ToolSpec> = offered.map(|tool| &tool.spec).collect();
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    tools.into_iter().map(goose_tool_object).collect()
}

fn goose_tool_object(spec: &ToolSpec) -> Value {
    let mut parameters: Vec<&String> =
        spec.schema["properties"].as_object().into_iter().flat_map(|all| all.keys()).collect();
    parameters.sort();
    json!({
        "name": spec.name, "description": spec.description, "parameters": parameters, "permission": null,
        "inputSchema": *spec.schema, "input_schema": *spec.schema,
    })
}
