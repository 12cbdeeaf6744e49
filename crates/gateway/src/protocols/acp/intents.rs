//! What a client wants, carried out. Whatever takes time goes on beside the connection.

use std::sync::Arc;

use futures::FutureExt as _;
use gander_domain::{Accepted, Command, QuestionId, Reply, Seq, ServiceError, SessionId, SessionView, SlashCommand};
use gander_runtime::backend::ClientResources;
use gander_runtime::hub::{Ack, HubError};
use gander_services::errors::service_error_from_hub;
use gander_services::{Services, prompts, slash_commands};
use gander_store::SessionStatus;
use gander_wire::acp::requests::read_named_command_request;
use gander_wire::acp::{Intent, IntentTicket, ListedSession, Presence, Withdrawal};
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinError;

use super::session_list::session_list_page;
use super::sessions::{
    FollowFrom, acp_session_run_origin, create_acp_session, find_own_acp_session, fork_acp_session,
    initial_acp_session, open_acp_session,
};
use super::tasks::MAX_WAITS;
use super::whole_sessions::{WholeSessionRequest, is_whole_session_method};
use super::{AcpClient, client_methods, gander_methods, linked_files};
use crate::ClientPeer;
use crate::protocols::goose;

/// Something that was carried out beside the connection.
pub(super) enum FinishedIntent {
    /// A session is there; it is followed from this place.
    Opened { ticket: IntentTicket, result: Result<(Box<SessionView>, Seq), ServiceError> },
    /// Sessions were listed.
    Listed { ticket: IntentTicket, result: Result<(Vec<ListedSession>, Option<String>), ServiceError> },
    /// Whether a session is in use.
    Status { ticket: IntentTicket, result: Result<Presence, ServiceError> },
    /// A session was closed, put away or deleted.
    Left { ticket: IntentTicket, result: Result<(), ServiceError> },
    /// A command was taken or refused.
    Command { ticket: Option<IntentTicket>, result: Result<Accepted, ServiceError> },
    /// A session's slash commands were listed; none if that failed.
    Offered { session: SessionId, commands: Vec<SlashCommand> },
    /// One of our own methods.
    Extended { ticket: IntentTicket, result: Result<Value, ServiceError>, permit: Option<OwnedSemaphorePermit> },
}

impl AcpClient {
    pub(super) async fn carry_out_intent(&mut self, intent: Intent) {
        let services = Arc::clone(&self.services);
        let peer = self.peer.clone();
        match intent {
            Intent::NewSession { ticket, params } => {
                self.spawn_open(ticket, async move { create_acp_session(&services, &peer, params).await });
            }
            Intent::FirstSession { ticket } => {
                let reserved = self.reserved;
                self.spawn_open(ticket, async move { initial_acp_session(services, peer, reserved).await });
            }
            Intent::LoadSession { ticket, session, params } => {
                self.spawn_open(ticket, open_acp_session(services, peer, session, Some(params), FollowFrom::First));
            }
            Intent::ResumeSession { ticket, session, params } => {
                self.spawn_open(ticket, open_acp_session(services, peer, session, Some(params), FollowFrom::Head));
            }
            Intent::Attach { ticket, session } => {
                self.spawn_open(ticket, open_acp_session(services, peer, session, None, FollowFrom::Head));
            }
            Intent::ForkSession { ticket, session, params } => {
                self.spawn_open(ticket, async move { fork_acp_session(&services, &peer, session, params).await });
            }
            Intent::ListSessions { ticket, cwd, cursor, filter } => {
                self.work.spawn(async move {
                    let result = session_list_page(&services, &peer, cwd, cursor, filter).await;
                    FinishedIntent::Listed { ticket, result }
                });
            }
            Intent::SessionStatus { ticket, session } => {
                self.work.spawn(async move {
                    FinishedIntent::Status {
                        ticket,
                        result: intended_session_presence(&services, &peer, session).await,
                    }
                });
            }
            Intent::ArchiveSession { ticket, session } => {
                self.follows.unsubscribe(session);
                self.spawn_leave(ticket, async move { carry_out_archive(&services, &peer, session).await });
            }
            Intent::CloseSession { ticket, session } => {
                self.follows.unsubscribe(session);
                self.spawn_leave(ticket, async move { carry_out_close(&services, &peer, session).await });
            }
            Intent::DeleteSession { ticket, session } => {
                self.spawn_leave(ticket, async move { carry_out_delete(&services, &peer, session).await });
            }
            Intent::Command { session, command, ticket } => self.send_command(session, command, ticket).await,
            Intent::Withdrew { session, question, how } => self.handle_withdrawal(session, question, how).await,
            Intent::HostReply { call, result } => self.asks.handle_answer(call, result),
            Intent::Extension { ticket, method, params } => self.call_extension(ticket, method, params),
            Intent::Detach { session } => self.follows.unsubscribe(session),
        }
    }

