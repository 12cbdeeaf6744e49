//! Tools and resources of a session's MCP servers, used by a person's client without the agent.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gander_domain::{Part, ToolCall, ToolCallId, ToolContent, ToolEnd, ToolKind, ToolResult};
use gander_mcp::Servers;
use gander_store::clock::SystemIds;
use gander_wire::goose::output;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{GooseCaller, HandlerResult, json_response, read_json};
use crate::protocols::goose::error::{GooseError, no_such_session};
use crate::protocols::goose::sessions;

/// How long a server that sleeps may take to be ready.
const SERVER_READY_TIMEOUT: Duration = Duration::from_secs(30);

/// Progress that nobody reads.
const PROGRESS_CAPACITY: usize = 16;

/// `POST /agent/call_tool`: the caller decides, so nobody is asked. The built-in tools are the agent's own.
pub(crate) async fn call_tool(caller: GooseCaller, body: Bytes) -> HandlerResult {
    #[derive(Deserialize)]
    struct Call {
        session_id: String,
        name: String,
        #[serde(default)]
        arguments: Value,
    }
    caller.identity.may_call_tool().map_err(|denied| GooseError::new(StatusCode::FORBIDDEN, denied.to_string()))?;
    let Call { session_id, name, arguments } = read_json(&body)?;
    let servers = session_servers(&caller, &session_id).await?;
    let arguments = if arguments.is_null() { json!({}) } else { arguments };
    let call = servers.describe_call(ToolCallId::make(&mut SystemIds), &name, &arguments);
    let call = call.ok_or_else(|| match caller.services().tools.iter().any(|tool| tool.spec.name == name) {
        true => GooseError::new(StatusCode::FORBIDDEN, format!("only the agent uses this tool: {name}")),
        false => GooseError::new(StatusCode::NOT_FOUND, format!("no such tool: {name}")),
    })?;
    let result = match call {
        Ok(call) => run_tool(&servers, &call).await?,
        Err(misfit) => misfit,
    };
    json_response(output::tool_result_object(&result))
}

/// `POST /agent/read_resource`.
pub(crate) async fn read_resource(caller: GooseCaller, body: Bytes) -> HandlerResult {
    #[derive(Deserialize)]
    struct ReadResourceRequest {
        session_id: String,
        extension_name: String,
        uri: String,
    }
    let ReadResourceRequest { session_id, extension_name, uri } = read_json(&body)?;
    let servers = session_servers(&caller, &session_id).await?;
    let missing = || GooseError::new(StatusCode::NOT_FOUND, format!("no such resource: {uri}"));
    let arguments = json!({ "server": extension_name, "uri": uri });
    let result = run_tool(&servers, &read_resource_call(arguments)).await.map_err(|_| missing())?;
    let text = result.content.iter().find_map(|content| match content {
        ToolContent::Part { part: Part::Resource { mime, text: Some(text), .. } } => Some((mime.clone(), text.clone())),
        ToolContent::Part { part: Part::Text { text } } => Some((None, text.clone())),
        ToolContent::Part { .. } | ToolContent::Diff { .. } | ToolContent::Terminal { .. } => None,
    });
    match (result.end, text) {
        (ToolEnd::Completed, Some((mime, text))) => {
            let mut answer = json!({ "uri": uri, "text": text });
            if let Some(mime) = mime {
                answer["mimeType"] = json!(mime);
            }
            json_response(answer)
        }
        (ToolEnd::Completed, None) => Err(GooseError::new(StatusCode::FAILED_DEPENDENCY, "the resource is no text")),
        (ToolEnd::Failed | ToolEnd::Rejected | ToolEnd::Cancelled | ToolEnd::Interrupted, _) => Err(missing()),
    }
}

/// Reading is itself a tool, under a name that no server's tool can have.
fn read_resource_call(arguments: Value) -> ToolCall {
    ToolCall {
        id: ToolCallId::make(&mut SystemIds),
        name: "read_resource".to_owned(),
        title: "read_resource".to_owned(),
        kind: ToolKind::Read,
        arguments,
        locations: Vec::new(),
        idempotent: true,
    }
}

/// A caller who hangs up stops what it called.
async fn run_tool(servers: &Servers, call: &ToolCall) -> Result<ToolResult, GooseError> {
    let (signals, mut heard) = mpsc::channel(PROGRESS_CAPACITY);
    let cancel = CancellationToken::new();
    let _stop = cancel.clone().drop_guard();
    let deaf = async { while heard.recv().await.is_some() {} };
    let gone = || GooseError::new(StatusCode::FAILED_DEPENDENCY, "the extension is gone");
    let (result, ()) = tokio::join!(servers.call_tool(call, signals, cancel), deaf);
    result.ok_or_else(gone)
}

async fn session_servers(caller: &GooseCaller, session: &str) -> Result<Arc<Servers>, GooseError> {
    let session = session.parse().map_err(|_| no_such_session())?;
    let view = sessions::find_own_session(caller.services(), &caller.peer, session).await?;
    let servers = caller.services().extensions.servers_of(&view);
    servers.start_all();
    let ready = tokio::time::timeout(SERVER_READY_TIMEOUT, servers.wait_until_tried()).await;
    ready.map_err(|_| GooseError::new(StatusCode::FAILED_DEPENDENCY, "an extension is not ready"))?;
    Ok(servers)
}
