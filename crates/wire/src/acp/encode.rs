//! Updates as bytes: text straight into the buffer, everything else through the schema types.

use std::io::Write;

use gander_domain::{MessageId, SessionCatalog, SessionId, Settings};
use serde::Serialize;

use super::config_options::{config_options, current_mode};
use super::output::{Chunk, Update, Voice};
use super::schema::{ConfigOptionUpdate, CurrentModeUpdate, SessionUpdate};
use crate::jsonrpc::{Outbox, json};

/// No line of text is longer than this: readers with a fixed 64 KiB line buffer are common.
const MAX_LINE: usize = 60 * 1024;
/// What of a line is not text.
const ENVELOPE: usize = 512;
/// The longest escape of one byte of text.
const WORST_ESCAPE: usize = 6;

/// What every update of a session begins with.
#[derive(Debug)]
pub(super) struct Prefix(Vec<u8>);

impl Prefix {
    pub(super) fn new(session: SessionId) -> Self {
        let text = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":""#;
        Self(format!(r#"{text}{session}","update":"#).into_bytes())
    }
}

/// Appends one update: one message, or more if its text is long.
pub(super) fn update(out: &mut Outbox, prefix: &Prefix, catalog: &SessionCatalog, update: &Update<'_>) {
    match update {
        Update::Text(chunk) => text(out, prefix, chunk),
        Update::Settings { settings, mode_changed } => {
            if *mode_changed {
                let mode = CurrentModeUpdate::new(current_mode(catalog, settings));
                other(out, prefix, &SessionUpdate::CurrentModeUpdate(mode));
            }
            other(out, prefix, &options(catalog, settings));
        }
        Update::Notice(notice) => other(out, prefix, &SessionUpdate::Notice((**notice).clone())),
        Update::Compaction(compaction) => other(out, prefix, &SessionUpdate::CompactionUpdate((**compaction).clone())),
        Update::Draft(update) => other(out, prefix, update),
        Update::Other(update) => other(out, prefix, update),
    }
}

fn options(catalog: &SessionCatalog, settings: &Settings) -> SessionUpdate {
    SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(config_options(catalog, settings)))
}

fn other<T: Serialize + ?Sized>(out: &mut Outbox, prefix: &Prefix, update: &T) {
    out.message(|bytes| {
        bytes.extend_from_slice(&prefix.0);
        json(bytes, update);
        bytes.extend_from_slice(b"}}");
    });
}

fn text(out: &mut Outbox, prefix: &Prefix, chunk: &Chunk<'_>) {
    let mut rest: &str = &chunk.text;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(fitting(rest));
        out.message(|bytes| line(bytes, prefix, chunk.voice, chunk.message, piece));
        rest = after;
    }
}

fn line(bytes: &mut Vec<u8>, prefix: &Prefix, voice: Voice, message: MessageId, text: &str) {
    let kind: &[u8] = match voice {
        Voice::User => br#"{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"#,
        Voice::Agent => br#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"#,
        Voice::Thought => br#"{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"#,
    };
    bytes.extend_from_slice(&prefix.0);
    bytes.extend_from_slice(kind);
    json(bytes, text);
    write!(bytes, r#"}},"messageId":"{message}"}}}}}}"#).expect("writing to memory cannot fail");
}

/// How many bytes of the text fit into one line, cut between characters.
fn fitting(text: &str) -> usize {
    const ROOM: usize = MAX_LINE - ENVELOPE;
    if text.len() <= ROOM / WORST_ESCAPE {
        return text.len();
    }
    let mut used = 0;
    text.char_indices()
        .find(|(_, char)| {
            used += escaped(*char);
            used > ROOM
        })
        .map_or(text.len(), |(at, _)| at)
}

fn escaped(char: char) -> usize {
    match char {
        '"' | '\\' | '\n' | '\r' | '\t' => 2,
        '\0'..='\x1f' => WORST_ESCAPE,
        _ => char.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::borrow::Cow;

    #[test]
    fn long_text_leaves_in_lines_that_fit_and_loses_nothing() {
        for text in ["\u{1}\"ä😀x".repeat(20_000), "y".repeat(200_000), "\u{2}".repeat(10_200)] {
            let id = "018f0000-0000-7000-8000-000000000001".parse().unwrap();
            let chunk = Chunk { voice: Voice::Agent, message: MessageId::new(id), part: 0, text: Cow::Borrowed(&text) };
            let mut out = Outbox::default();
            update(&mut out, &Prefix::new(SessionId::new(id)), &SessionCatalog::default(), &Update::Text(chunk));
            let mut joined = String::new();
            for (_, line) in out.messages() {
                assert!(line.len() <= MAX_LINE, "{}", line.len());
                let line: serde_json::Value = serde_json::from_slice(line).unwrap();
                joined.push_str(line["params"]["update"]["content"]["text"].as_str().unwrap());
            }
            assert_eq!(joined, text);
        }
    }
}
