//! Starts a command in a session of its own that ends with this process.
//!
//! The one place with unsafe code: what happens between fork and exec cannot be asked for otherwise.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};

use rustix::process::Pid;

/// Starts the command as leader of a new session and process group, which says its number where it is told to.
///
/// On Linux the kernel kills it when the calling *thread* ends, so that thread must wait for it. The descriptor must
/// stay open until then.
pub(crate) fn spawn_in_own_group(command: &mut Command, leader_pipe: Option<RawFd>) -> io::Result<Child> {
    let parent = std::process::id();
    // SAFETY: between fork and exec only system calls are made, without allocation or locks.
    unsafe { command.pre_exec(move || prepare_spawned_child(parent, leader_pipe)) };
    command.spawn()
}

fn prepare_spawned_child(parent: u32, leader_pipe: Option<RawFd>) -> io::Result<()> {
    rustix::process::setsid()?;
    end_spawned_with_parent(parent)?;
    if let Some(leader_pipe) = leader_pipe {
        // SAFETY: whoever starts the command keeps it open, and this process has its own copy.
        let leader_pipe = unsafe { BorrowedFd::borrow_raw(leader_pipe) };
        let mut line = [0; LONGEST_LINE];
        rustix::io::write(leader_pipe, format_pid(rustix::process::getpid(), &mut line))?;
    }
    Ok(())
}

/// Digits of any process's number, and the end of a line.
const LONGEST_LINE: usize = 12;

/// The number as a line, written from its end: there is no allocation here.
fn format_pid(pid: Pid, line: &mut [u8; LONGEST_LINE]) -> &[u8] {
    let mut rest = pid.as_raw_nonzero().get().unsigned_abs();
    let mut start = LONGEST_LINE - 1;
    line[start] = b'\n';
    while rest > 0 && start > 0 {
        start -= 1;
        line[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    &line[start..]
}

#[cfg(target_os = "linux")]
fn end_spawned_with_parent(parent: u32) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    let orphaned = rustix::process::getppid().is_none_or(|pid| pid.as_raw_nonzero().get().unsigned_abs() != parent);
    match orphaned {
        // The parent died before it could be watched.
        true => Err(io::ErrorKind::BrokenPipe.into()),
        false => Ok(()),
    }
}

#[cfg(not(target_os = "linux"))]
fn end_spawned_with_parent(_parent: u32) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_number_is_one_line() {
        for raw in [1, 9, 10, 4_194_304, i32::MAX] {
            let mut line = [0; LONGEST_LINE];
            let said = format_pid(Pid::from_raw(raw).unwrap(), &mut line).to_vec();
            assert_eq!(String::from_utf8(said).unwrap(), format!("{raw}\n"));
        }
    }
}
