//! What one run is driven with.

use std::sync::{Arc, Mutex};

use gander_domain::view::UsageTotals;
use gander_domain::{Context, IdGenerator, Plan, Settings, ToolSpec};
use gander_mcp::Servers;
use gander_models::Model;
use gander_tools::permission::Rule;
use gander_tools::{Host, Toolbox, Workspace};
use serde_json::Value;

use super::guests::Guest;
use super::hands::{GrantBook, Hands, Workbench};
use crate::AgentSettings;
use crate::delegate::MaybeOffice;
use crate::modes::{ModeSpec, Section};
use crate::notes::{Notes, skills};
use crate::prompt::{Scene, prompt};
use crate::turn::{Goal, Setup};

/// What one run is driven with.
pub struct Equipment {
    /// Limits and pauses.
    pub settings: AgentSettings,
    /// Who answers.
    pub model: Arc<dyn Model>,
    /// Who judges and runs calls.
    pub hands: Arc<dyn Hands>,
    /// The session's servers, which have something to say by themselves.
    pub servers: Arc<Servers>,
    /// The system prompt.
    pub system: String,
    /// What must hold before a run may end.
    pub goal: Option<Goal>,
    /// The sub-tasks that a fresh run hands out first.
    pub parts: Option<Value>,
    /// What the session used up before.
    pub spent: UsageTotals,
    /// Where ids come from.
    pub ids: Box<dyn IdGenerator + Send>,
    /// Changes prompt and tools when the session's mode changes under way; absent: they stay.
    pub refit: Option<Refit>,
}

/// Fits prompt and tools to changed settings.
pub type Refit = Box<dyn Fn(&Settings) -> Fit + Send>;

/// What a mode gives a run.
pub struct Fit {
    /// The system prompt.
    pub system: String,
    /// The tools on offer.
    pub tools: Arc<[ToolSpec]>,
}

/// What the server knows about a session's surroundings.
pub struct Surroundings {
    /// The agents and their modes, as they are in the session's folder.
    pub shelf: Section,
    /// What the session used up before.
    pub spent: UsageTotals,
    /// The plan so far.
    pub plan: Plan,
    /// Who starts sub-agents, if anybody does.
    pub office: MaybeOffice,
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
    pub grants: Arc<dyn GrantBook>,
    /// The day, such as `2026-01-31`.
    pub today: String,
    /// What people wrote for agents.
    pub notes: Notes,
    /// What it works towards.
    pub task: Task,
}

/// What a run works towards, if somebody prepared it.
#[derive(Clone, Default)]
pub struct Task {
    /// What it is told for the whole session; may be empty.
    pub instructions: String,
    /// What must hold before it may end.
    pub goal: Option<Goal>,
    /// The server's own tools.
    pub guests: Vec<Arc<dyn Guest>>,
    /// The sub-tasks that a fresh run hands out before the model is asked: arguments of `delegate`.
    pub parts: Option<Value>,
}

impl Equipment {
    /// The native agent in these surroundings.
    pub fn new(
        settings: AgentSettings,
        model: Arc<dyn Model>,
        surroundings: Surroundings,
        context: &Context,
        ids: Box<dyn IdGenerator + Send>,
    ) -> Self {
        let Surroundings { shelf, spent, plan, office, toolbox, servers, .. } = surroundings;
        let Surroundings { workspace, host, rules, grants, today, notes, task, .. } = surroundings;
        let mode = Mutex::new(mode_of(&shelf, &context.settings));
        let (plan, bench_servers) = (Mutex::new(plan), Arc::clone(&servers));
        let Task { instructions, guests, goal, parts } = task;
        let hands = Arc::new(Workbench {
            toolbox,
            servers: bench_servers,
            mode,
            workspace,
            host,
            rules,
            grants,
            office,
            plan,
            guests,
            policy: Mutex::new(context.settings.policy),
            approved: Mutex::default(),
        });
        let (folder, folders) = (context.workspace.clone(), context.folders.clone());
        let bench = Arc::clone(&hands);
        let refit: Refit = Box::new(move |settings| {
            bench.set_mode(mode_of(&shelf, settings));
            let tools = bench.tools();
            let system = prompt(&Scene {
                workspace: &folder,
                folders: &folders,
                today: &today,
                system: &format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
                mode: &bench.mode(),
                policy: settings.policy,
                tools: &tools,
                servers: &bench.servers.instructions(),
                hints: &notes.hints,
                skills: &skills::listing(&notes.skills),
                task: &instructions,
            });
            Fit { system, tools }
        });
        let system = refit(&context.settings).system;
        Self { settings, model, hands, servers, system, goal, parts, spent, ids, refit: Some(refit) }
    }

    pub(super) fn setup(&self) -> Setup {
        Setup {
            settings: self.settings.clone(),
            model: self.model.info().clone(),
            system: self.system.clone(),
            tools: self.hands.tools(),
            judge: self.hands.clone(),
            goal: self.goal.clone(),
            parts: self.parts.clone(),
            spent: self.spent,
        }
    }
}

fn mode_of(shelf: &Section, settings: &Settings) -> Arc<ModeSpec> {
    shelf.library().mode(settings)
}
