//! "Always" covers exactly what was shown, and an approval exactly one call.

use gander_domain::{Answer, ChoiceKind, Policy, Principal, QuestionId, Reply, ToolCallId};
use gander_tools::permission::{
    CallContext, Grant, Verdict, decide_permission, permission_answer_approves, permission_call_fingerprint,
    permission_question,
};
use serde_json::json;
use uuid::Uuid;

use crate::permission::{always, asked, call, context, fetch, granted, read, shell, word, write};

#[test]
fn a_granted_line_allows_none_of_its_commands() {
    let grants = [always(&shell("git status && rm -rf x"))];
    let lines = [
        "git status && rm -rf x",
        "rm -rf x",
        "rm -rf y",
        "git status && rm -rf y",
        "git status; rm -rf x",
        "rm -rf x && git status",
        "git status && rm -rf x /",
    ];
    let words = lines.map(|line| granted(&grants, &shell(line)));
    assert_eq!(words, ["allow", "ask", "ask", "ask", "ask", "ask", "ask"]);
}

#[test]
fn a_granted_command_is_its_words_and_nothing_more() {
    let grants = [always(&shell("cargo test --lib"))];
    let allowed = [
        "cargo test --lib",
        "cargo  test  --lib",
        "'cargo' test \"--lib\"",
        "cargo test --lib && cat x",
        "ls; cargo test --lib | tail -5",
    ];
    let others = [
        "cargo test",
        "cargo test --lib -- x",
        "cargo test --libs",
        "cargo test --lib; rm x",
        "cargo test --lib > x",
        "X=1 cargo test --lib",
        "cargo test --lib &",
        "cargo test $(x) --lib",
        "cat x | cargo test --lib",
        "'cargo test' --lib",
        "cd src && cargo test --lib",
        "cargo test '--lib '",
        "cargo test --lib && git status",
    ];
    assert_eq!(allowed.map(|line| granted(&grants, &shell(line))), ["allow"; 5]);
    assert_eq!(others.map(|line| granted(&grants, &shell(line))), ["ask"; 13]);
}

#[test]
fn a_grant_holds_where_it_was_given() {
    let mut elsewhere = always(&shell("cargo test"));
    elsewhere.workspace = "/other".into();
    let in_src = call("shell", json!({"command": "cargo test", "cwd": "src"}), &[]);
    assert_eq!(granted(&[elsewhere], &shell("cargo test")), "ask");
    assert_eq!(granted(&[always(&shell("cargo test"))], &in_src), "ask");
    assert_eq!(granted(&[always(&in_src)], &in_src), "allow");
}

#[test]
fn files_hosts_and_strangers_are_granted_one_by_one() {
    let stranger = |value| call("github__create_issue", json!({"title": value}), &[]);
    let cases = [
        (write("/ws/a.rs"), write("/ws/a.rs"), write("/ws/b.rs")),
        (write("/ws/.git/config"), write("/ws/.git/config"), write("/ws/.git/hooks/x")),
        (read("/ws/.env"), read("/ws/.env"), write("/ws/.env")),
        (fetch("https://docs.rs/a"), fetch("https://docs.rs/b?c"), fetch("http://docs.rs/a")),
        (fetch("https://docs.rs/a"), fetch("https://docs.rs:443/"), fetch("https://docs.rs:8443/")),
        (fetch("https://docs.rs/a"), fetch("https://DOCS.rs/"), fetch("https://docs.rs.evil.org/")),
        (stranger("a"), stranger("a"), stranger("b")),
    ];
    for (shown, same, other) in cases {
        let grants = [always(&shown)];
        assert_eq!((granted(&grants, &same), granted(&grants, &other)), ("allow", "ask"), "{shown:?}");
    }
}

#[test]
fn what_was_refused_for_good_stays_refused_in_company() {
    let refused = [always(&shell("rm -rf x")).as_refusal()];
    let lines = ["rm -rf x", "git status && rm -rf x", "echo $(rm -rf x)", "rm -rf y"];
    assert_eq!(lines.map(|line| granted(&refused, &shell(line))), ["deny", "deny", "deny", "ask"]);
    assert_eq!(granted(&[always(&shell("rm -rf x")), refused[0].clone()], &shell("rm -rf x")), "deny");
}

#[test]
fn grants_are_stored_and_listed_as_they_were_shown() {
    let grants = [
        always(&shell("cargo test 'a b'")),
        always(&shell("a > b")),
        always(&write("/ws/a")),
        always(&fetch("https://x.org/y")),
    ];
    let stored = serde_json::to_string(&grants).unwrap();
    assert_eq!(serde_json::from_str::<Vec<Grant>>(&stored).unwrap(), grants);
    let listed = grants.map(|grant| grant.to_string());
    assert_eq!(listed, ["`cargo test 'a b'`", "the line `a > b`", "edits of /ws/a", "fetching from https://x.org:443"]);
}

#[test]
fn every_choice_is_offered_with_what_it_means() {
    let asked = asked(Policy::Ask, &shell("cargo test"));
    let choices: Vec<(&str, &str, ChoiceKind)> =
        asked.choices.iter().map(|choice| (choice.id.as_str(), choice.name.as_str(), choice.kind)).collect();
    assert_eq!(
        choices,
        [
            ("allow_once", "Allow", ChoiceKind::AllowOnce),
            ("allow_always", "Always allow `cargo test`", ChoiceKind::AllowAlways),
            ("reject_once", "Reject", ChoiceKind::RejectOnce),
            ("reject_always", "Never allow `cargo test`", ChoiceKind::RejectAlways),
        ]
    );
}

