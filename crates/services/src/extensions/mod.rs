//! The MCP servers of sessions: those that clients bring along and those that the owner configured.

mod built_in;
mod deleted_session;
mod entry;
mod logins;
mod networks;
mod other_nodes;
mod pins;
mod project;
mod registry;
mod server_lifetime;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use gander_domain::{Part, Principal, SessionId, SessionView};
use gander_mcp::{Keyring, Pool, PromptSpec, Reach, ServerState, ServerStatus, Servers, Spec};
use gander_tools::sandbox::{Network, Sandbox};
use gander_tools::{BuiltIn, BuiltIns, Environment, Guard, Limits, Redactor, extension_absence_reason};
use serde_json::{Value, json};

pub use entry::{ExtensionEntry, ExtensionKind};
pub use gander_mcp::Confinement;
pub use logins::VaultTokenStore;
pub use networks::NetworkStore;
pub(crate) use other_nodes::SCOPES;
pub use pins::PinStore;
pub use registry::{ExtensionRegistry, ExtensionScope};
pub use server_lifetime::TrialNetwork;

use crate::trust::Trust;
use gander_models::Keys;
use gander_store::StoreError;
use logins::Logins;
use registry::AddedExtension;

/// How long a server may take to say one of its prompts: whoever typed its name waits.
const PROMPT_TIMEOUT: Duration = Duration::from_secs(5);

/// Sessions whose servers are kept in mind. Of more, those that nobody uses are forgotten.
const MAX_SESSIONS: usize = 1_024;

/// How many come between two looks at what can be forgotten.
const EVICTION_INTERVAL: usize = 128;

/// The MCP servers of all sessions. What clients bring along lives in memory alone, with the secrets that came with it.
pub struct Extensions {
    configured: RwLock<Arc<Vec<Spec>>>,
    /// Tools of our own that the settings file switches.
    switched: RwLock<BTreeMap<BuiltIn, bool>>,
    config: ExtensionsConfig,
    sessions: Mutex<HashMap<SessionId, SessionExtensions>>,
    pool: Pool,
    logins: Logins,
}

/// What all servers have in common.
pub struct ExtensionsConfig {
    /// What programs find around them.
    pub environment: Environment,
    /// Puts fences around programs.
    pub sandbox: Sandbox,
    /// Whether programs find the network without a word in their entry.
    pub network: Network,
    /// Which of them people gave it to.
    pub networks: NetworkStore,
    /// How much a result may hold.
    pub limits: Limits,
    /// Hides secrets in everything that is shown.
    pub redactor: Redactor,
    /// What tools were when they were first seen.
    pub pins: PinStore,
    /// Tokens of everybody.
    pub keyring: Keyring,
    /// What was added and taken away while the server ran.
    pub registry: ExtensionRegistry,
    /// Whose own servers count.
    pub trust: Trust,
    /// Keys that entries name.
    pub keys: Keys,
    /// Holds the homes of programs, by whose they are.
    pub homes: PathBuf,
}

/// What somebody who adds a server may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// Name programs to start, and any address.
    Programs,
    /// Name public addresses.
    Addresses,
}

/// Why a server was not added or taken away.
#[derive(Debug, thiserror::Error)]
pub enum ExtensionError {
    /// It cannot be one.
    #[error("{0}")]
    Refused(String),
    /// Somebody on the network named a program.
    #[error("a client on the network may not start programs unless server.allow_remote_commands is true")]
    Program,
    /// There is none of this name.
    #[error("no such extension: {0}")]
    NoSuch(String),
    /// It could not be written down.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a session works with.
struct SessionServers {
    servers: Vec<Spec>,
    built_ins: BuiltIns,
}

struct SessionExtensions {
    owner: Principal,
    workspace: PathBuf,
    servers: Arc<Servers>,
    client_specs: Vec<Spec>,
    /// A client opened it that stays attached: without one its servers need not run between turns.
    has_client: bool,
}

impl Extensions {
    /// With these for every session, and these of our own tools switched.
    pub fn new(configured: Vec<Spec>, switched: BTreeMap<BuiltIn, bool>, config: ExtensionsConfig) -> Self {
        Self {
            configured: RwLock::new(Arc::new(configured)),
            switched: RwLock::new(switched),
            config,
            sessions: Mutex::default(),
            pool: Pool::default(),
            logins: Logins::default(),
        }
    }

