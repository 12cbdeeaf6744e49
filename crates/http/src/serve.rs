//! The accept loop: connections are counted, timed and closed in good order.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use rustix::net::sockopt;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use crate::connection_addresses::ConnectionAddresses;
use crate::h2_frame_meter::MeteredStream;
use crate::paced_body::BodyPacer;
use crate::state::HttpState;

/// How long connections may take to end once the listener is closed.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(3);
/// A peer that acknowledges nothing for so long is gone.
#[cfg(target_os = "linux")]
const ACK_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a connection that was flooded has for its farewell.
const ABUSE_CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// What the system may hold of what a peer has not taken yet.
const SEND_BUFFER_CAPACITY: usize = 64 * 1024;
/// The same of one stream of HTTP/2.
const STREAM_BUFFER_CAPACITY: usize = 32 * 1024;
/// Descriptors that connections never take: the store, tools and children need some.
const RESERVED_FILE_DESCRIPTORS: u64 = 256;

/// What outlives its request, a WebSocket or a stream, keeps its connection's place and hears when the server ends.
#[derive(Clone, Debug)]
pub struct ConnectionPermit {
    _place: Arc<OwnedSemaphorePermit>,
    /// Cancelled when the connections end.
    pub stop: CancellationToken,
    /// What is waited for at the end.
    pub tasks: TaskTracker,
}

/// Accepts connections until it is told to stop, then lets the last answers out.
pub async fn serve_http(listener: TcpListener, state: Arc<HttpState>, router: Router, stop: CancellationToken) {
    serve_http_with_tls(listener, None, state, router, stop).await;
}

/// The same, encrypted if there is something to encrypt with.
pub async fn serve_http_with_tls(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    state: Arc<HttpState>,
    router: Router,
    stop: CancellationToken,
) {
    let builder = Arc::new(http_builder(&state));
    let places = Arc::new(Semaphore::new(max_served_connections(state.limits.connections)));
    let connections = TaskTracker::new();
    connections.spawn(Arc::clone(&state.readers).sweep_stalled(stop.clone()));
    let (watched, ending) = (Arc::clone(&state), stop.clone());
    let ended = move || watched.browsers.end_signed_out();
    let watched = Arc::clone(&state);
    connections.spawn(async move { watched.tokens.watch_revocations(ended, ending).await });
    if let Some(provider) = state.tokens.provider() {
        connections.spawn(Arc::clone(provider).watch_expiry(stop.clone()));
    }
    loop {
        // At the limit, callers wait in the system's queue.
        let place = tokio::select! {
            () = stop.cancelled() => break,
            place = places.clone().acquire_owned() => place.expect("the semaphore is never closed"),
        };
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        let Some((stream, address)) = prepare_served_socket(accepted, state.limits.stalled_reader.0).await else {
            continue;
        };
        let seat = ConnectionPermit { _place: Arc::new(place), stop: stop.clone(), tasks: connections.clone() };
        let connection =
            ServedConnection { state: state.clone(), builder: builder.clone(), address, seat: Arc::new(seat) };
        match tls.clone() {
            None => drop(connections.spawn(connection.serve_stream(stream, router.clone(), stop.clone()))),
            Some(tls) => drop(connections.spawn(connection.serve_tls(tls, stream, router.clone(), stop.clone()))),
        }
    }
    drop(listener);
    connections.close();
    if tokio::time::timeout(DRAIN_TIMEOUT, connections.wait()).await.is_err() {
        tracing::debug!(left = connections.len(), "connections were cut");
    }
}

struct ServedConnection {
    state: Arc<HttpState>,
    builder: Arc<Builder<TokioExecutor>>,
    address: ConnectionAddresses,
    seat: Arc<ConnectionPermit>,
}

impl ServedConnection {
    /// Whoever does not finish the handshake in time is no client.
    async fn serve_tls(mut self, tls: TlsAcceptor, stream: TcpStream, router: Router, stop: CancellationToken) {
        match tokio::time::timeout(self.state.limits.header_time.0, tls.accept(stream)).await {
            Ok(Ok(stream)) => {
                self.address.encrypted = true;
                self.serve_stream(stream, router, stop).await;
            }
            Ok(Err(error)) => tracing::debug!(%error, "no handshake"),
            Err(_) => tracing::debug!("no handshake in time"),
        }
    }

