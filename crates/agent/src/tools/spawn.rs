//! Starts a command in a session of its own that ends with this process.
//!
//! The one place with unsafe code: what happens between fork and exec cannot be asked for otherwise.
#![allow(unsafe_code)]

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};

/// Starts the command as leader of a new session and process group.
///
/// On Linux the kernel kills it when the calling *thread* ends, so that thread must wait for it.
pub(super) fn spawn(command: &mut Command) -> io::Result<Child> {
    let parent = std::process::id();
    // SAFETY: between fork and exec only system calls are made, without allocation or locks.
    unsafe { command.pre_exec(move || prepare(parent)) };
    command.spawn()
}

fn prepare(parent: u32) -> io::Result<()> {
    rustix::process::setsid()?;
    end_with(parent)
}

#[cfg(target_os = "linux")]
fn end_with(parent: u32) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    let orphaned = rustix::process::getppid().is_none_or(|pid| pid.as_raw_nonzero().get().unsigned_abs() != parent);
    match orphaned {
        // The parent died before it could be watched.
        true => Err(io::ErrorKind::BrokenPipe.into()),
        false => Ok(()),
    }
}

#[cfg(not(target_os = "linux"))]
fn end_with(_parent: u32) -> io::Result<()> {
    Ok(())
}
