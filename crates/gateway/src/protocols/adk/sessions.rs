//! Sessions: made, found, listed, changed, deleted.

use gander_domain::caller::Caller;
use gander_domain::state::within;
use gander_domain::{
    Birth, Command, Entry, Message, MessageId, ResetReason, Seq, SessionId, SessionView, State, StateScope,
};
use gander_runtime::hub::{Ack, HubError};
use gander_store::clock::SystemIds;
use gander_store::{Alias, Card, Form, Page, SessionQuery, StoreError, read_all, sessions_of};
use gander_wire::adk::output::History;
use gander_wire::adk::types::seconds;
use gander_wire::adk::{DOOR, LONGEST_ID, NewSession, Refusal, Session, output};
use serde_json::{Value, json};

use super::{Adk, Place, failed, not_kept, refusal};
use crate::log_list::{Items, Recount};

/// Sessions of other doors that are read in one go.
const FOREIGN_PAGE: u32 = 500;

/// Names read in one go.
const PAGE: u32 = 500;

/// A session that was found.
#[derive(Clone, Debug)]
pub struct Located {
    /// Its id.
    pub session: SessionId,
    /// Where it was found.
    pub place: Place,
    /// How the client calls it.
    pub name: String,
}

/// Which part of a list is wanted; everything if nothing is said.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked {
    /// Skip so many.
    pub offset: usize,
    /// At most so many.
    pub limit: Option<usize>,
    /// Newest first?
    pub newest_first: bool,
}

impl Adk {
    /// Makes a session, with its values and whatever was said elsewhere.
    pub async fn create(&self, identity: &Caller, place: Place, new: NewSession) -> Result<Session, Refusal> {
        let place = self.placed(place);
        self.check(identity, &place)?;
        let settings = self.desk.agents.settings(&place.app, &self.desk.settings);
        let settings = settings.ok_or_else(|| Refusal::no_app(&place.app))?;
        let session = SessionId::make(&mut SystemIds);
        let name = new.id.unwrap_or_else(|| session.to_string());
        let alias = alias(identity, &place, &name);
        if self.desk.hub.store().resolve_alias(&alias).await.map_err(failed)?.is_some() {
            return Err(exists(&name));
        }
        let workspace = self.desk.workspaces.private(session);
        let workspace = workspace.map_err(|error| Refusal::new(500, format!("workspace {error}")))?;
        let owner = identity.principal.clone();
        let birth = Birth { session, owner, workspace, folders: Vec::new(), settings, parent: None, meta: None };
        match self.desk.hub.create(identity, birth, vec![alias]).await {
            Ok(_) => {}
            Err(HubError::Store(StoreError::AliasTaken(_))) => return Err(exists(&name)),
            Err(error) => return Err(refusal(&error)),
        }
        let located = Located { session, place, name };
        if let Err(refusal) = self.furnish(identity, &located, new.state, new.events).await {
            // Nobody heard of it yet: whoever tries again must not find its name taken.
            if let Err(error) = self.desk.hub.delete(identity, session).await {
                tracing::warn!(%error, %session, "a session that was not furnished is left behind");
            }
            return Err(refusal);
        }
        self.session(identity, &located).await
    }

    /// A session, and everything that happened in it, made while it is taken.
    pub async fn get(&self, identity: &Caller, place: Place, name: &str) -> Result<(Session, Items<History>), Refusal> {
        let located = self.find(identity, place, name).await?;
        let view = self.view(located.session).await?;
        let shared = self.desk.shared.get(&Self::room(identity, &located.place)).await.map_err(not_kept)?;
        let history = History::new(&self.long_running(&view.settings.agent));
        let events = Items::of(self.desk.hub.store(), located.session, history).await.map_err(failed)?;
        Ok((shown(&located, &view, &shared, Vec::new()), events))
    }

    /// The sessions of a user, without what happened in them.
    pub async fn list(&self, identity: &Caller, place: &Place, asked: Asked) -> Result<Vec<Session>, Refusal> {
        let place = &self.placed(place.clone());
        if self.check(identity, place).is_err() {
            return Ok(Vec::new());
        }
        let mut found = self.named(identity, place).await?;
        if place.user == self.settings.user {
            found.extend(self.foreign(identity, place).await?);
        }
        found.sort_by_key(|located| located.session);
        if asked.newest_first {
            found.reverse();
        }
        let shared = self.desk.shared.get(&Self::room(identity, place)).await.map_err(not_kept)?;
        let mut sessions = Vec::new();
        for located in found.into_iter().skip(asked.offset).take(asked.limit.unwrap_or(usize::MAX)) {
            match self.view(located.session).await {
                Ok(view) => sessions.push(shown(&located, &view, &shared, Vec::new())),
                Err(error) if error.status == 404 => {} // deleted meanwhile
                Err(error) => return Err(error),
            }
        }
        Ok(sessions)
    }

