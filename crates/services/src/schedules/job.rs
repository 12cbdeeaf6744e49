//! One schedule, and the fold of what happened to it.

use std::collections::{BTreeMap, VecDeque};

use gander_agent::recipe::Values;
use gander_domain::{Principal, SessionId, Timestamp};
use gander_store::{FactEntry, FactState};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::cron;

/// Runs that a schedule remembers.
const MAX_REMEMBERED_RUNS: usize = 100;

/// What happens to a time at which no server ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MissedRuns {
    /// All of them together are made up for once.
    Run,
    /// They are gone.
    Skip,
}

/// One schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// Its name, one of its owner's.
    pub id: String,
    /// Whose it is: its sessions are theirs.
    pub owner: Principal,
    /// When, as cron says it.
    pub cron: String,
    /// In which time zone.
    pub zone: String,
    /// What it runs.
    pub recipe: Value,
    /// What is filled in.
    #[serde(default)]
    pub values: Values,
    /// The folder it works in; absent: a private one each time.
    #[serde(default)]
    pub workspace: Option<String>,
    /// The recipe's folder, if it came from a file.
    #[serde(default)]
    pub folder: Option<String>,
    /// Where the recipe came from, for people.
    pub source: String,
    /// Does it rest?
    #[serde(default)]
    pub paused: bool,
    /// When it was made or changed: earlier times do not count.
    pub since: Timestamp,
}

/// A schedule and what happened to it.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleState {
    /// The schedule.
    pub job: Schedule,
    /// Times before this one are done with.
    pub counted_from: Timestamp,
    /// Its last runs, the latest last.
    pub runs: VecDeque<(Timestamp, SessionId)>,
    /// Why its last try went wrong, while this server lives.
    pub last_error: Option<String>,
}

/// A schedule's owner and its name.
pub(crate) type ScheduleKey = (Principal, String);

/// One fact of the log of schedules.
#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum ScheduleFact {
    Put { job: Box<Schedule> },
    Removed { owner: Principal, id: String },
    Ran { owner: Principal, id: String, at: Timestamp, session: SessionId },
}

/// Every schedule, by owner and name.
#[derive(Default)]
pub(crate) struct ScheduleTable(pub(crate) BTreeMap<ScheduleKey, ScheduleState>);

impl ScheduleState {
    /// When it is due next; never, if it rests.
    pub fn next_run(&self) -> Option<Timestamp> {
        if self.job.paused {
            return None;
        }
        cron::next_cron_occurrence(&self.job.cron, &self.job.zone, self.counted_from).ok()
    }

    /// The session of its last run.
    pub fn last_run(&self) -> Option<(Timestamp, SessionId)> {
        self.runs.back().copied()
    }
}

impl FactState for ScheduleTable {
    type Fact = ScheduleFact;

    fn apply(&mut self, fact: ScheduleFact, _: FactEntry) {
        self.apply_fact(fact);
    }

    fn facts(&self) -> Vec<ScheduleFact> {
        self.0.values().flat_map(schedule_facts).collect()
    }

    fn approximate_fact_count(&self) -> usize {
        self.0.values().map(|state| 1 + state.runs.len()).sum()
    }
}

impl ScheduleTable {
    pub(crate) fn apply_fact(&mut self, fact: ScheduleFact) {
        let Self(schedules) = self;
        match fact {
            ScheduleFact::Put { job } => {
                let key = (job.owner.clone(), job.id.clone());
                let runs = schedules.remove(&key).map(|old| old.runs).unwrap_or_default();
                let counted_from = job.since;
                schedules.insert(key, ScheduleState { job: *job, counted_from, runs, last_error: None });
            }
            ScheduleFact::Removed { owner, id } => drop(schedules.remove(&(owner, id))),
            ScheduleFact::Ran { owner, id, at, session } => {
                let Some(state) = schedules.get_mut(&(owner, id)) else { return };
                state.counted_from = state.counted_from.max(at);
                state.last_error = None;
                state.runs.push_back((at, session));
                if state.runs.len() > MAX_REMEMBERED_RUNS {
                    state.runs.pop_front();
                }
            }
        }
    }
}

fn schedule_facts(state: &ScheduleState) -> Vec<ScheduleFact> {
    let put = ScheduleFact::Put { job: Box::new(state.job.clone()) };
    let Schedule { owner, id, .. } = &state.job;
    let ran = state.runs.iter().map(|(at, session)| {
        let (owner, id) = (owner.clone(), id.clone());
        ScheduleFact::Ran { owner, id, at: *at, session: *session }
    });
    [put].into_iter().chain(ran).collect()
}
