//! Tools of the server's own making: neither built in nor of an MCP server.

use async_trait::async_trait;
use gander_domain::{ToolCall, ToolCallId, ToolKind, ToolResult, ToolSpec};
use gander_tools::ToolEvent;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Tools that the server lends to one session's runs.
#[async_trait]
pub trait ToolProvider: Send + Sync {
    /// What they are.
    fn specs(&self) -> Vec<ToolSpec>;

    /// Whether a mode may leave them out. What a task needs is there in every mode.
    fn needed(&self) -> bool;

    /// Checks a call and describes it; `None` if it is of another tool.
    fn describe(&self, id: ToolCallId, name: &str, arguments: &Value) -> Option<Result<ToolCall, ToolResult>>;

    /// Runs a call that was described before; `None` if it is of another tool.
    async fn run(
        &self,
        call: &ToolCall,
        signals: &mpsc::Sender<ToolEvent>,
        cancel: &CancellationToken,
    ) -> Option<ToolResult>;
}

/// A call that is the same run twice as run once, and touches no file by itself.
pub(crate) fn plain_call(id: ToolCallId, name: &str, title: String, arguments: &Value) -> ToolCall {
    let (name, arguments, locations) = (name.to_owned(), arguments.clone(), Vec::new());
    ToolCall { id, name, title, kind: ToolKind::Other, arguments, locations, idempotent: true }
}
