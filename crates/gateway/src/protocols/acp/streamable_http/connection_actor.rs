//! One connection over HTTP: the same client as over any other transport, its messages handed to streams.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gander_domain::caller::{Caller, Protocol};
use gander_domain::{Entry, Event, Seq, SessionId};
use gander_http::sse::StreamPosition;
use gander_store::clock::SystemIds;
use gander_store::{DeltaForm, StoreError};
use gander_wire::acp::Dialect;
use gander_wire::jsonrpc::MessageOrigin;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinError;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::early_answers::EarlyAnswer;
use super::journal::{ConnectionFact, ConnectionJournal, ConnectionStart};
use super::streams::{ClientStreams, RECONNECT_TIMEOUT};
use super::{
    Addressed, CloseOutcome, ConnectionRequest, Connections, OpenRequest, PostOutcome, PostedMessage, ResumeFrom,
    SsePipeReader,
};
use crate::protocols::acp::intents::FinishedIntent;
use crate::protocols::acp::sessions::initial_acp_session;
use crate::protocols::acp::subscriptions::{Attendance, SessionEvent};
use crate::protocols::acp::{AcpClient, MAX_CONCURRENT_REQUESTS, MAX_UNSENT};

/// Without a reader and a request for so long, a connection leaves memory; it is known for longer.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// How often that is looked at.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_secs(15);

/// Text that is joined into one message at most, so that the message is never cut: an id then names all of it.
const MAX_JOINED_TEXT: usize = 8 * 1024;

/// Where a connection comes from.
pub(super) enum ConnectionOrigin {
    /// It was just made.
    Fresh { client: Box<AcpClient>, initialize: Bytes },
    /// It may be known from before.
    Stored,
}

/// How a client introduced itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InitializeOutcome {
    Known,
    Unknown,
    Malformed,
}

/// A message that is answered when the tasks that it began, by their numbers, are done.
struct PendingPost {
    tasks: Range<u64>,
    reply: oneshot::Sender<PostOutcome>,
}

/// One connection.
pub(super) struct ConnectionActor {
    pub(super) client: AcpClient,
    pub(super) record: ConnectionJournal,
    pub(super) lanes: ClientStreams,
    /// Something was read, or will never be.
    pub(super) read: Arc<Notify>,
    /// Messages that are answered when what they began is done.
    posts: Vec<PendingPost>,
    /// Answers whose questions the connection does not know yet.
    pub(super) early_answers: Vec<EarlyAnswer>,
    used: Instant,
    /// The id of a session that the client may begin: the same as the connection's.
    reserved: SessionId,
    /// The words that are on record.
    spoken: Dialect,
    /// Answers that hold whole sessions, by the stream that has to tell them.
    pub(super) unread_whole: Vec<(Option<SessionId>, u64)>,
}

/// Takes in `initialize` and gives the answer, which may have to wait for a session.
pub(super) async fn initialize_connection(client: &mut AcpClient, initialize: &[u8]) -> (InitializeOutcome, Vec<u8>) {
    client.connection.handle_message(initialize, &mut SystemIds);
    client.carry_out_intents().await;
    // Only the answer is waited for: what else begins with a session goes on beside it.
    while client.connection.outbox().is_empty()
        && let Some(done) = client.work.join_next().await
    {
        client.handle_finished(done);
        client.carry_out_intents().await;
    }
    let malformed = client.connection.counters().malformed > 0;
    let introduced = match (client.connection.abilities(), malformed) {
        (Some(_), _) => InitializeOutcome::Known,
        (None, true) => InitializeOutcome::Malformed,
        (None, false) => InitializeOutcome::Unknown,
    };
    (introduced, drain_connection_outbox(client))
}

impl ConnectionActor {
    /// Serves the connection until nobody uses it, or it is closed.
    pub(super) async fn run(
        connections: Arc<Connections>,
        id: Uuid,
        origin: ConnectionOrigin,
        mut mailbox: mpsc::Receiver<ConnectionRequest>,
        ready: oneshot::Sender<()>,
    ) {
        let mut actor = match Self::start(&connections, id, origin).await {
            Ok(Some(actor)) => actor,
            Ok(None) => {
                connections.lock().remove(&id);
                return; // whoever waits in the mailbox is told by the dropped reply
            }
            Err(error) => {
                tracing::error!(%error, "no connection");
                connections.lock().remove(&id);
                mailbox.close();
                // A connection that cannot be read now is not an unknown one: its client would give it up.
                while let Some(request) = mailbox.recv().await {
                    request.refuse_unavailable();
                }
                return;
            }
        };
        ready.send(()).ok(); // whoever restores does not wait
        actor.run_loop(&connections, id, &mut mailbox).await;
        actor.client.disconnect().await;
    }