    fn spawn_open<F>(&mut self, ticket: IntentTicket, open: F)
    where
        F: Future<Output = Result<(Box<SessionView>, Seq), ServiceError>> + Send + 'static,
    {
        self.work.spawn(async move { FinishedIntent::Opened { ticket, result: open.await } });
    }

    fn spawn_leave<F>(&mut self, ticket: IntentTicket, leave: F)
    where
        F: Future<Output = Result<(), ServiceError>> + Send + 'static,
    {
        self.work.spawn(async move { FinishedIntent::Left { ticket, result: leave.await } });
    }

    /// Whole sessions wait for their turn, calls that wait for others have places of their own, of which there are few.
    fn call_extension(&mut self, ticket: IntentTicket, method: String, params: Value) {
        let (services, peer) = (Arc::clone(&self.services), self.peer.clone());
        if is_whole_session_method(&method) {
            return self.queue_whole_session(WholeSessionRequest { ticket, peer, method, params });
        }
        let waits = client_methods::client_method_waits(&method);
        if waits && !self.work.has_room_for_wait() {
            let why = format!("wait for the answers to earlier calls of {method} first, so many wait: {MAX_WAITS}");
            return self.connection.handle_refusal(ticket, &ServiceError::Unavailable(why));
        }
        let call = async move {
            let result = carry_out_extension_method(services, peer, method, params).await;
            FinishedIntent::Extended { ticket, result, permit: None }
        };
        if waits {
            self.work.spawn_wait(call);
        } else {
            self.work.spawn(call);
        }
    }

    /// Handed over before the next message is read: a cancel never overtakes its prompt.
    async fn send_command(&mut self, session: SessionId, command: Command, ticket: Option<IntentTicket>) {
        let ack = match command {
            // Its answer waits for the end of the run, which is synced.
            Command::Prompt { .. } => Ack::Committed,
            Command::Cancel { .. }
            | Command::Answer { .. }
            | Command::Configure { .. }
            | Command::SetTitle { .. }
            | Command::SetState { .. }
            | Command::Archive { .. }
            | Command::MarkText { .. }
            | Command::Reset { .. } => Ack::Synced,
        };
        let is_answer = matches!(command, Command::Answer { .. });
        let view = self.connection.view(session).map(|view| (view.workspace.clone(), view.folders.clone()));
        let command = match authorize_intent_command(&self.services, &self.peer, session, view, command).await {
            Ok(command) => command,
            Err(refusal) => {
                self.work.spawn(async move { FinishedIntent::Command { ticket, result: Err(refusal) } });
                return;
            }
        };
        let lent = self.client_resources(session);
        let mut pending =
            Box::pin(self.services.hub.submit_command(&self.peer.caller, session, command, ack, lent).await);
        // Whoever lacks the scope is refused before the session is asked.
        let refused = pending.as_mut().now_or_never();
        if is_answer {
            self.denied = match &refused {
                Some(Err(HubError::Denied(denied))) => Some(denied.clone()),
                Some(Ok(_) | Err(_)) | None => None,
            };
        }
        self.work.spawn(async move {
            let result = match refused {
                Some(result) => result,
                None => pending.await,
            };
            FinishedIntent::Command { ticket, result: result.map_err(|error| service_error_from_hub(session, &error)) }
        });
    }

    fn client_resources(&self, session: SessionId) -> ClientResources {
        let abilities = self.connection.abilities().unwrap_or_default();
        let host = super::host_calls::EditorHost::from_abilities(abilities, session, self.host_sender.clone());
        ClientResources { host, keys: Some(self.peer.keys.clone()) }
    }

    /// Only a chosen option is an answer. The last client's `cancelled` is one too.
    async fn handle_withdrawal(&mut self, session: SessionId, question: QuestionId, how: Withdrawal) {
        if how == Withdrawal::Cancelled && self.services.clients.attached_count(session) <= 1 {
            let command = Command::Answer {
                question,
                reply: Reply::Cancelled,
                origin: acp_session_run_origin(&self.peer),
                meta: None,
            };
            self.send_command(session, command, None).await;
        }
    }

    /// All commands of a session, as soon as its MCP servers have told their prompts.
    fn offer_slash_commands(&mut self, session: SessionId) {
        let (services, caller) = (Arc::clone(&self.services), self.peer.caller.clone());
        self.work.spawn(async move {
            let listed = slash_commands::list_session_slash_commands(&services, &caller, session).await;
            FinishedIntent::Offered { session, commands: listed.unwrap_or_default() }
        });
    }

