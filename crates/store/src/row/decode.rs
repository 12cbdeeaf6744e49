//! Rows to entries, exactly as they were or joined, from any place on.

use gander_domain::{Delta, DeltaKind, Entry, Event, Message, MessageId, Part, RunId, Seq, Timestamp};

use super::{Chunk, Row, RowKind, Span, StoredFact, corrupt_row_error, parse_stored_json};
use crate::{DeltaForm, Limit, StoreError};

/// Joins adjacent deltas of one part; a joined delta carries the last one's place and time.
pub fn join_decoded_deltas(entries: impl IntoIterator<Item = Entry>) -> Vec<Entry> {
    let mut joined = Vec::new();
    entries.into_iter().for_each(|entry| push_decoded_join(&mut joined, entry));
    joined
}

/// Gathers the entries of rows, in order, up to a limit.
pub(crate) struct RowDecoder {
    after: Seq,
    form: DeltaForm,
    limit: Limit,
    bytes: usize,
    entries: Vec<Entry>,
}

/// Adjacent deltas of one part, wherever their text lies.
struct Deltas<'a> {
    message: MessageId,
    part: u32,
    growth: DeltaKind,
    run: Option<RunId>,
    first: Seq,
    cuts: &'a [u32],
    text: &'a str,
}

impl RowDecoder {
    pub(crate) fn new(after: Seq, form: DeltaForm, limit: Limit) -> Self {
        Self { after, form, limit, bytes: 0, entries: Vec::new() }
    }

    /// True if the next row would be too much.
    pub(crate) fn is_full(&self) -> bool {
        self.entries.len() >= self.limit.entries.max(1) || (self.bytes >= self.limit.bytes && !self.entries.is_empty())
    }

    /// Adds a row; a span comes with the body of the next one, its message.
    pub(crate) fn push_row(&mut self, row: &Row<impl AsRef<str>>, next: Option<&str>) -> Result<(), StoreError> {
        match row.kind {
            RowKind::Fact | RowKind::Whole => self.push_fact(row),
            RowKind::Chunk => self.push_chunk(row),
            RowKind::Span => self.push_span(row, &whole_decoded_message(next.unwrap_or_default())?),
        }
    }

    pub(crate) fn into_entries(self) -> Vec<Entry> {
        self.entries
    }

    fn push_fact(&mut self, row: &Row<impl AsRef<str>>) -> Result<(), StoreError> {
        if row.first > self.after {
            self.bytes += row.body.as_ref().len();
            let entry = decoded_fact_entry(row)?;
            self.push_entry(entry);
        }
        Ok(())
    }

    fn push_chunk(&mut self, row: &Row<impl AsRef<str>>) -> Result<(), StoreError> {
        let chunk: Chunk<'_> = serde_json::from_str(row.body.as_ref()).map_err(|error| corrupt_row_error(&error))?;
        let Chunk { message, part, growth, run, times, cuts, text } = &chunk;
        let (message, part, growth, run) = (*message, *part, *growth, *run);
        let deltas = Deltas { message, part, growth, run, first: row.first, cuts, text };
        self.push_deltas(&deltas, &mut times.iter())
    }

    fn push_span(&mut self, row: &Row<impl AsRef<str>>, message: &Message) -> Result<(), StoreError> {
        let span: Span = serde_json::from_str(row.body.as_ref()).map_err(|error| corrupt_row_error(&error))?;
        let mut times = span.times.iter();
        let mut first = row.first;
        for piece in &span.pieces {
            let text = grown_decoded_text(message, piece.part)
                .ok_or_else(|| corrupt_decoded_row("span without its part", row.first))?;
            let (part, growth) = (piece.part, piece.growth);
            let deltas = Deltas { message: span.message, part, growth, run: span.run, first, cuts: &piece.cuts, text };
            self.push_deltas(&deltas, &mut times)?;
            first = Seq(first.0 + piece.cuts.len() as u64);
        }
        Ok(())
    }

    fn push_deltas(
        &mut self,
        deltas: &Deltas<'_>,
        times: &mut impl Iterator<Item = Timestamp>,
    ) -> Result<(), StoreError> {
        let Deltas { message, part, growth, run, first, cuts, text } = *deltas;
        let mut rest = text;
        for ((seq, cut), at) in (first.0..).map(Seq).zip(cuts).zip(times) {
            let (delta, more) = rest
                .split_at_checked(*cut as usize)
                .ok_or_else(|| corrupt_decoded_row("deltas do not fit their text", seq))?;
            rest = more;
            // A joined read may end only where a row does, or it would cost a row per entry.
            if seq <= self.after || (self.form == DeltaForm::Exact && self.is_full()) {
                continue;
            }
            self.bytes += delta.len();
            let event = Event::PartDelta { message, part, growth, text: delta.to_owned() };
            self.push_entry(Entry { seq, at, run, event, meta: None });
        }
        Ok(())
    }

    fn push_entry(&mut self, entry: Entry) {
        match self.form {
            DeltaForm::Exact => self.entries.push(entry),
            DeltaForm::Joined => push_decoded_join(&mut self.entries, entry),
        }
    }
}

/// The message in the body of a row of kind [`RowKind::Whole`].
pub(super) fn whole_decoded_message(body: &str) -> Result<Message, StoreError> {
    let fact: StoredFact = parse_stored_json(body).map_err(|error| corrupt_row_error(&error))?;
    let Event::MessageDone { message } = fact.event else {
        return Err(StoreError::Corrupt("row is no whole message".to_owned()));
    };
    Ok(message)
}

/// The text of a part that grew.
pub(super) fn grown_decoded_text(message: &Message, part: u32) -> Option<&str> {
    match message.parts.get(part as usize)? {
        Part::Text { text } | Part::Thought { text } => Some(text),
        Part::Image { .. }
        | Part::Audio { .. }
        | Part::Link { .. }
        | Part::Resource { .. }
        | Part::ToolUse { .. }
        | Part::ToolResult { .. }
        | Part::Unknown(_) => None,
    }
}

fn decoded_fact_entry(row: &Row<impl AsRef<str>>) -> Result<Entry, StoreError> {
    let StoredFact { at, run, event, meta } =
        parse_stored_json(row.body.as_ref()).map_err(|error| corrupt_row_error(&error))?;
    Ok(Entry { seq: row.first, at, run, event, meta })
}

fn push_decoded_join(joined: &mut Vec<Entry>, entry: Entry) {
    if let Some(last) = joined.last_mut()
        && try_join_decoded(last, &entry)
    {
        last.seq = entry.seq;
        last.at = entry.at;
    } else {
        joined.push(entry);
    }
}

/// Adds a delta's text to the one before, if they belong together and whoever shows the text needs no cutting.
fn try_join_decoded(last: &mut Entry, entry: &Entry) -> bool {
    if last.run != entry.run || last.meta.is_some() || entry.meta.is_some() {
        return false;
    }
    let Event::PartDelta { message, part, growth, text } = &mut last.event else { return false };
    let Event::PartDelta { message: next_message, part: next_part, growth: next_growth, text: more } = &entry.event
    else {
        return false;
    };
    let same = (&*message, &*part, &*growth) == (next_message, next_part, next_growth);
    let joins = same && text.len() + more.len() <= Delta::MAX_JOINED_BYTES;
    if joins {
        text.push_str(more);
    }
    joins
}

fn corrupt_decoded_row(what: &str, seq: Seq) -> StoreError {
    StoreError::Corrupt(format!("{what}: {seq}"))
}
