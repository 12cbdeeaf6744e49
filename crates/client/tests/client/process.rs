//! Agents as real processes: found, checked, started, crashed, started again, stopped.

#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use gander_client::schema::Implementation;
use gander_client::{
    Agent, AgentLaunch, AgentStatus, CallError, ProgramSearch, STOP_TIMEOUT, SearchError, StartError, Version,
};
use gander_testkit::harness::Process;
use serde_json::{Value, json};

/// Introduces itself, tells its process id when asked anything, and does what the case says.
const AGENT: &str = r#"#!/bin/sh
if [ "$1" = --version ]; then echo "agent ${VERSION:-1.16.0}"; exit; fi
echo "a banner that is no message"
while read -r line; do
  id=${line#*\"id\":}; id=${id%%,*}
  case "$line" in
    *initialize*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"protocolVersion\":1}}" ;;
    *crash*) echo "it hurts" >&2; exit 3 ;;
    *hang*) ;;
    *pid*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"pid\":$$}}" ;;
  esac
done
"#;

/// An agent that does not care for SIGTERM or the end of its stdin.
const DEAF: &str = r#"#!/bin/sh
trap '' TERM
read -r line
echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
while :; do sleep 1; done
"#;

/// Written by another process: a file that this one holds open for writing cannot be run while it forks elsewhere.
fn program(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    let mut write = Command::new("sh");
    write.args(["-c", "cat > \"$0\" && chmod 755 \"$0\""]).arg(&path).stdin(Stdio::piped());
    let mut child = write.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    path
}

async fn start(launch: AgentLaunch) -> Result<Agent, Arc<StartError>> {
    Agent::start(launch, Implementation::new("test", "0"), Arc::new(())).await
}

async fn pid(agent: &Agent) -> Process {
    let answer: Value = agent.running_client().unwrap().request("_pid", &json!({})).await.unwrap();
    Process(answer["pid"].as_u64().unwrap().try_into().unwrap())
}

#[tokio::test]
async fn a_crash_fails_open_calls_and_a_restart_mends_it() {
    let folder = tempfile::tempdir().unwrap();
    let launch =
        AgentLaunch::from_search(program(folder.path(), "agent", AGENT)).with_minimum_version(Version(1, 16, 0));
    let mut agent = start(launch).await.unwrap();
    let mut status = agent.status_changes();
    assert!(matches!(*status.borrow_and_update(), AgentStatus::Running));
    let client = agent.running_client().unwrap().clone();
    let hanging = tokio::spawn({
        let client = client.clone();
        async move { client.prompt("hang", vec![]).await }
    });
    client.notify("_crash", &json!({})).await.unwrap();
    assert_eq!(hanging.await.unwrap().unwrap_err().json_rpc_code(), -32000);
    status.changed().await.unwrap();
    let AgentStatus::Crashed(ended) = status.borrow_and_update().clone() else { panic!("no crash") };
    assert_eq!((ended.status.unwrap().code(), ended.stderr.trim()), (Some(3), "it hurts"));
    assert_eq!(client.request::<Value>("_pid", &json!({})).await.unwrap_err().json_rpc_code(), -32000);
    agent.restart_process().await.unwrap();
    let process = pid(&agent).await;
    assert!(process.is_alive());
    let ended = agent.stop().await.unwrap();
    assert!(!process.is_alive());
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&ended.status.unwrap()), Some(15));
}

#[tokio::test]
async fn an_agent_that_does_not_listen_is_killed_after_five_seconds() {
    let folder = tempfile::tempdir().unwrap();
    let agent = start(AgentLaunch::from_search(program(folder.path(), "deaf", DEAF))).await.unwrap();
    let begun = Instant::now();
    let ended = agent.stop().await.unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&ended.status.unwrap()), Some(9));
    assert!(begun.elapsed() >= STOP_TIMEOUT && begun.elapsed() < STOP_TIMEOUT * 4, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_dropped_agent_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let agent = start(AgentLaunch::from_search(program(folder.path(), "agent", AGENT))).await.unwrap();
    let process = pid(&agent).await;
    drop(agent);
    gander_testkit::harness::eventually("the agent ends", || async { !process.is_alive() }).await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_started_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let agent = program(folder.path(), "agent", AGENT);
    let old = start(AgentLaunch::from_search(agent.clone()).with_minimum_version(Version(1, 17, 0))).await.unwrap_err();
    assert_eq!(old.to_string(), format!("{} is too old, 1.17.0 is needed: 1.16.0", agent.display()));
    let none = start(AgentLaunch::from_search(folder.path().join("none"))).await.unwrap_err();
    assert!(matches!(*none, StartError::Search(SearchError::Setting(_))), "{none}");
    let silent =
        start(AgentLaunch::from_search(program(folder.path(), "silent", "#!/bin/sh\necho broken >&2\nexit 1\n"))).await;
    let died = silent.unwrap_err();
    assert!(matches!(&*died, StartError::Died(ended) if ended.stderr == "broken\n"), "{died}");
    let later = start(AgentLaunch::from_search(program(
        folder.path(),
        "later",
        &AGENT.replace("\"protocolVersion\\\":1", "\"protocolVersion\\\":2"),
    )))
    .await;
    assert!(matches!(&*later.unwrap_err(), StartError::Hello(CallError::Version(_))));
}

#[test]
fn the_setting_comes_first_then_the_path_then_the_places() {
    let folder = tempfile::tempdir().unwrap();
    let bin = |name: &str| {
        let bin = folder.path().join(name);
        std::fs::create_dir_all(&bin).unwrap();
        bin
    };
    let (one, two, local) = (bin("one"), bin("two"), bin("home/.local/bin"));
    std::fs::write(one.join("agent"), "not executable").unwrap();
    let (set, on_path, at_home) =
        (program(&bin("set"), "agent", AGENT), program(&two, "agent", AGENT), program(&local, "agent", AGENT));
    let home = folder.path().join("home");
    let path = std::env::join_paths([one, two.clone()]).unwrap();
    let search = ProgramSearch::by_name("agent").with_home(Some(&home));
    assert_eq!(search.find_program(), Ok(at_home.clone()));
    let search = search.with_path(Some(path));
    assert_eq!(search.find_program(), Ok(on_path));
    assert_eq!(search.clone().with_setting(Some(&set)).find_program(), Ok(set));
    assert_eq!(search.clone().with_setting(Some("~/.local/bin/agent")).find_program(), Ok(at_home));
    let missing = PathBuf::from("/no/such/agent");
    assert_eq!(search.with_setting(Some(&missing)).find_program(), Err(SearchError::Setting(missing)));
    assert!(matches!(ProgramSearch::by_name("no-such-agent").find_program(), Err(SearchError::Nowhere { .. })));
}

#[tokio::test]
async fn a_program_that_never_says_its_version_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let mute = program(folder.path(), "mute", "#!/bin/sh\nexec sleep 60\n");
    let begun = Instant::now();
    let error = Version::check_minimum(&mute, Version(1, 0, 0)).await.unwrap_err();
    assert!(error.to_string().ends_with("no answer within 5s"), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(30));
}
