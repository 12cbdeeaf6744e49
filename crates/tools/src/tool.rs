//! What a tool is: described to a model, explained to people before it runs, and run.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use gander_domain::{Location, ToolCall, ToolEnd, ToolKind, ToolResult, ToolSpec};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{CommandEnd, CommandLine, Host, HostError, Live, LocalHost, PathError, ToolEvent, Workspace};

/// What a running tool may touch.
#[derive(Clone)]
pub struct ToolContext {
    /// Where files are.
    pub workspace: Arc<Workspace>,
    /// Who lends files and terminals.
    pub host: Arc<dyn Host>,
    /// Where it tells what happens meanwhile. Bounded: live output is dropped rather than waited for.
    pub signals: mpsc::Sender<ToolEvent>,
    /// Stops it.
    pub cancel: CancellationToken,
    /// Whether it may change what other programs run.
    pub protected_changes: ProtectedChanges,
}

impl ToolContext {
    /// The text of a file, from the host if it lends files.
    pub(crate) async fn read_text(&self, path: &Path, largest: u64) -> Result<String, HostError> {
        match self.host.offers().read {
            true => self.host.read_text(path).await,
            false => self.local(largest).read_text(path).await,
        }
    }

    /// Writes a file, through the host if it lends files.
    pub(crate) async fn write_text(&self, path: &Path, content: &str) -> Result<(), HostError> {
        match self.host.offers().write {
            true => self.host.write_text(path, content).await,
            false => self.local(0).write_text(path, content).await,
        }
    }

    /// Runs a command, in the host's terminal if it lends one.
    pub(crate) async fn run_command(&self, command: &CommandLine, live: &Live) -> Result<CommandEnd, HostError> {
        match self.host.offers().terminal {
            true => self.host.run_command(command, live).await,
            false => self.local(0).run_command(command, live).await,
        }
    }

    fn local(&self, largest: u64) -> LocalHost {
        LocalHost::new(self.workspace.clone(), largest)
    }
}

/// Whether a tool may change the part of a file that makes other programs run something.
///
/// Calls are decided about before they run, and several of them before the first one does: what each alone leaves as it
/// is, they may change together. So where nobody was asked about it, the tool looks again when it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtectedChanges {
    /// Somebody was asked about the call, or need not be.
    Allowed,
    /// Nobody was.
    Refused,
}

/// One tool.
#[async_trait]
pub trait Tool: Send + Sync {
    /// Its name, purpose and arguments.
    fn spec(&self) -> ToolSpec;

    /// Checks the arguments and says what would happen.
    fn preview(&self, arguments: &Value, workspace: &Workspace) -> Result<ToolPreview, ToolError>;

    /// What the files hold against it.
    fn objection(&self, _arguments: &Value, _workspace: &Workspace) -> Option<String> {
        None
    }

    /// Does it.
    async fn run(&self, call: &ToolCall, context: &ToolContext) -> Result<ToolResult, ToolError>;
}

/// What a call would do, in the words of its tool.
pub struct ToolPreview {
    /// One line for people.
    pub title: String,
    /// What sort of thing it does.
    pub kind: ToolKind,
    /// Files it touches.
    pub locations: Vec<Location>,
    /// True if running it twice is the same as running it once.
    pub idempotent: bool,
}

/// Why a tool did not do what was asked, in words for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    /// How the call ended.
    pub end: ToolEnd,
    /// What the model is told.
    pub message: String,
}

impl ToolError {
    /// It was tried and went wrong, or cannot be.
    pub fn failed(message: impl Into<String>) -> Self {
        Self { end: ToolEnd::Failed, message: message.into() }
    }

    /// It was stopped.
    pub fn cancelled() -> Self {
        Self { end: ToolEnd::Cancelled, message: "cancelled".into() }
    }
}

impl From<ToolError> for ToolResult {
    fn from(error: ToolError) -> Self {
        Self::text(error.end, error.message)
    }
}

impl From<PathError> for ToolError {
    fn from(error: PathError) -> Self {
        Self::failed(error.to_string())
    }
}

impl From<HostError> for ToolError {
    fn from(error: HostError) -> Self {
        match error {
            HostError::Cancelled => Self::cancelled(),
            HostError::Failed(message) => Self::failed(message),
        }
    }
}
