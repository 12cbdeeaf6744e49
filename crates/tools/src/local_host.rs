//! This machine as the host of files and commands.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;

use crate::host::{CommandEnd, CommandLine, Host, HostError, Live, Offers};
use crate::{PathError, Workspace, process};

/// This machine: files through the workspace's handles, commands in their own session.
pub struct LocalHost {
    workspace: Arc<Workspace>,
    largest: u64,
}

impl LocalHost {
    /// Takes in files up to this size.
    pub fn new(workspace: Arc<Workspace>, largest: u64) -> Self {
        Self { workspace, largest }
    }
}

#[async_trait]
impl Host for LocalHost {
    fn offers(&self) -> Offers {
        Offers { read: true, write: true, terminal: true }
    }

    fn is_here(&self) -> bool {
        true
    }

    async fn read_text(&self, path: &Path) -> Result<String, HostError> {
        let (workspace, path, largest) = (self.workspace.clone(), path.to_owned(), self.largest);
        run_blocking_on_host(move || workspace.read_text(&workspace.locate_path(&path)?, largest)).await
    }

    async fn write_text(&self, path: &Path, content: &str) -> Result<(), HostError> {
        let (workspace, path, content) = (self.workspace.clone(), path.to_owned(), content.to_owned());
        run_blocking_on_host(move || workspace.write_file(&workspace.locate_path(&path)?, content.as_bytes())).await
    }

    async fn run_command(&self, command: &CommandLine, live: &Live) -> Result<CommandEnd, HostError> {
        process::command::run_command(command, live).await
    }
}

/// Runs file work where it may block.
async fn run_blocking_on_host<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, PathError> + Send + 'static,
) -> Result<T, HostError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(|error| HostError::Failed(error.to_string())),
        Err(error) => Err(HostError::Failed(format!("file work broke off: {error}"))),
    }
}
