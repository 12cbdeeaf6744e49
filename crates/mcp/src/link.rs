//! One connection to a server, from greeting to farewell.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gander_tools::output::clip;
use gander_tools::sandbox::{Network, Sandbox, Wrap, offline};
use gander_tools::{Environment, Redactor};
use rmcp::ClientServiceExt as _;
use rmcp::model::{LoggingLevel, PaginatedRequestParams, ProtocolVersion, ServerPeerInfo, SetLevelRequestParams};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, Peer, QuitReason, RoleClient, RunningServiceCancellationToken,
    ServiceError,
};
use rmcp::transport::IntoTransport;
use tokio::sync::Notify;
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;

use super::audience::Seat;
use super::calls::Calls;
use super::catalogue::{self, Catalogue};
use super::child::{Child, Program};
use super::handler::Handler;
use super::http;
use super::login::{self, Keyring};
use super::network::NetworkBook;
use super::seats::Seats;
use super::spec::{Confinement, Spec, Transport};
use super::tally::{Tallied, Tally};

/// Pages of one list that are read.
const MOST_PAGES: usize = 32;

/// How long a connection may take to say farewell.
const FAREWELL: Duration = Duration::from_secs(2);

/// How much of what a server says about itself is taken in.
const INSTRUCTIONS: usize = 4 << 10;

/// What surrounds a session's servers.
#[derive(Clone)]
pub(super) struct Ground {
    /// The session's own place. A server that several use has theirs besides.
    pub seat: Seat,
    pub environment: Environment,
    pub cwd: PathBuf,
    pub folders: Vec<PathBuf>,
    pub sandbox: Sandbox,
    /// What programs find without a word in their entry.
    pub network: Network,
    /// Which of them a person gave it to.
    pub networks: Arc<dyn NetworkBook>,
    pub roots: Arc<[String]>,
    pub redactor: Redactor,
    /// Tokens of the session's owner.
    pub keyring: Keyring,
}

/// A live connection, as calls use it. Cheap to clone.
#[derive(Clone)]
pub(super) struct Line {
    pub peer: Peer<RoleClient>,
    pub calls: Arc<Calls>,
    pub handler: Handler,
    /// How much a program was told; an address does not say.
    pub tally: Option<Tally>,
    /// Set once the server wants an authorization that it does not get: another connection may tell what is missing.
    pub unauthorized: CancellationToken,
}

/// A live connection and what keeps it alive.
pub(super) struct Link {
    pub line: Line,
    /// Ends with the connection; none once it was heard of.
    done: Option<JoinHandle<Result<QuitReason, JoinError>>>,
    cancel: Option<RunningServiceCancellationToken>,
    child: Option<Child>,
}

impl Link {
    /// Connects and greets. A server that refuses the old greeting gets the new one, on a fresh connection.
    pub(super) async fn open(name: &str, spec: &Spec, ground: &Ground, seats: &Seats) -> Result<Self, Unopened> {
        let handler = || handler(name, spec, ground, seats);
        match Self::greet(handler(), spec, ground, ClientLifecycleMode::Initialize).await {
            Ok(link) => Ok(link),
            Err(Failure::Greeting(error, _)) if matches!(*error, ClientInitializeError::JsonRpcError(_)) => {
                let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
                let discover = ClientLifecycleMode::Discover { preferred_versions };
                Self::greet(handler(), spec, ground, discover).await.map_err(|failure| failure.shown(spec, ground))
            }
            Err(failure) => Err(failure.shown(spec, ground)),
        }
    }

    async fn greet(handler: Handler, spec: &Spec, ground: &Ground, how: ClientLifecycleMode) -> Result<Self, Failure> {
        match &spec.transport {
            Transport::Stdio { command, args, env } => {
                // Its folders are looked through for what must stay as it is.
                let (asked, around) = (spec.clone(), ground.clone());
                let wrap = tokio::task::spawn_blocking(move || wrap(&asked, &around)).await;
                let wrap = wrap.unwrap_or_else(|error| Err(error.to_string())).map_err(Failure::Start)?;
                let program = Program { command, args, env, environment: &ground.environment, cwd: &ground.cwd, wrap };
                let started = Child::start(&program).await;
                let (child, streams) =
                    started.map_err(|error| Failure::Start(format!("{}: {error}", command.display())))?;
                let (said, told) = (streams.0, Tallied::new(streams.1));
                let tally = told.tally();
                let mut link = Self::join(handler, (said, told), how, Some(child)).await?;
                link.line.tally = Some(tally);
                Ok(link)
            }
            Transport::Http { .. } => {
                let transport = http::transport(spec, &ground.keyring).await.map_err(Failure::Start)?;
                Self::join(handler, transport, how, None).await
            }
        }
    }

