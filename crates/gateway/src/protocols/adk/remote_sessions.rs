//! Sessions and tools of the goose behind a proxy, as ADK shows them.

use gander_domain::caller::Caller;
use gander_domain::{AgentManifest, Part, SessionId};
use gander_runtime::backend::BackendFailure;
use gander_services::sessions::{NewSession, SessionFilter, SessionFolder};
use gander_store::clock::SystemIds;
use gander_wire::adk::agent_info::ToolInfo;
use gander_wire::adk::{AdkRefusal, AdkSession};
use serde_json::{Map, json};

use super::sessions::adk_session_alias;
use super::{Adk, AppUser, LocatedSession, adk_error_status, adk_session_refusal};

impl Adk {
    /// Sessions of goose that nobody made here, if this user is the one who sees them.
    pub(super) async fn list_remote_sessions(&self, caller: &Caller, app_user: &AppUser) -> Vec<AdkSession> {
        let Some(agent) = self.agent_of_remote_sessions(app_user) else { return Vec::new() };
        let theirs = match self.services.agents.remote_sessions(&agent, &caller.principal).await {
            Ok(theirs) => theirs,
            Err(failure) => {
                // The sessions of this server are listed all the same.
                tracing::warn!(reason = failure.message, "goose did not list its sessions");
                return Vec::new();
            }
        };
        let listed = theirs.into_iter().map(|session| {
            let title = session.title.map(|title| ("__session_metadata__".to_owned(), json!({ "displayName": title })));
            AdkSession {
                id: session.id,
                app_name: app_user.app.clone(),
                user_id: app_user.user.clone(),
                state: title.into_iter().collect::<Map<_, _>>(),
                events: Vec::new(),
                last_update_time: 0.0,
            }
        });
        listed.collect()
    }

    /// A session of goose becomes one of this server the first time it is asked for.
    pub(super) async fn adopt_remote_session(
        &self,
        caller: &Caller,
        app_user: &AppUser,
        name: &str,
    ) -> Result<LocatedSession, AdkRefusal> {
        let agent = self.agent_of_remote_sessions(app_user).ok_or_else(AdkRefusal::no_such_session)?;
        let theirs =
            self.services.agents.remote_sessions(&agent, &caller.principal).await.map_err(remote_session_refusal)?;
        if !theirs.iter().any(|session| session.id == name) {
            return Err(AdkRefusal::no_such_session());
        }
        let settings = self.services.agents.settings_for_agent(&agent, &self.services.default_session_settings());
        let settings = settings.ok_or_else(|| AdkRefusal::no_such_app(&app_user.app))?;
        let session = SessionId::make(&mut SystemIds);
        let alias = adk_session_alias(caller, app_user, name);
        let workspace = Some(SessionFolder::OfAgent);
        let stored = NewSession { aliases: vec![alias], workspace, ..NewSession::with_id(session, settings) };
        self.services.sessions.create(caller, stored).await.map_err(adk_session_refusal)?;
        let located = LocatedSession { session, app_user: app_user.clone(), name: name.to_owned() };
        match self.take_over_history(caller, &located).await {
            Ok(()) => Ok(located),
            Err(refusal) => {
                // Nobody heard of it yet: whoever tries again must not find a session without its history.
                if let Err(error) = self.services.sessions.delete(caller, session).await {
                    tracing::warn!(%error, %session, "a session that was not taken over is left behind");
                }
                Err(refusal)
            }
        }
    }

    async fn take_over_history(&self, caller: &Caller, located: &LocatedSession) -> Result<(), AdkRefusal> {
        let view = self.load_view(caller, located.session).await?;
        let said = self.services.hub.backend().adopt_remote_session(&view, &located.name).await;
        let said = said.map_err(remote_session_refusal)?;
        let events = said.into_iter().map(|(role, text)| (role, vec![Part::text(text)])).collect();
        self.fill_new_session(caller, located, Map::new(), events).await
    }

    /// The tools of goose, which it lists for a session alone: those of the last one of this app.
    pub async fn remote_tools(&self, caller: &Caller, agent: &AgentManifest) -> Result<Vec<ToolInfo>, AdkRefusal> {
        if !self.settings.like_adk2goose {
            return Ok(Vec::new());
        }
        let filter = SessionFilter { limit: 1, ..SessionFilter::default() };
        let page = self.services.sessions.list(caller, filter).await.map_err(adk_session_refusal)?;
        let Some(last) = page.sessions.into_iter().find(|summary| summary.agent == agent.name) else {
            return Ok(Vec::new());
        };
        let view = self.load_view(caller, last.session).await?;
        let tools = self.services.hub.backend().list_remote_tools(&view).await;
        let info = |tool: gander_runtime::backend::RemoteTool| ToolInfo {
            name: tool.name,
            description: tool.description,
            parameters: tool.parameters,
        };
        Ok(tools.into_iter().map(info).collect())
    }

    fn agent_of_remote_sessions(&self, app_user: &AppUser) -> Option<String> {
        let is_theirs = self.settings.goose_sessions.as_deref() == Some(app_user.user.as_str());
        is_theirs.then(|| self.services.agents.manifest(&app_user.app).map(|agent| agent.name.clone()))?
    }
}

fn remote_session_refusal(failure: BackendFailure) -> AdkRefusal {
    AdkRefusal::new(adk_error_status(&failure.reason), failure.message)
}
