//! The connections that read, beside the one that writes.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::open::open_reader;
use crate::StoreError;

/// So many read at once.
const MAX_READERS: u32 = 4;

/// Who reads waits so long for others to end.
const READER_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection that nobody used for so long is closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// Reads on threads for blocking work: one hand-over and one answer for each read, however many rows it has.
#[derive(Clone)]
pub(super) struct SqliteReaders {
    path: PathBuf,
    idle: Arc<Mutex<Vec<IdleReader>>>,
    permits: Arc<Semaphore>,
}

struct IdleReader {
    connection: Connection,
    since: Instant,
}

impl SqliteReaders {
    /// Opens nothing yet.
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, idle: Arc::default(), permits: Arc::new(Semaphore::new(MAX_READERS as usize)) }
    }

    /// Does the work with a connection. Every statement in it sees the log as it is then.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let permit = tokio::time::timeout(READER_TIMEOUT, Arc::clone(&self.permits).acquire_owned()).await;
        let permit = permit.map_err(|_| StoreError::Busy("too many read at once".to_owned()))?;
        let permit = permit.map_err(|_| StoreError::Closed)?;
        let readers = self.clone();
        let read = tokio::task::spawn_blocking(move || {
            let connection = readers.take_connection()?;
            let result = work(&connection);
            readers.put_back(connection);
            drop(permit);
            result
        });
        read.await.map_err(|error| StoreError::Failed(format!("a read did not end: {error}")))?
    }

    fn take_connection(&self) -> Result<Connection, StoreError> {
        let idle = lock_readers(&self.idle).pop();
        idle.map_or_else(|| open_reader(&self.path), |idle| Ok(idle.connection))
    }

    fn put_back(&self, connection: Connection) {
        if !self.permits.is_closed() {
            lock_readers(&self.idle).push(IdleReader { connection, since: Instant::now() });
        }
    }

    /// Closes connections that were not used for a while.
    pub(super) fn close_idle(&self) {
        lock_readers(&self.idle).retain(|idle| idle.since.elapsed() < IDLE_TIMEOUT);
    }

    /// Waits for those who read and lets nobody begin.
    pub(super) async fn close(&self) {
        let all = self.permits.acquire_many(MAX_READERS).await;
        self.permits.close();
        drop(all);
        lock_readers(&self.idle).clear();
    }
}

/// A panic while the lock was held leaves nothing half done here.
fn lock_readers<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
