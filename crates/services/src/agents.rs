//! Agents by name: what each is, and the back-end that runs it.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use gander_agent::modes::{AgentCatalog, ModeSet};
use gander_domain::{
    AgentManifest, AgentModels, AgentOption, Outcome, Principal, Report, Role, Roster, SessionView, Settings,
    SlashCommand,
};
use gander_runtime::backend::{Backend, BackendFailure, BackendRun, RemoteFile, RemoteSession, RemoteTool};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// All agents: those of the native loop, as their files are now, then the others. The first serves whoever names none.
pub struct Agents {
    native: Option<NativeAgents>,
    others: Vec<Agent>,
    /// Those of the settings, which may come and go.
    configured: RwLock<Arc<[Agent]>>,
    /// The first answers to every name.
    any_name: bool,
    /// The roster of the library it was made from.
    roster: Mutex<Option<CachedRoster>>,
    /// The same by folder, for sessions that somebody asked about.
    rosters: Mutex<HashMap<String, CachedRoster>>,
    /// Told when it is another.
    changed: watch::Sender<()>,
}

/// How often files are looked at while somebody would be told of a change.
const SCAN_INTERVAL: Duration = Duration::from_secs(1);

/// Folders whose rosters are kept in mind.
const MAX_FOLDERS: usize = 256;

/// A roster, and what it was made from.
struct CachedRoster {
    library: Option<Arc<ModeSet>>,
    /// The sum of the generations of what agents offer.
    offers: u64,
    roster: Arc<Roster>,
}

impl CachedRoster {
    fn is_made_from(&self, library: Option<&Arc<ModeSet>>, offers: u64) -> bool {
        self.offers == offers && self.library.as_ref().map(Arc::as_ptr) == library.map(Arc::as_ptr)
    }
}

struct NativeAgents {
    agent_catalog: Arc<AgentCatalog>,
    backend: Arc<dyn Backend>,
}

/// One agent.
#[derive(Clone)]
pub struct Agent {
    /// What it is and offers.
    pub manifest: Arc<AgentManifest>,
    /// What runs it.
    pub backend: Arc<dyn Backend>,
    check: Option<AgentCheck>,
}

/// Finds out why an agent cannot run here.
type AgentCheck = Arc<dyn Fn() -> Option<AgentProblem> + Send + Sync>;

/// Why an agent cannot run here, and what mends that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentProblem {
    /// For people.
    pub reason: String,
    /// A command, or what else to do.
    pub fix: Option<String>,
}

/// There is one of this name already.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there are two agents of this name: {0}")]
pub struct NameTaken(pub String);

impl Agent {
    /// An agent that this back-end runs.
    pub fn new(manifest: AgentManifest, backend: Arc<dyn Backend>) -> Self {
        Self { manifest: Arc::new(manifest), backend, check: None }
    }

    /// What it is, with the modes that it said it has.
    fn manifest_as_offered(&self) -> Arc<AgentManifest> {
        match self.backend.offers().filter(|offers| !offers.modes.is_empty()) {
            Some(offers) => {
                Arc::new(AgentManifest { modes: offers.modes.clone(), ..AgentManifest::clone(&self.manifest) })
            }
            None => Arc::clone(&self.manifest),
        }
    }

    /// With this to find out why it cannot run here. It may look at files.
    #[must_use]
    pub fn with_check(self, check: impl Fn() -> Option<AgentProblem> + Send + Sync + 'static) -> Self {
        Self { check: Some(Arc::new(check)), ..self }
    }
}

impl Agents {
    /// With one agent, the default.
    pub fn new(first: Agent) -> Self {
        Self { others: vec![first], ..Self::empty() }
    }

    /// One agent that answers to every name.
    pub fn answering_every_name(agent: Agent) -> Self {
        Self { any_name: true, ..Self::new(agent) }
    }

    /// With the agents of this catalog, which this back-end runs.
    pub fn with_native_agents(agent_catalog: Arc<AgentCatalog>, backend: Arc<dyn Backend>) -> Self {
        Self { native: Some(NativeAgents { agent_catalog, backend }), ..Self::empty() }
    }

    fn empty() -> Self {
        let (roster, rosters, changed) = (Mutex::default(), Mutex::default(), watch::Sender::new(()));
        let configured = RwLock::new(Arc::new([]) as Arc<[Agent]>);
        Self { native: None, others: Vec::new(), configured, any_name: false, roster, rosters, changed }
    }

    /// One more.
    pub fn add(&mut self, agent: Agent) -> Result<(), NameTaken> {
        if self.roster().agents().iter().any(|known| known.name == agent.manifest.name) {
            return Err(NameTaken(agent.manifest.name.clone()));
        }
        self.others.push(agent);
        *self.roster.get_mut().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(())
    }

