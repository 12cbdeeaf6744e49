//! An agent that is up and has a session of ours open: its connection, its process and what it offers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gander_client::schema::{Implementation, InitializeResponse};
use gander_client::{Agent, AgentLaunch, AgentStatus, CallError, Client, Link, ProcessExit};
use gander_domain::SessionView;
use gander_tools::LocalHost;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use super::error::{AcpAgentError, acp_call_error, acp_error_offers_value, acp_link_error, acp_start_error};
use super::learned_offers::{DEFAULT_MODE, LearnedOffers};
use super::listener::Listener;
use super::{AcpAgentParts, AgentAddress};
use crate::backend::hand_over::Opened;

/// The largest file that an agent reads through us.
const LARGEST_FILE: u64 = 10 * 1024 * 1024;
/// How long the end of a process may take to be known after its connection broke.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// An agent that is up, with a session of ours.
pub(super) struct LiveSession {
    pub(super) client: Client,
    pub(super) listener: Arc<Listener>,
    /// The agent's id of the session.
    pub(super) theirs: String,
    /// What the agent said of the session's modes and options when it was opened.
    offered: Value,
    /// The mode that it is in, as far as it was told here.
    mode: Mutex<Option<String>>,
    /// Options of its own that were set here.
    options: Mutex<BTreeMap<String, String>>,
    offers: Arc<LearnedOffers>,
    status: Option<watch::Receiver<AgentStatus>>,
    /// Held, not used: the process ends when this is dropped.
    _process: Option<Agent>,
    last_used: Mutex<Instant>,
}

impl LiveSession {
    /// Starts or reaches the agent and opens the session that stands behind ours: the known one, or a new one.
    pub(super) async fn open(
        parts: &AcpAgentParts,
        view: &SessionView,
        known: Option<String>,
        offers: &Arc<LearnedOffers>,
    ) -> Result<(Self, Opened), AcpAgentError> {
        let folder = parts.folder.clone().unwrap_or_else(|| PathBuf::from(&view.workspace));
        let listener = Arc::new(new_live_session_listener(parts, view, &folder, Arc::clone(offers)).await?);
        let (client, process) = connect_live_session(parts, view, &folder, Arc::clone(&listener)).await?;
        let status = process.as_ref().map(Agent::status_changes);
        let opened = open_live_session(parts, &client, &folder, known).await;
        let (theirs, offered, opened) = match opened {
            Ok(opened) => opened,
            Err(error) => return Err(explain_live_session_exit(&parts.name, status.as_ref(), error).await),
        };
        if opened == Opened::Resumed {
            // It may have gone on with a turn whose end nobody waits for any more.
            client.cancel(theirs.clone()).await.ok();
        }
        offers.learn_session(&offered);
        let last_used = Mutex::new(Instant::now());
        let mode = Mutex::new(offered["modes"]["currentModeId"].as_str().map(str::to_owned));
        let (options, offers) = (Mutex::default(), Arc::clone(offers));
        let session =
            Self { client, listener, theirs, offered, mode, options, offers, status, _process: process, last_used };
        Ok((session, opened))
    }

    /// True while it can be asked something.
    pub(super) fn is_alive(&self) -> bool {
        !self.client.is_gone()
    }

