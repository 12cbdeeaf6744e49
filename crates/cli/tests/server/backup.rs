//! A backup of a running server, restored into another data directory.
#![allow(clippy::unwrap_used)]

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use gander_testkit::harness::script;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::binary::{Running, TestDirectory, eventually};

/// A word of a session, to find it in the file.
const WORD: &str = "a-word-to-remember";

struct Served {
    base: String,
    token: String,
    http: reqwest::Client,
    serve: Running,
}

impl Served {
    fn start(test_directory: &TestDirectory) -> Self {
        rustls::crypto::ring::default_provider().install_default().ok();
        let mut serve = test_directory.start(&["serve", "--listen", "127.0.0.1:0"]);
        let line = serve.wait_for("listening on http://");
        let base = format!("http://{}", line.trim().rsplit_once("http://").unwrap().1);
        let token = test_directory.ok(&["token"]).trim().to_owned();
        Self { base, token, http: reqwest::Client::new(), serve }
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        let request = self.http.post(format!("{}{path}", self.base)).bearer_auth(&self.token).json(body);
        request.send().await.unwrap().json().await.unwrap()
    }

    async fn get(&self, path: &str) -> Value {
        let request = self.http.get(format!("{}{path}", self.base)).bearer_auth(&self.token);
        request.send().await.unwrap().json().await.unwrap()
    }

    /// The answer to a stream that goes on after this event.
    async fn stream_after(&self, path: &str, event: &str) -> reqwest::Response {
        let request = self.http.get(format!("{}{path}", self.base)).bearer_auth(&self.token);
        request.header("accept", "text/event-stream").header("last-event-id", event).send().await.unwrap()
    }

    async fn status(&self, run: &Value) -> Value {
        self.get(&format!("/runs/{}", run["run_id"].as_str().unwrap())).await["status"].clone()
    }
}

fn new_run(mode: &str, calls: &[Value]) -> Value {
    json!({ "agent_name": "gander", "mode": mode, "input": [message(&script(calls))] })
}

fn message(text: &str) -> Value {
    json!({ "role": "user", "parts": [{ "content": text }] })
}

/// The id of the last event in a stream that was read.
fn last_event_id(stream: &str) -> String {
    stream.lines().filter_map(|line| line.strip_prefix("id:")).next_back().unwrap().trim().to_owned()
}

fn with_changed_byte(from: &Path, to: &Path) {
    let mut bytes = std::fs::read(from).unwrap();
    let place = bytes.windows(WORD.len()).position(|window| window == WORD.as_bytes()).unwrap();
    bytes[place] = b'X';
    std::fs::write(to, bytes).unwrap();
}

/// What a server did before it was backed up.
struct Before {
    served: Served,
    session: String,
    /// The path of a stream, and the id of its last event.
    events: String,
    event: String,
    waiting: Value,
    slow: Value,
}

impl Before {
    /// One run is done, one waits for an answer, one is in mid-turn.
    async fn start(test_directory: &TestDirectory) -> Self {
        let served = Served::start(test_directory);
        let done = served.post("/runs", &new_run("sync", &[json!([{ "text": WORD }])])).await;
        let session = done["session_id"].as_str().unwrap().to_owned();
        let events = format!("/runs/{}/events", done["run_id"].as_str().unwrap());
        let stream = served.http.get(format!("{}{events}", served.base)).bearer_auth(&served.token);
        let stream = stream.header("accept", "text/event-stream").send().await.unwrap().text().await.unwrap();
        let event = last_event_id(&stream);
        let touch = json!([{ "tool": "shell", "args": { "command": "touch made.txt" } }]);
        let waiting = served.post("/runs", &new_run("sync", &[touch, json!([{ "text": "made" }])])).await;
        assert_eq!(waiting["status"], "awaiting", "{waiting}");
        let long = json!([{ "text": "~", "repeat": 5000, "delay_ms": 20 }]);
        let slow = served.post("/runs", &new_run("async", &[long])).await;
        assert_eq!(served.status(&slow).await, "in-progress");
        Self { served, session, events, event, waiting, slow }
    }

