//! The host: who lends files and terminals to tools, this machine or an editor in its place.

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use gander_domain::{Part, ToolContent};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::sandbox::Wrap;
use crate::{Environment, Redactor, ToolEvent};

/// Lends files and terminals. What it does not offer, the tools do on this machine.
///
/// Paths are absolute and were found to lie inside the workspace.
#[async_trait]
pub trait Host: Send + Sync {
    /// What it lends.
    fn offers(&self) -> Offers;

    /// True for this machine itself: commands run here, where they can be fenced.
    fn is_here(&self) -> bool {
        false
    }

    /// The text of a file, as its user sees it now (an editor may hold unsaved changes).
    async fn read_text(&self, path: &Path) -> Result<String, HostError>;

    /// Replaces or makes a file.
    async fn write_text(&self, path: &Path, content: &str) -> Result<(), HostError>;

    /// Runs a command to its end, or ends it when cancelled or out of time.
    async fn run_command(&self, command: &CommandLine, live: &Live) -> Result<CommandEnd, HostError>;
}

/// What a host lends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offers {
    /// Reading files.
    pub read: bool,
    /// Writing files.
    pub write: bool,
    /// Running commands.
    pub terminal: bool,
}

/// A command to run.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandLine {
    /// For a shell.
    pub line: String,
    pub cwd: PathBuf,
    /// What it finds around it.
    pub environment: Environment,
    /// How long it may take.
    pub timeout: Duration,
    /// Bytes of output that are kept.
    pub output: usize,
    /// What puts a fence around it on this machine.
    pub wrap: Option<Wrap>,
}

/// How a command is watched while it runs.
pub struct Live {
    /// Ends it.
    pub cancel: CancellationToken,
    /// Hides secrets in what is shown.
    pub redactor: Redactor,
    /// Where it is shown.
    pub signals: mpsc::Sender<ToolEvent>,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandEnd {
    /// Both streams as they came; the middle is left out if there was too much.
    pub output: String,
    /// Its exit.
    pub exit: Exit,
    /// The terminal that the client owns and shows, if it lent one.
    pub terminal: Option<String>,
}

/// What ended a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It ended by itself with this code.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
    /// It took too long.
    TimedOut,
    /// It was cancelled.
    Cancelled,
}

/// Why a host did not do it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The run was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// In words.
    #[error("{0}")]
    Failed(String),
}

impl Live {
    /// Shows this now. Dropped if nobody keeps up: the result will tell everything.
    pub fn show_content(&self, content: Vec<ToolContent>) {
        if self.signals.try_send(ToolEvent::Shown(content)).is_err() {
            tracing::trace!("live output dropped");
        }
    }

    /// Shows this text now.
    pub fn show_text(&self, text: &str) {
        self.show_content(vec![ToolContent::Part { part: Part::text(self.redactor.redact_text(text)) }]);
    }
}