    /// From now on these for every session: its next run works with them.
    pub fn replace_configured(&self, configured: Vec<Spec>, switched: BTreeMap<BuiltIn, bool>) {
        *self.configured.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(configured);
        *self.switched.write().unwrap_or_else(PoisonError::into_inner) = switched;
        self.refresh_sessions();
    }

    fn configured_specs(&self) -> Arc<Vec<Spec>> {
        Arc::clone(&self.configured.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// A client opens a session and brings these along. They start in the background, and so do the owner's.
    pub fn attach_session(&self, view: &SessionView, specs: Vec<Spec>) {
        let mut sessions = self.lock_sessions();
        let mut client_specs = client_extension_specs_in(&sessions, view.session);
        client_specs.retain(|old| specs.iter().all(|new| new.name != old.name));
        client_specs.extend(specs);
        self.update_session(&mut sessions, view, client_specs).start_all();
    }

    /// The servers of a session, for a run of it.
    pub fn servers_of(&self, view: &SessionView) -> Arc<Servers> {
        let mut sessions = self.lock_sessions();
        let client_specs = client_extension_specs_in(&sessions, view.session);
        self.update_session(&mut sessions, view, client_specs)
    }

    /// Which servers a session has now.
    pub fn specs_for_session(&self, view: &SessionView) -> Vec<Spec> {
        self.resolve_servers(view.session, &view.owner, Path::new(&view.workspace), &self.client_specs(view.session))
            .servers
    }

    /// Which servers every session has.
    pub fn global_specs(&self) -> Vec<Spec> {
        self.known_with_switch().into_iter().filter(|(_, on)| *on).map(|(spec, _)| spec).collect()
    }

    /// Which servers are known for every session, and whether each is used.
    pub fn known_with_switch(&self) -> Vec<(Spec, bool)> {
        let known = merge_specs([
            self.configured_specs().to_vec(),
            self.added_specs(ExtensionScope::Everywhere, &Principal::owner()),
        ]);
        let on = |spec: &Spec| !self.config.registry.is_off(ExtensionScope::Everywhere, &spec.name);
        known.into_iter().map(|spec| (spec.clone(), on(&spec))).collect()
    }

    /// Uses a known server in every session again.
    pub async fn switch_on(&self, name: &str) -> Result<(), ExtensionError> {
        let servers = self.find_global_specs(name)?;
        match self.find_built_in(name, &servers) {
            Some(built_in) => self.turn_on_built_in(ExtensionScope::Everywhere, built_in).await,
            None => self.restore(ExtensionScope::Everywhere, name).await,
        }
    }

    /// Uses again what was switched off here.
    pub async fn restore(&self, range: ExtensionScope, name: &str) -> Result<(), ExtensionError> {
        if self.config.registry.is_off(range, name) {
            self.config.registry.restore(range, name).await?;
            self.refresh_sessions();
        }
        Ok(())
    }

    /// Uses a known server no longer, and keeps it in mind.
    pub async fn switch_off(&self, name: &str) -> Result<(), ExtensionError> {
        let servers = self.find_global_specs(name)?;
        let name = self.find_built_in(name, &servers).map_or(name, |built_in| built_in.name());
        self.config.registry.switch_off(ExtensionScope::Everywhere, name).await?;
        self.refresh_sessions();
        Ok(())
    }

    /// The servers that are known for every session, if this is one of them or one of our own.
    fn find_global_specs(&self, name: &str) -> Result<Vec<Spec>, ExtensionError> {
        let servers: Vec<Spec> = self.known_with_switch().into_iter().map(|(spec, _)| spec).collect();
        match BuiltIn::from_name(name).is_some() || servers.iter().any(|spec| spec.name == name) {
            true => Ok(servers),
            false => Err(ExtensionError::NoSuch(name.to_owned())),
        }
    }

    /// Adds a server, or puts it in place of one of the same name. A name alone brings back one that was taken away.
    pub async fn add(
        &self,
        range: ExtensionScope,
        name: &str,
        entry: ExtensionEntry,
        rights: Rights,
    ) -> Result<(), ExtensionError> {
        if entry == ExtensionEntry::default() && self.is_configured(name) {
            return self.restore(range, name).await;
        }
        let own = BuiltIn::from_name(name).filter(|_| entry == ExtensionEntry::default() || entry.is_built_in());
        if let Some(built_in) = own {
            return self.turn_on_built_in(range, built_in).await;
        }
        if entry == ExtensionEntry::default() {
            return Err(ExtensionError::Refused(extension_absence_reason(name)));
        }
        let entry = entry.validated(name).map_err(ExtensionError::Refused)?;
        let guarded = rights == Rights::Addresses;
        if guarded && entry.command.is_some() {
            return Err(ExtensionError::Program);
        }
        self.config.registry.add(range, name, AddedExtension { entry, guarded }).await?;
        self.refresh_sessions();
        Ok(())
    }

    /// This entry with what its writer could not see of the server that it changes.
    pub fn with_hidden_values_kept(&self, entry: ExtensionEntry, before: Option<&Spec>) -> ExtensionEntry {
        before.map_or(entry.clone(), |before| entry.with_hidden_values_kept(before, &self.config.keys))
    }

    /// Those that were added to this session itself.
    pub fn session_specs(&self, session: SessionId, owner: &Principal) -> Vec<Spec> {
        self.added_specs(ExtensionScope::Session(session), owner)
    }

    /// True if the session's principal may see how this server is configured: the owner of all servers, or whoever named
    /// it for the session.
    pub fn shows_config(&self, view: &SessionView, name: &str) -> bool {
        view.owner == Principal::owner() || self.is_own(view, name)
    }

    /// True if the session's own principal named this server, not the owner or a trusted project.
    fn is_own(&self, view: &SessionView, name: &str) -> bool {
        let own = self.session_specs(view.session, &view.owner).into_iter().chain(self.client_specs(view.session));
        own.into_iter().any(|spec| spec.name == name)
    }

    /// Takes a server away, from this session or from all.
    pub async fn remove(
        &self,
        range: ExtensionScope,
        view: Option<&SessionView>,
        name: &str,
    ) -> Result<(), ExtensionError> {
        let known = || self.known_with_switch().into_iter().map(|(spec, _)| spec).collect();
        let there: Vec<Spec> = view.map_or_else(known, |view| self.specs_for_session(view));
        if let Some(built_in) = self.find_built_in(name, &there) {
            return self.turn_off_built_in(range, built_in).await;
        }
        if there.iter().all(|spec| spec.name != name) {
            return Err(ExtensionError::NoSuch(name.to_owned()));
        }
        self.config.registry.remove(range, name).await?;
        if range == ExtensionScope::Everywhere {
            self.config.networks.forget_server(name).await?;
        }
        if let ExtensionScope::Session(session) = range
            && let Some(place) = self.lock_sessions().get_mut(&session)
        {
            place.client_specs.retain(|spec| spec.name != name);
        }
        self.refresh_sessions();
        Ok(())
    }

    /// Sessions follow what has changed: those that are awake at once, those that sleep when they are needed.
    fn refresh_sessions(&self) {
        for (session, place) in self.lock_sessions().iter() {
            let awake = !place.servers.are_asleep();
            let SessionServers { servers, built_ins } =
                self.resolve_servers(*session, &place.owner, &place.workspace, &place.client_specs);
            place.servers.set_specs(servers);
            place.servers.set_built_ins(built_ins);
            if awake {
                place.servers.start_all();
            }
        }
    }

    /// Somebody logged in: what waits for that in their sessions goes on.
    fn retry_after_login(&self, who: &Principal, spec: &Spec) {
        for place in self.lock_sessions().values().filter(|place| place.owner == *who) {
            place.servers.resume_after_login(spec);
        }
    }

    /// True if the owner configured one of this name.
    pub fn is_configured(&self, name: &str) -> bool {
        self.configured_specs().iter().any(|spec| spec.name == name)
    }

    /// The prompts of a session's servers, once each was tried.
    pub async fn prompts(&self, view: &SessionView) -> Vec<PromptSpec> {
        let servers = self.servers_of(view);
        servers.start_all();
        servers.wait_until_tried().await;
        servers.prompt_specs()
    }

    /// What a person's prompt becomes: the name of a server's prompt becomes what that prompt says.
    pub async fn expand_prompt(&self, view: &SessionView, parts: Vec<Part>) -> Result<Vec<Part>, String> {
        let servers = self.servers_of(view);
        if !servers.names_prompt(&parts) {
            return Ok(parts);
        }
        let expanded = tokio::time::timeout(PROMPT_TIMEOUT, async {
            servers.start_all();
            servers.wait_until_tried().await;
            servers.expand_prompt(parts).await
        });
        expanded.await.unwrap_or_else(|_| Err("the prompt's server does not answer in time".to_owned()))
    }

    /// A session is closed: its servers end.
    pub fn close_session(&self, session: SessionId) {
        let closed = self.lock_sessions().remove(&session);
        drop(closed);
    }

    /// The status of a session's servers; without a session, which ones are known and whether each is used.
    pub fn list_json(&self, session: Option<SessionId>) -> Value {
        let Some(session) = session else {
            let known = |(spec, on): &(Spec, bool)| {
                let state = if *on { "on" } else { "off" };
                json!({"name": spec.name, "place": spec.command_or_url(), "state": state})
            };
            return self.known_with_switch().iter().map(known).collect();
        };
        self.servers_if_known(session).map_or_else(
            || json!([]),
            |servers| servers.server_statuses().into_iter().map(extension_status_json).collect(),
        )
    }

    fn servers_if_known(&self, session: SessionId) -> Option<Arc<Servers>> {
        self.lock_sessions().get(&session).map(|place| Arc::clone(&place.servers))
    }

    /// The session's place, with the servers that it has by now.
    fn update_session(
        &self,
        sessions: &mut HashMap<SessionId, SessionExtensions>,
        view: &SessionView,
        client_specs: Vec<Spec>,
    ) -> Arc<Servers> {
        let SessionServers { servers, built_ins } =
            self.resolve_servers(view.session, &view.owner, Path::new(&view.workspace), &client_specs);
        if !sessions.contains_key(&view.session) {
            evict_unused_extensions(sessions);
        }
        let place = sessions.entry(view.session).or_insert_with(|| self.new_session(view));
        place.client_specs = client_specs;
        place.servers.set_specs(servers);
        place.servers.set_built_ins(built_ins);
        Arc::clone(&place.servers)
    }

    /// The nearer, the stronger: the owner's, the project's, the client's, the session's own.
    fn resolve_servers(
        &self,
        session: SessionId,
        owner: &Principal,
        workspace: &Path,
        client_specs: &[Spec],
    ) -> SessionServers {
        let project = project::project_extension_entries(&self.config.trust, workspace);
        let spec =
            |(name, entry): &(String, ExtensionEntry)| entry.to_mcp_spec(name, &Keys::default(), Reach::Anywhere);
        let theirs: Vec<Spec> = project.iter().filter_map(spec).collect();
        let own = self.added_specs(ExtensionScope::Session(session), owner);
        let all = merge_specs([self.global_specs(), theirs, client_specs.to_vec(), own]);
        let on = |spec: &Spec| !self.config.registry.is_off(ExtensionScope::Session(session), &spec.name);
        let servers: Vec<Spec> = all.into_iter().filter(on).collect();
        let built_ins = self.built_ins_beside(session, &project, &servers);
        SessionServers { servers, built_ins }
    }

    fn client_specs(&self, session: SessionId) -> Vec<Spec> {
        client_extension_specs_in(&self.lock_sessions(), session)
    }

    /// `env_keys` names keys of the server's owner: an entry of anybody else gets none of them, whatever it names.
    fn added_specs(&self, range: ExtensionScope, owner: &Principal) -> Vec<Spec> {
        let none = Keys::default();
        let keys = if *owner == Principal::owner() { &self.config.keys } else { &none };
        let spec = |(name, added): (String, AddedExtension)| {
            let reach = if added.guarded { Reach::Guarded(Guard::default()) } else { Reach::Anywhere };
            added.entry.to_mcp_spec(&name, keys, reach)
        };
        self.config.registry.list(range).into_iter().filter_map(spec).collect()
    }

    fn new_session(&self, view: &SessionView) -> SessionExtensions {
        let folders = view.folders.iter().map(PathBuf::from).collect();
        let (owner, workspace) = (view.owner.clone(), PathBuf::from(&view.workspace));
        let servers = Arc::new(Servers::new(Vec::new(), self.servers_config(&owner, workspace.clone(), folders)));
        SessionExtensions { owner, workspace, servers, client_specs: Vec::new(), has_client: false }
    }

    /// A panic while the lock was held leaves nothing half done here.
    fn lock_sessions(&self) -> MutexGuard<'_, HashMap<SessionId, SessionExtensions>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All of them, a later one in place of an earlier one of its name.
fn merge_specs<const N: usize>(sources: [Vec<Spec>; N]) -> Vec<Spec> {
    let mut all: Vec<Spec> = Vec::new();
    for spec in sources.into_iter().flatten() {
        match all.iter_mut().find(|known| known.name == spec.name) {
            Some(known) => *known = spec,
            None => all.push(spec),
        }
    }
    all
}

fn client_extension_specs_in(sessions: &HashMap<SessionId, SessionExtensions>, session: SessionId) -> Vec<Spec> {
    sessions.get(&session).map(|place| place.client_specs.clone()).unwrap_or_default()
}

/// What a client brings along is known here alone: places without that go first.
fn evict_unused_extensions(sessions: &mut HashMap<SessionId, SessionExtensions>) {
    if sessions.len() < MAX_SESSIONS || !sessions.len().is_multiple_of(EVICTION_INTERVAL) {
        return;
    }
    sessions.retain(|_, place| !place.client_specs.is_empty() || !place.is_unused());
    if sessions.len() >= MAX_SESSIONS {
        sessions.retain(|_, place| !place.is_unused());
    }
}

impl SessionExtensions {
    /// True if no run uses it and none of its servers is awake.
    fn is_unused(&self) -> bool {
        Arc::strong_count(&self.servers) == 1 && self.servers.are_asleep()
    }
}

/// How a server is, for our own command line.
pub fn extension_status_json(standing: ServerStatus) -> Value {
    let ServerStatus { name, place, state: condition, tools, changed } = standing;
    let (state, reason) = match condition {
        ServerState::Asleep => ("asleep", None),
        ServerState::Starting => ("starting", None),
        ServerState::Ready => ("ready", None),
        ServerState::Locked => ("needs_login", Some(format!("gander extensions login {name}"))),
        ServerState::Failed(reason) => ("failed", Some(reason)),
    };
    json!({"name": name, "place": place, "state": state, "reason": reason, "tools": tools, "changed": changed})
}
