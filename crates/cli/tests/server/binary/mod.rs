//! Runs the real binary on a data directory of its own, and ends whatever it left behind.
#![allow(dead_code, clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Longer than anything here should take, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A data directory, and the commands on it.
pub struct TestDirectory {
    pub root: tempfile::TempDir,
    data: &'static str,
    pub variables: Vec<(&'static str, String)>,
}

/// How a command ended.
#[derive(Debug)]
pub struct Ended {
    pub code: i32,
    pub out: String,
    pub err: String,
}

/// A command that still runs.
pub struct Running {
    pub child: Child,
    out: BufReader<std::process::ChildStdout>,
    read: String,
}

impl TestDirectory {
    pub fn new() -> Self {
        Self::named("data")
    }

    /// With a data directory of this name.
    pub fn named(data: &'static str) -> Self {
        let variables = vec![("GANDER_MODEL", "demo/demo".to_owned())];
        Self { root: tempfile::tempdir().unwrap(), data, variables }
    }

    pub fn with(mut self, name: &'static str, value: &str) -> Self {
        self.variables.push((name, value.to_owned()));
        self
    }

    pub fn data(&self) -> PathBuf {
        self.root.path().join(self.data)
    }

    pub fn folder(&self, name: &str) -> String {
        let path = self.root.path().join(name);
        std::fs::create_dir_all(&path).unwrap();
        path.canonicalize().unwrap().to_str().unwrap().to_owned()
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        self.command_of(Path::new(env!("CARGO_BIN_EXE_gander")), arguments)
    }

    fn command_of(&self, binary: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary);
        command.args(arguments).arg("--data").arg(self.data()).current_dir(self.folder("work"));
        command.env_clear().env("HOME", self.root.path()).env("PATH", "/usr/bin:/bin");
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ended {
        self.run_with_input(arguments, "")
    }

    pub fn run_with_input(&self, arguments: &[&str], input: &str) -> Ended {
        let mut command = self.command(arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // A command that reads no input may be gone already.
        child.stdin.take().unwrap().write_all(input.as_bytes()).ok();
        ended(child.wait_with_output().unwrap())
    }

    /// Runs a command that must succeed.
    pub fn ok(&self, arguments: &[&str]) -> String {
        let ended = self.run(arguments);
        assert_eq!(ended.code, 0, "{arguments:?}: {ended:?}");
        ended.out
    }

    pub fn json_lines(&self, arguments: &[&str]) -> Vec<Value> {
        self.ok(arguments).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub fn start(&self, arguments: &[&str]) -> Running {
        Self::spawn(self.command(arguments))
    }

    /// Starts the server that has agents for conformance kits.
    pub fn start_conformance(&self, arguments: &[&str]) -> Running {
        let binary = gander_testkit::harness::conformance_binary(Path::new(env!("CARGO_BIN_EXE_gander")));
        Self::spawn(self.command_of(&binary, arguments))
    }

    fn spawn(mut command: Command) -> Running {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Running { child, out, read: String::new() }
    }

    /// The process of the server on this directory, found by its command line.
    pub fn server_pids(&self) -> Vec<u32> {
        let data = self.data();
        let processes =
            std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let serves = |pid: &u32| {
            let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let words: Vec<&str> = line.split('\0').collect();
            words.contains(&"serve") && words.iter().any(|word| *word == data.to_str().unwrap())
        };
        processes.filter(serves).collect()
    }

    pub fn server_pid(&self) -> u32 {
        let pids = self.server_pids();
        assert_eq!(pids.len(), 1, "servers: {pids:?}");
        pids[0]
    }

    pub fn no_server(&self) -> bool {
        self.server_pids().is_empty()
    }

    pub fn stop_server(&self) {
        for pid in self.server_pids() {
            signal(pid, Signal::TERM);
        }
        eventually("the server ends", || self.no_server());
    }

    pub fn listening_ports(&self, pid: u32) -> usize {
        let sockets: Vec<String> = std::fs::read_dir(format!("/proc/{pid}/fd"))
            .unwrap()
            .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok()?.to_str().map(str::to_owned))
            .filter_map(|link| Some(link.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
            .collect();
        let tables = ["tcp", "tcp6"]
            .map(|table| std::fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default());
        let listening = |line: &&str| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            fields.get(3) == Some(&"0A")
                && fields.get(9).is_some_and(|inode| sockets.iter().any(|socket| socket == inode))
        };
        tables.iter().flat_map(|table| table.lines()).filter(listening).count()
    }
}

impl Drop for TestDirectory {
    fn drop(&mut self) {
        for pid in self.server_pids() {
            signal(pid, Signal::KILL);
        }
    }
}

impl Running {
    /// Reads stdout until a line holds this text, and gives that line.
    pub fn wait_for(&mut self, text: &str) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.out.read_line(&mut line).unwrap(), 0, "ended without {text}: {}", self.read);
            self.read.push_str(&line);
            if line.contains(text) {
                return line;
            }
        }
    }

    pub fn write(&mut self, text: &str) {
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(text.as_bytes()).unwrap();
        stdin.flush().unwrap();
    }

    pub fn interrupt(&self) {
        signal(self.child.id(), Signal::INT);
    }

    pub fn terminate(&self) {
        signal(self.child.id(), Signal::TERM);
    }

    pub fn kill(&self) {
        signal(self.child.id(), Signal::KILL);
    }

    pub fn is_over(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Closes stdin and waits for the end.
    pub fn wait(mut self) -> Ended {
        drop(self.child.stdin.take());
        self.out.read_to_string(&mut self.read).unwrap();
        let mut ended = ended(self.child.wait_with_output().unwrap());
        ended.out = self.read;
        ended
    }
}

/// Asks again and again until it is so.
pub fn eventually(what: &str, mut so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !so() {
        assert!(started.elapsed() < PATIENCE, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, signal).ok();
}

fn ended(output: std::process::Output) -> Ended {
    Ended {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}
