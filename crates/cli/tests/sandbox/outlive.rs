//! A server that is killed leaves no command behind, at whatever moment that happens and however busy the machine is.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use gander_domain::ToolCallId;
use gander_tools::sandbox::{Bubblewrap, Sandbox, SandboxPaths};
use gander_tools::{FileAccess, Limits, LocalHost, ProtectedChanges, ToolContext, ToolEnv, Toolbox};
use rustix::process::{Pid, Signal};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Kills of each kind.
const KILLS: u64 = 25;

/// How long something may still be there: what watches over commands looks for them in rounds.
const PATIENCE: Duration = Duration::from_secs(60);

/// Commands at the same time.
const COMMANDS: u128 = 3;

/// One part of it stays beside the command, one leaves every trace of it behind.
const LINE: &str = "env -i setsid bash -c 'exec -a TOKEN-free sleep 600' & bash -c 'exec -a TOKEN-held sleep 600'";

#[test]
fn a_killed_server_leaves_no_command_behind() {
    for bubblewrap in [Bubblewrap::IfItWorks, Bubblewrap::Never] {
        let Some(folder) = folder(bubblewrap) else { continue };
        for kill in 0..KILLS {
            let token = format!("gander-outlive-{}", Uuid::now_v7().simple());
            let mut server = start(folder.path(), bubblewrap, &token);
            // The first instants are the ones that matter: commands are half started then.
            std::thread::sleep(Duration::from_micros(kill * kill * 150));
            server.kill().expect("it is our child");
            server.wait().expect("it is our child");
            let mut left = Vec::new();
            let gone = wait(|| {
                left = living(&token);
                left.is_empty()
            });
            assert!(gone, "{bubblewrap:?}, kill {kill}: still there: {left:#?}");
        }
        println!("{KILLS} kills of a server leave nothing behind: {bubblewrap:?}");
    }
}

/// Only a supervisor finds what left every trace behind. One that does not get to run for long is as on a machine that
/// is busy: whoever ends a command must not kill it before it has done its work.
#[test]
fn a_supervisor_that_is_slow_still_ends_what_a_dropped_call_started() {
    for bubblewrap in [Bubblewrap::IfItWorks, Bubblewrap::Never] {
        let Some(folder) = folder(bubblewrap) else { continue };
        let token = format!("gander-outlive-{}", Uuid::now_v7().simple());
        let surroundings = ToolEnv { sandbox: sandbox(folder.path(), bubblewrap), ..ToolEnv::default() };
        let tools = Arc::new(Toolbox::with_env(Limits::default(), surroundings));
        let (line, place) = (LINE.replace("TOKEN", &token), folder.path().to_string_lossy().into_owned());
        let runtime = tokio::runtime::Runtime::new().expect("a runtime can be made");
        let call = runtime.spawn(run(tools, place, line, 0));
        wait_for("the command is there", || started(&token) == 2);
        let stopped = stop(&token, 1);
        call.abort();
        wait_for("the call is dropped", || call.is_finished());
        // What a dropped call does, it has done when it is over.
        stopped.into_iter().for_each(|pid| signal(pid, Signal::CONT));
        wait_for("nothing is left", || living(&token).is_empty());
    }
}

#[test]
fn a_supervisor_that_is_slow_still_ends_what_a_killed_server_started() {
    for bubblewrap in [Bubblewrap::IfItWorks, Bubblewrap::Never] {
        let Some(folder) = folder(bubblewrap) else { continue };
        let token = format!("gander-outlive-{}", Uuid::now_v7().simple());
        let mut server = start(folder.path(), bubblewrap, &token);
        wait_for("the commands are there", || started(&token) == 2 * COMMANDS as usize);
        let stopped = stop(&token, COMMANDS as usize);
        let watchdogs: Vec<i32> =
            children(server.id()).into_iter().filter(|pid| command_line(*pid).contains("watchdog")).collect();
        assert_eq!(watchdogs.len(), COMMANDS as usize);
        server.kill().expect("it is our child");
        server.wait().expect("it is our child");
        watchdogs.into_iter().for_each(look_on);
        stopped.into_iter().for_each(|pid| signal(pid, Signal::CONT));
        wait_for("nothing is left", || living(&token).is_empty());
    }
}

/// Until a watchdog has ended, or has gone so many rounds that it would have lost its patience if it had any.
fn look_on(watchdog: i32) {
    let mut seen = BTreeSet::new();
    wait_for("the watchdog works", || {
        seen.extend(children(watchdog.unsigned_abs()));
        seen.len() >= 60 || command_line(watchdog).is_empty()
    });
}