    async fn join<T, E, A>(
        handler: Handler,
        transport: T,
        how: ClientLifecycleMode,
        child: Option<Child>,
    ) -> Result<Self, Failure>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        let complaints = child.as_ref().map(Child::complaints).unwrap_or_default();
        let served = handler.clone().serve_with_lifecycle(transport, how).await;
        let service = match served {
            Ok(service) => service,
            Err(error) => {
                let said = if child.is_some() { complaints.last_words().await } else { String::new() };
                return Err(Failure::Greeting(Box::new(error), said));
            }
        };
        let (peer, calls, unauthorized) =
            (service.peer().clone(), Arc::clone(&handler.calls), CancellationToken::new());
        let line = Line { peer, calls, handler, tally: None, unauthorized };
        let cancel = Some(service.cancellation_token());
        Ok(Self { line, cancel, done: Some(tokio::spawn(service.waiting())), child })
    }

    /// Until the connection is over, and why.
    pub(super) async fn over(&mut self) -> String {
        let Some(done) = &mut self.done else { return std::future::pending().await };
        let quit = done.await;
        self.done = None;
        let complaints = match &self.child {
            Some(child) => child.complaints().last_words().await,
            None => String::new(),
        };
        match quit {
            Ok(Ok(_)) => last_line("it stopped", &complaints),
            Ok(Err(error)) | Err(error) => format!("the connection failed: {error}"),
        }
    }

    /// Says farewell, then ends what was started.
    pub(super) async fn close(mut self) {
        if let Some(cancel) = self.cancel.take() {
            cancel.cancel();
        }
        if let Some(done) = &mut self.done {
            drop(tokio::time::timeout(FAREWELL, done).await);
            self.done = None;
        }
        if let Some(child) = self.child.take() {
            child.end().await;
        }
    }
}

impl Drop for Link {
    /// Whoever waits for a person's answer waits no more.
    fn drop(&mut self) {
        self.line.handler.gone.cancel();
        if let Some(done) = &self.done {
            done.abort();
        }
    }
}

/// All pages of a list, but not for ever.
macro_rules! pages {
    ($peer:expr, $list:ident, $items:ident) => {{
        let (mut items, mut cursor) = (Vec::new(), None);
        for _ in 0..MOST_PAGES {
            let page = $peer.$list(Some(PaginatedRequestParams::default().with_cursor(cursor))).await?;
            items.extend(page.$items);
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        items
    }};
}

impl Line {
    /// True if both are one connection.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.calls, &other.calls)
    }

    /// Takes note of what an error says about the connection.
    pub(super) fn noted(&self, error: ServiceError) -> ServiceError {
        if http::is_unauthorized(&error) {
            self.unauthorized.cancel();
        }
        error
    }

    /// Everything the server offers now.
    pub(super) async fn catalogue(&self, name: &str) -> Result<Catalogue, String> {
        let read = self.read(name).await.map_err(|error| self.noted(error));
        read.map_err(|error| format!("its lists cannot be read: {error}"))
    }

    async fn read(&self, name: &str) -> Result<Catalogue, ServiceError> {
        let Some(info) = self.peer.peer_info() else { return Ok(Catalogue::default()) };
        let ServerPeerInfo { capabilities, instructions, .. } = &*info;
        let instructions = instructions.clone().map(|text| clip(text, INSTRUCTIONS));
        let mut catalogue = Catalogue { instructions, ..Catalogue::default() };
        if capabilities.tools.is_some() {
            catalogue.tools = catalogue::tools(name, pages!(self.peer, list_tools, tools));
        }
        if capabilities.prompts.is_some() {
            catalogue.prompts = catalogue::prompts(name, pages!(self.peer, list_prompts, prompts));
        }
        if capabilities.resources.is_some() {
            catalogue.resources = pages!(self.peer, list_resources, resources);
            catalogue.templates = self.templates().await.unwrap_or_default();
        }
        Ok(catalogue)
    }

    /// Many servers with resources have no templates and say so with an error.
    async fn templates(&self) -> Result<Vec<rmcp::model::ResourceTemplate>, ServiceError> {
        Ok(pages!(self.peer, list_resource_templates, resource_templates))
    }

    /// People are shown what matters: the server need not send the rest.
    pub(super) async fn quiet(&self) {
        let logs = self.peer.peer_info().is_some_and(|info| info.capabilities.logging.is_some());
        if logs && let Err(error) = self.peer.set_level(SetLevelRequestParams::new(LoggingLevel::Warning)).await {
            tracing::debug!(%error, "a server keeps its own level of logging");
        }
    }
}

