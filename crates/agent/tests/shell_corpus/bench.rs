//! The product's own judge and shell tool around a tree.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use gander_agent::driver::{MemoryGrantStore, SessionTools, ToolExecutor as _};
use gander_agent::modes::ModeSet;
use gander_agent::turn::{PermissionEvaluator as _, ToolDecision};
use gander_domain::{IdGenerator, Policy, Provenance, SessionPolicy, ToolCall, ToolCallId, ToolContent, ToolResult};
use gander_tools::sandbox::{Bubblewrap, Sandbox, SandboxPaths};
use gander_tools::{Environment, FileAccess, Limits, LocalHost, ToolEnv, Toolbox};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::tree::Tree;

pub struct Bench {
    workbench: SessionTools,
    pub sandbox: Sandbox,
    runtime: tokio::runtime::Runtime,
}

struct Count(u128);

impl IdGenerator for Count {
    fn next_id(&mut self) -> Uuid {
        self.0 += 1;
        Uuid::from_u128(self.0)
    }
}

impl Bench {
    /// In the tree's workspace, with a search path that begins inside of it.
    pub fn new(tree: &Tree, folder: &Path, bubblewrap: Bubblewrap) -> Self {
        // As in the product: in a folder of the server's own, which commands do not see.
        let scratch = tree.at("data/scratch");
        std::fs::create_dir_all(&scratch).unwrap();
        let bounds = SandboxPaths::for_home(Some(&tree.at("home")), scratch, &[tree.at("data")]);
        let sandbox = Sandbox::new(std::env::current_exe().unwrap(), move || bounds, bubblewrap);
        let path = format!("{}:{}", folder.join("bin").display(), std::env::var("PATH").unwrap_or_default());
        let kept = [("PATH", path), ("HOME", tree.at("home").to_string_lossy().into_owned())];
        let environment = Environment::harmless_variables_of(kept.map(|(name, value)| (name.into(), value.into())));
        let surroundings = ToolEnv { environment, sandbox: sandbox.clone(), ..ToolEnv::default() };
        let limits = Limits { output: 8 << 20, ..Limits::default() };
        let workspace = Arc::new(FileAccess::default().open(folder, &[]).unwrap());
        let modes = ModeSet::built_in().agent_specs()[0].modes.clone();
        let workbench = SessionTools {
            mode: Mutex::new(modes.into_iter().find(|mode| mode.id == "assistant").unwrap()),
            servers: Arc::default(),
            host: Arc::new(LocalHost::new(workspace.clone(), 1 << 20)),
            toolbox: Arc::new(Toolbox::with_env(limits, surroundings)),
            workspace,
            rules: Vec::new().into(),
            grants: Arc::new(MemoryGrantStore::default()),
            own_tools: Arc::default(),
            tools: Vec::new(),
            policy: Mutex::new(SessionPolicy::chosen(Policy::Ask)),
            provenance: Mutex::default(),
            setting: Policy::Auto.into(),
            approved: Mutex::default(),
            has_compared: AtomicBool::default(),
            plan: Arc::default(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { workbench, sandbox, runtime }
    }

    /// The call, if it runs unasked.
    pub fn unasked(&self, line: &str) -> Option<ToolCall> {
        let arguments = json!({"command": line, "timeout_seconds": 20});
        let id = ToolCallId::new(Uuid::from_u128(1));
        let policy = SessionPolicy::chosen(Policy::Ask);
        match self.workbench.evaluate(policy, &Provenance::default(), id, "shell", &arguments, &mut Count(1)) {
            ToolDecision::Run(call) => Some(call),
            ToolDecision::Ask(..) | ToolDecision::Refuse(..) | ToolDecision::Bad(_) => None,
        }
    }

    pub fn run(&self, call: &ToolCall) -> String {
        let (signals, mut shown) = mpsc::channel(64);
        let result = self.runtime.block_on(async {
            let drain = tokio::spawn(async move { while shown.recv().await.is_some() {} });
            let result = self.workbench.run(call, signals, CancellationToken::new()).await;
            drain.await.unwrap();
            result
        });
        text(&result)
    }
}

fn text(result: &ToolResult) -> String {
    let parts = result.content.iter().map(|content| match content {
        ToolContent::Part { part } => format!("{part:?}"),
        ToolContent::Diff { .. } | ToolContent::Terminal { .. } => format!("{content:?}"),
    });
    parts.collect()
}
