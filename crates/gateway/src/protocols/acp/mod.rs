//! The Agent Client Protocol: one client, whatever carries its messages.

mod acp_client;
mod artifact_methods;
mod client_methods;
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

use gander_domain::SessionId;
use gander_http::LargeResponses;
use gander_http::websocket::WebSocketFrames;
use gander_wire::acp::Connection;
use gander_wire::jsonrpc::Lines;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};

pub use self::acp_client::ShutdownSignals;
use self::host_calls::{HostCalls, HostRequest};
use self::reminders::Reminders;
pub use self::state::{AcpProtocol, AcpState};
pub use self::streamable_http::{
    Addressed, CloseOutcome, ConnectionHolder, Connections, CreateOutcome, OpenError, OpenOutcome, OpenRequest,
    PostOutcome, PostedMessage, ResumeFrom, SsePipeReader,
};
use self::subscriptions::Subscriptions;
use self::tasks::IntentTasks;
use self::whole_sessions::WholeSessionRequests;
use crate::ClientPeer;
use gander_domain::authorize::Denied;
use gander_domain::caller::Caller;
use gander_services::Services;
use gander_store::DeltaForm;
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
