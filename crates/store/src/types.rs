//! What a store takes and gives.

use std::fmt;

use gander_domain::{Entry, Outcome, Principal, QuestionId, RunId, Seq, SessionId, SessionPolicy, Timestamp};
use serde_json::Value;

use super::node::{CommandAnswer, Ownership};

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

/// How hard a commit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// Survives the death of the process; safe from a power cut with the next barrier.
    Relaxed,
    /// Survives a power cut: acknowledged after the disk said so.
    Barrier,
}

/// So many deltas at once are a burst.
const MAX_TRICKLE_ENTRIES: usize = 16;

/// Entries of one session, and what belongs into the same transaction.
#[derive(Clone, Debug)]
pub struct Append {
    pub session: SessionId,
    /// The writer's claim.
    pub epoch: Epoch,
    /// They follow the log's end, without gaps. May be empty.
    pub entries: Vec<Entry>,
    /// How hard.
    pub sync: Durability,
    /// Facts of no session.
    pub scopes: Vec<ScopeAppend>,
    /// The view at a place: a cache.
    pub snapshot: Option<Snapshot>,
    /// Whether somebody waits for an answer and is told soon that the store is busy, or it is tried for longer.
    pub busy_timeout: BusyTimeout,
    /// Whose session it is: who watches this principal's sessions is told. Without one everybody who watches is.
    pub owner: Option<Principal>,
    /// Whether this node goes on owning the session. Counts in a cluster.
    pub ownership: Ownership,
    /// The label of the only nodes that may own the session. Counts in a cluster, when the session is created.
    pub pinned_to: Option<String>,
    /// What became of commands that other nodes sent, in the same commit.
    pub answers: Vec<CommandAnswer>,
}

/// How long a busy store is waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BusyTimeout {
    /// About a second.
    #[default]
    Short,
    /// Some seconds: what a run says must not be lost to a moment.
    Long,
}

impl Append {
    /// Entries and nothing else.
    pub fn new(session: SessionId, epoch: Epoch, entries: Vec<Entry>, sync: Durability) -> Self {
        Self {
            session,
            epoch,
            entries,
            sync,
            scopes: Vec::new(),
            snapshot: None,
            busy_timeout: BusyTimeout::Short,
            owner: None,
            ownership: Ownership::Release,
            pinned_to: None,
            answers: Vec::new(),
        }
    }

    /// True if these are a few deltas that nobody waits for but readers: they are stored together with those of others.
    pub fn is_trickle(&self) -> bool {
        self.sync == Durability::Relaxed && self.busy_timeout == BusyTimeout::Long && is_trickle(&self.entries)
    }
}

/// True if these are deltas, and so few that storing them costs more than they do.
pub fn is_trickle(entries: &[Entry]) -> bool {
    entries.len() < MAX_TRICKLE_ENTRIES && entries.iter().all(|entry| entry.event.is_delta())
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
