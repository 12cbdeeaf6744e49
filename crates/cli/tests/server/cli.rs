//! The real binary as a person or a script uses it, with the scripted demo model.
#![allow(clippy::unwrap_used)]

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::binary::TestDirectory;

#[test]
fn one_command_answers_and_leaves_a_server_for_the_next() {
    let test_directory = TestDirectory::new();
    let first = test_directory.run(&["run", "text"]);
    assert_eq!((first.code, first.err.as_str()), (0, ""));
    assert!(first.out.ends_with('\n') && first.out.len() > 20, "{first:?}");
    let pid = test_directory.server_pid();
    assert!(test_directory.run(&["run", "--continue", "help"]).out.contains("scripted demo"));
    assert_eq!(test_directory.server_pid(), pid);
    let sessions = test_directory.json_lines(&["sessions", "list", "--json"]);
    assert_eq!(sessions.len(), 1, "--continue made another session: {sessions:?}");
}

#[test]
fn nothing_of_a_background_server_listens_on_the_network() {
    let test_directory = TestDirectory::new();
    test_directory.run(&["run", "text"]);
    assert_eq!(test_directory.listening_ports(test_directory.server_pid()), 0);
}

#[test]
fn standalone_needs_no_server_and_goes_on_in_the_same_session() {
    let test_directory = TestDirectory::new();
    let first = test_directory.json_lines(&["run", "--standalone", "--json", "text"]);
    let session = first[0]["session"].as_str().unwrap().to_owned();
    let end = first.last().unwrap();
    assert_eq!((&end["type"], &end["stop"]), (&json!("end"), &json!("end_turn")), "{end}");
    assert!(test_directory.no_server());
    let second = test_directory.json_lines(&["run", "--standalone", "--json", "--session", &session, "help"]);
    assert_eq!(second[0]["session"], session.as_str());
    assert!(test_directory.no_server());
}

#[test]
fn json_is_one_event_per_line() {
    let test_directory = TestDirectory::new();
    let events = test_directory.json_lines(&["run", "--json", "thought"]);
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!((kinds[0], *kinds.last().unwrap()), ("session", "end"));
    assert!(kinds.contains(&"thought") && kinds.contains(&"text"), "{kinds:?}");
    let text: String =
        events.iter().filter(|event| event["type"] == "text").filter_map(|e| e["text"].as_str()).collect();
    assert!(!text.is_empty());
}

#[test]
fn a_prompt_from_stdin() {
    let test_directory = TestDirectory::new();
    assert_eq!(test_directory.run_with_input(&["run", "-"], "help").code, 0);
    let empty = test_directory.run_with_input(&["run", "-"], " \n");
    assert_eq!((empty.code, empty.err.as_str()), (1, "gander: the prompt is empty\n"));
}

#[test]
fn what_needs_permission_is_refused_without_a_terminal_and_runs_with_the_policy() {
    let test_directory = TestDirectory::new();
    let refused = test_directory.run(&["run", "--policy", "ask", "edit"]);
    assert_eq!(refused.code, 0);
    assert!(refused.err.contains("rejected, nobody could be asked"), "{refused:?}");
    assert!(refused.err.contains("--policy"), "{refused:?}");
    let allowed = test_directory.run(&["run", "--policy", "auto", "edit"]);
    assert!(allowed.err.contains('✓') && !allowed.err.contains("rejected"), "{allowed:?}");
}

#[test]
fn a_failed_turn_is_a_failed_command() {
    let test_directory = TestDirectory::new();
    let failed = test_directory.run(&["run", "error"]);
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(failed.err.contains("failed: "), "{failed:?}");
}

#[test]
fn an_interrupt_cancels_the_turn() {
    let test_directory = TestDirectory::new();
    let mut run = test_directory.start(&["run", "--json", "long"]);
    run.wait_for("\"text\"");
    run.interrupt();
    let ended = run.wait();
    let last = ended.out.lines().last();
    assert_eq!((ended.code, last), (130, Some("{\"type\":\"end\",\"stop\":\"cancelled\"}")));
}

#[test]
fn sessions_are_listed_shown_renamed_moved_and_deleted() {
    let test_directory = TestDirectory::new();
    test_directory.run(&["run", "text"]);
    let listed = test_directory.json_lines(&["sessions", "list", "--json"]);
    let id = listed[0]["sessionId"].as_str().unwrap().to_owned();
    let shown = test_directory.run(&["sessions", "show", &id]).out;
    assert!(shown.starts_with("› text\n"), "{shown}");
    test_directory.ok(&["sessions", "rename", &id, "a new name"]);
    assert!(test_directory.ok(&["sessions", "list"]).contains("a new name"));

    let exported = test_directory.ok(&["sessions", "export", &id]);
    let entries: Vec<Value> = exported.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        entries.iter().map(|entry| entry["seq"].as_u64().unwrap()).collect::<Vec<_>>(),
        (1..=entries.len() as u64).collect::<Vec<_>>()
    );
    let file = test_directory.root.path().join("log.jsonl");
    test_directory.ok(&["sessions", "export", &id, "--output", file.to_str().unwrap()]);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let other = TestDirectory::new();
    let imported = other.ok(&["sessions", "import", file.to_str().unwrap()]);
    assert_eq!(other.run(&["sessions", "show", imported.trim()]).out, shown);

    test_directory.ok(&["sessions", "delete", &id]);
    assert_eq!(test_directory.ok(&["sessions", "list"]), "");
    let gone = test_directory.run(&["sessions", "show", &id]);
    assert_eq!(gone.code, 1, "{gone:?}");
}

