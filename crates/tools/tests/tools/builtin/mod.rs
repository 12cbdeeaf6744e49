//! The built-in tools, used as a model uses them: in a real folder, with real processes, on loopback.
#![allow(clippy::unwrap_used)]

mod calls;
mod changes;
mod confinement;
mod fetching;
mod hosts;
mod reading;
mod searching;
mod secrets;
mod shell;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gander_domain::{Part, ToolCallId, ToolContent, ToolEnd, ToolResult};
use gander_tools::{FileAccess, Limits, LocalHost, ProtectedChanges, ToolContext, ToolEnv, ToolEvent, Toolbox};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// A workspace in a folder of its own, with something secret beside it.
struct Bench {
    folder: tempfile::TempDir,
    tools: Toolbox,
    context: ToolContext,
    signals: mpsc::Receiver<ToolEvent>,
}

impl Bench {
    fn new() -> Self {
        Self::with(Limits::default(), ToolEnv::default())
    }

    fn with(limits: Limits, surroundings: ToolEnv) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("work");
        fs::create_dir(&root).unwrap();
        fs::write(folder.path().join("secret.txt"), "OUTSIDE").unwrap();
        let workspace = Arc::new(FileAccess::default().open(&root, &[]).unwrap());
        let (sender, signals) = mpsc::channel(64);
        let context = ToolContext {
            host: Arc::new(LocalHost::new(workspace.clone(), limits.file)),
            workspace,
            signals: sender,
            cancel: CancellationToken::new(),
            protected_changes: ProtectedChanges::Allowed,
        };
        Self { folder, tools: Toolbox::with_env(limits, surroundings), context, signals }
    }

    fn root(&self) -> PathBuf {
        self.context.workspace.root().to_owned()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn get(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Describes and runs, as the driver does.
    async fn call(&self, name: &str, arguments: Value) -> ToolResult {
        let id = ToolCallId::new(Uuid::from_u128(1));
        match self.tools.describe_call(id, name, &arguments, &self.context.workspace) {
            Ok(call) => self.tools.run_tool(&call, &self.context).await,
            Err(refusal) => refusal,
        }
    }

    async fn done(&self, name: &str, arguments: Value) -> String {
        let result = self.call(name, arguments).await;
        assert_eq!(result.end, ToolEnd::Completed, "{result:?}");
        text(&result)
    }

    async fn refused(&self, name: &str, arguments: Value) -> String {
        let result = self.call(name, arguments).await;
        assert_eq!(result.end, ToolEnd::Failed, "{result:?}");
        text(&result)
    }
}

/// All texts of a result.
fn text(result: &ToolResult) -> String {
    let texts = result.content.iter().filter_map(|content| match content {
        ToolContent::Part { part: Part::Text { text } } => Some(text.as_str()),
        ToolContent::Part { .. } | ToolContent::Diff { .. } | ToolContent::Terminal { .. } => None,
    });
    texts.collect()
}

fn link(target: impl AsRef<Path>, at: impl AsRef<Path>) {
    std::os::unix::fs::symlink(target, at).unwrap();
}
