//! The running application: store, sessions and protocols behind one handle.

mod agents;
mod build;
mod cluster;
mod former_node;
mod store;
mod stored_services;
mod telemetry;

use std::collections::HashSet;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::routing::MethodRouter;
use gander_gateway::protocols::a2a::{A2aSettings, CardSigner, PushNotifications};
use gander_gateway::protocols::acp_rest::AcpRestSettings;
use gander_gateway::server::{
    BadRoute, Gateway, GatewayParts, OwnRoute, ProtocolSettings, RouteAccess, router_with_routes,
};
use gander_gateway::{ClientPeer, protocols};
use gander_http::LargeResponses;
use gander_runtime::hub::Hub;
use gander_services::agents::Agent;
use gander_services::audit::AuditExport;
use gander_services::browser_access::BrowserAccess;
use gander_services::models::Models;
use gander_services::other_nodes;
use gander_services::scheduler;
use gander_services::server_vault::ServerVault;
use gander_services::sessions::SessionIds;
use gander_services::token::Tokens;
use gander_services::{Control, Services};
use gander_store::{Health, Store};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use self::agents::ConfiguredAgents;
use self::build::{
    build_agents, build_models, build_native, build_run_settings, build_sandbox, build_services, build_workspaces,
    follow_settings, live_policy, on_session_deleted, own_tools, recovery_policy,
};
use self::cluster::{SharedSecrets, cluster_options, runs_schedules};
use self::former_node::NodeLock;
use self::store::open_server_store;
pub use self::store::open_store;
use self::stored_services::StoredServices;
use self::telemetry::{TraceTask, build_collector, start_telemetry};
use crate::config::{Config, LiveConfig, Sections};

/// How often the settings file is looked at while nothing is decided by it.
const SETTINGS_INTERVAL: Duration = Duration::from_secs(1);

/// How often is looked for MCP servers of sessions that everybody left.
const DESERTED_INTERVAL: Duration = Duration::from_secs(2);

/// Something the owner tells the server itself, and where the answer goes.
pub type ControlRequest = (Control, oneshot::Sender<Result<Value, String>>);

/// The running application.
pub struct App {
    live: Arc<LiveConfig>,
    store: Arc<dyn Store>,
    services: Arc<Services>,
    models: Arc<Models>,
    /// What clients share, whatever carries them.
    large_responses: Arc<LargeResponses>,
    push: PushNotifications,
    signer: Option<Arc<CardSigner>>,
    /// What nodes have in common, if there may be several.
    shared: SharedSecrets,
    _node: Option<NodeLock>,
    /// Cancelled when nothing new begins by the clock.
    clock: CancellationToken,
    traces: TraceTask,
    controls: Mutex<Option<mpsc::Receiver<ControlRequest>>>,
    /// Of the embedder.
    routes: Mutex<Vec<OwnRoute>>,
}

/// Makes the agents that an embedder adds. They may keep what they need in the server's store.
type AgentsFactory = Box<dyn FnOnce(&Arc<dyn Store>) -> Vec<Agent> + Send>;

/// An application before it starts: settings, and what an embedder adds to the product's own parts.
///
/// Several agents in one server, with a route of its own beside those of the protocols, and a store that forgets:
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use gander::axum::routing::get;
/// use gander::config::{Config, Environment, Flags};
/// use gander::daemon::{Server, Signals, Start};
/// use gander::{Agent, AgentInfo, App, PromptRequest, PromptResult, RouteAccess, StopReason, UpdateSink};
///
/// async fn answer(request: PromptRequest, sink: UpdateSink) -> PromptResult {
///     sink.text(request.text()).await?;
///     Ok(StopReason::EndTurn)
/// }
///
/// let flags = Flags { data: Some("/var/lib/my-agents".into()), ..Flags::default() };
/// let config = Config::load(&flags, &Environment::of_process())?;
/// let app = App::builder(config)
///     .without_native_agent()
///     .with_agent(Agent::new(AgentInfo::new("echo", "1.0.0")).on_prompt(answer))
///     .with_agent(Agent::new(AgentInfo::new("parrot", "1.0.0")).on_prompt(answer))
///     .with_store(Arc::new(gander::store::MemoryStore::new()))
///     .with_route("/version", RouteAccess::Public, get(|| async { "1.0.0" }));
/// let server = Server::start(app, Start::Foreground(([127, 0, 0, 1], 4747).into())).await?;
/// server.run(Signals::listen()?).await;
/// # Ok(())
/// # }
/// ```
pub struct AppBuilder {
    config: Config,
    parts: AddedParts,
}

/// What an embedder adds or leaves out.
#[derive(Default)]
pub(crate) struct AddedParts {
    agents: Vec<AgentsFactory>,
    native: NativeAgent,
    store: Option<Arc<dyn Store>>,
    routes: Vec<OwnRoute>,
    ids: SessionIds,
}

/// Is the built-in agent there?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum NativeAgent {
    #[default]
    Included,
    LeftOut,
}

