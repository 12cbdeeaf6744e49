//! What a client wants, carried out. Whatever takes time goes on beside the connection.

use std::sync::Arc;

use gander_domain::{
    Accepted, Command, QuestionId, Reply, RunOrigin, Seq, ServiceError, SessionId, SessionView, SlashCommand,
};
use gander_runtime::backend::Lent;
use gander_runtime::hub::Ack;
use gander_services::errors::refusal;
use gander_services::{Services, recipes};
use gander_store::{Card, CardState};
use gander_wire::acp::{Intent, Listed, Presence, Ticket, Withdrawal};
use serde_json::Value;
use tokio::task::JoinError;

use super::session_list::list;
use super::sessions::{Place, create, first, fork, open};
use super::{Client, gander_methods, linked_files, mcp_servers};
use crate::Peer;
use crate::protocols::goose;

/// Something that was carried out beside the connection.
pub(super) enum Done {
    /// A session is there; it is followed from this place.
    Opened { ticket: Ticket, result: Result<(Box<SessionView>, Seq), ServiceError> },
    /// Sessions were listed.
    Listed { ticket: Ticket, result: Result<(Vec<Listed>, Option<String>), ServiceError> },
    /// Whether a session is in use.
    Status { ticket: Ticket, result: Result<Presence, ServiceError> },
    /// A session was closed, put away or deleted.
    Left { ticket: Ticket, result: Result<(), ServiceError> },
    /// A command was taken or refused.
    Command { ticket: Option<Ticket>, result: Result<Accepted, ServiceError> },
    /// A session's servers told their prompts.
    Offered { session: SessionId, offers: Vec<SlashCommand> },
    /// One of our own methods.
    Extended { ticket: Ticket, result: Result<Value, ServiceError> },
}