#[test]
fn an_approval_fits_one_question_one_call_and_its_arguments() {
    let shown = shell("cargo test");
    let question = permission_question(QuestionId::new(Uuid::from_u128(1)), &shown, &asked(Policy::Ask, &shown));
    let answer = |kind| Answer {
        by: Some(Principal::named("me")),
        door: None,
        reply: Reply::Chosen { choice: "x".into(), kind },
    };
    let mut other_id = shown.clone();
    other_id.id = ToolCallId::new(Uuid::from_u128(8));
    let mut other_tool = shown.clone();
    other_tool.name = "shell2".into();
    let yes = answer(ChoiceKind::AllowOnce);
    assert!(permission_answer_approves(&question, &yes, &shown));
    assert!(!permission_answer_approves(&question, &answer(ChoiceKind::RejectOnce), &shown));
    assert!(!permission_answer_approves(&question, &Answer { by: None, door: None, reply: Reply::Cancelled }, &shown));
    for other in [other_id, other_tool, shell("cargo test ")] {
        assert!(!permission_answer_approves(&question, &yes, &other), "{other:?}");
    }
}

#[test]
fn a_fingerprint_changes_with_every_byte_and_not_with_the_order_of_keys() {
    let base = call("write", json!({"path": "a", "content": "b", "deep": {"x": 1, "y": [1, 2]}}), &[]);
    let turned = call("write", json!({"deep": {"y": [1, 2], "x": 1}, "content": "b", "path": "a"}), &[]);
    assert_eq!(permission_call_fingerprint(&base), permission_call_fingerprint(&turned));
    let others = [
        call("edit", base.arguments.clone(), &[]),
        call("write", json!({"path": "b", "content": "b", "deep": {"x": 1, "y": [1, 2]}}), &[]),
        call("write", json!({"path": "a", "content": "b ", "deep": {"x": 1, "y": [1, 2]}}), &[]),
        call("write", json!({"path": "a", "content": "b", "deep": {"x": 1, "y": [2, 1]}}), &[]),
        call("write", json!({"path": "a", "content": "b", "deep": {"x": "1", "y": [1, 2]}}), &[]),
        call("write", json!({"path": "a", "content": "b"}), &[]),
        call("write", json!({"path": "a\",\"content\":\"b"}), &[]),
    ];
    let mut prints: Vec<String> =
        others.iter().map(permission_call_fingerprint).chain([permission_call_fingerprint(&base)]).collect();
    prints.sort();
    prints.dedup();
    assert_eq!(prints.len(), 8);
    assert_eq!(permission_call_fingerprint(&base).len(), 64);
}

#[test]
fn a_granted_folder_covers_its_plain_files_and_nothing_else() {
    let mut offered = asked(Policy::Ask, &write("/ws/src/a.rs")).grants;
    let (id, folder) = offered.remove(1);
    assert_eq!(
        (id.as_str(), folder.to_string().starts_with("every edit of files in /ws/src and its folders")),
        ("allow_always_2", true)
    );
    let grants = [folder];
    let covered = ["/ws/src/a.rs", "/ws/src/b.rs", "/ws/src/deep/c.rs"];
    let others = [
        "/ws/a.rs",
        "/ws/srcs/a.rs",
        "/ws/src/.env",
        "/ws/src/.git/config",
        "/ws/src/.vscode/tasks.json",
        "/x/src/a.rs",
    ];
    assert_eq!(covered.map(|path| granted(&grants, &write(path))), ["allow"; 3]);
    assert_eq!(others.map(|path| granted(&grants, &write(path))), ["ask"; 6]);
    assert_eq!(granted(&grants, &shell("rm src/a.rs")), "ask");
}

#[test]
fn a_granted_tool_is_that_tool_of_that_server() {
    let search = |name: &str, query: &str| call(name, json!({ "query": query }), &[]);
    let mut offered = asked(Policy::Ask, &search("web__search", "a")).grants;
    let grants = [offered.remove(1).1];
    assert_eq!(grants[0].to_string(), "every call of the tool web__search");
    assert_eq!(granted(&grants, &search("web__search", "b")), "allow");
    assert_eq!(["web__fetch", "other__search", "search"].map(|tool| granted(&grants, &search(tool, "a"))), ["ask"; 3]);
    let only_exact = asked(Policy::Ask, &search("strange", "a")).grants;
    assert_eq!(only_exact.len(), 2, "a tool without a server is allowed call by call: {only_exact:?}");
}

#[test]
fn a_granted_program_reads_where_there_is_no_sandbox() {
    let open = |line: &str| CallContext { sandboxed: false, ..context(&shell(line)) };
    let decided =
        |grants: &[Grant], line: &str| word(&decide_permission(Policy::Ask, &[], grants, &shell(line), &open(line)));
    let log = shell("git log -1");
    let Verdict::Ask(asked) = decide_permission(Policy::Ask, &[], &[], &log, &open("git log -1")) else {
        panic!("not asked")
    };
    let offered: Vec<String> = asked.grants.iter().map(|(_, grant)| grant.to_string()).collect();
    assert_eq!(offered[1], "`git log` with any arguments that only read in this workspace");
    let grants = [asked.grants[1].1.clone()];
    assert_eq!(["git log -1", "git log --oneline src"].map(|line| decided(&grants, line)), ["allow"; 2]);
    let others = ["git status", "git log --output=x", "git log; rm x", "git log /etc", "rm x"];
    assert_eq!(others.map(|line| decided(&grants, line)), ["ask"; 5]);
}
