//! The running application: store, sessions and doors behind one handle.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use futures::FutureExt as _;
use gander_agent::modes::AgentCatalog;
use gander_agent::{delegate, native_toolbox};
use gander_domain::{Recovery, Settings, ToolSpec};
use gander_gateway::protocols::a2a::{CardSigner, PushNotifications};
use gander_gateway::server::{Gateway, GatewayParts};
use gander_gateway::{ClientPeer, protocols};
use gander_mcp::Keyring;
use gander_native::Native;
use gander_runtime::backend::goosed::Goosed;
use gander_runtime::hub::Hub;
use gander_services::agents::{Agent, Agents};
use gander_services::apps::{Apps, app_tool_specs};
use gander_services::artifacts::{Artifacts, artifact_tool_specs};
use gander_services::clients::AttachedClients;
use gander_services::extensions::{self, Extensions, ExtensionsConfig, NetworkStore, PinStore, VaultTokenStore};
use gander_services::grants::Grants;
use gander_services::memory::{Memories, memory_tool_specs};
use gander_services::models::{ModelPreferences, Models};
use gander_services::paths::Paths;
use gander_services::recipes::Recipes;
use gander_services::scheduler;
use gander_services::schedules::{Schedules, canonical_time_zone};
use gander_services::state::SharedState;
use gander_services::token::{Tokens, owner_token};
use gander_services::trust::{PROJECT_FOLDER, Trust};
use gander_services::vault::Vault;
use gander_services::workspaces::Workspaces;
use gander_services::{Control, Services};
use gander_store::{Health, SqliteStore, Store, StoreOptions};
use gander_tools::protected::Protected;
use gander_tools::sandbox::Sandbox;
use gander_tools::{FileAccess, Redactor, ToolEnv, Toolbox};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::config::{Config, OnRestart, RemoteAgent, RemoteKind, Sections};
use crate::sandbox;

/// Something the owner tells the server itself, and where the answer goes.
pub type ControlRequest = (Control, oneshot::Sender<Result<Value, String>>);

/// The running application.
pub struct App {
    config: Config,
    store: Arc<dyn Store>,
    services: Arc<Services>,
    models: Arc<Models>,
    push: PushNotifications,
    signer: Option<Arc<CardSigner>>,
    /// Cancelled when nothing new begins by the clock.
    clock: CancellationToken,
    controls: Mutex<Option<mpsc::Receiver<ControlRequest>>>,
}

/// Makes the agents that an embedder adds. They may keep what they need in the server's store.
type AgentsFactory = Box<dyn FnOnce(&Arc<dyn Store>) -> Vec<Agent> + Send>;

/// An application before it starts: settings, and what an embedder adds to the product's own parts.
pub struct AppBuilder {
    config: Config,
    more_agents: Vec<AgentsFactory>,
}

impl AppBuilder {
    /// Adds agents, behind those of the settings.
    #[must_use]
    pub fn with_agents(mut self, agents: impl FnOnce(&Arc<dyn Store>) -> Vec<Agent> + Send + 'static) -> Self {
        self.more_agents.push(Box::new(agents));
        self
    }

    /// The settings it will start with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Opens the store and picks up what was open.
    pub async fn start(self) -> anyhow::Result<Arc<App>> {
        App::start_with_agents(self.config, self.more_agents).await
    }
}

impl From<Config> for AppBuilder {
    fn from(config: Config) -> Self {
        App::builder(config)
    }
}

impl fmt::Debug for AppBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AppBuilder").field("data", &self.config.paths.data()).finish_non_exhaustive()
    }
}

impl App {
    /// An application with these settings, to which parts can be added before it starts.
    pub fn builder(config: Config) -> AppBuilder {
        AppBuilder { config, more_agents: Vec::new() }
    }

    /// The product as its settings say.
    pub async fn start(config: Config) -> anyhow::Result<Arc<Self>> {
        Self::builder(config).start().await
    }

