//! A running goosed as a back-end: its sessions are ours, its turns are told as reports.
//!
//! Goose had REST until 1.39 and has ACP since 1.35: which of them a server speaks is found out, unless it is said.

mod acp_run;
mod http_client;
mod remote_files;
mod remote_sessions;
mod rest_run;
mod slash_commands;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use gander_client::CertificatePin;
use gander_domain::{AgentManifest, Context, Outcome, Principal, Report, Role, SessionId, SessionView, SlashCommand};
use gander_store::{Store, StoreError};
use gander_wire::goose::client::request::ProviderChoice;
use gander_wire::goose::client::{GoosedError, request};
use secrecy::SecretString;
use serde_json::Value;

use self::http_client::GoosedHttp;
use super::hand_over::{HandOver, HistoryForm, Opened};
use super::session_mapping::{RemoteIds, SessionMapping};
use super::{Backend, BackendFailure, BackendRun, RemoteFile, RemoteSession, RemoteTool, RunStart};

/// How long a goosed may take to hear of a session's begin or end: whoever makes or deletes it waits.
const SESSION_CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Under this kind the ids of goose's sessions are kept.
const ALIAS_KIND: &str = "goosed";

/// How long it may take until a session is ready there, with the pauses between tries.
const PREPARE_TIMEOUT: Duration = Duration::from_secs(30);

/// The value among a session's own that is the recipe to start it with.
const RECIPE_STATE: &str = "recipe";

/// Sessions that are known to be awake. Of more, all are asked anew.
const MAX_AWAKE: usize = 10_000;

/// Where a goosed is, and how it is spoken to.
#[derive(Clone, Debug)]
pub struct GoosedRemote {
    /// Its address, such as `http://127.0.0.1:3000`.
    pub url: String,
    /// The key that it wants as `X-Secret-Key`.
    pub key: Option<SecretString>,
    /// The one certificate that it may show; absent: one that somebody known vouches for.
    pub pin: Option<CertificatePin>,
    /// How long it may be silent.
    pub timeout: Duration,
    /// The folder of new sessions, as goose sees it; absent: that of our session.
    pub folder: Option<String>,
    /// What may run unasked there, in goose's words; absent: as it is set.
    pub mode: Option<String>,
    /// What it speaks; absent: found out.
    pub protocol: Option<Protocol>,
    /// The first pause before a request is sent again.
    pub pause: Duration,
    /// Whether a session begins there when it is prepared, with what was said of it by then, and not as soon as it is made.
    pub starts_when_prepared: bool,
}

/// What a goose speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// goosed until 1.39, and another server of our kind.
    Rest,
    /// `goose serve`.
    Acp,
}

/// An agent that a goosed runs.
pub struct Goosed {
    name: String,
    remote: GoosedRemote,
    http: GoosedHttp,
    store: Arc<dyn Store>,
    speaks: OnceLock<Protocol>,
    awake: Mutex<HashMap<SessionId, Awake>>,
}

/// What is known of a session that goose has ready.
#[derive(Clone, Debug, Default)]
struct Awake {
    /// Who answers there.
    provider: Option<String>,
    /// What it was told last about that.
    told: ProviderChoice,
}

impl GoosedRemote {
    /// A goosed at this address, with the usual patience.
    pub fn new(url: impl Into<String>) -> Self {
        let (timeout, pause) = (Duration::from_secs(300), Duration::from_secs(1));
        Self {
            url: url.into(),
            key: None,
            pin: None,
            timeout,
            folder: None,
            mode: None,
            protocol: None,
            pause,
            starts_when_prepared: false,
        }
    }

    /// What the agent behind it is called and offers.
    pub fn agent_manifest(&self, name: &str) -> AgentManifest {
        let mut manifest = AgentManifest::new(name, "goose", format!("The goose at {}", self.url));
        manifest.takes.push("image/*".to_owned());
        manifest.tags.push("goose".to_owned());
        manifest
    }
}

impl Goosed {
    /// The agent of this name, at that goosed. Nothing is sent yet.
    pub fn new(name: &str, remote: GoosedRemote, store: Arc<dyn Store>) -> Result<Self, GoosedError> {
        let http = GoosedHttp::new(&remote)?;
        Ok(Self { name: name.to_owned(), remote, http, store, speaks: OnceLock::new(), awake: Mutex::default() })
    }

    fn session_mapping<'a>(&'a self, view: &'a SessionView) -> SessionMapping<'a> {
        let ids = RemoteIds::OfServer;
        SessionMapping { store: &*self.store, kind: ALIAS_KIND, agent: &self.name, view, ids }
    }

