//! An agent that speaks ACP as a back-end: a program on this machine, or a server elsewhere.
//!
//! It is started per session, not per connection, and stopped when the session is idle. What was said before is opened
//! again by the agent's own means; where it has none, the log says that its context is lost.

mod agent_sandbox;
pub(super) mod agent_turn;
mod error;
mod learned_offers;
mod listener;
mod live_session;
pub(super) mod prompt_run;
mod terminals;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use gander_client::schema::ContentBlock;
use gander_client::{AgentLaunch, Endpoint};
use gander_domain::{Context, Order, Outcome, Report, Role, SessionId, SessionView, SlashCommand};
use gander_store::Store;
use gander_tools::{Environment, FileAccess, Host};
use tokio::sync::mpsc;

pub use self::agent_sandbox::AgentSandbox;
pub use self::error::AcpAgentError;
use self::learned_offers::LearnedOffers;
use self::listener::ListeningRun;
use self::live_session::LiveSession;
use self::prompt_run::{AgentEvent, EVENT_CAPACITY, PromptEnd, PromptRun, prompt_run_blocks};
use super::hand_over::{HandOver, HistoryForm, Opened};
use super::orders::wait_for_cancel_order;
use super::session_mapping::{RemoteIds, SessionMapping};
use super::{AgentOffers, Backend, BackendRun, RunStart};

/// Under this kind the ids of the agents' sessions are kept.
const ALIAS_KIND: &str = "acp-agent";
/// How long an agent may take to end its turn after it was told to stop; then it is stopped itself.
const CANCEL_GRACE: Duration = Duration::from_secs(5);

/// Where an agent is.
#[derive(Clone, Debug)]
pub enum AgentAddress {
    /// A program, spoken to over its stdin and stdout.
    Program(AgentLaunch),
    /// A server, over HTTP.
    Http(Endpoint),
    /// A server, over a WebSocket.
    WebSocket(Endpoint),
}

/// What is known of an agent.
#[derive(Clone)]
pub struct AcpAgentParts {
    /// Its name here.
    pub name: String,
    /// Where it is.
    pub address: AgentAddress,
    /// The folder of its sessions; absent: that of ours.
    pub folder: Option<PathBuf>,
    /// The command that logs in to it, told to whoever needs one.
    pub login: Option<String>,
    /// After so long without a prompt it is stopped.
    pub idle_timeout: Duration,
    /// Whether an agent that was not there is told what was said before.
    pub tells_transcript: bool,
    /// The files it may ask us for.
    pub files: FileAccess,
    /// What commands find around them that it has us run.
    pub environment: Environment,
    /// The sandbox around its own process; absent: it runs as the server does.
    pub sandbox: Option<AgentSandbox>,
}

/// An agent that speaks ACP.
pub struct AcpAgent {
    parts: AcpAgentParts,
    store: Arc<dyn Store>,
    live: Arc<LiveSessions>,
    offers: Arc<LearnedOffers>,
}

/// The agents that are up, by session of ours.
type LiveSessions = Mutex<HashMap<SessionId, Arc<LiveSession>>>;

impl AcpAgent {
    /// The agent of these parts. Nothing is started yet.
    pub fn new(parts: AcpAgentParts, store: Arc<dyn Store>) -> Self {
        Self { parts, store, live: Arc::default(), offers: Arc::default() }
    }

    fn session_mapping<'a>(&'a self, view: &'a SessionView) -> SessionMapping<'a> {
        let ids = RemoteIds::OfProcess;
        SessionMapping { store: &*self.store, kind: ALIAS_KIND, agent: &self.parts.name, view, ids }
    }

    /// The agent with this session open: the one that is up, or one that is started.
    async fn ensure_live(&self, view: &SessionView) -> Result<(Arc<LiveSession>, Opened), AcpAgentError> {
        let up = lock_acp_backend_sessions(&self.live).get(&view.session).cloned();
        if let Some(up) = up.filter(|up| up.is_alive()) {
            return Ok((up, Opened::Resumed));
        }
        self.forget_live(view.session);
        let known = self.session_mapping(view).find_remote_id().await?;
        let (session, opened) = LiveSession::open(&self.parts, view, known, &self.offers).await?;
        if opened != Opened::Resumed {
            self.session_mapping(view).set_remote_id(&session.theirs).await?;
        }
        let session = Arc::new(session);
        lock_acp_backend_sessions(&self.live).insert(view.session, Arc::clone(&session));
        let (live, watched) = (Arc::downgrade(&self.live), Arc::downgrade(&session));
        tokio::spawn(stop_acp_backend_when_idle(live, view.session, watched, self.parts.idle_timeout));
        Ok((session, opened))
    }

    /// Its process ends with its last user.
    fn forget_live(&self, session: SessionId) {
        lock_acp_backend_sessions(&self.live).remove(&session);
    }

    async fn drive_run(&self, backend_run: BackendRun) {
        let BackendRun { view, context, client_resources, mut orders, reports, stop, .. } = backend_run;
        let opened = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = wait_for_cancel_order(&mut orders) => Err(Outcome::Cancelled),
            opened = self.ensure_live(&view) => {
                opened.map_err(|error| Outcome::failed(error.reason_code(), error.to_string()))
            }
        };
        let (session, opened) = match opened {
            Ok(opened) => opened,
            // Nobody hears it only if our session is gone.
            Err(outcome) => return drop(reports.send(Report::Ended(outcome)).await),
        };
        let turn = Turn { agent: self, view: &view, session: &session, reports };
        let settled = tokio::select! {
            biased;
            () = stop.cancelled() => false,
            settled = turn.drive(opened, &context, client_resources.host, &mut orders) => settled,
        };
        session.listener.set_run(None);
        session.mark_used();
        if !settled {
            self.forget_live(view.session);
        }
    }
}

