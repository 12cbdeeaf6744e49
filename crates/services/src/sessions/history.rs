//! A conversation read from its end, page by page.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

use gander_domain::{Entry, Event, Message, ResetReason, Role, Seq, SessionId};
use gander_store::{DeltaForm, Limit, Store, StoreError};

use super::{SessionError, Sessions};

/// So many entries are read at once.
const CHUNK: u32 = 256;

/// A page that holds this much is full, however few messages it has.
const MAX_BYTES: usize = 1 << 20;

/// A part of a conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HistoryPage {
    /// In the order of the log. They begin where no message is open and no tool is under way.
    pub entries: Vec<Entry>,
    /// Where the part before this one ends, if there is one.
    pub earlier: Option<HistoryEnd>,
}

/// Where a part of a conversation ends: with an entry, or within the messages that a reset put in the place of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryEnd {
    /// Its last entry.
    pub seq: Seq,
    /// How many of the entry's messages belong to it, if not all.
    pub messages: Option<usize>,
}

impl HistoryEnd {
    fn after(seq: Seq) -> Self {
        Self { seq, messages: None }
    }
}

impl fmt::Display for HistoryEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.messages {
            None => write!(f, "{}", self.seq.0),
            Some(messages) => write!(f, "{}:{messages}", self.seq.0),
        }
    }
}

impl FromStr for HistoryEnd {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        let (seq, messages) = text.split_once(':').map_or((text, None), |(seq, messages)| (seq, Some(messages)));
        Ok(Self { seq: Seq(seq.parse()?), messages: messages.map(str::parse).transpose()? })
    }
}

impl Sessions {
    /// The part of a conversation that ends here, or with its last entry: at least so many messages, if there are as
    /// many.
    ///
    /// What a reset took away is left out: the messages that stand in its place follow what it kept. The caller may
    /// read the session: ask for its view first.
    pub async fn history_page(
        &self,
        session: SessionId,
        end: Option<HistoryEnd>,
        messages: usize,
    ) -> Result<HistoryPage, SessionError> {
        let store = self.hub.store();
        let head = store.head(session).await?;
        let (mut reader, mut end) =
            (HistoryReader::new(messages), end.filter(|end| end.seq <= head).unwrap_or(HistoryEnd::after(head)));
        while end.seq > Seq::ZERO {
            let start = Seq(end.seq.0.saturating_sub(CHUNK.into()));
            let mut chunk = read_history_range(&**store, session, start, end.seq).await?;
            keep_history_messages(chunk.last_mut(), end.messages);
            match reader.take_chunk(chunk) {
                ReadOn::No { earlier } => return Ok(reader.into_page(earlier)),
                ReadOn::Before => end = HistoryEnd::after(start),
                ReadOn::UpTo(kept) => end = HistoryEnd::after(kept),
            }
        }
        Ok(reader.into_page(end))
    }
}

/// Only so many messages of the last entry count.
fn keep_history_messages(last: Option<&mut Entry>, messages: Option<usize>) {
    if let (Some(Entry { event: Event::HistoryReset { replacement, .. }, .. }), Some(messages)) = (last, messages) {
        replacement.truncate(messages);
    }
}

/// Whether there is more to read, and where it ends.
#[derive(Debug, PartialEq, Eq)]
enum ReadOn {
    No { earlier: HistoryEnd },
    Before,
    UpTo(Seq),
}

/// Takes in entries from the last to the first.
struct HistoryReader {
    wanted: usize,
    messages: usize,
    bytes: usize,
    reversed: Vec<Entry>,
}

impl HistoryReader {
    fn new(wanted: usize) -> Self {
        Self { wanted, messages: 0, bytes: 0, reversed: Vec::new() }
    }

