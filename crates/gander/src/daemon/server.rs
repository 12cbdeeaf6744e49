//! The server of a data directory, from its lock to its last answer.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use axum::Router;
use gander_gateway::server::{BadRoute, Gateway};
use gander_http::{SelfSigned, TlsError};
use gander_services::ListenSecurity;
use gander_services::paths::{DirectoryLock, Paths, PathsError};
use gander_services::token::{ListenerKey, TokenError, TokenId, Tokens};
use tokio::net::{TcpListener, TcpSocket, UnixListener};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::signals::Signals;
use super::{controls, listener};
use crate::app::{App, AppBuilder};
use crate::config::Config;

/// How long running work gets to park itself.
const DRAIN: Duration = Duration::from_secs(25);
/// How long open connections get to send their last answers.
const LAST_ANSWERS: Duration = Duration::from_secs(4);
/// How often is looked whether anybody is left.
const DESERTED_INTERVAL: Duration = Duration::from_millis(50);

/// Who starts the server, and what for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// A person, who wants it on TCP too.
    Foreground(SocketAddr),
    /// A client: on the Unix socket alone, for as long as there is something to do.
    Background,
}

/// How connections are protected by the settings and flags of this process.
pub fn listen_security(config: &Config) -> ListenSecurity {
    match (config.tls, config.insecure_plain) {
        (true, _) => ListenSecurity::Tls,
        (false, true) => ListenSecurity::InsecurePlain,
        (false, false) => ListenSecurity::Plain,
    }
}

/// Why a server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A signal, or a client's wish.
    Asked,
    /// Nobody needed it any more.
    Idle,
    /// A second signal: nothing was waited for.
    AtOnce,
}

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// There is one already.
    #[error("a server is already running on this data directory, stop it with `gander server stop`: {0}")]
    Taken(PathBuf),
    /// The address.
    #[error("cannot listen, {}: {address}", listen_trouble(reason))]
    Listen {
        /// Where it should have listened.
        address: SocketAddr,
        /// What the system says.
        reason: io::Error,
    },
    /// Doors without a token are for this machine alone.
    #[error("interfaces without a token (server.open) are allowed on loopback addresses only: {0}")]
    Open(SocketAddr),
    /// Everything would be readable on the way.
    #[error(
        "refusing to listen without TLS on an address that other machines can reach: they could read the token and \
         everything else; use --tls-self-signed, or put a TLS proxy in front of a loopback address, or use \
         --insecure-plain: {0}"
    )]
    Plain(SocketAddr),
    /// The socket or a lock.
    #[error("cannot use the file, {reason}: {path}")]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        reason: io::Error,
    },
    /// The data directory.
    #[error(transparent)]
    Paths(#[from] PathsError),
    /// The token.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The certificate.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A route of the embedder.
    #[error(transparent)]
    Route(#[from] BadRoute),
    /// The application.
    #[error("{0:#}")]
    App(anyhow::Error),
}

/// Why it cannot listen, with what to do where that is known.
fn listen_trouble(reason: &io::Error) -> String {
    let known = [
        (io::ErrorKind::AddrInUse, "another program uses this address, choose another with --listen"),
        (io::ErrorKind::AddrNotAvailable, "this machine does not have this address"),
        (io::ErrorKind::PermissionDenied, "not allowed, ports below 1024 are for root"),
    ];
    let told = known.iter().find(|(kind, _)| *kind == reason.kind());
    told.map_or_else(|| reason.to_string(), |(_, text)| (*text).to_owned())
}

/// A listener that a client asked for; it closes when this is dropped.
pub(super) struct Listening {
    pub(super) address: SocketAddr,
    pub(super) fingerprint: Option<String>,
    pub(super) guard: DropGuard,
    pub(super) key: Option<ListenerKey>,
}

/// A listener that a client asks for.
pub(super) struct WantedListener {
    pub(super) address: SocketAddr,
    pub(super) security: ListenSecurity,
    /// What counts there beside the tokens.
    pub(super) key: Option<TokenId>,
}

impl WantedListener {
    /// One where the tokens alone count.
    pub(super) fn without_key(address: SocketAddr, security: ListenSecurity) -> Self {
        Self { address, security, key: None }
    }
}

/// A TCP address that is listened on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OpenAddress {
    pub(super) address: SocketAddr,
    /// What clients pin, if connections are encrypted.
    pub(super) fingerprint: Option<String>,
}

/// A running server.
#[derive(Debug)]
pub struct Server {
    pub(super) app: Arc<App>,
    pub(super) background: bool,
    pub(super) clients: Arc<AtomicUsize>,
    pub(super) started: SystemTime,
    /// Cancelled when a client asks the server to end.
    pub(super) stop_requested: CancellationToken,
    /// Cancelled when the listeners close.
    pub(super) stop: CancellationToken,
    pub(super) listeners: TaskTracker,
    pub(super) gateway: Arc<Gateway>,
    /// What the first listener has; others may differ.
    fingerprint: Option<String>,
    router: Router,
    listens: Mutex<Vec<OpenAddress>>,
    idle: Duration,
    socket: PathBuf,
    _lock: DirectoryLock,
    /// The key that this process was started with counts at its own listener.
    _own_key: Option<ListenerKey>,
}

