//! MCP servers from the command line: tried when they are added, with a home that lasts, and gone with their runs.
#![allow(clippy::unwrap_used)]

use std::process::{Command, Stdio};

use gander_testkit::harness::{policy_auto, script};
use gander_testkit::mcp::{PEER, command};
use serde_json::json;

use crate::binary::{Ended, TestDirectory, eventually};

/// What every command line of a server that is started here holds, and no other process does.
fn mark(test_directory: &TestDirectory) -> String {
    format!("of-{}", test_directory.root.path().file_name().unwrap().to_str().unwrap())
}

/// `gander extensions add` with the scripted server. What follows `--` is the program's, so `--data` stands first.
fn add(test_directory: &TestDirectory, name: &str, temper: &str, flags: &[&str]) -> Ended {
    let usual = test_directory.command(&[]);
    let (program, arguments, variables) = command("server", temper);
    let mut add = Command::new(usual.get_program());
    add.env_clear().current_dir(usual.get_current_dir().unwrap());
    add.envs(usual.get_envs().filter_map(|(name, value)| Some((name, value?))));
    add.arg("--data").arg(test_directory.data()).args(["extensions", "add", name]).args(flags);
    for (name, value) in variables {
        add.arg("--env").arg(format!("{name}={value}"));
    }
    // A further name of a test that there is not: it does nothing, and can be seen from outside.
    add.arg("--").arg(program).args(arguments).arg(mark(test_directory));
    let output = add.stdin(Stdio::null()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ended { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
}

/// How many processes of servers of this directory there are, what stands around them included.
fn processes(test_directory: &TestDirectory) -> usize {
    let mark = mark(test_directory);
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = all.filter_map(|entry| std::fs::read_to_string(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.contains(&mark) && !line.contains("\0add\0")).count()
}

#[test]
fn one_that_is_added_is_started_once_and_shows_its_tools() {
    let test_directory = TestDirectory::new();
    let added = add(&test_directory, "mem", "keeper", &[]);
    assert_eq!(added.code, 0, "{added:?}");
    assert!(added.out.contains("mem works, ") && added.out.contains("  mem__remember\n"), "{added:?}");
    eventually("it ended again", || processes(&test_directory) == 0);
    let unseen = add(&test_directory, "later", "dies", &["--no-start"]);
    assert_eq!((unseen.code, unseen.out.as_str()), (0, ""), "{unseen:?}");
    test_directory.stop_server();
}

#[test]
fn one_that_does_not_start_is_told_where_it_is_added_and_once_in_a_session() {
    let test_directory = TestDirectory::new();
    let added = add(&test_directory, "broken", "dies", &[]);
    assert_eq!(added.code, 1, "{added:?}");
    for part in [
        "broken does not start: it exited during startup: no such database",
        "│ no such database",
        "gander extensions remove broken",
    ] {
        assert!(added.err.contains(part), "{part}: {added:?}");
    }
    let first = test_directory.run(&["run", "hello"]);
    let told = "broken is not running: it exited during startup: no such database";
    assert_eq!((first.code, first.err.matches(told).count()), (0, 1), "{first:?}");
    let session =
        test_directory.json_lines(&["sessions", "list", "--json"])[0]["sessionId"].as_str().unwrap().to_owned();
    let second = test_directory.run(&["run", "--session", &session, "hello"]);
    assert_eq!((second.code, second.err.matches("broken is not running").count()), (0, 0), "{second:?}");
    test_directory.stop_server();
}

#[test]
fn one_that_wants_the_network_says_so_when_it_is_added() {
    let test_directory = TestDirectory::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = format!("{PEER}={}", listener.local_addr().unwrap());
    let refused = add(&test_directory, "net", "online", &["--env", &peer]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(
        refused.err.contains("It needs the network. Add it again with: gander extensions add net --network -- "),
        "{refused:?}"
    );
    let added = add(&test_directory, "net", "online", &["--network", "--env", &peer]);
    assert!(added.code == 0 && added.out.contains("net works, "), "{added:?}");
    test_directory.stop_server();
}

#[test]
fn a_first_turn_says_which_servers_it_waits_for() {
    let test_directory = TestDirectory::new();
    add(&test_directory, "slow", "waits", &["--no-start"]);
    let mut run = test_directory.start(&["run", "--json", "hello"]);
    run.wait_for("Waiting up to 10 s for MCP servers to start: slow");
    std::fs::write(std::path::Path::new(&test_directory.folder("work")).join("go"), "").unwrap();
    let ended = run.wait();
    assert_eq!(ended.code, 0, "{ended:?}");
    test_directory.stop_server();
}

#[test]
fn its_home_lasts_and_its_processes_end_with_one_shot_runs() {
    let (name, value) = policy_auto("what is tested is what comes after the questions");
    let test_directory = TestDirectory::new().with(name, value);
    assert_eq!(add(&test_directory, "mem", "keeper", &[]).code, 0);
    let prompt = script(&[json!([{ "tool": "mem__remember", "args": {} }]), json!([{ "results": true }])]);
    for number in 1..=3 {
        let said = test_directory.ok(&["run", &prompt]);
        assert!(said.contains(&format!("call number {number}")), "{said}");
    }
    let server = test_directory.server_pid();
    eventually("no server of a run that is over goes on", || processes(&test_directory) == 0);
    assert_eq!(test_directory.server_pid(), server, "gander itself does");
    let shown = test_directory.ok(&["extensions", "show", "mem"]);
    let home = test_directory.data().join("extensions/owner/mem");
    assert!(shown.contains(home.to_str().unwrap()), "{shown}");
    assert_eq!(std::fs::read_to_string(home.join("data/calls")).unwrap(), "...");
    test_directory.stop_server();
    assert!(test_directory.ok(&["run", &prompt]).contains("call number 4"), "it lasts longer than the server");
    assert_eq!(test_directory.run(&["extensions", "show", "none"]).code, 1);
    test_directory.stop_server();
}
