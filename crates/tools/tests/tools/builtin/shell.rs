//! `shell`: what a command finds, what is kept of its output, and that nothing of it stays behind.

use std::time::{Duration, Instant};

use gander_domain::{Part, ToolContent, ToolEnd, ToolResult};
use gander_tools::{Environment, Limits, ToolEnv};
use serde_json::json;

use crate::builtin::{Bench, ToolEvent, text};

/// Longer than any test may take: whatever comes back before its end was not waited for.
const LONG: &str = "sleep 600";

/// What a test waits for at the most.
const PATIENCE: Duration = Duration::from_secs(60);

fn alive(pid: &str) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    // A zombie waits only to be counted.
    !state.is_empty() && !state.contains(") Z ")
}

async fn wait_for(what: impl Fn() -> bool) {
    let begun = Instant::now();
    while !what() {
        assert!(begun.elapsed() < PATIENCE, "waited too long");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn output_and_exit_are_told() {
    let bench = Bench::new();
    let result = |end, told: &str, code: Option<i32>| ToolResult {
        end,
        content: vec![ToolContent::Part { part: Part::text(told) }],
        raw: Some(json!({"exit_code": code})),
    };
    let run = async |command: &str| bench.call("shell", json!({"command": command})).await;
    assert_eq!(run("echo out; echo err >&2; echo end").await, result(ToolEnd::Completed, "out\nerr\nend", Some(0)));
    assert_eq!(run("true").await, result(ToolEnd::Completed, "[no output]", Some(0)));
    assert_eq!(run("echo x; exit 3").await, result(ToolEnd::Failed, "x\n[exit code 3]", Some(3)));
    assert_eq!(run("kill -9 $$").await, result(ToolEnd::Failed, "[ended by signal 9]", None));
    assert_eq!(run("cat; echo done").await, result(ToolEnd::Completed, "done", Some(0)));
    assert_eq!(run("no-such-program-here").await.raw, Some(json!({"exit_code": 127})));
}

#[tokio::test]
async fn it_runs_in_the_workspace_or_below() {
    let bench = Bench::new();
    bench.put("sub/x", "");
    assert_eq!(bench.done("shell", json!({"command": "pwd"})).await, bench.root().to_string_lossy());
    assert_eq!(bench.done("shell", json!({"command": "pwd", "cwd": "sub"})).await, bench.path("sub").to_string_lossy());
}

#[tokio::test]
async fn a_session_and_group_of_its_own_without_a_terminal() {
    let bench = Bench::new();
    let told =
        bench.done("shell", json!({"command": "ps -o pid=,pgid=,sid= -p $$; tty; exec 3</dev/tty || echo none"})).await;
    let numbers: Vec<&str> = told.lines().next().unwrap().split_whitespace().collect();
    assert!(numbers[0] == numbers[1] && numbers[1] == numbers[2], "{told}");
    assert!(told.contains("not a tty") && told.ends_with("none"), "{told}");
}

#[tokio::test]
async fn long_output_keeps_head_and_tail() {
    let bench = Bench::with(Limits { output: 64, ..Limits::default() }, ToolEnv::default());
    let told = bench.done("shell", json!({"command": "seq 1 20000"})).await;
    let (head, tail) = told.split_once("\n[… ").unwrap();
    assert!(
        head.starts_with("1\n2\n3\n") && tail.ends_with("left out …]\n19996\n19997\n19998\n19999\n20000"),
        "{told}"
    );
    let endless = bench.call("shell", json!({"command": "yes | head -c 50000000"})).await;
    assert!(text(&endless).len() < 200, "{endless:?}");
}

#[tokio::test]
async fn no_planted_secret_is_in_the_environment() {
    let secrets = [
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "GEMINI_API_KEY",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "GITHUB_TOKEN",
        "GH_TOKEN",
        "GITLAB_TOKEN",
        "NPM_TOKEN",
        "GANDER_TOKEN",
        "GANDER_DATA",
        "DATABASE_URL",
        "SSH_AUTH_SOCK",
        "GIT_ASKPASS",
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "BASH_ENV",
        "ENV",
        "PROMPT_COMMAND",
        "GIT_SSH_COMMAND",
        "GIT_EXTERNAL_DIFF",
        "PYTHONSTARTUP",
        "NODE_OPTIONS",
        "DOCKER_AUTH_CONFIG",
        "HTTP_PROXY",
        "MY_PASSWORD",
    ];
    let kept = [
        ("PATH", std::env::var("PATH").unwrap()),
        ("HOME", "/home/me".into()),
        ("LC_ALL", "C.UTF-8".into()),
        ("PAGER", "evil".into()),
    ];
    let planted = secrets.map(|name| (name.into(), "PLANTED".into()));
    let whole = planted.into_iter().chain(kept.map(|(name, value)| (name.into(), value.into())));
    let surroundings = ToolEnv { environment: Environment::harmless_variables_of(whole), ..ToolEnv::default() };
    let bench = Bench::with(Limits::default(), surroundings);
    let told = bench.done("shell", json!({"command": "env"})).await;
    assert!(!told.contains("PLANTED"), "{told}");
    for expected in ["HOME=/home/me", "LC_ALL=C.UTF-8", "GIT_PAGER=cat", "PAGER=cat", "TERM=dumb"] {
        assert!(told.lines().any(|line| line == expected), "{expected} in {told}");
    }
}

/// A bare repository among the files of the workspace could name programs for git to run.
#[tokio::test]
async fn git_runs_nothing_that_a_folder_configures() {
    let bench = Bench::new();
    bench.done("shell", json!({"command": "git init -q --bare trap && git init -q honest"})).await;
    let config = "[core]\n\tbare = false\n\tworktree = .\n\tfsmonitor = touch ran; false\n";
    bench.put("trap/config", config);
    bench.put("honest/.git/config", "[core]\n\tfsmonitor = \"touch ../ran; false\"\n");
    bench.call("shell", json!({"command": "git status", "cwd": "trap"})).await;
    bench.call("shell", json!({"command": "git status", "cwd": "honest"})).await;
    assert!(!bench.path("ran").exists() && !bench.path("trap/ran").exists());
    let plain = "cd honest && env -u GIT_CONFIG_COUNT git status";
    bench.call("shell", json!({"command": plain})).await;
    assert!(bench.path("ran").exists(), "without the guard it does run");
}

#[tokio::test]
async fn output_is_shown_while_it_runs() {
    let mut bench = Bench::new();
    let cancel = bench.context.cancel.clone();
    let (context, mut signals) =
        (bench.context.clone(), std::mem::replace(&mut bench.signals, tokio::sync::mpsc::channel(1).1));
    let id = gander_domain::ToolCallId::new(uuid::Uuid::from_u128(1));
    let call = bench
        .tools
        .describe_call(id, "shell", &json!({"command": format!("echo started; {LONG}")}), &context.workspace)
        .unwrap();
    let watch = async {
        let shown = signals.recv().await;
        cancel.cancel();
        shown
    };
    let (result, shown) = tokio::join!(bench.tools.run_tool(&call, &context), watch);
    let part = ToolContent::Part { part: Part::text("started\n") };
    assert_eq!(shown, Some(ToolEvent::Shown(vec![part])));
    assert_eq!((result.end, text(&result).as_str()), (ToolEnd::Cancelled, "started\n[cancelled]"));
}

#[tokio::test]
async fn too_slow_a_command_is_ended() {
    let bench = Bench::new();
    let result = bench.call("shell", json!({"command": format!("echo begun; {LONG}"), "timeout_seconds": 1})).await;
    assert_eq!((result.end, text(&result).as_str()), (ToolEnd::Failed, "begun\n[timed out after 1 s]"));
}

#[tokio::test]
async fn what_is_left_in_the_background_ends_with_the_command() {
    let bench = Bench::new();
    let line = format!("({LONG} & echo $! > one); setsid {LONG} & echo $! > two; echo done");
    assert_eq!(bench.done("shell", json!({"command": line})).await, "done");
    let pids = [bench.get("one"), bench.get("two")];
    wait_for(|| !pids.iter().any(|pid| alive(pid))).await;
}

/// Children, grandchildren, those that ignore being asked, and those that left for a session of their own.
const FAMILY: &str = r#"
trap '' TERM
echo $$ > leader
(trap '' TERM; echo $BASHPID > child; (trap '' TERM; echo $BASHPID > grandchild; while true; do sleep 600; done) & wait) &
setsid bash -c 'trap "" TERM; echo $$ > runaway; while true; do sleep 600; done' &
bash -c 'setsid bash -c "echo \$\$ > orphan; exec sleep 600" & exit' &
while true; do sleep 600; done
"#;

async fn family(bench: &Bench) -> Vec<String> {
    let names = ["leader", "child", "grandchild", "runaway", "orphan"];
    wait_for(|| {
        names.iter().all(|name| std::fs::read_to_string(bench.path(name)).is_ok_and(|pid| pid.ends_with('\n')))
    })
    .await;
    let pids: Vec<String> = names.iter().map(|name| bench.get(name)).collect();
    assert!(pids.iter().all(|pid| alive(pid)), "all of them live: {pids:?}");
    pids
}

#[tokio::test]
async fn cancel_kills_the_whole_family() {
    let bench = Bench::new();
    let cancel = bench.context.cancel.clone();
    let meddle = async {
        let pids = family(&bench).await;
        cancel.cancel();
        pids
    };
    let (result, pids) = tokio::join!(bench.call("shell", json!({"command": FAMILY})), meddle);
    assert_eq!(result.end, ToolEnd::Cancelled);
    wait_for(|| !pids.iter().any(|pid| alive(pid))).await;
}

#[tokio::test]
async fn a_dropped_call_kills_the_whole_family() {
    let bench = Bench::new();
    let pids = tokio::select! {
        result = bench.call("shell", json!({"command": FAMILY})) => panic!("ended by itself: {result:?}"),
        pids = family(&bench) => pids,
    };
    wait_for(|| !pids.iter().any(|pid| alive(pid))).await;
}

/// Who ends politely is let to.
#[tokio::test]
async fn a_polite_command_may_say_goodbye() {
    let bench = Bench::new();
    let cancel = bench.context.cancel.clone();
    let line = "trap 'echo goodbye; exit 0' TERM; echo > ready; while true; do sleep 0.05; done";
    let meddle = async {
        wait_for(|| bench.path("ready").exists()).await;
        cancel.cancel();
    };
    let (result, ()) = tokio::join!(bench.call("shell", json!({"command": line})), meddle);
    assert_eq!(result.end, ToolEnd::Cancelled);
    assert!(text(&result).ends_with("goodbye\n[cancelled]"), "{result:?}");
}

/// Not a test of its own: what the next one starts and kills.
#[tokio::test]
async fn a_server_in_a_process_of_its_own() {
    let Ok(ready) = std::env::var("GANDER_TEST_READY") else { return };
    let bench = Bench::new();
    let tell = async {
        let pids = family(&bench).await;
        std::fs::write(ready, pids.concat()).unwrap();
        std::future::pending::<()>().await;
    };
    tokio::join!(bench.call("shell", json!({"command": FAMILY})), tell);
}

#[tokio::test]
async fn a_killed_server_leaves_no_command_behind() {
    let folder = tempfile::tempdir().unwrap();
    let ready = folder.path().join("ready");
    let mut server = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "builtin::shell::a_server_in_a_process_of_its_own"])
        .env("GANDER_TEST_READY", &ready)
        .env("TMPDIR", folder.path())
        .spawn()
        .unwrap();
    wait_for(|| std::fs::read_to_string(&ready).is_ok_and(|pids| pids.lines().count() == 5)).await;
    server.kill().unwrap();
    server.wait().unwrap();
    let pids: Vec<String> = std::fs::read_to_string(&ready).unwrap().lines().map(str::to_owned).collect();
    wait_for(|| !pids.iter().any(|pid| alive(pid))).await;
}