    async fn start_with_agents(config: Config, more_agents: Vec<AgentsFactory>) -> anyhow::Result<Arc<Self>> {
        let store =
            SqliteStore::open(StoreOptions::new(config.paths.data())).await.context("the log cannot be opened")?;
        let store: Arc<dyn Store> = Arc::new(store);
        let models = Arc::new(build_models(&config)?);
        let grants = Grants::load(Arc::clone(&store)).await?;
        let sandbox = build_sandbox(&config);
        let pins = PinStore::load(Arc::clone(&store)).await?;
        let networks = NetworkStore::load(Arc::clone(&store)).await?;
        let trust = Trust::load(Arc::clone(&store)).await?;
        let vault = Vault::open(config.paths.secrets())?;
        let added = extensions::ExtensionRegistry::load(Arc::clone(&store), vault.clone()).await?;
        let keyring = Keyring::new(Arc::new(VaultTokenStore(vault.clone())));
        let extensions_config = ExtensionsConfig {
            keyring,
            ..build_extensions_config(&config, (pins, networks), added, &trust, sandbox.clone())
        };
        let extensions =
            Arc::new(Extensions::new(config.extensions.clone(), config.built_ins.clone(), extensions_config));
        let files = build_file_access(&config);
        let recipes = Arc::new(Recipes::load(Arc::clone(&store), files.clone()).await?);
        let schedules = Arc::new(load_schedules(&config, &store).await?);
        let artifacts = Artifacts::new(Arc::clone(&store));
        let apps = Apps::new(artifacts.clone());
        let agent_catalog = Arc::new(build_agent_catalog(&config, &trust, &files));
        let memories = Memories::new(Arc::clone(&store));
        let stored = StoredServices {
            files,
            grants,
            trust,
            extensions,
            recipes,
            schedules,
            apps,
            artifacts,
            memories,
            agent_catalog,
        };
        let native = build_native(&config, &models, &stored, sandbox);
        let (tools, weak) = (own_tool_specs(&native.toolbox), Arc::clone(&native.hub));
        let agents = Arc::new(build_agents(&config, native, &store, more_agents)?);
        let cache = config.sections.limits.idle_sessions.len();
        let hub =
            Hub::with_cache(Arc::clone(&store), Arc::clone(&agents) as _, recovery_policy(&config.sections), cache)
                .with_default_policy(config.sections.permissions.policy)
                .with_on_deleted(stored.artifacts.on_session_deleted());
        weak.get_or_init(|| hub.weak());
        let (sender, controls) = mpsc::channel(8);
        let services = Arc::new(build_services(&config, hub, agents, stored, &models, tools, sender));
        let push = PushNotifications::load(services.hub.clone(), config.sections.a2a.push_allow.clone(), vault).await?;
        let signer = CardSigner::load(&config.sections.a2a, config.paths.data())?.map(Arc::new);
        let (clock, controls) = (CancellationToken::new(), Mutex::new(Some(controls)));
        let app = Self { config, store, services, models, push, signer, clock, controls };
        app.spawn_background_tasks();
        Ok(Arc::new(app))
    }

    /// Neither open runs nor providers that have to be looked for delay the first answer.
    fn spawn_background_tasks(&self) {
        let (hub, models) = (self.services.hub.clone(), Arc::clone(&self.models));
        tokio::spawn(scheduler::run_due_schedules(Arc::clone(&self.services), self.clock.clone()));
        tokio::spawn(Arc::clone(&self.services.agents).watch_files(self.clock.clone()));
        hub.start_maintenance();
        tokio::spawn(async move {
            match hub.recover_open_runs().await {
                Ok(0) => {}
                Ok(runs) => tracing::info!(runs, "picked up runs that were under way"),
                Err(error) => tracing::error!(%error, "open runs could not be picked up"),
            }
            models.default_model().await;
        });
    }

    /// What every protocol works with.
    pub fn services(&self) -> &Arc<Services> {
        &self.services
    }

