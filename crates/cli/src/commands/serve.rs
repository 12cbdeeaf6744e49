//! `gander serve`: the server of a data directory, for a person or for a client that needs one.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use gander::config::Origin;
use gander::daemon::{
    Attached, End, Hello, Server, ServerError, Signals, Start, Want, connect_to_attach, listen_security,
};
use gander_services::token::TokenId;
use tokio::io::AsyncReadExt;

use crate::commands::{Context, Exit};
use crate::output::Tone;

/// How long a server that is about to end, or to begin, is waited for.
const TAKE_OVER: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(10);

/// For a person: in the foreground, on TCP too.
pub(super) async fn serve_foreground(context: Context) -> anyhow::Result<Exit> {
    let mut address = context.config.sections.server.listen;
    let security = listen_security(&context.config);
    let (mut signals, mut started) = (Signals::listen()?, Instant::now());
    while started.elapsed() < TAKE_OVER {
        match Server::start(context.config.clone(), Start::Foreground(address)).await {
            Ok(server) => {
                announce_serving(&context, &server.listens(), server.fingerprint())?;
                return Ok(exit_after_serving(server.run(signals).await));
            }
            Err(ServerError::Taken(_)) => {}
            Err(error) => return serve_refused(&context, error),
        }
        // Before anything is opened: a flag that would not count is a reason to leave the running server as it is.
        if let Some(ignored) = ignored_serve_flags(&context)
            && let Some(running) = connect_to_attach(&context.config.paths, &Hello::new(Want::Acp)).await?
        {
            context.output.note(&format!(
                "gander: a server is already running (process {}) and keeps its settings; {ignored} would be ignored. To start one \
                 with them: gander server stop && gander serve …",
                running.welcome.pid
            ));
            return Ok(Exit::Usage);
        }
        let key = context.config.secret.as_ref().map(TokenId::of_secret);
        let hello = Hello::new(Want::ListenWith { address, security, key });
        if let Some(joined) = connect_to_attach(&context.config.paths, &hello).await? {
            address = joined.welcome.listens.first().copied().unwrap_or(address);
            match serve_beside_running(&context, joined, &mut signals).await? {
                Stayed::Over(exit) => return Ok(exit),
                Stayed::ServerGone => started = Instant::now(),
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
    Err(ServerError::Taken(context.config.paths.data_directory().to_owned()).into())
}

/// For clients: away from any terminal, on the Unix socket alone.
pub(super) async fn serve_background(context: Context) -> anyhow::Result<Exit> {
    // Fails only if this process leads a group already, which is as good.
    if let Err(error) = rustix::process::setsid() {
        tracing::debug!(%error, "no session of its own");
    }
    let (signals, started) = (Signals::listen()?, Instant::now());
    loop {
        match Server::start(context.config.clone(), Start::Background).await {
            Ok(server) => {
                tracing::info!(version = gander::VERSION, pid = std::process::id(), "background server started");
                return Ok(exit_after_serving(server.run(signals).await));
            }
            Err(ServerError::Taken(_)) if started.elapsed() < TAKE_OVER => tokio::time::sleep(PAUSE).await,
            Err(error) => return Err(error.into()),
        }
    }
}

/// How it ended to have another server listen for us.
enum Stayed {
    /// For good.
    Over(Exit),
    /// The other server went with whoever started it: this process takes its place, at the same address.
    ServerGone,
}

/// A server ran already: it listens for us, as long as we stay.
async fn serve_beside_running(context: &Context, joined: Attached, signals: &mut Signals) -> anyhow::Result<Stayed> {
    let Attached { mut reader, writer: _open, welcome } = joined;
    let output = context.output;
    output.note(&format!(
        "added this address to the running server (process {}); ctrl-c closes this address only",
        welcome.pid
    ));
    if context.config.tls && welcome.fingerprint.is_none() {
        anyhow::bail!("the running server was built without TLS: gander server stop && gander serve …");
    }
    announce_serving(context, &welcome.listens, welcome.fingerprint.as_deref())?;
    let mut byte = [0u8; 1];
    tokio::select! {
        () = signals.next() => {
            // The terminal shows ^C: what comes next begins on a line of its own.
            if output.error_style().is_terminal() {
                output.note("");
            }
            Ok(Stayed::Over(Exit::Done))
        }
        read = reader.read(&mut byte) => match read {
            // It was asked to end, and says so.
            Ok(1..) => {
                output.note("gander: the server was stopped");
                Ok(Stayed::Over(Exit::Failed))
            }
            Ok(0) | Err(_) => {
                output.note("gander: the server ended, this process takes its place");
                Ok(Stayed::ServerGone)
            }
        },
    }
}

/// An address that must not be served like this is a matter of the command line.
pub(super) fn serve_refused(context: &Context, error: ServerError) -> anyhow::Result<Exit> {
    if !matches!(error, ServerError::Plain(_)) {
        return Err(error.into());
    }
    context.output.note(&format!("gander: {error}"));
    Ok(Exit::Usage)
}

/// The flags that only count when a server is started.
fn ignored_serve_flags(context: &Context) -> Option<String> {
    let flags: BTreeSet<&str> = context.config.origins.values().filter_map(serve_start_flag).collect();
    (!flags.is_empty()).then(|| flags.into_iter().collect::<Vec<_>>().join(" "))
}

fn serve_start_flag(origin: &Origin) -> Option<&'static str> {
    match origin {
        Origin::Flag(flag) if !["--listen", "--data", "--config"].contains(flag) => Some(flag),
        Origin::Flag(_) | Origin::Default | Origin::File { .. } | Origin::Variable(_) => None,
    }
}

/// The line that says where is the last one: whoever waits for it finds everything ready.
fn announce_serving(context: &Context, listens: &[SocketAddr], fingerprint: Option<&str>) -> anyhow::Result<()> {
    let Context { config, output } = context;
    let (out, err) = (output.style(), output.error_style());
    let row =
        |name: &str, value: &str| output.note(&format!("  {}{value}", err.paint(Tone::Dim, &format!("{name:<8}"))));
    row("data", &config.paths.data_directory().display().to_string());
    if let Some(url) = &config.sections.store.url {
        row("store", &url.to_string());
    }
    row("token", "printed by: gander token");
    if fingerprint.is_none() && listens.iter().any(|address| !address.ip().is_loopback()) {
        row("warning", &err.paint(Tone::Warn, "not encrypted: anyone on the network can read the token"));
    }
    if !config.sections.server.open.is_empty() {
        let doors: Vec<String> = config.sections.server.open.iter().map(ToString::to_string).collect();
        let may = if config.sections.server.open_approve { "prompt and approve" } else { "prompt" };
        let open = format!("every program on this machine may {may}, without a token, at: {}", doors.join(", "));
        row("warning", &err.paint(Tone::Warn, &open));
    }
    if let Some(fingerprint) = fingerprint {
        output.line(&format!("GOOSED_CERT_FINGERPRINT={fingerprint}"))?;
    }
    for address in listens {
        let scheme = if fingerprint.is_some() { "https" } else { "http" };
        let url = out.paint(Tone::Bold, &format!("{scheme}://{address}"));
        output.line(&format!("gander {} listening on {url}", gander::VERSION))?;
    }
    Ok(())
}

pub(super) fn exit_after_serving(end: End) -> Exit {
    match end {
        End::Asked | End::Idle => Exit::Done,
        End::AtOnce => Exit::Failed,
    }
}
