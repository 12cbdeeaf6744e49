//! Work that takes a processor for a while: on threads of its own, and only so many pieces of it at once.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::ToolError;

/// Pieces of work at once: the runtime has hundreds of such threads, the machine far fewer processors.
const MAX_AT_ONCE: usize = 4;

/// Threads for such work, shared by all tools of a server. Cheap to clone.
#[derive(Clone)]
pub(crate) struct BlockingPool(Arc<Semaphore>);

impl Default for BlockingPool {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_AT_ONCE)))
    }
}

impl BlockingPool {
    /// Does it beside the runtime. Whoever is dropped while waiting for its turn leaves no work behind; what has begun
    /// ends by its own limits, which every caller must have.
    pub(crate) async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ToolError> {
        let permit = Arc::clone(&self.0).acquire_owned().await;
        let permit = permit.map_err(|error| ToolError::failed(error.to_string()))?;
        let done = tokio::task::spawn_blocking(move || {
            let result = work();
            // The permit stays with the work, also when nobody waits for it any more.
            drop(permit);
            result
        });
        done.await.map_err(|error| ToolError::failed(format!("the work broke off: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn only_so_many_are_at_work_at_once_and_who_leaves_the_queue_leaves_nothing() {
        let (pool, at_work) = (BlockingPool::default(), Arc::new(AtomicUsize::new(0)));
        let (release, held) = mpsc::channel::<()>();
        let held = Arc::new(std::sync::Mutex::new(held));
        let mut all = Vec::new();
        for _ in 0..MAX_AT_ONCE + 3 {
            let (pool, at_work, held) = (pool.clone(), Arc::clone(&at_work), Arc::clone(&held));
            all.push(tokio::spawn(async move {
                let work = move || {
                    at_work.fetch_add(1, Ordering::SeqCst);
                    drop(held.lock().map(|held| held.recv()));
                };
                pool.run_blocking(work).await
            }));
        }
        while at_work.load(Ordering::SeqCst) < MAX_AT_ONCE {
            tokio::task::yield_now().await;
        }
        let last = all.pop().expect("there are some");
        last.abort();
        assert!(last.await.is_err_and(|error| error.is_cancelled()));
        assert_eq!(at_work.load(Ordering::SeqCst), MAX_AT_ONCE, "nobody else has begun");
        for _ in 0..all.len() {
            release.send(()).expect("somebody waits");
        }
        for work in all {
            work.await.expect("it is not aborted").expect("it does not panic");
        }
        assert_eq!(at_work.load(Ordering::SeqCst), MAX_AT_ONCE + 2);
    }
}
