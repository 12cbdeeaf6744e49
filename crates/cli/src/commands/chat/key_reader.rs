//! The keyboard: one thread that reads stdin for as long as the chat lasts.

use std::io;
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::mpsc;

use super::key_parser::{Key, KeyParser};

/// Keys that wait while the screen is drawn.
const KEY_CAPACITY: usize = 256;

/// What follows an escape so soon belongs to it.
const ESCAPE_NANOSECONDS: i64 = 50_000_000;

/// Reads keys in a thread of its own, which blocks until the process ends: nothing waits for it.
pub(super) fn read_keys() -> mpsc::Receiver<Key> {
    let (sender, receiver) = mpsc::channel(KEY_CAPACITY);
    std::thread::spawn(move || {
        let (mut parser, mut bytes) = (KeyParser::default(), [0; 4096]);
        loop {
            let keys = match parser.is_pending() && !is_key_ready() {
                true => parser.flush(),
                // Without a buffer: what was read is parsed, so that only the terminal can hold more.
                false => match rustix::io::read(io::stdin(), &mut bytes) {
                    Ok(0) => return,
                    Ok(length) => parser.push(&bytes[..length]),
                    Err(rustix::io::Errno::INTR) => continue,
                    Err(_) => return,
                },
            };
            for key in keys {
                if sender.blocking_send(key).is_err() {
                    return;
                }
            }
        }
    });
    receiver
}

/// True if more comes at once.
fn is_key_ready() -> bool {
    let stdin = io::stdin();
    let mut polled = [PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN)];
    let timeout = Timespec { tv_sec: 0, tv_nsec: ESCAPE_NANOSECONDS };
    poll(&mut polled, Some(&timeout)).is_ok_and(|ready| ready > 0)
}