    /// What the owner tells the server itself. There is one who listens.
    pub fn take_controls(&self) -> Option<mpsc::Receiver<ControlRequest>> {
        self.controls.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The models it can use.
    pub fn models(&self) -> &Arc<Models> {
        &self.models
    }

    /// Who wants updates of tasks sent where.
    pub fn push(&self) -> &PushNotifications {
        &self.push
    }

    /// The network side of this application.
    pub fn gateway(&self, config: &Config, tokens: Tokens) -> Arc<Gateway> {
        let Sections { acp, server, a2a, adk, limits, .. } = config.sections.clone();
        let (services, push, signer) = (Arc::clone(&self.services), self.push.clone(), self.signer.clone());
        let data = config.paths.data().to_owned();
        Gateway::new(GatewayParts { services, push, signer, acp, server, a2a, adk, limits, data, tokens })
    }

    /// Facts for an authorised caller.
    pub fn status(&self) -> Value {
        (self.services.status)()
    }

    /// Whether the store works. The answer takes a second at the most.
    pub async fn health(&self) -> Health {
        self.store.health().await
    }

    /// True if nothing runs and nothing is due.
    pub fn is_idle(&self) -> bool {
        self.services.hub.active_sessions() == 0 && self.push.is_idle() && self.services.schedules.is_idle()
    }

    /// The settings it was started with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Takes no new work, hands over or parks what runs. Ends within 25 seconds.
    pub async fn drain(&self) {
        self.clock.cancel();
        self.services.hub.drain(self.config.grace).await;
        self.push.stop();
        if let Err(error) = self.store.close().await {
            tracing::error!(%error, "the log did not close");
        }
    }

    /// Serves line-delimited ACP until the reader ends.
    pub async fn serve_acp<R, W>(&self, reader: R, writer: W, mut peer: ClientPeer)
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        peer.options = peer.options.or_default(self.config.sections.acp);
        protocols::acp::serve_lines(Arc::clone(&self.services), reader, writer, peer).await;
    }
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").field("data", &self.config.paths.data()).finish_non_exhaustive()
    }
}

fn build_models(config: &Config) -> anyhow::Result<Models> {
    let section = &config.sections.model;
    let (default, fast, strong) = (section.default.clone(), section.fast.clone(), section.strong.clone());
    let chosen = ModelPreferences { default, fast, strong };
    Ok(Models::new(config.catalogue()?, config.keys.clone(), chosen))
}

/// The native agent, and whoever else there is.
fn build_agents(
    config: &Config,
    native: Native,
    store: &Arc<dyn Store>,
    more_agents: Vec<AgentsFactory>,
) -> anyhow::Result<Agents> {
    let mut remote = config.agents.iter();
    let mut agents = match config.native {
        true => Agents::native(Arc::clone(&native.agent_catalog), Arc::new(native)),
        false => Agents::answering_every_name(build_remote_agent(remote.next().context("there is no agent")?, store)?),
    };
    for agent in remote {
        agents.add(build_remote_agent(agent, store)?)?;
    }
    more_agents.into_iter().flat_map(|make| make(store)).try_for_each(|agent| agents.add(agent))?;
    Ok(agents)
}

/// An agent that another server runs.
fn build_remote_agent(agent: &RemoteAgent, store: &Arc<dyn Store>) -> anyhow::Result<Agent> {
    let RemoteAgent { name, title, description, kind } = agent;
    let (mut manifest, backend) = match kind {
        RemoteKind::Goosed(remote) => {
            let goosed = Goosed::new(name, remote.clone(), Arc::clone(store));
            (remote.manifest(name), goosed.with_context(|| format!("the agent cannot be spoken to: {name}"))?)
        }
    };
    manifest.title = title.clone().unwrap_or(manifest.title);
    manifest.description = description.clone().unwrap_or(manifest.description);
    Ok(Agent::new(manifest, Arc::new(backend)))
}