    /// Changes values of a session.
    pub async fn patch(&self, identity: &Caller, place: Place, name: &str, delta: State) -> Result<Session, Refusal> {
        let located = self.find(identity, place, name).await?;
        self.retitle(identity, &located, &delta).await?;
        self.keep(identity, &located, delta, None).await?;
        self.session(identity, &located).await
    }

    /// Removes a session; it need not be there.
    pub async fn delete(&self, identity: &Caller, place: Place, name: &str) -> Result<(), Refusal> {
        let located = match self.find(identity, place, name).await {
            Ok(located) => located,
            Err(error) if error.status == 404 => return Ok(()),
            Err(error) => return Err(error),
        };
        self.desk.hub.delete(identity, located.session).await.map_err(|error| refusal(&error))
    }

    /// The session of this name, if this caller may see it.
    pub async fn find(&self, identity: &Caller, place: Place, name: &str) -> Result<Located, Refusal> {
        let place = self.placed(place);
        self.check(identity, &place)?;
        let store = self.desk.hub.store();
        let known = store.resolve_alias(&alias(identity, &place, name)).await.map_err(failed)?;
        if let Some(session) = known {
            return Ok(Located { session, place, name: name.to_owned() });
        }
        let session: SessionId = name.parse().map_err(|_| Refusal::no_session())?;
        let card = store.card(session).await.map_err(failed)?;
        let mine = card.owner == identity.principal && place.user == self.settings.user;
        if mine && self.may_serve(&place.app, &card.agent) && self.is_foreign(session).await? {
            return Ok(Located { session, place, name: name.to_owned() });
        }
        Err(Refusal::no_session())
    }

    /// A token that is bound to one user sees no other.
    pub(super) fn check(&self, identity: &Caller, place: &Place) -> Result<(), Refusal> {
        let bound = identity.adk_user.as_ref().is_none_or(|user| *user == place.user);
        let sane = |text: &str| {
            !text.is_empty() && text.len() <= LONGEST_ID && !text.chars().any(|letter| letter.is_control())
        };
        if bound && sane(&place.user) && sane(&place.app) { Ok(()) } else { Err(Refusal::no_session()) }
    }

    /// Sets values: those of the session in its log, the others where they are shared.
    pub(super) async fn keep(
        &self,
        identity: &Caller,
        located: &Located,
        delta: State,
        meta: Option<Value>,
    ) -> Result<(), Refusal> {
        self.desk.shared.set(&Self::room(identity, &located.place), &delta).await.map_err(not_kept)?;
        let command = Command::SetState { delta, meta: meta.map(Box::new) };
        self.carry_out(identity, located.session, command).await
    }

    pub(super) async fn view(&self, session: SessionId) -> Result<SessionView, Refusal> {
        self.desk.hub.stored_view(session).await.map_err(|error| refusal(&error))
    }

    pub(super) async fn carry_out(
        &self,
        identity: &Caller,
        session: SessionId,
        command: Command,
    ) -> Result<(), Refusal> {
        let done = self.desk.hub.command(identity, session, command, Ack::Synced).await;
        done.map(drop).map_err(|error| refusal(&error))
    }

    async fn furnish(
        &self,
        identity: &Caller,
        located: &Located,
        state: State,
        events: Vec<(gander_domain::Role, Vec<gander_domain::Part>)>,
    ) -> Result<(), Refusal> {
        if !events.is_empty() {
            let message = |(role, parts)| {
                let id = MessageId::make(&mut SystemIds);
                Message { id, role, parts, interrupted: false, native: None }
            };
            let replacement = events.into_iter().map(message).collect();
            let reset = Command::Reset { keep_to: Seq::ZERO, replacement, reason: ResetReason::Replaced };
            self.carry_out(identity, located.session, reset).await?;
        }
        if state.is_empty() {
            return Ok(());
        }
        self.retitle(identity, located, &state).await?;
        self.keep(identity, located, state, Some(json!({ DOOR: { "born": true } }))).await
    }

