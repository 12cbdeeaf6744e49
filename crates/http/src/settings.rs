//! The settings of the network: where it listens, what each protocol does, how much is too much.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use gander_services::units::{ByteSize, DurationSetting};
use serde::{Deserialize, Serialize};

/// The network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerSection {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Further names in the Host header.
    pub allowed_hosts: Vec<String>,
    /// Further web origins.
    pub allowed_origins: Vec<String>,
    /// Below which folders others than the owner on this machine may choose where a session works.
    pub roots: Vec<PathBuf>,
    /// Where new sessions of an agent work if an ACP-REST, A2A or ADK client names no folder.
    pub workspaces: BTreeMap<String, PathBuf>,
    /// How long a reply that nobody reads goes on.
    pub reply_grace: DurationSetting,
    /// May the network name programs to start?
    pub allow_remote_commands: bool,
    /// Doors that need no token on this machine.
    pub open: Vec<OpenProtocol>,
    /// May they also answer questions there?
    pub open_approve: bool,
    /// Can messages of sessions be read by their address alone?
    pub forward_resources: bool,
    /// Where histories of sessions may be fetched, besides public addresses.
    pub resource_peers: Vec<String>,
}

/// A protocol whose clients may be unable to send a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OpenProtocol {
    /// The Agent Communication Protocol.
    AcpRest,
    /// Agent to Agent.
    A2a,
    /// The Agent Development Kit.
    Adk,
}

impl fmt::Display for OpenProtocol {
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
    pub body: ByteSize,
    /// Body of a request with a prompt.
    pub prompt_body: ByteSize,
    /// Header, all lines.
    pub header_size: ByteSize,
    /// Header lines.
    pub header_lines: usize,
    /// Address of a request.
    pub uri: ByteSize,
    /// Line of a line-delimited protocol.
    pub line: ByteSize,
    /// Time for a header.
    pub header_time: DurationSetting,
    /// Time for a body.
    pub body_time: DurationSetting,
    /// How long an answer waits for a reader that takes nothing of it.
    pub stalled_reader: DurationSetting,
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
    /// Streams and WebSockets per token from elsewhere, at once.
    pub streams: usize,
    /// Streams and WebSockets per token from this machine, at once.
    pub local_streams: usize,
    /// Idle sessions in memory, all together.
    pub idle_sessions: ByteSize,
}