    /// What goose has to be told that it was not there for. A session that it lost fails the run, so that people know.
    async fn hand_over<'a>(&self, view: &SessionView, context: &'a Context) -> Result<HandOver<'a>, GoosedError> {
        let mapping = self.session_mapping(view);
        let known = mapping.find_remote_id().await.map_err(goosed_store_trouble)?;
        let last_prompt = mapping.find_last_prompt().await.map_err(goosed_store_trouble)?;
        let opened = if known.is_some() { Opened::Resumed } else { Opened::New };
        Ok(HandOver::new(context, opened, last_prompt, HistoryForm::Transcript))
    }

    /// What goose speaks. One that has no list of sessions has no REST.
    async fn detect_protocol(&self) -> Result<Protocol, GoosedError> {
        if let Some(protocol) = self.remote.protocol.or_else(|| self.speaks.get().copied()) {
            return Ok(protocol);
        }
        let protocol = match self.http.get("/sessions").await {
            Ok(_) => Protocol::Rest,
            Err(GoosedError::NotFound) => Protocol::Acp,
            Err(trouble) => return Err(trouble),
        };
        Ok(*self.speaks.get_or_init(|| protocol))
    }

    /// Begins the goose session behind ours.
    async fn begin_session(&self, view: &SessionView) -> Result<String, GoosedError> {
        match self.detect_protocol().await? {
            Protocol::Rest => self.start_rest_session(view).await,
            Protocol::Acp => acp_run::start_acp_run_session(self, view).await,
        }
    }

    /// Ends the goose session behind ours.
    async fn end_session(&self, theirs: &str) -> Result<(), GoosedError> {
        match self.detect_protocol().await? {
            Protocol::Rest => self.http.post_json("/agent/stop", &request::goosed_stop_body(theirs)).await.map(drop),
            Protocol::Acp => acp_run::close_acp_run_session(self, theirs).await,
        }
    }

    /// The goose session behind ours, ready for a prompt: started if there is none, else resumed once.
    async fn ensure_awake(&self, view: &SessionView) -> Result<String, GoosedError> {
        let Some(theirs) = self.session_mapping(view).find_remote_id().await.map_err(goosed_store_trouble)? else {
            return self.start_rest_session(view).await;
        };
        if self.lock_awake_sessions().contains_key(&view.session) {
            return Ok(theirs);
        }
        match self.http.post_json("/agent/resume", &request::goosed_resume_body(&theirs)).await {
            Ok(answer) => self.remember_awake(view.session, &answer["session"]),
            Err(trouble) => return Err(self.forget_if_lost(view, trouble).await),
        }
        Ok(theirs)
    }

    async fn start_rest_session(&self, view: &SessionView) -> Result<String, GoosedError> {
        let folder = self.remote.folder.as_deref().unwrap_or(&view.workspace);
        let recipe = view.state.get(RECIPE_STATE).filter(|_| self.remote.starts_when_prepared);
        let answer = self.http.post_json("/agent/start", &request::goosed_start_body(folder, recipe)).await?;
        let theirs = answer["id"].as_str().or_else(|| answer["session_id"].as_str());
        let theirs = theirs.ok_or_else(|| GoosedError::Unreadable("a session without an id".to_owned()))?;
        self.session_mapping(view).set_remote_id(theirs).await.map_err(goosed_store_trouble)?;
        self.remember_awake(view.session, &answer);
        if let Some(mode) = &self.remote.mode {
            self.http.post_json("/agent/update_session", &request::goosed_update_session_body(theirs, mode)).await?;
        }
        Ok(theirs.to_owned())
    }

    /// Tells goose which model answers, if that is new.
    async fn update_provider(&self, view: &SessionView, theirs: &str) -> Result<(), GoosedError> {
        let wanted = rest_run::rest_run_provider(view);
        let Awake { provider, told } = self.lock_awake_sessions().get(&view.session).cloned().unwrap_or_default();
        let Some(body) =
            request::goosed_update_provider_body(theirs, &wanted, provider.as_deref()).filter(|_| wanted != told)
        else {
            return Ok(());
        };
        self.http.post_json("/agent/update_provider", &body).await?;
        let provider = body["provider"].as_str().map(str::to_owned);
        self.lock_awake_sessions().insert(view.session, Awake { provider, told: wanted });
        Ok(())
    }

    /// A session that goose does not know is no longer ours: the next prompt begins another one.
    async fn forget_if_lost(&self, view: &SessionView, trouble: GoosedError) -> GoosedError {
        if trouble == GoosedError::NotFound
            && let Err(error) = self.forget_session(view).await
        {
            tracing::warn!(%error, "a lost goose session is still remembered");
        }
        trouble
    }

    async fn forget_session(&self, view: &SessionView) -> Result<(), GoosedError> {
        self.lock_awake_sessions().remove(&view.session);
        self.session_mapping(view).clear().await.map_err(goosed_store_trouble)
    }

    fn remember_awake(&self, session: SessionId, answer: &Value) {
        let mut awake = self.lock_awake_sessions();
        if awake.len() >= MAX_AWAKE {
            awake.clear();
        }
        let provider = answer["provider_name"].as_str().map(str::to_owned);
        awake.insert(session, Awake { provider, told: ProviderChoice::default() });
    }

    /// A panic while the lock was held leaves nothing half done here.
    fn lock_awake_sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Awake>> {
        self.awake.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Backend for Goosed {
    async fn drive(&self, backend_run: BackendRun) {
        if backend_run.start == RunStart::Resumed {
            // Goose heard the prompt before, and stopped its turn when we went away.
            let why = "the way to goose broke while this server was stopped";
            drop(backend_run.reports.send(Report::Ended(Outcome::failed("interrupted", why))).await);
            return;
        }
        match self.detect_protocol().await {
            Ok(Protocol::Rest) => rest_run::drive_rest_run(self, backend_run).await,
            Ok(Protocol::Acp) => acp_run::drive_acp_run(self, backend_run).await,
            Err(trouble) => {
                let outcome = Outcome::failed(trouble.reason_code(), trouble.to_string());
                drop(backend_run.reports.send(Report::Ended(outcome)).await);
            }
        }
    }

    /// A goosed that is not there now may be at the first prompt.
    async fn session_opened(&self, view: &SessionView) {
        if self.remote.starts_when_prepared {
            return;
        }
        match tokio::time::timeout(SESSION_CALL_TIMEOUT, self.begin_session(view)).await {
            Ok(Ok(theirs)) => tracing::debug!(session = %view.session, theirs, "goose session started"),
            Ok(Err(error)) => tracing::warn!(%error, "goose session not started yet"),
            Err(_) => tracing::warn!("goose session not started yet: no answer"),
        }
    }

    async fn list_slash_commands(&self) -> Vec<SlashCommand> {
        match tokio::time::timeout(SESSION_CALL_TIMEOUT, self.fetch_slash_commands()).await {
            Ok(Ok(commands)) => commands,
            Ok(Err(error)) => {
                tracing::warn!(%error, "goose did not list its slash commands");
                Vec::new()
            }
            Err(_) => Vec::new(),
        }
    }

    async fn prepare_session(&self, view: &SessionView) -> Result<(), BackendFailure> {
        let prepared = async {
            match self.session_mapping(view).find_remote_id().await.map_err(goosed_store_trouble)? {
                Some(_) => Ok(()),
                None => self.begin_session(view).await.map(drop),
            }
        };
        within_goosed_timeout(PREPARE_TIMEOUT, prepared).await
    }

    async fn list_remote_sessions(&self, owner: &Principal) -> Result<Vec<RemoteSession>, BackendFailure> {
        within_goosed_timeout(SESSION_CALL_TIMEOUT, self.fetch_sessions(owner)).await
    }

    async fn adopt_remote_session(&self, view: &SessionView, id: &str) -> Result<Vec<(Role, String)>, BackendFailure> {
        within_goosed_timeout(PREPARE_TIMEOUT, self.adopt_session(view, id)).await
    }

    async fn list_remote_tools(&self, view: &SessionView) -> Vec<RemoteTool> {
        within_goosed_timeout(SESSION_CALL_TIMEOUT, self.fetch_tools(view)).await.unwrap_or_else(|failure| {
            tracing::warn!(reason = failure.message, "goose did not list its tools");
            Vec::new()
        })
    }

    async fn list_remote_files(&self, view: &SessionView) -> Vec<String> {
        self.remote_file_names(view).await
    }

    async fn read_remote_file(&self, view: &SessionView, name: &str) -> Option<RemoteFile> {
        remote_files::log_unreadable_remote_file(self.fetch_remote_file(view, name).await)
    }

    async fn session_closing(&self, view: &SessionView) {
        let Ok(Some(theirs)) = self.session_mapping(view).find_remote_id().await else { return };
        match tokio::time::timeout(SESSION_CALL_TIMEOUT, self.end_session(&theirs)).await {
            Ok(Ok(()) | Err(GoosedError::NotFound)) => {}
            Ok(Err(error)) => tracing::warn!(%error, "goose session not stopped"),
            Err(_) => tracing::warn!("goose session not stopped: no answer"),
        }
        if let Err(error) = self.forget_session(view).await {
            tracing::warn!(%error, "a deleted goose session is still remembered");
        }
    }
}

/// What goose gives within this time, or why it does not.
async fn within_goosed_timeout<T>(
    time: Duration,
    call: impl Future<Output = Result<T, GoosedError>> + Send,
) -> Result<T, BackendFailure> {
    let given = tokio::time::timeout(time, call).await;
    let given = given.unwrap_or_else(|_| Err(GoosedError::Unavailable("no answer".to_owned())));
    given.map_err(|trouble| BackendFailure { reason: trouble.reason_code().to_owned(), message: trouble.to_string() })
}

fn goosed_store_trouble(error: StoreError) -> GoosedError {
    tracing::error!(%error, "the store failed");
    GoosedError::Internal("the proxy's own store failed".to_owned())
}
