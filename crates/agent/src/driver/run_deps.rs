//! What one run is driven with.

use std::sync::{Arc, Mutex};

use gander_domain::view::UsageTotals;
use gander_domain::{Context, IdGenerator, Plan, Settings, ToolSpec};
use gander_mcp::Servers;
use gander_models::Model;
use gander_tools::permission::Rule;
use gander_tools::{Host, Toolbox, Workspace};
use serde_json::Value;

use super::session_tools::{GrantStore, SessionTools, ToolExecutor};
use crate::context_files::{ContextFiles, skills};
use crate::delegate::OptionalSubagents;
use crate::modes::{ModeSpec, ScopedCatalog};
use crate::prompt::{PromptContext, system_prompt};
use crate::turn::{Goal, Setup};
use crate::{AgentSettings, RunTask};

/// What one run is driven with.
pub struct RunDeps {
    /// Limits and pauses.
    pub settings: AgentSettings,
    /// Who answers.
    pub model: Arc<dyn Model>,
    /// Who judges and runs calls.
    pub executor: Arc<dyn ToolExecutor>,
    /// The session's servers, which have something to say by themselves.
    pub servers: Arc<Servers>,
    /// The system prompt.
    pub system: String,
    /// What must hold before a run may end.
    pub goal: Option<Goal>,
    /// The sub-tasks that a fresh run executor out first.
    pub parts: Option<Value>,
    /// What the session used up before.
    pub spent: UsageTotals,
    /// Where ids come from.
    pub ids: Box<dyn IdGenerator + Send>,
    /// Changes prompt and tools when the session's mode changes under way; absent: they stay.
    pub refit: Option<Refit>,
}

/// Fits prompt and tools to changed settings.
pub type Refit = Box<dyn Fn(&Settings) -> ModeSetup + Send>;

/// What a mode gives a run.
pub struct ModeSetup {
    /// The system prompt.
    pub system: String,
    /// The tools on offer.
    pub tools: Arc<[ToolSpec]>,
}

/// What the server knows about a session's surroundings.
pub struct RunEnv {
    /// The agents and their modes, as they are in the session's folder.
    pub catalog: ScopedCatalog,
    /// What the session used up before.
    pub spent: UsageTotals,
    /// The plan so far.
    pub plan: Plan,
    /// Who starts sub-agents, if anybody does.
    pub office: OptionalSubagents,
    /// The tools there are.
    pub toolbox: Arc<Toolbox>,
    /// The session's servers.
    pub servers: Arc<Servers>,
    /// Where files are.
    pub workspace: Arc<Workspace>,
    /// Who lends files and terminals.
    pub host: Arc<dyn Host>,
    /// What the owner decided beforehand.
    pub rules: Arc<[Rule]>,
    /// What people decided for good.
    pub grants: Arc<dyn GrantStore>,
    /// The day, such as `2026-01-31`.
    pub today: String,
    /// What people wrote for agents.
    pub context_files: ContextFiles,
    /// What it works towards.
    pub task: RunTask,
}

impl RunDeps {
    /// The native agent in these surroundings.
    pub fn new(
        settings: AgentSettings,
        model: Arc<dyn Model>,
        surroundings: RunEnv,
        context: &Context,
        ids: Box<dyn IdGenerator + Send>,
    ) -> Self {
        let RunEnv { catalog, spent, plan, office, toolbox, servers, .. } = surroundings;
        let RunEnv { workspace, host, rules, grants, today, context_files, task, .. } = surroundings;
        let mode = Mutex::new(current_mode(&catalog, &context.settings));
        let (plan, bench_servers) = (Mutex::new(plan), Arc::clone(&servers));
        let RunTask { instructions, providers, goal, parts } = task;
        let executor = Arc::new(SessionTools {
            toolbox,
            servers: bench_servers,
            mode,
            workspace,
            host,
            rules,
            grants,
            office,
            plan,
            providers,
            policy: Mutex::new(context.settings.policy),
            approved: Mutex::default(),
        });
        let (folder, folders) = (context.workspace.clone(), context.folders.clone());
        let tools_of_session = Arc::clone(&executor);
        let refit: Refit = Box::new(move |settings| {
            tools_of_session.set_mode(current_mode(&catalog, settings));
            let tools = tools_of_session.tools();
            let system = system_prompt(&PromptContext {
                workspace: &folder,
                folders: &folders,
                today: &today,
                system: &format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
                mode: &tools_of_session.mode(),
                policy: settings.policy,
                tools: &tools,
                servers: &tools_of_session.servers.instructions(),
                hints: &context_files.hints,
                skills: &skills::list_skills(&context_files.skills),
                task: &instructions,
            });
            ModeSetup { system, tools }
        });
        let system = refit(&context.settings).system;
        Self { settings, model, executor, servers, system, goal, parts, spent, ids, refit: Some(refit) }
    }

    pub(super) fn setup(&self) -> Setup {
        Setup {
            settings: self.settings.clone(),
            model: self.model.info().clone(),
            system: self.system.clone(),
            tools: self.executor.tools(),
            judge: self.executor.clone(),
            goal: self.goal.clone(),
            parts: self.parts.clone(),
            spent: self.spent,
        }
    }
}

fn current_mode(catalog: &ScopedCatalog, settings: &Settings) -> Arc<ModeSpec> {
    catalog.modes().mode(settings)
}
