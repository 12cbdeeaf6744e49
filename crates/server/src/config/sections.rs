//! The values by section, typed: what the rest of the server reads.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use gander_agent::permission::Rule;
use gander_agent::{AgentSettings, tools};
use gander_domain::{Effort, Policy};
use serde::{Deserialize, Serialize};

use super::units::{Bytes, Span};
use crate::door::acp::Manner;
use crate::schedules::Missed;

/// All sections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sections {
    /// Which model.
    pub model: ModelSection,
    /// What may run.
    pub permissions: PermissionsSection,
    /// The native agent.
    pub agent: AgentSettings,
    /// Its tools.
    pub tools: ToolsSection,
    /// Fences around commands and programs.
    pub sandbox: SandboxSection,
    /// What happens after a crash.
    pub recovery: RecoverySection,
    /// What runs by the clock.
    pub schedules: SchedulesSection,
    /// The background server.
    pub daemon: DaemonSection,
    /// How ACP clients are spoken to.
    pub acp: Manner,
    /// The network.
    pub server: ServerSection,
    /// The A2A door.
    pub a2a: A2aSection,
    /// The ADK door.
    pub adk: AdkSection,
    /// How much is too much.
    pub limits: Limits,
    /// What is logged.
    pub log: LogSection,
    /// The owner's own model providers, in the form of the built-in list.
    #[serde(default)]
    pub providers: toml::Table,
}

/// Which model answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelSection {
    /// `provider/model`; absent: detected.
    pub default: Option<String>,
    /// For modes that want a quick one.
    #[serde(default)]
    pub fast: Option<String>,
    /// For modes that want a good one.
    #[serde(default)]
    pub strong: Option<String>,
    /// How hard it thinks.
    pub effort: Option<Effort>,
}

/// What may run unasked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PermissionsSection {
    /// The policy of new sessions.
    pub policy: Policy,
    /// Rules on top of it.
    pub rules: Vec<Rule>,
}

/// How much tools may take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolsSection {
    /// How long a command may take.
    pub command_time: Span,
    /// How long it may take at most.
    pub longest_command_time: Span,
    /// How much of its output is kept.
    pub command_output: Bytes,
    /// How much text a tool gives back.
    pub result: Bytes,
    /// How long a fetch may take.
    pub fetch_time: Span,
    /// How much of a page is read.
    pub fetch_size: Bytes,
}

impl ToolsSection {
    /// The limits that tools work with.
    pub fn limits(&self) -> tools::Limits {
        tools::Limits {
            command: self.command_time.0,
            longest_command: self.longest_command_time.0,
            output: self.command_output.len(),
            result: self.result.len(),
            fetch: self.fetch_time.0,
            page: self.fetch_size.len(),
            ..tools::Limits::default()
        }
    }
}

/// Fences around commands and programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxSection {
    /// Are there any?
    pub enabled: bool,
    /// With bubblewrap, where it works?
    pub bubblewrap: bool,
    /// Do commands find the network without asking?
    pub network: bool,
    /// Do programs of MCP servers?
    pub server_network: bool,
    /// Further folders that can be read.
    pub readable: Vec<PathBuf>,
    /// Further folders that can be written.
    pub writable: Vec<PathBuf>,
    /// How much memory each process may write; 0: as much as there is.
    pub memory: Bytes,
    /// How many processes and threads a command may have; 0: any number.
    pub processes: u64,
}

/// What happens after a crash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoverySection {
    /// Go on or give up.
    pub on_restart: OnRestart,
    /// Older runs are failed.
    pub max_age: Span,
    /// More often is failed.
    pub max_times: u32,
}

/// Go on with an open run, or give it up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnRestart {
    /// Go on where that is safe.
    Resume,
    /// End it as failed.
    Fail,
}

/// What runs by the clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchedulesSection {
    /// The time zone of whoever names none; absent: the machine's.
    #[serde(default)]
    pub zone: Option<String>,
    /// What happens to a time at which no server ran.
    pub missed: Missed,
}

/// The background server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonSection {
    /// How long it stays for nobody.
    pub idle: Span,
}

/// The network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerSection {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Further names in the Host header.
    pub allowed_hosts: Vec<String>,
    /// Further web origins.
    pub allowed_origins: Vec<String>,
    /// How long a reply that nobody reads goes on.
    pub reply_grace: Span,
    /// May the network name programs to start?
    pub allow_remote_commands: bool,
    /// Doors that need no token on this machine.
    pub open: Vec<Door>,
    /// Can messages of sessions be read by their address alone?
    pub forward_resources: bool,
    /// Where histories of sessions may be fetched, besides public addresses.
    pub resource_peers: Vec<String>,
    /// Are there agents for checking clients?
    pub conformance_agents: bool,
}

/// The A2A door.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct A2aSection {
    /// The agent behind `/a2a`; absent: the first.
    #[serde(default)]
    pub agent: Option<String>,
    /// The address that cards name; absent: the one that the caller used.
    #[serde(default)]
    pub public_url: Option<String>,
    /// Do cards speak to clients of 0.3 too?
    pub v03: bool,
    /// Is gRPC spoken, and on the cards?
    pub grpc: bool,
    /// Receivers of push notifications in private networks.
    pub push_allow: Vec<String>,
    /// Are cards signed?
    pub sign: bool,
    /// The file of the key that signs them; absent: one of our own making.
    #[serde(default)]
    pub signing_key: Option<String>,
}

/// The ADK door.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdkSection {
    /// Under which user sessions of other doors are seen.
    pub user: String,
    /// What happens to a run whose client leaves.
    pub on_leave: OnLeave,
    /// Pieces that come within this time are sent as one.
    pub join: Span,
    /// The folder of an installed web page.
    #[serde(default)]
    pub ui: Option<PathBuf>,
    /// As adk2goose did: a first run makes its session, and a turn's last event says that it is over. No setting.
    #[serde(skip)]
    pub like_adk2goose: bool,
}

/// What happens to a run whose client leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnLeave {
    /// It goes on.
    Continue,
    /// It is cancelled.
    Cancel,
}

/// A protocol whose clients may be unable to send a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Door {
    /// The Agent Communication Protocol.
    AcpRest,
    /// Agent to Agent.
    A2a,
    /// The Agent Development Kit.
    Adk,
}

impl fmt::Display for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AcpRest => "acp-rest",
            Self::A2a => "a2a",
            Self::Adk => "adk",
        })
    }
}

/// How much is too much.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Body of a request.
    pub body: Bytes,
    /// Body of a request with a prompt.
    pub prompt_body: Bytes,
    /// Header, all lines.
    pub header_size: Bytes,
    /// Header lines.
    pub header_lines: usize,
    /// Address of a request.
    pub uri: Bytes,
    /// Line of a line-delimited protocol.
    pub line: Bytes,
    /// Time for a header.
    pub header_time: Span,
    /// Time for a body.
    pub body_time: Span,
    /// Requests per token from elsewhere, in the long run.
    pub requests_per_second: u32,
    /// Requests per token from elsewhere, at once.
    pub request_burst: u32,
    /// Requests per token from this machine, in the long run.
    pub local_requests_per_second: u32,
    /// Requests per token from this machine, at once.
    pub local_request_burst: u32,
    /// Wrong tokens per address.
    pub bad_tokens_per_minute: u32,
    /// Connections at once.
    pub connections: usize,
    /// Streams and WebSockets per token, at once.
    pub streams: usize,
}

/// What is logged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogSection {
    /// A filter such as `info`.
    pub filter: String,
}
