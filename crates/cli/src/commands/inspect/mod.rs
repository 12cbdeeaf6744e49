//! `gander inspect`: a session's log as a timeline, and below each entry what every protocol says of it.

mod timeline;

use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;
use gander_client::AgentConnection;
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

use self::timeline::{PROTOCOLS, Timeline, TimelineOptions};
use super::client;
use super::session_id::resolve_session;
use super::shell_completion;
use crate::commands::{Context, Exit};
use crate::output::Tone;

/// How many entries are read at a time.
const PAGE: u64 = 200;

/// How often the log is looked at for more.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(200);

/// Options of `gander inspect`.
#[derive(Debug, Args)]
pub(super) struct InspectOptions {
    /// Session ID, or its beginning
    #[arg(add = shell_completion::sessions())]
    session: String,
    /// Keep printing new entries, until ctrl-c
    #[arg(long, short)]
    follow: bool,
    /// Only these protocols
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = PossibleValuesParser::new(PROTOCOLS))]
    protocol: Vec<String>,
    /// Start after the entry with this number
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    after: u64,
    /// Show each text delta separately
    #[arg(long)]
    deltas: bool,
    /// Show protocol messages in full
    #[arg(long)]
    full: bool,
    /// One JSON object per entry
    #[arg(long, conflicts_with_all = ["deltas", "full"])]
    json: bool,
}

pub(super) async fn run(context: Context, options: InspectOptions) -> anyhow::Result<Exit> {
    let here = std::env::current_dir()?;
    let mut connection = client::connect(&context.config, &here).await?;
    let session = resolve_session(&mut connection, &options.session).await?;
    let output = context.output;
    let columns = if output.style().is_terminal() { output.columns() } else { usize::MAX };
    let all = || PROTOCOLS.iter().map(|name| (*name).to_owned()).collect();
    let protocols = if options.protocol.is_empty() { all() } else { options.protocol.clone() };
    let (full, deltas, style) = (options.full, options.deltas, output.style());
    let mut timeline = Timeline::new(TimelineOptions { protocols, full, deltas, style, columns });
    let (mut after, mut first) = (options.after, true);
    // One listener for the whole time: a signal between two looks is not lost.
    let mut interrupts = signal(SignalKind::interrupt())?;
    loop {
        let page = read_page(&mut connection, &session, after).await?;
        if std::mem::take(&mut first) && !options.json {
            let clients = page["clients"].as_u64().unwrap_or_default();
            let about = format!("session {session} · {} entries · {clients} clients attached", page["head"]);
            output.note(&output.error_style().paint(Tone::Dim, &about));
        }
        let entries: Vec<Value> = page["entries"].as_array().cloned().unwrap_or_default();
        after = entries.last().and_then(|last| last["entry"]["seq"].as_u64()).unwrap_or(after);
        let at_end = after >= page["head"].as_u64().unwrap_or_default();
        for entry in entries {
            match options.json {
                true => output.line(&entry.to_string())?,
                false => timeline.push(entry).iter().try_for_each(|line| output.line(line))?,
            }
        }
        if !at_end {
            continue;
        }
        timeline.flush().iter().try_for_each(|line| output.line(line))?;
        if !options.follow {
            return Ok(Exit::Done);
        }
        tokio::select! {
            _ = interrupts.recv() => {
                output.note("");
                return Ok(Exit::Done);
            }
            () = tokio::time::sleep(FOLLOW_INTERVAL) => {}
        }
    }
}

async fn read_page(connection: &mut AgentConnection, session: &str, after: u64) -> anyhow::Result<Value> {
    let params = json!({ "sessionId": session, "after": after, "limit": PAGE });
    Ok(connection.call_method("_gander/session/inspect", &params).await?)
}
