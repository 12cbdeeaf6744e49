//! A call through a server's death: it is sent to the next one where nothing can happen twice by that.

use rmcp::model::CallToolResult;

use super::calls::{self, CallError, ToolUse};
use super::catalogue::Offered;
use super::link::Line;
use super::server::Server;

/// Calls a tool. A call that the server died of, or before, is sent again, once: if it never left us, or if the
/// server says that its tool may be called twice.
pub(super) async fn call(server: &Server, wanted: &ToolUse) -> Result<CallToolResult, CallError> {
    let line = there(wanted, server.line()).await?;
    still(server, wanted)?;
    let told = told(&line);
    let end = calls::call(&line, wanted).await;
    let harmless = || wanted.repeatable || (told.is_some() && told == self::told(&line));
    match &end {
        Err(CallError::Unsent) => {}
        Err(CallError::Gone) if harmless() => {}
        Ok(_) | Err(CallError::Gone | CallError::Cancelled | CallError::Silent(_) | CallError::Refused(_)) => {
            return end;
        }
    }
    let next = there(wanted, server.line_after(&line)).await?;
    still(server, wanted)?;
    // By now the old one is gone for good: what it was not told it will never be told.
    match &end {
        Err(CallError::Gone) if !harmless() => end,
        Ok(_) | Err(_) => calls::call(&next, wanted).await,
    }
}

/// A server that was started anew may offer something else under the same name: nobody agreed to that.
fn still(server: &Server, wanted: &ToolUse) -> Result<(), CallError> {
    let same = |offered: &Offered| offered.tool == wanted.tool && offered.definition == wanted.definition;
    match server.view().catalogue.tools.iter().any(same) {
        true => Ok(()),
        false => Err(CallError::Refused(format!(
            "the server {} was started anew and its tool {} is not what it was: it was not called there",
            server.name, wanted.tool
        ))),
    }
}

/// How much the server was told until now; none if nobody counts.
fn told(line: &Line) -> Option<u64> {
    line.tally.as_ref().map(super::tally::Tally::count)
}

async fn there(wanted: &ToolUse, line: impl Future<Output = Result<Line, String>>) -> Result<Line, CallError> {
    tokio::select! {
        biased;
        () = wanted.cancel.cancelled() => Err(CallError::Cancelled),
        line = line => line.map_err(CallError::Refused),
    }
}
