//! One server of a session: started when it is wanted, started again when it dies, asleep when nobody needs it.

use std::sync::Arc;
use std::time::Duration;

use gander_domain::Severity;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::catalogue::Catalogue;
use super::connect_failure::{FailureReport, OpenError};
use super::connection::{McpConnection, McpConnectionHandle};
use super::pending_login::LoginInProgress;
use super::server_env::ServerEnv;
use super::session_handle::Outage;
use super::session_handles::SessionHandles;
use super::spec::Spec;

/// The first pause after a failure; each further one is twice as long.
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(500);

/// The longest pause.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(60);

/// Tries in a row while a run waits; then only who asks for it starts it again.
const MAX_START_ATTEMPTS: u32 = 5;

/// A server that lived this long did not fail to start.
const STABLE_AFTER: Duration = Duration::from_secs(60);

/// One server of a session, or of several. Dropping it ends it.
pub(super) struct McpServer {
    /// Its name before its tools.
    pub name: String,
    pub spec: Spec,
    /// The login that people were asked for.
    pub login: LoginInProgress,
    /// The sessions that use it.
    pub sessions: SessionHandles,
    view: watch::Receiver<ServerView>,
    wanted: Arc<Notify>,
    renewed: Arc<Notify>,
    unneeded: Arc<Notify>,
    start: Duration,
    _stop: DropGuard,
}

/// How long things may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServerTimeouts {
    /// From a server's start to its lists.
    pub start: Duration,
    /// Before one that nobody needs goes to sleep.
    pub idle: Duration,
}

/// How a server is.
#[derive(Clone, Default)]
pub(super) struct ServerView {
    pub phase: ServerPhase,
    /// What it offered when it was last asked: a server that is being started again keeps its tools.
    pub catalogue: Arc<Catalogue>,
    pub line: Option<McpConnectionHandle>,
    /// It failed, and seems to have missed the network.
    pub offline: bool,
    /// It failed when it was last tried. Stays while it is tried again.
    pub outage: Option<Outage>,
}

/// What a server is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum ServerPhase {
    /// Nothing: nobody has wanted it, or nobody did for long.
    #[default]
    Asleep,
    Starting,
    Ready,
    /// It wants a login first.
    Locked,
    Failed(String),
}

impl McpServer {
    /// A server that sleeps until it is wanted.
    pub(super) fn new(name: String, spec: Spec, env: ServerEnv, times: ServerTimeouts) -> Self {
        let (view_sender, view) = watch::channel(ServerView::default());
        let [wanted, renewed, unneeded] = std::array::from_fn(|_| Arc::new(Notify::new()));
        let stop = CancellationToken::new();
        let sessions = SessionHandles::default();
        let keeper = ServerTask {
            sessions: sessions.clone(),
            name: name.clone(),
            spec: spec.clone(),
            env,
            view_sender,
            wanted: Arc::clone(&wanted),
            renewed: Arc::clone(&renewed),
            unneeded: Arc::clone(&unneeded),
            stop: stop.clone(),
            times,
            failures: 0,
        };
        tokio::spawn(keeper.run_forever());
        Self {
            name,
            spec,
            login: LoginInProgress::default(),
            sessions,
            view,
            wanted,
            renewed,
            unneeded,
            start: times.start,
            _stop: stop.drop_guard(),
        }
    }

    pub(super) fn current_view(&self) -> ServerView {
        self.view.borrow().clone()
    }

    /// Somebody needs it, now or soon.
    pub(super) fn request_start(&self) {
        self.wanted.notify_one();
    }

    /// Nobody needs it for now. Says nothing to one that does not run.
    pub(super) fn request_sleep(&self) {
        self.unneeded.notify_waiters();
    }

    /// Until it is ready or has failed. It is wanted by this; a failure of before is not the answer.
    pub(super) async fn wait_until_settled(&self) {
        let mut view = self.view.clone();
        let ready = view.borrow_and_update().phase == ServerPhase::Ready;
        self.request_start();
        while !ready && view.changed().await.is_ok() {
            match view.borrow_and_update().phase {
                ServerPhase::Ready | ServerPhase::Locked | ServerPhase::Failed(_) => return,
                ServerPhase::Asleep | ServerPhase::Starting => {}
            }
        }
    }