    /// Tells the client what became of something.
    pub(super) fn handle_finished(&mut self, done: Result<FinishedIntent, JoinError>) {
        let Ok(done) = done else {
            tracing::error!("a client's request failed inside");
            return;
        };
        self.connection.outbox().set_origin(gander_wire::jsonrpc::MessageOrigin::default());
        match done {
            FinishedIntent::Opened { ticket, result: Ok((view, after)) } => {
                let session = view.session;
                let catalog = (self.services.catalog)(&view.workspace);
                self.connection.handle_opened(ticket, *view, catalog);
                // One that was open here already goes on where this client is.
                let told = self.connection.view(session).map_or(after, |view| view.head);
                self.attach_session(session, told);
                self.offer_slash_commands(session);
            }
            FinishedIntent::Offered { session, commands } if !commands.is_empty() => {
                self.connection.offer_commands(session, &commands)
            }
            FinishedIntent::Offered { .. } => {}
            FinishedIntent::Listed { ticket, result: Ok((sessions, next)) } => {
                self.connection.handle_listed(ticket, sessions, next)
            }
            FinishedIntent::Status { ticket, result: Ok(presence) } => self.connection.handle_status(ticket, presence),
            FinishedIntent::Left { ticket, result: Ok(()) } => self.connection.handle_done(ticket),
            FinishedIntent::Command { ticket: Some(ticket), result: Ok(accepted) } => {
                self.connection.handle_accepted(ticket, accepted)
            }
            FinishedIntent::Extended { ticket, result: Ok(value), permit } => {
                self.connection.handle_extension_result(ticket, &value);
                drop((value, permit));
            }
            FinishedIntent::Command { ticket: None, .. } => {}
            FinishedIntent::Opened { ticket, result: Err(refusal) }
            | FinishedIntent::Listed { ticket, result: Err(refusal) }
            | FinishedIntent::Status { ticket, result: Err(refusal) }
            | FinishedIntent::Left { ticket, result: Err(refusal) }
            | FinishedIntent::Command { ticket: Some(ticket), result: Err(refusal) }
            | FinishedIntent::Extended { ticket, result: Err(refusal), .. } => {
                self.connection.handle_refusal(ticket, &refusal)
            }
        }
    }
}

/// Methods of goose and those for pages are for everybody, those of our own command line for local clients.
pub(super) async fn carry_out_extension_method(
    services: Arc<Services>,
    peer: ClientPeer,
    method: String,
    params: Value,
) -> Result<Value, ServiceError> {
    match method.strip_prefix("_goose/") {
        Some(name) => goose::handle_goose_method(&services, &peer, name, params).await,
        None => match client_methods::handle_client_method(&services, &peer, &method, &params).await {
            Some(result) => result,
            None => gander_methods::handle_gander_method(&services, &peer, &method, params).await,
        },
    }
}

/// A session that is open here was checked then; any other must be this client's own. Small files that a prompt
/// points to in the workspace are read along.
async fn authorize_intent_command(
    services: &Services,
    peer: &ClientPeer,
    session: SessionId,
    open: Option<(String, Vec<String>)>,
    command: Command,
) -> Result<Command, ServiceError> {
    let Some((workspace, folders)) = open else {
        return find_own_acp_session(services, peer, session).await.map(|_| command);
    };
    match command {
        Command::Prompt { run, origin, parts, if_busy, meta } => {
            if let Some(name) = read_named_command_request(meta.as_ref()) {
                slash_commands::require_slash_command(services, &peer.caller, session, name).await?;
            }
            let parts = prompts::prepare_prompt(services, &peer.caller, session, parts).await?;
            let parts = linked_files::inline_linked_files(&services.files, &workspace, &folders, parts).await;
            Ok(Command::Prompt { run, origin, parts, if_busy, meta })
        }
        other @ (Command::Cancel { .. }
        | Command::Answer { .. }
        | Command::Configure { .. }
        | Command::SetTitle { .. }
        | Command::SetState { .. }
        | Command::Archive { .. }
        | Command::MarkText { .. }
        | Command::Reset { .. }) => Ok(other),
    }
}

async fn intended_session_presence(
    services: &Services,
    peer: &ClientPeer,
    session: SessionId,
) -> Result<Presence, ServiceError> {
    let summary = find_own_acp_session(services, peer, session).await?;
    let used = services.clients.attached_count(session) > 0 || summary.state != SessionStatus::Idle;
    Ok(if used { Presence::Open } else { Presence::Saved })
}

async fn carry_out_archive(services: &Services, peer: &ClientPeer, session: SessionId) -> Result<(), ServiceError> {
    carry_out_close(services, peer, session).await?;
    let archived =
        services.hub.execute_command(&peer.caller, session, Command::Archive { archived: true }, Ack::Synced).await;
    archived.map(drop).map_err(|error| service_error_from_hub(session, &error))
}

async fn carry_out_close(services: &Services, peer: &ClientPeer, session: SessionId) -> Result<(), ServiceError> {
    find_own_acp_session(services, peer, session).await?;
    if services.clients.attached_count(session) == 0 {
        let cancel = Command::Cancel { run: None, origin: acp_session_run_origin(peer) };
        let cancelled = services.hub.execute_command(&peer.caller, session, cancel, Ack::Synced).await;
        cancelled.map_err(|error| service_error_from_hub(session, &error))?;
        services.extensions.close_session(session);
    }
    Ok(())
}

async fn carry_out_delete(services: &Services, peer: &ClientPeer, session: SessionId) -> Result<(), ServiceError> {
    services.sessions.delete(&peer.caller, session).await?;
    services.extensions.close_session(session);
    Ok(())
}
