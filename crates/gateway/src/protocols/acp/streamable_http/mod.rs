//! Streamable HTTP: connections that outlive their requests, and the server's restarts.

mod connection;
mod journal;
mod open_stream;
mod sse_pipe;
mod streams;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use gander_domain::SessionId;
use gander_wire::acp::Dialect;
use gander_wire::jsonrpc::RequestId;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use self::connection::{Actor, Origin};
pub use self::sse_pipe::Events;
use super::Client;
use crate::sse::EventId;
use gander_domain::authorize::Denied;
use gander_domain::caller::Caller;
use gander_services::Services;
use gander_wire::acp::AcpOptions;

/// Requests that may wait for one connection.
const MAILBOX: usize = 64;

/// A message whose effects take longer is accepted all the same.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often connections that nobody uses any more are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(10 * 60);

/// Connections at once.
const MOST: usize = 1_000;

/// All connections over HTTP.
pub struct Connections {
    desk: Arc<Services>,
    defaults: AcpOptions,
    known: Mutex<HashMap<Uuid, mpsc::Sender<Ask>>>,
}

/// What a request asks of its connection.
enum Ask {
    Post { caller: Caller, post: Post, reply: oneshot::Sender<Posted> },
    Open { caller: Caller, open: Open, reply: oneshot::Sender<Opened> },
    Close { caller: Caller, reply: oneshot::Sender<Closed> },
}

/// A message of the client.
#[derive(Clone, Debug)]
pub struct Post {
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
}

/// How a request says which connection it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addressed {
    /// By the connection's id.
    Connection,
    /// By a session's id alone, as clients of paper 000 do: it is the id of their connection too.
    Session,
}

/// What became of a message.
#[derive(Debug)]
pub enum Posted {
    /// It is being carried out; answers come on the streams.
    Accepted,
    /// It is being carried out, and this is where its answer comes.
    Answered(oneshot::Receiver<Vec<u8>>),
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
}

/// A stream that a client wants to read.
pub struct Open {
    /// Whose; the connection's own if absent.
    pub session: Option<SessionId>,
    /// What the client has.
    pub from: From,
    /// Cancelled when streams end.
    pub stop: CancellationToken,
}

/// What a client has of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// What it was given.
    Wherever,
    /// A session's stream up to here.
    Event(EventId),
    /// The connection's own stream up to here.
    Number(u64),
}

/// What became of the wish to read.
pub type Opened = Result<Events, Unopened>;

/// Why a stream is not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unopened {
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
pub enum Closed {
    /// It is over.
    Over,
    /// There is no such connection.
    Unknown,
}

/// A connection that was just made, or why it was not.
#[derive(Debug, PartialEq, Eq)]
pub enum Made {
    /// Its id, and the answer to `initialize`.
    Connection(Uuid, Vec<u8>),
    /// The client did not introduce itself well: the answer.
    Refused(Vec<u8>),
    /// It is no message: the error to answer with.
    Malformed(Vec<u8>),
    /// There are too many.
    Full,
}

impl Connections {
    /// Connections of clients that are spoken to like this unless they ask for something else.
    pub fn new(desk: Arc<Services>, defaults: AcpOptions) -> Arc<Self> {
        Arc::new(Self { desk, defaults, known: Mutex::default() })
    }

    /// How clients are spoken to that ask for nothing else.
    pub fn defaults(&self) -> AcpOptions {
        self.defaults
    }