    fn take_chunk(&mut self, chunk: Vec<Entry>) -> ReadOn {
        for entry in chunk.into_iter().rev() {
            let (seq, is_history_boundary) = (entry.seq, is_history_boundary(&entry));
            if let Event::HistoryReset { reason, keep_to, .. } = &entry.event
                && *reason != ResetReason::Compacted
            {
                let keep_to = *keep_to;
                return self.take_reset(entry, keep_to);
            }
            self.messages +=
                usize::from(matches!(&entry.event, Event::MessageDone { message } if counts_in_history(message)));
            self.bytes += entry.approximate_bytes();
            self.reversed.push(entry);
            if is_history_boundary && self.is_full() {
                return ReadOn::No { earlier: HistoryEnd::after(Seq(seq.0.saturating_sub(1))) };
            }
        }
        ReadOn::Before
    }

    /// The messages of a reset from its last one on; what lies between it and what it kept is no part of the
    /// conversation.
    fn take_reset(&mut self, mut entry: Entry, keep_to: Seq) -> ReadOn {
        let mut first = 0;
        if let Event::HistoryReset { replacement, .. } = &mut entry.event {
            first = replacement.len();
            // The answers of tools stay with the calls before them.
            while first > 0 && (!self.is_full() || replacement.get(first).is_some_and(|one| one.role == Role::Tool)) {
                first -= 1;
                self.messages += usize::from(counts_in_history(&replacement[first]));
                self.bytes += replacement[first].approximate_bytes();
            }
            replacement.drain(..first);
        }
        let seq = entry.seq;
        self.reversed.push(entry);
        match first {
            0 if !self.is_full() => ReadOn::UpTo(keep_to),
            0 => ReadOn::No { earlier: HistoryEnd::after(keep_to) },
            rest => ReadOn::No { earlier: HistoryEnd { seq, messages: Some(rest) } },
        }
    }

    fn is_full(&self) -> bool {
        self.messages >= self.wanted || self.bytes >= MAX_BYTES
    }

    fn into_page(self, earlier: HistoryEnd) -> HistoryPage {
        let entries: Vec<Entry> = self.reversed.into_iter().rev().collect();
        HistoryPage { entries, earlier: (earlier.seq > Seq::ZERO).then_some(earlier) }
    }
}

/// A place where a part may begin.
fn is_history_boundary(entry: &Entry) -> bool {
    match &entry.event {
        // A model is called when all tools have ended, and its message is the first that comes of it.
        Event::RunStarted { .. } | Event::MessageStarted { .. } => true,
        Event::MessageDone { .. } => entry.run.is_none(),
        Event::HistoryReset { .. }
        | Event::SessionCreated { .. }
        | Event::TitleSet { .. }
        | Event::ArchiveSet { .. }
        | Event::SettingsChanged { .. }
        | Event::StateChanged { .. }
        | Event::ArtifactSaved { .. }
        | Event::TextMarked { .. }
        | Event::Noticed { .. }
        | Event::RunQueued { .. }
        | Event::RunRecovered { .. }
        | Event::Routed { .. }
        | Event::CancelRequested { .. }
        | Event::RunEnded { .. }
        | Event::PartDelta { .. }
        | Event::ToolCalled { .. }
        | Event::ToolStarted { .. }
        | Event::ToolUpdated { .. }
        | Event::ToolDone { .. }
        | Event::QuestionAsked { .. }
        | Event::QuestionAnswered { .. }
        | Event::PlanSet { .. }
        | Event::UsageAdded { .. }
        | Event::OpaqueUpdate { .. }
        | Event::Unknown(_) => false,
    }
}

/// What a tool said is no message of its own to people.
fn counts_in_history(message: &Message) -> bool {
    message.role != Role::Tool
}

/// The entries after `start`, up to `end`: exactly, as a message may be open there.
async fn read_history_range(
    store: &dyn Store,
    session: SessionId,
    start: Seq,
    end: Seq,
) -> Result<Vec<Entry>, StoreError> {
    let (mut entries, mut place) = (Vec::new(), start);
    while place < end {
        let limit = Limit { entries: CHUNK as usize, ..Limit::default() };
        let page = store.read(session, place, limit, DeltaForm::Exact).await?;
        let Some(last) = page.last() else { break };
        place = last.seq;
        entries.extend(page.into_iter().filter(|entry| entry.seq <= end));
    }
    Ok(entries)
}
