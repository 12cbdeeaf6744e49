//! `gander acp`: an editor's stdin and stdout, pumped to the server, or served by this process alone.
//!
//! Nothing but the protocol ever reaches stdout: its descriptor is taken away from everybody else at the start.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use anyhow::Context as _;
use gander::config::Config;
use gander::daemon::{Attached, attach_to_server};

use super::client::{StandaloneClient, client_hello};
use crate::commands::{Context, Exit, block_on_command};

/// How long the last answers may take once stdin has ended.
const LAST_ANSWERS: Duration = Duration::from_secs(3);

/// Which side ended.
enum Ended {
    Editor,
    Server(io::Result<()>),
}

pub(super) fn run(context: Context, standalone: bool) -> anyhow::Result<Exit> {
    let stdout = guard_stdout().context("cannot use stdout")?;
    let cwd = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    if standalone {
        return block_on_command(serve_acp_alone(context.config, cwd, stdout));
    }
    let socket = connect_stdio(&context.config, cwd)?;
    let (told, ends) = sync_channel(2);
    let stdin = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    spawn_stdin_pump(stdin, socket.try_clone()?, told.clone());
    std::thread::spawn(move || report_pump_end(&told, Ended::Server(pump_stdio(socket, stdout))));
    match ends.recv()? {
        // The turn goes on without us; answers that are under way still get out.
        Ended::Editor => {
            ends.recv_timeout(LAST_ANSWERS).ok();
            Ok(Exit::Done)
        }
        Ended::Server(Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::Done),
        Ended::Server(Err(error)) => Err(error.into()),
        Ended::Server(Ok(())) => anyhow::bail!("the server ended, start again to attach to a new one"),
    }
}

fn spawn_stdin_pump(stdin: File, socket: UnixStream, told: SyncSender<Ended>) {
    std::thread::spawn(move || {
        let half = socket.try_clone();
        if let Err(error) = pump_stdio(stdin, socket) {
            tracing::debug!(%error, "stdin ended");
        }
        report_pump_end(&told, Ended::Editor);
        half.and_then(|socket| socket.shutdown(Shutdown::Write)).ok();
    });
}

/// If nobody waits any more the process is about to end.
fn report_pump_end(told: &SyncSender<Ended>, ended: Ended) {
    told.send(ended).ok();
}

fn pump_stdio(mut from: impl Read, mut to: impl Write) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return to.flush(),
            Ok(read) => to.write_all(&buffer[..read]).and_then(|()| to.flush())?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The socket after the handshake, for plain threads: nothing else has to be scheduled here.
fn connect_stdio(config: &Config, cwd: PathBuf) -> anyhow::Result<UnixStream> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let Attached { reader, writer, .. } = attach_to_server(config, &client_hello(config, &cwd)).await?;
        // The server speaks only when spoken to, so nothing waits in the buffer.
        let socket = reader.into_inner().reunite(writer)?.into_std()?;
        socket.set_nonblocking(false)?;
        Ok(socket)
    })
}

async fn serve_acp_alone(config: Config, cwd: PathBuf, stdout: File) -> anyhow::Result<Exit> {
    let standalone = StandaloneClient::start(&config).await?;
    let peer = StandaloneClient::peer(&config, &cwd);
    let stdout = tokio::fs::File::from_std(stdout);
    standalone.app.serve_acp(tokio::io::stdin(), stdout, peer).await;
    if tokio::time::timeout(LAST_ANSWERS, standalone.app.drain()).await.is_err() {
        tracing::warn!("work did not park in time");
    }
    Ok(Exit::Done)
}

/// Keeps stdout for the protocol: whatever else prints by mistake goes to stderr.
fn guard_stdout() -> io::Result<File> {
    let stdout = io::stdout().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdout(io::stderr())?;
    Ok(File::from(stdout))
}
