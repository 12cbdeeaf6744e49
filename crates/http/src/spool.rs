//! Large pieces of answers, kept in files without a name until their readers take them.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use uuid::Uuid;

/// All files together hold at most so much.
const MAX_SPOOLED_BYTES: u64 = 512 << 20;

/// Pieces that wait for their file, or get none, hold at most so much memory together.
const MAX_UNSAVED_BYTES: u64 = 256 << 20;

/// So many pieces are written or read at once.
const MAX_CONCURRENT_IO: usize = 4;

/// One read takes at most so much.
const READ_SIZE: u64 = 64 * 1024;

/// Where large pieces are kept.
#[derive(Debug)]
pub struct Spool {
    folder: PathBuf,
    used: AtomicU64,
    unsaved: AtomicU64,
    /// Few threads at a time wait for the disk.
    turns: Semaphore,
}

/// A piece that is kept. Its file ends with it.
#[derive(Debug)]
pub struct SpooledPiece {
    file: File,
    length: u64,
    read: u64,
    _room: SpoolReservation,
}

/// A share of the files, given back when it is dropped.
#[derive(Debug)]
struct SpoolReservation {
    spool: Arc<Spool>,
    bytes: u64,
}

/// A share of the memory, given back when it is dropped.
#[derive(Debug)]
pub struct MemoryReservation {
    spool: Arc<Spool>,
    bytes: u64,
}

impl Spool {
    pub fn new(folder: PathBuf) -> Self {
        let (used, unsaved) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { folder, used, unsaved, turns: Semaphore::new(MAX_CONCURRENT_IO) }
    }

    /// Does something that waits for the disk.
    pub fn spawn_blocking_io<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> JoinHandle<io::Result<T>> {
        let spool = Arc::clone(self);
        tokio::spawn(async move {
            let _turn = spool.turns.acquire().await;
            tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(io::Error::other(error)))
        })
    }

    /// Writes a piece into a file. Blocks.
    pub fn write_piece(self: &Arc<Self>, piece: &[u8]) -> io::Result<SpooledPiece> {
        let length = piece.len() as u64;
        let room = self.reserve(length).ok_or(io::ErrorKind::QuotaExceeded)?;
        let path = self.folder.join(format!(".answer-{}", Uuid::now_v7()));
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        std::fs::remove_file(&path)?;
        file.write_all_at(piece, 0)?;
        Ok(SpooledPiece { file, length, read: 0, _room: room })
    }

    /// A piece of this length waits in memory. `None` if too much waits already; a piece that waits alone always may.
    pub fn reserve_memory(self: &Arc<Self>, bytes: u64) -> Option<MemoryReservation> {
        let reservation = MemoryReservation { spool: Arc::clone(self), bytes };
        let before = self.unsaved.fetch_add(bytes, Ordering::Relaxed);
        (before == 0 || before.saturating_add(bytes) <= MAX_UNSAVED_BYTES).then_some(reservation)
    }

    fn reserve(self: &Arc<Self>, bytes: u64) -> Option<SpoolReservation> {
        let room = SpoolReservation { spool: Arc::clone(self), bytes };
        let used = self.used.fetch_add(bytes, Ordering::Relaxed);
        used.checked_add(bytes).is_some_and(|used| used <= MAX_SPOOLED_BYTES).then_some(room)
    }
}

impl SpooledPiece {
    /// How much of it was not read yet.
    pub fn remaining(&self) -> u64 {
        self.length - self.read
    }

    /// The next bytes; none at its end. Blocks.
    pub fn read_next(&mut self) -> io::Result<Bytes> {
        let mut bytes = vec![0; usize::try_from(self.remaining().min(READ_SIZE)).unwrap_or_default()];
        self.file.read_exact_at(&mut bytes, self.read)?;
        self.read += bytes.len() as u64;
        Ok(bytes.into())
    }
}

impl Drop for SpoolReservation {
    fn drop(&mut self) {
        self.spool.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        self.spool.unsaved.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_piece_comes_back_whole_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let spool = Arc::new(Spool::new(folder.path().to_owned()));
        let piece: Vec<u8> = (0..200_000_u32).map(|number| number.to_le_bytes()[0]).collect();
        let mut kept = spool.write_piece(&piece).unwrap();
        let mut read = Vec::new();
        while kept.remaining() > 0 {
            read.extend_from_slice(&kept.read_next().unwrap());
        }
        assert!(read == piece && kept.read_next().unwrap().is_empty());
        assert_eq!(spool.used.load(Ordering::Relaxed), 200_000);
        drop(kept);
        assert_eq!((spool.used.load(Ordering::Relaxed), folder.path().read_dir().unwrap().count()), (0, 0));
    }

    #[test]
    fn all_files_together_have_a_bound() {
        let spool = Arc::new(Spool::new(PathBuf::new()));
        let first = spool.reserve(MAX_SPOOLED_BYTES - 10).unwrap();
        assert!(spool.reserve(11).is_none() && spool.reserve(10).is_some());
        drop(first);
        assert!(spool.reserve(MAX_SPOOLED_BYTES).is_some());
    }

    #[test]
    fn pieces_that_wait_for_their_files_have_a_bound() {
        let spool = Arc::new(Spool::new(PathBuf::new()));
        let first = spool.reserve_memory(MAX_UNSAVED_BYTES - 10).unwrap();
        assert!(spool.reserve_memory(11).is_none() && spool.reserve_memory(10).is_some());
        drop(first);
        assert!(spool.reserve_memory(MAX_UNSAVED_BYTES * 2).is_some(), "alone it may");
        assert_eq!(spool.unsaved.load(Ordering::Relaxed), 0);
    }
}
