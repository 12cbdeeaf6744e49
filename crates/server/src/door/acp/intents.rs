//! What a client wants, carried out. Whatever takes time goes on beside the connection.

use std::sync::Arc;

use gander_domain::{Accepted, Birth, Command, QuestionId, Reply, RunOrigin, Seq, SessionId, SessionView};
use gander_wire::acp::{Intent, Listed, Refusal, SessionParams, Ticket, Withdrawal};
use serde_json::Value;
use tokio::task::JoinError;

use super::{Client, extensions};
use crate::app::Peer;
use crate::backend::Lent;
use crate::clock::SystemIds;
use crate::door::Desk;
use crate::hub::{Ack, HubError};
use crate::log::{Card, SessionQuery, StoreError};

/// Sessions on one page of a list.
const PAGE: u32 = 50;

/// Something that was carried out beside the connection.
pub(super) enum Done {
    /// A session is there; it is followed from this place.
    Opened { ticket: Ticket, result: Result<(Box<SessionView>, Seq), Refusal> },
    /// Sessions were listed.
    Listed { ticket: Ticket, result: Result<(Vec<Listed>, Option<String>), Refusal> },
    /// A session was closed or deleted.
    Left { ticket: Ticket, result: Result<(), Refusal> },
    /// A command was taken or refused.
    Command { ticket: Option<Ticket>, result: Result<Accepted, Refusal> },
    /// One of our own methods.
    Extended { ticket: Ticket, result: Result<Value, Refusal> },
}

impl Client {
    pub(super) async fn carry_out(&mut self, intent: Intent) {
        let desk = Arc::clone(&self.desk);
        let peer = self.peer.clone();
        match intent {
            Intent::NewSession { ticket, params } => {
                self.work.spawn(async move { Done::Opened { ticket, result: create(&desk, &peer, params).await } });
            }
            Intent::LoadSession { ticket, session, params } => {
                let open = open(desk, peer, session, Some(params), Place::First);
                self.work.spawn(async move { Done::Opened { ticket, result: open.await } });
            }
            Intent::ResumeSession { ticket, session, params } => {
                let open = open(desk, peer, session, Some(params), Place::Head);
                self.work.spawn(async move { Done::Opened { ticket, result: open.await } });
            }
            Intent::Attach { ticket, session } => {
                let open = open(desk, peer, session, None, Place::Head);
                self.work.spawn(async move { Done::Opened { ticket, result: open.await } });
            }
            Intent::ListSessions { ticket, cwd, cursor } => {
                self.work.spawn(async move { Done::Listed { ticket, result: list(&desk, &peer, cwd, cursor).await } });
            }
            Intent::CloseSession { ticket, session } => {
                self.follows.remove(session);
                self.work.spawn(async move { Done::Left { ticket, result: close(&desk, &peer, session).await } });
            }
            Intent::DeleteSession { ticket, session } => {
                self.work.spawn(async move { Done::Left { ticket, result: delete(&desk, &peer, session).await } });
            }
            Intent::Command { session, command, ticket } => self.command(session, command, ticket).await,
            Intent::Withdrew { session, question, how } => self.withdrew(session, question, how).await,
            Intent::HostReply { call, result } => self.asks.answered(call, result),
            Intent::Extension { ticket, method, params } => {
                self.work.spawn(async move {
                    Done::Extended { ticket, result: extensions::call(&desk, &peer, &method, params).await }
                });
            }
            Intent::Detach { session } => self.follows.remove(session),
        }
    }

    /// Handed over before the next message is read: a cancel never overtakes its prompt.
    async fn command(&mut self, session: SessionId, command: Command, ticket: Option<Ticket>) {
        let ack = match command {
            // Its answer waits for the end of the run, which is synced.
            Command::Prompt { .. } => Ack::Committed,
            Command::Cancel { .. }
            | Command::Answer { .. }
            | Command::Configure { .. }
            | Command::SetTitle { .. }
            | Command::Archive { .. }
            | Command::Reset { .. } => Ack::Synced,
        };
        let lent = self.lent(session);
        let pending = self.desk.hub.submit(session, command, ack, lent).await;
        self.work.spawn(async move {
            Done::Command { ticket, result: pending.await.map_err(|error| refusal(session, &error)) }
        });
    }

