//! Back-ends: whatever runs a session's agent. They hear orders and send reports, nothing else.

use std::sync::Arc;

use async_trait::async_trait;
use gander_domain::{Context, Order, Report, RunId, SessionView};
use gander_tools::Host;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub mod goosed;
pub mod handler;

/// Runs agents. One call of [`Backend::drive`] is one stay of a run: from its start, or from its last answer,
/// until it parks or ends.
#[async_trait]
pub trait Backend: Send + Sync + 'static {
    /// Drives a run until it reported `Parked` or `Ended`, or until the token is cancelled.
    ///
    /// Returning without either is a dead back-end. Everything the run started is stopped when this returns
    /// or is dropped.
    async fn drive(&self, stay: Stay);

    /// A session of this agent began, without a prompt.
    async fn opened(&self, _view: &SessionView) {}

    /// A session of this agent is about to be deleted.
    async fn closing(&self, _view: &SessionView) {}

    /// Names of what the agent itself keeps for a session, beside our artifacts.
    async fn holdings(&self, _view: &SessionView) -> Vec<String> {
        Vec::new()
    }

    /// One of them, if there is one of this name.
    async fn holding(&self, _view: &SessionView, _name: &str) -> Option<Holding> {
        None
    }
}

/// Something that an agent elsewhere keeps for a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holding {
    /// Its media type.
    pub mime: String,
    /// What it says.
    pub text: String,
}

/// What a back-end gets for one stay of a run.
pub struct Stay {
    /// Which run.
    pub run: RunId,
    /// The session, as of the entry that starts this stay.
    pub view: SessionView,
    /// The conversation, as of the same entry.
    pub context: Context,
    /// Whether the log already holds work of this run.
    pub beginning: Beginning,
    /// What the prompting client lends.
    pub lent: Lent,
    /// Orders, in order.
    pub orders: mpsc::Receiver<Order>,
    /// Reports, in order.
    pub reports: mpsc::Sender<Report>,
    /// Stop at once.
    pub stop: CancellationToken,
}

/// Whether a stay is a run's first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// Its first.
    Fresh,
    /// It goes on from what the log says.
    Resumed,
}

/// What the client that prompts a run lends to it, for as long as that client stays.
#[derive(Clone, Default)]
pub struct Lent {
    /// Its files and terminals.
    pub host: Option<Arc<dyn Host>>,
    /// Its provider keys and addresses, by variable name. In memory only.
    pub keys: Option<gander_models::Keys>,
}
