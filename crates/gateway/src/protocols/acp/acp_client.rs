//! One client: what it wants is carried out, what it follows is told, over a pair of byte streams, whatever frames its messages.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use gander_domain::caller::Caller;
use gander_domain::{LoadSession, Seq, SessionId};
use gander_http::LargeResponses;
use gander_http::message_framing::{ConnectionStage, Framing, InboundMessage};
use gander_http::outgoing_bytes::{OutgoingBytes, heartbeat_interval, next_heartbeat, read_into_framing};
use gander_services::Services;
use gander_store::clock::SystemIds;
use gander_store::{DeltaForm, StoreError};
use gander_wire::acp::{AcpOptions, AgentProfile, Connection, ReminderForm};
use gander_wire::check;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::host_calls::HostCalls;
use super::reminders::Reminders;
use super::subscriptions::{SessionEvent, Subscriptions};
use super::tasks::IntentTasks;
use super::whole_sessions::WholeSessionRequests;
use super::{AcpClient, HOST_CALL_CAPACITY, MAX_CONCURRENT_REQUESTS, MAX_UNSENT, mcp_servers, sessions};
use crate::ClientPeer;

/// How long answers under way are waited for when the client has said its last word.
const FINAL_RESPONSES_TIMEOUT: Duration = Duration::from_secs(2);

/// While more answers than this wait to be written, no request is read. Far more than [`MAX_UNSENT`]: a client that sends
/// many requests before it reads the first answer must not wait for us while we wait for it.
const MAX_UNSENT_RESPONSES: usize = 4 * 1024 * 1024;

/// How a server tells its clients that it ends.
#[derive(Clone, Debug, Default)]
pub struct ShutdownSignals {
    /// No new work: clients that wait for nothing are let go.
    pub soon: CancellationToken,
    /// All are let go.
    pub now: CancellationToken,
}

impl AcpClient {
    pub(super) fn new(services: Arc<Services>, large_responses: Arc<LargeResponses>, peer: ClientPeer) -> Self {
        let (host_sender, host_asks) = mpsc::channel(HOST_CALL_CAPACITY);
        let AcpOptions { dialect, v2, if_busy } = peer.options;
        let connection = Connection::new(
            AgentProfile { v2, if_busy: if_busy.unwrap_or_default(), ..acp_agent_profile(&services, &peer) },
            peer.caller.principal.clone(),
        );
        let connection = match dialect {
            Some(dialect) => connection.with_dialect(dialect),
            None => connection,
        };
        let reminders = Reminders::new(services.reminder_delay);
        Self {
            follows: Subscriptions::new(Arc::clone(&services.clients)),
            relisted: services.agents.roster_changes(),
            services,
            peer,
            connection,
            work: IntentTasks::default(),
            large_responses,
            whole_sessions: WholeSessionRequests::default(),
            asks: HostCalls::default(),
            host_asks,
            host_sender,
            pace: None,
            denied: None,
            form: DeltaForm::Joined,
            reserved: None,
            reminders,
        }
    }

    pub(super) fn from_network(
        services: Arc<Services>,
        large_responses: Arc<LargeResponses>,
        caller: Caller,
        options: AcpOptions,
    ) -> Self {
        Self::new(services, large_responses, ClientPeer { options, ..ClientPeer::new(caller) })
    }

    /// True if this client may use the session. Another's is as unknown as none.
    pub(super) async fn owns_session(&mut self, session: SessionId) -> bool {
        sessions::find_own_acp_session(&self.services, &self.peer, session).await.is_ok()
    }

    /// A session is no more. If the server ends, it only seems so.
    pub(super) fn close_lost_session(&mut self, session: SessionId) {
        self.follows.unsubscribe(session);
        if !self.services.hub.is_draining() {
            self.connection.handle_session_gone(session);
        }
    }

    /// The log of a session can be written or read no further.
    pub(super) fn close_broken_session(&mut self, session: SessionId, error: &StoreError) {
        tracing::warn!(%session, %error, "a session is not followed any further");
        self.follows.unsubscribe(session);
        self.connection.handle_session_broken(session, &gander_services::errors::service_error_from_store(error));
    }

    /// Carries out what the client wants.
    pub(super) async fn carry_out_intents(&mut self) {
        while let Some(intent) = self.connection.poll_intent() {
            self.carry_out_intent(intent).await;
        }
        while let Some((session, question)) = self.connection.poll_asked() {
            self.reminders.schedule(session, question);
        }
    }