/// The server that is killed: this very program, started again.
#[test]
fn server() {
    let Some(token) = std::env::var_os("OUTLIVE") else { return };
    let folder = std::env::var("FOLDER").expect("whoever starts it says where");
    let bubblewrap = if std::env::var_os("ALONE").is_some() { Bubblewrap::Never } else { Bubblewrap::IfItWorks };
    let sandbox = sandbox(Path::new(&folder), bubblewrap);
    assert!(sandbox.is_in_force());
    let surroundings = ToolEnv { sandbox, ..ToolEnv::default() };
    let tools = Arc::new(Toolbox::with_env(Limits::default(), surroundings));
    let line = LINE.replace("TOKEN", &token.to_string_lossy());
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be made");
    println!("READY");
    runtime.block_on(async {
        let runs = (0..COMMANDS).map(|number| run(Arc::clone(&tools), folder.clone(), line.clone(), number));
        futures::future::join_all(runs).await;
    });
}

async fn run(tools: Arc<Toolbox>, folder: String, line: String, number: u128) {
    let workspace = Arc::new(FileAccess::default().open(&Path::new(&folder).join("ws"), &[]).expect("it is there"));
    let (signals, _heard) = mpsc::channel(64);
    let host = Arc::new(LocalHost::new(workspace.clone(), 1 << 20));
    let (cancel, protected_changes) = (CancellationToken::new(), ProtectedChanges::Allowed);
    let context = ToolContext { workspace, host, signals, cancel, protected_changes };
    let id = ToolCallId::new(Uuid::from_u128(number));
    let call =
        tools.describe_call(id, "shell", &json!({ "command": line }), &context.workspace).expect("it is a command");
    tools.run_tool(&call, &context).await;
}

fn sandbox(folder: &Path, bubblewrap: Bubblewrap) -> Sandbox {
    for name in ["ws", "home", "scratch"] {
        std::fs::create_dir_all(folder.join(name)).expect("folders can be made");
    }
    let bounds = SandboxPaths::for_home(Some(&folder.join("home")), folder.join("scratch"), &[]);
    Sandbox::new(env!("CARGO_BIN_EXE_gander").into(), move || bounds, bubblewrap)
}

/// Returns when it is about to start its commands.
fn start(folder: &Path, bubblewrap: Bubblewrap, token: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
    command.args(["--exact", "outlive::server", "--nocapture"]).env("OUTLIVE", token).env("FOLDER", folder);
    if bubblewrap == Bubblewrap::Never {
        command.env("ALONE", "1");
    }
    let mut server = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("it can be started");
    let mut said = BufReader::new(server.stdout.take().expect("it was asked for")).lines();
    let ready = said.by_ref().map_while(Result::ok).any(|line| line.contains("READY"));
    assert!(ready, "it did not start");
    server
}

/// A folder for what is tried; none if no layer of the sandbox is in force.
fn folder(bubblewrap: Bubblewrap) -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder can be made");
    let in_force = sandbox(folder.path(), bubblewrap).is_in_force();
    if !in_force {
        gander_testkit::skip::skipped("sandbox::layers", "no layer is in force");
    }
    in_force.then_some(folder)
}

/// Processes that belong to the commands, by their arguments, and how each of them is.
fn living(token: &str) -> Vec<String> {
    let of_token = |pid: &i32| command_line(*pid).contains(token);
    processes().into_iter().filter(of_token).map(|pid| format!("{pid} {} {}", state(pid), command_line(pid))).collect()
}

/// How many of the command's own parts run.
fn started(token: &str) -> usize {
    let parts = ["free", "held"].map(|part| format!("{token}-{part} "));
    let is_part = |pid: &i32| parts.iter().any(|part| command_line(*pid).starts_with(part));
    processes().iter().filter(|pid| is_part(pid)).count()
}

/// Supervisors, which from now on do nothing until they are told to continue.
fn stop(token: &str, count: usize) -> Vec<i32> {
    let supervises = |pid: &i32| command_line(*pid).contains("--supervise") && command_line(*pid).contains(token);
    let supervisors: Vec<i32> = processes().into_iter().filter(supervises).collect();
    assert_eq!(supervisors.len(), count);
    supervisors.iter().for_each(|pid| signal(*pid, Signal::STOP));
    wait_for("they are stopped", || supervisors.iter().all(|pid| state(*pid).starts_with("T ")));
    supervisors
}

fn signal(pid: i32, signal: Signal) {
    let pid = Pid::from_raw(pid).expect("it is a process");
    // One that was killed meanwhile shows in what is left.
    rustix::process::kill_process(pid, signal).ok();
}

fn processes() -> Vec<i32> {
    let all = std::fs::read_dir("/proc").expect("there is /proc").flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn children(process: u32) -> Vec<i32> {
    let parent = |pid: &i32| state(*pid).split_whitespace().nth(1).is_some_and(|parent| parent == process.to_string());
    processes().into_iter().filter(parent).collect()
}

fn command_line(pid: i32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default().replace('\0', " ")
}

/// Its state and its parent.
fn state(pid: i32) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let behind = stat.rsplit_once(") ").map_or("", |(_, behind)| behind);
    behind.split_whitespace().take(2).collect::<Vec<_>>().join(" ")
}

fn wait_for(what: &str, is_so: impl FnMut() -> bool) {
    assert!(wait(is_so), "not so in {PATIENCE:?}: {what}");
}

fn wait(mut is_so: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if is_so() {
            return true;
        }
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