    /// From now on the settings name these. One whose name is taken is left out.
    pub fn set_configured(&self, agents: Vec<Agent>) {
        let others = |name: &str| self.others.iter().any(|other| other.manifest.name == name);
        let agents: Arc<[Agent]> = agents.into_iter().filter(|agent| !others(&agent.manifest.name)).collect();
        *self.configured.write().unwrap_or_else(PoisonError::into_inner) = agents;
        *self.roster.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.rosters.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.changed.send_replace(());
    }

    /// Why the agent of this name cannot run here, if it cannot. Looks at files.
    pub fn find_problem(&self, name: &str) -> Option<AgentProblem> {
        let agent = self.configured().iter().find(|agent| agent.manifest.name == name).cloned()?;
        agent.check.and_then(|check| check())
    }

    fn configured(&self) -> Arc<[Agent]> {
        Arc::clone(&self.configured.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// All agents and the names of their modes.
    pub fn roster(&self) -> Arc<Roster> {
        let library = self.native.as_ref().map(|native| native.agent_catalog.modes());
        let offers = self.offers_generation();
        let mut kept = self.roster.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cached) = kept.as_ref().filter(|cached| cached.is_made_from(library.as_ref(), offers)) {
            return Arc::clone(&cached.roster);
        }
        let roster = self.build_roster(library.as_deref());
        let before = kept.replace(CachedRoster { library, offers, roster: Arc::clone(&roster) });
        if before.is_some_and(|before| before.offers != offers || before.roster.agents() != roster.agents()) {
            self.changed.send_replace(());
        }
        roster
    }

    /// The same for a session in this folder, whose project may bring along some of its own.
    pub fn roster_in_folder(&self, folder: &str) -> Arc<Roster> {
        let all = self.roster();
        let Some(native) = &self.native else { return all };
        let library = native.agent_catalog.modes_in(Path::new(folder));
        let offers = self.offers_generation();
        let mut kept = self.rosters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cached) = kept.get(folder).filter(|cached| cached.is_made_from(Some(&library), offers)) {
            return Arc::clone(&cached.roster);
        }
        let same = Arc::ptr_eq(&library, &native.agent_catalog.modes());
        let roster = if same { all } else { self.build_roster(Some(&library)) };
        if kept.len() >= MAX_FOLDERS && !kept.contains_key(folder) {
            kept.clear();
        }
        let cached = CachedRoster { library: Some(library), offers, roster: Arc::clone(&roster) };
        let before = kept.insert(folder.to_owned(), cached);
        if before.is_some_and(|before| before.roster.agents() != roster.agents()) {
            self.changed.send_replace(());
        }
        roster
    }

    /// The agents of this library and the others. Names of these are taken.
    fn build_roster(&self, library: Option<&ModeSet>) -> Arc<Roster> {
        let configured = self.configured();
        let others = || self.others.iter().chain(configured.iter());
        let free = |manifest: &AgentManifest| others().all(|agent| agent.manifest.name != manifest.name);
        let native = library.into_iter().flat_map(ModeSet::agent_manifests).filter(free).map(Arc::new);
        let others = others().map(Agent::manifest_as_offered);
        Arc::new(Roster::new(native.chain(others).collect()))
    }

    /// Another one whenever an agent of the settings offers something else than before.
    fn offers_generation(&self) -> u64 {
        self.configured().iter().filter_map(|agent| agent.backend.offers()).map(|offers| offers.generation).sum()
    }

    /// Models of agents that bring their own, by the agents' names.
    pub fn agent_models(&self) -> BTreeMap<String, AgentModels> {
        let configured = self.configured();
        let own = configured.iter().filter_map(|agent| {
            let offers = agent.backend.offers().filter(|offers| !offers.models.models.is_empty())?;
            Some((agent.manifest.name.clone(), offers.models.clone()))
        });
        own.collect()
    }

    /// Options of agents that bring their own, by the agents' names.
    pub fn agent_options(&self) -> BTreeMap<String, Vec<AgentOption>> {
        let configured = self.configured();
        let own = configured.iter().filter_map(|agent| {
            let offers = agent.backend.offers().filter(|offers| !offers.options.is_empty())?;
            Some((agent.manifest.name.clone(), offers.options.clone()))
        });
        own.collect()
    }

    /// Looks at all files that somebody asked about.
    fn scan_files(&self) {
        self.roster();
        let folders: Vec<String> =
            self.rosters.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect();
        folders.iter().for_each(|folder| drop(self.roster_in_folder(folder)));
    }

    /// Says when agents or modes come, go or are described anew.
    pub fn roster_changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Tells whoever shows choices that they are others now.
    pub fn announce_choices(&self) {
        self.changed.send_replace(());
    }

