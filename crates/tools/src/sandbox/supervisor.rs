//! A process above a fenced command that ends only when everything the command started is dead.
//!
//! Orphans come back to it, however far they went from their parents and whatever they did to their environment. It
//! stands outside of the policy, where no command reaches it.
#![allow(unsafe_code)]

use std::ffi::OsString;
use std::io;
use std::mem::MaybeUninit;
use std::process::{Child, Command};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

/// What it hears. Those that ask to end are for the command, which hears them too; `USR1` says that nobody wants the
/// command any more, whether it comes from the kernel, the server or the server's watchdog.
const HEARD: [libc::c_int; 5] = [libc::SIGCHLD, libc::SIGUSR1, libc::SIGTERM, libc::SIGINT, libc::SIGHUP];

/// Between two looks at who is left.
const ROUND: Duration = Duration::from_millis(2);

/// Runs the command to its end, ends what it left behind, and ends as it did. Returns only if it cannot be started.
pub fn supervise_command(command: &[OsString]) -> io::Error {
    match fork_supervised_and_wait(command) {
        Ok(Some(status)) => exit_like_supervised(status),
        Ok(None) => std::process::exit(137),
        Err(error) => error,
    }
}

/// How the command ended; `None` if nobody wants it any more.
fn fork_supervised_and_wait(command: &[OsString]) -> io::Result<Option<WaitStatus>> {
    let [program, arguments @ ..] = command else { return Err(io::Error::other("there is no command")) };
    let signals = block_supervisor_signals()?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    // Killed together with the server it could end nobody. Until now it would have been, so there is no gap.
    rustix::process::set_parent_process_death_signal(Some(Signal::USR1))?;
    let child = Command::new(program).args(arguments).spawn();
    let child = child.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", program.display())))?;
    let status = wait_for_supervised_exit(&child, &signals);
    kill_supervised_descendants();
    Ok(status)
}

fn wait_for_supervised_exit(child: &Child, signals: &libc::sigset_t) -> Option<WaitStatus> {
    let child = Pid::from_child(child);
    loop {
        let mut heard = 0;
        // SAFETY: both are valid for the call.
        let failed = unsafe { libc::sigwait(signals, &raw mut heard) };
        if failed != 0 || heard == libc::SIGUSR1 {
            return None;
        }
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == child => return Some(status),
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => break,
            }
        }
    }
}

/// Kills every child until there is none: the children of a dead one become ours.
fn kill_supervised_descendants() {
    loop {
        for pid in supervised_child_processes() {
            if let Err(error) = rustix::process::kill_process(pid, Signal::KILL) {
                tracing::trace!(%error, "process is gone already");
            }
        }
        // The list leaves out some while others of it end: whoever waited for one of those would wait for ever.
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => std::thread::sleep(ROUND),
            Err(_) => return,
        }
    }
}

fn supervised_child_processes() -> Vec<Pid> {
    let own = std::process::id();
    let listed = std::fs::read_to_string(format!("/proc/self/task/{own}/children"));
    let numbers: Vec<i32> = match listed {
        Ok(listed) => listed.split_whitespace().filter_map(|number| number.parse().ok()).collect(),
        Err(_) => {
            let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
            let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
            numbers.filter(|number| parent_of_supervised(*number) == Some(own)).collect()
        }
    };
    numbers.into_iter().filter_map(Pid::from_raw).collect()
}

/// The second word behind the name, which may hold anything.
fn parent_of_supervised(process: i32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

fn exit_like_supervised(status: WaitStatus) -> ! {
    if let Some(signal) = status.terminating_signal() {
        // SAFETY: only numbers; the signal ends this very process, which has one thread.
        unsafe {
            let mut none = MaybeUninit::<libc::sigset_t>::uninit();
            libc::sigemptyset(none.as_mut_ptr());
            libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut());
            libc::raise(signal);
        }
    }
    std::process::exit(status.exit_status().unwrap_or(137))
}

/// They wait until they are asked for. The command does not inherit that: starting it clears the mask.
fn block_supervisor_signals() -> io::Result<libc::sigset_t> {
    let mut signals = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the set is initialised by the first call and valid for the others.
    unsafe {
        libc::sigemptyset(signals.as_mut_ptr());
        for signal in HEARD {
            libc::sigaddset(signals.as_mut_ptr(), signal);
        }
        match libc::sigprocmask(libc::SIG_BLOCK, signals.as_ptr(), std::ptr::null_mut()) {
            0 => Ok(signals.assume_init()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