    /// When a run of it ended last, or it was opened.
    pub(super) fn last_used(&self) -> Instant {
        *self.last_used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn mark_used(&self) {
        *self.last_used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Sets mode and model as our session has them, as far as the agent knows them.
    pub(super) async fn apply_settings(&self, view: &SessionView) -> Result<(), CallError> {
        let (mode, model) = (view.settings.mode.as_str(), view.settings.model.as_deref());
        let modes = &self.offered["modes"];
        let knows =
            |mode: &str| modes["availableModes"].as_array().into_iter().flatten().any(|known| known["id"] == mode);
        let first = modes["currentModeId"].as_str().filter(|_| mode == DEFAULT_MODE);
        let wanted = Some(mode).filter(|mode| knows(mode)).or(first);
        if let Some(wanted) = wanted.filter(|wanted| self.current_mode().as_deref() != Some(wanted)) {
            let params = json!({ "sessionId": self.theirs, "modeId": wanted });
            self.client.request::<Value>("session/set_mode", &params).await?;
            *self.mode.lock().unwrap_or_else(PoisonError::into_inner) = Some(wanted.to_owned());
        }
        let options = self.offered["configOptions"].as_array();
        let model_option = options.into_iter().flatten().find(|option| option["category"] == "model");
        if let (Some(option), Some(model)) = (model_option, model)
            && acp_error_offers_value(&option["options"], model)
        {
            let params = json!({ "sessionId": self.theirs, "configId": option["id"], "value": model });
            self.client.request::<Value>("session/set_config_option", &params).await?;
        }
        self.apply_agent_options(view).await
    }

    /// Sets the options of the agent's own that somebody chose. What was chosen for another agent it does not offer.
    async fn apply_agent_options(&self, view: &SessionView) -> Result<(), CallError> {
        for option in self.offers.current().iter().flat_map(|offers| &offers.options) {
            let Some(value) = view.settings.agent_options.get(&option.id) else { continue };
            let is_set = self.lock_options().get(&option.id) == Some(value);
            if is_set || option.current_value(&view.settings) != value {
                continue;
            }
            let mut params = json!({ "sessionId": self.theirs, "configId": option.id, "value": value });
            if option.is_switch() {
                (params["type"], params["value"]) = (json!("boolean"), json!(value == "true"));
            }
            let answer = self.client.request::<Value>("session/set_config_option", &params).await?;
            self.lock_options().insert(option.id.clone(), value.clone());
            if answer["configOptions"].as_array().is_some_and(|options| !options.is_empty()) {
                self.offers.learn_options(&answer["configOptions"]);
            }
        }
        Ok(())
    }

    fn lock_options(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.options.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn current_mode(&self) -> Option<String> {
        self.mode.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Why a call failed: if its process ended, how.
    pub(super) async fn explain(&self, parts: &AcpAgentParts, error: &CallError) -> AcpAgentError {
        let error = acp_call_error(&parts.name, parts.login.as_deref(), error);
        explain_live_session_exit(&parts.name, self.status.as_ref(), error).await
    }
}

async fn new_live_session_listener(
    parts: &AcpAgentParts,
    view: &SessionView,
    folder: &Path,
    offers: Arc<LearnedOffers>,
) -> Result<Listener, AcpAgentError> {
    let (files, root) = (parts.files.clone(), folder.to_owned());
    let extra: Vec<PathBuf> = view.folders.iter().map(PathBuf::from).collect();
    let opened = tokio::task::spawn_blocking(move || files.open(&root, &extra)).await;
    let broken = |reason: String| AcpAgentError::Start { agent: parts.name.clone(), reason };
    let workspace = opened.map_err(|error| broken(error.to_string()))?;
    let workspace = workspace.map_err(|error| broken(format!("{error}: {}", folder.display())))?;
    let local = Arc::new(LocalHost::new(Arc::new(workspace), LARGEST_FILE));
    let listener = Listener::new(local, folder.to_owned(), parts.environment.clone(), offers);
    let Some(sandbox) = parts.sandbox.clone() else { return Ok(listener) };
    let folders = live_session_folders(view, folder);
    let wrap = tokio::task::spawn_blocking(move || sandbox.wrap_commands(&folders)).await;
    Ok(listener.with_wrap(wrap.unwrap_or_else(|error| Err(error.to_string())).map_err(broken)?))
}

fn live_session_folders(view: &SessionView, folder: &Path) -> Vec<PathBuf> {
    std::iter::once(folder.to_owned()).chain(view.folders.iter().map(PathBuf::from)).collect()
}

async fn connect_live_session(
    parts: &AcpAgentParts,
    view: &SessionView,
    folder: &Path,
    listener: Arc<Listener>,
) -> Result<(Client, Option<Agent>), AcpAgentError> {
    let who = Implementation::new("gander", env!("CARGO_PKG_VERSION"));
    let link = match &parts.address {
        AgentAddress::Program(launch) => {
            let launch = sandboxed_launch(parts, view, folder, launch.clone().with_folder(folder)).await?;
            let started = Agent::start(launch, who, listener).await;
            let agent = started.map_err(|error| acp_start_error(&parts.name, &error))?;
            let client = agent.running_client().cloned();
            let client = client.map_err(|error| acp_call_error(&parts.name, None, &error))?;
            return Ok((client, Some(agent)));
        }
        AgentAddress::Http(endpoint) => Link::connect_http(endpoint),
        AgentAddress::WebSocket(endpoint) => Link::connect_websocket(endpoint).await,
    };
    let link = link.map_err(|error| acp_link_error(&parts.name, &error))?;
    let client = Client::connect(link, who, listener).await;
    Ok((client.map_err(|error| acp_call_error(&parts.name, parts.login.as_deref(), &error))?, None))
}

/// The program in its sandbox, if it is set to run in one.
async fn sandboxed_launch(
    parts: &AcpAgentParts,
    view: &SessionView,
    folder: &Path,
    launch: AgentLaunch,
) -> Result<AgentLaunch, AcpAgentError> {
    let Some(sandbox) = parts.sandbox.clone() else { return Ok(launch) };
    let folders = live_session_folders(view, folder);
    let wrapped = tokio::task::spawn_blocking(move || sandbox.wrap_launch(launch, &folders)).await;
    let wrapped = wrapped.unwrap_or_else(|error| Err(error.to_string()));
    wrapped.map_err(|reason| AcpAgentError::Start { agent: parts.name.clone(), reason })
}

/// Opens the known session by the best means the agent has, else a new one.
async fn open_live_session(
    parts: &AcpAgentParts,
    client: &Client,
    folder: &Path,
    known: Option<String>,
) -> Result<(String, Value, Opened), AcpAgentError> {
    let explained = |error: &CallError| acp_call_error(&parts.name, parts.login.as_deref(), error);
    let was_known = known.is_some();
    if let Some(theirs) = known {
        match reopen_live_session(client, folder, &theirs).await {
            None => {}
            Some(Ok(offered)) => return Ok((theirs, offered, Opened::Resumed)),
            Some(Err(error)) => {
                let error = explained(&error);
                // Agents have several codes for a session that they do not know: a new one shows whether they are well.
                if !matches!(error, AcpAgentError::Refused { .. }) {
                    return Err(error);
                }
                tracing::warn!(%error, "a session of an agent is lost");
            }
        }
    }
    let made = client.new_session(folder).await.map_err(|error| explained(&error))?;
    let opened = if was_known { Opened::Lost } else { Opened::New };
    Ok((made.session_id.to_string(), json!(made), opened))
}

/// `None` if the agent has no means to open an earlier session.
async fn reopen_live_session(client: &Client, folder: &Path, theirs: &str) -> Option<Result<Value, CallError>> {
    let InitializeResponse { agent_capabilities, .. } = client.initialize_response();
    if agent_capabilities.session_capabilities.resume.is_some() {
        let resumed = client.resume_session(theirs.to_owned(), folder).await;
        return Some(resumed.map(|answer| json!(answer)));
    }
    if agent_capabilities.load_session {
        let loaded = client.load_session(theirs.to_owned(), folder).await;
        return Some(loaded.map(|answer| json!(answer)));
    }
    None
}

/// An agent whose connection broke may have ended: then how it ended says more.
async fn explain_live_session_exit(
    agent: &str,
    status: Option<&watch::Receiver<AgentStatus>>,
    error: AcpAgentError,
) -> AcpAgentError {
    let (AcpAgentError::Unreachable { .. }, Some(status)) = (&error, status) else { return error };
    match live_session_process_exit(status.clone()).await {
        Some(exit) => AcpAgentError::Crashed { agent: agent.to_owned(), exit },
        None => error,
    }
}

async fn live_session_process_exit(mut status: watch::Receiver<AgentStatus>) -> Option<Arc<ProcessExit>> {
    let crashed = status.wait_for(|status| matches!(status, AgentStatus::Crashed(_)));
    let status = tokio::time::timeout(EXIT_TIMEOUT, crashed).await.ok()?.ok()?.clone();
    match status {
        AgentStatus::Crashed(exit) => Some(exit),
        AgentStatus::Starting | AgentStatus::Running | AgentStatus::Stopped | AgentStatus::Failed(_) => None,
    }
}