impl Client {
    pub(super) async fn carry_out(&mut self, intent: Intent) {
        let desk = Arc::clone(&self.desk);
        let peer = self.peer.clone();
        match intent {
            Intent::NewSession { ticket, params } => {
                self.work.spawn(async move { Done::Opened { ticket, result: create(&desk, &peer, params).await } });
            }
            Intent::FirstSession { ticket } => {
                let reserved = self.reserved;
                self.work.spawn(async move { Done::Opened { ticket, result: first(desk, peer, reserved).await } });
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
            Intent::ForkSession { ticket, session, params } => {
                self.work
                    .spawn(async move { Done::Opened { ticket, result: fork(&desk, &peer, session, params).await } });
            }
            Intent::ListSessions { ticket, cwd, cursor, archived } => {
                self.work.spawn(async move {
                    Done::Listed { ticket, result: list(&desk, &peer, cwd, cursor, archived).await }
                });
            }
            Intent::SessionStatus { ticket, session } => {
                self.work.spawn(async move { Done::Status { ticket, result: presence(&desk, &peer, session).await } });
            }
            Intent::ArchiveSession { ticket, session } => {
                self.follows.remove(session);
                self.work.spawn(async move { Done::Left { ticket, result: archive(&desk, &peer, session).await } });
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
                    Done::Extended { ticket, result: extended(desk, peer, method, params).await }
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
            | Command::SetState { .. }
            | Command::Archive { .. }
            | Command::Reset { .. } => Ack::Synced,
        };
        if matches!(command, Command::Answer { .. }) {
            self.denied = self.peer.caller.may_answer().err();
        }
        let view = self.connection.view(session).map(|view| (view.workspace.clone(), view.folders.clone()));
        let command = match permitted(&self.desk, &self.peer, session, view, command).await {
            Ok(command) => command,
            Err(refusal) => {
                self.work.spawn(async move { Done::Command { ticket, result: Err(refusal) } });
                return;
            }
        };
        let lent = self.lent(session);
        let pending = self.desk.hub.submit(&self.peer.caller, session, command, ack, lent).await;
        self.work.spawn(async move {
            Done::Command { ticket, result: pending.await.map_err(|error| refusal(session, &error)) }
        });
    }

    fn lent(&self, session: SessionId) -> Lent {
        let abilities = self.connection.abilities().unwrap_or_default();
        let host = super::host_calls::EditorHost::offered(abilities, session, self.host_sender.clone());
        Lent { host, keys: Some(self.peer.keys.clone()) }
    }

    /// Only a chosen option is an answer. The last client's `cancelled` is one too.
    async fn withdrew(&mut self, session: SessionId, question: QuestionId, how: Withdrawal) {
        if how == Withdrawal::Cancelled && self.desk.clients.at(session) <= 1 {
            let command = Command::Answer { question, reply: Reply::Cancelled, origin: origin(&self.peer), meta: None };
            self.command(session, command, None).await;
        }
    }

    /// Recipes with a slash, and prompts of a session's MCP servers as soon as the servers are there, are commands.
    fn offer_prompts(&mut self, session: SessionId) {
        let (desk, principal) = (Arc::clone(&self.desk), self.peer.caller.principal.clone());
        self.work.spawn(async move {
            let slashes = desk.recipes.slashes(&principal).await.unwrap_or_default();
            let mut offers: Vec<SlashCommand> = slashes.iter().map(recipes::Slash::offer).collect();
            if desk.extensions.has(session) {
                offers.extend(desk.extensions.prompts(session).await.iter().map(mcp_servers::offer));
            }
            Done::Offered { session, offers }
        });
    }

    /// Tells the client what became of something.
    pub(super) fn finished(&mut self, done: Result<Done, JoinError>) {
        let Ok(done) = done else {
            tracing::error!("a client's request failed inside");
            return;
        };
        self.connection.outbox().address(gander_wire::jsonrpc::Place::default());
        match done {
            Done::Opened { ticket, result: Ok((view, after)) } => {
                let session = view.session;
                let catalog = (self.desk.catalog)(&view.workspace);
                self.connection.opened(ticket, *view, catalog);
                // One that was open here already goes on where this client is.
                let told = self.connection.view(session).map_or(after, |view| view.head);
                self.attach(session, told);
                self.offer_prompts(session);
            }
            Done::Offered { session, offers } if !offers.is_empty() => self.connection.offer(session, &offers),
            Done::Offered { .. } => {}
            Done::Listed { ticket, result: Ok((sessions, next)) } => self.connection.listed(ticket, sessions, next),
            Done::Status { ticket, result: Ok(presence) } => self.connection.status(ticket, presence),
            Done::Left { ticket, result: Ok(()) } => self.connection.done(ticket),
            Done::Command { ticket: Some(ticket), result: Ok(accepted) } => self.connection.accepted(ticket, accepted),
            Done::Extended { ticket, result: Ok(value) } => self.connection.extended(ticket, &value),
            Done::Command { ticket: None, .. } => {}
            Done::Opened { ticket, result: Err(refusal) }
            | Done::Listed { ticket, result: Err(refusal) }
            | Done::Status { ticket, result: Err(refusal) }
            | Done::Left { ticket, result: Err(refusal) }
            | Done::Command { ticket: Some(ticket), result: Err(refusal) }
            | Done::Extended { ticket, result: Err(refusal) } => self.connection.refused(ticket, &refusal),
        }
    }
}

/// Methods of goose are for everybody, those of our own command line for local clients.
async fn extended(desk: Arc<Services>, peer: Peer, method: String, params: Value) -> Result<Value, ServiceError> {
    match method.strip_prefix("_goose/") {
        Some(name) => goose::call(&desk, &peer, name, params).await,
        None => gander_methods::call(&desk, &peer, &method, params).await,
    }
}

/// A session that is open here was checked then; any other must be this client's own. Small files that a prompt
/// points to in the workspace are read along.
async fn permitted(
    desk: &Services,
    peer: &Peer,
    session: SessionId,
    open: Option<(String, Vec<String>)>,
    command: Command,
) -> Result<Command, ServiceError> {
    let Some((workspace, folders)) = open else { return own(desk, peer, session).await.map(|_| command) };
    match command {
        Command::Prompt { run, origin, parts, if_busy, meta } => {
            let parts = recipes::expanded(&desk.recipes, &peer.caller.principal, &workspace, parts).await?;
            let parts = desk.extensions.expanded(session, parts).await.map_err(ServiceError::BadParams)?;
            let parts = linked_files::read(&desk.files, &workspace, &folders, parts).await;
            Ok(Command::Prompt { run, origin, parts, if_busy, meta })
        }
        other @ (Command::Cancel { .. }
        | Command::Answer { .. }
        | Command::Configure { .. }
        | Command::SetTitle { .. }
        | Command::SetState { .. }
        | Command::Archive { .. }
        | Command::Reset { .. }) => Ok(other),
    }
}

async fn presence(desk: &Services, peer: &Peer, session: SessionId) -> Result<Presence, ServiceError> {
    let card = own(desk, peer, session).await?;
    let used = desk.clients.at(session) > 0 || card.state != CardState::Idle;
    Ok(if used { Presence::Open } else { Presence::Saved })
}

async fn archive(desk: &Services, peer: &Peer, session: SessionId) -> Result<(), ServiceError> {
    close(desk, peer, session).await?;
    let archived = desk.hub.command(&peer.caller, session, Command::Archive { archived: true }, Ack::Synced).await;
    archived.map(drop).map_err(|error| refusal(session, &error))
}

async fn close(desk: &Services, peer: &Peer, session: SessionId) -> Result<(), ServiceError> {
    own(desk, peer, session).await?;
    if desk.clients.at(session) == 0 {
        let cancel = Command::Cancel { run: None, origin: origin(peer) };
        let cancelled = desk.hub.command(&peer.caller, session, cancel, Ack::Synced).await;
        cancelled.map_err(|error| refusal(session, &error))?;
        desk.extensions.close(session);
    }
    Ok(())
}

async fn delete(desk: &Services, peer: &Peer, session: SessionId) -> Result<(), ServiceError> {
    own(desk, peer, session).await?;
    desk.hub.delete(&peer.caller, session).await.map_err(|error| refusal(session, &error))?;
    desk.extensions.close(session);
    Ok(())
}

/// Another's session is as unknown as none.
pub(super) async fn own(desk: &Services, peer: &Peer, session: SessionId) -> Result<Card, ServiceError> {
    let card = desk.hub.store().card(session).await.map_err(|error| refusal(session, &error.into()))?;
    if card.owner == peer.caller.principal { Ok(card) } else { Err(ServiceError::UnknownSession(session)) }
}

pub(super) fn origin(peer: &Peer) -> RunOrigin {
    RunOrigin { by: peer.caller.principal.clone(), door: "acp".to_owned() }
}