    /// Cursors of before are refused in each protocol's own way.
    async fn check_cursors(&self, restored: &Served) {
        let goose = format!("/sessions/{}/events", self.session);
        let here = self.served.stream_after(&self.events, &self.event).await;
        assert_eq!(here.status(), StatusCode::OK, "where it came from");
        let told = restored.stream_after(&self.events, &self.event).await;
        assert_eq!(told.status(), StatusCode::CONFLICT);
        assert!(told.text().await.unwrap().contains("log_truncated"));
        assert_eq!(restored.stream_after(&goose, &self.event).await.status(), StatusCode::CONFLICT);
    }

    /// The question is there and its answer counts; the turn that ran is not resumed.
    async fn check_runs(&self, restored: &Served, [old, new]: [&TestDirectory; 2]) {
        let run = self.waiting["run_id"].as_str().unwrap();
        let resume = json!({ "type": "message", "message": message("yes") });
        let body = json!({ "run_id": run, "mode": "sync", "await_resume": resume });
        let resumed = restored.post(&format!("/runs/{run}"), &body).await;
        assert_eq!(resumed["status"], "completed", "{resumed}");
        let session = self.waiting["session_id"].as_str().unwrap();
        let made = |directory: &TestDirectory| directory.data().join("scratch").join(session).join("made.txt").exists();
        assert_eq!([made(old), made(new)], [false, true], "its private folder came along");
        assert_eq!(restored.status(&self.slow).await, "failed", "what it did since is unknown");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_in_mid_turn_is_restored_elsewhere() {
    let first = TestDirectory::new();
    let agents = PathBuf::from(first.folder(".config/gander/agents"));
    std::fs::write(agents.join("mine.md"), "---\ndescription: mine\n---\nBe brief.\n").unwrap();
    let before = Before::start(&first).await;
    let file = first.root.path().join("backup");
    let file = file.to_str().unwrap();
    let made = first.run(&["backup", file]);
    assert!(made.code == 0 && made.err.contains("Backed up 3 sessions, 1 open question to "), "{made:?}");
    assert_eq!(std::fs::metadata(file).unwrap().mode() & 0o777, 0o600);
    assert!(first.run(&["backup", file]).err.contains("exists already (--force replaces it)"));
    assert_eq!(before.served.status(&before.slow).await, "in-progress", "the turn goes on");

    let second = TestDirectory::new();
    let restored = second.run(&["restore", file]);
    assert!(restored.code == 0 && restored.err.contains("Restored 3 sessions, 1 open question to "), "{restored:?}");
    assert!(second.root.path().join(".config/gander/agents/mine.md").exists());
    let again = Served::start(&second);
    assert_eq!(again.token, before.served.token);
    assert!(again.get(&format!("/sessions/{}", before.session)).await.to_string().contains(WORD));
    before.check_cursors(&again).await;
    before.check_runs(&again, [&first, &second]).await;
    let refused = second.run(&["restore", file]);
    assert!(refused.code == 1 && refused.err.contains("gander server stop"), "{refused:?}");
    again.serve.terminate();
    eventually("the server ends", || second.no_server());
    let refused = second.run(&["restore", file]);
    assert!(refused.code == 1 && refused.err.contains("sessions already (--force replaces them)"), "{refused:?}");
    second.ok(&["restore", file, "--force"]);
    assert_eq!(second.json_lines(&["sessions", "list", "--json"]).len(), 3);
    second.stop_server();
    before.served.serve.terminate();
}

#[test]
fn what_is_no_backup_or_a_damaged_one_changes_nothing() {
    let first = TestDirectory::new();
    first.ok(&["run", WORD]);
    let file = first.root.path().join("backup");
    first.ok(&["backup", file.to_str().unwrap()]);
    let [damaged, cut] = ["damaged", "cut"].map(|name| first.root.path().join(name));
    with_changed_byte(&file, &damaged);
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&cut, &whole[..whole.len() - 5_000]).unwrap();
    let second = TestDirectory::new();
    for wrong in [damaged, cut, first.data().join("token")] {
        let refused = second.run(&["restore", wrong.to_str().unwrap()]);
        assert!(refused.code == 1 && refused.err.contains("not a backup, or a damaged one"), "{refused:?}");
        assert!(!second.data().join("log.db").exists());
    }
    first.stop_server();
}
