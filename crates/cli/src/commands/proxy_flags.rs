//! What can be said on the command line of `gander proxy`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(super) enum ProxyCommand {
    /// Serve ADK's REST in front of a running goose
    #[command(after_help = "\
Examples:
  GOOSE_SECRET_KEY=… gander proxy adk --goose http://127.0.0.1:3000
  curl --json '{}' http://127.0.0.1:8080/apps/goose/users/me/sessions

Every app name means goose. Which goose session belongs to which ADK session is stored
in the data directory, by default a separate one beside that of `gander serve`.")]
    Adk(AdkProxyOptions),
}

/// Options of `gander proxy adk`.
#[derive(Debug, Args)]
pub(super) struct AdkProxyOptions {
    /// Address of goose: a goosed, a `goose serve` or another gander [environment: GOOSE_BASE_URL; default: http://127.0.0.1:3000]
    #[arg(long, value_name = "URL")]
    pub(super) goose: Option<String>,
    /// File with the X-Secret-Key of goose; `-` is stdin [environment: GOOSE_SECRET_KEY, the key itself]
    #[arg(long, value_name = "FILE")]
    pub(super) secret_key_file: Option<PathBuf>,
    /// Refused: every user of the machine can read a command line
    #[arg(long, value_name = "KEY", hide = true)]
    pub(super) secret_key: Option<String>,
    /// Fingerprint of goose's certificate, as it prints it when it starts [environment: GOOSED_CERT_FINGERPRINT]
    #[arg(long, value_name = "SHA256")]
    pub(super) goose_cert_fingerprint: Option<String>,
    /// Where to listen; a port alone means loopback [environment: LISTEN_ADDR; default: :8080]
    #[arg(long, value_name = "ADDR:PORT")]
    pub(super) listen: Option<String>,
    /// Working directory of goose's sessions [environment: WORKING_DIR; default: .]
    #[arg(long, value_name = "DIR")]
    pub(super) working_dir: Option<String>,
    /// How long goose may send nothing [environment: REQUEST_TIMEOUT; default: 5m]
    #[arg(long, value_name = "TIME")]
    pub(super) timeout: Option<String>,
    /// File with the key that clients must send, as X-API-Key or as a bearer token; `-` is stdin [environment: PROXY_API_KEY, the key itself; default: no key]
    #[arg(long, value_name = "FILE")]
    pub(super) api_key_file: Option<PathBuf>,
    /// Refused: every user of the machine can read a command line
    #[arg(long, value_name = "KEY", hide = true)]
    pub(super) api_key: Option<String>,
    /// Use TLS with a self-signed certificate, and print its fingerprint
    #[arg(long)]
    pub(super) tls_self_signed: bool,
    /// Allow addresses other than loopback without TLS
    #[arg(long)]
    pub(super) insecure_plain: bool,
    /// Protocol of goose [default: detected]
    #[arg(long, value_enum)]
    pub(super) protocol: Option<ProtocolName>,
    /// Let goose continue when a client disconnects
    #[arg(long)]
    pub(super) keep_running: bool,
    /// ADK user who also sees, and may go on with, the sessions that goose has of its own [environment: GOOSE_SESSIONS_USER; default: nobody]
    #[arg(long, value_name = "USER")]
    pub(super) goose_sessions: Option<String>,
}

/// Protocol of goose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ProtocolName {
    /// goosed until 1.39, and gander
    Rest,
    /// `goose serve`
    Acp,
}
