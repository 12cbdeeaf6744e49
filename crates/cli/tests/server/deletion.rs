//! Deleting means gone: from the lists, from the disk, and what belonged to the session alone with it.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use gander_testkit::harness::{Client, script};
use serde_json::{Value, json};

use crate::binary::{TestDirectory, eventually};

/// A word that only the session that is deleted knows.
const MARKER: &str = "the-word-that-must-not-stay";

/// True if any file of the data directory holds the word: log, write-ahead log, server log, private folders.
fn on_disk(path: &Path) -> bool {
    match std::fs::read_dir(path) {
        Ok(entries) => entries.flatten().any(|entry| on_disk(&entry.path())),
        // A socket cannot be read, and a file may be gone by now.
        Err(_) => {
            std::fs::read(path).is_ok_and(|bytes| bytes.windows(MARKER.len()).any(|window| window == MARKER.as_bytes()))
        }
    }
}

fn sessions(test_directory: &TestDirectory) -> Vec<Value> {
    test_directory.json_lines(&["sessions", "list", "--json"])
}

#[test]
fn a_deleted_session_is_not_on_the_disk_any_more() {
    let test_directory = TestDirectory::new();
    let text = script(&[json!([{ "text": format!("{MARKER} ").repeat(2_000) }])]);
    let task = json!({ "name": "sub", "prompt": script(&[json!([{ "text": format!("{MARKER} as well") }])]) });
    let prompt = script(&[
        json!([{ "tool": "delegate", "args": { "tasks": [task] } }]),
        json!([{ "text": format!("{MARKER} ").repeat(2_000) }]),
    ]);
    let session = test_directory.json_lines(&["run", "--json", &prompt])[0]["session"].as_str().unwrap().to_owned();
    test_directory.ok(&["run", "--session", &session, &text]);
    test_directory.ok(&["run", "another session stays"]);
    assert_eq!(sessions(&test_directory).len(), 3, "one of them is a sub-agent's");
    assert!(on_disk(&test_directory.data()), "it was stored");
    test_directory.ok(&["sessions", "delete", &session]);
    assert_eq!(sessions(&test_directory).len(), 1, "its sub-agent's session went with it");
    eventually("its bytes are overwritten", || !on_disk(&test_directory.data()));
    let file = std::fs::metadata(test_directory.data().join("log.db")).unwrap().len();
    assert!(file < 250 << 10, "its pages were given back: {file}");
    test_directory.stop_server();
    assert!(!on_disk(&test_directory.data()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_folder_goes_with_the_last_session_that_works_there() {
    let test_directory = TestDirectory::new();
    let mut serve = test_directory.start(&["serve", "--listen", "127.0.0.1:0"]);
    let line = serve.wait_for("listening on http://");
    let base = format!("http://{}", line.trim().rsplit_once("http://").unwrap().1);
    let token = test_directory.ok(&["token"]).trim().to_owned();
    rustls::crypto::ring::default_provider().install_default().ok();
    let client = reqwest::Client::new();
    let post = async |path: String, body: Value| {
        let answer = client.post(format!("{base}{path}")).bearer_auth(&token).json(&body).send().await.unwrap();
        answer.json::<Value>().await.unwrap()
    };
    let session = post("/agent/start".to_owned(), json!({})).await["id"].as_str().unwrap().to_owned();
    let folder = test_directory.data().join("scratch").join(&session);
    std::fs::write(folder.join("note"), MARKER).unwrap();
    let forked = post(format!("/sessions/{session}/fork"), json!({ "copy": true, "truncate": false })).await;
    let copy = forked["sessionId"].as_str().unwrap_or_else(|| panic!("{forked}")).to_owned();
    test_directory.ok(&["sessions", "delete", &session]);
    assert!(folder.join("note").exists(), "its copy works there");
    test_directory.ok(&["sessions", "delete", &copy]);
    assert!(!folder.exists());
    eventually("nothing is left", || !on_disk(&test_directory.data()));
    serve.terminate();
}

#[tokio::test(flavor = "multi_thread")]
async fn prune_deletes_what_nobody_used_for_that_long() {
    let test_directory = TestDirectory::new();
    test_directory.ok(&["run", "text"]);
    test_directory.ok(&["run", "text"]);
    let folder = PathBuf::from(test_directory.folder("work"));
    let mut waiting = Client::attach(&test_directory.data().join("gander.sock"), &folder).await.unwrap();
    waiting.initialize().await.unwrap();
    let session = waiting.new_session(&folder).await.unwrap();
    let asks = script(&[json!([{ "tool": "shell", "args": { "command": "touch made.txt" } }])]);
    waiting.prompt(&session, &asks).await.unwrap();
    waiting.asked("session/request_permission").await.unwrap();
    let prune = |arguments: &[&str]| test_directory.run(&[&["sessions", "prune"], arguments].concat());
    let kept = prune(&["--older-than", "30d"]);
    assert_eq!((kept.code, kept.out.as_str()), (0, ""), "{kept:?}");
    assert!(kept.err.contains("Deleted 0 sessions"), "{kept:?}");
    let shown = prune(&["--older-than", "0s", "--dry-run"]);
    assert_eq!(shown.out.lines().count(), 3, "a header and two sessions: {shown:?}");
    assert!(shown.err.contains("Would delete 2 sessions, "), "{shown:?}");
    assert_eq!(sessions(&test_directory).len(), 3);
    let deleted = prune(&["--older-than", "0s"]);
    assert!(deleted.err.contains("Deleted 2 sessions, "), "{deleted:?}");
    let left = sessions(&test_directory);
    assert_eq!((left.len(), &left[0]["state"]), (1, &json!("waiting")), "{left:?}");
    let wrong = prune(&["--older-than", "soon"]);
    assert_eq!(wrong.code, 2, "{wrong:?}");
    let doctor = test_directory.ok(&["doctor"]);
    for part in ["disk use", "sessions", "private folders", "temporary files", "server log"] {
        assert!(doctor.contains(part), "{part}: {doctor}");
    }
    test_directory.stop_server();
}
