//! Compaction: the chunks of a whole message become one span, if the message really holds their text.

use gander_domain::{Message, RunId, Seq};

use super::decode::{grown_decoded_text, whole_decoded_message};
use super::encode::encode_row_json;
use super::{Chunk, Row, RowKind, Span, SpanPart, Times, corrupt_row_error};
use crate::StoreError;

/// One span in place of the chunks between its first and last entry.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Replacement {
    pub(crate) row: Row,
    /// How many chunk rows it stands for.
    pub(crate) chunks: u64,
}

/// Takes the chunk and whole-message rows of a run in order, and says what can be replaced.
#[derive(Default)]
pub(crate) struct Compactor {
    open: Option<OpenMessage>,
}

/// The deltas of one message, as far as seen.
struct OpenMessage {
    message: gander_domain::MessageId,
    run: Option<RunId>,
    first: Seq,
    last: Seq,
    chunks: u64,
    times: Times,
    pieces: Vec<(SpanPart, String)>,
}

impl Compactor {
    pub(crate) fn push_row(&mut self, row: &Row<impl AsRef<str>>) -> Result<Option<Replacement>, StoreError> {
        match row.kind {
            RowKind::Chunk => self.push_chunk(row).map(|()| None),
            RowKind::Whole => self.open.take().map_or(Ok(None), |open| open.into_replacement(row)),
            RowKind::Fact | RowKind::Span => {
                self.open = None;
                Ok(None)
            }
        }
    }

    fn push_chunk(&mut self, row: &Row<impl AsRef<str>>) -> Result<(), StoreError> {
        let chunk: Chunk<'_> = serde_json::from_str(row.body.as_ref()).map_err(|error| corrupt_row_error(&error))?;
        if !self.open.as_ref().is_some_and(|open| open.is_followed_by(row, &chunk)) {
            self.open = Some(OpenMessage::new(row, &chunk));
        }
        if let Some(open) = &mut self.open {
            open.push_chunk_of_message(row, chunk);
        }
        Ok(())
    }
}

impl OpenMessage {
    fn new(row: &Row<impl AsRef<str>>, chunk: &Chunk<'_>) -> Self {
        let (message, run) = (chunk.message, chunk.run);
        let times = Times::default();
        Self { message, run, first: row.first, last: row.first, chunks: 0, times, pieces: Vec::new() }
    }

    fn is_followed_by(&self, row: &Row<impl AsRef<str>>, chunk: &Chunk<'_>) -> bool {
        (self.message, self.run, self.last.next()) == (chunk.message, chunk.run, row.first)
    }

    fn push_chunk_of_message(&mut self, row: &Row<impl AsRef<str>>, chunk: Chunk<'_>) {
        self.last = row.last;
        self.chunks += 1;
        chunk.times.iter().take(chunk.cuts.len()).for_each(|time| self.times.push_time(time));
        let Chunk { part, growth, cuts, text, .. } = chunk;
        match self.pieces.last_mut() {
            Some((piece, grown)) if (piece.part, piece.growth) == (part, growth) => {
                piece.cuts.extend(cuts);
                grown.push_str(&text);
            }
            _ => self.pieces.push((SpanPart { part, growth, cuts }, text.into_owned())),
        }
    }

    /// What is in the whole message may leave the chunks; if one byte differs, everything stays.
    fn into_replacement(self, row: &Row<impl AsRef<str>>) -> Result<Option<Replacement>, StoreError> {
        if self.last.next() != row.first {
            return Ok(None);
        }
        let message = whole_decoded_message(row.body.as_ref())?;
        if message.id != self.message || !self.is_contained_in(&message) {
            return Ok(None);
        }
        let Self { message, run, first, last, chunks, times, pieces } = self;
        let pieces = pieces.into_iter().map(|(piece, _)| piece).collect();
        let span = Span { message, run, times, pieces };
        Ok(Some(Replacement { row: Row { first, last, kind: RowKind::Span, body: encode_row_json(&span)? }, chunks }))
    }

    fn is_contained_in(&self, message: &Message) -> bool {
        let rising = self.pieces.is_sorted_by(|(one, _), (next, _)| one.part < next.part);
        rising
            && self.pieces.iter().all(|(piece, grown)| {
                grown_decoded_text(message, piece.part).is_some_and(|text| text.starts_with(grown.as_str()))
            })
    }
}
