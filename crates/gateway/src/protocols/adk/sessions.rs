//! Sessions: made, found, listed, changed, deleted.

use gander_domain::caller::Caller;
use gander_domain::state::filter_state_by_scope;
use gander_domain::{
    Command, Entry, LoadSession, Message, MessageId, ResetReason, Seq, SessionId, SessionView, State, StateScope,
};
use gander_runtime::hub::Ack;
use gander_services::sessions::{self, SessionError, SessionFilter, SessionFolder};
use gander_store::clock::SystemIds;
use gander_store::{Alias, DeltaForm, SessionPage, SessionSummary, read_all};
use gander_wire::adk::projection::HistoryProjection;
use gander_wire::adk::types::adk_epoch_seconds;
use gander_wire::adk::{AdkRefusal, AdkSession, MAX_ID, NewAdkSession, PROTOCOL_NAME, projection};
use serde_json::{Value, json};

use super::evaluations::EVAL_SESSION_PREFIX;
use super::{
    Adk, AppUser, adk_error_status, adk_hub_refusal, adk_session_refusal, adk_state_refusal, adk_store_refusal,
};
use crate::log_list::{ListProjection, LogList};

/// Sessions of other protocols that are read in one go.
const FOREIGN_PAGE_SIZE: u32 = 500;

/// Names read in one go.
const ALIAS_PAGE_SIZE: u32 = 500;

/// A session that was found.
#[derive(Clone, Debug)]
pub struct LocatedSession {
    /// Its id.
    pub session: SessionId,
    /// Where it was found.
    pub app_user: AppUser,
    /// How the client calls it.
    pub name: String,
}

/// Which part of a list is wanted; everything if nothing is said.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListRange {
    /// Skip so many.
    pub offset: usize,
    /// At most so many.
    pub limit: Option<usize>,
    /// Newest first?
    pub newest_first: bool,
}

/// The value among a session's first ones that names the folder it works in.
const WORKSPACE_STATE: &str = "gander_workspace";

impl Adk {
    /// Makes a session, with its values and whatever was said elsewhere.
    pub async fn create_session(
        &self,
        caller: &Caller,
        app_user: AppUser,
        new: NewAdkSession,
    ) -> Result<AdkSession, AdkRefusal> {
        let app_user = self.canonical_app_user(app_user);
        self.check_user(caller, &app_user)?;
        let settings =
            self.services.agents.settings_for_agent(&app_user.app, &self.services.default_session_settings());
        let settings = settings.ok_or_else(|| AdkRefusal::no_such_app(&app_user.app))?;
        let session = self.services.sessions.new_id().await.map_err(adk_session_refusal)?;
        let name = new.id.unwrap_or_else(|| session.to_string());
        let alias = adk_session_alias(caller, &app_user, &name);
        if self.services.sessions.find_by_alias(&alias).await.map_err(adk_session_refusal)?.is_some() {
            return Err(session_already_exists(&name));
        }
        let workspace = self.named_workspace(caller, &new.state).await?;
        let stored = sessions::NewSession {
            aliases: vec![alias],
            workspace: Some(workspace),
            ..sessions::NewSession::with_id(session, settings)
        };
        match self.services.sessions.create(caller, stored).await {
            Ok(_) => {}
            Err(SessionError::AliasTaken(_)) => return Err(session_already_exists(&name)),
            Err(error) => return Err(adk_session_refusal(error)),
        }
        let located = LocatedSession { session, app_user, name };
        let filled = self.fill_new_session(caller, &located, new.state, new.events).await;
        if let Err(refusal) = match filled {
            Ok(()) => self.prepare_remote_session(caller, session).await,
            Err(refusal) => Err(refusal),
        } {
            // Nobody heard of it yet: whoever tries again must not find its name taken.
            if let Err(error) = self.services.sessions.delete(caller, session).await {
                tracing::warn!(%error, %session, "a session that was not filled is left behind");
            }
            return Err(refusal);
        }
        self.describe_session(caller, &located).await
    }

    /// As adk2goose did: a session that does not begin at goose is none.
    async fn prepare_remote_session(&self, caller: &Caller, session: SessionId) -> Result<(), AdkRefusal> {
        if !self.settings.like_adk2goose {
            return Ok(());
        }
        let view = self.load_view(caller, session).await?;
        let prepared = self.services.hub.backend().prepare_session(&view).await;
        prepared.map_err(|failure| AdkRefusal::new(adk_error_status(&failure.reason), failure.message))
    }