impl Server {
    /// Takes the data directory and opens the listeners.
    pub async fn start(app: impl Into<AppBuilder>, start: Start) -> Result<Arc<Self>, ServerError> {
        let app: AppBuilder = app.into();
        let config = app.config().clone();
        let address = match start {
            Start::Foreground(address) => Some(check_listen_security(address, listen_security(&config), &config)?),
            Start::Background => None,
        };
        let paths = config.paths.clone();
        paths.create_folders()?;
        let lock = take_server_lock(&paths)?;
        // An address that is taken is found before anything is touched.
        let tcp = address.map(bind_tcp).transpose()?;
        let tls = config.tls.then(|| SelfSigned::load_or_create(&paths)).transpose()?;
        let fingerprint = tls.as_ref().map(|tls| tls.fingerprint.clone());
        let tokens = Tokens::open(&paths)?.with_provider(config.identity_provider().map_err(ServerError::App)?);
        let own_key = own_listener_key(&tokens, tcp.as_ref(), &config);
        let app = app.start().await.map_err(ServerError::App)?;
        if let Some(address) = node_address(tcp.as_ref(), &config) {
            app.services().nodes.address.set(address).ok(); // nobody else sets it
        }
        let gateway = app.gateway(&config, tokens);
        let router = app.router(&gateway)?;
        let (socket, unix) = bind_unix_socket(&paths)?;
        let server = Arc::new(Self {
            app,
            background: start == Start::Background,
            clients: Arc::default(),
            started: SystemTime::now(),
            stop_requested: CancellationToken::new(),
            stop: CancellationToken::new(),
            listeners: TaskTracker::new(),
            router,
            gateway,
            fingerprint,
            listens: Mutex::default(),
            idle: config.sections.daemon.idle.0,
            socket,
            _lock: lock,
            _own_key: own_key,
        });
        server.listeners.spawn(listener::accept_listener_connections(server.clone(), unix));
        if let Some(controls) = server.app.take_controls() {
            server.listeners.spawn(controls::handle_controls(server.clone(), controls));
        }
        if let Some(tcp) = tcp {
            server.serve(tcp, tls, server.stop.child_token())?;
        }
        Ok(server)
    }

    /// The application that it serves.
    pub fn app(&self) -> &Arc<App> {
        &self.app
    }

    /// Where it listens on TCP.
    pub fn listens(&self) -> Vec<SocketAddr> {
        self.addresses().iter().map(|open| open.address).collect()
    }

    /// The same, and which of them are encrypted.
    pub(super) fn open_addresses(&self) -> Vec<OpenAddress> {
        self.addresses().clone()
    }

    /// What clients pin, if connections are encrypted.
    pub fn fingerprint(&self) -> Option<&str> {
        self.fingerprint.as_deref()
    }

    /// Listens on TCP until the guard is dropped.
    pub(super) fn listen(self: &Arc<Self>, wanted: WantedListener) -> Result<Listening, ServerError> {
        let WantedListener { address, security, key } = wanted;
        let config = self.app.config();
        let tcp = bind_tcp(check_listen_security(address, security, config)?)?;
        let tls = (security == ListenSecurity::Tls).then(|| SelfSigned::load_or_create(&config.paths)).transpose()?;
        let fingerprint = tls.as_ref().map(|tls| tls.fingerprint.clone());
        let stop = self.stop.child_token();
        let address = self.serve(tcp, tls, stop.clone())?;
        let key = key.map(|key| self.gateway.http.tokens.accept_at(address, key));
        Ok(Listening { address, fingerprint, guard: stop.drop_guard(), key })
    }

    /// Runs until it is asked to end or nobody needs it, then lets work park and answers go out.
    pub async fn run(&self, mut signals: Signals) -> End {
        let end = tokio::select! {
            () = signals.next() => End::Asked,
            () = self.stop_requested.cancelled() => End::Asked,
            () = self.wait_until_idle(), if self.background => End::Idle,
        };
        tracing::info!(?end, "ending");
        self.gateway.drain();
        self.remove_socket();
        tokio::select! {
            drained = tokio::time::timeout(DRAIN, self.app.drain()) => if drained.is_err() {
                tracing::warn!("work did not park in time");
            },
            () = signals.next() => return End::AtOnce,
        }
        self.stop.cancel();
        self.listeners.close();
        tokio::select! {
            closed = tokio::time::timeout(LAST_ANSWERS, self.listeners.wait()) => if closed.is_err() {
                tracing::debug!("connections were cut");
            },
            () = signals.next() => return End::AtOnce,
        }
        end
    }

