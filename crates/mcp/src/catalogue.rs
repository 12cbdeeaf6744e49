//! What a server offers: its tools under our names, its prompts, its resources.

use gander_domain::ToolSpec;
use gander_tools::output::clip_output;
use rmcp::model::{Prompt, Resource, ResourceTemplate, Tool, ToolAnnotations};
use serde_json::{Value, json};

use super::names;
use super::pins::pinned_definition_hash;

/// Tools of one server that are taken in.
const MAX_TOOLS: usize = 256;

/// How much of a description is taken in.
const MAX_DESCRIPTION_BYTES: usize = 4 << 10;

/// How much of a schema is taken in, as JSON.
const MAX_SCHEMA_BYTES: usize = 64 << 10;

/// What a server offers.
#[derive(Clone, Debug, Default)]
pub(super) struct Catalogue {
    pub tools: Vec<OfferedTool>,
    pub prompts: Vec<PromptSpec>,
    pub resources: Vec<Resource>,
    pub templates: Vec<ResourceTemplate>,
    /// What the server says about itself.
    pub instructions: Option<String>,
}

/// A tool of a server.
#[derive(Clone, Debug)]
pub(super) struct OfferedTool {
    /// As the server calls it.
    pub tool: String,
    /// As people read it.
    pub title: String,
    /// As a model sees it.
    pub spec: ToolSpec,
    /// The hash of everything that makes it what it is.
    pub definition: String,
    /// The server says that calling it twice does no more than calling it once.
    pub repeatable: bool,
}

/// A prompt of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptSpec {
    /// Which server's.
    pub server: String,
    /// As the server calls it.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// What it wants to know.
    pub arguments: Vec<PromptArgument>,
}

/// Something a prompt wants to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// What it means.
    pub description: Option<String>,
    /// Must it be given?
    pub required: bool,
}

/// Tools under our names. What no model could use is left out.
pub(super) fn offered_tools(server: &str, tools: Vec<Tool>) -> Vec<OfferedTool> {
    let usable: Vec<Tool> = tools.into_iter().filter(is_usable_tool).take(MAX_TOOLS).collect();
    let names = names::unique_tool_names(server, usable.iter().map(|tool| tool.name.as_ref()));
    usable.into_iter().zip(names).map(|(tool, name)| offered_tool(server, name, tool)).collect()
}

/// Prompts of this server.
pub(super) fn prompt_specs(server: &str, prompts: Vec<Prompt>) -> Vec<PromptSpec> {
    let prompt = |prompt: Prompt| PromptSpec {
        server: server.to_owned(),
        description: prompt.description.or(prompt.title).unwrap_or_default(),
        arguments: prompt.arguments.unwrap_or_default().into_iter().map(prompt_argument).collect(),
        name: prompt.name,
    };
    prompts.into_iter().map(prompt).collect()
}

fn offered_tool(server: &str, name: String, tool: Tool) -> OfferedTool {
    let definition = pinned_definition_hash(&tool);
    let annotated = tool.annotations.as_ref().and_then(|annotations| annotations.title.clone());
    let title = tool.title.clone().or(annotated).unwrap_or_else(|| tool.name.clone().into_owned());
    let purpose = tool.description.clone().unwrap_or_default().into_owned();
    let description = clip_output(format!("{purpose}\n(A tool of the MCP server {server}.)"), MAX_DESCRIPTION_BYTES);
    let spec = ToolSpec { name, description, schema: tool_schema(&tool).into() };
    let repeatable = tool.annotations.as_ref().is_some_and(is_repeatable_tool);
    OfferedTool { tool: tool.name.into_owned(), title, spec, definition, repeatable }
}

fn is_repeatable_tool(annotations: &ToolAnnotations) -> bool {
    annotations.read_only_hint == Some(true) || annotations.idempotent_hint == Some(true)
}

/// Providers want an object with properties, also where a tool takes nothing.
fn tool_schema(tool: &Tool) -> Value {
    let mut schema = Value::Object((*tool.input_schema).clone());
    if schema.get("type").is_none() {
        schema["type"] = json!("object");
    }
    if schema.get("properties").is_none() {
        schema["properties"] = json!({});
    }
    schema
}

fn is_usable_tool(tool: &Tool) -> bool {
    !tool.name.is_empty() && Value::Object((*tool.input_schema).clone()).to_string().len() <= MAX_SCHEMA_BYTES
}

fn prompt_argument(argument: rmcp::model::PromptArgument) -> PromptArgument {
    let description = argument.description.or(argument.title);
    PromptArgument { name: argument.name, description, required: argument.required == Some(true) }
}