/// What puts a fence around a server's program; none where there is no sandbox, or it is to have none.
fn wrap(spec: &Spec, ground: &Ground) -> Result<Option<Wrap>, String> {
    let Transport::Stdio { command, args, .. } = &spec.transport else { return Ok(None) };
    let Some(network) = access(spec, ground) else { return Ok(None) };
    // Inside of the fence nobody could tell a missing program from a hidden one.
    if command.is_absolute() {
        std::fs::metadata(command).map_err(|error| format!("{}: {error}", command.display()))?;
    }
    let folders: Vec<PathBuf> = std::iter::once(&ground.cwd).chain(&ground.folders).cloned().collect();
    let words = std::iter::once(command.clone()).chain(args.iter().map(PathBuf::from)).collect();
    let fence = ground.sandbox.fence_program(&folders, network, words);
    fence.map(|fence| ground.sandbox.wrap(&fence)).transpose().map_err(|error| format!("no sandbox: {error}"))
}

/// Whether a server's program finds the network; none if it is not fenced at all.
fn access(spec: &Spec, ground: &Ground) -> Option<Network> {
    match spec.confinement {
        Confinement::Free => None,
        Confinement::Networked => Some(Network::Open),
        Confinement::Fenced if ground.networks.is_granted(&spec.identity()) => Some(Network::Open),
        Confinement::Fenced => Some(ground.network),
    }
}

impl Ground {
    /// Hides what this server was given, and what its login yielded by now.
    pub(super) fn redactor_for(&self, spec: &Spec) -> Redactor {
        self.redactor.knowing(spec.secrets().into_iter().chain(login::tokens(spec, &self.keyring)))
    }

    /// What may help, if this was said by a program for want of the network.
    pub(super) fn advice(&self, spec: &Spec, said: &str) -> Option<&'static str> {
        let stdio = matches!(spec.transport, Transport::Stdio { .. });
        let closed = stdio && access(spec, self) == Some(Network::Closed) && self.sandbox.is_in_force();
        (closed && offline::missed(said)).then_some(
            "its program has no network in the sandbox: network = true in its entry, or sandbox.server_network, grants it",
        )
    }
}

/// Why there is no connection.
enum Failure {
    Start(String),
    Greeting(Box<ClientInitializeError>, String),
}

/// Why there is no connection, for others.
pub(super) enum Unopened {
    /// A person has to log in first.
    Locked,
    /// It seems to have missed the network.
    Offline(String),
    Failed(String),
}

impl Unopened {
    /// Where somebody gave a token of their own a login would change nothing.
    pub(super) fn unauthorized(spec: &Spec) -> Self {
        match spec.is_authorized() {
            true => Self::Failed("the given authorization was refused".to_owned()),
            false => Self::Locked,
        }
    }
}

impl Failure {
    fn shown(self, spec: &Spec, ground: &Ground) -> Unopened {
        match &self {
            Self::Greeting(error, _) if error.is_authorization_required() => Unopened::unauthorized(spec),
            Self::Greeting(_, complaints) => match ground.advice(spec, complaints) {
                Some(advice) => Unopened::Offline(format!("{} ({advice})", self.text(spec, ground))),
                None => Unopened::Failed(self.text(spec, ground)),
            },
            Self::Start(_) => Unopened::Failed(self.text(spec, ground)),
        }
    }

    fn text(self, spec: &Spec, ground: &Ground) -> String {
        let text = match self {
            Self::Start(reason) => format!("it could not be started: {reason}"),
            Self::Greeting(error, complaints) => {
                last_line(&format!("it did not greet: {}", reason(&error)), &complaints)
            }
        };
        ground.redactor_for(spec).text(&text)
    }
}

/// A program that dies is met either where we read or where we write.
fn reason(error: &ClientInitializeError) -> String {
    if let ClientInitializeError::TransportError { error, .. } = error {
        let ended = error.error.downcast_ref::<std::io::Error>().is_some();
        return if ended { "it ended".to_owned() } else { error.error.to_string() };
    }
    let closed = matches!(error, ClientInitializeError::ConnectionClosed(_));
    if closed { "it ended".to_owned() } else { error.to_string() }
}

/// Programs say last what they died of.
fn last_line(what: &str, complaints: &str) -> String {
    match complaints.lines().rev().find(|line| !line.trim().is_empty()) {
        Some(last) => format!("{what}: {}", last.trim()),
        None => what.to_owned(),
    }
}

fn handler(name: &str, spec: &Spec, ground: &Ground, seats: &Seats) -> Handler {
    Handler {
        name: name.to_owned(),
        seats: seats.clone(),
        shared: spec.shared,
        calls: Arc::default(),
        roots: Arc::clone(&ground.roots),
        redactor: ground.redactor_for(spec),
        changed: Arc::new(Notify::new()),
        gone: CancellationToken::new(),
        notices: Arc::default(),
    }
}