    /// Tells the client what happened in a session.
    pub(super) fn handle_session_event(&mut self, event: SessionEvent) {
        let SessionEvent { session, follower, batch } = event;
        match batch {
            Ok(Some(batch)) => {
                batch.entry_slices().for_each(|entries| self.connection.handle_entries(session, entries));
                if self.connection.is_attached(session) {
                    self.follows.resume(session, follower);
                }
            }
            Ok(None) | Err(StoreError::Closed) => self.close_lost_session(session),
            Err(error) => self.close_broken_session(session, &error),
        }
    }

    /// Agents or modes came or went: what can be chosen is told anew in each open session.
    pub(super) fn refresh_catalogs(&mut self) {
        for session in self.follows.session_ids() {
            if let Some(folder) = self.connection.view(session).map(|view| view.workspace.clone()) {
                self.connection.handle_catalog_changed(session, (self.services.catalog)(&folder));
            }
        }
    }

    /// What the client was asked fails, what it watched is let go. Its runs go on.
    pub(super) async fn disconnect(mut self) {
        self.follows.unsubscribe_all();
        self.connection.handle_disconnect();
        self.carry_out_intents().await;
        self.asks.fail_all();
    }

    pub(super) fn attach_session(&mut self, session: SessionId, after: Seq) {
        if let Some(name) = self.connection.client_name() {
            self.follows.set_name(name);
        }
        self.follows.subscribe(session, self.services.hub.follow_session(session, after, self.form));
    }

