//! The MCP servers of sessions: those that clients bring along and those that the owner configured.

mod built_in;
mod entry;
mod kept;
mod logins;
mod networks;
mod pins;
mod project;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gander_domain::{Part, Principal, SessionId, SessionView};
use gander_mcp::{Circumstances, Condition, Keyring, Pool, PromptSpec, Reach, Servers, Sharing, Spec, Standing};
use gander_tools::sandbox::{Network, Sandbox};
use gander_tools::{BuiltIn, BuiltIns, Environment, Guard, Limits, Redactor, absence};
use serde_json::{Value, json};

pub use entry::{Entry, Kind};
pub use kept::{Kept, Range};
pub use logins::VaultPurse;
pub use networks::NetworkStore;
pub use pins::PinStore;

use crate::trust::Trust;
use gander_models::Keys;
use gander_store::StoreError;
use kept::Added;
use logins::Logins;

/// How long a server may take from its start to its lists.
const START: Duration = Duration::from_secs(30);

/// A server that no run needs for so long sleeps: each may cost a hundred megabytes.
const IDLE: Duration = Duration::from_secs(600);

/// A server that sessions share stays so long after the last of them left it.
const LINGER: Duration = Duration::from_secs(60);

/// How long a server may take to say one of its prompts: whoever typed its name waits.
const EXPAND: Duration = Duration::from_secs(5);

/// Sessions whose servers are kept in mind. Of more, those that nobody uses are forgotten.
const REMEMBERED: usize = 1_024;

/// How many come between two looks at what can be forgotten.
const BETWEEN: usize = 128;

/// The MCP servers of all sessions. What clients bring along lives in memory alone, with the secrets that came with it.
pub struct Extensions {
    configured: Vec<Spec>,
    /// Tools of our own that the settings file switches.
    switched: BTreeMap<BuiltIn, bool>,
    ground: Ground,
    sessions: Mutex<HashMap<SessionId, Place>>,
    pool: Pool,
    logins: Logins,
}

/// What all servers have in common.
pub struct Ground {
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
    pub kept: Kept,
    /// Whose own servers count.
    pub trust: Trust,
    /// Keys that entries name.
    pub keys: Keys,
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
struct Lineup {
    servers: Vec<Spec>,
    built_ins: BuiltIns,
}

struct Place {
    owner: Principal,
    workspace: PathBuf,
    servers: Arc<Servers>,
    brought: Vec<Spec>,
}

impl Extensions {
    /// With these for every session, and these of our own tools switched.
    pub fn new(configured: Vec<Spec>, switched: BTreeMap<BuiltIn, bool>, ground: Ground) -> Self {
        Self {
            configured,
            switched,
            ground,
            sessions: Mutex::default(),
            pool: Pool::default(),
            logins: Logins::default(),
        }
    }

    /// A client opens a session and brings these along. They start in the background, and so do the owner's.
    pub fn bring(&self, view: &SessionView, specs: Vec<Spec>) {
        let mut sessions = self.lock();
        let mut brought = brought(&sessions, view.session);
        brought.retain(|old| specs.iter().all(|new| new.name != old.name));
        brought.extend(specs);
        self.settle(&mut sessions, view, brought).wake();
    }

    /// The servers of a session, for a run of it.
    pub fn of(&self, view: &SessionView) -> Arc<Servers> {
        let mut sessions = self.lock();
        let brought = brought(&sessions, view.session);
        self.settle(&mut sessions, view, brought)
    }

    /// Which servers a session has now.
    pub fn specs(&self, view: &SessionView) -> Vec<Spec> {
        self.lineup(view.session, &view.owner, Path::new(&view.workspace), &self.brought(view.session)).servers
    }

    /// Which servers every session has.
    pub fn everywhere(&self) -> Vec<Spec> {
        self.switches().into_iter().filter(|(_, on)| *on).map(|(spec, _)| spec).collect()
    }

