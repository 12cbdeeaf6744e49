//! A small process that outlives us for a moment: if we are killed, it ends the command that we no longer can.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use super::process_tree::Form;

/// Is told the leader, and waits for the end of its input: it ends when we do.
///
/// A supervisor is never killed: it alone finds what carries no mark, so killed before it was done it would leave that
/// behind, and on a busy machine no time is long enough to be sure. It is told to end everything until it is gone; that
/// it still is the same process its mark tells. What carries the mark is looked for by one program for all processes:
/// one for each would keep a machine busy for minutes when many commands end at once. Whoever forks meanwhile is met in
/// a later round.
const SCRIPT: &str = r#"
mark=$1
form=$2
read -r leader || exit 0
read -r nothing
exec 2>/dev/null
if [ "$form" = supervised ]; then
    while grep -qzxF -e "$mark" "/proc/$leader/environ" && kill -USR1 "$leader"; do
        sleep 0.1
    done
else
    kill -9 -"$leader"
fi
for round in 1 2 3 4 5; do
    for environment in $(grep -lzxF -e "$mark" /proc/[0-9]*/environ); do
        process=${environment#/proc/}
        kill -9 "${process%/environ}"
    done
    sleep 0.1
done
"#;

/// Watches over one command. To be dismissed once that has ended.
pub(crate) struct Watchdog {
    child: Option<Child>,
}

impl Watchdog {
    /// Watches over everything that carries this entry in its environment. It is there before the command is, so that
    /// there is no moment in which we can be killed and leave something behind.
    pub(crate) fn watch_marked_processes(mark: &str, form: Form) -> Self {
        Self { child: start_watchdog(mark, form).inspect_err(|error| tracing::warn!(%error, "no watchdog")).ok() }
    }

    /// Where the command itself says which process it is, before it becomes a program: if we did that afterwards, we
    /// could be killed in between.
    pub(crate) fn leader_pipe(&self) -> Option<RawFd> {
        self.child.as_ref().and_then(|child| child.stdin.as_ref()).map(AsRawFd::as_raw_fd)
    }

    /// Sends it home before its input ends: there is nothing left to bite.
    pub(crate) fn stop_watching(mut self) {
        let ended = self.child.as_mut().map(|child| child.kill().and_then(|()| child.wait()));
        if let Some(Err(error)) = ended {
            tracing::warn!(%error, "the watchdog does not go home");
        }
    }
}

fn start_watchdog(mark: &str, form: Form) -> io::Result<Child> {
    let form = match form {
        Form::Plain => "plain",
        Form::Supervised => "supervised",
    };
    let mut command = Command::new("/bin/sh");
    command.args(["-c", SCRIPT, "watchdog", mark, form]);
    // A group of its own: what ends the terminal's programs must not end this one first.
    command.process_group(0).env_clear().env("PATH", "/usr/bin:/bin").current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}
