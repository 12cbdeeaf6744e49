//! `gander serve`: the server of a data directory, for a person or for a client that needs one.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::io::AsyncReadExt;

use super::{Context, Exit};
use crate::daemon::{Attached, End, Hello, Server, ServerError, Start, Want, connect};
use crate::output::Tone;

/// How long a new background server waits for an old one to be gone.
const TAKE_OVER: Duration = Duration::from_secs(10);

/// For a person: in the foreground, on TCP too.
pub(super) async fn foreground(context: Context, insecure_plain: bool) -> anyhow::Result<Exit> {
    let address = context.config.sections.server.listen;
    if !address.ip().is_loopback() && !insecure_plain {
        let why = "others could read the token and everything else on the way, as there is no TLS here";
        let how = "put a proxy with TLS in front of a loopback address, or say --insecure-plain";
        context.output.note(&format!("gander: refusing to listen on {address}: {why}\n{how}"));
        return Ok(Exit::Usage);
    }
    match Server::start(context.config.clone(), Start::Foreground(address)).await {
        Ok(server) => {
            announce(&context, &server.listens())?;
            Ok(after(server.run().await?))
        }
        Err(ServerError::Taken(_)) => join(context, address).await,
        Err(error) => Err(error.into()),
    }
}

/// For clients: away from any terminal, on the Unix socket alone.
pub(super) async fn background(context: Context) -> anyhow::Result<Exit> {
    // Fails only if this process leads a group already, which is as good.
    if let Err(error) = rustix::process::setsid() {
        tracing::debug!(%error, "no session of its own");
    }
    let started = Instant::now();
    loop {
        match Server::start(context.config.clone(), Start::Background).await {
            Ok(server) => {
                tracing::info!(version = crate::VERSION, pid = std::process::id(), "background server started");
                return Ok(after(server.run().await?));
            }
            Err(ServerError::Taken(_)) if started.elapsed() < TAKE_OVER => {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// A server runs already: it listens for us, as long as we stay.
async fn join(context: Context, address: SocketAddr) -> anyhow::Result<Exit> {
    let hello = Hello::new(Want::Listen(address));
    let Some(Attached { mut reader, writer, welcome }) = connect(&context.config.paths, &hello).await? else {
        return Err(ServerError::Taken(context.config.paths.data().to_owned()).into());
    };
    announce(&context, &welcome.listens)?;
    let pid = welcome.pid;
    context
        .output
        .note(&format!("  joined the server that runs already (process {pid}); ctrl-c closes this address only"));
    let mut byte = [0u8; 1];
    let exit = tokio::select! {
        _ = tokio::signal::ctrl_c() => Exit::Done,
        _ = reader.read(&mut byte) => {
            context.output.note("gander: the server ended");
            Exit::Failed
        }
    };
    drop(writer);
    Ok(exit)
}

fn announce(context: &Context, listens: &[SocketAddr]) -> anyhow::Result<()> {
    let Context { config, output } = context;
    let style = output.style();
    for address in listens {
        let url = style.paint(Tone::Bold, &format!("http://{address}"));
        output.line(&format!("gander {} listening on {url}", crate::VERSION))?;
    }
    let row =
        |name: &str, value: String| output.note(&format!("  {}{value}", style.paint(Tone::Dim, &format!("{name:<8}"))));
    row("data", config.paths.data().display().to_string());
    row("token", "printed by: gander token".to_owned());
    if listens.iter().any(|address| !address.ip().is_loopback()) {
        output.note(&format!(
            "  {}",
            style.paint(Tone::Warn, "not encrypted: whoever can read the network reads the token")
        ));
    }
    Ok(())
}

fn after(end: End) -> Exit {
    match end {
        End::Asked | End::Idle => Exit::Done,
        End::AtOnce => Exit::Failed,
    }
}
