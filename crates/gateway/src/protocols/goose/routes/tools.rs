//! Tools and resources of a session's MCP servers, used by a person's client without the agent.

use bytes::Bytes;
use gander_domain::{Part, ToolContent, ToolEnd};
use gander_services::direct_calls::{self, DirectCallError};
use gander_wire::goose::projection;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{GooseCaller, HandlerResult, goose_json_response, read_goose_json};
use crate::protocols::goose::error::{GooseError, no_such_goose_session};

/// `POST /agent/call_tool`: the caller decides, so nobody is asked. The built-in tools are the agent's own.
pub(crate) async fn call_goose_tool(caller: GooseCaller, body: Bytes) -> HandlerResult {
    #[derive(Deserialize)]
    struct Call {
        session_id: String,
        name: String,
        #[serde(default)]
        arguments: Value,
    }
    let Call { session_id, name, arguments } = read_goose_json(&body)?;
    let session = session_id.parse().map_err(|_| no_such_goose_session())?;
    let arguments = if arguments.is_null() { json!({}) } else { arguments };
    let result =
        direct_calls::call_tool_directly(caller.services(), &caller.identity, session, &name, &arguments).await?;
    goose_json_response(projection::goose_tool_result_object(&result))
}

/// `POST /agent/read_resource`.
pub(crate) async fn read_goose_tool_resource(caller: GooseCaller, body: Bytes) -> HandlerResult {
    #[derive(Deserialize)]
    struct ReadResourceRequest {
        session_id: String,
        extension_name: String,
        uri: String,
    }
    let ReadResourceRequest { session_id, extension_name, uri } = read_goose_json(&body)?;
    let session = session_id.parse().map_err(|_| no_such_goose_session())?;
    let missing = || GooseError::new(StatusCode::NOT_FOUND, format!("no such resource: {uri}"));
    let result =
        direct_calls::read_resource_directly(caller.services(), &caller.identity, session, &extension_name, &uri).await;
    let result = result.map_err(|error| match error {
        DirectCallError::Gone => missing(),
        DirectCallError::Refused(_)
        | DirectCallError::AgentOnly(_)
        | DirectCallError::UnknownTool(_)
        | DirectCallError::Undecided(_)
        | DirectCallError::NotReady => error.into(),
    })?;
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
            goose_json_response(answer)
        }
        (ToolEnd::Completed, None) => Err(GooseError::new(StatusCode::FAILED_DEPENDENCY, "the resource is no text")),
        (ToolEnd::Failed | ToolEnd::Rejected | ToolEnd::Cancelled | ToolEnd::Interrupted, _) => Err(missing()),
    }
}