    /// The page keeps a session's title among its values: every door shows it.
    async fn retitle(&self, identity: &Caller, located: &Located, delta: &State) -> Result<(), Refusal> {
        let title = delta.get("__session_metadata__").and_then(|all| all.get("displayName")?.as_str());
        match title.map(str::trim).filter(|title| !title.is_empty() && title.chars().count() <= 200) {
            Some(title) => {
                self.carry_out(identity, located.session, Command::SetTitle { title: title.to_owned() }).await
            }
            None => Ok(()),
        }
    }

    async fn session(&self, identity: &Caller, located: &Located) -> Result<Session, Refusal> {
        let view = self.view(located.session).await?;
        let entries = read_all(&**self.desk.hub.store(), located.session, Form::Joined).await.map_err(failed)?;
        let shared = self.desk.shared.get(&Self::room(identity, &located.place)).await.map_err(not_kept)?;
        let events = output::history_of(&entries, &self.long_running(&view.settings.agent));
        Ok(shown(located, &view, &shared, events))
    }

    async fn named(&self, identity: &Caller, place: &Place) -> Result<Vec<Located>, Refusal> {
        let (namespace, mut found) = (namespace(place), Vec::<Located>::new());
        loop {
            let after = found.last().map(|located| located.name.as_str());
            let store = self.desk.hub.store();
            let page = store.named(&identity.principal, DOOR, &namespace, after, PAGE).await.map_err(failed)?;
            let whole = page.len() < PAGE as usize;
            let located = |(name, session)| Located { session, place: place.clone(), name };
            found.extend(page.into_iter().map(located));
            if whole {
                return Ok(found);
            }
        }
    }

    /// Sessions that other doors made.
    async fn foreign(&self, identity: &Caller, place: &Place) -> Result<Vec<Located>, Refusal> {
        let mut query = SessionQuery { limit: FOREIGN_PAGE, ..sessions_of(identity.principal.clone()) };
        let mut found = Vec::new();
        loop {
            let Page { cards, next } = self.desk.hub.store().sessions(query.clone()).await.map_err(failed)?;
            for card in cards.into_iter().filter(|card| self.may_serve(&place.app, &card.agent)) {
                if self.is_foreign(card.session).await? && self.is_shown_as(&place.app, &card).await? {
                    found.push(Located { session: card.session, place: place.clone(), name: card.session.to_string() });
                }
            }
            if next.is_none() {
                return Ok(found);
            }
            query.after = next;
        }
    }

    /// True if a session of another door is one of this app: its agent's, or the mode's that it works in.
    async fn is_shown_as(&self, app: &str, card: &Card) -> Result<bool, Refusal> {
        let roster = self.desk.agents.roster();
        if roster.agent(app).is_some() {
            return Ok(card.agent == app);
        }
        let settings = self.view(card.session).await?.settings;
        Ok(roster.way_of(&settings).is_some_and(|way| way.name == app))
    }

    async fn is_foreign(&self, session: SessionId) -> Result<bool, Refusal> {
        let names = self.desk.hub.store().aliases(session).await.map_err(failed)?;
        Ok(names.iter().all(|alias| alias.door != DOOR))
    }
}

impl Recount for History {
    fn tell(&mut self, entry: &Entry) -> Vec<Value> {
        Self::tell(self, entry).iter().map(|event| json!(event)).collect()
    }
}

/// Its own values, then those it shares.
fn shown(located: &Located, view: &SessionView, shared: &State, events: Vec<gander_wire::adk::Event>) -> Session {
    let mut state = within(&view.state, StateScope::Session);
    state.extend(shared.clone());
    Session {
        id: located.name.clone(),
        app_name: located.place.app.clone(),
        user_id: located.place.user.clone(),
        state,
        events,
        last_update_time: seconds(view.updated_at),
    }
}

fn exists(name: &str) -> Refusal {
    Refusal::new(409, format!("Session already exists: {name}"))
}

/// No agent's name has a slash.
fn namespace(place: &Place) -> String {
    format!("{}/{}", place.app, place.user)
}

fn alias(identity: &Caller, place: &Place, name: &str) -> Alias {
    Alias {
        principal: identity.principal.clone(),
        door: DOOR.to_owned(),
        namespace: namespace(place),
        text: name.to_owned(),
    }
}