    /// Which servers are known for every session, and whether each is used.
    pub fn switches(&self) -> Vec<(Spec, bool)> {
        let known = joined([self.configured.clone(), self.added(Range::Everywhere, &Principal::owner())]);
        let on = |spec: &Spec| !self.ground.kept.is_off(Range::Everywhere, &spec.name);
        known.into_iter().map(|spec| (spec.clone(), on(&spec))).collect()
    }

    /// Uses a known server in every session again.
    pub async fn switch_on(&self, name: &str) -> Result<(), ExtensionError> {
        let servers = self.known_everywhere(name)?;
        match self.built_in(name, &servers) {
            Some(built_in) => self.turn_on(Range::Everywhere, built_in).await,
            None => self.restore(Range::Everywhere, name).await,
        }
    }

    /// Uses again what was switched off here.
    pub async fn restore(&self, range: Range, name: &str) -> Result<(), ExtensionError> {
        if self.ground.kept.is_off(range, name) {
            self.ground.kept.restore(range, name).await?;
            self.refresh();
        }
        Ok(())
    }

    /// Uses a known server no longer, and keeps it in mind.
    pub async fn switch_off(&self, name: &str) -> Result<(), ExtensionError> {
        let servers = self.known_everywhere(name)?;
        let name = self.built_in(name, &servers).map_or(name, |built_in| built_in.name());
        self.ground.kept.switch_off(Range::Everywhere, name).await?;
        self.refresh();
        Ok(())
    }

    /// The servers that are known for every session, if this is one of them or one of our own.
    fn known_everywhere(&self, name: &str) -> Result<Vec<Spec>, ExtensionError> {
        let servers: Vec<Spec> = self.switches().into_iter().map(|(spec, _)| spec).collect();
        match BuiltIn::named(name).is_some() || servers.iter().any(|spec| spec.name == name) {
            true => Ok(servers),
            false => Err(ExtensionError::NoSuch(name.to_owned())),
        }
    }

    /// Adds a server, or puts it in place of one of the same name. A name alone brings back one that was taken away.
    pub async fn add(&self, range: Range, name: &str, entry: Entry, rights: Rights) -> Result<(), ExtensionError> {
        if entry == Entry::default() && self.is_configured(name) {
            return self.restore(range, name).await;
        }
        let own = BuiltIn::named(name).filter(|_| entry == Entry::default() || entry.is_built_in());
        if let Some(built_in) = own {
            return self.turn_on(range, built_in).await;
        }
        if entry == Entry::default() {
            return Err(ExtensionError::Refused(absence(name)));
        }
        let entry = entry.checked(name).map_err(ExtensionError::Refused)?;
        let guarded = rights == Rights::Addresses;
        if guarded && entry.command.is_some() {
            return Err(ExtensionError::Program);
        }
        self.ground.kept.add(range, name, Added { entry, guarded }).await?;
        self.refresh();
        Ok(())
    }

    /// This entry with what its writer could not see of the server that it changes.
    pub fn keeping(&self, entry: Entry, before: Option<&Spec>) -> Entry {
        before.map_or(entry.clone(), |before| entry.keeping(before, &self.ground.keys))
    }

    /// Those that were added to this session itself.
    pub fn own(&self, session: SessionId, owner: &Principal) -> Vec<Spec> {
        self.added(Range::Session(session), owner)
    }

    /// True if the session's own principal named this server, not the owner or a trusted project.
    pub fn is_own(&self, view: &SessionView, name: &str) -> bool {
        let own = self.own(view.session, &view.owner).into_iter().chain(self.brought(view.session));
        own.into_iter().any(|spec| spec.name == name)
    }

