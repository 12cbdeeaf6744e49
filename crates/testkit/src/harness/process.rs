//! A process seen through /proc.

use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// A process, by its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process(pub u32);

/// What the kernel calls USER_HZ: 100 on every platform that is promised.
const TICKS_PER_SECOND: u64 = 100;

impl Process {
    /// Bytes in memory now.
    pub fn memory(self) -> u64 {
        self.status("VmRSS:") * 1024
    }

    /// Bytes in memory at the most.
    pub fn peak_memory(self) -> u64 {
        self.status("VmHWM:") * 1024
    }

    /// Processor time used so far, its own and the kernel's for it.
    pub fn cpu(self) -> Duration {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.0)).unwrap_or_default();
        let fields = text.rsplit_once(") ").map_or("", |(_, fields)| fields).split(' ');
        let ticks: u64 = fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
        Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND)
    }

    /// True while it exists and is no zombie.
    pub fn is_alive(self) -> bool {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.0)).unwrap_or_default();
        text.rsplit_once(") ").is_some_and(|(_, fields)| !fields.starts_with('Z'))
    }

    /// A number of /proc/PID/status.
    fn status(self, field: &str) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.0)).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(field));
        line.and_then(|rest| rest.split_whitespace().next()).and_then(|number| number.parse().ok()).unwrap_or(0)
    }
}

/// Stops a process where it is, as a machine that swaps or a debugger does.
pub fn pause(process: Process) -> io::Result<()> {
    Ok(kill_process(pid(process)?, Signal::STOP)?)
}

/// Lets a paused process go on.
pub fn resume(process: Process) -> io::Result<()> {
    Ok(kill_process(pid(process)?, Signal::CONT)?)
}

/// Asks a process to end.
pub fn terminate(process: Process) -> io::Result<()> {
    Ok(kill_process(pid(process)?, Signal::TERM)?)
}

/// Processes whose command line names this path, so that a background server can be found and ended.
pub fn processes_naming(path: &Path) -> Vec<Process> {
    let needle = path.to_string_lossy().into_owned();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let named = |id: &u32| {
        let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        *id != std::process::id() && String::from_utf8_lossy(&line).split('\0').any(|argument| argument == needle)
    };
    ids.filter(named).map(Process).collect()
}

fn pid(process: Process) -> io::Result<Pid> {
    let id = i32::try_from(process.0).ok().and_then(Pid::from_raw);
    id.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no such process"))
}
