//! Back-ends: whatever runs a session's agent. They hear orders and send reports, nothing else.

use std::sync::Arc;

use async_trait::async_trait;
use gander_domain::{
    AgentModels, AgentOption, Context, Mode, Order, Principal, Report, Role, RunId, SessionView, SlashCommand,
};
use gander_tools::Host;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub mod a2a;
pub mod acp;
pub mod acp_rest;
pub mod adk;
pub mod goosed;
mod hand_over;
mod orders;
pub mod remote;
mod session_mapping;
mod transcript;

/// Runs agents. One call of [`Backend::drive`] is one back-end run: from its start, or from its last answer,
/// until it parks or ends.
#[async_trait]
pub trait Backend: Send + Sync + 'static {
    /// Drives a run until it reported `Parked` or `Ended`, or until the token is cancelled.
    ///
    /// Returning without either is a dead back-end. Everything the run started is stopped when this returns
    /// or is dropped.
    async fn drive(&self, backend_run: BackendRun);

    /// A session of this agent began, without a prompt.
    async fn session_opened(&self, _view: &SessionView) {}

    /// Has everything ready that a session of this agent needs elsewhere, or says why not.
    async fn prepare_session(&self, _view: &SessionView) -> Result<(), BackendFailure> {
        Ok(())
    }

    /// A session of this agent is about to be deleted.
    async fn session_closing(&self, _view: &SessionView) {}

    /// Slash commands that the agent carries out itself when it is sent them as a prompt.
    async fn list_slash_commands(&self) -> Vec<SlashCommand> {
        Vec::new()
    }

    /// What the agent said it offers, as far as it has said so.
    fn offers(&self) -> Option<Arc<AgentOffers>> {
        None
    }

    /// Names of what the agent itself keeps for a session, beside our artifacts.
    async fn list_remote_files(&self, _view: &SessionView) -> Vec<String> {
        Vec::new()
    }

    /// One of them, if there is one of this name.
    async fn read_remote_file(&self, _view: &SessionView, _name: &str) -> Option<RemoteFile> {
        None
    }

    /// Sessions that the agent itself has and that stand behind none of this owner's.
    async fn list_remote_sessions(&self, _owner: &Principal) -> Result<Vec<RemoteSession>, BackendFailure> {
        Ok(Vec::new())
    }

    /// Puts one of them behind a session of ours, and gives what was said in it so far.
    async fn adopt_remote_session(&self, _view: &SessionView, id: &str) -> Result<Vec<(Role, String)>, BackendFailure> {
        Err(BackendFailure { reason: "not_found".to_owned(), message: format!("the agent has no such session: {id}") })
    }

    /// The tools that the agent has in a session.
    async fn list_remote_tools(&self, _view: &SessionView) -> Vec<RemoteTool> {
        Vec::new()
    }
}

/// A session that an agent elsewhere has of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteSession {
    /// As the agent calls it.
    pub id: String,
    pub title: Option<String>,
}

/// A tool of an agent elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct RemoteTool {
    pub name: String,
    pub description: String,
    /// JSON Schema of its arguments, as far as the agent tells it.
    pub parameters: Value,
}

/// What an agent said it offers: known once it was started for the first time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentOffers {
    /// Counts the changes.
    pub generation: u64,
    /// Its modes, the one of new sessions first.
    pub modes: Vec<Mode>,
    pub models: AgentModels,
    /// Its config options, besides mode and model.
    pub options: Vec<AgentOption>,
    pub commands: Vec<SlashCommand>,
}

/// Something that an agent elsewhere keeps for a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteFile {
    /// Its media type.
    pub mime: String,
    pub content: RemoteContent,
}

/// What is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteContent {
    /// Text.
    Text(String),
    /// Anything else, in base64.
    Base64(String),
}

/// Why an agent elsewhere is not ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendFailure {
    /// One word for programs, as in the outcome of a run.
    pub reason: String,
    /// For people.
    pub message: String,
}

/// What a back-end gets for one start of a run.
pub struct BackendRun {
    /// Which run.
    pub run: RunId,
    /// The session, as of the entry that starts the back-end.
    pub view: SessionView,
    /// The conversation, as of the same entry.
    pub context: Context,
    /// Whether the log already holds work of this run.
    pub start: RunStart,
    /// What the prompting client lends.
    pub client_resources: ClientResources,
    /// Orders, in order.
    pub orders: mpsc::Receiver<Order>,
    /// Reports, in order.
    pub reports: mpsc::Sender<Report>,
    /// Stop at once.
    pub stop: CancellationToken,
}

/// Whether a back-end starts for the first time in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStart {
    /// Its first.
    Fresh,
    /// It goes on from what the log says.
    Resumed,
}

/// What the client that prompts a run lends to it, for as long as that client stays.
#[derive(Clone, Default)]
pub struct ClientResources {
    /// Its files and terminals.
    pub host: Option<Arc<dyn Host>>,
    /// Its provider keys and addresses, by variable name. In memory only.
    pub keys: Option<gander_models::Keys>,
}
