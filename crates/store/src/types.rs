//! What a store takes and gives.

use std::fmt;

use gander_domain::{Outcome, Principal, QuestionId, RunId, Seq, SessionId, SessionPolicy, Timestamp};
use serde_json::Value;

/// A fencing number: grows with every claim of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Epoch(pub u64);

impl Epoch {
    /// The epoch of the one who creates a session.
    pub const FIRST: Self = Self(1);
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A reader's place, as it is told to clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The life of the log it was seen in.
    pub incarnation: u32,
    /// The last entry seen.
    pub seq: Seq,
}

/// What a commit left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The session's last entry.
    pub head: Seq,
}

/// The right to write to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Give it with every append.
    pub epoch: Epoch,
    /// The session's last entry.
    pub head: Seq,
}

/// How much one read gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// At most so many entries.
    pub entries: usize,
    /// Stop after about so many bytes.
    pub bytes: usize,
}

impl Default for Limit {
    fn default() -> Self {
        Self { entries: 1024, bytes: 1 << 20 }
    }
}

/// How deltas are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeltaForm {
    /// As they were written, one by one.
    Exact,
    /// Adjacent ones of one part joined, carrying the last one's place and time.
    Joined,
}

/// A view at a place, in the caller's own format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The format's version.
    pub version: u32,
    /// The last entry in it.
    pub seq: Seq,
    /// The view.
    pub body: Vec<u8>,
}

/// A session in a list. A fold of its log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSummary {
    pub session: SessionId,
    pub owner: Principal,
    /// The folder it works in.
    pub workspace: String,
    /// Who serves it.
    pub agent: String,
    /// Empty if it has none.
    pub title: String,
    /// When it began.
    pub created_at: Timestamp,
    /// The last fact's time.
    pub updated_at: Timestamp,
    /// What it does now.
    pub state: SessionStatus,
    /// Put away?
    pub archived: bool,
    /// How many whole messages it holds.
    pub messages: u64,
    /// The session it came from.
    pub parent: Option<SessionId>,
    /// Absent for a session from before it was kept here: its view has it.
    pub usage: Option<SummaryUsage>,
}

/// What a list says of a session's policy and of its usage since its history last began anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SummaryUsage {
    pub policy: SessionPolicy,
    /// Tokens read by all its model calls.
    pub input: u64,
    /// Tokens written by all of them.
    pub output: u64,
    /// Millionths of a US dollar, as far as prices are known.
    pub cost: u64,
    /// Tokens read and written by the last call of its own.
    pub last_call: Option<(u64, u64)>,
}

/// What a session does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionStatus {
    /// Nothing.
    Idle,
    /// A run is under way.
    Running,
    /// A run waits for a person.
    Awaiting,
}

/// Which sessions to list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionQuery {
    /// Whose: nobody sees another's.
    pub principal: Principal,
    /// Only of this folder.
    pub workspace: Option<String>,
    /// Only titles that hold each of these words, in any case.
    pub text: Option<String>,
    /// Those put away, or the others.
    pub archived: bool,
    /// Only those in which something was said, or that have a title.
    pub non_empty: bool,
    /// Only in this state.
    pub state: Option<SessionStatus>,
    /// Go on after this page.
    pub after: Option<PageKey>,
    /// At most so many, up to 1,000.
    pub limit: u32,
}

/// Where a page ended. Its text form is for clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageKey {
    /// The last one's time.
    pub updated_at: Timestamp,
    /// The last one.
    pub session: SessionId,
}

impl fmt::Display for PageKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.updated_at.as_micros(), self.session)
    }
}

impl std::str::FromStr for PageKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (micros, session) = text.split_once('.')?;
            Some(Self { updated_at: Timestamp::from_micros(micros.parse().ok()?), session: session.parse().ok()? })
        };
        parse().ok_or_else(|| format!("not a page key: {text}"))
    }
}

/// One page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionPage {
    /// Its sessions.
    pub sessions: Vec<SessionSummary>,
    /// Where the next one begins, if there is more.
    pub next: Option<PageKey>,
}

/// A run, folded from the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRow {
    pub run: RunId,
    /// Its session.
    pub session: SessionId,
    /// How far it is.
    pub state: RunState,
    /// Its first entry.
    pub first: Seq,
    /// When that was written.
    pub began_at: Timestamp,
}

/// How far a run is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunState {
    /// It waits for its turn.
    Queued,
    /// It is under way.
    Running,
    /// It waits for a person.
    Awaiting,
    /// It is over since this entry.
    Ended(Seq, Outcome),
}

/// A question, folded from the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuestionRow {
    pub question: QuestionId,
    /// Its session.
    pub session: SessionId,
    /// The run that waits for its answer; none if it was asked aside.
    pub run: Option<RunId>,
    /// The entry that asks.
    pub asked: Seq,
    /// The entry that answers.
    pub answered: Option<Seq>,
    /// A live child waits for the answer, and is gone when its process is.
    pub held: bool,
}

/// A name that a client chose for a session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Alias {
    /// Who chose it.
    pub principal: Principal,
    /// At which door.
    pub door: String,
    /// Where it is unique, such as app and user.
    pub namespace: String,
    /// The name.
    pub text: String,
}

/// Facts of no session.
#[derive(Clone, Debug, PartialEq)]
pub struct ScopeAppend {
    /// The log they belong to, such as `user/anna`.
    pub scope: String,
    pub at: Timestamp,
    /// What, in order.
    pub facts: Vec<Value>,
    /// Refuse with [`super::StoreError::Gap`] unless the scope ends here.
    pub after: Option<Seq>,
}

/// A fact of no session.
#[derive(Clone, Debug, PartialEq)]
pub struct ScopeEntry {
    /// Its place: grows by one. A log that was shortened begins later.
    pub seq: Seq,
    pub at: Timestamp,
    pub fact: Value,
}

/// What one piece of upkeep did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MaintenanceReport {
    /// Rows of deltas that went into their message.
    pub compacted: u64,
    /// Rows of deleted sessions that are gone.
    pub purged: u64,
    /// There is more to do.
    pub more: bool,
}

/// Whether the store can be relied on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// A write succeeded within the last seconds.
    Ready,
    /// Only reading works.
    ReadOnly(String),
    /// A write did not come back in time.
    Stalled,
    /// It was closed.
    Closed,
}

/// What a store did since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Commits that were made.
    pub commits: u64,
    /// Of these, synced ones.
    pub barriers: u64,
    /// Rows of entries that were written.
    pub rows: u64,
    /// Entries in them.
    pub entries: u64,
    /// Of these, deltas.
    pub deltas: u64,
}

/// What of a title can be searched.
pub(super) fn searchable_title(title: &str) -> String {
    title.to_lowercase().chars().take(256).collect()
}

/// The words of a search, ready to be looked for in a lower-cased title.
pub(super) fn search_words(text: &str) -> Vec<String> {
    text.to_lowercase().split_whitespace().take(8).map(str::to_owned).collect()
}