    fn lent(&self, session: SessionId) -> Lent {
        let abilities = self.connection.abilities().unwrap_or_default();
        let host = super::editor::EditorHost::offered(abilities, session, self.host_sender.clone());
        Lent { host, keys: Some(self.peer.keys.clone()) }
    }

    /// Only a chosen option is an answer. The last client's `cancelled` is one too.
    async fn withdrew(&mut self, session: SessionId, question: QuestionId, how: Withdrawal) {
        if how == Withdrawal::Cancelled && self.desk.clients.at(session) <= 1 {
            let command = Command::Answer { question, reply: Reply::Cancelled, origin: origin(&self.peer) };
            self.command(session, command, None).await;
        }
    }

    /// Tells the client what became of something.
    pub(super) fn finished(&mut self, done: Result<Done, JoinError>) {
        let Ok(done) = done else {
            tracing::error!("a client's request failed inside");
            return;
        };
        match done {
            Done::Opened { ticket, result: Ok((view, after)) } => {
                let session = view.session;
                self.connection.opened(ticket, *view, (self.desk.catalog)());
                self.attach(session, after);
            }
            Done::Listed { ticket, result: Ok((sessions, next)) } => self.connection.listed(ticket, sessions, next),
            Done::Left { ticket, result: Ok(()) } => self.connection.done(ticket),
            Done::Command { ticket: Some(ticket), result: Ok(accepted) } => self.connection.accepted(ticket, accepted),
            Done::Extended { ticket, result: Ok(value) } => self.connection.extended(ticket, &value),
            Done::Command { ticket: None, .. } => {}
            Done::Opened { ticket, result: Err(refusal) }
            | Done::Listed { ticket, result: Err(refusal) }
            | Done::Left { ticket, result: Err(refusal) }
            | Done::Command { ticket: Some(ticket), result: Err(refusal) }
            | Done::Extended { ticket, result: Err(refusal) } => self.connection.refused(ticket, &refusal),
        }
    }
}

/// Where a session is followed from.
#[derive(Clone, Copy)]
enum Place {
    First,
    Head,
}

async fn create(desk: &Desk, peer: &Peer, params: SessionParams) -> Result<(Box<SessionView>, Seq), Refusal> {
    let session = SessionId::make(&mut SystemIds);
    let workspace = workspace(desk, session, params.cwd.as_deref())?;
    let folders = folders(desk, &params.folders)?;
    let mut settings = desk.settings.clone();
    settings.model = peer.model.clone().or(settings.model);
    let owner = peer.principal.clone();
    let birth = Birth { session, owner, workspace, folders, settings, parent: None, meta: params.meta };
    let view = desk.hub.create(birth, Vec::new()).await.map_err(|error| refusal(session, &error))?;
    let head = view.head;
    Ok((Box::new(view), head))
}

async fn open(
    desk: Arc<Desk>,
    peer: Peer,
    session: SessionId,
    params: Option<SessionParams>,
    place: Place,
) -> Result<(Box<SessionView>, Seq), Refusal> {
    let view = desk.hub.view_for(session, &peer.principal).await.map_err(|error| refusal(session, &error))?;
    if let Some(cwd) = params.and_then(|params| params.cwd) {
        workspace(&desk, session, Some(&cwd))?;
    }
    // The view may be ahead of what is stored and can be read. The log's own end is where live begins.
    let head = desk.hub.store().head(session).await.map_err(|error| refusal(session, &error.into()))?;
    let view = if view.head > head {
        desk.hub.view_at(session, head).await.map_err(|error| refusal(session, &error))?
    } else {
        view
    };
    let after = match place {
        Place::First => Seq::ZERO,
        Place::Head => view.head,
    };
    Ok((Box::new(view), after))
}