    /// Until it was tried once. It is wanted by this; one that is down is tried again beside, and nobody waits for that.
    pub(super) async fn wait_until_tried(&self) {
        self.request_start();
        let tried = |view: &ServerView| {
            view.outage.is_some()
                || matches!(view.phase, ServerPhase::Ready | ServerPhase::Locked | ServerPhase::Failed(_))
        };
        // An error means that the server is no more: nothing is there to wait for.
        drop(self.view.clone().wait_for(tried).await);
    }

    /// Its live connection, once it is there.
    pub(super) async fn wait_for_connection(&self) -> Result<McpConnectionHandle, String> {
        if tokio::time::timeout(self.start, self.wait_until_settled()).await.is_err() {
            return Err(format!("the server {} does not start", self.name));
        }
        let ServerView { phase, line, .. } = self.current_view();
        line.ok_or_else(|| match phase {
            ServerPhase::Failed(reason) => format!("the server {} is not running: {reason}", self.name),
            ServerPhase::Locked => server_needs_login_text(&self.name),
            ServerPhase::Asleep | ServerPhase::Starting | ServerPhase::Ready => {
                format!("the server {} is not running", self.name)
            }
        })
    }

    /// Starts its program anew, and waits for that.
    pub(super) async fn restart_server(&self) {
        if let Some(old) = self.current_view().line {
            self.renewed.notify_one();
            // What it is then, the next call tells.
            drop(self.connection_after(&old).await);
        }
    }

    /// The connection after this one, which is over: a death is noticed a little later than it is felt.
    pub(super) async fn connection_after(&self, old: &McpConnectionHandle) -> Result<McpConnectionHandle, String> {
        let mut view = self.view.clone();
        let other = view.wait_for(|view| view.line.as_ref().is_none_or(|line| !line.is_same(old)));
        drop(tokio::time::timeout(self.start, other).await);
        self.wait_for_connection().await
    }
}

/// What people do about it.
pub(super) fn server_needs_login_text(name: &str) -> String {
    format!("{name} needs authorization: gander extensions login {name}")
}

/// The task behind a server.
struct ServerTask {
    sessions: SessionHandles,
    name: String,
    spec: Spec,
    env: ServerEnv,
    view_sender: watch::Sender<ServerView>,
    wanted: Arc<Notify>,
    renewed: Arc<Notify>,
    unneeded: Arc<Notify>,
    stop: CancellationToken,
    times: ServerTimeouts,
    failures: u32,
}

/// Why a connection is over.
enum ConnectionEnd {
    Stopped,
    Idle,
    /// It is to be started anew.
    Renewed,
    /// It wants an authorization that it does not get.
    Unauthorized,
    Died(String),
}