    /// The folder that the first values name, if this caller may choose it; else the one of the agent.
    async fn named_workspace(&self, caller: &Caller, state: &State) -> Result<SessionFolder, AdkRefusal> {
        let Some(folder) = state.get(WORKSPACE_STATE) else { return Ok(SessionFolder::OfAgent) };
        let unusable = |why: String| AdkRefusal::new(400, format!("{WORKSPACE_STATE} cannot be used: {why}"));
        let folder = folder.as_str().ok_or_else(|| unusable("it is not a string".to_owned()))?;
        let chosen = self.services.sessions.choose_folder(caller, folder).await;
        chosen.map(SessionFolder::Chosen).map_err(|error| unusable(error.to_string()))
    }

    /// A session, and everything that happened in it, made while it is taken.
    pub async fn load_session(
        &self,
        caller: &Caller,
        app_user: AppUser,
        name: &str,
    ) -> Result<(AdkSession, LogList<HistoryProjection>), AdkRefusal> {
        let located = self.find_session(caller, app_user, name).await?;
        let view = self.load_view(caller, located.session).await?;
        let shared = self
            .services
            .shared_state
            .get(&Self::state_scope(caller, &located.app_user))
            .await
            .map_err(adk_state_refusal)?;
        let history = HistoryProjection::new(&self.long_running_tools(&view.settings.agent));
        let (store, session) = (self.services.hub.store(), located.session);
        let events = match self.services.load_session(&view.settings.agent) {
            LoadSession::Supported => LogList::open(store, session, history).await.map_err(adk_store_refusal)?,
            LoadSession::Unsupported => LogList::withheld(store, session, history),
        };
        Ok((adk_session_object(&located, &view, &shared, Vec::new()), events))
    }

    /// The sessions of a user, without what happened in them.
    pub async fn list_sessions(
        &self,
        caller: &Caller,
        app_user: &AppUser,
        range: ListRange,
    ) -> Result<Vec<AdkSession>, AdkRefusal> {
        let app_user = &self.canonical_app_user(app_user.clone());
        if self.check_user(caller, app_user).is_err() {
            return Ok(Vec::new());
        }
        let mut found = self.list_named_sessions(caller, app_user).await?;
        if app_user.user == self.settings.user {
            found.extend(self.list_foreign_sessions(caller, app_user).await?);
        }
        found.retain(|located| !located.name.starts_with(EVAL_SESSION_PREFIX));
        found.sort_by_key(|located| located.session);
        let own = found.len();
        if range.newest_first {
            found.reverse();
        }
        let shared =
            self.services.shared_state.get(&Self::state_scope(caller, app_user)).await.map_err(adk_state_refusal)?;
        let mut sessions = Vec::new();
        for located in found.into_iter().skip(range.offset).take(range.limit.unwrap_or(usize::MAX)) {
            match self.load_view(caller, located.session).await {
                Ok(view) => sessions.push(adk_session_object(&located, &view, &shared, Vec::new())),
                Err(error) if error.status == 404 => {} // deleted meanwhile
                Err(error) => return Err(error),
            }
        }
        if range.limit.is_none_or(|limit| sessions.len() < limit) {
            let left = range.limit.map_or(usize::MAX, |limit| limit - sessions.len());
            let before = range.offset.saturating_sub(own);
            sessions.extend(self.list_remote_sessions(caller, app_user).await.into_iter().skip(before).take(left));
        }
        Ok(sessions)
    }

    /// Changes values of a session.
    pub async fn patch_state(
        &self,
        caller: &Caller,
        app_user: AppUser,
        name: &str,
        delta: State,
    ) -> Result<AdkSession, AdkRefusal> {
        let located = self.find_session(caller, app_user, name).await?;
        self.update_title(caller, &located, &delta).await?;
        self.set_state(caller, &located, delta, None).await?;
        self.describe_session(caller, &located).await
    }

    /// Removes a session; it need not be there.
    pub async fn delete_session(&self, caller: &Caller, app_user: AppUser, name: &str) -> Result<(), AdkRefusal> {
        let located = match self.find_session(caller, app_user, name).await {
            Ok(located) => located,
            Err(error) if error.status == 404 => return Ok(()),
            Err(error) => return Err(error),
        };
        self.services.sessions.delete(caller, located.session).await.map_err(adk_session_refusal)
    }