#[test]
fn a_file_does_not_say_what_an_imported_session_may_do() {
    let test_directory = TestDirectory::new();
    test_directory.ok(&["run", "hi"]);
    let id = test_directory.json_lines(&["sessions", "list", "--json"])[0]["sessionId"].as_str().unwrap().to_owned();
    let mut lines: Vec<Value> = test_directory.json_lines(&["sessions", "export", &id]);
    lines[1]["event"]["workspace"] = json!("/");
    lines[1]["event"]["folders"] = json!(["/etc"]);
    lines[1]["event"]["settings"]["policy"] = json!("ask");
    let loose =
        json!({ "seq": lines.len(), "at": 1, "event": { "kind": "settings_changed", "patch": { "policy": "auto" } } });
    lines.push(loose);
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let import = |more: &[&str]| test_directory.run_with_input(&[&["sessions", "import", "-"], more].concat(), &text);
    let imported = import(&[]);
    assert!(imported.err.contains("Ignored from the file: policy auto, workspace /, folder /etc"), "{imported:?}");
    let there = imported.out.trim();
    let created = |id: &str| test_directory.json_lines(&["sessions", "export", id])[1]["event"].clone();
    let scratch = test_directory.data().join("scratch").join(there);
    let event = created(there);
    assert_eq!((&event["workspace"], &event["folders"]), (&json!(scratch), &Value::Null));
    assert_eq!(event["settings"]["policy"], "ask");
    assert!(!test_directory.ok(&["sessions", "export", there]).contains("\"auto\""), "no later entry loosens it");
    let work = test_directory.folder("work");
    let chosen = import(&["--cwd", &work]);
    assert_eq!(created(chosen.out.trim())["workspace"], json!(work), "{chosen:?}");
    let data = test_directory.data();
    let refused = import(&["--cwd", data.to_str().unwrap()]);
    assert!(refused.code == 1 && refused.err.contains("data directory"), "{refused:?}");
}

#[test]
fn sessions_of_one_folder() {
    let test_directory = TestDirectory::new();
    let (here, there) = (test_directory.folder("here"), test_directory.folder("there"));
    test_directory.ok(&["run", "--cwd", &here, "text"]);
    test_directory.ok(&["run", "--cwd", &there, "text"]);
    let listed = test_directory.json_lines(&["sessions", "list", "--json", "--cwd", &there]);
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["cwd"], there.as_str());
    let nowhere = test_directory.run(&["run", "--cwd", &test_directory.folder("empty"), "--continue", "x"]);
    assert!(nowhere.err.contains("no session in this folder yet"), "{nowhere:?}");
}

#[test]
fn the_token_is_made_once_and_others_have_their_own() {
    let test_directory = TestDirectory::new();
    let at_once: Vec<_> = (0..8).map(|_| test_directory.start(&["token"])).collect();
    let tokens: Vec<String> = at_once.into_iter().map(|command| command.wait().out).collect();
    let token = test_directory.ok(&["token"]);
    assert_eq!(tokens, vec![token.clone(); 8], "whoever makes it, all use it");
    assert_eq!(test_directory.ok(&["token", "show"]), token);
    let path = test_directory.data().join("token");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), token);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::metadata(test_directory.data()).unwrap().permissions().mode() & 0o777, 0o700);
    let other = test_directory.ok(&["token", "add", "phone", "--scopes", "approve"]);
    assert_ne!(other, token);
    let listed = test_directory.ok(&["token", "list"]);
    let rows: Vec<Vec<&str>> = listed.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[1..], [["owner", "read,prompt,approve,admin"], ["phone", "read,approve"]], "{listed}");
    test_directory.ok(&["token", "revoke", "phone"]);
    assert!(!test_directory.ok(&["token", "list"]).contains("phone"));
}

#[test]
fn the_doctor_says_what_is_in_force_and_from_where() {
    let test_directory = TestDirectory::new();
    let text = test_directory.ok(&["doctor"]);
    for fact in ["SQLite", "demo/demo", "(GANDER_MODEL)", "(--data)", "sandbox", "running                      no"] {
        assert!(text.contains(fact), "{fact}: {text}");
    }
    test_directory.ok(&["run", "text"]);
    let pid = test_directory.server_pid();
    assert!(test_directory.ok(&["doctor"]).contains(&format!("yes, process {pid}")));
    let busy = test_directory.run(&["doctor", "--rebuild"]);
    assert!(busy.code == 1 && busy.err.contains("gander server stop"), "{busy:?}");
    test_directory.stop_server();
    assert_eq!(test_directory.ok(&["doctor", "--rebuild"]), "Rebuilt the indexes of 1 session.\n");
}

#[test]
fn settings_are_written_once_and_wrong_ones_are_wrong_usage() {
    let test_directory = TestDirectory::new();
    let path = test_directory.ok(&["config", "init"]);
    assert_eq!(test_directory.ok(&["config", "path"]), path);
    assert_eq!(test_directory.run(&["config", "init"]).code, 1);
    std::fs::write(path.trim(), "[server]\nlisen = 1\n").unwrap();
    let wrong = test_directory.run(&["doctor"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.err.contains(":2: unknown key (did you mean server.listen?): server.lisen"), "{wrong:?}");
}

#[test]
fn the_command_line_teaches() {
    let test_directory = TestDirectory::new();
    assert_eq!(test_directory.ok(&["--version"]), format!("gander {}\n", gander::VERSION));
    assert!(test_directory.ok(&["--help"]).contains("Examples:"));
    assert!(test_directory.ok(&["run", "--help"]).contains("Exit status:"));
    assert_eq!(test_directory.run(&["run"]).code, 2);
    assert_eq!(test_directory.run(&["nonsense"]).code, 2);
}
