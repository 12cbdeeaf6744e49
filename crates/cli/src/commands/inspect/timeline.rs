//! Entries of a log as lines, and below each what every protocol says of it.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::output::{Style, Tone, clean_output_text};
use crate::terminal::wrap::truncate_to_wrap_columns;

/// The protocols, as the server names them.
pub(super) const PROTOCOLS: [&str; 5] = ["acp", "acp_rest", "a2a", "adk", "goose"];

/// How deep a message is searched for something to show of it.
const MAX_DEPTH: usize = 8;

/// What is shown of the entries.
#[derive(Clone, Debug)]
pub(super) struct TimelineOptions {
    /// Only these protocols.
    pub(super) protocols: Vec<String>,
    /// Whole messages instead of a line for each.
    pub(super) full: bool,
    /// Every piece of a text by itself.
    pub(super) deltas: bool,
    pub(super) style: Style,
    pub(super) columns: usize,
}

/// Makes lines of entries. Pieces of one text that follow each other are one line.
#[derive(Debug)]
pub(super) struct Timeline {
    options: TimelineOptions,
    /// When the first entry was written, and the last one.
    first: Option<i64>,
    last: i64,
    /// Pieces of a text that wait for what comes next.
    pieces: Vec<Value>,
    /// Commits that are not shown yet, by the last entry of each.
    commits: BTreeMap<u64, Commit>,
}

/// Entries that were stored together.
#[derive(Clone, Copy, Debug)]
struct Commit {
    first: u64,
    synced: bool,
    micros: u64,
}

impl Timeline {
    pub(super) fn new(options: TimelineOptions) -> Self {
        Self { options, first: None, last: 0, pieces: Vec::new(), commits: BTreeMap::new() }
    }

    /// Remembers how the entries that follow were stored.
    pub(super) fn note_commits(&mut self, commits: &Value) {
        for commit in commits.as_array().into_iter().flatten() {
            let number = |name: &str| commit[name].as_u64().unwrap_or_default();
            let known = Commit { first: number("first"), synced: commit["synced"] == true, micros: number("micros") };
            self.commits.insert(number("last"), known);
        }
    }

    /// Lines of the next entry.
    pub(super) fn push(&mut self, inspected: Value) -> Vec<String> {
        let is_piece = inspected["entry"]["event"]["kind"] == "part_delta" && !self.options.deltas;
        let mut lines = Vec::new();
        if !is_piece || self.pieces.first().is_some_and(|first| !is_same_timeline_part(first, &inspected)) {
            lines.extend(self.flush());
        }
        match is_piece {
            true => self.pieces.push(inspected),
            false => lines.extend(self.entry_lines(&[inspected])),
        }
        lines
    }

    /// Lines of the pieces that wait: nothing follows for now.
    pub(super) fn flush(&mut self) -> Vec<String> {
        let pieces = std::mem::take(&mut self.pieces);
        if pieces.is_empty() { Vec::new() } else { self.entry_lines(&pieces) }
    }

    /// One entry, or several pieces of a text as one.
    fn entry_lines(&mut self, entries: &[Value]) -> Vec<String> {
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else { return Vec::new() };
        let at = first["entry"]["at"].as_i64().unwrap_or_default();
        let start = *self.first.get_or_insert(at);
        let since = at - if self.last == 0 { at } else { self.last };
        self.last = last["entry"]["at"].as_i64().unwrap_or(at);
        let event = &first["entry"]["event"];
        let kind = event["kind"].as_str().unwrap_or("?");
        let seq = match entries.len() {
            1 => first["entry"]["seq"].to_string(),
            _ => format!("{}–{}", first["entry"]["seq"], last["entry"]["seq"]),
        };
        let text = match entries.len() {
            1 => timeline_entry_text(event),
            _ => entries.iter().filter_map(|entry| entry["entry"]["event"]["text"].as_str()).collect(),
        };
        let head = format!(
            "{seq:>7} {:>9} {:>8}  {kind:<18} {}",
            timeline_seconds(at - start),
            format!("+{}", timeline_seconds(since)),
            timeline_line(&text)
        );
        let mut lines = vec![
            self.options.style.paint(Tone::Bold, truncate_to_wrap_columns(&head, self.options.columns).trim_end()),
        ];
        for protocol in PROTOCOLS.iter().filter(|name| self.options.protocols.iter().any(|wanted| wanted == *name)) {
            lines.extend(self.protocol_lines(protocol, entries));
        }
        lines.extend(self.commit_line(last["entry"]["seq"].as_u64().unwrap_or_default()));
        lines
    }

