//! A background server of another version is replaced while a turn runs: the turn is not lost, and no other program notices.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use gander_testkit::harness::script;
use serde_json::{Value, json};

use crate::binary::{Running, TestDirectory, eventually};

const LINES: usize = 30;

/// Makes a running server look like another version: it moves the server's socket away and stands in its place. Only the
/// version in the first line is changed, everything else goes through as it is.
fn pretend_another_version(data: &Path) {
    let (public, real) = (data.join("gander.sock"), data.join("real.sock"));
    std::fs::rename(&public, &real).unwrap();
    let listener = UnixListener::bind(&public).unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            // Once the old server is gone nobody is there to connect to.
            let (Ok(client), Ok(server)) = (client, UnixStream::connect(&real)) else { return };
            forward_bytes(client.try_clone().unwrap(), server.try_clone().unwrap());
            let mut welcome = String::new();
            let mut from_server = BufReader::new(server);
            from_server.read_line(&mut welcome).unwrap();
            let mut welcome: Value = serde_json::from_str(&welcome).unwrap();
            welcome["version"] = json!("0.0.1");
            (&client).write_all(format!("{welcome}\n").as_bytes()).unwrap();
            forward_bytes(from_server, client);
        }
    });
}

fn forward_bytes(mut from: impl Read + Send + 'static, mut to: UnixStream) {
    std::thread::spawn(move || {
        std::io::copy(&mut from, &mut to).ok();
        to.shutdown(Shutdown::Write).ok();
    });
}

/// A line every 100 milliseconds, for so many lines.
fn slow_prompt(lines: usize) -> String {
    script(&[json!([{ "text": "honk\n", "repeat": lines, "delay_ms": 100 }])])
}

/// Starts the turn in the background server and gives its session.
fn begin_turn(test_directory: &TestDirectory, prompt: &str) -> (Running, String) {
    let mut run = test_directory.start(&["run", "--json", prompt]);
    run.wait_for("honk");
    let sessions = test_directory.json_lines(&["sessions", "list", "--json"]);
    let session = sessions[0]["sessionId"].as_str().unwrap().to_owned();
    (run, session)
}

fn ended_runs(log: &str) -> Vec<&str> {
    log.lines().filter(|line| line.contains(r#""kind":"run_ended""#)).collect()
}

fn replace_while_running(lines: usize) -> (TestDirectory, PathBuf, String) {
    let test_directory = TestDirectory::new();
    let (run, session) = begin_turn(&test_directory, &slow_prompt(lines));
    let old = test_directory.server_pid();
    pretend_another_version(&test_directory.data());

    // Another version's client: the old server ends in good order, a new one takes its place and answers.
    let answered = test_directory.run(&["run", "text"]);
    assert_eq!(answered.code, 0, "{answered:?}");
    assert_ne!(test_directory.server_pid(), old, "it was not replaced");

    eventually("the turn ends", || {
        let log = test_directory.ok(&["sessions", "export", &session]);
        !ended_runs(&log).is_empty()
    });
    run.kill();
    let log = test_directory.ok(&["sessions", "export", &session]);
    let data = test_directory.data();
    (test_directory, data, log)
}

#[test]
fn a_turn_that_ends_soon_is_finished_by_the_old_server() {
    let (_kept, _, log) = replace_while_running(LINES);
    let ended = ended_runs(&log);
    assert!(ended.len() == 1 && ended[0].contains(r#""type":"completed""#), "{ended:?}");
    assert_eq!(log.matches("honk\\n").count() % LINES, 0, "text is lost or doubled: {log}");
}

#[test]
fn a_turn_that_goes_on_is_finished_by_the_new_server() {
    // Longer than an ending server waits.
    let (_kept, _, log) = replace_while_running(150);
    let ended = ended_runs(&log);
    assert!(ended.len() == 1 && ended[0].contains(r#""type":"completed""#), "{ended:?}");
}
