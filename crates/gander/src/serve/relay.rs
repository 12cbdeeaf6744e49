//! Passing a client on to the process that has the data directory.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use gander_services::paths::Paths;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::ServeError;
use crate::config::Config;
use crate::daemon::{Attached, Hello, Signals, Want, connect_to_attach, listen_security};

/// How long the last answers may take once the client has left.
const LAST_ANSWERS: Duration = Duration::from_secs(3);

/// How long a process that has the data directory may take to answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

const PAUSE: Duration = Duration::from_millis(20);

/// Passes on what a client says until it leaves.
pub(super) async fn relay_client<R, W>(
    paths: &Paths,
    cwd: Option<PathBuf>,
    mut reader: R,
    mut writer: W,
) -> Result<(), ServeError>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let mut hello = Hello::new(Want::Acp);
    hello.cwd = cwd;
    let Attached { reader: mut from_server, writer: mut to_server, .. } =
        connect_to_relay_holder(paths, &hello).await?;
    let up = async {
        tokio::io::copy(&mut reader, &mut to_server).await?;
        to_server.shutdown().await
    };
    let mut down = std::pin::pin!(tokio::io::copy(&mut from_server, &mut writer));
    tokio::select! {
        left = up => left?,
        ended = &mut down => {
            ended?;
            return Err(io::Error::other("the process that served this agent ended, start again").into());
        }
    }
    match tokio::time::timeout(LAST_ANSWERS, down).await {
        Ok(ended) => ended.map(drop).map_err(ServeError::from),
        Err(_) => Ok(()),
    }
}

/// Has the process that has the data directory listen at an address.
pub(super) async fn ask_relay_to_listen(config: &Config, address: SocketAddr) -> Result<Attached, ServeError> {
    let want = Want::ListenWith { address, security: listen_security(config), key: None };
    connect_to_relay_holder(&config.paths, &Hello::new(want)).await
}

/// Keeps a listener open until a signal comes or the other process ends.
pub(super) async fn hold_relay_listener(mut listener: Attached, mut signals: Signals) {
    let mut byte = [0];
    tokio::select! {
        () = signals.next() => {}
        _ = listener.reader.read(&mut byte) => {}
    }
}

/// It may be about to open its socket.
async fn connect_to_relay_holder(paths: &Paths, hello: &Hello) -> Result<Attached, ServeError> {
    let connected = tokio::time::timeout(CONNECT_TIMEOUT, async {
        loop {
            match connect_to_attach(paths, hello).await {
                Ok(Some(attached)) => return Ok(attached),
                Ok(None) => tokio::time::sleep(PAUSE).await,
                Err(error) => return Err(error),
            }
        }
    });
    match connected.await {
        Ok(connected) => Ok(connected?),
        Err(_) => {
            let folder = paths.data_directory().display();
            Err(io::Error::other(format!("the process that has the data directory does not answer: {folder}")).into())
        }
    }
}
