//! Resources of servers, as two tools: one lists them, one reads one.

use std::sync::Arc;

use gander_domain::{Part, ToolCall, ToolCallId, ToolContent, ToolEnd, ToolKind, ToolResult, ToolSpec};
use gander_tools::output::{clip_output, limit_output_parts};
use gander_tools::{Group, Limits, ListedTool};
use rmcp::model::{ReadResourceRequestParams, ReadResourceResponse};
use serde::Deserialize;
use serde_json::{Value, json};

use super::content;
use super::server::McpServer;
use super::session_handle::session_handle_line;

const LIST_TOOL: &str = "list_resources";
pub(super) const READ_TOOL: &str = "read_resource";

/// True for the tools that list and read resources.
pub(super) fn is_resource_tool(name: &str) -> bool {
    matches!(name, LIST_TOOL | READ_TOOL)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadArguments {
    server: String,
    uri: String,
}

/// The two tools, if any server has resources.
pub(super) fn listed_resource_tools(servers: &[Arc<McpServer>]) -> Vec<ListedTool> {
    if !servers.iter().any(|server| has_resources(server)) {
        return Vec::new();
    }
    let listed = |name: &str, description: &str, schema: Value| ListedTool {
        spec: ToolSpec { name: name.to_owned(), description: description.to_owned(), schema: schema.into() },
        group: Group::Resources,
    };
    let text = |description: &str| json!({"type": "string", "description": description});
    let read = json!({
        "type": "object",
        "properties": {"server": text("The server's name, from the list"), "uri": text("The resource's address, from the list or made from a template")},
        "required": ["server", "uri"],
    });
    vec![
        listed(
            LIST_TOOL,
            "Lists the resources that MCP servers offer, and templates of further ones.",
            json!({"type": "object", "properties": {}}),
        ),
        listed(READ_TOOL, "Reads one resource of an MCP server.", read),
    ]
}

/// Describes a call of one of the two; `None` if it is neither.
pub(super) fn describe_resource_call(
    id: ToolCallId,
    name: &str,
    arguments: &Value,
) -> Option<Result<ToolCall, ToolResult>> {
    let title = match name {
        LIST_TOOL => "List the resources of MCP servers".to_owned(),
        READ_TOOL => match ReadArguments::deserialize(arguments) {
            Ok(ReadArguments { server, uri }) => session_handle_line(&format!("Read {uri} of {server}")),
            Err(error) => return Some(Err(failed_resource_result(format!("arguments do not fit the tool: {error}")))),
        },
        _ => return None,
    };
    let kind = ToolKind::Read;
    let (name, arguments) = (name.to_owned(), arguments.clone());
    Some(Ok(ToolCall { id, name, title, kind, arguments, locations: Vec::new(), idempotent: true }))
}

/// Runs a call of one of the two; `None` if it is neither.
pub(super) async fn run_resource_call(
    servers: &[Arc<McpServer>],
    call: &ToolCall,
    limits: &Limits,
) -> Option<ToolResult> {
    match call.name.as_str() {
        LIST_TOOL => Some(list_resources(servers, limits)),
        READ_TOOL => Some(read_resource(servers, &call.arguments, limits).await.unwrap_or_else(failed_resource_result)),
        _ => None,
    }
}

fn list_resources(servers: &[Arc<McpServer>], limits: &Limits) -> ToolResult {
    let lines = servers.iter().flat_map(|server| {
        let catalogue = server.current_view().catalogue;
        let resources = catalogue
            .resources
            .iter()
            .map(|resource| (resource.uri.clone(), resource.name.clone(), resource.description.clone()));
        let templates = catalogue.templates.iter().map(|template| {
            (template.uri_template.clone(), format!("{} (template)", template.name), template.description.clone())
        });
        let row = |(uri, name, description): (String, String, Option<String>)| {
            format!("{}\t{uri}\t{name}\t{}", server.name, description.unwrap_or_default())
        };
        resources.chain(templates).map(row).collect::<Vec<_>>()
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    ToolResult::text(ToolEnd::Completed, clip_output(format!("server\turi\tname\tdescription\n{text}"), limits.result))
}

async fn read_resource(servers: &[Arc<McpServer>], arguments: &Value, limits: &Limits) -> Result<ToolResult, String> {
    let ReadArguments { server, uri } = ReadArguments::deserialize(arguments).map_err(|error| error.to_string())?;
    let server =
        servers.iter().find(|known| known.name == server).ok_or_else(|| format!("no such server: {server}"))?;
    let line = server.wait_for_connection().await?;
    let answer = line.peer.read_resource_once(ReadResourceRequestParams::new(uri)).await;
    let ReadResourceResponse::Complete(result) = answer.map_err(|error| line.note_unauthorized(error).to_string())?
    else {
        return Err("the server wants to know more first, which reading cannot tell it".to_owned());
    };
    let parts = limit_output_parts(result.contents.into_iter().map(content::resource_content_part), limits);
    Ok(ToolResult {
        end: ToolEnd::Completed,
        content: parts.into_iter().map(resource_tool_content).collect(),
        raw: None,
    })
}

fn resource_tool_content(part: Part) -> ToolContent {
    ToolContent::Part { part }
}

fn has_resources(server: &McpServer) -> bool {
    let catalogue = server.current_view().catalogue;
    !catalogue.resources.is_empty() || !catalogue.templates.is_empty()
}

fn failed_resource_result(text: impl Into<String>) -> ToolResult {
    ToolResult::text(ToolEnd::Failed, text)
}