/// The agents and modes: built in, the owner's, and those of projects that are trusted.
fn build_agent_catalog(config: &Config, trust: &Trust, files: &FileAccess) -> AgentCatalog {
    let trust = trust.clone();
    let place = PathBuf::from(PROJECT_FOLDER).join("agents");
    AgentCatalog::from_folder(config.agents_folder())
        .with_projects(place, files.clone(), move |folder| trust.is_trusted(folder))
}

/// Every tool of our own that a session may have, whichever of them are on.
fn own_tool_specs(toolbox: &Toolbox) -> Arc<[ToolSpec]> {
    let lent = app_tool_specs().into_iter().chain(artifact_tool_specs()).chain(memory_tool_specs());
    toolbox.specs().iter().cloned().chain([delegate::spec()]).chain(lent).collect()
}

/// What the server keeps beside its sessions.
struct StoredServices {
    files: FileAccess,
    grants: Grants,
    trust: Trust,
    extensions: Arc<Extensions>,
    recipes: Arc<Recipes>,
    schedules: Arc<Schedules>,
    apps: Apps,
    artifacts: Artifacts,
    memories: Memories,
    agent_catalog: Arc<AgentCatalog>,
}

async fn load_schedules(config: &Config, store: &Arc<dyn Store>) -> anyhow::Result<Schedules> {
    let section = &config.sections.schedules;
    let zone = section.zone.as_deref().map(canonical_time_zone).transpose().context("schedules.zone")?;
    Ok(Schedules::load(Arc::clone(store), section.missed, zone).await?)
}

fn build_extensions_config(
    config: &Config,
    (pins, networks): (PinStore, NetworkStore),
    registry: extensions::ExtensionRegistry,
    trust: &Trust,
    sandbox: Sandbox,
) -> ExtensionsConfig {
    ExtensionsConfig {
        environment: config.tool_environment.clone(),
        sandbox,
        network: sandbox::network_access(config.sections.sandbox.server_network),
        limits: config.sections.tools.limits(),
        redactor: Redactor::new(secrets_to_redact(config)),
        networks,
        pins,
        keyring: Keyring::default(),
        registry,
        trust: trust.clone(),
        keys: config.keys.clone(),
    }
}

/// Fences of this server. They are tried out beside: nobody waits for that but the first command.
fn build_sandbox(config: &Config) -> Sandbox {
    let sandbox = sandbox::configured_sandbox(config);
    let (tried, old) = (sandbox.clone(), config.paths.temporary());
    std::thread::spawn(move || {
        if let Err(error) = std::fs::remove_dir_all(&old)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(%error, "temporary files of commands stay");
        }
        tracing::info!(layers = %tried.layers(), "the sandbox");
    });
    sandbox
}

fn build_native(config: &Config, models: &Arc<Models>, stored: &StoredServices, sandbox: Sandbox) -> Native {
    let limits = config.sections.tools.limits();
    let tool_env = ToolEnv {
        environment: config.tool_environment.clone(),
        redactor: Redactor::new(secrets_to_redact(config)),
        sandbox,
        network: sandbox::network_access(config.sections.sandbox.network),
        protected: Protected::storing(config.paths.protected()),
        ..ToolEnv::default()
    };
    Native {
        agent_catalog: Arc::clone(&stored.agent_catalog),
        models: Arc::clone(models),
        settings: config.sections.agent.clone(),
        limits,
        files: stored.files.clone(),
        workspaces: build_workspaces(config, &stored.files),
        toolbox: Arc::new(native_toolbox(limits, tool_env, config.own.skills.clone())),
        rules: config.sections.permissions.rules.clone().into(),
        grants: stored.grants.clone(),
        trust: stored.trust.clone(),
        extensions: Arc::clone(&stored.extensions),
        own: config.own.clone(),
        recipes: Arc::clone(&stored.recipes),
        apps: stored.apps.clone(),
        artifacts: stored.artifacts.clone(),
        memories: stored.memories.clone(),
        hub: Arc::default(),
    }
}