    /// How the entries up to this one were stored, as far as the server remembers.
    fn commit_line(&mut self, upto: u64) -> Option<String> {
        let later = self.commits.split_off(&(upto + 1));
        let done = std::mem::replace(&mut self.commits, later);
        let slowest = done.values().map(|commit| commit.micros).max()?;
        let synced = done.values().filter(|commit| commit.synced).count();
        let (end, commit) = done.last_key_value()?;
        let text = match done.len() {
            1 => {
                let how = if commit.synced { "synced" } else { "committed" };
                let with = if commit.first < *end { format!("{}–{end} ", commit.first) } else { String::new() };
                format!("{with}{how} in {}", timeline_millis(slowest))
            }
            several => format!("×{several}, {synced} synced, slowest {}", timeline_millis(slowest)),
        };
        Some(
            self.options
                .style
                .paint(Tone::Dim, &truncate_to_wrap_columns(&format!("{:>27} {text}", "commit"), self.options.columns)),
        )
    }

    fn protocol_lines(&self, protocol: &str, entries: &[Value]) -> Vec<String> {
        let told = entries.iter().flat_map(|entry| entry["projections"][protocol].as_array().into_iter().flatten());
        let told: Vec<&Value> = told.collect();
        let Some(first) = told.first() else { return Vec::new() };
        let paint = |text: &str| self.options.style.paint(Tone::Dim, text);
        if self.options.full {
            return told
                .iter()
                .map(|message| format!("{:>27} {}", protocol, clean_output_text(&message.to_string())))
                .collect();
        }
        if entries.len() > 1 {
            let line = format!("{protocol:>27} {} ×{}", timeline_message_name(first), told.len());
            return vec![paint(&truncate_to_wrap_columns(&line, self.options.columns))];
        }
        let line = |message: &&Value| {
            let text =
                timeline_message_text(message, 0).map(|text| format!(" {}", timeline_line(&text))).unwrap_or_default();
            paint(&truncate_to_wrap_columns(
                &format!("{protocol:>27} {}{text}", timeline_message_name(message)),
                self.options.columns,
            ))
        };
        told.iter().map(line).collect()
    }
}

fn is_same_timeline_part(one: &Value, other: &Value) -> bool {
    ["message", "part", "growth"].iter().all(|name| one["entry"]["event"][name] == other["entry"]["event"][name])
}

/// What an entry is about.
fn timeline_entry_text(event: &Value) -> String {
    let inner = ["call", "message", "question", "outcome", "notice", "plan", "usage", "patch", "result"];
    let own = ["text", "title", "name"].iter().find_map(|name| event[name].as_str().map(str::to_owned));
    own.or_else(|| inner.iter().find_map(|name| timeline_message_text(&event[name], 0))).unwrap_or_default()
}

/// What a protocol calls a message: its update, its method, its type.
fn timeline_message_name(message: &Value) -> String {
    let named = message["params"]["update"]["sessionUpdate"].as_str().or(message["method"].as_str());
    let named = named.or(message["type"].as_str()).or(message["kind"].as_str()).or(message["event"].as_str());
    let only_key = message.as_object().filter(|fields| fields.len() == 1).and_then(|fields| fields.keys().next());
    clean_output_text(named.or(only_key.map(String::as_str)).unwrap_or("event"))
}

