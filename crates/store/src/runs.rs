//! Lists of runs: which, in which order, and where a page ends.

use std::fmt;
use std::str::FromStr;

use gander_domain::{Outcome, Principal, RunId, SessionId, StopReason, Timestamp};

use super::types::{RunRow, RunState};

/// Which runs to list, those whose state changed last first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunQuery {
    /// Whose: nobody sees another's.
    pub principal: Principal,
    /// Only of sessions that this agent serves.
    pub agent: Option<String>,
    /// Only of this session.
    pub session: Option<SessionId>,
    /// Only in this state.
    pub state: Option<RunSort>,
    /// Only those whose state changed then or later.
    pub since: Option<Timestamp>,
    /// Go on after this page.
    pub after: Option<RunKey>,
    /// At most so many, up to 1,000.
    pub limit: u32,
}

/// What a run's state is, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunSort {
    /// It waits for its turn.
    Queued,
    /// It is under way.
    Running,
    /// It waits for a person.
    Awaiting,
    /// It came to its end.
    Completed,
    /// The model refused.
    Refused,
    /// Somebody cancelled it.
    Cancelled,
    /// It could not go on.
    Failed,
}

/// Where a page of runs ended. Its text form is for clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunKey {
    /// When the last one's state changed: its end, or else its beginning.
    pub at: Timestamp,
    /// The last one.
    pub run: RunId,
}

/// One page of runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunPage {
    /// They.
    pub rows: Vec<RunRow>,
    /// How many there are on all pages.
    pub total: u64,
    /// Where the next page begins, if there is more.
    pub next: Option<RunKey>,
}

impl RunState {
    /// In one word.
    pub fn sort_key(&self) -> RunSort {
        match self {
            Self::Queued => RunSort::Queued,
            Self::Running => RunSort::Running,
            Self::Awaiting => RunSort::Awaiting,
            Self::Ended(_, Outcome::Completed { stop: StopReason::Refusal }) => RunSort::Refused,
            Self::Ended(_, Outcome::Completed { stop: StopReason::MaxTurns }) => RunSort::Failed,
            Self::Ended(
                _,
                Outcome::Completed { stop: StopReason::EndTurn | StopReason::MaxTokens | StopReason::StopSequence },
            ) => RunSort::Completed,
            Self::Ended(_, Outcome::Cancelled) => RunSort::Cancelled,
            Self::Ended(_, Outcome::Failed { .. }) => RunSort::Failed,
        }
    }
}

impl fmt::Display for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.at.as_micros(), self.run)
    }
}

impl FromStr for RunKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (micros, run) = text.split_once('.')?;
            Some(Self { at: Timestamp::from_micros(micros.parse().ok()?), run: run.parse().ok()? })
        };
        parse().ok_or_else(|| format!("not a page key: {text}"))
    }
}