    /// The session of this name, if this caller may see it.
    pub async fn find_session(
        &self,
        caller: &Caller,
        app_user: AppUser,
        name: &str,
    ) -> Result<LocatedSession, AdkRefusal> {
        let app_user = self.canonical_app_user(app_user);
        self.check_user(caller, &app_user)?;
        let alias = adk_session_alias(caller, &app_user, name);
        let known = self.services.sessions.find_by_alias(&alias).await.map_err(adk_session_refusal)?;
        if let Some(session) = known {
            return Ok(LocatedSession { session, app_user, name: name.to_owned() });
        }
        if self.settings.goose_sessions.is_some() {
            return self.adopt_remote_session(caller, &app_user, name).await;
        }
        let session: SessionId = name.parse().map_err(|_| AdkRefusal::no_such_session())?;
        let summary = self.services.sessions.find(caller, session).await.map_err(adk_session_refusal)?;
        let is_own_user = app_user.user == self.settings.user;
        if is_own_user && self.serves_agent(&app_user.app, &summary.agent) && self.is_foreign(caller, session).await? {
            return Ok(LocatedSession { session, app_user, name: name.to_owned() });
        }
        Err(AdkRefusal::no_such_session())
    }

    /// A token that is bound to one user sees no other.
    pub(super) fn check_user(&self, caller: &Caller, app_user: &AppUser) -> Result<(), AdkRefusal> {
        let bound = caller.adk_user.as_ref().is_none_or(|user| *user == app_user.user);
        let sane =
            |text: &str| !text.is_empty() && text.len() <= MAX_ID && !text.chars().any(|letter| letter.is_control());
        if bound && sane(&app_user.user) && sane(&app_user.app) { Ok(()) } else { Err(AdkRefusal::no_such_session()) }
    }

    /// Sets values: those of the session in its log, the others where they are shared.
    pub(super) async fn set_state(
        &self,
        caller: &Caller,
        located: &LocatedSession,
        delta: State,
        meta: Option<Value>,
    ) -> Result<(), AdkRefusal> {
        self.services
            .shared_state
            .set(&Self::state_scope(caller, &located.app_user), &delta)
            .await
            .map_err(adk_state_refusal)?;
        let command = Command::SetState { delta, meta: meta.map(Box::new) };
        self.send_command(caller, located.session, command).await
    }

    pub(super) async fn load_view(&self, caller: &Caller, session: SessionId) -> Result<SessionView, AdkRefusal> {
        self.services.sessions.stored_view(caller, session).await.map_err(adk_session_refusal)
    }

    pub(super) async fn send_command(
        &self,
        caller: &Caller,
        session: SessionId,
        command: Command,
    ) -> Result<(), AdkRefusal> {
        let done = self.services.hub.execute_command(caller, session, command, Ack::Synced).await;
        done.map(drop).map_err(|error| adk_hub_refusal(&error))
    }

    pub(super) async fn fill_new_session(
        &self,
        caller: &Caller,
        located: &LocatedSession,
        state: State,
        events: Vec<(gander_domain::Role, Vec<gander_domain::Part>)>,
    ) -> Result<(), AdkRefusal> {
        if !events.is_empty() {
            let message = |(role, parts)| {
                let id = MessageId::make(&mut SystemIds);
                Message { id, role, parts, interrupted: false, native: None }
            };
            let replacement = events.into_iter().map(message).collect();
            let reset = Command::Reset { keep_to: Seq::ZERO, replacement, reason: ResetReason::Replaced };
            self.send_command(caller, located.session, reset).await?;
        }
        if state.is_empty() {
            return Ok(());
        }
        self.update_title(caller, located, &state).await?;
        self.set_state(caller, located, state, Some(json!({ PROTOCOL_NAME: { "born": true } }))).await
    }

    /// The page keeps a session's title among its values: every protocol shows it.
    async fn update_title(&self, caller: &Caller, located: &LocatedSession, delta: &State) -> Result<(), AdkRefusal> {
        let title = delta.get("__session_metadata__").and_then(|all| all.get("displayName")?.as_str());
        match title.map(str::trim).filter(|title| !title.is_empty() && title.chars().count() <= 200) {
            Some(title) => {
                self.send_command(caller, located.session, Command::SetTitle { title: title.to_owned() }).await
            }
            None => Ok(()),
        }
    }

