//! Settings that are edited while the server runs: they count, or `doctor` says that they do not.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use gander_testkit::harness::script;
use gander_testkit::upstream::Upstream;
use serde_json::{Value, json};

use crate::binary::{TestDirectory, eventually};

fn settings_file(test_directory: &TestDirectory) -> PathBuf {
    let folder = test_directory.root.path().join(".config/gander");
    std::fs::create_dir_all(&folder).unwrap();
    folder.join("gander.toml")
}

fn write_settings(test_directory: &TestDirectory, text: &str) {
    std::fs::write(settings_file(test_directory), text).unwrap();
}

/// A turn in this session whose model wants to run one command; gives the events of it.
fn run_command(test_directory: &TestDirectory, session: Option<&str>, command: &str) -> Vec<Value> {
    let call = json!([{ "tool": "shell", "args": { "command": command } }]);
    let prompt = script(&[call, json!([{ "text": "done" }])]);
    let options: Vec<&str> = session.iter().flat_map(|session| ["--session", *session]).collect();
    test_directory.json_lines(&[&["run", "--json"], &options[..], &[&prompt]].concat())
}

#[test]
fn a_rule_that_is_written_counts_at_the_next_decision_of_a_running_server() {
    let test_directory = TestDirectory::new();
    let allow = "[permissions]\nrules = [{ tool = \"shell\", pattern = \"touch *\", action = \"allow\" }]\n";
    write_settings(&test_directory, allow);
    let marker = |name: &str| test_directory.root.path().join("work").join(name);
    let events = run_command(&test_directory, None, "touch first");
    assert!(marker("first").exists(), "{events:?}");
    let session = events[0]["session"].as_str().unwrap().to_owned();
    let pid = test_directory.server_pid();
    write_settings(&test_directory, &allow.replace("allow", "deny"));
    let events = run_command(&test_directory, Some(&session), "touch second");
    assert!(!marker("second").exists(), "the rule is in the file: {events:?}");
    let doctor = test_directory.ok(&["doctor"]);
    assert!(!doctor.contains("the server uses"), "nothing differs: {doctor}");
    write_settings(&test_directory, "[permissions]\nrules = 3\n");
    assert_eq!(test_directory.run(&["run", "text"]).code, 2, "a wrong file is told to whoever uses it");
    write_settings(&test_directory, allow);
    run_command(&test_directory, Some(&session), "touch third");
    assert!(marker("third").exists(), "the rule of now counts");
    assert_eq!(test_directory.server_pid(), pid, "it is the same server");
    test_directory.stop_server();
}

#[test]
fn a_stricter_policy_counts_at_the_next_decision_of_sessions_that_chose_none() {
    let test_directory = TestDirectory::new();
    let policy = |name: &str| write_settings(&test_directory, &format!("[permissions]\npolicy = \"{name}\"\n"));
    let work = test_directory.root.path().join("work");
    let marker = |name: &str| work.join(name).exists();
    let session_of = |events: &[Value]| events[0]["session"].as_str().unwrap().to_owned();
    policy("auto");
    let plain = session_of(&run_command(&test_directory, None, "touch plain"));
    let choose =
        script(&[json!([{ "tool": "shell", "args": { "command": "touch chosen" } }]), json!([{ "text": "x" }])]);
    let chosen = session_of(&test_directory.json_lines(&["run", "--json", "--policy", "auto", &choose]));
    assert!(marker("plain") && marker("chosen"), "both ran unasked");
    // Within a turn: the first command waits until the settings are others.
    let wait = "touch begun; until [ -e others ]; do sleep 0.05; done";
    let [first, second] =
        [wait, "touch late"].map(|command| json!([{ "tool": "shell", "args": { "command": command } }]));
    let prompt = script(&[first, second, json!([{ "text": "done" }])]);
    std::thread::scope(|scope| {
        let turn = scope.spawn(|| test_directory.json_lines(&["run", "--json", "--session", &plain, &prompt]));
        eventually("the first command runs", || marker("begun"));
        policy("ask");
        std::fs::write(work.join("others"), "").unwrap();
        let events = turn.join().unwrap();
        assert!(!marker("late"), "the settings say ask: {events:?}");
    });
    run_command(&test_directory, Some(&plain), "touch later");
    run_command(&test_directory, Some(&chosen), "touch still-chosen");
    assert!(!marker("later") && marker("still-chosen"), "what was chosen for a session stays");
    policy("auto");
    run_command(&test_directory, Some(&plain), "touch again");
    assert!(marker("again"), "what it was begun with counts again");
    test_directory.stop_server();
}

#[test]
fn what_needs_a_restart_is_named_with_both_values_and_the_command() {
    let test_directory = TestDirectory::new();
    test_directory.ok(&["run", "text"]);
    write_settings(&test_directory, "[daemon]\nidle = \"33m\"\n[agent]\nmax_turns = 9\n");
    let doctor = test_directory.ok(&["doctor"]);
    let line = doctor.lines().find(|line| line.contains("daemon.idle") && line.contains("the server uses"));
    let line = line.unwrap_or_else(|| panic!("{doctor}"));
    assert!(line.contains("\"10m\"") && line.contains("\"33m\"") && line.contains("gander server restart"), "{line}");
    assert!(!doctor.contains("agent.max_turns   the server"), "{doctor}");
    test_directory.ok(&["server", "restart"]);
    let doctor = test_directory.ok(&["doctor"]);
    assert!(!doctor.contains("the server uses"), "{doctor}");
    test_directory.stop_server();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_is_configured_later_answers_what_comes_later() {
    let mut test_directory = TestDirectory::new();
    test_directory.variables.retain(|(name, _)| *name != "GANDER_MODEL");
    let test_directory = test_directory;
    let status = || {
        let text = test_directory.ok(&["doctor"]);
        text.lines().find(|line| line.trim_start().starts_with("model ")).unwrap_or_default().to_owned()
    };
    test_directory.ok(&["sessions", "list"]);
    eventually("the server has looked around", || status().contains("demo/demo"));
    let model = Upstream::start().await.unwrap();
    let file = settings_file(&test_directory);
    let text = format!(
        "[model]\ndefault = \"openai/mock\"\n[keys]\nOPENAI_API_KEY = \"sk-x\"\nOPENAI_BASE_URL = \"{}\"\n",
        model.base_url()
    );
    std::fs::write(&file, text).unwrap();
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    eventually("the server has the new model", || status().contains("openai/mock"));
    let runs = "/runs";
    let token = test_directory.ok(&["token"]).trim().to_owned();
    let link = test_directory.ok(&["open", "--print", "--listen", "127.0.0.1:0"]);
    let base = link.split("/#").next().unwrap().to_owned();
    rustls::crypto::ring::default_provider().install_default().ok();
    let message = json!({ "role": "user", "parts": [{ "content_type": "text/plain", "content": "hi" }] });
    let body = json!({ "agent_name": "gander", "mode": "sync", "input": [message] });
    let run = reqwest::Client::new().post(format!("{base}{runs}")).bearer_auth(token).json(&body).send().await.unwrap();
    let run = run.text().await.unwrap();
    assert!(run.contains('~') && model.counts().requests.load(Ordering::Relaxed) > 0, "{run}");
    test_directory.stop_server();
}
