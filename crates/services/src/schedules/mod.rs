//! Schedules: recipes that run by the clock. Facts of no session, kept in their own log.

pub(crate) mod cron;
mod job;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use gander_domain::{Principal, SessionId, Timestamp};
use gander_store::{FactLog, Store, StoreError};
use tokio::sync::Notify;

use cron::machine_time_zone;
pub use cron::{ScheduleTimeError, canonical_time_zone};
pub use job::{MissedRuns, Schedule, ScheduleState};
use job::{ScheduleFact, ScheduleKey, ScheduleTable};

/// The log's key.
const SCOPE: &str = "schedules";

/// Schedules that one person may have.
pub const MAX_SCHEDULES: usize = 200;

/// All schedules, folded from their log.
pub struct Schedules {
    log: FactLog<ScheduleTable>,
    /// The same in memory, with what only this process knows: failures, and times that were skipped.
    known: Mutex<ScheduleTable>,
    /// Told when something changed.
    wake: Notify,
    /// What happens to a time at which no server ran.
    missed: MissedRuns,
    /// The time zone of whoever names none.
    zone: OnceLock<String>,
}

impl Schedules {
    /// Those in this store. Without a zone it is the machine's, found out when somebody wants to know.
    pub async fn load(store: Arc<dyn Store>, missed: MissedRuns, zone: Option<String>) -> Result<Self, StoreError> {
        let log = FactLog::<ScheduleTable>::new(store, SCOPE);
        let known = Mutex::new(log.fold_all().await?);
        let zone = zone.map_or_else(OnceLock::new, OnceLock::from);
        Ok(Self { log, known, wake: Notify::new(), missed, zone })
    }

    /// Until a schedule was put, removed or run.
    pub(crate) async fn wait_for_change(&self) {
        self.wake.notified().await;
    }

    /// What happens to a time at which no server ran.
    pub(crate) fn missed_runs(&self) -> MissedRuns {
        self.missed
    }

    /// The time zone of whoever names none.
    pub fn default_time_zone(&self) -> &str {
        self.zone.get_or_init(machine_time_zone)
    }

    /// Somebody's schedules, by name.
    pub fn list(&self, owner: &Principal) -> Vec<ScheduleState> {
        self.lock_table().0.iter().filter(|((of, _), _)| of == owner).map(|(_, state)| state.clone()).collect()
    }

    /// One of them.
    pub fn get(&self, owner: &Principal, id: &str) -> Option<ScheduleState> {
        self.lock_table().0.get(&(owner.clone(), id.to_owned())).cloned()
    }

    /// True if none will ever be due.
    pub fn is_idle(&self) -> bool {
        self.lock_table().0.values().all(|state| state.job.paused)
    }

    /// Keeps one, in place of an older one of its name.
    pub async fn put(&self, job: Schedule) -> Result<(), StoreError> {
        self.write_fact(ScheduleFact::Put { job: Box::new(job) }).await
    }

    /// Forgets one; false if there is none.
    pub async fn remove(&self, owner: &Principal, id: &str) -> Result<bool, StoreError> {
        if self.get(owner, id).is_none() {
            return Ok(false);
        }
        self.write_fact(ScheduleFact::Removed { owner: owner.clone(), id: id.to_owned() }).await?;
        Ok(true)
    }

    /// It is about to run in this session. Written before it does: a crash in between loses a run, and never doubles it.
    pub(crate) async fn record_run(
        &self,
        owner: &Principal,
        id: &str,
        at: Timestamp,
        session: SessionId,
    ) -> Result<(), StoreError> {
        self.write_fact(ScheduleFact::Ran { owner: owner.clone(), id: id.to_owned(), at, session }).await
    }

    /// Its last try went wrong, in words for people.
    pub(crate) fn record_failure(&self, owner: &Principal, id: &str, reason: String) {
        if let Some(state) = self.lock_table().0.get_mut(&(owner.clone(), id.to_owned())) {
            state.last_error = Some(reason);
        }
    }

    /// A time that was missed is not made up for.
    pub(crate) fn skip_missed(&self, key: &ScheduleKey, now: Timestamp) {
        if let Some(state) = self.lock_table().0.get_mut(key) {
            state.counted_from = now;
        }
    }

    /// The schedule that is due next, and when.
    pub(crate) fn next_due(&self) -> Option<(ScheduleKey, Timestamp)> {
        let known = self.lock_table();
        let due = known.0.iter().filter_map(|(key, state)| Some((key, state.next_run()?)));
        due.min_by_key(|(_, at)| *at).map(|(key, at)| (key.clone(), at))
    }

    async fn write_fact(&self, fact: ScheduleFact) -> Result<(), StoreError> {
        self.log.append_fact(&fact).await?;
        self.lock_table().apply_fact(fact);
        self.wake.notify_one();
        Ok(())
    }

    /// A panic while the lock was held leaves nothing half done here.
    fn lock_table(&self) -> MutexGuard<'_, ScheduleTable> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use gander_agent::recipe::Values;
    use gander_domain::Seq;
    use serde_json::Value;
    use uuid::Uuid;

    use super::*;
    use gander_store::{MemoryStore, longest_log};

    fn job(id: &str) -> Schedule {
        let (recipe, values) = (Value::Null, Values::default());
        let (cron, zone, source) = ("* * * * *".to_owned(), "UTC".to_owned(), "test".to_owned());
        let (owner, since) = (Principal::owner(), Timestamp::from_micros(1));
        Schedule {
            id: id.to_owned(),
            owner,
            cron,
            zone,
            recipe,
            values,
            workspace: None,
            folder: None,
            source,
            paused: false,
            since,
        }
    }

    #[tokio::test]
    async fn a_schedule_that_ran_ten_thousand_times_has_a_short_log() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let load =
            async || Schedules::load(Arc::clone(&store), MissedRuns::Skip, Some("UTC".to_owned())).await.unwrap();
        let schedules = load().await;
        for id in ["often", "never"] {
            schedules.put(job(id)).await.unwrap();
        }
        let owner = Principal::owner();
        for run in 1..=10_000_u128 {
            let at = Timestamp::from_micros(60_000_000 * run as i64);
            schedules.record_run(&owner, "often", at, SessionId::new(Uuid::from_u128(run))).await.unwrap();
        }
        let length = store.read_scope(SCOPE, Seq::ZERO, 20_000).await.unwrap().len();
        assert!(length <= longest_log(102) + 1, "{length}");
        assert_eq!(load().await.list(&owner), schedules.list(&owner));
        assert_eq!(schedules.get(&owner, "often").unwrap().runs.len(), 100);
    }
}