    pub(super) async fn describe_session(
        &self,
        caller: &Caller,
        located: &LocatedSession,
    ) -> Result<AdkSession, AdkRefusal> {
        let view = self.load_view(caller, located.session).await?;
        let entries = read_all(&**self.services.hub.store(), located.session, DeltaForm::Joined)
            .await
            .map_err(adk_store_refusal)?;
        let shared = self
            .services
            .shared_state
            .get(&Self::state_scope(caller, &located.app_user))
            .await
            .map_err(adk_state_refusal)?;
        let events = projection::adk_session_history_of(&entries, &self.long_running_tools(&view.settings.agent));
        Ok(adk_session_object(located, &view, &shared, events))
    }

    async fn list_named_sessions(
        &self,
        caller: &Caller,
        app_user: &AppUser,
    ) -> Result<Vec<LocatedSession>, AdkRefusal> {
        let (namespace, mut found) = (session_alias_namespace(app_user), Vec::<LocatedSession>::new());
        loop {
            let after = found.last().map(|located| located.name.as_str());
            let scope = (PROTOCOL_NAME, namespace.as_str());
            let page = self.services.sessions.list_aliases(caller, scope, after, ALIAS_PAGE_SIZE).await;
            let page = page.map_err(adk_session_refusal)?;
            let whole = page.len() < ALIAS_PAGE_SIZE as usize;
            let located = |(name, session)| LocatedSession { session, app_user: app_user.clone(), name };
            found.extend(page.into_iter().map(located));
            if whole {
                return Ok(found);
            }
        }
    }

    /// Sessions that other protocols made.
    async fn list_foreign_sessions(
        &self,
        caller: &Caller,
        app_user: &AppUser,
    ) -> Result<Vec<LocatedSession>, AdkRefusal> {
        let mut filter = SessionFilter { limit: FOREIGN_PAGE_SIZE, ..SessionFilter::default() };
        let mut found = Vec::new();
        loop {
            let SessionPage { sessions, next } =
                self.services.sessions.list(caller, filter.clone()).await.map_err(adk_session_refusal)?;
            for summary in sessions.into_iter().filter(|summary| self.serves_agent(&app_user.app, &summary.agent)) {
                let session = summary.session;
                if self.is_foreign(caller, session).await?
                    && self.belongs_to_app(caller, &app_user.app, &summary).await?
                {
                    found.push(LocatedSession { session, app_user: app_user.clone(), name: session.to_string() });
                }
            }
            if next.is_none() {
                return Ok(found);
            }
            filter.after = next;
        }
    }

    /// True if a session of another protocol is one of this app: its agent's, or the mode's that it works in.
    async fn belongs_to_app(&self, caller: &Caller, app: &str, summary: &SessionSummary) -> Result<bool, AdkRefusal> {
        let roster = self.services.agents.roster();
        if roster.find_agent(app).is_some() {
            return Ok(summary.agent == app);
        }
        let settings = self.load_view(caller, summary.session).await?.settings;
        Ok(roster.current_mode(&settings).is_some_and(|mode| mode.name == app))
    }

    async fn is_foreign(&self, caller: &Caller, session: SessionId) -> Result<bool, AdkRefusal> {
        let aliases = self.services.sessions.aliases(caller, session).await.map_err(adk_session_refusal)?;
        Ok(aliases.iter().all(|alias| alias.door != PROTOCOL_NAME))
    }
}

impl ListProjection for HistoryProjection {
    fn project_entry(&mut self, entry: &Entry) -> Vec<Value> {
        Self::project_entry(self, entry).iter().map(|event| json!(event)).collect()
    }
}

/// Its own values, then those it shares.
fn adk_session_object(
    located: &LocatedSession,
    view: &SessionView,
    shared: &State,
    events: Vec<gander_wire::adk::AdkEvent>,
) -> AdkSession {
    let mut state = filter_state_by_scope(&view.state, StateScope::Session);
    state.extend(shared.clone());
    AdkSession {
        id: located.name.clone(),
        app_name: located.app_user.app.clone(),
        user_id: located.app_user.user.clone(),
        state,
        events,
        last_update_time: adk_epoch_seconds(view.updated_at),
    }
}

fn session_already_exists(name: &str) -> AdkRefusal {
    AdkRefusal::new(409, format!("Session already exists: {name}"))
}

/// No agent's name has a slash.
fn session_alias_namespace(app_user: &AppUser) -> String {
    format!("{}/{}", app_user.app, app_user.user)
}

pub(super) fn adk_session_alias(caller: &Caller, app_user: &AppUser, name: &str) -> Alias {
    Alias {
        principal: caller.principal.clone(),
        door: PROTOCOL_NAME.to_owned(),
        namespace: session_alias_namespace(app_user),
        text: name.to_owned(),
    }
}