    /// Forgets connections that nobody uses any more, now and then, until the server ends.
    pub fn sweep(self: &Arc<Self>, ending: CancellationToken) {
        let store = Arc::clone(self.desk.hub.store());
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    () = tokio::time::sleep(SWEEP_EVERY) => {}
                    () = ending.cancelled() => return,
                }
                if let Err(error) = journal::forget_old(&*store).await {
                    tracing::warn!(%error, "old connections are not forgotten");
                }
            }
        });
    }

    /// Makes a connection with a client's `initialize`.
    pub async fn make(self: &Arc<Self>, identity: &Caller, manner: AcpOptions, initialize: Bytes) -> Made {
        self.make_under(Uuid::now_v7(), identity, manner.or(self.defaults), initialize).await
    }

    async fn make_under(self: &Arc<Self>, id: Uuid, identity: &Caller, manner: AcpOptions, initialize: Bytes) -> Made {
        let mut client = Client::from_network(Arc::clone(&self.desk), identity.clone(), manner).named(id);
        let (outcome, answer) = connection::introduce(&mut client, &initialize).await;
        match outcome {
            connection::Introduced::Known => {}
            connection::Introduced::Unknown => return Made::Refused(answer),
            connection::Introduced::Malformed => return Made::Malformed(answer),
        }
        let origin = Origin::Fresh { client: Box::new(client), initialize };
        match self.start(id, origin).await {
            true => Made::Connection(id, answer),
            false => Made::Full,
        }
    }

    /// Hands over a message. A session that is named alone gets a connection under its own id.
    pub async fn post(self: &Arc<Self>, id: Uuid, identity: &Caller, post: Post) -> Posted {
        let posted = self.hand_over(id, identity, post.clone()).await;
        let lost = matches!(posted, Posted::Unknown) && post.by == Addressed::Session;
        if lost && self.adopt(id, identity).await { self.hand_over(id, identity, post).await } else { posted }
    }

    async fn hand_over(self: &Arc<Self>, id: Uuid, identity: &Caller, post: Post) -> Posted {
        let (reply, answer) = oneshot::channel();
        self.ask(id, Ask::Post { caller: identity.clone(), post, reply }).await;
        match tokio::time::timeout(PATIENCE, answer).await {
            Ok(posted) => posted.unwrap_or(Posted::Unknown),
            Err(_) => Posted::Accepted,
        }
    }

    /// Opens a stream.
    pub async fn open(self: &Arc<Self>, id: Uuid, identity: &Caller, open: Open) -> Opened {
        let (reply, answer) = oneshot::channel();
        self.ask(id, Ask::Open { caller: identity.clone(), open, reply }).await;
        answer.await.unwrap_or(Err(Unopened::Unknown))
    }

    /// Ends a connection for good. Its runs go on.
    pub async fn close(self: &Arc<Self>, id: Uuid, identity: &Caller) -> Closed {
        let (reply, answer) = oneshot::channel();
        self.ask(id, Ask::Close { caller: identity.clone(), reply }).await;
        answer.await.unwrap_or(Closed::Unknown)
    }

    /// Makes a connection for a session that the client has from before, perhaps from another connection.
    async fn adopt(self: &Arc<Self>, id: Uuid, identity: &Caller) -> bool {
        let known = self.desk.hub.view_for(SessionId::new(id), &identity.principal).await.is_ok();
        let manner = AcpOptions { dialect: Some(Dialect::Goosed), ..self.defaults };
        let initialize = Bytes::from_static(br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#);
        known && matches!(self.make_under(id, identity, manner, initialize).await, Made::Connection(..))
    }

    async fn start(self: &Arc<Self>, id: Uuid, origin: Origin) -> bool {
        let (sender, mailbox) = mpsc::channel(MAILBOX);
        {
            let mut known = self.lock();
            if known.len() >= MOST {
                return false;
            }
            known.insert(id, sender);
        }
        let (ready, started) = oneshot::channel();
        tokio::spawn(Actor::run(Arc::clone(self), id, origin, mailbox, ready));
        started.await.is_ok()
    }

    /// Hands something to a connection. One that is not here may be known from before.
    async fn ask(self: &Arc<Self>, id: Uuid, ask: Ask) {
        let mailbox = self.lock().get(&id).cloned();
        let mailbox = match mailbox {
            Some(mailbox) => mailbox,
            None => self.restore(id),
        };
        drop(mailbox.send(ask).await); // whoever asked sees that there is no answer
    }

    /// Begins to look for a connection of before. Two who ask at once find the same one.
    fn restore(self: &Arc<Self>, id: Uuid) -> mpsc::Sender<Ask> {
        let mut known = self.lock();
        if let Some(mailbox) = known.get(&id) {
            return mailbox.clone();
        }
        let (sender, mailbox) = mpsc::channel(MAILBOX);
        if known.len() < MOST {
            known.insert(id, sender.clone());
            let (ready, _) = oneshot::channel();
            tokio::spawn(Actor::run(Arc::clone(self), id, Origin::Stored, mailbox, ready));
        }
        sender
    }

    /// Takes a connection off the list, unless something waits for it. No new ask can come in between.
    fn retire(&self, id: Uuid, mailbox: &mut mpsc::Receiver<Ask>) -> bool {
        let mut known = self.lock();
        if !mailbox.is_empty() {
            return false;
        }
        mailbox.close();
        known.remove(&id);
        true
    }

    /// A panic while the lock was held leaves nothing half done here.
    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, mpsc::Sender<Ask>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ask {
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
