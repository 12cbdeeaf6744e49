//! The Agent Client Protocol: one client, whatever carries its messages.

mod artifact_methods;
mod client_methods;
mod driver;
mod error;
mod gander_methods;
mod host_calls;
mod intents;
mod linked_files;
mod mcp_servers;
mod reminders;
pub(crate) mod routes;
mod session_list;
mod session_overview;
mod sessions;
mod state;
mod streamable_http;
mod subscriptions;
mod tasks;
mod whole_sessions;

use std::sync::Arc;
use std::time::Duration;

use gander_domain::{LoadSession, SessionId};
use gander_http::LargeResponses;
use gander_http::websocket::WebSocketFrames;
use gander_wire::acp::{AgentProfile, Connection};
use gander_wire::check;
use gander_wire::jsonrpc::Lines;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};

pub use self::driver::ShutdownSignals;
use self::host_calls::{HostCalls, HostRequest};
use self::reminders::Reminders;
pub use self::state::{AcpProtocol, AcpState};
pub use self::streamable_http::{
    Addressed, CloseOutcome, Connections, CreateOutcome, OpenError, OpenOutcome, OpenRequest, PostOutcome,
    PostedMessage, ResumeFrom, SsePipeReader,
};
use self::subscriptions::{SessionEvent, Subscriptions};
use self::tasks::IntentTasks;
use self::whole_sessions::WholeSessionRequests;
use crate::ClientPeer;
use gander_domain::authorize::Denied;
use gander_domain::caller::Caller;
use gander_services::Services;
use gander_store::{DeltaForm, StoreError};
pub use gander_wire::acp::AcpOptions;

/// While more than this waits to be written, nothing new is asked for: entries stay in the log, input in its pipe.
const MAX_UNSENT: usize = 16 * 1024;

/// Requests of one client that are being carried out at once.
const MAX_CONCURRENT_REQUESTS: usize = 128;

/// Calls to a client's editor that wait to be sent.
const HOST_CALL_CAPACITY: usize = 32;

/// Serves a client of this machine, one message a line, until it is gone. Its runs go on.
pub async fn serve_acp_lines<R, W>(
    services: Arc<Services>,
    large_responses: Arc<LargeResponses>,
    reader: R,
    writer: W,
    peer: ClientPeer,
) where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    let lines = Lines::with_limit(services.max_line_bytes);
    AcpClient::new(services, large_responses, peer).run(lines, reader, writer, ShutdownSignals::default()).await;
}

/// Serves a client over a WebSocket until it is gone. Its runs go on.
pub async fn serve_acp_websocket<S>(
    services: Arc<Services>,
    large_responses: Arc<LargeResponses>,
    stream: S,
    caller: &Caller,
    options: AcpOptions,
    pace: MessagePacer,
    ending: ShutdownSignals,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let (reader, writer) = tokio::io::split(stream);
    let mut client = AcpClient::from_network(services, large_responses, caller.clone(), options);
    client.pace = Some(pace);
    client.run(WebSocketFrames::default(), reader, writer, ending).await;
}

/// Counts a message, and says how long the next one has to wait.
pub type MessagePacer = Arc<dyn Fn() -> Duration + Send + Sync>;

/// One client's connection and what is under way for it.
struct AcpClient {
    services: Arc<Services>,
    peer: ClientPeer,
    connection: Connection,
    follows: Subscriptions,
    work: IntentTasks,
    large_responses: Arc<LargeResponses>,
    /// Requests whose answers hold a whole session.
    whole_sessions: WholeSessionRequests,
    asks: HostCalls,
    host_asks: mpsc::Receiver<HostRequest>,
    host_sender: mpsc::Sender<HostRequest>,
    /// How long each message keeps the next one waiting, where messages are counted.
    pace: Option<MessagePacer>,
    /// Why the last answer of this client did not count, for transports that can say so.
    denied: Option<Denied>,
    /// Says when what can be chosen is not what it was.
    relisted: watch::Receiver<()>,
    /// How a session's entries are read.
    form: DeltaForm,
    /// The id of the session that an introduction brings along, if it is not to be a new one each time.
    reserved: Option<SessionId>,
    /// Questions that nobody may have seen.
    reminders: Reminders,
}

impl AcpClient {
    fn new(services: Arc<Services>, large_responses: Arc<LargeResponses>, peer: ClientPeer) -> Self {
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

    fn from_network(
        services: Arc<Services>,
        large_responses: Arc<LargeResponses>,
        caller: Caller,
        options: AcpOptions,
    ) -> Self {
        Self::new(services, large_responses, ClientPeer { options, ..ClientPeer::new(caller) })
    }

    /// True if this client may use the session. Another's is as unknown as none.
    async fn owns_session(&mut self, session: SessionId) -> bool {
        sessions::find_own_acp_session(&self.services, &self.peer, session).await.is_ok()
    }

    /// A session is no more. If the server ends, it only seems so.
    fn close_lost_session(&mut self, session: SessionId) {
        self.follows.unsubscribe(session);
        if !self.services.hub.is_draining() {
            self.connection.handle_session_gone(session);
        }
    }

    /// The log of a session can be written or read no further.
    fn close_broken_session(&mut self, session: SessionId, error: &StoreError) {
        tracing::warn!(%session, %error, "a session is not followed any further");
        self.follows.unsubscribe(session);
        self.connection.handle_session_broken(session, &gander_services::errors::service_error_from_store(error));
    }

    /// Carries out what the client wants.
    async fn carry_out_intents(&mut self) {
        while let Some(intent) = self.connection.poll_intent() {
            self.carry_out_intent(intent).await;
        }
        while let Some((session, question)) = self.connection.poll_asked() {
            self.reminders.schedule(session, question);
        }
    }

    /// Tells the client what happened in a session.
    fn handle_session_event(&mut self, event: SessionEvent) {
        let SessionEvent { session, follower, batch } = event;
        match batch {
            Ok(Some(batch)) => {
                batch.entry_slices().for_each(|entries| self.connection.handle_entries(session, entries));
                if self.connection.is_attached(session) {
                    self.follows.resume(session, follower);
                }
            }
            Ok(None) => self.close_lost_session(session),
            Err(error) => self.close_broken_session(session, &error),
        }
    }

    /// Agents or modes came or went: what can be chosen is told anew in each open session.
    fn refresh_catalogs(&mut self) {
        for session in self.follows.session_ids() {
            if let Some(folder) = self.connection.view(session).map(|view| view.workspace.clone()) {
                self.connection.handle_catalog_changed(session, (self.services.catalog)(&folder));
            }
        }
    }

    /// What the client was asked fails, what it watched is let go. Its runs go on.
    async fn disconnect(mut self) {
        self.follows.unsubscribe_all();
        self.connection.handle_disconnect();
        self.carry_out_intents().await;
        self.asks.fail_all();
    }

    fn attach_session(&mut self, session: SessionId, after: gander_domain::Seq) {
        if let Some(name) = self.connection.client_name() {
            self.follows.set_name(name);
        }
        self.follows.subscribe(session, self.services.hub.follow_session(session, after, self.form));
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
        ..AgentProfile::default()
    }
}
