//! One tool call on a live connection: sent, answered, given up.

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, InputRequiredResult, ServerResult,
};
use rmcp::service::{PeerRequestOptions, RequestHandle, RoleClient, ServiceError};

use super::calls::{CallError, ToolUse};
use super::connection::McpConnectionHandle;

/// How often a server may ask for more before it answers.
const MAX_INPUT_ROUNDS: usize = 10;

/// Calls a tool. A server that wants to know more first is answered, and the call goes on.
pub(super) async fn call_tool(line: &McpConnectionHandle, wanted: &ToolUse) -> Result<CallToolResult, CallError> {
    let mut params = CallToolRequestParams::new(wanted.tool.clone()).with_arguments(wanted.arguments.clone());
    let _under_way = line.calls.begin_call();
    for round in 0..MAX_INPUT_ROUNDS {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params.clone()));
        let answer =
            send_tool_call_once(line, wanted, request).await.map_err(|error| call_error_after_round(round, error))?;
        if let ServerResult::CallToolResult(result) = answer {
            return Ok(result);
        }
        let ServerResult::InputRequiredResult(more) = answer else {
            return Err(CallError::Refused("the server answered with something else than a result".to_owned()));
        };
        let InputRequiredResult { input_requests, request_state, .. } = more;
        let answers = tokio::select! {
            biased;
            () = wanted.cancel.cancelled() => return Err(CallError::Cancelled),
            () = line.handler.gone.cancelled() => return Err(CallError::Gone),
            answers = line.handler.answer_input_requests(&wanted.session, input_requests.unwrap_or_default()) => answers,
        };
        params.input_responses = (!answers.is_empty()).then_some(answers);
        params.request_state = request_state;
    }
    Err(CallError::Refused(format!("the server asked for more than {MAX_INPUT_ROUNDS} times")))
}

/// A server that asked for more has begun: what was not sent after that is not what did not happen.
fn call_error_after_round(round: usize, error: CallError) -> CallError {
    match error {
        CallError::Unsent if round > 0 => CallError::Gone,
        CallError::Unsent | CallError::Cancelled | CallError::Silent(_) | CallError::Gone | CallError::Refused(_) => {
            error
        }
    }
}

async fn send_tool_call_once(
    line: &McpConnectionHandle,
    wanted: &ToolUse,
    request: ClientRequest,
) -> Result<ServerResult, CallError> {
    let sent = line.peer.send_request_with_option(request, PeerRequestOptions::no_options()).await;
    let refused = |error| to_call_error(line.note_unauthorized(error));
    let unsent =
        |error| if matches!(error, ServiceError::TransportClosed) { CallError::Unsent } else { refused(error) };
    let mut handle = sent.map_err(unsent)?;
    let token = handle.progress_token.clone();
    let _open = line.calls.open(token.clone(), wanted);
    let end = tokio::select! {
        biased;
        () = wanted.cancel.cancelled() => Err(CallError::Cancelled),
        response = &mut handle.rx => return response.map_err(|_| CallError::Gone)?.map_err(refused),
        () = line.calls.wait_for_silence(&token, wanted.patience) => Err(CallError::Silent(wanted.patience)),
    };
    cancel_tool_request(handle).await;
    end
}

/// Tells the server that nobody waits any more.
async fn cancel_tool_request(handle: RequestHandle<RoleClient>) {
    if let Err(error) = handle.cancel(Some("nobody waits for it any more".to_owned())).await {
        tracing::debug!(%error, "a server could not be told of a cancelled call");
    }
}

fn to_call_error(error: ServiceError) -> CallError {
    if is_connection_end(&error) {
        return CallError::Gone;
    }
    let ServiceError::McpError(data) = error else { return CallError::Refused(error.to_string()) };
    CallError::Refused(data.message.into_owned())
}

/// A program that dies is met either where we read or where we write.
fn is_connection_end(error: &ServiceError) -> bool {
    let unwritten = matches!(error, ServiceError::TransportSend(error) if error.error.is::<std::io::Error>());
    unwritten || matches!(error, ServiceError::TransportClosed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_begun_is_not_unsent() {
        assert!(matches!(call_error_after_round(0, CallError::Unsent), CallError::Unsent));
        assert!(matches!(call_error_after_round(1, CallError::Unsent), CallError::Gone));
        assert!(matches!(call_error_after_round(1, CallError::Cancelled), CallError::Cancelled));
    }
}
