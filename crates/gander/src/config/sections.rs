//! The values by section, typed: what the rest of the server reads.

use std::path::PathBuf;
use std::time::Duration;

use gander_agent::AgentSettings;
use gander_domain::{Effort, Policy};
use gander_gateway::protocols::a2a::A2aSection;
use gander_gateway::protocols::adk::AdkSection;
use gander_http::settings::{Limits, ServerSection};
use gander_services::audit::{AuditSinks, SyslogAddress};
use gander_services::oidc::OidcSection;
use gander_services::schedules::MissedRuns;
use gander_services::telemetry::{OtelSection, OtlpAddress, OtlpClient};
use gander_services::units::{ByteSize, DurationSetting};
use gander_tools::permission::Rule;
use gander_wire::acp::AcpOptions;
use serde::{Deserialize, Serialize};

use super::cluster::ClusterSection;
use super::store::StoreSection;

/// All sections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sections {
    /// Which model.
    pub model: ModelSection,
    /// What may run.
    pub permissions: PermissionsSection,
    /// What is known of sessions that are gone.
    pub audit: AuditSection,
    /// Who may come in, besides those with a local token.
    pub auth: AuthSection,
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
    pub acp: AcpOptions,
    /// The network.
    pub server: ServerSection,
    /// The A2A door.
    pub a2a: A2aSection,
    /// The ADK door.
    pub adk: AdkSection,
    /// How much is too much.
    pub limits: Limits,
    /// Where sessions are kept.
    pub store: StoreSection,
    /// This server among others.
    pub cluster: ClusterSection,
    /// What is logged.
    pub log: LogSection,
    /// Where traces go.
    pub otel: OtelSection,
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
    /// How long a question waits before the stream of a client that may not show it speaks of it.
    pub remind_after: DurationSetting,
}

/// What is known of sessions that are gone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditSection {
    /// How long the actions of a deleted session are kept, without their content.
    pub keep: DurationSetting,
    /// A file that everything is appended to as it happens.
    #[serde(default)]
    pub file: Option<PathBuf>,
    /// A syslog that it is sent to.
    #[serde(default)]
    pub syslog: Option<SyslogAddress>,
    /// A collector for OpenTelemetry that it is sent to.
    #[serde(default)]
    pub otel: Option<OtlpAddress>,
}

impl AuditSection {
    /// Where the trail goes as it grows.
    pub fn sinks(&self, collector: Option<OtlpClient>) -> AuditSinks {
        AuditSinks { file: self.file.clone(), syslog: self.syslog.clone(), collector }
    }
}

/// Who may come in, besides those with a local token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthSection {
    /// An identity provider.
    pub oidc: OidcSection,
}

impl PermissionsSection {
    /// How long a question waits before a stream speaks of it; `None`: for ever.
    pub fn reminder_delay(&self) -> Option<Duration> {
        Some(self.remind_after.0).filter(|time| !time.is_zero())
    }
}

/// How much tools may take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolsSection {
    /// How long a command may take.
    pub command_time: DurationSetting,
    /// How long it may take at most.
    pub longest_command_time: DurationSetting,
    /// How much of its output is kept.
    pub command_output: ByteSize,
    /// How much text a tool gives back.
    pub result: ByteSize,
    /// How long a fetch may take.
    pub fetch_time: DurationSetting,
    /// How much of a page is read.
    pub fetch_size: ByteSize,
}

impl ToolsSection {
    /// The limits that tools work with.
    pub fn limits(&self) -> gander_tools::Limits {
        gander_tools::Limits {
            command: self.command_time.0,
            longest_command: self.longest_command_time.0,
            output: self.command_output.len(),
            result: self.result.len(),
            fetch: self.fetch_time.0,
            page: self.fetch_size.len(),
            ..gander_tools::Limits::default()
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
    pub memory: ByteSize,
    /// How many processes and threads a command may have; 0: any number.
    pub processes: u64,
}

/// What happens after a crash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoverySection {
    /// Go on or give up.
    pub on_restart: OnRestart,
    /// Older runs are failed.
    pub max_age: DurationSetting,
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
    pub missed: MissedRuns,
}

/// The background server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonSection {
    /// How long it stays for nobody.
    pub idle: DurationSetting,
}

/// What is logged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogSection {
    /// A filter such as `info`.
    pub filter: String,
}
