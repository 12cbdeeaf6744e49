//! Schedules: recipes that run by the clock. Facts of no session, kept in their own log.

pub(crate) mod cron;
mod job;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use gander_domain::{Principal, SessionId, Timestamp};
use gander_store::{FactLog, Store, StoreError};
use tokio::sync::Notify;

use cron::machine_time_zone;
pub use cron::{ScheduleTimeError, canonical_time_zone};
pub(crate) use job::ScheduleKey;
pub use job::{MissedRuns, Schedule, ScheduleState};
use job::{ScheduleFact, ScheduleTable};

/// The log's key.
pub(crate) const SCOPE: &str = "schedules";

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

    /// The same for a time at which it is due. False if it is not any more: another node runs it, or somebody changed it.
    ///
    /// Of several nodes one writes right behind what it has read; the others find that and look again.
    pub(crate) async fn claim_due_run(
        &self,
        (owner, id): &ScheduleKey,
        due: Timestamp,
        at: Timestamp,
        session: SessionId,
    ) -> Result<bool, StoreError> {
        loop {
            let folded = self.log.read_folded().await?;
            self.replace_table(&folded.state);
            if self.get(owner, id).and_then(|state| state.next_run()) != Some(due) {
                return Ok(false);
            }
            let fact = ScheduleFact::Ran { owner: owner.clone(), id: id.clone(), at, session };
            match self.log.append_after(&folded, &fact).await {
                Ok(_) => {
                    self.lock_table().apply_fact(fact);
                    return Ok(true);
                }
                Err(StoreError::Gap { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads the log again: another node wrote to it.
    pub(crate) async fn refresh(&self) -> Result<(), StoreError> {
        let state = self.log.fold_all().await?;
        self.replace_table(&state);
        self.wake.notify_one();
        Ok(())
    }

    /// Takes over what the log says. Failures and times that were skipped are known to this process alone, and stay.
    fn replace_table(&self, stored: &ScheduleTable) {
        let mut known = self.lock_table();
        let kept = |(key, state): (&ScheduleKey, &ScheduleState)| {
            let mut state = state.clone();
            if let Some(before) = known.0.get(key).filter(|before| before.job == state.job) {
                state.counted_from = state.counted_from.max(before.counted_from);
                state.last_error = before.last_error.clone().filter(|_| state.runs.back() == before.runs.back());
            }
            (key.clone(), state)
        };
        let table = stored.0.iter().map(kept).collect();
        known.0 = table;
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
    use gander_store::{MemoryStore, longest_fact_log};

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
    async fn of_two_nodes_one_runs_what_is_due_and_both_know() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let load = async || Schedules::load(Arc::clone(&store), MissedRuns::Run, Some("UTC".to_owned())).await.unwrap();
        let one = load().await;
        one.put(job("minutely")).await.unwrap();
        let two = load().await;
        let session = |number| SessionId::new(Uuid::from_u128(number));
        for round in 1..=20_i64 {
            let (key, due) = one.next_due().unwrap();
            let at = Timestamp::from_micros(due.as_micros() + round);
            let (first, second) = tokio::join!(
                one.claim_due_run(&key, due, at, session(1)),
                two.claim_due_run(&key, due, at, session(2))
            );
            assert_eq!(u8::from(first.unwrap()) + u8::from(second.unwrap()), 1, "round {round}");
            one.refresh().await.unwrap();
            two.refresh().await.unwrap();
            assert_eq!(one.list(&Principal::owner()), two.list(&Principal::owner()));
        }
        assert_eq!(one.get(&Principal::owner(), "minutely").unwrap().runs.len(), 20);
        assert!(two.remove(&Principal::owner(), "minutely").await.unwrap());
        one.refresh().await.unwrap();
        assert_eq!(one.next_due(), None);
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
        assert!(length <= longest_fact_log(102) + 1, "{length}");
        assert_eq!(load().await.list(&owner), schedules.list(&owner));
        assert_eq!(schedules.get(&owner, "often").unwrap().runs.len(), 100);
    }
}
