//! Streamable HTTP: connections that outlive their requests, and the server's restarts.

mod connection_actor;
mod delivery;
mod early_answers;
mod envelope;
mod holder;
mod journal;
mod open_stream;
mod sse_pipe;
mod streams;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use gander_domain::SessionId;
use gander_http::LargeResponses;
use gander_http::sse::EventId;
use gander_wire::acp::Dialect;
use gander_wire::jsonrpc::RequestId;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use self::connection_actor::{ConnectionActor, ConnectionOrigin};
pub use self::holder::ConnectionHolder;
use self::holder::LivingNodes;
pub use self::sse_pipe::SsePipeReader;
use super::AcpClient;
use gander_domain::authorize::Denied;
use gander_domain::caller::Caller;
use gander_services::Services;
use gander_wire::acp::AcpOptions;

/// Requests that may wait for one connection.
const MAILBOX_CAPACITY: usize = 64;

/// A message whose effects take longer is accepted all the same.
const POST_TIMEOUT: Duration = Duration::from_secs(2);

/// How often connections that nobody uses any more are looked for.
const SWEEP_INTERVAL: Duration = Duration::from_secs(10 * 60);

/// Connections at once.
const MAX_CONNECTIONS: usize = 1_000;

/// All connections over HTTP.
pub struct Connections {
    services: Arc<Services>,
    large_responses: Arc<LargeResponses>,
    defaults: AcpOptions,
    known: Mutex<HashMap<Uuid, mpsc::Sender<ConnectionRequest>>>,
    nodes: Mutex<LivingNodes>,
}

/// What a request asks of its connection.
enum ConnectionRequest {
    Post { caller: Caller, post: PostedMessage, reply: oneshot::Sender<PostOutcome> },
    Open { caller: Caller, open: OpenRequest, reply: oneshot::Sender<OpenOutcome> },
    Close { caller: Caller, reply: oneshot::Sender<CloseOutcome> },
}

/// A message of the client.
#[derive(Clone, Debug)]
pub struct PostedMessage {
    /// The message.
    pub message: Bytes,
    /// Its id, if it is a request.
    pub request: Option<RequestId>,
    /// The id that it answers, if it is an answer.
    pub answers: Option<RequestId>,
    /// How it says which connection it belongs to.
    pub by: Addressed,
    /// The session that its transport names: it must be known.
    pub named: Option<SessionId>,
    /// The session it is about.
    pub session: Option<SessionId>,
    /// Its sender reads what happens in the session in the response, until this is cancelled.
    pub events: Option<CancellationToken>,
}

/// How a request says which connection it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addressed {
    /// By the connection's id.
    Connection,
    /// By a session's id alone, as clients of the legacy goose dialect do: it is the id of their connection too.
    Session,
}

/// What became of a message.
#[derive(Debug)]
pub enum PostOutcome {
    /// It is being carried out; answers come on the streams.
    Accepted,
    /// It is being carried out, and this is where its answer comes, after these events if they were asked for.
    Answered(oneshot::Receiver<Vec<u8>>, Option<SsePipeReader>),
    /// It is none: the error to answer with.
    Malformed(Vec<u8>),
    /// It is an answer that the caller may not give.
    Denied(Denied),
    /// There is no such session.
    UnknownSession,
    /// It answers a question of another session than the one that it names.
    OtherSession,
    /// There is no such connection.
    Unknown,
    /// The store failed or is busy: the same message may be sent again later.
    Unavailable,
}

/// A stream that a client wants to read.
pub struct OpenRequest {
    /// Whose; the connection's own if absent.
    pub session: Option<SessionId>,
    /// What the client has.
    pub from: ResumeFrom,
    /// Cancelled when streams end.
    pub stop: CancellationToken,
}

/// What a client has of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResumeFrom {
    /// What it was given.
    Wherever,
    /// Everything up to now.
    Now,
    /// A session's stream up to here.
    Event(EventId),
    /// The connection's own stream up to here.
    Number(u64),
}

/// What became of the wish to read.
pub type OpenOutcome = Result<SsePipeReader, OpenError>;

/// Why a stream is not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// There is no such connection, or no such session.
    Unknown,
    /// Somebody reads it.
    Taken,
    /// The place is none of this log.
    Truncated,
    /// The store failed.
    Failed,
}

/// What became of the wish to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseOutcome {
    /// It is over.
    Over,
    /// There is no such connection.
    Unknown,
    /// The store failed or is busy: the connection is still there.
    Unavailable,
}

/// A connection that was just made, or why it was not.
#[derive(Debug, PartialEq, Eq)]
pub enum CreateOutcome {
    /// Its id, and the answer to `initialize`.
    Connection(Uuid, Vec<u8>),
    /// The client did not introduce itself well: the answer.
    Refused(Vec<u8>),
    /// It is no message: the error to answer with.
    Malformed(Vec<u8>),
    /// There are too many.
    Full,
    /// It cannot be stored now, and a connection that is not stored would not survive a restart.
    Unavailable,
}

