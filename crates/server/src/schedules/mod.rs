//! Schedules: recipes that run by the clock. Facts of no session, kept in their own log.

pub mod call;
mod clock;
mod job;
mod run;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use gander_domain::{Principal, Seq, SessionId, Timestamp};
use serde_json::Value;
use tokio::sync::Notify;

use crate::log::{ScopeAppend, Store, StoreError, Sync};

use clock::machine_zone;
pub use clock::{BadTime, zone};
use job::{Fact, Key};
pub use job::{Job, Missed, State};
pub use run::{keep, start};

/// The log's key.
const SCOPE: &str = "schedules";

/// Facts read in one go.
const PAGE: u32 = 1_000;

/// Schedules that one person may have.
pub const MOST: usize = 200;

/// All schedules, folded from their log.
pub struct Schedules {
    store: Arc<dyn Store>,
    jobs: Mutex<BTreeMap<Key, State>>,
    /// Told when something changed.
    wake: Notify,
    /// What happens to a time at which no server ran.
    missed: Missed,
    /// The time zone of whoever names none.
    zone: OnceLock<String>,
}

impl Schedules {
    /// Those in this store. Without a zone it is the machine's, found out when somebody wants to know.
    pub async fn load(store: Arc<dyn Store>, missed: Missed, zone: Option<String>) -> Result<Self, StoreError> {
        let (mut jobs, mut after) = (BTreeMap::new(), Seq::ZERO);
        loop {
            let page = store.read_scope(SCOPE, after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = last.seq;
            for entry in page {
                job::apply(&mut jobs, serde_json::from_value(entry.fact).unwrap_or(Fact::Unknown(Value::Null)));
            }
        }
        let zone = zone.map_or_else(OnceLock::new, OnceLock::from);
        Ok(Self { store, jobs: Mutex::new(jobs), wake: Notify::new(), missed, zone })
    }

    /// The time zone of whoever names none.
    pub fn zone(&self) -> &str {
        self.zone.get_or_init(machine_zone)
    }

    /// Somebody's schedules, by name.
    pub fn list(&self, owner: &Principal) -> Vec<State> {
        self.lock().iter().filter(|((of, _), _)| of == owner).map(|(_, state)| state.clone()).collect()
    }

    /// One of them.
    pub fn get(&self, owner: &Principal, id: &str) -> Option<State> {
        self.lock().get(&(owner.clone(), id.to_owned())).cloned()
    }

    /// True if none will ever be due.
    pub fn is_idle(&self) -> bool {
        self.lock().values().all(|state| state.job.paused)
    }

    /// Keeps one, in place of an older one of its name.
    pub async fn put(&self, job: Job) -> Result<(), StoreError> {
        self.write(Fact::Put { job: Box::new(job) }).await
    }

    /// Forgets one; false if there is none.
    pub async fn remove(&self, owner: &Principal, id: &str) -> Result<bool, StoreError> {
        if self.get(owner, id).is_none() {
            return Ok(false);
        }
        self.write(Fact::Removed { owner: owner.clone(), id: id.to_owned() }).await?;
        Ok(true)
    }

    /// It is about to run in this session. Written before it does: a crash in between loses a run, and never doubles it.
    async fn ran(&self, owner: &Principal, id: &str, at: Timestamp, session: SessionId) -> Result<(), StoreError> {
        self.write(Fact::Ran { owner: owner.clone(), id: id.to_owned(), at, session }).await
    }

    /// Its last try went wrong, in words for people.
    fn failed(&self, owner: &Principal, id: &str, reason: String) {
        if let Some(state) = self.lock().get_mut(&(owner.clone(), id.to_owned())) {
            state.trouble = Some(reason);
        }
    }

    /// A time that was missed is not made up for.
    fn pass_over(&self, key: &Key, now: Timestamp) {
        if let Some(state) = self.lock().get_mut(key) {
            state.counted_from = now;
        }
    }

    /// The schedule that is due next, and when.
    fn next(&self) -> Option<(Key, Timestamp)> {
        let jobs = self.lock();
        let due = jobs.iter().filter_map(|(key, state)| Some((key, state.next()?)));
        due.min_by_key(|(_, at)| *at).map(|(key, at)| (key.clone(), at))
    }

    async fn write(&self, fact: Fact) -> Result<(), StoreError> {
        let value = serde_json::to_value(&fact).map_err(|error| StoreError::Invalid(error.to_string()))?;
        let append = ScopeAppend { scope: SCOPE.to_owned(), at: crate::clock::now(), facts: vec![value], after: None };
        self.store.append_scope(append, Sync::Barrier).await?;
        job::apply(&mut self.lock(), fact);
        self.wake.notify_one();
        Ok(())
    }

    /// A panic while the lock was held leaves nothing half done here.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, State>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