    /// Takes a server away, from this session or from all.
    pub async fn remove(&self, range: Range, view: Option<&SessionView>, name: &str) -> Result<(), ExtensionError> {
        let known = || self.switches().into_iter().map(|(spec, _)| spec).collect();
        let there: Vec<Spec> = view.map_or_else(known, |view| self.specs(view));
        if let Some(built_in) = self.built_in(name, &there) {
            return self.turn_off(range, built_in).await;
        }
        if there.iter().all(|spec| spec.name != name) {
            return Err(ExtensionError::NoSuch(name.to_owned()));
        }
        self.ground.kept.remove(range, name).await?;
        if range == Range::Everywhere {
            self.ground.networks.forget(name).await?;
        }
        if let Range::Session(session) = range
            && let Some(place) = self.lock().get_mut(&session)
        {
            place.brought.retain(|spec| spec.name != name);
        }
        self.refresh();
        Ok(())
    }

    /// Sessions follow what has changed: those that are awake at once, those that sleep when they are needed.
    fn refresh(&self) {
        for (session, place) in self.lock().iter() {
            let awake = !place.servers.are_asleep();
            let Lineup { servers, built_ins } = self.lineup(*session, &place.owner, &place.workspace, &place.brought);
            place.servers.set(servers);
            place.servers.lend(built_ins);
            if awake {
                place.servers.wake();
            }
        }
    }

    /// Somebody logged in: what waits for that in their sessions goes on.
    fn unlocked(&self, who: &Principal, spec: &Spec) {
        for place in self.lock().values().filter(|place| place.owner == *who) {
            place.servers.unlocked(spec);
        }
    }

    /// True if the owner configured one of this name.
    pub fn is_configured(&self, name: &str) -> bool {
        self.configured.iter().any(|spec| spec.name == name)
    }

    /// True if the session has any servers.
    pub fn has(&self, session: SessionId) -> bool {
        self.known(session).is_some()
    }

    /// The prompts of a session's servers, once each was tried.
    pub async fn prompts(&self, session: SessionId) -> Vec<PromptSpec> {
        let Some(servers) = self.known(session) else { return Vec::new() };
        servers.started().await;
        servers.prompts()
    }

    /// What a person's prompt becomes: the name of a server's prompt becomes what that prompt says.
    pub async fn expanded(&self, session: SessionId, parts: Vec<Part>) -> Result<Vec<Part>, String> {
        let Some(servers) = self.known(session) else { return Ok(parts) };
        let expanded = tokio::time::timeout(EXPAND, servers.expanded(parts)).await;
        expanded.unwrap_or_else(|_| Err("the prompt's server does not answer in time".to_owned()))
    }

    /// A session is closed: its servers end.
    pub fn close(&self, session: SessionId) {
        let closed = self.lock().remove(&session);
        drop(closed);
    }

    /// How the servers of a session are; without one, which are configured.
    pub fn list(&self, session: Option<SessionId>) -> Value {
        let Some(session) = session else {
            return self.everywhere().iter().map(|spec| json!({"name": spec.name, "place": spec.place()})).collect();
        };
        self.known(session).map_or_else(|| json!([]), |servers| servers.standing().into_iter().map(shown).collect())
    }

    fn known(&self, session: SessionId) -> Option<Arc<Servers>> {
        self.lock().get(&session).map(|place| Arc::clone(&place.servers))
    }

    /// The session's place, with the servers that it has by now.
    fn settle(&self, sessions: &mut HashMap<SessionId, Place>, view: &SessionView, brought: Vec<Spec>) -> Arc<Servers> {
        let Lineup { servers, built_ins } =
            self.lineup(view.session, &view.owner, Path::new(&view.workspace), &brought);
        if !sessions.contains_key(&view.session) {
            forget(sessions);
        }
        let place = sessions.entry(view.session).or_insert_with(|| self.place(view));
        place.brought = brought;
        place.servers.set(servers);
        place.servers.lend(built_ins);
        Arc::clone(&place.servers)
    }

