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
use super::session_id::resolve_session_id;
use super::shell_completion;
use crate::commands::{Context, Exit};
use crate::output::{Output, Tone, clean_output_text};

/// How many entries are read at a time.
const PAGE: u64 = 200;

/// Nobody watches a log to see nothing happen: a pause of a replay is not longer than this.
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// Options of `gander inspect`.
#[derive(Debug, Args)]
pub(super) struct InspectOptions {
    /// Session ID, or its beginning
    #[arg(add = shell_completion::complete_sessions())]
    session: String,
    /// Keep printing new entries, until ctrl-c
    #[arg(long, short)]
    follow: bool,
    /// Replay the log with its pauses, this many times as fast: 0.5x, 2x, 100x
    #[arg(long, value_name = "SPEED", value_parser = read_inspect_speed, conflicts_with = "follow")]
    replay: Option<f64>,
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

/// `2x`, `2`, `0.5x`.
fn read_inspect_speed(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix(['x', '×']).unwrap_or(text).parse::<f64>().ok();
    number
        .filter(|speed| (0.01..=10_000.0).contains(speed))
        .ok_or_else(|| "a speed is between 0.01x and 10000x".to_owned())
}

pub(super) async fn run(context: Context, options: InspectOptions) -> anyhow::Result<Exit> {
    let here = std::env::current_dir()?;
    let mut connection = client::connect_client(&context.config, &here).await?;
    let session = resolve_session_id(&mut connection, &options.session).await?;
    let mut shown = InspectPrinter::new(context.output, &options);
    // One listener for the whole time: a signal between two entries is not lost.
    let mut interrupts = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = interrupts.recv() => {
            shown.output.note("");
            Ok(Exit::Done)
        }
        printed = shown.print_log(&mut connection, &session, &options) => printed.map(|()| Exit::Done),
    }
}

/// Prints a log as it is read.
struct InspectPrinter {
    output: Output,
    timeline: Timeline,
    /// How fast it is replayed.
    speed: Option<f64>,
    json: bool,
    /// When the last entry was written.
    last: Option<i64>,
}

impl InspectPrinter {
    fn new(output: Output, options: &InspectOptions) -> Self {
        let columns = if output.style().is_terminal() { output.columns() } else { usize::MAX };
        let all = || PROTOCOLS.iter().map(|name| (*name).to_owned()).collect();
        let protocols = if options.protocol.is_empty() { all() } else { options.protocol.clone() };
        let (full, deltas, style) = (options.full, options.deltas, output.style());
        let timeline = Timeline::new(TimelineOptions { protocols, full, deltas, style, columns });
        Self { output, timeline, speed: options.replay, json: options.json, last: None }
    }

    async fn print_log(
        &mut self,
        connection: &mut AgentConnection,
        session: &str,
        options: &InspectOptions,
    ) -> anyhow::Result<()> {
        let (mut after, mut first) = (options.after, true);
        loop {
            let page = read_inspect_page(connection, session, after).await?;
            if std::mem::take(&mut first) && !self.json {
                self.print_head(session, &page);
            }
            let head = page["head"].as_u64().unwrap_or_default();
            self.timeline.note_commits(&page["commits"]);
            for entry in page["entries"].as_array().cloned().unwrap_or_default() {
                after = entry["entry"]["seq"].as_u64().unwrap_or(after);
                self.print_entry(entry).await?;
            }
            if after < head {
                continue;
            }
            self.timeline.flush().iter().try_for_each(|line| self.output.line(line))?;
            if !options.follow {
                return Ok(());
            }
            wait_for_more_to_inspect(connection, session, after).await?;
        }
    }

    fn print_head(&self, session: &str, page: &Value) {
        let names: Vec<&str> = page["clientNames"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let who =
            if names.is_empty() { "nobody attached".to_owned() } else { format!("attached: {}", names.join(", ")) };
        let about = format!("session {session} · {} entries · {}", page["head"], clean_output_text(&who));
        self.output.note(&self.output.error_style().paint(Tone::Dim, &about));
    }

    async fn print_entry(&mut self, entry: Value) -> anyhow::Result<()> {
        let at = entry["entry"]["at"].as_i64().unwrap_or_default();
        if let (Some(speed), Some(last)) = (self.speed, self.last.replace(at)) {
            tokio::time::sleep(inspect_pause(at - last, speed)).await;
        }
        match self.json {
            true => self.output.line(&entry.to_string())?,
            false => self.timeline.push(entry).iter().try_for_each(|line| self.output.line(line))?,
        }
        Ok(())
    }
}

/// How long a replay waits between two entries that are so many microseconds apart.
fn inspect_pause(micros: i64, speed: f64) -> Duration {
    let whole = Duration::from_micros(u64::try_from(micros).unwrap_or_default());
    Duration::try_from_secs_f64(whole.as_secs_f64() / speed).map_or(MAX_PAUSE, |pause| pause.min(MAX_PAUSE))
}

async fn read_inspect_page(connection: &mut AgentConnection, session: &str, after: u64) -> anyhow::Result<Value> {
    let params = json!({ "sessionId": session, "after": after, "limit": PAGE });
    Ok(connection.call_method("_gander/session/inspect", &params).await?)
}

/// Until the log goes on after this entry: the server answers as soon as it does, and now and then in between.
async fn wait_for_more_to_inspect(connection: &mut AgentConnection, session: &str, after: u64) -> anyhow::Result<()> {
    let params = json!({ "sessionId": session, "after": after });
    while connection.call_method("_gander/session/watch", &params).await?["head"].as_u64() <= Some(after) {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replay_waits_as_long_as_it_took_and_never_long() {
        assert_eq!(read_inspect_speed("2x"), Ok(2.0));
        assert_eq!(read_inspect_speed("0.5"), Ok(0.5));
        assert!(["0x", "fast", "-1x", "NaN"].iter().all(|text| read_inspect_speed(text).is_err()));
        assert_eq!(inspect_pause(500_000, 2.0), Duration::from_millis(250));
        assert_eq!(inspect_pause(500_000, 0.5), Duration::from_secs(1));
        assert_eq!(inspect_pause(3_600_000_000, 1.0), MAX_PAUSE);
        assert_eq!(inspect_pause(-1, 1.0), Duration::ZERO);
    }
}