    /// `None` if the connection is unknown.
    async fn start(connections: &Connections, id: Uuid, origin: ConnectionOrigin) -> Result<Option<Self>, StoreError> {
        let store = Arc::clone(connections.services.hub.store());
        let (client, record) = match origin {
            ConnectionOrigin::Fresh { client, initialize } => {
                let mut record = ConnectionJournal::new(store, id);
                let Ok(initialize) = String::from_utf8(initialize.into()) else { return Ok(None) };
                let (principal, options) = (client.peer.caller.principal.clone(), client.peer.options);
                let began = ConnectionFact::Began { principal, options, initialize };
                record.append(&[began]).await?;
                (*client, record)
            }
            ConnectionOrigin::Stored => match ConnectionJournal::find_connection(store, id).await? {
                Some((record, began)) => (restore_connection_client(connections, id, began).await, record),
                None => return Ok(None),
            },
        };
        let mut lanes = ClientStreams::default();
        lanes.own.had = StreamPosition { answer: record.last, ..StreamPosition::default() };
        let spoken = client.connection.dialect();
        let mut actor = Self {
            client,
            record,
            lanes,
            read: Arc::default(),
            posts: Vec::new(),
            early_answers: Vec::new(),
            used: Instant::now(),
            reserved: SessionId::new(id),
            spoken,
            unread_whole: Vec::new(),
        };
        let reserved = actor.reserved;
        if let Some(head) = actor.client.connection.view(reserved).map(|view| view.head) {
            actor.handle_opened(reserved, head).await; // the introduction brought it along
        }
        actor.restart_loads().await;
        Ok(Some(actor))
    }

    async fn run_loop(&mut self, connections: &Connections, id: Uuid, mailbox: &mut mpsc::Receiver<ConnectionRequest>) {
        let mut looks = tokio::time::interval(IDLE_CHECK_INTERVAL);
        let read = Arc::clone(&self.read);
        loop {
            self.client.carry_out_intents().await;
            self.handle_early_answers().await;
            self.flush_messages().await;
            self.replay_due_messages().await;
            self.accept_posts();
            self.resume_subscriptions();
            self.update_attendance();
            self.start_next_whole_session();
            tokio::select! {
            Some(ask) = mailbox.recv(), if self.client.work.len() < MAX_CONCURRENT_REQUESTS => {
            if self.handle_request(ask).await.is_break() {
            connections.lock().remove(&id);
            return;
            }
            }
            Some(event) = self.client.follows.next_event() => self.handle_session_event(event),
            Some(done) = self.client.work.join_next() => self.handle_finished(done).await,
            Ok(()) = self.client.relisted.changed() => self.client.refresh_catalogs(),
            Some(ask) = self.client.host_asks.recv() => self.call_host(ask),
            call = self.client.asks.next_abandoned() => {
            self.client.connection.outbox().set_origin(MessageOrigin::default());
            self.client.connection.cancel_host_call(call);
            }
            due = self.client.reminders.next_due() => {
            self.client.connection.remind_of_question(due, self.lanes.reminder_form());
            }
            () = read.notified() => self.lanes.drop_gone_readers(),
            _ = looks.tick() => {
            if self.is_unused().await && connections.retire_connection(id, mailbox) {
            return;
            }
            }
            }
        }
    }

    /// What a message itself began is done: it is stored that it came. Others' tasks may take as long as they like.
    fn accept_posts(&mut self) {
        let work = &self.client.work;
        for post in self.posts.extract_if(.., |post| work.are_done(&post.tasks)) {
            drop(post.reply.send(PostOutcome::Accepted));
        }
    }

    /// A client counts as attached while it asks, reads or is about to come back, not for as long as it is remembered.
    fn update_attendance(&mut self) {
        let asks = self.used.elapsed() < RECONNECT_TIMEOUT || self.lanes.has_body_waiter();
        for (session, stream) in &self.lanes.sessions {
            let attendance = if asks || stream.expects_reader() { Attendance::Here } else { Attendance::Away };
            self.client.follows.set_attendance(*session, attendance);
        }
    }

    fn handle_session_event(&mut self, event: SessionEvent) {
        let SessionEvent { session, mut follower, batch } = event;
        let Self { client, lanes, .. } = self;
        let stream = lanes.sessions.get(&session);
        let known = stream.map_or(0, |stream| stream.known.seq);
        let due = stream.and_then(|stream| stream.due.front()).map(|kept| kept.after.0);
        match batch {
            Ok(Some(batch)) => {
                for entries in
                    batch.entry_slices().flat_map(|entries| split_entries(entries, [known, due.unwrap_or(0)]))
                {
                    client.connection.handle_entries(session, entries);
                    let last = entries.last().filter(|last| {
                        client.connection.outbox().bytes().len() >= MAX_UNSENT
                            || due.is_some_and(|due| due <= last.seq.0)
                    });
                    // What does not fit, or comes after a message that the log does not hold, is read again from the log.
                    if let Some(last) = last {
                        follower = client.services.hub.follow_session(session, last.seq, DeltaForm::Exact);
                        break;
                    }
                }
                match lanes.sessions.get_mut(&session) {
                    Some(stream) if client.connection.is_attached(session) => stream.paused = Some(follower),
                    Some(_) | None => client.follows.unsubscribe(session),
                }
            }
            Ok(None) | Err(StoreError::Closed) => {
                self.client.close_lost_session(session);
                self.detach_closed_sessions();
            }
            Err(error) => {
                self.client.close_broken_session(session, &error);
                self.detach_closed_sessions();
            }
        }
    }