/// One run with an agent that is up.
struct Turn<'a> {
    agent: &'a AcpAgent,
    view: &'a SessionView,
    session: &'a LiveSession,
    reports: mpsc::Sender<Report>,
}

impl Turn<'_> {
    /// Drives the run to its end. True if the agent takes another prompt.
    async fn drive(
        &self,
        opened: Opened,
        context: &Context,
        host: Option<Arc<dyn Host>>,
        orders: &mut mpsc::Receiver<Order>,
    ) -> bool {
        let (events, mut events_in) = mpsc::channel::<AgentEvent>(EVENT_CAPACITY);
        let parts = &self.agent.parts;
        let model = self.view.settings.model.clone().unwrap_or_else(|| parts.name.clone());
        let mut run = PromptRun::new(model, self.reports.clone(), CANCEL_GRACE);
        if let Err(error) = self.session.apply_settings(self.view).await {
            let error = self.session.explain(parts, &error).await;
            run.report_failure(error.reason_code(), &error.to_string()).await;
            return self.session.is_alive();
        }
        let blocks = self.prompt_blocks(opened, context).await;
        self.session.listener.set_run(Some(ListeningRun { events, host }));
        let end = run.drive_prompt(&self.session.client, &self.session.theirs, blocks, &mut events_in, orders).await;
        match end {
            PromptEnd::Settled => true,
            PromptEnd::Abandoned => false,
            PromptEnd::Failed(error) => {
                let error = self.session.explain(parts, &error).await;
                run.report_failure(error.reason_code(), &error.to_string()).await;
                self.session.is_alive()
            }
        }
    }

    /// What the agent is told: the prompt, and what was said before if it was not there.
    async fn prompt_blocks(&self, opened: Opened, context: &Context) -> Vec<ContentBlock> {
        let own = &context.messages[context.run_start_index()..];
        let prompt = own.iter().find(|message| message.role == Role::User);
        let mut blocks: Vec<ContentBlock> = prompt.map(|message| prompt_run_blocks(message)).unwrap_or_default();
        // Without the name of its last prompt it is taken to know everything.
        let last_prompt = self.agent.session_mapping(self.view).find_last_prompt().await.unwrap_or_default();
        let form = match self.agent.parts.tells_transcript {
            true => HistoryForm::Transcript,
            false => HistoryForm::Withheld,
        };
        let hand_over = HandOver::new(context, opened, last_prompt, form);
        if let Some(notice) = hand_over.notice(&self.agent.parts.name) {
            // Nobody hears it only if our session is gone.
            drop(self.reports.send(Report::Noticed(notice)).await);
        }
        if let Some(told) = hand_over.transcript() {
            blocks.insert(0, told.into());
        }
        self.agent.session_mapping(self.view).note_last_prompt(context).await;
        blocks
    }
}

#[async_trait]
impl Backend for AcpAgent {
    async fn drive(&self, backend_run: BackendRun) {
        if backend_run.start == RunStart::Resumed {
            // The agent heard the prompt before, and ended with the server that it ran under.
            let message = format!("{} was stopped in the middle of this turn: prompt it again", self.parts.name);
            let outcome = Outcome::failed("interrupted", message);
            drop(backend_run.reports.send(Report::Ended(outcome)).await);
            return;
        }
        self.drive_run(backend_run).await;
    }

    async fn list_slash_commands(&self) -> Vec<SlashCommand> {
        self.offers.current().map(|offers| offers.commands.clone()).unwrap_or_default()
    }

    fn offers(&self) -> Option<Arc<AgentOffers>> {
        self.offers.current()
    }

    async fn session_closing(&self, view: &SessionView) {
        self.forget_live(view.session);
        if let Err(error) = self.session_mapping(view).clear().await {
            tracing::warn!(%error, "the agent's session of a deleted session is still remembered");
        }
    }
}

/// Stops an agent that nobody prompted for so long. What was said is opened again with the next prompt.
async fn stop_acp_backend_when_idle(
    live: Weak<LiveSessions>,
    session: SessionId,
    watched: Weak<LiveSession>,
    timeout: Duration,
) {
    loop {
        let Some(last_used) = watched.upgrade().map(|watched| watched.last_used()) else { return };
        if last_used.elapsed() < timeout {
            tokio::time::sleep_until(last_used + timeout).await;
            continue;
        }
        let Some(live) = live.upgrade() else { return };
        let mut sessions = lock_acp_backend_sessions(&live);
        match sessions.get(&session).filter(|up| Arc::as_ptr(up) == watched.as_ptr()) {
            // A run under way holds it too: it is looked at again when that is over.
            Some(used) if Arc::strong_count(used) > 1 => used.mark_used(),
            Some(_) => drop(sessions.remove(&session)),
            None => return,
        }
    }
}

/// A panic while the lock was held leaves nothing half done here.
fn lock_acp_backend_sessions(live: &LiveSessions) -> MutexGuard<'_, HashMap<SessionId, Arc<LiveSession>>> {
    live.lock().unwrap_or_else(PoisonError::into_inner)
}