impl AppBuilder {
    /// Adds an agent that is a prompt handler, behind those of the settings.
    #[must_use]
    pub fn with_agent(self, agent: crate::Agent) -> Self {
        self.with_agents(move |store| vec![agent.into_service_agent(store)])
    }

    /// Leaves the built-in agent out: the first one that was added serves whoever names none.
    #[must_use]
    pub fn without_native_agent(mut self) -> Self {
        self.parts.native = NativeAgent::LeftOut;
        self
    }

    /// Keeps sessions in this store instead of in a database of the data directory.
    #[must_use]
    pub fn with_store(mut self, store: Arc<dyn Store>) -> Self {
        self.parts.store = Some(store);
        self
    }

    /// Serves an address of your own beside those of the protocols, behind the same checks of names, origins, sizes and
    /// tokens. An address that is taken is an error at the start.
    #[must_use]
    pub fn with_route(mut self, path: impl Into<String>, access: RouteAccess, handlers: MethodRouter) -> Self {
        self.parts.routes.push(OwnRoute { path: path.into(), access, handlers });
        self
    }

    /// How new sessions are called: by random ids, or `session-1`, `session-2` and so on.
    #[must_use]
    pub fn with_session_ids(mut self, ids: SessionIds) -> Self {
        self.parts.ids = ids;
        self
    }

    /// Adds agents, behind those of the settings.
    #[must_use]
    pub fn with_agents(mut self, agents: impl FnOnce(&Arc<dyn Store>) -> Vec<Agent> + Send + 'static) -> Self {
        self.parts.agents.push(Box::new(agents));
        self
    }

    /// The settings it will start with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Opens the store and picks up what was open.
    pub async fn start(self) -> anyhow::Result<Arc<App>> {
        App::start_with_parts(self.config, self.parts).await
    }
}

impl From<Config> for AppBuilder {
    fn from(config: Config) -> Self {
        App::builder(config)
    }
}

impl fmt::Debug for AppBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AppBuilder").field("data", &self.config.paths.data_directory()).finish_non_exhaustive()
    }
}

impl App {
    /// An application with these settings, to which parts can be added before it starts.
    pub fn builder(config: Config) -> AppBuilder {
        AppBuilder { config, parts: AddedParts::default() }
    }

    /// The product as its settings say.
    pub async fn start(config: Config) -> anyhow::Result<Arc<Self>> {
        Self::builder(config).start().await
    }

    async fn start_with_parts(config: Config, parts: AddedParts) -> anyhow::Result<Arc<Self>> {
        let AddedParts { agents: more_agents, native: native_agent, store, routes, ids } = parts;
        let (store, node) = if let Some(store) = store { (store, None) } else { open_server_store(&config).await? };
        let models = Arc::new(build_models(&config)?);
        let (telemetry, traces) = start_telemetry(&config, &store)?;
        let sandbox = build_sandbox(&config);
        let shared = SharedSecrets::load(&config, &store).await?;
        let stored = StoredServices::load(&config, &store, &shared, sandbox.clone(), telemetry.clone()).await?;
        let live = LiveConfig::new(config.clone());
        let run_settings = build_run_settings(&live, sandbox.clone(), stored.protected.clone());
        let tools = own_tools(&run_settings().toolbox);
        let native = build_native(&config, &models, &stored, run_settings, &tools);
        let weak = Arc::clone(&native.hub);
        let configured = ConfiguredAgents::new(Arc::clone(&store), stored.files.clone(), sandbox);
        let agents = Arc::new(build_agents(&config, (native_agent, native), &store, &configured, more_agents)?);
        let cache = config.sections.limits.idle_sessions.len();
        let hub = Hub::with_cache(Arc::clone(&store), Arc::clone(&agents) as _, recovery_policy(&config), cache)
            .with_default_policy(live_policy(&live))
            .with_on_deleted(on_session_deleted(&stored))
            .with_on_run_ended(telemetry.on_run_ended())
            .with_cluster(cluster_options(&config, build_workspaces(&config, &stored.files)));
        weak.get_or_init(|| hub.downgrade());
        let (sender, controls) = mpsc::channel(8);
        let mut services = build_services(&live, hub, (native_agent, agents), stored, &models, tools, sender);
        services.sessions = services.sessions.with_ids(ids);
        let services = Arc::new(services);
        let push = load_push_notifications(&config, &services, &shared.vault).await?;
        let signer = CardSigner::load(&config.sections.a2a, config.paths.data_directory())?.map(Arc::new);
        let (clock, controls, routes) = (CancellationToken::new(), Mutex::new(Some(controls)), Mutex::new(routes));
        follow_settings(&live, &models, &services, configured);
        let large_responses = LargeResponses::new(config.paths.data_directory().to_owned());
        let app = Self {
            live,
            store,
            services,
            models,
            large_responses,
            push,
            signer,
            shared,
            _node: node,
            clock,
            traces,
            controls,
            routes,
        };
        app.services.hub.start_cluster().await?;
        app.spawn_background_tasks()?;
        Ok(Arc::new(app))
    }

