//! A small process that outlives us for a moment: if we are killed, it ends the command that we no longer can.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use rustix::process::Pid;

/// Waits for the end of its input, which nobody ever writes to: it ends when we do.
const SCRIPT: &str = r#"
read -r nothing
kill -9 -"$1"
for environment in /proc/[0-9]*/environ; do
    if tr '\0' '\n' 2>/dev/null <"$environment" | grep -qxF "$2"; then
        process=${environment#/proc/}
        kill -9 "${process%/environ}"
    fi
done 2>/dev/null
"#;

/// Watches over one command. To be dismissed once that has ended.
pub(super) struct Watchdog {
    child: Option<Child>,
}

impl Watchdog {
    /// Watches over a process group and everything that carries this entry in its environment.
    pub(super) fn over(leader: Pid, mark: &str) -> Self {
        Self { child: start(leader, mark).inspect_err(|error| tracing::warn!(%error, "no watchdog")).ok() }
    }

    /// Sends it home before its input ends: there is nothing left to bite.
    pub(super) fn dismiss(mut self) {
        let ended = self.child.as_mut().map(|child| child.kill().and_then(|()| child.wait()));
        if let Some(Err(error)) = ended {
            tracing::warn!(%error, "the watchdog does not go home");
        }
    }
}

fn start(leader: Pid, mark: &str) -> io::Result<Child> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", SCRIPT, "watchdog", &leader.as_raw_nonzero().to_string(), mark]);
    // A group of its own: what ends the terminal's programs must not end this one first.
    command.process_group(0).env_clear().env("PATH", "/usr/bin:/bin").current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}