async fn list(
    desk: &Desk,
    peer: &Peer,
    cwd: Option<String>,
    cursor: Option<String>,
) -> Result<(Vec<Listed>, Option<String>), Refusal> {
    let after = cursor.map(|cursor| cursor.parse()).transpose().map_err(Refusal::BadParams)?;
    let workspace = cwd.map(|cwd| desk.workspaces.named(&cwd).unwrap_or(cwd));
    let query = SessionQuery {
        principal: peer.principal.clone(),
        workspace,
        text: None,
        archived: false,
        state: None,
        after,
        limit: PAGE,
    };
    let page = desk.hub.store().sessions(query).await.map_err(|error| unavailable(&error))?;
    let next = page.next.map(|next| next.to_string());
    Ok((page.cards.into_iter().map(listed).collect(), next))
}

async fn close(desk: &Desk, peer: &Peer, session: SessionId) -> Result<(), Refusal> {
    own(desk, peer, session).await?;
    if desk.clients.at(session) == 0 {
        let cancel = Command::Cancel { run: None, origin: origin(peer) };
        let cancelled = desk.hub.command(session, cancel, Ack::Synced).await;
        cancelled.map_err(|error| refusal(session, &error))?;
    }
    Ok(())
}

async fn delete(desk: &Desk, peer: &Peer, session: SessionId) -> Result<(), Refusal> {
    own(desk, peer, session).await?;
    desk.hub.delete(session).await.map_err(|error| refusal(session, &error))
}

/// Another's session is as unknown as none.
pub(super) async fn own(desk: &Desk, peer: &Peer, session: SessionId) -> Result<Card, Refusal> {
    let card = desk.hub.store().card(session).await.map_err(|error| refusal(session, &error.into()))?;
    if card.owner == peer.principal { Ok(card) } else { Err(Refusal::UnknownSession(session)) }
}

fn workspace(desk: &Desk, session: SessionId, cwd: Option<&str>) -> Result<String, Refusal> {
    let found = match cwd {
        Some(cwd) => desk.workspaces.named(cwd),
        None => desk.workspaces.private(session),
    };
    found.map_err(|error| Refusal::BadWorkspace(error.to_string()))
}

fn folders(desk: &Desk, folders: &[String]) -> Result<Vec<String>, Refusal> {
    let named = folders.iter().map(|folder| desk.workspaces.named(folder));
    named.collect::<Result<_, _>>().map_err(|error| Refusal::BadWorkspace(error.to_string()))
}

fn listed(card: Card) -> Listed {
    let Card { session, workspace, title, updated_at, .. } = card;
    Listed { session, workspace, folders: Vec::new(), title: Some(title).filter(|title| !title.is_empty()), updated_at }
}

pub(super) fn origin(peer: &Peer) -> RunOrigin {
    RunOrigin { by: peer.principal.clone(), door: "acp".to_owned() }
}

/// What the client is told, and what only the log is.
pub(super) fn refusal(session: SessionId, error: &HubError) -> Refusal {
    match error {
        HubError::Refused(command) => Refusal::Command(command.clone()),
        HubError::Store(StoreError::NotFound(_) | StoreError::Deleted(_)) => Refusal::UnknownSession(session),
        HubError::Draining => Refusal::Unavailable("the server is stopping, try again in a moment".to_owned()),
        HubError::Store(store) => unavailable(store),
        HubError::Gone(_) => Refusal::Internal("the session stopped before it could answer".to_owned()),
    }
}

pub(super) fn unavailable(error: &StoreError) -> Refusal {
    tracing::error!(%error, "store failed");
    match error {
        StoreError::ReadOnly(_) => Refusal::Unavailable("the store is read-only, see `gander doctor`".to_owned()),
        StoreError::NotFound(_)
        | StoreError::Deleted(_)
        | StoreError::Exists(_)
        | StoreError::Fenced { .. }
        | StoreError::Gap { .. }
        | StoreError::Truncated { .. }
        | StoreError::AliasTaken(_)
        | StoreError::Invalid(_)
        | StoreError::Failed(_)
        | StoreError::Corrupt(_)
        | StoreError::Locked(_)
        | StoreError::Newer { .. }
        | StoreError::Closed => Refusal::Internal("the store failed, see the server's log".to_owned()),
    }
}