    /// Neither open runs nor providers that have to be looked for delay the first answer.
    fn spawn_background_tasks(&self) -> anyhow::Result<()> {
        let (hub, models) = (self.services.hub.clone(), Arc::clone(&self.models));
        let restored = self.config().paths.restored();
        if runs_schedules(hub.role()) {
            tokio::spawn(scheduler::run_due_schedules(Arc::clone(&self.services), self.clock.clone()));
        }
        tokio::spawn(self.push.clone().follow_other_nodes(self.clock.clone()));
        tokio::spawn(other_nodes::follow_other_nodes(Arc::clone(&self.services), self.clock.clone()));
        tokio::spawn(Arc::clone(&self.services.agents).watch_files(self.clock.clone()));
        tokio::spawn(watch_app_settings(Arc::clone(&self.live), self.clock.clone()));
        let config = self.live.started();
        let collector = build_collector(config, config.sections.audit.otel.as_ref())?;
        let (sinks, note) = (config.sections.audit.sinks(collector), config.paths.audit_export_file());
        if let Some(export) = AuditExport::new(self.services.audit.clone(), sinks, note) {
            tokio::spawn(export.run(self.clock.clone()));
        }
        tokio::spawn(sleep_deserted_app_servers(Arc::clone(&self.services), self.clock.clone()));
        hub.start_maintenance();
        tokio::spawn(async move {
            match hub.recover_open_runs().await {
                Ok(0) => forget_restored_app_data(&restored),
                Ok(runs) => {
                    tracing::info!(runs, "picked up runs that were under way");
                    forget_restored_app_data(&restored);
                }
                Err(error) => tracing::error!(%error, "open runs could not be picked up"),
            }
            models.default_model().await;
        });
        Ok(())
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
        let Sections { acp, mut server, a2a, adk, limits, cluster, .. } = config.sections.clone();
        server.allowed_hosts.extend(cluster.address_host());
        let (push, signer) = (self.push.clone(), self.signer.clone());
        let (forward_resources, resource_peers) = (server.forward_resources, server.resource_peers.clone());
        let protocols = ProtocolSettings {
            acp,
            a2a: A2aSettings { section: a2a, push, signer },
            acp_rest: AcpRestSettings { forward_resources, resource_peers },
            adk,
            goose: (),
            gander: (),
        };
        let (services, large_responses) = (Arc::clone(&self.services), Arc::clone(&self.large_responses));
        let SharedSecrets { credentials, keys, .. } = &self.shared;
        let tokens = tokens.with_shared(credentials.clone()).with_cluster_keys(keys.clone());
        let browsers = BrowserAccess::open(&config.paths).with_shared(credentials.clone());
        Gateway::new(GatewayParts { services, server, protocols, limits, large_responses, tokens, browsers })
    }

    /// The router of this gateway, with the routes of the embedder.
    pub fn router(&self, gateway: &Gateway) -> Result<Router, BadRoute> {
        router_with_routes(gateway, self.routes.lock().unwrap_or_else(PoisonError::into_inner).clone())
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
        self.live.started()
    }

    /// The settings, as they are now.
    pub fn live_config(&self) -> &Arc<LiveConfig> {
        &self.live
    }

    /// Takes no new work, hands over or parks what runs. Ends within 25 seconds.
    pub async fn drain(&self) {
        self.clock.cancel();
        self.services.hub.drain_sessions(self.live.started().grace).await;
        self.push.stop();
        self.traces.finish().await;
        self.services.protected.note_server_end().await;
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
        peer.options = peer.options.or_default(self.live.started().sections.acp);
        protocols::acp::serve_acp_lines(
            Arc::clone(&self.services),
            Arc::clone(&self.large_responses),
            reader,
            writer,
            peer,
        )
        .await;
    }
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").field("data", &self.live.started().paths.data_directory()).finish_non_exhaustive()
    }
}

async fn load_push_notifications(
    config: &Config,
    services: &Services,
    vault: &ServerVault,
) -> anyhow::Result<PushNotifications> {
    let allowed = config.sections.a2a.push_allow.clone();
    Ok(PushNotifications::load(services.hub.clone(), allowed, vault.clone()).await?)
}

/// Runs that were under way in a restored log are ended: from now on those that are cut off are resumed again.
fn forget_restored_app_data(note: &Path) {
    if let Err(error) = std::fs::remove_file(note)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!(%error, "runs are not resumed as long as this file is there: {}", note.display());
    }
}

/// Servers of one-shot runs end soon after them.
async fn sleep_deserted_app_servers(services: Arc<Services>, stop: CancellationToken) {
    let (mut looks, mut deserted) = (tokio::time::interval(DESERTED_INTERVAL), HashSet::new());
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = looks.tick() => {}
        }
        let clients = &services.clients;
        services.extensions.sleep_deserted(&mut deserted, |session| clients.attached_count(session) > 0);
    }
}

/// Looks at the settings file also while nobody asks: a key or a model that was added is there for the next run, and a
/// mistake is in the log while the person who made it is still at it.
async fn watch_app_settings(live: Arc<LiveConfig>, stop: CancellationToken) {
    let mut looks = tokio::time::interval(SETTINGS_INTERVAL);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = looks.tick() => drop(live.current()),
        }
    }
}
