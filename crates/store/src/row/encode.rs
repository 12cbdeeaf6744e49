//! Entries to rows.

use std::borrow::Cow;

use gander_domain::{DeltaKind, Entry, Event, MessageId, RunId, Seq, Timestamp};

use super::{Chunk, FactRef, Kind, Row, Times};
use crate::StoreError;

/// A chunk row ends when it holds so much text: the price of reading its last delta.
const CHUNK_BYTES: usize = 32 * 1024;

/// Rows in the making, of entries of one session, in order.
#[derive(Default)]
pub(crate) struct Rows {
    done: Vec<Row>,
    open: Option<Open>,
}

/// What deltas of one chunk share.
type Key = (MessageId, u32, DeltaKind, Option<RunId>);

/// The chunk that still grows.
struct Open {
    first: Seq,
    last: Seq,
    key: Key,
    times: Times,
    cuts: Vec<u32>,
    text: String,
}

impl Rows {
    /// Adds the next entry; gives about its size.
    pub(crate) fn push(&mut self, entry: &Entry) -> Result<usize, StoreError> {
        if let Event::PartDelta { message, part, growth, text } = &entry.event
            && entry.meta.is_none()
        {
            if cfg!(bug = "drop_entry") && entry.seq.0 % 10 == 3 {
                return Ok(0);
            }
            self.delta((*message, *part, *growth, entry.run), entry.seq, entry.at, text)?;
            return Ok(text.len());
        }
        let whole = matches!(entry.event, Event::MessageDone { .. });
        self.single(entry, if whole { Kind::Whole } else { Kind::Fact })
    }

    /// The finished rows.
    pub(crate) fn finish(mut self) -> Result<Vec<Row>, StoreError> {
        self.close()?;
        Ok(self.done)
    }

    fn single(&mut self, entry: &Entry, kind: Kind) -> Result<usize, StoreError> {
        self.close()?;
        let Entry { seq, at, run, event, meta } = entry;
        let fact = FactRef { at: *at, run: *run, event, meta: meta.as_deref() };
        let body = encode(&fact)?;
        let size = body.len();
        self.done.push(Row { first: *seq, last: *seq, kind, body });
        Ok(size)
    }

    fn delta(&mut self, key: Key, seq: Seq, at: Timestamp, text: &str) -> Result<(), StoreError> {
        if self.open.as_ref().is_some_and(|open| open.key != key || open.text.len() + text.len() > CHUNK_BYTES) {
            self.close()?;
        }
        let length = u32::try_from(text.len()).map_err(|_| StoreError::Invalid("delta over 4 GiB".to_owned()))?;
        let open = self.open.get_or_insert_with(|| Open::new(seq, key));
        open.last = seq;
        open.times.push(at);
        open.cuts.push(length);
        open.text.push_str(text);
        Ok(())
    }

    fn close(&mut self) -> Result<(), StoreError> {
        let Some(Open { first, last, key: (message, part, growth, run), times, cuts, text }) = self.open.take() else {
            return Ok(());
        };
        let chunk = Chunk { message, part, growth, run, times, cuts, text: Cow::Owned(text) };
        self.done.push(Row { first, last, kind: Kind::Chunk, body: encode(&chunk)? });
        Ok(())
    }
}

impl Open {
    fn new(seq: Seq, key: Key) -> Self {
        Self { first: seq, last: seq, key, times: Times::default(), cuts: Vec::new(), text: String::new() }
    }
}

pub(super) fn encode(body: &impl serde::Serialize) -> Result<String, StoreError> {
    serde_json::to_string(body).map_err(|error| StoreError::Invalid(error.to_string()))
}