    /// The nearer, the stronger: the owner's, the project's, the client's, the session's own.
    fn lineup(&self, session: SessionId, owner: &Principal, workspace: &Path, brought: &[Spec]) -> Lineup {
        let project = project::entries(&self.ground.trust, workspace);
        let spec = |(name, entry): &(String, Entry)| entry.spec(name, &Keys::default(), Reach::Anywhere);
        let theirs: Vec<Spec> = project.iter().filter_map(spec).collect();
        let own = self.added(Range::Session(session), owner);
        let all = joined([self.everywhere(), theirs, brought.to_vec(), own]);
        let on = |spec: &Spec| !self.ground.kept.is_off(Range::Session(session), &spec.name);
        let servers: Vec<Spec> = all.into_iter().filter(on).collect();
        let built_ins = self.built_ins_beside(session, &project, &servers);
        Lineup { servers, built_ins }
    }

    fn brought(&self, session: SessionId) -> Vec<Spec> {
        brought(&self.lock(), session)
    }

    /// `env_keys` names keys of the server's owner: an entry of anybody else gets none of them, whatever it names.
    fn added(&self, range: Range, owner: &Principal) -> Vec<Spec> {
        let none = Keys::default();
        let keys = if *owner == Principal::owner() { &self.ground.keys } else { &none };
        let spec = |(name, added): (String, Added)| {
            let reach = if added.guarded { Reach::Guarded(Guard::default()) } else { Reach::Anywhere };
            added.entry.spec(&name, keys, reach)
        };
        self.ground.kept.of(range).into_iter().filter_map(spec).collect()
    }

    fn place(&self, view: &SessionView) -> Place {
        let circumstances = Circumstances {
            workspace: PathBuf::from(&view.workspace),
            folders: view.folders.iter().map(PathBuf::from).collect(),
            environment: self.ground.environment.clone(),
            sandbox: self.ground.sandbox.clone(),
            network: self.ground.network,
            networks: self.ground.networks.of(&view.owner),
            limits: self.ground.limits,
            redactor: self.ground.redactor.clone(),
            pins: self.ground.pins.of(&view.owner),
            keyring: self.keyring(&view.owner),
            sharing: Sharing { pool: self.pool.clone(), owner: view.owner.to_string(), linger: LINGER },
            start: START,
            idle: IDLE,
        };
        let servers = Arc::new(Servers::new(Vec::new(), circumstances));
        let (owner, workspace) = (view.owner.clone(), PathBuf::from(&view.workspace));
        Place { owner, workspace, servers, brought: Vec::new() }
    }

    /// A panic while the lock was held leaves nothing half done here.
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Place>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All of them, a later one in place of an earlier one of its name.
fn joined<const N: usize>(sources: [Vec<Spec>; N]) -> Vec<Spec> {
    let mut all: Vec<Spec> = Vec::new();
    for spec in sources.into_iter().flatten() {
        match all.iter_mut().find(|known| known.name == spec.name) {
            Some(known) => *known = spec,
            None => all.push(spec),
        }
    }
    all
}

fn brought(sessions: &HashMap<SessionId, Place>, session: SessionId) -> Vec<Spec> {
    sessions.get(&session).map(|place| place.brought.clone()).unwrap_or_default()
}

/// What a client brought along is known here alone: places without that go first.
fn forget(sessions: &mut HashMap<SessionId, Place>) {
    if sessions.len() < REMEMBERED || !sessions.len().is_multiple_of(BETWEEN) {
        return;
    }
    sessions.retain(|_, place| !place.brought.is_empty() || !place.is_free());
    if sessions.len() >= REMEMBERED {
        sessions.retain(|_, place| !place.is_free());
    }
}

impl Place {
    /// True if no run uses it and none of its servers is awake.
    fn is_free(&self) -> bool {
        Arc::strong_count(&self.servers) == 1 && self.servers.are_asleep()
    }
}

fn shown(standing: Standing) -> Value {
    let Standing { name, place, condition, tools, changed } = standing;
    let (state, reason) = match condition {
        Condition::Asleep => ("asleep", None),
        Condition::Starting => ("starting", None),
        Condition::Ready => ("ready", None),
        Condition::Locked => ("needs_login", Some(format!("gander extensions login {name}"))),
        Condition::Failed(reason) => ("failed", Some(reason)),
    };
    json!({"name": name, "place": place, "state": state, "reason": reason, "tools": tools, "changed": changed})
}