impl Connections {
    /// Connections of clients that are spoken to like this unless they ask for something else.
    pub fn new(services: Arc<Services>, large_responses: Arc<LargeResponses>, defaults: AcpOptions) -> Arc<Self> {
        Arc::new(Self { services, large_responses, defaults, known: Mutex::default(), nodes: Mutex::default() })
    }

    /// How clients are spoken to that ask for nothing else.
    pub fn defaults(&self) -> AcpOptions {
        self.defaults
    }

    /// Forgets connections that nobody uses any more, now and then, until the server ends.
    pub fn spawn_sweeper(self: &Arc<Self>, ending: CancellationToken) {
        let store = Arc::clone(self.services.hub.store());
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    () = tokio::time::sleep(SWEEP_INTERVAL) => {}
                    () = ending.cancelled() => return,
                }
                if let Err(error) = journal::delete_expired_journals(&*store).await {
                    tracing::warn!(%error, "old connections are not forgotten");
                }
            }
        });
    }

    /// Makes a connection with a client's `initialize`.
    pub async fn create(self: &Arc<Self>, caller: &Caller, options: AcpOptions, initialize: Bytes) -> CreateOutcome {
        self.create_with_id(Uuid::now_v7(), caller, options.or_default(self.defaults), initialize).await
    }

    async fn create_with_id(
        self: &Arc<Self>,
        id: Uuid,
        caller: &Caller,
        options: AcpOptions,
        initialize: Bytes,
    ) -> CreateOutcome {
        let mut client = self.new_client(caller.clone(), options, id);
        let (outcome, answer) = connection_actor::initialize_connection(&mut client, &initialize).await;
        match outcome {
            connection_actor::InitializeOutcome::Known => {}
            connection_actor::InitializeOutcome::Unknown => return CreateOutcome::Refused(answer),
            connection_actor::InitializeOutcome::Malformed => return CreateOutcome::Malformed(answer),
        }
        let origin = ConnectionOrigin::Fresh { client: Box::new(client), initialize };
        match self.spawn_connection(id, origin).await {
            SpawnOutcome::Ready => {
                self.note_held(id).await;
                CreateOutcome::Connection(id, answer)
            }
            SpawnOutcome::Full => CreateOutcome::Full,
            SpawnOutcome::Unavailable => CreateOutcome::Unavailable,
        }
    }

    /// A client that has no requests of its own yet.
    fn new_client(&self, caller: Caller, options: AcpOptions, id: Uuid) -> AcpClient {
        let (services, large_responses) = (Arc::clone(&self.services), Arc::clone(&self.large_responses));
        AcpClient::from_network(services, large_responses, caller, options).with_log_name(id)
    }

    /// Hands over a message. A session that is named alone gets a connection under its own id.
    pub async fn post_message(self: &Arc<Self>, id: Uuid, caller: &Caller, post: PostedMessage) -> PostOutcome {
        let posted = self.forward_message(id, caller, post.clone()).await;
        let lost = matches!(posted, PostOutcome::Unknown) && post.by == Addressed::Session;
        if !lost {
            return posted;
        }
        match self.adopt_session(id, caller).await {
            Some(CreateOutcome::Connection(..)) => self.forward_message(id, caller, post).await,
            Some(CreateOutcome::Unavailable) => PostOutcome::Unavailable,
            Some(CreateOutcome::Refused(_) | CreateOutcome::Malformed(_) | CreateOutcome::Full) | None => posted,
        }
    }

    async fn forward_message(self: &Arc<Self>, id: Uuid, caller: &Caller, post: PostedMessage) -> PostOutcome {
        let (reply, answer) = oneshot::channel();
        self.send_request(id, ConnectionRequest::Post { caller: caller.clone(), post, reply }).await;
        match tokio::time::timeout(POST_TIMEOUT, answer).await {
            Ok(posted) => posted.unwrap_or(PostOutcome::Unknown),
            Err(_) => PostOutcome::Accepted,
        }
    }

    /// Opens a stream. A session that is named alone gets a connection under its own id.
    pub async fn open_stream(
        self: &Arc<Self>,
        id: Uuid,
        by: Addressed,
        caller: &Caller,
        open: OpenRequest,
    ) -> OpenOutcome {
        let (session, from, stop) = (open.session, open.from, open.stop.clone());
        let opened = self.forward_open(id, caller, open).await;
        let lost = matches!(opened, Err(OpenError::Unknown)) && by == Addressed::Session;
        if !lost {
            return opened;
        }
        match self.adopt_session(id, caller).await {
            Some(CreateOutcome::Connection(..)) => {
                self.forward_open(id, caller, OpenRequest { session, from, stop }).await
            }
            Some(CreateOutcome::Unavailable) => Err(OpenError::Failed),
            Some(CreateOutcome::Refused(_) | CreateOutcome::Malformed(_) | CreateOutcome::Full) | None => opened,
        }
    }

    async fn forward_open(self: &Arc<Self>, id: Uuid, caller: &Caller, open: OpenRequest) -> OpenOutcome {
        let (reply, answer) = oneshot::channel();
        self.send_request(id, ConnectionRequest::Open { caller: caller.clone(), open, reply }).await;
        answer.await.unwrap_or(Err(OpenError::Unknown))
    }

    /// Ends a connection for good. Its runs go on.
    pub async fn close_connection(self: &Arc<Self>, id: Uuid, caller: &Caller) -> CloseOutcome {
        let (reply, answer) = oneshot::channel();
        self.send_request(id, ConnectionRequest::Close { caller: caller.clone(), reply }).await;
        answer.await.unwrap_or(CloseOutcome::Unknown)
    }

    /// Makes a connection for a session that the client has from before, perhaps from another connection.
    ///
    /// `None` if there is no such session of this caller.
    async fn adopt_session(self: &Arc<Self>, id: Uuid, caller: &Caller) -> Option<CreateOutcome> {
        self.services.sessions.view(caller, SessionId::new(id)).await.ok()?;
        let options = AcpOptions { dialect: Some(Dialect::Goosed), ..self.defaults };
        let initialize = Bytes::from_static(br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#);
        Some(self.create_with_id(id, caller, options, initialize).await)
    }

    async fn spawn_connection(self: &Arc<Self>, id: Uuid, origin: ConnectionOrigin) -> SpawnOutcome {
        let (sender, mailbox) = mpsc::channel(MAILBOX_CAPACITY);
        {
            let mut known = self.lock();
            if known.len() >= MAX_CONNECTIONS {
                return SpawnOutcome::Full;
            }
            known.insert(id, sender);
        }
        let (ready, started) = oneshot::channel();
        tokio::spawn(ConnectionActor::run(Arc::clone(self), id, origin, mailbox, ready));
        if started.await.is_ok() { SpawnOutcome::Ready } else { SpawnOutcome::Unavailable }
    }

    /// Hands something to a connection. One that is not here may be known from before.
    async fn send_request(self: &Arc<Self>, id: Uuid, ask: ConnectionRequest) {
        let mailbox = self.lock().get(&id).cloned();
        let mailbox = match mailbox {
            Some(mailbox) => mailbox,
            None => self.restore_connection(id),
        };
        // Its task may have ended between being found and being asked: then the next one is asked.
        if let Err(mpsc::error::SendError(ask)) = mailbox.send(ask).await {
            drop(self.restore_connection(id).send(ask).await); // whoever asked sees that there is no answer
        }
    }

    /// Begins to look for a connection of before. Two who ask at once find the same one.
    fn restore_connection(self: &Arc<Self>, id: Uuid) -> mpsc::Sender<ConnectionRequest> {
        let mut known = self.lock();
        if let Some(mailbox) = known.get(&id) {
            return mailbox.clone();
        }
        let (sender, mailbox) = mpsc::channel(MAILBOX_CAPACITY);
        if known.len() < MAX_CONNECTIONS {
            known.insert(id, sender.clone());
            let (ready, _) = oneshot::channel();
            tokio::spawn(ConnectionActor::run(Arc::clone(self), id, ConnectionOrigin::Stored, mailbox, ready));
        }
        sender
    }

    /// Takes a connection off the list, unless something waits for it. No new ask can come in between. Under the same id
    /// there may be another one by now, made while this one looked in vain for what was stored: that one stays.
    fn retire_connection(&self, id: Uuid, mailbox: &mut mpsc::Receiver<ConnectionRequest>) -> bool {
        let mut known = self.lock();
        if !mailbox.is_empty() {
            return false;
        }
        mailbox.close();
        if known.get(&id).is_some_and(mpsc::Sender::is_closed) {
            known.remove(&id);
        }
        true
    }

    /// A panic while the lock was held leaves nothing half done here.
    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, mpsc::Sender<ConnectionRequest>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What became of a connection's task.
enum SpawnOutcome {
    Ready,
    Full,
    Unavailable,
}

impl ConnectionRequest {
    /// Tells whoever asked to come back later.
    fn refuse_unavailable(self) {
        match self {
            Self::Post { reply, .. } => drop(reply.send(PostOutcome::Unavailable)),
            Self::Open { reply, .. } => drop(reply.send(Err(OpenError::Failed))),
            Self::Close { reply, .. } => drop(reply.send(CloseOutcome::Unavailable).ok()),
        }
    }

    fn caller(&self) -> &Caller {
        match self {
            Self::Post { caller, .. } | Self::Open { caller, .. } | Self::Close { caller, .. } => caller,
        }
    }
}

impl std::fmt::Debug for Connections {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connections").field("known", &self.lock().len()).finish_non_exhaustive()
    }
}