    /// Serves the client until it is gone. Its runs go on.
    pub(super) async fn run<F, R, W>(mut self, mut framing: F, mut reader: R, mut writer: W, ending: ShutdownSignals)
    where
        F: Framing,
        R: AsyncRead + Unpin + Send,
        W: AsyncWrite + Unpin + Send,
    {
        let served = self.run_io_loop(&mut framing, &mut reader, &mut writer, ending).await;
        let ended = match served {
            Ok(()) => self.flush_responses(&mut framing, &mut writer).await,
            Err(error) => Err(error),
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "client connection broke");
        }
        self.disconnect().await;
    }

    /// Reads and writes until the input ends, the framing is over or the server ends.
    async fn run_io_loop<F, R, W>(
        &mut self,
        framing: &mut F,
        reader: &mut R,
        writer: &mut W,
        ending: ShutdownSignals,
    ) -> io::Result<()>
    where
        F: Framing,
        R: AsyncRead + Unpin + Send,
        W: AsyncWrite + Unpin + Send,
    {
        let (mut sending, mut heartbeats) = (self.outgoing_bytes(), F::HEARTBEAT.map(heartbeat_interval));
        let (mut ends, mut held, mut resume) = (false, false, Instant::now());
        loop {
            self.carry_out_intents().await;
            if ends && !self.connection.is_busy() {
                framing.shut_down();
            }
            sending.send_now(framing, self.connection.outbox(), writer)?;
            if framing.is_closed() {
                return sending.send_all(framing, self.connection.outbox(), writer, FINAL_RESPONSES_TIMEOUT).await;
            }
            let ((free, listens), paused) = (self.capacity(sending.len()), resume > Instant::now());
            if listens && !paused && std::mem::take(&mut held) {
                resume = Instant::now() + self.handle_input(framing).await;
                continue;
            }
            tokio::select! {
                sent = sending.advance(writer), if !sending.is_done() => sent?,
                Some(event) = self.follows.next_event(), if free => self.handle_session_event(event),
                Some(done) = self.work.join_next() => self.handle_finished(done),
                Ok(()) = self.relisted.changed(), if free => self.refresh_catalogs(),
                Some(ask) = self.host_asks.recv(), if free => self.asks.send_request(ask, &mut self.connection),
                call = self.asks.next_abandoned() => self.connection.cancel_host_call(call),
                due = self.reminders.next_due() => self.connection.remind_of_question(due, ReminderForm::Update),
                () = ending.soon.cancelled(), if !ends => ends = true,
                () = ending.now.cancelled() => {
                    framing.shut_down();
                    return sending.send_all(framing, self.connection.outbox(), writer, FINAL_RESPONSES_TIMEOUT).await;
                }
                () = next_heartbeat(&mut heartbeats) => framing.on_heartbeat(self.connection_stage()),
                () = tokio::time::sleep_until(resume), if paused => {}
                read = read_into_framing(reader, framing), if (listens && !paused) || framing.has_capacity() => {
                    if read? == 0 {
                        self.handle_input(framing).await;
                        return self.handle_input_end(framing, sending, writer).await;
                    }
                    if listens && !paused {
                        resume = Instant::now() + self.handle_input(framing).await;
                    } else {
                        framing.answer_control_frames();
                        held = true;
                    }
                }
            }
        }
    }

    fn outgoing_bytes(&self) -> OutgoingBytes {
        OutgoingBytes::with_spool(&self.large_responses.spool)
    }

    /// Whether there is room for entries, and for further requests, while so many bytes are on their way. A client that has
    /// read what it was sent gets the next large answer.
    fn capacity(&mut self, sending: usize) -> (bool, bool) {
        let unsent = sending + self.connection.outbox().bytes().len();
        let free = unsent < MAX_UNSENT;
        if free {
            self.start_whole_session();
        }
        (free, unsent < MAX_UNSENT_RESPONSES && self.work.len() < MAX_CONCURRENT_REQUESTS)
    }

    /// Takes in whole messages, each with all that follows from it, so that commands keep their order. Gives how long
    /// to wait before more is read.
    async fn handle_input(&mut self, framing: &mut impl Framing) -> Duration {
        let mut wait = Duration::ZERO;
        while let Some(piece) = framing.next_message() {
            wait = self.pace.as_ref().map_or(wait, |pace| pace());
            self.handle_message(&piece);
            self.carry_out_intents().await;
        }
        wait
    }

    fn handle_message(&mut self, piece: &InboundMessage<'_>) {
        match piece {
            InboundMessage::Message(message) => self.connection.handle_message(message, &mut SystemIds),
            InboundMessage::TooLong => self.connection.refuse_oversized(),
        }
    }

    /// The input ended, perhaps without an end of its last message.
    async fn handle_input_end<W: AsyncWrite + Unpin>(
        &mut self,
        framing: &mut impl Framing,
        mut sending: OutgoingBytes,
        writer: &mut W,
    ) -> io::Result<()> {
        if let Some(piece) = framing.final_message() {
            self.handle_message(&piece);
        }
        sending.write_all(writer, FINAL_RESPONSES_TIMEOUT).await
    }

    fn connection_stage(&self) -> ConnectionStage {
        if self.connection.abilities().is_some() { ConnectionStage::Known } else { ConnectionStage::Strange }
    }

    /// The client says no more, but it may still read: answers under way are given.
    async fn flush_responses<W: AsyncWrite + Unpin>(
        &mut self,
        framing: &mut impl Framing,
        writer: &mut W,
    ) -> io::Result<()> {
        let deadline = Instant::now() + FINAL_RESPONSES_TIMEOUT;
        let mut sending = self.outgoing_bytes();
        loop {
            self.carry_out_intents().await;
            sending.send_all(framing, self.connection.outbox(), writer, FINAL_RESPONSES_TIMEOUT).await?;
            self.start_whole_session();
            if self.work.only_waits() || framing.is_closed() {
                return writer.shutdown().await;
            }
            match tokio::time::timeout_at(deadline, self.work.join_next()).await {
                Ok(Some(done)) => self.handle_finished(done),
                Ok(None) => {}
                Err(_) => return writer.shutdown().await,
            }
        }
    }
}

/// What is offered if any agent does; a session of one that does not is refused by itself.
fn load_session_of_any(services: &Services) -> LoadSession {
    let manifests = services.agents.manifests();
    match manifests.iter().any(|agent| agent.load_session == LoadSession::Supported) || manifests.is_empty() {
        true => LoadSession::Supported,
        false => LoadSession::Unsupported,
    }
}

fn acp_agent_profile(services: &Services, peer: &ClientPeer) -> AgentProfile {
    let manifest = services.with_accepted_media(&services.agents.default_manifest());
    AgentProfile {
        name: manifest.name.clone(),
        title: manifest.title.clone(),
        version: manifest.version.clone().unwrap_or_else(|| env!("CARGO_PKG_VERSION").to_owned()),
        load_session: load_session_of_any(services),
        image: check::accepts_media_family(&manifest.takes, "image"),
        audio: check::accepts_media_family(&manifest.takes, "audio"),
        mcp_stdio: mcp_servers::may_name_program(services, &peer.caller),
        mcp_http: true,
        setup: peer.program.as_ref().and_then(|program| program.to_str()).map(str::to_owned),
        ..AgentProfile::default()
    }
}
