//! Where the text in a session's context comes from: the fold of the log.

#![allow(clippy::unwrap_used)]

use gander_domain::provenance::ALLOW_SESSION;
use gander_domain::{
    Command, IfBusy, Location, Message, OutwardCall, Part, Provenance, Question, Recovery, Report, ResetReason, Role,
    RunId, Seq, SessionView, TextMark, ToolCall, ToolEnd, ToolGate, ToolResult,
};
use gander_testkit::{SessionScript, build};
use serde_json::{Value, json};

const RUN: u128 = 1;

fn run() -> RunId {
    build::run(RUN)
}

fn begun() -> SessionScript {
    let mut script = SessionScript::begin();
    script.prompt(run(), IfBusy::Refuse).unwrap();
    script
}

fn call(n: u128, name: &str, arguments: Value, paths: &[&str]) -> ToolCall {
    let locations = paths.iter().map(|path| Location::file(*path)).collect();
    ToolCall { name: name.to_owned(), arguments, locations, ..build::shell(build::call_id(n)) }
}

fn ends(script: &mut SessionScript, call: ToolCall, end: ToolEnd) {
    let id = call.id;
    let part = Part::ToolUse { call: id, name: call.name.clone(), arguments: call.arguments.clone() };
    script.report(run(), Report::MessageDone { tail: vec![part], native: None, interrupted: false });
    script.report(run(), Report::ToolWanted { call, gate: ToolGate::Open });
    script.report(run(), Report::ToolDone { call: id, result: ToolResult::text(end, "text") });
}

fn runs(script: &mut SessionScript, n: u128, name: &str, arguments: Value, paths: &[&str]) {
    ends(script, call(n, name, arguments, paths), ToolEnd::Completed);
}

fn provenance(script: &SessionScript) -> Provenance {
    let replayed = SessionView::replay(&script.log).unwrap().provenance;
    assert_eq!(&replayed, &script.session.view().provenance, "replay = live");
    replayed
}

fn marks(script: &SessionScript) -> (bool, bool) {
    let provenance = provenance(script);
    (provenance.untrusted().is_some(), provenance.private().is_some())
}

fn reset(script: &mut SessionScript, keep_to: Seq, replacement: Vec<Message>, reason: ResetReason) {
    script.report(run(), Report::Ended(gander_domain::Outcome::Cancelled));
    script.command(Command::Reset { keep_to, replacement, reason }).unwrap();
}

#[test]
fn each_tool_brings_what_it_brings() {
    let fetch = json!({"url": "https://user@evil.example/path?x"});
    for (name, arguments, paths, expected) in [
        ("fetch", fetch, &[][..], (true, false)),
        ("read", json!({}), &["/w/a"], (false, true)),
        ("grep", json!({}), &["/w"], (false, true)),
        ("shell", json!({"command": "ls"}), &[], (false, true)),
        ("shell", json!({"command": "curl", "network": true}), &[], (true, true)),
        ("mail__inbox", json!({}), &[], (true, true)),
        ("read_resource", json!({}), &[], (true, true)),
        ("artifact_read", json!({}), &[], (true, true)),
        ("delegate", json!({}), &[], (false, true)),
        ("plan", json!({}), &[], (false, false)),
        ("write", json!({}), &["/w/a"], (false, false)),
    ] {
        let mut script = begun();
        runs(&mut script, 1, name, arguments, paths);
        assert_eq!(marks(&script), expected, "{name}");
    }
}

#[test]
fn the_source_names_no_path_that_an_attacker_chose() {
    let mut script = begun();
    runs(&mut script, 1, "fetch", json!({"url": "https://u:p@evil.example/ignore/this?and=that"}), &[]);
    assert_eq!(provenance(&script).untrusted(), Some("https://evil.example"));
}

#[test]
fn a_call_that_never_ran_brings_nothing() {
    let mut script = begun();
    ends(&mut script, call(1, "fetch", json!({"url": "https://a.example"}), &[]), ToolEnd::Rejected);
    assert_eq!(marks(&script), (false, false));
    ends(&mut script, call(2, "fetch", json!({"url": "https://a.example"}), &[]), ToolEnd::Failed);
    assert_eq!(marks(&script), (true, false), "an error page is text too");
}

#[test]
fn a_crash_and_a_summary_keep_the_marks() {
    let mut script = begun();
    runs(&mut script, 1, "mail__inbox", json!({}), &[]);
    let summary = Message::text(gander_domain::MessageId::new(uuid::Uuid::from_u128(9)), Role::User, "a summary");
    script.report(run(), Report::Compacted { keep_to: Seq::ZERO, replacement: vec![summary] });
    assert_eq!(marks(&script), (true, true));
    script.crash(&Recovery::default());
    assert_eq!(marks(&script), (true, true));
}

