//! The server's side of the Unix socket: only its own user comes in.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use gander_domain::caller::Caller;
use gander_gateway::ClientPeer;
use gander_services::ListenSecurity;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;

use super::handshake::{Hello, HelloError, Want, Welcome};
use super::server::{Listening, Server, WantedListener};

/// Local clients at once; more wait until one leaves.
const PLACES: usize = 1024;

/// What whoever asked for a listener reads when the server was asked to end.
const STOPPED: &[u8] = b"\n";

/// Accepts clients until the listeners close.
pub(super) async fn accept_listener_connections(server: Arc<Server>, listener: UnixListener) {
    let places = Arc::new(Semaphore::new(PLACES));
    let me = rustix::process::getuid().as_raw();
    loop {
        let place = tokio::select! {
            () = server.stop.cancelled() => return,
            place = places.clone().acquire_owned() => place.expect("the semaphore is never closed"),
        };
        let accepted = tokio::select! {
            () = server.stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) if stream.peer_cred().is_ok_and(|peer| peer.uid() == me) => {
                let present = ConnectedClientCount::add(&server.clients);
                let server = server.clone();
                server.listeners.clone().spawn(async move {
                    handle_listener_client(server, stream).await;
                    drop((place, present));
                });
            }
            Ok(_) => tracing::warn!("another user knocked at the socket"),
            Err(error) => {
                tracing::warn!(%error, "cannot accept a client");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// Counts a client for as long as it is here.
struct ConnectedClientCount(Arc<AtomicUsize>);

impl ConnectedClientCount {
    fn add(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count.clone())
    }
}

impl Drop for ConnectedClientCount {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn handle_listener_client(server: Arc<Server>, stream: UnixStream) {
    let (reader, writer) = stream.into_split();
    let served = tokio::select! {
        () = server.stop.cancelled() => Ok(()),
        served = serve_listener_client(&server, BufReader::new(reader), writer) => served,
    };
    if let Err(error) = served {
        tracing::debug!(%error, "no handshake");
    }
}

async fn serve_listener_client(
    server: &Arc<Server>,
    mut reader: BufReader<OwnedReadHalf>,
    mut writer: OwnedWriteHalf,
) -> Result<(), HelloError> {
    let hello = Hello::read(&mut reader).await?;
    let welcome = |refused| Welcome::new(server.background, server.listens(), refused);
    match hello.want {
        Want::Acp => {
            welcome(None).write(&mut writer).await?;
            let Hello { cwd, model, policy, keys, options, program, .. } = hello;
            let peer = ClientPeer { caller: Caller::local_owner(), cwd, model, policy, keys, options, program };
            server.app.serve_acp(reader, writer, peer).await;
        }
        Want::Drain => {
            welcome(None).write(&mut writer).await?;
            server.stop_requested.cancel();
        }
        Want::Listen(address) => {
            let wanted = WantedListener::without_key(address, ListenSecurity::Plain);
            serve_listen_request(server, wanted, reader, writer).await?;
        }
        Want::ListenWith { address, security, key } => {
            serve_listen_request(server, WantedListener { address, security, key }, reader, writer).await?;
        }
    }
    Ok(())
}

async fn serve_listen_request(
    server: &Arc<Server>,
    wanted: WantedListener,
    mut reader: BufReader<OwnedReadHalf>,
    mut writer: OwnedWriteHalf,
) -> Result<(), HelloError> {
    let background = server.background;
    match server.listen(wanted) {
        Ok(Listening { address, fingerprint, guard: _open, key: _key }) => {
            let mut welcome = Welcome::new(background, vec![address], None);
            welcome.fingerprint = fingerprint;
            welcome.write(&mut writer).await?;
            // The listener lives as long as whoever wanted it.
            let mut byte = [0u8; 1];
            tokio::select! {
                left = reader.read_exact(&mut byte) => left.map(drop)?,
                () = server.stop_requested.cancelled() => {
                    // Whoever stays is told that this end was asked for: it does not take the server's place.
                    writer.write_all(STOPPED).await?;
                    server.stop.cancelled().await;
                }
            }
        }
        Err(error) => Welcome::new(background, server.listens(), Some(error.to_string())).write(&mut writer).await?,
    }
    Ok(())
}