    /// Waits until no client is left on the socket and none listens through it, then lets work park and answers go out.
    pub async fn end_when_deserted(&self) {
        while self.clients.load(Ordering::Relaxed) > 0 {
            tokio::time::sleep(DESERTED_INTERVAL).await;
        }
        self.gateway.drain();
        self.remove_socket();
        if tokio::time::timeout(DRAIN, self.app.drain()).await.is_err() {
            tracing::warn!("work did not park in time");
        }
        self.stop.cancel();
        self.listeners.close();
        if tokio::time::timeout(LAST_ANSWERS, self.listeners.wait()).await.is_err() {
            tracing::debug!("connections were cut");
        }
    }

    /// Whoever comes now finds nobody and starts a new server, which waits for our lock.
    fn remove_socket(&self) {
        if let Err(error) = std::fs::remove_file(&self.socket) {
            tracing::debug!(%error, "the socket was gone already");
        }
    }

    fn serve(
        self: &Arc<Self>,
        tcp: TcpListener,
        tls: Option<SelfSigned>,
        stop: CancellationToken,
    ) -> Result<SocketAddr, ServerError> {
        let unknown = SocketAddr::from(([0, 0, 0, 0], 0));
        let address = tcp.local_addr().map_err(|reason| ServerError::Listen { address: unknown, reason })?;
        let fingerprint = tls.as_ref().map(|tls| tls.fingerprint.clone());
        self.addresses().push(OpenAddress { address, fingerprint });
        let server = self.clone();
        self.listeners.spawn(async move {
            gander_http::serve_http_with_tls(
                tcp,
                tls.map(|tls| tls.acceptor),
                server.gateway.http.clone(),
                server.router.clone(),
                stop,
            )
            .await;
            server.addresses().retain(|open| open.address != address);
        });
        Ok(address)
    }

    async fn wait_until_idle(&self) {
        let mut ticks =
            tokio::time::interval((self.idle / 10).clamp(Duration::from_millis(10), Duration::from_secs(1)));
        let mut since = Instant::now();
        loop {
            ticks.tick().await;
            let needed =
                self.clients.load(Ordering::Relaxed) > 0 || !self.addresses().is_empty() || !self.app.is_idle();
            if needed {
                since = Instant::now();
            } else if since.elapsed() >= self.idle {
                return;
            }
        }
    }

    fn addresses(&self) -> MutexGuard<'_, Vec<OpenAddress>> {
        self.listens.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn own_listener_key(tokens: &Tokens, tcp: Option<&TcpListener>, config: &Config) -> Option<ListenerKey> {
    let address = tcp?.local_addr().ok()?;
    Some(tokens.accept_at(address, TokenId::of_secret(config.secret.as_ref()?)))
}

/// Where other nodes reach this one: as the settings say, or at the one address that it listens on in the clear.
fn node_address(tcp: Option<&TcpListener>, config: &Config) -> Option<String> {
    if let Some(address) = &config.sections.cluster.address {
        return Some(address.trim_end_matches('/').to_owned());
    }
    let address = tcp?.local_addr().ok()?;
    (!config.tls && !address.ip().is_unspecified()).then(|| format!("http://{address}"))
}

fn take_server_lock(paths: &Paths) -> Result<DirectoryLock, ServerError> {
    let path = paths.server_lock();
    let failed = |reason| ServerError::File { path: path.clone(), reason };
    let mut lock = DirectoryLock::try_take(&path)
        .map_err(failed)?
        .ok_or_else(|| ServerError::Taken(paths.data_directory().to_owned()))?;
    lock.note_holder().map_err(failed)?;
    Ok(lock)
}

/// What needs no token is never on a network, and neither is plain HTTP unless the owner said so. Every listener of
/// this process passes here, whoever asked for it.
fn check_listen_security(
    address: SocketAddr,
    security: ListenSecurity,
    config: &Config,
) -> Result<SocketAddr, ServerError> {
    match (address.ip().to_canonical().is_loopback(), security) {
        (true, _) => Ok(address),
        (false, ListenSecurity::Plain) => Err(ServerError::Plain(address)),
        (false, _) if !config.sections.server.open.is_empty() => Err(ServerError::Open(address)),
        (false, ListenSecurity::Tls | ListenSecurity::InsecurePlain) => Ok(address),
    }
}

/// A burst of callers waits in the system's queue. An address that a server just left can be taken at once.
fn bind_tcp(address: SocketAddr) -> Result<TcpListener, ServerError> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
    let listen = |socket: TcpSocket| {
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(4096)
    };
    socket.and_then(listen).map_err(|reason| ServerError::Listen { address, reason })
}

/// The lock is ours, so a socket that lies there is a dead server's.
fn bind_unix_socket(paths: &Paths) -> Result<(PathBuf, UnixListener), ServerError> {
    let socket = paths.socket_to_bind();
    paths.note_socket(&socket)?;
    let failed = |path: &Path, reason| ServerError::File { path: path.to_owned(), reason };
    match std::fs::remove_file(&socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(&socket, error)),
        Ok(()) | Err(_) => {}
    }
    let listener = UnixListener::bind(&socket).map_err(|reason| failed(&socket, reason))?;
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&socket, private).map_err(|reason| failed(&socket, reason))?;
    Ok((socket, listener))
}
