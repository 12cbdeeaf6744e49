//! Google's Agent Development Kit over REST: sessions of apps and users, runs, values, artifacts.
//!
//! An app is an agent or one of its modes. A user is a namespace inside whoever the token names. A session that another protocol made is
//! seen under its agent and the user that the settings name.

mod artifacts;
mod error;
mod evaluations;
mod remote_sessions;
pub(crate) mod routes;
mod runs;
mod sessions;
mod settings;
mod state;
mod stream;
mod traces;

use std::fmt;
use std::sync::Arc;

use gander_domain::roster::AgentMode;
use gander_domain::{AgentManifest, Command, RunOrigin, SettingsPatch};
use gander_wire::adk::{AdkRefusal, PROTOCOL_NAME};

pub use artifacts::VersionChoice;
use error::{adk_error_status, adk_hub_refusal, adk_session_refusal, adk_state_refusal, adk_store_refusal};
use evaluations::evaluation_refusal;
pub use runs::{AdkRunSubscription, BeginOutcome};
pub use sessions::{ListRange, LocatedSession};
pub use settings::{AdkSection, OnLeave};
pub use state::{AdkProtocol, AdkState};

use gander_domain::caller::Caller;
use gander_services::Services;
use gander_services::state::StateScopeKey;

/// The server side of this protocol.
pub struct Adk {
    services: Arc<Services>,
    settings: AdkSection,
}

/// Whose sessions: an agent's, of one user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppUser {
    /// The agent.
    pub app: String,
    /// The user.
    pub user: String,
}

impl Adk {
    /// This protocol in front of these sessions.
    pub fn new(services: Arc<Services>, settings: AdkSection) -> Self {
        Self { services, settings }
    }

    /// The settings of this protocol.
    pub fn settings(&self) -> &AdkSection {
        &self.settings
    }

    /// The agents and their modes, by name.
    pub fn list_apps(&self) -> Vec<Arc<AgentManifest>> {
        let mut apps = self.services.agents.roster().all_manifests();
        apps.sort_by(|one, other| one.name.cmp(&other.name));
        apps
    }

    /// The agent or mode of this name, in either spelling.
    pub fn find_app(&self, name: &str) -> Result<Arc<AgentManifest>, AdkRefusal> {
        if name.starts_with("__") {
            return Err(AdkRefusal::new(403, "there are no internal agents here"));
        }
        self.services.agents.manifest(name).ok_or_else(|| AdkRefusal::no_such_app(name))
    }

    /// The ways in which an agent works that have names of their own.
    pub fn named_modes(&self, agent: &AgentManifest) -> Vec<Arc<AgentManifest>> {
        let roster = self.services.agents.roster();
        let own = |way: &&AgentMode| way.agent.name == agent.name && way.name != agent.name;
        roster.agent_modes().iter().filter(own).map(|way| Arc::new(way.agent_manifest())).collect()
    }

    /// The app by the one name that its agent or mode has here.
    fn canonical_app_user(&self, app_user: AppUser) -> AppUser {
        match self.services.agents.roster().find_manifest(&app_user.app) {
            Some(known) => AppUser { app: known.name.clone(), ..app_user },
            None => app_user, // an agent that answers to every name
        }
    }

    /// True if sessions of this agent can be asked for under this name: its own, or that of its family.
    fn serves_agent(&self, app: &str, agent: &str) -> bool {
        let roster = self.services.agents.roster();
        match (roster.find_manifest(app), roster.find_agent(agent)) {
            (Some(app), Some(agent)) => app.name == agent.name || (app.family.is_some() && app.family == agent.family),
            (Some(_), None) => false,
            (None, _) => app == agent,
        }
    }

    /// Tools of an agent that give their last result later.
    fn long_running_tools(&self, agent: &str) -> Vec<String> {
        self.services.agents.manifest(agent).map(|agent| agent.long_running.clone()).unwrap_or_default()
    }

    /// The session works as the app that is asked for: a mode's name sets its mode, its own agent's name leaves it.
    async fn switch_session_to_app(&self, caller: &Caller, located: &LocatedSession) -> Result<(), AdkRefusal> {
        let view = self.load_view(caller, located.session).await?;
        let patch =
            self.services.agents.roster().patch_for_name(&located.app_user.app, &view.settings).unwrap_or_default();
        if patch == SettingsPatch::default() {
            return Ok(());
        }
        match view.run.as_ref().filter(|run| !run.is_awaiting()) {
            Some(run) => {
                Err(AdkRefusal::new(409, format!("the session is busy as another app, invocation: e-{}", run.id)))
            }
            None => self.send_command(caller, located.session, Command::Configure { patch }).await,
        }
    }

    /// What this caller shares under this agent and user.
    fn state_scope(caller: &Caller, app_user: &AppUser) -> StateScopeKey {
        StateScopeKey { principal: caller.principal.clone(), app: app_user.app.clone(), user: app_user.user.clone() }
    }
}

impl fmt::Debug for Adk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Adk").finish_non_exhaustive()
    }
}

fn adk_run_origin(caller: &Caller) -> RunOrigin {
    RunOrigin { by: caller.principal.clone(), door: PROTOCOL_NAME.to_owned() }
}