impl ServerTask {
    async fn run_forever(mut self) {
        loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                () = self.wanted.notified() => {}
            }
            while let Some(pause) = self.run_connection().await {
                tokio::select! {
                    biased;
                    () = self.stop.cancelled() => return,
                    () = tokio::time::sleep(pause) => {}
                }
                if !self.sessions.is_attended() || self.failures >= MAX_START_ATTEMPTS {
                    break;
                }
            }
            if self.stop.is_cancelled() {
                return;
            }
        }
    }

    /// One connection from start to end; the pause before the next if it failed.
    async fn run_connection(&mut self) -> Option<Duration> {
        self.set_phase(ServerPhase::Starting);
        let opened = tokio::select! {
            biased;
            () = self.stop.cancelled() => return None,
            opened = tokio::time::timeout(self.times.start, self.open()) => opened,
        };
        let link = match opened {
            Ok(Ok(link)) => link,
            Ok(Err(OpenError::Locked)) => return self.set_locked(),
            Ok(Err(OpenError::Failed(failure))) => return Some(self.set_failed(failure)),
            Err(_) => {
                let reason = format!("it did not start in {} s", self.times.start.as_secs());
                return Some(self.set_failed(reason.into()));
            }
        };
        let since = Instant::now();
        let (link, end) = self.serve_connection(link).await;
        if since.elapsed() >= STABLE_AFTER {
            self.failures = 0;
        }
        let pause = self.pause_after_end(&end);
        link.close().await;
        pause
    }

    /// Whoever calls from here on waits for the next connection, not for this one's farewell.
    fn pause_after_end(&mut self, end: &ConnectionEnd) -> Option<Duration> {
        match end {
            ConnectionEnd::Stopped | ConnectionEnd::Idle => {
                self.set_phase(ServerPhase::Asleep);
                None
            }
            ConnectionEnd::Renewed | ConnectionEnd::Unauthorized => {
                self.set_phase(ServerPhase::Asleep);
                // Where it was unauthorized the greeting of the next one tells what is missing, with or without a run.
                self.wanted.notify_one();
                None
            }
            ConnectionEnd::Died(reason) => Some(self.set_failed(reason.clone().into())),
        }
    }

    async fn open(&self) -> Result<McpConnection, OpenError> {
        let link = McpConnection::open(&self.name, &self.spec, &self.env, &self.sessions).await?;
        link.line.limit_logging().await;
        let catalogue = link.line.list_tools_and_prompts(&self.name).await.map_err(|reason| {
            let unauthorized = link.line.unauthorized.is_cancelled();
            if unauthorized { OpenError::unauthorized(&self.spec) } else { OpenError::Failed(reason.into()) }
        })?;
        self.set_ready(&link.line, catalogue);
        Ok(link)
    }

    /// Stays with a live connection until it is over.
    async fn serve_connection(&self, mut link: McpConnection) -> (McpConnection, ConnectionEnd) {
        let (changed, unauthorized) = (Arc::clone(&link.line.handler.changed), link.line.unauthorized.clone());
        let end = loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => break ConnectionEnd::Stopped,
                reason = link.wait_until_over() => break ConnectionEnd::Died(self.env.redactor_for(&self.spec).redact_text(&reason)),
                () = unauthorized.cancelled() => break ConnectionEnd::Unauthorized,
                () = changed.notified() => self.refresh_catalogue(&link.line).await,
                () = self.renewed.notified() => break ConnectionEnd::Renewed,
                () = self.wanted.notified() => {}
                // Whether a run listens is asked when it matters: one that did when this wait began may be over by then.
                () = self.unneeded.notified() => if !self.sessions.is_attended() { break ConnectionEnd::Idle },
                () = tokio::time::sleep(self.times.idle) => if !self.sessions.is_attended() { break ConnectionEnd::Idle },
            }
        };
        (link, end)
    }

    async fn refresh_catalogue(&self, line: &McpConnectionHandle) {
        match tokio::time::timeout(self.times.start, line.list_tools_and_prompts(&self.name)).await {
            Ok(Ok(catalogue)) => self.set_ready(line, catalogue),
            Ok(Err(error)) => tracing::debug!(server = self.name, error, "a server's lists stay as they were"),
            Err(_) => tracing::debug!(server = self.name, "a server does not tell its lists in time"),
        }
    }

    fn set_ready(&self, line: &McpConnectionHandle, catalogue: Catalogue) {
        let (catalogue, line) = (Arc::new(catalogue), Some(line.clone()));
        let ready = ServerView { phase: ServerPhase::Ready, catalogue, line, offline: false, outage: None };
        self.view_sender.send_replace(ready);
        self.sessions.send_tools_changed();
    }

    /// Trying again helps nobody before a person logged in.
    fn set_locked(&self) -> Option<Duration> {
        tracing::info!(server = self.name, "an MCP server wants a login");
        self.set_phase(ServerPhase::Locked);
        self.sessions.notify_all(Severity::Warning, &server_needs_login_text(&self.name));
        self.sessions.send_tools_changed();
        None
    }

    fn set_failed(&mut self, failure: FailureReport) -> Duration {
        let FailureReport { reason, stderr, wants_network } = failure;
        self.failures += 1;
        tracing::info!(server = self.name, reason, "an MCP server failed");
        let since = self.view_sender.borrow().outage.as_ref().map_or_else(Instant::now, |outage| outage.since);
        let outage = Outage { since, reason: reason.clone(), stderr };
        self.sessions.send_outage(&self.name, &outage);
        // All at once: whoever waits for the phase finds the rest.
        self.view_sender.send_modify(|view| {
            (view.phase, view.line) = (ServerPhase::Failed(reason), None);
            (view.offline, view.outage) = (wants_network, Some(outage));
        });
        if wants_network {
            // The run under way may ask its people.
            self.sessions.send_tools_changed();
        }
        FIRST_RETRY_DELAY.saturating_mul(1 << (self.failures - 1).min(10)).min(MAX_RETRY_DELAY)
    }

    /// Both at once: nobody may see a server that is ready and has no connection.
    fn set_phase(&self, phase: ServerPhase) {
        self.view_sender.send_modify(|view| {
            view.phase = phase;
            view.line = None;
            view.offline = false;
        });
    }
}
