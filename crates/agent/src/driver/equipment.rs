//! What one run is driven with.

use std::sync::Arc;

use gander_domain::{Context, Ids};

use super::guests::Guest;
use super::hands::{GrantBook, Hands, Offers, Workbench};
use crate::AgentSettings;
use crate::mcp::Servers;
use crate::model::Model;
use crate::modes;
use crate::notes::{Notes, skills};
use crate::permission::Rule;
use crate::prompt::{Scene, prompt};
use crate::tools::{Host, Toolbox, Workspace};
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
    /// Where ids come from.
    pub ids: Box<dyn Ids + Send>,
}

/// What the server knows about a session's surroundings.
pub struct Surroundings {
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
}

impl Equipment {
    /// The native agent in these surroundings, in the mode that the context is set to.
    pub fn new(
        settings: AgentSettings,
        model: Arc<dyn Model>,
        surroundings: Surroundings,
        context: &Context,
        ids: Box<dyn Ids + Send>,
    ) -> Self {
        let Surroundings { toolbox, servers, workspace, host, rules, grants, today, notes, task } = surroundings;
        let mode = modes::mode(&context.settings.mode);
        let offers: Offers = Box::new(move |tools| mode.offers(tools));
        let hands = Workbench {
            toolbox,
            servers: Arc::clone(&servers),
            offers,
            workspace,
            host,
            rules,
            grants,
            guests: task.guests,
        };
        let system = prompt(&Scene {
            workspace: &context.workspace,
            folders: &context.folders,
            today: &today,
            system: &format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            mode,
            policy: context.settings.policy,
            tools: &hands.tools(),
            servers: &servers.instructions(),
            hints: &notes.hints,
            skills: &skills::listing(&notes.skills),
            task: &task.instructions,
        });
        Self { settings, model, hands: Arc::new(hands), servers, system, goal: task.goal, ids }
    }

    pub(super) fn setup(&self) -> Setup {
        Setup {
            settings: self.settings.clone(),
            model: self.model.info().clone(),
            system: self.system.clone(),
            tools: self.hands.tools(),
            judge: self.hands.clone(),
            goal: self.goal.clone(),
        }
    }
}
