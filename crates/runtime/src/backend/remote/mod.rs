//! Agents behind other servers that answer by HTTP: one driver for A2A, ACP-REST and ADK, whose turns are machines in `wire`.

mod http_client;
mod remote_run;

use std::sync::Arc;

use async_trait::async_trait;
use gander_domain::{AgentManifest, Message, Outcome, Part, Report, RunId, SessionView};
use gander_store::Store;
use gander_wire::remote::RemoteTurn;

pub use self::http_client::{RemoteEndpoint, RemoteError, RemoteHttp};
use self::remote_run::RemoteRun;
use super::hand_over::{HandOver, HistoryForm, Opened, hand_over_prompt_parts};
use super::orders::wait_for_cancel_order;
use super::session_mapping::{RemoteIds, SessionMapping};
use super::{Backend, BackendRun, RunStart};

/// What a protocol needs to begin a turn.
#[async_trait]
pub trait RemoteProtocol: Send + Sync + 'static {
    /// Under this kind the ids of the servers' sessions are kept.
    const ALIAS_KIND: &'static str;

    /// True if a new session takes what was said before as messages.
    const TAKES_HISTORY: bool;

    /// A turn in the session that the server knows, or in a new one.
    async fn begin_turn(&self, prompt: RemotePrompt<'_>) -> Result<BegunTurn, RemoteError>;
}

/// What an agent is asked.
pub struct RemotePrompt<'a> {
    pub run: RunId,
    /// The server's id of the session; absent: there is none yet.
    pub session: Option<String>,
    /// What was said before, for a new session.
    pub before: &'a [&'a Message],
    pub parts: Vec<Part>,
    /// What answers, as usage is counted.
    pub model: &'a str,
}

/// A turn that is ready to be sent.
pub struct BegunTurn {
    pub turn: Box<dyn RemoteTurn>,
    pub http: Arc<RemoteHttp>,
}

/// An agent behind another server.
pub struct RemoteAgent<P> {
    name: String,
    protocol: P,
    store: Arc<dyn Store>,
    /// Whether an agent that was not there is told what was said before.
    tells_history: bool,
}

/// What the agent behind a server is called and offers.
pub fn remote_manifest(name: &str, protocol: &str, url: &str) -> AgentManifest {
    let mut manifest = AgentManifest::new(name, name, format!("The {protocol} agent at {url}"));
    manifest.takes.push("image/*".to_owned());
    manifest.tags.push(protocol.to_owned());
    manifest
}

impl<P: RemoteProtocol> RemoteAgent<P> {
    /// The agent of this name. Nothing is sent yet.
    pub fn new(name: &str, protocol: P, store: Arc<dyn Store>, tells_history: bool) -> Self {
        Self { name: name.to_owned(), protocol, store, tells_history }
    }

    fn session_mapping<'a>(&'a self, view: &'a SessionView) -> SessionMapping<'a> {
        let ids = RemoteIds::OfProcess;
        SessionMapping { store: &*self.store, kind: P::ALIAS_KIND, agent: &self.name, view, ids }
    }

    /// Begins the turn and sends its first request. A session that the server has lost is begun anew, and that is said.
    async fn open_run(&self, backend_run: &BackendRun) -> Result<RemoteRun, RemoteError> {
        let known = self.session_mapping(&backend_run.view).find_remote_id().await.map_err(remote_store_error)?;
        let opened = if known.is_some() { Opened::Resumed } else { Opened::New };
        match self.send_prompt(backend_run, known, opened).await {
            Err(RemoteError::NotFound(reason)) if opened == Opened::Resumed => {
                tracing::warn!(agent = self.name, reason, "a session of an agent is lost");
                self.session_mapping(&backend_run.view).clear().await.map_err(remote_store_error)?;
                self.send_prompt(backend_run, None, Opened::Lost).await
            }
            sent => sent,
        }
    }

    async fn send_prompt(
        &self,
        backend_run: &BackendRun,
        session: Option<String>,
        opened: Opened,
    ) -> Result<RemoteRun, RemoteError> {
        let BackendRun { run, view, context, .. } = backend_run;
        let last_prompt = self.session_mapping(view).find_last_prompt().await.map_err(remote_store_error)?;
        let form = match (self.tells_history, P::TAKES_HISTORY && session.is_none()) {
            (true, true) => HistoryForm::Structured,
            (true, false) => HistoryForm::Transcript,
            (false, _) => HistoryForm::Withheld,
        };
        let hand_over = HandOver::new(context, opened, last_prompt, form);
        let mut parts = hand_over_prompt_parts(context);
        if let Some(transcript) = hand_over.transcript() {
            parts.insert(0, Part::text(transcript));
        }
        let model = view.settings.model.as_deref().unwrap_or(&self.name);
        let saved = session.clone();
        let prompt = RemotePrompt { run: *run, session, before: hand_over.messages(), parts, model };
        let BegunTurn { turn, http } = self.protocol.begin_turn(prompt).await?;
        let mut run = RemoteRun::open(self.name.clone(), turn, http).await?;
        run.notice = hand_over.notice(&self.name);
        run.saved_session = saved;
        Ok(run)
    }

    async fn drive_run(&self, mut backend_run: BackendRun) {
        let stop = backend_run.stop.clone();
        let (mut orders, reports) = (take_remote_orders(&mut backend_run), backend_run.reports.clone());
        let opened = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = wait_for_cancel_order(&mut orders) => Err(Outcome::Cancelled),
            opened = self.open_run(&backend_run) => opened.map_err(|error| self.failed_outcome(&error)),
        };
        let run = match opened {
            Ok(run) => run,
            // Nobody hears it only if our session is gone.
            Err(outcome) => return drop(reports.send(Report::Ended(outcome)).await),
        };
        let mapping = self.session_mapping(&backend_run.view);
        mapping.note_last_prompt(&backend_run.context).await;
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = run.drive(&mapping, orders, reports) => {}
        }
    }

    fn failed_outcome(&self, error: &RemoteError) -> Outcome {
        Outcome::failed(error.reason_code(), format!("the agent {} {error}", self.name))
    }
}

#[async_trait]
impl<P: RemoteProtocol> Backend for RemoteAgent<P> {
    async fn drive(&self, backend_run: BackendRun) {
        if backend_run.start == RunStart::Resumed {
            // The agent heard the prompt before: it must not hear it twice.
            let message = format!("the way to {} broke while this server was stopped: prompt it again", self.name);
            drop(backend_run.reports.send(Report::Ended(Outcome::failed("interrupted", message))).await);
            return;
        }
        self.drive_run(backend_run).await;
    }

    async fn session_closing(&self, view: &SessionView) {
        if let Err(error) = self.session_mapping(view).clear().await {
            tracing::warn!(%error, "the agent's session of a deleted session is still remembered");
        }
    }
}

/// The orders, for a run that is looked at while they are waited for.
fn take_remote_orders(backend_run: &mut BackendRun) -> tokio::sync::mpsc::Receiver<gander_domain::Order> {
    let (_, none) = tokio::sync::mpsc::channel(1);
    std::mem::replace(&mut backend_run.orders, none)
}

fn remote_store_error(error: gander_store::StoreError) -> RemoteError {
    tracing::error!(%error, "the store failed");
    RemoteError::Store
}
