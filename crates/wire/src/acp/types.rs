//! What passes between a [`Connection`](super::Connection) and the server around it.

use gander_domain::{Command, LoadSession, QuestionId, SessionId, Timestamp};
use serde_json::Value;

use super::acp_options::WhenBusy;
use super::host_calls::{HostAnswer, HostCallError, HostCallId};
use super::schema::McpServer;

/// What this agent says about itself at `initialize`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentProfile {
    /// For programs.
    pub name: String,
    /// For people.
    pub title: String,
    /// Of this build.
    pub version: String,
    /// Pictures are understood.
    pub image: bool,
    /// Sounds are understood.
    pub audio: bool,
    /// MCP servers are started; until they can be, a client that names some is told so.
    pub mcp_stdio: bool,
    /// MCP servers over HTTP can be used.
    pub mcp_http: bool,
    /// MCP servers over SSE can be used.
    pub mcp_sse: bool,
    /// Version 2 of the protocol, a draft, is spoken with clients that ask for it.
    pub v2: bool,
    /// What a prompt does while a turn runs, unless it says so itself.
    pub if_busy: WhenBusy,
    /// Whether earlier sessions can be loaded, resumed, forked and listed.
    pub load_session: LoadSession,
    /// Ways to log in again after a logout; empty: the transport alone decides who comes in.
    pub logins: Vec<LoginMethod>,
    /// The program that asks for a provider's key when it is called with `setup`: for clients that have a terminal.
    pub setup: Option<String>,
}

/// A way to log in. Who may come in was decided by the transport: this only takes a logout back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginMethod {
    /// For programs.
    pub id: String,
    /// For people.
    pub name: String,
}

/// The right and the duty to tell a connection what became of one of its intents.
#[derive(Debug, PartialEq, Eq, Hash)]
#[must_use = "an intent whose ticket is dropped hangs its client"]
pub struct IntentTicket(pub(super) u64);

/// What a client wants of the server.
///
/// Give each [`IntentTicket`] back with the method named in its variant, or with
/// [`Connection::handle_refusal`](super::Connection::handle_refusal).
#[derive(Debug, PartialEq)]
pub enum Intent {
    /// Make a session → `handle_opened`; then feed its entries from the view's head.
    NewSession { ticket: IntentTicket, params: SessionParams },
    /// The client's introduction brings a session along, made with nothing but defaults → `handle_opened`; then feed its
    /// entries from the view's head. A client that introduces itself again under the same name finds the same session.
    FirstSession { ticket: IntentTicket },
    /// Show a session from its beginning → `handle_opened`; then feed its entries **from the first**.
    LoadSession { ticket: IntentTicket, session: SessionId, params: SessionParams },
    /// Go on with a session → `handle_opened`; then feed its entries from the view's head.
    ResumeSession { ticket: IntentTicket, session: SessionId, params: SessionParams },
    /// A request names a session that is not open here → `handle_opened`; then feed its entries from the view's head.
    Attach { ticket: IntentTicket, session: SessionId },
    /// Make a session whose history is this one's up to now, without a turn under way → `handle_opened`; then feed its
    /// entries from the view's head. An absent `cwd` means the same workspace.
    ForkSession { ticket: IntentTicket, session: SessionId, params: SessionParams },
    /// → `handle_listed`.
    ListSessions { ticket: IntentTicket, cwd: Option<String>, cursor: Option<String>, filter: ListFilter },
    /// Is it in use, by whomever? → `handle_status`.
    SessionStatus { ticket: IntentTicket, session: SessionId },
    /// Close it as `CloseSession` does, then put it away → `handle_done`.
    ArchiveSession { ticket: IntentTicket, session: SessionId },
    /// Stop feeding, and cancel if nobody else is attached → `handle_done`.
    CloseSession { ticket: IntentTicket, session: SessionId },
    /// Cancel and delete → `handle_done`.
    DeleteSession { ticket: IntentTicket, session: SessionId },
    /// → `handle_accepted`. Without a ticket nobody waits to hear. The session may be one that is not open here: whether this
    /// client may command it is the server's to check.
    Command { session: SessionId, command: Command, ticket: Option<IntentTicket> },
    /// This client will not answer this question.
    Withdrew { session: SessionId, question: QuestionId, how: Withdrawal },
    /// The client answered a host call, or never will.
    HostReply { call: HostCallId, result: Result<HostAnswer, HostCallError> },
    /// A method of ours (`_gander/…`) → `handle_extension_result`.
    Extension { ticket: IntentTicket, method: String, params: Value },
    /// Stop feeding this session's entries.
    Detach { session: SessionId },
}

/// How a client left a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Withdrawal {
    /// It said `cancelled`: if nobody else is attached, that is the answer.
    Cancelled,
    /// It answered with an error or with nonsense, or it is gone.
    Failed,
}

/// What a client says about a session that it makes or opens.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionParams {
    /// An absolute path that nobody has looked at yet; absent: the server chooses.
    pub cwd: Option<String>,
    /// Further folders, absolute.
    pub folders: Vec<String>,
    /// MCP servers to start for it, in the background.
    pub mcp_servers: Vec<McpServer>,
    /// This session is begun anew under its own id: the id of a session, or a name of the client's own making, which
    /// means the session that was first made under it. If there is none, one is made.
    pub reuse: Option<String>,
    /// The agent that serves it; absent: the server's default.
    pub agent: Option<String>,
    /// To be kept in the session's first entry.
    pub meta: Option<Value>,
}

/// Which sessions are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListFilter {
    /// By whether they were put away.
    pub archived: ArchiveFilter,
    /// Also those that were never prompted: editors make one whenever they start.
    pub unprompted: bool,
}

/// Which sessions are listed, by whether they were put away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ArchiveFilter {
    /// Those that are not put away.
    #[default]
    Exclude,
    /// All.
    Include,
    /// Those that are put away.
    Only,
}

/// Whether a session is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Somebody is attached, or it does something.
    Open,
    /// It is only stored.
    Saved,
}

/// A session in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedSession {
    /// Its id.
    pub session: SessionId,
    /// The folder it works in.
    pub workspace: String,
    /// Further folders.
    pub folders: Vec<String>,
    /// Its title.
    pub title: Option<String>,
    /// When it began.
    pub created_at: Timestamp,
    /// When its last entry was written.
    pub updated_at: Timestamp,
    /// Put away?
    pub archived: bool,
}
