//! Free memory goes back to the system when there is less to do: an allocator keeps what was freed for whoever allocates
//! next, each thread for itself, and a thread that sleeps keeps it for good.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use futures::future::join_all;
use tokio::runtime::Handle;

/// How often it is asked whether there is something to give back.
const EVERY: Duration = Duration::from_secs(5);

/// Threads that worked less than this since they gave back have little to give.
const LITTLE_WORK: Duration = Duration::from_millis(20);

/// Keeps a thread busy for long enough that the next one is woken for the next task.
const STIR: Duration = Duration::from_micros(200);

/// Threads for blocking work that give back in a round: as many as read the log at once, and a few more.
const BLOCKING_THREADS: usize = 6;

/// How the allocators of a process give back what is free.
#[derive(Clone, Copy, Debug)]
pub struct Allocator {
    /// Gives back what the calling thread keeps.
    pub collect_thread: fn(),
    /// Gives back what the process keeps besides.
    pub trim_process: fn(),
}

/// Lets every worker of a runtime give back its free memory now and then.
///
/// A worker does so itself, when it has nothing to do: nobody else can. So a round is announced, and sleeping workers are
/// woken by a little work, after which they go to sleep again through [`IdleMemory::parking`].
pub(super) struct IdleMemory {
    allocator: Allocator,
    /// Workers that have yet to give back in this round. Read whenever a worker parks, so it is not behind the lock.
    due: AtomicUsize,
    done: Mutex<HashSet<ThreadId>>,
}

impl IdleMemory {
    pub(super) fn new(allocator: Allocator) -> Arc<Self> {
        Arc::new(Self { allocator, due: AtomicUsize::new(0), done: Mutex::default() })
    }

    /// A worker has nothing to do.
    pub(super) fn parking(&self) {
        if self.due.load(Ordering::Relaxed) == 0 {
            return;
        }
        let first = self.done.lock().unwrap_or_else(PoisonError::into_inner).insert(std::thread::current().id());
        if first {
            (self.allocator.collect_thread)();
            self.due.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Gives back for as long as the runtime lasts. A server that does nothing is left alone.
    pub(super) async fn keep_giving_back(self: Arc<Self>) {
        let (mut before, mut was_busy) = (Duration::ZERO, false);
        loop {
            tokio::time::sleep(EVERY).await;
            let is_busy = worked() - before >= LITTLE_WORK;
            // Once more after the last work: what one thread frees of another's comes after that one gave back.
            if is_busy || was_busy || self.due.load(Ordering::Relaxed) > 0 {
                self.give_back().await;
                before = worked();
            }
            was_busy = is_busy;
        }
    }

    async fn give_back(&self) {
        let workers = Handle::current().metrics().num_workers();
        self.done.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.due.store(workers, Ordering::Relaxed);
        let stirs = (0..workers).map(|_| tokio::spawn(async { std::thread::sleep(STIR) }));
        join_all(stirs).await;
        // These are not told when they have nothing to do. What they read was freed by others, and they alone can give it back.
        let collect_thread = self.allocator.collect_thread;
        let collects = (0..BLOCKING_THREADS).map(|_| {
            tokio::task::spawn_blocking(move || {
                collect_thread();
                std::thread::sleep(STIR);
            })
        });
        join_all(collects).await;
        if tokio::task::spawn_blocking(self.allocator.trim_process).await.is_err() {
            tracing::warn!("free memory was not given back");
        }
    }
}

/// How long all workers were busy so far.
fn worked() -> Duration {
    let metrics = Handle::current().metrics();
    (0..metrics.num_workers()).map(|worker| metrics.worker_total_busy_duration(worker)).sum()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    static COLLECTED: Mutex<Vec<ThreadId>> = Mutex::new(Vec::new());
    static TRIMMED: AtomicUsize = AtomicUsize::new(0);

    #[test]
    fn every_worker_gives_back_once_in_a_round() {
        let allocator = Allocator {
            collect_thread: || COLLECTED.lock().unwrap().push(std::thread::current().id()),
            trim_process: || {
                TRIMMED.fetch_add(1, Ordering::Relaxed);
            },
        };
        let memory = IdleMemory::new(allocator);
        let parking = Arc::clone(&memory);
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(3).on_thread_park(move || parking.parking()).build().unwrap();
        runtime.block_on(async {
            for round in 1..=3 {
                memory.give_back().await;
                while memory.due.load(Ordering::Relaxed) > 0 {
                    tokio::task::yield_now().await;
                }
                assert_eq!(TRIMMED.load(Ordering::Relaxed), round);
            }
        });
        let collected = COLLECTED.lock().unwrap();
        let rounds = |thread: &ThreadId| collected.iter().filter(|collected| *collected == thread).count();
        let threads: HashSet<&ThreadId> = collected.iter().collect();
        assert_eq!(collected.len(), 9 + 3 * BLOCKING_THREADS);
        assert!(threads.iter().filter(|thread| rounds(thread) == 3).count() >= 3, "every worker, once in a round");
    }
}
