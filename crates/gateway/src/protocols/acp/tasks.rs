//! What is being carried out beside a client's connection, and which of it a message began.

use std::collections::HashMap;
use std::ops::Range;

use tokio::task::{AbortHandle, Id, JoinError, JoinSet};

use super::intents::FinishedIntent;

/// So many requests of one client may wait for something to happen. More are refused: each costs a look at the store
/// whenever something happens.
pub(super) const MAX_WAITS: usize = 8;

/// The tasks of one client.
#[derive(Default)]
pub(super) struct IntentTasks {
    set: JoinSet<FinishedIntent>,
    running: HashMap<Id, TaskKind>,
    /// The number of the next task that does something.
    next: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TaskKind {
    /// It does something, and is the n-th to do so.
    Work(u64),
    /// It waits for something that others do.
    Wait,
}

impl IntentTasks {
    /// Begins to do something.
    pub(super) fn spawn<F>(&mut self, work: F) -> AbortHandle
    where
        F: Future<Output = FinishedIntent> + Send + 'static,
    {
        let number = self.next;
        self.next += 1;
        self.spawn_as(TaskKind::Work(number), work)
    }

    /// Begins to wait for what others do: nothing else waits for this to end.
    pub(super) fn spawn_wait<F>(&mut self, wait: F)
    where
        F: Future<Output = FinishedIntent> + Send + 'static,
    {
        self.spawn_as(TaskKind::Wait, wait);
    }

    fn spawn_as<F>(&mut self, kind: TaskKind, task: F) -> AbortHandle
    where
        F: Future<Output = FinishedIntent> + Send + 'static,
    {
        let handle = self.set.spawn(task);
        self.running.insert(handle.id(), kind);
        handle
    }

    /// The next one that ended; `None` if there is none at all. Safe to drop at any time.
    pub(super) async fn join_next(&mut self) -> Option<Result<FinishedIntent, JoinError>> {
        let joined = self.set.join_next_with_id().await?;
        let id = joined.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
        self.running.remove(&id);
        Some(joined.map(|(_, finished)| finished))
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.set.len()
    }

    /// True if there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.set.is_empty()
    }

    /// True if another one may wait.
    pub(super) fn has_room_for_wait(&self) -> bool {
        self.running.values().filter(|kind| **kind == TaskKind::Wait).count() < MAX_WAITS
    }

    /// True if all that is left waits for others.
    pub(super) fn only_waits(&self) -> bool {
        self.running.values().all(|kind| *kind == TaskKind::Wait)
    }

    /// The number that the next task gets.
    pub(super) fn next_number(&self) -> u64 {
        self.next
    }

    /// True if none of the tasks with these numbers is left.
    pub(super) fn are_done(&self, numbers: &Range<u64>) -> bool {
        !self.running.values().any(|kind| match kind {
            TaskKind::Work(number) => numbers.contains(number),
            TaskKind::Wait => false,
        })
    }
}
