//! Bytes that a reader does not take: they wait in files, in order, and come back in small pieces.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use tokio::task::{JoinError, JoinHandle};

use crate::spool::{MemoryReservation, Spool, SpooledPiece};

/// What one piece counts among what waits: a large response does not keep a client's next requests waiting.
const COUNTED_PER_PIECE: usize = 64 * 1024;

/// Pieces that wait for their reader, oldest first.
#[derive(Debug)]
pub struct SpooledBytes {
    spool: Arc<Spool>,
    pieces: VecDeque<WaitingPiece>,
}

/// Where a piece is. Files are written and read on threads of their own.
#[derive(Debug)]
enum WaitingPiece {
    Written(JoinHandle<io::Result<StoredPiece>>),
    Stored(StoredPiece),
    Read(JoinHandle<io::Result<(StoredPiece, Bytes)>>),
}

/// A piece in its file, or in memory where no file could be made.
#[derive(Debug)]
enum StoredPiece {
    File(SpooledPiece),
    Memory { bytes: Bytes, _reservation: MemoryReservation },
}

impl SpooledBytes {
    pub fn new(spool: Arc<Spool>) -> Self {
        Self { spool, pieces: VecDeque::new() }
    }

    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// How much waits, as far as that slows down its cause.
    pub fn counted_len(&self) -> usize {
        self.pieces.len() * COUNTED_PER_PIECE
    }

    /// Adds bytes behind all others. Fails if too much waits in the whole server.
    pub fn push(&mut self, bytes: Vec<u8>) -> io::Result<()> {
        let reservation = self.spool.reserve_memory(bytes.len() as u64).ok_or(io::ErrorKind::QuotaExceeded)?;
        let spool = Arc::clone(&self.spool);
        let writing = self.spool.spawn_blocking_io(move || {
            Ok(match spool.write_piece(&bytes) {
                Ok(piece) => StoredPiece::File(piece),
                Err(error) => {
                    tracing::debug!(%error, "a response waits in memory");
                    StoredPiece::Memory { bytes: bytes.into(), _reservation: reservation }
                }
            })
        });
        self.pieces.push_back(WaitingPiece::Written(writing));
        Ok(())
    }

    /// The next bytes; none if nothing waits. Nothing is lost if it is dropped before its end.
    pub async fn next_bytes(&mut self) -> io::Result<Bytes> {
        while let Some(piece) = self.pieces.front_mut() {
            match piece {
                WaitingPiece::Written(writing) => *piece = WaitingPiece::Stored(joined_spool_task(writing.await)?),
                WaitingPiece::Read(reading) => {
                    let (stored, bytes) = joined_spool_task(reading.await)?;
                    *piece = WaitingPiece::Stored(stored);
                    if !bytes.is_empty() {
                        return Ok(bytes);
                    }
                    self.pieces.pop_front();
                }
                WaitingPiece::Stored(_) => {
                    if let Some(WaitingPiece::Stored(mut stored)) = self.pieces.pop_front() {
                        let reading = self.spool.spawn_blocking_io(move || {
                            let bytes = stored.read_next()?;
                            Ok((stored, bytes))
                        });
                        self.pieces.push_front(WaitingPiece::Read(reading));
                    }
                }
            }
        }
        Ok(Bytes::new())
    }
}

impl StoredPiece {
    /// The next bytes; none at its end. Blocks.
    fn read_next(&mut self) -> io::Result<Bytes> {
        match self {
            Self::File(piece) => piece.read_next(),
            Self::Memory { bytes, .. } => Ok(bytes.split_to(bytes.len().min(COUNTED_PER_PIECE))),
        }
    }
}

fn joined_spool_task<T>(done: Result<io::Result<T>, JoinError>) -> io::Result<T> {
    done.unwrap_or_else(|error| Err(io::Error::other(error)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test]
    async fn pieces_come_back_in_order_from_files_and_from_memory() {
        let folder = tempfile::tempdir().unwrap();
        for place in [folder.path().to_owned(), folder.path().join("none")] {
            let mut spooled = SpooledBytes::new(Arc::new(Spool::new(place)));
            let pieces = [vec![1; 200_000], vec![2; 3], vec![3; 70_000]];
            pieces.iter().for_each(|piece| spooled.push(piece.clone()).unwrap());
            assert_eq!(spooled.counted_len(), 3 * COUNTED_PER_PIECE);
            let mut read = Vec::new();
            loop {
                let bytes = spooled.next_bytes().await.unwrap();
                if bytes.is_empty() {
                    break;
                }
                assert!(bytes.len() <= COUNTED_PER_PIECE);
                read.extend_from_slice(&bytes);
            }
            assert!(read == pieces.concat() && spooled.is_empty());
        }
    }
}
