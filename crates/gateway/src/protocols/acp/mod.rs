//! The Agent Client Protocol: one client, whatever carries its messages.

mod driver;
mod gander_methods;
mod host_calls;
mod intents;
mod linked_files;
mod mcp_servers;
pub(crate) mod routes;
mod session_list;
mod sessions;
mod state;
mod streamable_http;
mod subscriptions;

use std::sync::Arc;
use std::time::Duration;

use gander_domain::SessionId;
use gander_wire::acp::{Connection, Profile};
use gander_wire::check;
use gander_wire::jsonrpc::Lines;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

pub use self::driver::Ending;
use self::host_calls::{Asks, HostAsk};
use self::intents::Done;
pub use self::state::AcpState;
pub use self::streamable_http::{
    Addressed, Closed, Connections, Events, From, Made, Open, Opened, Post, Posted, Unopened,
};
use self::subscriptions::{Follows, News};
use crate::Peer;
use crate::websocket::Frames;
use gander_domain::authorize::Denied;
use gander_domain::caller::Caller;
use gander_services::Services;
use gander_store::{Form, StoreError};
pub use gander_wire::acp::AcpOptions;

/// While more than this waits to be written, nothing new is asked for: entries stay in the log, input in its pipe.
const UNSENT: usize = 16 * 1024;

/// Requests of one client that are being carried out at once.
const AT_ONCE: usize = 128;

/// Calls to a client's editor that wait to be sent.
const HOST_CALLS: usize = 32;

/// Serves a client of this machine, one message a line, until it is gone. Its runs go on.
pub async fn serve<R, W>(desk: Arc<Services>, reader: R, writer: W, peer: Peer)
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    let lines = Lines::with_limit(desk.longest_line);
    Client::new(desk, peer).drive(lines, reader, writer, Ending::default()).await;
}

/// Serves a client over a WebSocket until it is gone. Its runs go on.
pub async fn serve_websocket<S>(
    desk: Arc<Services>,
    stream: S,
    identity: &Caller,
    manner: AcpOptions,
    pace: Pace,
    ending: Ending,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let (reader, writer) = tokio::io::split(stream);
    let mut client = Client::from_network(desk, identity.clone(), manner);
    client.pace = Some(pace);
    client.drive(Frames::default(), reader, writer, ending).await;
}

/// Counts a message, and says how long the next one has to wait.
pub type Pace = Arc<dyn Fn() -> Duration + Send + Sync>;

/// One client's connection and what is under way for it.
struct Client {
    desk: Arc<Services>,
    peer: Peer,
    connection: Connection,
    follows: Follows,
    work: JoinSet<Done>,
    asks: Asks,
    host_asks: mpsc::Receiver<HostAsk>,
    host_sender: mpsc::Sender<HostAsk>,
    /// How long each message keeps the next one waiting, where messages are counted.
    pace: Option<Pace>,
    /// Why the last answer of this client did not count, for transports that can say so.
    denied: Option<Denied>,
    /// Says when what can be chosen is not what it was.
    relisted: watch::Receiver<()>,
    /// How a session's entries are read.
    form: Form,
    /// The id of the session that an introduction brings along, if it is not to be a new one each time.
    reserved: Option<SessionId>,
}

impl Client {
    fn new(desk: Arc<Services>, peer: Peer) -> Self {
        let (host_sender, host_asks) = mpsc::channel(HOST_CALLS);
        let AcpOptions { dialect, v2 } = peer.manner;
        let connection = Connection::new(Profile { v2, ..profile(&desk, &peer) }, peer.caller.principal.clone());
        let connection = match dialect {
            Some(dialect) => connection.speaking(dialect),
            None => connection,
        };
        Self {
            follows: Follows::new(Arc::clone(&desk.clients)),
            relisted: desk.agents.changes(),
            desk,
            peer,
            connection,
            work: JoinSet::new(),
            asks: Asks::default(),
            host_asks,
            host_sender,
            pace: None,
            denied: None,
            form: Form::Joined,
            reserved: None,
        }
    }

    fn from_network(desk: Arc<Services>, caller: Caller, manner: AcpOptions) -> Self {
        Self::new(desk, Peer { manner, ..Peer::new(caller) })
    }

    /// True if this client may use the session. Another's is as unknown as none.
    async fn owns(&mut self, session: SessionId) -> bool {
        intents::own(&self.desk, &self.peer, session).await.is_ok()
    }

    /// A session is no more. If the server ends, it only seems so.
    fn lose(&mut self, session: SessionId) {
        self.follows.remove(session);
        if !self.desk.hub.is_draining() {
            self.connection.gone(session);
        }
    }

    /// The log of a session can be written or read no further.
    fn broken(&mut self, session: SessionId, error: &StoreError) {
        self.follows.remove(session);
        self.connection.broken(session, &gander_services::errors::unavailable(error));
    }

    /// Carries out what the client wants.
    async fn settle(&mut self) {
        while let Some(intent) = self.connection.poll() {
            self.carry_out(intent).await;
        }
    }

    /// Tells the client what happened in a session.
    fn hear(&mut self, news: News) {
        let News { session, follower, batch } = news;
        match batch {
            Ok(Some(batch)) => {
                batch.pieces().for_each(|entries| self.connection.entries(session, entries));
                if self.connection.is_attached(session) {
                    self.follows.go_on(session, follower);
                }
            }
            Ok(None) => self.lose(session),
            Err(error) => self.broken(session, &error),
        }
    }

    /// Agents or modes came or went: what can be chosen is told anew in each open session.
    fn relist(&mut self) {
        for session in self.follows.sessions() {
            if let Some(folder) = self.connection.view(session).map(|view| view.workspace.clone()) {
                self.connection.catalog_changed(session, (self.desk.catalog)(&folder));
            }
        }
    }

    /// What the client was asked fails, what it watched is let go. Its runs go on.
    async fn leave(mut self) {
        self.follows.clear();
        self.connection.disconnected();
        self.settle().await;
        self.asks.clear();
    }

    fn attach(&mut self, session: SessionId, after: gander_domain::Seq) {
        self.follows.add(session, self.desk.hub.follow(session, after, self.form));
    }
}

fn profile(desk: &Services, peer: &Peer) -> Profile {
    let manifest = desk.agents.default_manifest();
    Profile {
        name: manifest.name.clone(),
        title: manifest.title.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        image: check::takes_any(&manifest.takes, "image"),
        audio: check::takes_any(&manifest.takes, "audio"),
        mcp_stdio: mcp_servers::may_start(desk, &peer.caller),
        mcp_http: true,
        ..Profile::default()
    }
}
