//! What a tool is: described to a model, explained to people before it runs, and run.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use gander_domain::{Location, ToolCall, ToolCallId, ToolContent, ToolEnd, ToolKind, ToolResult, ToolSpec};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    CommandEnd, CommandLine, Group, Host, HostError, Live, LocalHost, PathError, ToolEffect, ToolEvent, Workspace,
};

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
            false => self.local_host(largest).read_text(path).await,
        }
    }

    /// Writes a file, through the host if it lends files.
    pub(crate) async fn write_text(&self, path: &Path, content: &str) -> Result<(), HostError> {
        match self.host.offers().write {
            true => self.host.write_text(path, content).await,
            false => self.local_host(0).write_text(path, content).await,
        }
    }

    /// Runs a command, in the host's terminal if it lends one.
    pub(crate) async fn run_command(&self, command: &CommandLine, live: &Live) -> Result<CommandEnd, HostError> {
        match self.host.offers().terminal {
            true => self.host.run_command(command, live).await,
            false => self.local_host(0).run_command(command, live).await,
        }
    }

    fn local_host(&self, largest: u64) -> LocalHost {
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

/// One tool, wherever it comes from: built in, lent by a service, or needed by a run's task. What tells it from others is
/// asked of the tool itself, never of its name.
#[async_trait]
pub trait Tool: Send + Sync {
    /// Its name, which is that of its spec.
    fn name(&self) -> &str;

    /// Its name, purpose and arguments as a model sees them.
    fn spec(&self) -> ToolSpec;

    /// What a mode's file names it by.
    fn group(&self) -> Group;

    /// What its calls do: the permission rules judge by that.
    fn effect(&self) -> ToolEffect;

    /// True if later sessions are told what its calls are given.
    fn outlives_session(&self) -> bool {
        false
    }

    /// True if the run's task cannot do without it: then every mode offers it.
    fn is_required(&self) -> bool {
        false
    }

    /// Checks the arguments and says what would happen.
    fn preview(&self, arguments: &Value, workspace: &Workspace) -> Result<ToolPreview, ToolError>;

    /// What a call would do, for the person who is asked about it.
    fn proposal(&self, _arguments: &Value, _workspace: &Workspace) -> Vec<ToolContent> {
        Vec::new()
    }

    /// What the files hold against a call that nobody would be asked about otherwise.
    fn find_objection(&self, _arguments: &Value, _workspace: &Workspace) -> Option<String> {
        None
    }

    /// Carries out a call that was previewed and may run now.
    async fn run(&self, call: &ToolCall, context: &ToolContext) -> Result<ToolResult, ToolError>;
}

/// A tool as lists show it.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedTool {
    /// The tool as a model sees it.
    pub spec: ToolSpec,
    /// What a mode's file names it by.
    pub group: Group,
}

impl dyn Tool + '_ {
    /// The tool as lists show it.
    pub fn list_entry(&self) -> ListedTool {
        ListedTool { spec: self.spec(), group: self.group() }
    }

    /// A call of this tool as people and policies see it, or why there can be none.
    pub fn describe_call(
        &self,
        id: ToolCallId,
        arguments: &Value,
        workspace: &Workspace,
    ) -> Result<ToolCall, ToolError> {
        let ToolPreview { title, kind, locations, idempotent } = self.preview(arguments, workspace)?;
        let (name, arguments) = (self.name().to_owned(), arguments.clone());
        Ok(ToolCall { id, name, title, kind, arguments, locations, idempotent })
    }
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
