//! Updates as bytes: text straight into the buffer, everything else through the schema types.

use std::io::Write;

use gander_domain::{MessageId, SessionCatalog, SessionId, Settings};
use serde::Serialize;

use super::config_options::{config_options, current_mode_option};
use super::projection::{ChunkSpeaker, RawUpdate, SessionUpdateOut, TextChunk};
use super::schema::{ConfigOptionUpdate, CurrentModeUpdate, SessionUpdate};
use crate::jsonrpc::{Outbox, write_json_to_outbox};

/// No line of text is longer than this: readers with a fixed 64 KiB line buffer are common.
const MAX_LINE: usize = 60 * 1024;
/// What of a line is not text.
const MAX_ENVELOPE: usize = 512;
/// The longest escape of one byte of text.
const WORST_ESCAPE: usize = 6;

/// What every update of a session begins with.
#[derive(Debug)]
pub(super) struct UpdatePrefix(Vec<u8>);

impl UpdatePrefix {
    pub(super) fn new(session: SessionId) -> Self {
        let text = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":""#;
        Self(format!(r#"{text}{session}","update":"#).into_bytes())
    }
}

/// Appends one update: one message, or more if its text is long.
pub(super) fn write_session_update(
    out: &mut Outbox,
    prefix: &UpdatePrefix,
    catalog: &SessionCatalog,
    update: &SessionUpdateOut<'_>,
) {
    match update {
        SessionUpdateOut::Text(chunk) => write_update_text(out, prefix, chunk),
        SessionUpdateOut::Settings { settings, mode_changed } => {
            if *mode_changed {
                let mode = CurrentModeUpdate::new(current_mode_option(catalog, settings));
                write_update_as_json(out, prefix, &SessionUpdate::CurrentModeUpdate(mode));
            }
            write_update_as_json(out, prefix, &write_update_config_options(catalog, settings));
        }
        SessionUpdateOut::Notice(notice) => {
            write_update_as_json(out, prefix, &SessionUpdate::Notice((**notice).clone()))
        }
        SessionUpdateOut::Compaction(compaction) => {
            write_update_as_json(out, prefix, &SessionUpdate::CompactionUpdate((**compaction).clone()))
        }
        SessionUpdateOut::Raw(raw) => write_raw_update(out, prefix, raw),
        SessionUpdateOut::Other(update) => write_update_as_json(out, prefix, update),
    }
}

fn write_update_config_options(catalog: &SessionCatalog, settings: &Settings) -> SessionUpdate {
    SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(config_options(catalog, settings)))
}

fn write_update_as_json<T: Serialize + ?Sized>(out: &mut Outbox, prefix: &UpdatePrefix, update: &T) {
    out.push_message(|bytes| {
        bytes.extend_from_slice(&prefix.0);
        write_json_to_outbox(bytes, update);
        bytes.extend_from_slice(b"}}");
    });
}

fn write_raw_update(out: &mut Outbox, prefix: &UpdatePrefix, raw: &RawUpdate) {
    out.push_message(|bytes| {
        bytes.extend_from_slice(&prefix.0);
        write_json_to_outbox(bytes, &raw.update);
        if let Some(meta) = &raw.meta {
            bytes.extend_from_slice(br#","_meta":"#);
            write_json_to_outbox(bytes, meta);
        }
        bytes.extend_from_slice(b"}}");
    });
}

fn write_update_text(out: &mut Outbox, prefix: &UpdatePrefix, chunk: &TextChunk<'_>) {
    let mut rest: &str = &chunk.text;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(fitting_update_len(rest));
        out.push_message(|bytes| write_update_text_line(bytes, prefix, chunk.voice, chunk.message, piece));
        rest = after;
    }
}

fn write_update_text_line(
    bytes: &mut Vec<u8>,
    prefix: &UpdatePrefix,
    voice: ChunkSpeaker,
    message: MessageId,
    text: &str,
) {
    let kind: &[u8] = match voice {
        ChunkSpeaker::User => br#"{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"#,
        ChunkSpeaker::Agent => br#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"#,
        ChunkSpeaker::Thought => br#"{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"#,
    };
    bytes.extend_from_slice(&prefix.0);
    bytes.extend_from_slice(kind);
    write_json_to_outbox(bytes, text);
    write!(bytes, r#"}},"messageId":"{message}"}}}}}}"#).expect("writing to memory cannot fail");
}

/// How many bytes of the text fit into one line, cut between characters.
fn fitting_update_len(text: &str) -> usize {
    const ROOM: usize = MAX_LINE - MAX_ENVELOPE;
    if text.len() <= ROOM / WORST_ESCAPE {
        return text.len();
    }
    let mut used = 0;
    text.char_indices()
        .find(|(_, char)| {
            used += escaped_update_len(*char);
            used > ROOM
        })
        .map_or(text.len(), |(at, _)| at)
}

fn escaped_update_len(char: char) -> usize {
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
            let chunk = TextChunk {
                voice: ChunkSpeaker::Agent,
                message: MessageId::new(id),
                part: 0,
                text: Cow::Borrowed(&text),
            };
            let mut out = Outbox::default();
            write_session_update(
                &mut out,
                &UpdatePrefix::new(SessionId::new(id)),
                &SessionCatalog::default(),
                &SessionUpdateOut::Text(chunk),
            );
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
