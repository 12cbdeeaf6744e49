//! `gander server`: the server of the data directory, seen and ended from outside.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use clap::Subcommand;
use gander::daemon::{Attached, Hello, Want, attach_to_server, connect_to_attach, stop_attached_server};
use gander_client::Link;
use serde_json::{Value, json};

use super::client;
use crate::commands::{Context, Exit};
use crate::output::clean_output_text;

/// How often a log is looked at for more.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(200);

#[derive(Debug, Subcommand)]
pub(super) enum ServerCommand {
    /// Show whether a server is running, where it listens and what it is doing (exit status 1 if none is running)
    Status {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Stop the server; unfinished turns resume when it starts again
    Stop,
    /// Restart the background server with the current settings
    Restart,
    /// Print the log of the background server
    Logs {
        /// Number of lines from the end
        #[arg(long, short = 'n', value_name = "LINES", default_value_t = 50)]
        lines: usize,
        /// Keep printing new lines, until ctrl-c
        #[arg(long, short)]
        follow: bool,
    },
}

pub(super) async fn run(context: Context, command: ServerCommand) -> anyhow::Result<Exit> {
    match command {
        ServerCommand::Status { json } => server_status(&context, json).await,
        ServerCommand::Stop => stop_server(&context).await,
        ServerCommand::Restart => restart_server(&context).await,
        ServerCommand::Logs { lines, follow } => server_logs(&context, lines, follow).await,
    }
}

/// What the running server says about itself. None if none runs.
pub(super) async fn describe_server(context: &Context) -> anyhow::Result<Option<Value>> {
    let Some(attached) = connect_to_attach(&context.config.paths, &Hello::new(Want::Acp)).await? else {
        return Ok(None);
    };
    let Attached { reader, writer, welcome } = attached;
    let mut connection = client::introduce_client(Link::from_line_streams(reader, writer)).await?;
    let known = json!({ "pid": welcome.pid, "version": welcome.version, "background": welcome.background });
    // A server of an older build does not know the question.
    Ok(Some(connection.call_method("_gander/server", &json!({})).await.unwrap_or(known)))
}

async fn server_status(context: &Context, json: bool) -> anyhow::Result<Exit> {
    let output = context.output;
    let Some(server) = describe_server(context).await? else {
        match json {
            true => output.line(&json!({ "running": false }).to_string())?,
            false => output.line("not running (commands that need it start it in the background)")?,
        }
        return Ok(Exit::Failed);
    };
    if json {
        let mut server = server;
        server["running"] = true.into();
        output.line(&server.to_string())?;
        return Ok(Exit::Done);
    }
    let kind = if server["background"] == true { "in the background" } else { "in the foreground" };
    output.line(&format!(
        "running     process {}, {kind}, version {}",
        server["pid"],
        server_text(&server["version"])
    ))?;
    if let Some(started) = server["startedAt"].as_u64() {
        output.line(&format!("started     {} ago", server_elapsed(started)))?;
    }
    let urls: Vec<&str> =
        server["listening"].as_array().into_iter().flatten().filter_map(|at| at["url"].as_str()).collect();
    let urls = if urls.is_empty() { "the Unix socket only".to_owned() } else { clean_output_text(&urls.join(", ")) };
    output.line(&format!("listening   {urls}"))?;
    output.line(&format!("sessions    {} running", server["runningSessions"].as_u64().unwrap_or_default()))?;
    output.line(&format!("clients     {} attached", server["clients"].as_u64().unwrap_or_default()))?;
    output.line(&format!("data        {}", context.config.paths.data_directory().display()))?;
    Ok(Exit::Done)
}

async fn stop_server(context: &Context) -> anyhow::Result<Exit> {
    let running = describe_server(context).await.ok().flatten().and_then(|server| server["runningSessions"].as_u64());
    match stop_attached_server(&context.config.paths).await? {
        None => context.output.line("no server was running")?,
        Some(pid) => context.output.line(&format!("stopped the server (process {pid})"))?,
    }
    if let Some(turns @ 1..) = running {
        let turns = if turns == 1 { "1 turn resumes".to_owned() } else { format!("{turns} turns resume") };
        context.output.note(&format!("{turns} when a server starts again: gander server restart"));
    }
    Ok(Exit::Done)
}

async fn restart_server(context: &Context) -> anyhow::Result<Exit> {
    let before = describe_server(context).await.ok().flatten();
    if let Some(server) = before.as_ref().filter(|server| server["background"] == false) {
        anyhow::bail!(
            "the server runs in the foreground (process {}): stop it with ctrl-c there or with `gander server stop`, then \
             start `gander serve` again",
            server["pid"]
        );
    }
    stop_attached_server(&context.config.paths).await?;
    let cwd = std::env::current_dir()?;
    let Attached { reader, writer, welcome } =
        attach_to_server(&context.config, &client::client_hello(&context.config, &cwd)).await?;
    let mut connection = client::introduce_client(Link::from_line_streams(reader, writer)).await?;
    for open in before.iter().flat_map(|server| server["listening"].as_array()).flatten() {
        let security = if open["fingerprint"].is_string() { "tls" } else { "plain" };
        let params = json!({ "listen": open["address"], "security": security });
        connection.call_method("_gander/listen", &params).await.context("cannot listen on the previous address")?;
    }
    context.output.line(&format!("restarted: process {}", welcome.pid))?;
    Ok(Exit::Done)
}

async fn server_logs(context: &Context, lines: usize, follow: bool) -> anyhow::Result<Exit> {
    let path = context.config.paths.server_log();
    if !path.exists() && !follow {
        context.output.note(&format!("no background server has run yet, there is no log: {}", path.display()));
        return Ok(Exit::Done);
    }
    let mut read = 0;
    if let Ok(server_text) = std::fs::read_to_string(&path) {
        read = server_text.len() as u64;
        let all: Vec<&str> = server_text.lines().collect();
        for line in &all[all.len().saturating_sub(lines)..] {
            context.output.line(&clean_output_text(line))?;
        }
    }
    if !follow {
        return Ok(Exit::Done);
    }
    loop {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => return Ok(Exit::Done),
            () = tokio::time::sleep(FOLLOW_INTERVAL) => {}
        }
        let (more, end) = read_server_log_from(&path, read);
        read = end;
        for line in more.lines() {
            context.output.line(&clean_output_text(line))?;
        }
    }
}

/// What was added behind this place, in whole lines, and where they end. A log that began anew is read from its start.
fn read_server_log_from(path: &Path, from: u64) -> (String, u64) {
    let Ok(mut file) = std::fs::File::open(path) else { return (String::new(), 0) };
    let from = if file.metadata().is_ok_and(|log| log.len() < from) { 0 } else { from };
    let mut bytes = Vec::new();
    if file.seek(SeekFrom::Start(from)).and_then(|_| file.read_to_end(&mut bytes)).is_err() {
        return (String::new(), from);
    }
    bytes.truncate(bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1));
    (String::from_utf8_lossy(&bytes).into_owned(), from + bytes.len() as u64)
}

fn server_text(value: &Value) -> String {
    clean_output_text(value.as_str().unwrap_or_default())
}

fn server_elapsed(since: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    match now.saturating_sub(since) {
        seconds @ ..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min", seconds / 60),
        seconds @ 3600..172_800 => format!("{} h", seconds / 3600),
        seconds => format!("{} days", seconds / 86_400),
    }
}