    async fn serve_stream<S>(self, stream: S, router: Router, stop: CancellationToken)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        self.state.connections.fetch_add(1, Ordering::Relaxed);
        let spoke = Arc::new(AtomicBool::new(false));
        let (address, heard, seat) = (self.address, spoke.clone(), self.seat.clone());
        let pace = BodyPacer::new(&self.state.large_responses.spool, &self.state.readers);
        let (cut, progress) = (pace.cut.clone(), Arc::clone(&pace.progress));
        let service = service_fn(move |mut request: http::Request<Incoming>| {
            heard.store(true, Ordering::Relaxed);
            request.extensions_mut().insert(address);
            request.extensions_mut().insert(seat.clone());
            if let Some(bad) = pace.progress.framing_error() {
                request.extensions_mut().insert(bad);
            }
            let (router, pace, version) = (router.clone(), pace.clone(), request.version());
            async move {
                let response = router.oneshot(request.map(axum::body::Body::new) as Request).await?;
                Ok::<_, Infallible>(pace.pace_response(version, response).await)
            }
        });
        let (stream, flooded) = MeteredStream::new(stream, progress, self.state.limits.stalled_reader.0);
        let connection = self.builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
        tokio::pin!(connection);
        // Telling HTTP/1 from HTTP/2 has no time limit of its own, so the first header gets one here.
        let mut silence = std::pin::pin!(tokio::time::sleep(self.state.limits.header_time.0));
        let (mut timed, mut stopping, mut leaving) = (false, false, false);
        let ended = loop {
            tokio::select! {
                ended = connection.as_mut() => break ended,
                () = silence.as_mut(), if !timed => {
                    timed = true;
                    if leaving || !spoke.load(Ordering::Relaxed) {
                        break Ok(());
                    }
                }
                () = async { tokio::select! { () = flooded.notified() => {}, () = cut.cancelled() => {} } }, if !leaving => {
                    (leaving, timed) = (true, false);
                    silence.as_mut().reset(Instant::now() + ABUSE_CLOSE_TIMEOUT);
                    connection.as_mut().graceful_shutdown();
                }
                () = stop.cancelled(), if !stopping => {
                    stopping = true;
                    connection.as_mut().graceful_shutdown();
                }
            }
        };
        if let Err(error) = ended {
            tracing::trace!(%error, "connection ended");
        }
        self.state.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

fn http_builder(state: &HttpState) -> Builder<TokioExecutor> {
    let limits = &state.limits;
    let header_size = u32::try_from(limits.header_size.len()).unwrap_or(u32::MAX);
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_time.0)
        .max_headers(limits.header_lines)
        // Large enough that an overlong address is told from an overlong header.
        .max_buf_size(128 * 1024 + limits.header_size.len())
        .keep_alive(true);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(header_size)
        .max_concurrent_streams(200)
        .max_send_buf_size(STREAM_BUFFER_CAPACITY)
        .max_pending_accept_reset_streams(20)
        .max_local_error_reset_streams(64)
        .keep_alive_interval(Duration::from_secs(20))
        .keep_alive_timeout(Duration::from_secs(20));
    builder
}

/// The socket options of a fresh connection. `None` if there is none after all.
async fn prepare_served_socket(
    accepted: std::io::Result<(TcpStream, SocketAddr)>,
    stalled: Duration,
) -> Option<(TcpStream, ConnectionAddresses)> {
    let (stream, peer) = match accepted {
        Ok(accepted) => accepted,
        Err(error) => {
            tracing::warn!(%error, "cannot accept a connection");
            tokio::time::sleep(Duration::from_millis(50)).await;
            return None;
        }
    };
    let local = stream.local_addr().ok()?;
    if let Err(error) = set_served_socket_options(&stream, stalled) {
        tracing::debug!(%error, "cannot set a socket option");
    }
    Some((stream, ConnectionAddresses { peer, local, encrypted: false }))
}

fn set_served_socket_options(stream: &TcpStream, stalled: Duration) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_send_buffer_size(stream, SEND_BUFFER_CAPACITY)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, Duration::from_secs(30))?;
    sockopt::set_tcp_keepintvl(stream, Duration::from_secs(10))?;
    set_served_ack_timeout(stream, stalled)
}

/// Linux counts a peer that takes nothing as one that acknowledges nothing: it must not be faster than we are.
#[cfg(target_os = "linux")]
fn set_served_ack_timeout(stream: &TcpStream, stalled: Duration) -> std::io::Result<()> {
    let gone_after = ACK_TIMEOUT.max(stalled.saturating_mul(2));
    Ok(sockopt::set_tcp_user_timeout(stream, u32::try_from(gone_after.as_millis()).unwrap_or(u32::MAX))?)
}

#[cfg(not(target_os = "linux"))]
fn set_served_ack_timeout(_stream: &TcpStream, _stalled: Duration) -> std::io::Result<()> {
    Ok(())
}

/// As many as wanted, as far as the system lets us open files.
fn max_served_connections(wanted: usize) -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let files = if setrlimit(Resource::Nofile, raised).is_ok() { limit.maximum } else { limit.current };
    let room = files.map_or(usize::MAX, |files| {
        usize::try_from(files.saturating_sub(RESERVED_FILE_DESCRIPTORS)).unwrap_or(usize::MAX)
    });
    wanted.min(room).clamp(1, Semaphore::MAX_PERMITS)
}
