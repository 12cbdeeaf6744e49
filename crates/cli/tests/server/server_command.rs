//! `gander server`: status, stop, restart and logs of the one server; and what `serve` refuses to a running one.
#![allow(clippy::unwrap_used)]

use serde_json::Value;

use crate::binary::TestDirectory;

fn status(test_directory: &TestDirectory) -> Value {
    let ended = test_directory.run(&["server", "status", "--json"]);
    let status: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(ended.code, if status["running"] == true { 0 } else { 1 }, "{ended:?}");
    status
}

#[test]
fn the_server_is_shown_stopped_and_restarted_by_commands() {
    let test_directory = TestDirectory::new();
    assert_eq!(status(&test_directory)["running"], false);
    assert_eq!(test_directory.ok(&["server", "stop"]).trim(), "no server was running");
    test_directory.ok(&["run", "text"]);
    let first = status(&test_directory);
    assert_eq!((&first["running"], &first["background"]), (&true.into(), &true.into()));
    assert_eq!(first["pid"], test_directory.server_pid());
    let shown = test_directory.ok(&["server", "status"]);
    assert!(shown.contains("in the background") && shown.contains("the Unix socket only"), "{shown}");
    let link = test_directory.ok(&["open", "--print", "--listen", "127.0.0.1:0"]);
    let address = link.split_once("http://").unwrap().1.split('/').next().unwrap().to_owned();
    let restarted = test_directory.ok(&["server", "restart"]);
    let second = status(&test_directory);
    assert_ne!(first["pid"], second["pid"]);
    assert_eq!(restarted.trim(), format!("restarted: process {}", second["pid"]));
    assert_eq!(second["listening"][0]["address"], address, "what was open is open again");
    let log = test_directory.ok(&["server", "logs", "-n", "200"]);
    assert_eq!(log.matches("background server started").count(), 2, "{log}");
    assert_eq!(
        test_directory.ok(&["server", "stop"]).trim(),
        format!("stopped the server (process {})", second["pid"])
    );
    assert!(test_directory.no_server());
    assert_eq!(status(&test_directory)["running"], false);
}

#[test]
fn a_server_that_does_not_answer_is_stopped_by_its_process() {
    let test_directory = TestDirectory::new();
    test_directory.ok(&["run", "text"]);
    let pid = test_directory.server_pid();
    // Whoever comes finds no socket: as if the server no longer listened to anybody.
    std::fs::remove_file(test_directory.data().join("gander.sock")).unwrap();
    assert_eq!(test_directory.ok(&["server", "stop"]).trim(), format!("stopped the server (process {pid})"));
    assert!(test_directory.no_server());
}

#[test]
fn who_needs_the_data_directory_is_told_the_command_that_frees_it() {
    let test_directory = TestDirectory::new();
    test_directory.ok(&["run", "text"]);
    for arguments in [&["doctor", "--rebuild"][..], &["run", "--standalone", "text"]] {
        let refused = test_directory.run(arguments);
        assert_eq!(refused.code, 1, "{refused:?}");
        assert!(refused.err.contains("gander server stop"), "{}", refused.err);
    }
    test_directory.ok(&["server", "stop"]);
    test_directory.ok(&["doctor", "--rebuild"]);
}

#[test]
fn serve_beside_a_running_server_counts_its_flags_or_refuses() {
    let test_directory = TestDirectory::new();
    test_directory.ok(&["run", "text"]);
    let refused = test_directory.run(&["serve", "--listen", "127.0.0.1:0", "--open", "adk", "--acp-v2"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("--acp-v2 --open would be ignored"), "{}", refused.err);
    assert!(refused.err.contains("gander server stop && gander serve"), "{}", refused.err);
    assert!(!refused.out.contains("listening"), "never both: {}", refused.out);
    assert_eq!(test_directory.listening_ports(test_directory.server_pid()), 0);
    let mut joined = test_directory.start(&["serve", "--listen", "127.0.0.1:0", "--tls-self-signed"]);
    joined.wait_for("listening on https://");
    joined.terminate();
    assert_eq!(joined.wait().code, 0);
    test_directory.stop_server();
}

#[test]
fn a_foreground_server_is_restarted_where_it_was_started() {
    let test_directory = TestDirectory::new();
    let mut serve = test_directory.start(&["serve", "--listen", "127.0.0.1:0"]);
    serve.wait_for("listening on");
    let refused = test_directory.run(&["server", "restart"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.err.contains("gander server stop"), "{}", refused.err);
    assert!(!serve.is_over());
    test_directory.ok(&["server", "stop"]);
    assert_eq!(serve.wait().code, 0);
}