/// How files are read for sessions: never those of the server itself.
fn build_file_access(config: &Config) -> FileAccess {
    FileAccess::new(Redactor::new(secrets_to_redact(config))).hiding(config.paths.data().to_owned(), Paths::SCRATCH)
}

fn build_workspaces(config: &Config, files: &FileAccess) -> Workspaces {
    Workspaces::new(config.paths.scratch(), config.sections.server.roots.clone(), files.clone())
}

/// What no tool may show: the keys of providers, and the token of this server.
fn secrets_to_redact(config: &Config) -> Vec<String> {
    let keys = config.keys.names().filter_map(|name| config.keys.get(name)).map(str::to_owned);
    let token = owner_token(&config.paths).ok();
    let tokens = token.iter().chain(&config.secret).map(|token| token.expose_secret().to_owned());
    keys.filter(|key| !key.starts_with("http")).chain(tokens).collect()
}

fn recovery_policy(sections: &Sections) -> Recovery {
    let recovery = &sections.recovery;
    Recovery {
        resume: recovery.on_restart == OnRestart::Resume,
        max_age: i64::try_from(recovery.max_age.0.as_micros()).unwrap_or(i64::MAX),
        max_times: recovery.max_times,
    }
}

fn build_services(
    config: &Config,
    hub: Hub,
    agents: Arc<Agents>,
    stored: StoredServices,
    models: &Arc<Models>,
    tools: Arc<[ToolSpec]>,
    controls: mpsc::Sender<ControlRequest>,
) -> Services {
    let manifest = agents.default_manifest();
    let settings = Settings {
        policy: config.sections.permissions.policy,
        effort: config.sections.model.effort,
        ..Settings::new(&manifest.name, manifest.default_mode())
    };
    let clients = Arc::new(AttachedClients::default());
    let status = status_reporter(hub.clone(), Arc::clone(&clients), Arc::clone(models));
    let models = Arc::clone(models);
    let (roster, known) = (Arc::clone(&agents), Arc::clone(&models));
    Services {
        artifacts: stored.artifacts,
        shared_state: SharedState::new(Arc::clone(hub.store())),
        hub,
        clients,
        workspaces: build_workspaces(config, &stored.files),
        files: stored.files,
        max_line_bytes: config.sections.limits.line.len(),
        grants: stored.grants,
        trust: stored.trust,
        extensions: stored.extensions,
        recipes: stored.recipes,
        schedules: stored.schedules,
        apps: stored.apps,
        agent_catalog: stored.agent_catalog,
        remote_commands: config.sections.server.allow_remote_commands,
        agents,
        settings,
        tools,
        reply_grace: config.sections.server.reply_grace.0,
        models,
        catalog: Arc::new(move |folder| known.catalog(roster.roster_in_folder(folder))),
        status: Arc::new(status),
        control: Arc::new(move |control| forward_control(controls.clone(), control).boxed()),
    }
}

async fn forward_control(controls: mpsc::Sender<ControlRequest>, control: Control) -> Result<Value, String> {
    let (reply, answer) = oneshot::channel();
    let gone = |_| "this server takes no orders".to_owned();
    controls.send((control, reply)).await.map_err(|_| gone(()))?;
    answer.await.map_err(|_| gone(()))?
}

fn status_reporter(hub: Hub, clients: Arc<AttachedClients>, models: Arc<Models>) -> impl Fn() -> Value {
    move || {
        let stats = hub.store().stats();
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "pid": std::process::id(),
            "sessions": { "active": hub.active_sessions(), "attached": clients.total_attached() },
            "idle_sessions": hub.cache_stats(),
            "model": models.known_default(),
            "store": {
                "commits": stats.commits,
                "syncs": stats.barriers,
                "rows": stats.rows,
                "entries": stats.entries,
                "deltas": stats.deltas,
            },
        })
    }
}
