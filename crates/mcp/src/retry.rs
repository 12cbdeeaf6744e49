//! A call through a server's death: it is sent to the next one where nothing can happen twice by that.

use rmcp::model::CallToolResult;

use super::call_tool;
use super::calls::{CallError, ToolUse};
use super::catalogue::OfferedTool;
use super::connection::McpConnectionHandle;
use super::server::McpServer;

/// Calls a tool. A call that the server died of, or before, is sent again, once: if it never left us, or if the
/// server says that its tool may be called twice.
pub(super) async fn call_with_retry(server: &McpServer, wanted: &ToolUse) -> Result<CallToolResult, CallError> {
    let line = wait_for_connection_to_retry(wanted, server.wait_for_connection()).await?;
    check_same_tool_on_retry(server, wanted)?;
    let writes = writes_before_retry(&line);
    let end = call_tool::call_tool(&line, wanted).await;
    let harmless = || wanted.repeatable || (writes.is_some() && writes == writes_before_retry(&line));
    match &end {
        Err(CallError::Unsent) => {}
        Err(CallError::Gone) if harmless() => {}
        Ok(_) | Err(CallError::Gone | CallError::Cancelled | CallError::Silent(_) | CallError::Refused(_)) => {
            return end;
        }
    }
    let next = wait_for_connection_to_retry(wanted, server.connection_after(&line)).await?;
    check_same_tool_on_retry(server, wanted)?;
    // By now the old one is gone for good: what it was not told it will never be told.
    match &end {
        Err(CallError::Gone) if !harmless() => end,
        Ok(_) | Err(_) => call_tool::call_tool(&next, wanted).await,
    }
}

/// A server that was started anew may offer something else under the same name: nobody agreed to that.
fn check_same_tool_on_retry(server: &McpServer, wanted: &ToolUse) -> Result<(), CallError> {
    let same = |offered: &OfferedTool| offered.tool == wanted.tool && offered.definition == wanted.definition;
    match server.current_view().catalogue.tools.iter().any(same) {
        true => Ok(()),
        false => Err(CallError::Refused(format!(
            "the server {} was started anew and its tool {} is not what it was: it was not called there",
            server.name, wanted.tool
        ))),
    }
}

/// How much the server was told until now; none if nobody counts.
fn writes_before_retry(line: &McpConnectionHandle) -> Option<u64> {
    line.counter.as_ref().map(super::write_counter::WriteCounter::count)
}

async fn wait_for_connection_to_retry(
    wanted: &ToolUse,
    line: impl Future<Output = Result<McpConnectionHandle, String>>,
) -> Result<McpConnectionHandle, CallError> {
    tokio::select! {
        biased;
        () = wanted.cancel.cancelled() => Err(CallError::Cancelled),
        line = line => line.map_err(CallError::Refused),
    }
}