    /// Looks at the files of agents while anybody is there who would be told of a change.
    pub async fn watch_files(self: Arc<Self>, stop: CancellationToken) {
        let mut looks = tokio::time::interval(SCAN_INTERVAL);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                _ = looks.tick() => {}
            }
            let agents = Arc::clone(&self);
            let looked = tokio::task::spawn_blocking(move || {
                if agents.changed.receiver_count() > 0 {
                    agents.scan_files();
                }
            });
            if let Err(error) = looked.await {
                tracing::error!(%error, "the files of agents cannot be looked at");
            }
        }
    }

    /// The agent of whoever names none.
    pub fn default_manifest(&self) -> Arc<AgentManifest> {
        let first = self.manifests().into_iter().next();
        first.unwrap_or_else(|| Arc::new(AgentManifest::new("none", "None", "There is no agent here")))
    }

    /// What this name means, be it an agent or one of its modes.
    pub fn manifest(&self, name: &str) -> Option<Arc<AgentManifest>> {
        let any = || self.any_name.then(|| self.default_manifest());
        self.roster().find_manifest(name).or_else(any)
    }

    /// What all of them are, the default first.
    pub fn manifests(&self) -> Vec<Arc<AgentManifest>> {
        self.roster().agents().to_vec()
    }

    /// These settings, for what this name means: an agent in its default mode, or one of its modes.
    pub fn settings_for_agent(&self, name: &str, base: &Settings) -> Option<Settings> {
        let roster = self.roster();
        let any = || roster.settings_for_name(&roster.agents().first().filter(|_| self.any_name)?.name, base);
        roster.settings_for_name(name, base).or_else(any)
    }

    /// Slash commands that an agent carries out itself, for a session in this folder.
    pub async fn slash_commands(&self, agent: &str, folder: &str) -> Vec<SlashCommand> {
        match self.backend_in_folder(agent, folder) {
            Some(backend) => backend.list_slash_commands().await,
            None => Vec::new(),
        }
    }

    /// Sessions that an agent has of its own and that stand behind none of this owner's.
    pub async fn remote_sessions(&self, agent: &str, owner: &Principal) -> Result<Vec<RemoteSession>, BackendFailure> {
        match self.backend_in_folder(agent, "") {
            Some(backend) => backend.list_remote_sessions(owner).await,
            None => Ok(Vec::new()),
        }
    }

    fn backend_of(&self, view: &SessionView) -> Option<Arc<dyn Backend>> {
        self.backend_in_folder(&view.settings.agent, &view.workspace)
    }

    fn backend_in_folder(&self, name: &str, folder: &str) -> Option<Arc<dyn Backend>> {
        let configured = self.configured();
        let mut others = self.others.iter().chain(configured.iter());
        if let Some(agent) = others.find(|agent| self.any_name || agent.manifest.name == name) {
            return Some(Arc::clone(&agent.backend));
        }
        let native = self.native.as_ref()?;
        let library = native.agent_catalog.modes_in(Path::new(folder));
        library.agent_specs().iter().any(|agent| agent.name == name).then(|| Arc::clone(&native.backend))
    }
}

#[async_trait]
impl Backend for Agents {
    async fn drive(&self, backend_run: BackendRun) {
        match self.backend_of(&backend_run.view) {
            Some(backend) => backend.drive(backend_run).await,
            None => {
                let message = format!("no such agent here: {}", backend_run.view.settings.agent);
                // Nobody hears it only if the session is gone.
                drop(backend_run.reports.send(Report::Ended(Outcome::failed("agent", message))).await);
            }
        }
    }

    async fn session_opened(&self, view: &SessionView) {
        if let Some(backend) = self.backend_of(view) {
            backend.session_opened(view).await;
        }
    }

    async fn prepare_session(&self, view: &SessionView) -> Result<(), BackendFailure> {
        match self.backend_of(view) {
            Some(backend) => backend.prepare_session(view).await,
            None => Ok(()),
        }
    }

    async fn session_closing(&self, view: &SessionView) {
        if let Some(backend) = self.backend_of(view) {
            backend.session_closing(view).await;
        }
    }

    async fn list_remote_files(&self, view: &SessionView) -> Vec<String> {
        match self.backend_of(view) {
            Some(backend) => backend.list_remote_files(view).await,
            None => Vec::new(),
        }
    }

    async fn read_remote_file(&self, view: &SessionView, name: &str) -> Option<RemoteFile> {
        self.backend_of(view)?.read_remote_file(view, name).await
    }

    async fn adopt_remote_session(&self, view: &SessionView, id: &str) -> Result<Vec<(Role, String)>, BackendFailure> {
        match self.backend_of(view) {
            Some(backend) => backend.adopt_remote_session(view, id).await,
            None => Ok(Vec::new()),
        }
    }

    async fn list_remote_tools(&self, view: &SessionView) -> Vec<RemoteTool> {
        match self.backend_of(view) {
            Some(backend) => backend.list_remote_tools(view).await,
            None => Vec::new(),
        }
    }
}