/// The first text in a message that says something to people.
fn timeline_message_text(message: &Value, depth: usize) -> Option<String> {
    if depth > MAX_DEPTH {
        return None;
    }
    match message {
        Value::Object(fields) => {
            let named = ["text", "title", "message", "status", "state", "stop", "name", "content"];
            let own = named.iter().find_map(|name| fields.get(*name)?.as_str().filter(|text| !text.is_empty()));
            let ids = |name: &str| name.ends_with("id") || name.ends_with("Id") || name == "_meta" || name == "jsonrpc";
            own.map(str::to_owned).or_else(|| {
                let nested =
                    fields.iter().filter(|(name, value)| !ids(name) && (value.is_object() || value.is_array()));
                nested.into_iter().find_map(|(_, value)| timeline_message_text(value, depth + 1))
            })
        }
        Value::Array(items) => items.iter().find_map(|item| timeline_message_text(item, depth + 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn timeline_line(text: &str) -> String {
    clean_output_text(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn timeline_millis(micros: u64) -> String {
    format!("{}.{} ms", micros / 1000, micros % 1000 / 100)
}

/// Microseconds as seconds, short.
fn timeline_seconds(micros: i64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
    let seconds = micros as f64 / 1e6;
    if seconds < 100.0 { format!("{seconds:.3}s") } else { format!("{seconds:.0}s") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn options() -> TimelineOptions {
        let protocols = PROTOCOLS.iter().map(|name| (*name).to_owned()).collect();
        TimelineOptions { protocols, full: false, deltas: false, style: Style::Plain, columns: 100 }
    }

    fn delta(seq: u64, text: &str) -> Value {
        let update = json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } });
        json!({
            "entry": { "seq": seq, "at": 1_000_000 + seq * 10_000, "event": { "kind": "part_delta", "message": "m", "part": 0, "growth": "text", "text": text } },
            "projections": { "acp": [{ "jsonrpc": "2.0", "method": "session/update", "params": { "update": update } }], "a2a": [] },
        })
    }

    fn done(seq: u64) -> Value {
        let run = json!({ "type": "run.completed", "run": { "run_id": "r", "status": "completed" } });
        json!({
            "entry": { "seq": seq, "at": 2_000_000, "event": { "kind": "run_ended", "outcome": { "type": "completed", "stop": "end_turn" } } },
            "projections": { "acp": [], "acp_rest": [run], "adk": [{ "author": "a", "partial": false }] },
        })
    }

    #[test]
    fn pieces_of_a_text_are_one_line() {
        let mut timeline = Timeline::new(options());
        assert!(timeline.push(delta(1, "one ")).is_empty() && timeline.push(delta(2, "two")).is_empty());
        let lines = timeline.push(done(3));
        let expected = [
            "    1–2    0.000s  +0.000s  part_delta         one two",
            "                        acp agent_message_chunk ×2",
            "      3    0.990s  +0.980s  run_ended          end_turn",
            "                   acp_rest run.completed completed",
            "                        adk event",
        ];
        assert_eq!(lines, expected);
        assert!(timeline.flush().is_empty());
    }

    #[test]
    fn a_commit_stands_below_its_last_entry() {
        let mut timeline = Timeline::new(TimelineOptions { protocols: Vec::new(), ..options() });
        timeline.note_commits(&json!([
            { "first": 1, "last": 1, "synced": false, "micros": 250 },
            { "first": 2, "last": 2, "synced": false, "micros": 1250 },
            { "first": 3, "last": 4, "synced": true, "micros": 820 },
        ]));
        assert!(timeline.push(delta(1, "a")).is_empty() && timeline.push(delta(2, "b")).is_empty());
        let commit =
            |lines: Vec<String>| lines.into_iter().filter(|line| line.contains(" commit ")).collect::<Vec<_>>();
        let several = "                     commit ×2, 0 synced, slowest 1.2 ms";
        assert_eq!(commit(timeline.push(done(3))), [several]);
        assert_eq!(commit(timeline.push(done(4))), ["                     commit 3–4 synced in 0.8 ms"]);
    }

    #[test]
    fn each_piece_and_each_message_can_be_shown() {
        let mut timeline = Timeline::new(TimelineOptions { deltas: true, protocols: vec!["acp".into()], ..options() });
        assert_eq!(
            timeline.push(delta(1, "a\nb")),
            [
                "      1    0.000s  +0.000s  part_delta         a b",
                "                        acp agent_message_chunk a b"
            ]
        );
        let mut full = Timeline::new(TimelineOptions { full: true, protocols: vec!["acp_rest".into()], ..options() });
        assert!(
            full.push(done(1))[1]
                .ends_with(r#"acp_rest {"type":"run.completed","run":{"run_id":"r","status":"completed"}}"#)
        );
    }
}
