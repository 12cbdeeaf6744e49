//! The values by section, typed: what the rest of the server reads.

use std::net::SocketAddr;

use gander_domain::{Effort, Policy};
use serde::{Deserialize, Serialize};

use super::units::{Bytes, Span};

/// All sections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sections {
    /// Which model.
    pub model: ModelSection,
    /// What may run.
    pub permissions: PermissionsSection,
    /// The native agent.
    pub agent: AgentSection,
    /// Its tools.
    pub tools: ToolsSection,
    /// What happens after a crash.
    pub recovery: RecoverySection,
    /// The background server.
    pub daemon: DaemonSection,
    /// The network.
    pub server: ServerSection,
    /// How much is too much.
    pub limits: Limits,
    /// What is logged.
    pub log: LogSection,
}

/// Which model answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelSection {
    /// `provider/model`; absent: detected.
    pub default: Option<String>,
    /// How hard it thinks.
    pub effort: Option<Effort>,
}

/// What may run unasked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PermissionsSection {
    /// The policy of new sessions.
    pub policy: Policy,
    /// Rules on top of it.
    pub rules: Vec<toml::Value>,
}

/// What the owner sets about the native agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentSection {
    pub max_turns: u32,
    pub retries: u32,
    pub retry_after_ms: u64,
    pub longest_wait_seconds: u64,
    pub max_bad_calls: u32,
    pub compact_at: f64,
    pub window: u64,
    pub max_output: Option<u32>,
    pub max_result_chars: usize,
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
    /// May the network name programs to start?
    pub allow_remote_commands: bool,
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
    /// Requests per token, in the long run.
    pub requests_per_second: u32,
    /// Requests per token, at once.
    pub request_burst: u32,
    /// Wrong tokens per address.
    pub bad_tokens_per_minute: u32,
    /// Connections at once.
    pub connections: usize,
}

/// What is logged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogSection {
    /// A filter such as `info`.
    pub filter: String,
}