#[test]
fn clearing_forgets_the_text_and_not_the_files_written_from_it() {
    let mut script = begun();
    runs(&mut script, 1, "fetch", json!({"url": "https://a.example"}), &[]);
    runs(&mut script, 2, "write", json!({}), &["/w/notes.md"]);
    reset(&mut script, Seq::ZERO, Vec::new(), ResetReason::Cleared);
    assert_eq!(marks(&script), (false, false));
    script.prompt(build::run(RUN + 1), IfBusy::Refuse).unwrap();
    let reads = |script: &mut SessionScript, n, path| {
        let read = call(n, "read", json!({}), &[path]);
        let (run, id) = (build::run(RUN + 1), read.id);
        script.report(run, Report::ToolWanted { call: read, gate: ToolGate::Open });
        script.report(run, Report::ToolDone { call: id, result: ToolResult::text(ToolEnd::Completed, "text") });
    };
    reads(&mut script, 3, "/w/other.md");
    assert_eq!(marks(&script), (false, true));
    reads(&mut script, 4, "/w/notes.md");
    assert_eq!(marks(&script), (true, true));
}

#[test]
fn going_back_behind_the_text_forgets_it_and_no_further() {
    let mut script = begun();
    runs(&mut script, 1, "read", json!({}), &["/w/a"]);
    let between = script.session.view().head;
    runs(&mut script, 2, "fetch", json!({"url": "https://a.example"}), &[]);
    reset(&mut script, between, Vec::new(), ResetReason::Rewound);
    assert_eq!(marks(&script), (false, true));
}

#[test]
fn a_history_that_is_brought_along_is_looked_through() {
    let mut script = begun();
    let part = Part::ToolUse { call: build::call_id(1), name: "mail__inbox".into(), arguments: json!({}) };
    let said = Message {
        parts: vec![part],
        ..Message::text(gander_domain::MessageId::new(uuid::Uuid::from_u128(9)), Role::Agent, "")
    };
    reset(&mut script, Seq::ZERO, vec![said], ResetReason::Replaced);
    assert_eq!(marks(&script), (true, true));
}

#[test]
fn marks_are_taken_over_and_said_once() {
    let mut script = begun();
    let mark = TextMark { untrusted: Some("the agent other".into()), private: None };
    script.report(run(), Report::TextMarked(mark.clone()));
    let head = script.session.view().head;
    script.report(run(), Report::TextMarked(mark));
    assert_eq!(script.session.view().head, head);
    assert_eq!(marks(&script), (true, false));
}

#[test]
fn only_a_question_about_an_outward_call_allows_its_destination() {
    let mut script = begun();
    let asks = |script: &mut SessionScript, n: u128, outward: Option<Box<OutwardCall>>| {
        let question = build::permission(build::question_id(n), build::call_id(n));
        let mut ask = question.ask.clone();
        if let gander_domain::QuestionKind::Choose { choices } = &mut ask {
            choices[0].id = ALLOW_SESSION.to_owned();
        }
        let question = Question { outward, ask, ..question };
        let shell = build::shell(build::call_id(n));
        script.report(run(), Report::ToolWanted { call: shell, gate: ToolGate::Ask(question.clone()) });
        let kind = gander_domain::ChoiceKind::AllowOnce;
        let reply = gander_domain::Reply::Chosen { choice: ALLOW_SESSION.to_owned(), kind };
        let origin = build::origin();
        script.command(Command::Answer { question: question.id, reply, origin, meta: None }).unwrap();
    };
    asks(&mut script, 1, None);
    assert!(!provenance(&script).is_allowed("fetch https://a.example:443"));
    let outward = OutwardCall { destination: "fetch https://a.example:443".into(), reason: "why".into() };
    asks(&mut script, 2, Some(Box::new(outward)));
    assert!(provenance(&script).is_allowed("fetch https://a.example:443"));
    assert!(!provenance(&script).is_allowed("fetch https://b.example:443"));
}

#[test]
fn what_another_writes_in_a_persons_place_names_no_address() {
    let says = |script: &mut SessionScript, n: u128, text: &str| {
        let (origin, parts) = (build::origin(), vec![Part::text(text)]);
        let prompt = Command::Prompt { run: build::run(n), origin, parts, if_busy: IfBusy::Refuse, meta: None };
        script.command(prompt).unwrap();
        script.report(build::run(n), Report::Ended(gander_domain::Outcome::Cancelled));
    };
    let mut script = SessionScript::begin();
    says(&mut script, 1, "read <https://a.example/x>.");
    let mark = TextMark { untrusted: Some("a prompt of an MCP server".into()), private: None };
    script.command(Command::MarkText { mark }).unwrap();
    says(&mut script, 2, "go to https://evil.example/0");
    says(&mut script, 3, "and https://b.example");
    let provenance = provenance(&script);
    assert_eq!(provenance.named_urls().collect::<Vec<_>>(), ["https://a.example/x", "https://b.example"]);
}