    async fn handle_request(&mut self, ask: ConnectionRequest) -> ControlFlow<()> {
        self.used = Instant::now();
        if ask.caller().principal != self.client.peer.caller.principal {
            return ControlFlow::Continue(()); // another's connection is as unknown as none
        }
        // What a request does is done with the authority of its own token, not of the one that made the connection.
        self.client.peer.caller = ask.caller().clone();
        if let Err(error) = self.record.record_use().await {
            tracing::error!(%error, "a sign of life is not kept");
        }
        match ask {
            ConnectionRequest::Post { post, reply, .. } => self.handle_post(post, reply).await,
            ConnectionRequest::Open { open, reply, .. } => drop(reply.send(self.handle_open(open).await)),
            ConnectionRequest::Close { reply, .. } => {
                if let Err(error) = self.record.delete().await {
                    tracing::error!(%error, "a connection is not forgotten");
                    reply.send(CloseOutcome::Unavailable).ok(); // it would be there again after a restart
                    return ControlFlow::Continue(());
                }
                reply.send(CloseOutcome::Over).ok();
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    pub(super) async fn carry_out_post(&mut self, post: PostedMessage, reply: oneshot::Sender<PostOutcome>) {
        let PostedMessage { message, request, answers, by, named, session, events } = post;
        if by == Addressed::Session && !self.adopt_legacy_session().await {
            drop(reply.send(PostOutcome::UnknownSession));
            return;
        }
        if let Some(session) = named
            && session != self.reserved
            && !self.lanes.sessions.contains_key(&session)
            && !self.client.owns_session(session).await
        {
            drop(reply.send(PostOutcome::UnknownSession));
            return;
        }
        if let Some(answered) = answers {
            let asked_in = self.client.connection.session_of_question(&answered);
            let named = named.filter(|named| *named != self.reserved);
            if asked_in.zip(named).is_some_and(|(asked_in, named)| asked_in != named) {
                drop(reply.send(PostOutcome::OtherSession));
                return;
            }
        }
        if let Some(session) = named.filter(|session| *session != self.reserved) {
            self.client.connection.set_current_session(session);
        }
        let malformed = self.client.connection.counters().malformed;
        // What earlier events asked for is no part of what this message begins.
        self.client.carry_out_intents().await;
        let first_task = self.client.work.next_number();
        self.client.connection.handle_message(&message, &mut SystemIds);
        if self.client.connection.counters().malformed > malformed {
            drop(reply.send(PostOutcome::Malformed(drain_connection_outbox(&mut self.client))));
            return;
        }
        self.record_dialect().await;
        self.client.denied = None;
        self.client.carry_out_intents().await;
        if request.is_none() {
            // An answer has no answer of its own: only its response can say that it does not count.
            if let Some(denied) = self.client.denied.take() {
                drop(reply.send(PostOutcome::Denied(denied)));
                return;
            }
        }
        match request {
            Some(id) if self.spoken == Dialect::Goosed => {
                let events = match events {
                    Some(stop) => self.open_for_request(session.or(named).unwrap_or(self.reserved), stop).await,
                    None => None,
                };
                drop(reply.send(PostOutcome::Answered(self.lanes.answer_in_body(id), events)));
            }
            request => {
                self.lanes.asked.extend(request.zip(session));
                self.posts.push(PendingPost { tasks: first_task..self.client.work.next_number(), reply });
            }
        }
    }

    /// What happens in a session from now on, for the response to a request. If somebody reads that already, it is told
    /// there.
    async fn open_for_request(&mut self, session: SessionId, stop: CancellationToken) -> Option<SsePipeReader> {
        self.handle_open(OpenRequest { session: Some(session), from: ResumeFrom::Now, stop }).await.ok()
    }

    /// Whoever names a session alone speaks the legacy dialect of goose's unified server, and finds a session behind the id.
    async fn adopt_legacy_session(&mut self) -> bool {
        if self.client.connection.dialect() == Dialect::Goosed {
            return true;
        }
        let found =
            initial_acp_session(Arc::clone(&self.client.services), self.client.peer.clone(), Some(self.reserved)).await;
        self.client.connection.set_dialect(Dialect::Goosed);
        self.client.connection.set_current_session(self.reserved);
        found.is_ok()
    }

    /// In which words the client is spoken to survives a restart.
    async fn record_dialect(&mut self) {
        let dialect = self.client.connection.dialect();
        if std::mem::replace(&mut self.spoken, dialect) != dialect
            && let Err(error) = self.record.append(&[ConnectionFact::Speaks { dialect }]).await
        {
            tracing::error!(%error, "a dialect is not kept");
        }
    }

    async fn handle_finished(&mut self, done: Result<FinishedIntent, JoinError>) {
        let opened = match &done {
            Ok(FinishedIntent::Opened { result: Ok((view, after)), .. }) => Some((view.session, *after)),
            Ok(_) | Err(_) => None,
        };
        self.client.handle_finished(done);
        if let Some((session, after)) = opened {
            self.handle_opened(session, after).await;
        }
        self.detach_closed_sessions();
    }

    /// A session is open now, from this place on.
    async fn handle_opened(&mut self, session: SessionId, after: Seq) {
        let answer = self.record.last;
        let stream = self.lanes.sessions.entry(session).or_default();
        let was_attached = std::mem::replace(&mut stream.attached, true);
        stream.paused = None;
        if after == Seq::ZERO {
            stream.set_position(StreamPosition { seq: 0, index: 0, answer: answer + 1 });
            let request = self.client.connection.pending_load(session).map(|request| serde_json::json!(request));
            if let Err(error) = self.record.append(&[ConnectionFact::Loads { n: answer + 1, session, request }]).await {
                tracing::error!(%error, "a load is not kept");
            }
        } else if was_attached {
            // The stream goes on where it was, however far the session has come.
            let given = stream.given;
            if self.replay_from(session, given).await.is_err() {
                self.client.close_lost_session(session);
            }
        } else {
            stream.set_position(StreamPosition { seq: after.0, index: u32::MAX, answer });
        }
    }

    /// Sessions that are not open here any more are not followed.
    fn detach_closed_sessions(&mut self) {
        for (session, stream) in &mut self.lanes.sessions {
            stream.attached &= self.client.connection.is_attached(*session);
        }
    }

    async fn is_unused(&mut self) -> bool {
        self.lanes.drop_gone_readers();
        let used = self.lanes.has_reader();
        if used {
            self.used = Instant::now();
            if let Err(error) = self.record.record_use().await {
                tracing::error!(%error, "a sign of life is not kept");
            }
        }
        !used && self.used.elapsed() > IDLE_TIMEOUT && !self.client.connection.is_busy() && self.client.work.is_empty()
    }

    fn call_host(&mut self, ask: crate::protocols::acp::host_calls::HostRequest) {
        match self.lanes.sessions.get(&ask.session()) {
            Some(stream) if stream.has_reader() => self.client.asks.send_request(ask, &mut self.client.connection),
            Some(_) | None => ask.fail_unreachable(),
        }
    }
}

/// A client as it introduced itself before.
async fn restore_connection_client(connections: &Connections, id: Uuid, began: ConnectionStart) -> AcpClient {
    let ConnectionStart { principal, options, initialize } = began;
    // The request that brought it back says what may be done.
    let nobody = Caller { protocol: Protocol::Acp, ..Caller::internal(principal).without_scopes() };
    let mut client = connections.new_client(nobody, options, id);
    initialize_connection(&mut client, initialize.as_bytes()).await;
    client
}

/// Everything the client has to be told, as one message.
fn drain_connection_outbox(client: &mut AcpClient) -> Vec<u8> {
    let outbox = client.connection.outbox();
    let bytes = outbox.bytes().trim_ascii_end().to_vec();
    outbox.clear();
    bytes
}

/// Cuts entries so that the text of each piece fits into one message, and none reaches over these places.
pub(super) fn split_entries(entries: &[Entry], places: [u64; 2]) -> impl Iterator<Item = &[Entry]> {
    let mut text = 0;
    entries.chunk_by(move |entry, next| {
        text += connection_delta_len(entry);
        let joins = text + connection_delta_len(next) <= MAX_JOINED_TEXT && !places.contains(&entry.seq.0);
        if !joins {
            text = 0;
        }
        joins
    })
}

fn connection_delta_len(entry: &Entry) -> usize {
    if let Event::PartDelta { text, .. } = &entry.event { text.len() } else { 0 }
}

impl AcpClient {
    /// The same client, with a name in the log, fed entry by entry.
    pub(super) fn with_log_name(mut self, id: Uuid) -> Self {
        self.connection = self.connection.with_log_name(id.to_string());
        self.form = DeltaForm::Exact;
        self.reserved = Some(SessionId::new(id));
        self
    }
}
