//! Entries to rows.

use std::borrow::Cow;

use gander_domain::{DeltaKind, Entry, Event, MessageId, RunId, Seq, Timestamp};

use super::{Chunk, Row, RowKind, StoredFactRef, Times};
use crate::StoreError;

/// A chunk row ends when it holds so much text: the price of reading its last delta.
const CHUNK_BYTES: usize = 32 * 1024;

/// Makes rows of entries of one session, in order.
#[derive(Default)]
pub(crate) struct RowEncoder {
    done: Vec<Row>,
    open: Option<OpenChunk>,
}

/// What deltas of one chunk share.
type ChunkKey = (MessageId, u32, DeltaKind, Option<RunId>);

/// The chunk that still grows.
struct OpenChunk {
    first: Seq,
    last: Seq,
    key: ChunkKey,
    times: Times,
    cuts: Vec<u32>,
    text: String,
}

impl RowEncoder {
    /// Adds the next entry; gives about its size.
    pub(crate) fn push_entry(&mut self, entry: &Entry) -> Result<usize, StoreError> {
        if let Event::PartDelta { message, part, growth, text } = &entry.event
            && entry.meta.is_none()
        {
            if cfg!(bug = "drop_entry") && entry.seq.0 % 10 == 3 {
                return Ok(0);
            }
            self.push_delta((*message, *part, *growth, entry.run), entry.seq, entry.at, text)?;
            return Ok(text.len());
        }
        let whole = matches!(entry.event, Event::MessageDone { .. });
        self.push_single(entry, if whole { RowKind::Whole } else { RowKind::Fact })
    }

    /// The finished rows.
    pub(crate) fn into_rows(mut self) -> Result<Vec<Row>, StoreError> {
        self.close_chunk()?;
        Ok(self.done)
    }

    fn push_single(&mut self, entry: &Entry, kind: RowKind) -> Result<usize, StoreError> {
        self.close_chunk()?;
        let Entry { seq, at, run, event, meta } = entry;
        let fact = StoredFactRef { at: *at, run: *run, event, meta: meta.as_deref() };
        let body = encode_row_json(&fact)?;
        let size = body.len();
        self.done.push(Row { first: *seq, last: *seq, kind, body });
        Ok(size)
    }

    fn push_delta(&mut self, key: ChunkKey, seq: Seq, at: Timestamp, text: &str) -> Result<(), StoreError> {
        if self.open.as_ref().is_some_and(|open| open.key != key || open.text.len() + text.len() > CHUNK_BYTES) {
            self.close_chunk()?;
        }
        let length = u32::try_from(text.len()).map_err(|_| StoreError::Invalid("delta over 4 GiB".to_owned()))?;
        let open = self.open.get_or_insert_with(|| OpenChunk::new(seq, key));
        open.last = seq;
        open.times.push_time(at);
        open.cuts.push(length);
        open.text.push_str(text);
        Ok(())
    }

    fn close_chunk(&mut self) -> Result<(), StoreError> {
        let Some(OpenChunk { first, last, key: (message, part, growth, run), times, cuts, text }) = self.open.take()
        else {
            return Ok(());
        };
        let chunk = Chunk { message, part, growth, run, times, cuts, text: Cow::Owned(text) };
        self.done.push(Row { first, last, kind: RowKind::Chunk, body: encode_row_json(&chunk)? });
        Ok(())
    }
}

impl OpenChunk {
    fn new(seq: Seq, key: ChunkKey) -> Self {
        Self { first: seq, last: seq, key, times: Times::default(), cuts: Vec::new(), text: String::new() }
    }
}

pub(super) fn encode_row_json(body: &impl serde::Serialize) -> Result<String, StoreError> {
    serde_json::to_string(body).map_err(|error| StoreError::Invalid(error.to_string()))
}
