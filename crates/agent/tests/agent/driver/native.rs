//! The real tools and permissions behind the driver's judge.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use gander_agent::driver::{MemoryGrantStore, SessionTools, ToolExecutor};
use gander_agent::modes::ModeSet;
use gander_agent::native_toolbox;
use gander_agent::turn::{PermissionEvaluator, ToolDecision};
use gander_domain::{
    ChoiceKind, IdGenerator, Policy, Provenance, Question, Reply, SessionPolicy, ToolCall, ToolCallId, ToolEnd,
    ToolKind, ToolResult, ToolSpec,
};
use gander_tools::{
    FileAccess, Group, Limits, LocalHost, Tool, ToolContext, ToolEffect, ToolEnv, ToolError, ToolPreview, Workspace,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::driver::bench::answer;

struct Count(u128);

impl IdGenerator for Count {
    fn next_id(&mut self) -> Uuid {
        self.0 += 1;
        Uuid::from_u128(self.0)
    }
}

fn bench(folder: &tempfile::TempDir, mode: &str) -> SessionTools {
    let toolbox = Arc::new(native_toolbox(Limits::default(), ToolEnv::default(), vec![]));
    let modes = ModeSet::built_in().agent_specs()[0].modes.clone();
    let mode = modes.into_iter().find(|known| known.id == mode).unwrap();
    let workspace = Arc::new(FileAccess::default().open(folder.path(), &[]).unwrap());
    SessionTools {
        mode: Mutex::new(mode),
        servers: Arc::default(),
        host: Arc::new(LocalHost::new(workspace.clone(), 1 << 20)),
        toolbox,
        workspace,
        rules: Vec::new().into(),
        grants: Arc::new(MemoryGrantStore::default()),
        own_tools: Arc::default(),
        tools: Vec::new(),
        policy: Mutex::new(SessionPolicy::chosen(Policy::Ask)),
        provenance: Mutex::default(),
        setting: Policy::Auto.into(),
        approved: Mutex::default(),
        has_compared: AtomicBool::default(),
        plan: Arc::default(),
    }
}

fn evaluate(bench: &SessionTools, policy: Policy, name: &str, arguments: &Value) -> ToolDecision {
    bench.evaluate(
        SessionPolicy::chosen(policy),
        &Provenance::default(),
        ToolCallId::new(Uuid::from_u128(1)),
        name,
        arguments,
        &mut Count(1),
    )
}

fn asked(judgement: ToolDecision) -> (ToolCall, Question) {
    let ToolDecision::Ask(call, question) = judgement else { panic!("not asked: {judgement:?}") };
    (call, question)
}

#[test]
fn policies_and_modes_decide() {
    let folder = tempfile::tempdir().unwrap();
    let assistant = bench(&folder, "assistant");
    let write = json!({"path": "a.txt", "content": "one"});
    let read = json!({"path": "a.txt"});
    assert!(matches!(evaluate(&assistant, Policy::Ask, "read", &read), ToolDecision::Run(_)));
    assert!(matches!(evaluate(&assistant, Policy::Ask, "write", &write), ToolDecision::Ask(..)));
    assert!(matches!(evaluate(&assistant, Policy::Auto, "write", &write), ToolDecision::Run(_)));
    assert!(matches!(evaluate(&assistant, Policy::ReadOnly, "write", &write), ToolDecision::Refuse(..)));
    assert!(matches!(evaluate(&assistant, Policy::Auto, "write", &json!({"file": 1})), ToolDecision::Bad(_)));
    assert!(matches!(evaluate(&assistant, Policy::Auto, "unheard_of", &json!({})), ToolDecision::Bad(_)));
    let planner = bench(&folder, "planner");
    assert!(matches!(evaluate(&planner, Policy::Auto, "write", &write), ToolDecision::Bad(_)));
    assert!(matches!(evaluate(&planner, Policy::Auto, "read", &read), ToolDecision::Run(_)));
}

#[test]
fn always_and_never_are_written_down_as_shown() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str| json!({"path": path, "content": "one"});
    let chosen = |kind| answer(Reply::Chosen { choice: choice_id(kind).into(), kind });
    let bench = bench(&folder, "assistant");
    let (call, question) = asked(evaluate(&bench, Policy::Ask, "write", &write("a.txt")));
    bench.record_answer(&call, &question, &chosen(ChoiceKind::AllowOnce));
    asked(evaluate(&bench, Policy::Ask, "write", &write("a.txt")));
    bench.record_answer(
        &call,
        &Question { fingerprint: Some("of another".into()), ..question.clone() },
        &chosen(ChoiceKind::AllowAlways),
    );
    asked(evaluate(&bench, Policy::Ask, "write", &write("a.txt")));
    bench.record_answer(&call, &question, &chosen(ChoiceKind::AllowAlways));
    bench.record_answer(&call, &question, &chosen(ChoiceKind::AllowAlways));
    assert!(matches!(evaluate(&bench, Policy::Ask, "write", &write("a.txt")), ToolDecision::Run(_)));
    let (call, question) = asked(evaluate(&bench, Policy::Ask, "write", &write("b.txt")));
    bench.record_answer(&call, &question, &chosen(ChoiceKind::RejectAlways));
    assert!(matches!(evaluate(&bench, Policy::Auto, "write", &write("b.txt")), ToolDecision::Refuse(..)));
    assert_eq!(bench.grants.grants().len(), 2);
}

#[tokio::test]
async fn it_runs_what_it_judged() {
    let folder = tempfile::tempdir().unwrap();
    let bench = bench(&folder, "assistant");
    let arguments = json!({"path": "a.txt", "content": "one"});
    let ToolDecision::Run(call) = evaluate(&bench, Policy::Auto, "write", &arguments) else { panic!("not allowed") };
    let (signals, _heard) = mpsc::channel(8);
    let result = bench.run(&call, signals, CancellationToken::new()).await;
    assert_eq!(result.end, ToolEnd::Completed);
    assert_eq!(std::fs::read_to_string(folder.path().join("a.txt")).unwrap(), "one");
}

/// A lent tool that tells more than it should.
struct Gossip;

#[async_trait]
impl Tool for Gossip {
    fn name(&self) -> &str {
        "gossip"
    }

    fn group(&self) -> Group {
        Group::Recipes
    }

    fn effect(&self) -> ToolEffect {
        ToolEffect::Internal
    }

    fn is_required(&self) -> bool {
        true
    }

    fn spec(&self) -> ToolSpec {
        ToolSpec { name: "gossip".into(), description: "Talks".into(), schema: json!({"type": "object"}).into() }
    }

    fn preview(&self, _: &Value, _: &Workspace) -> Result<ToolPreview, ToolError> {
        let (title, kind) = ("Talk".to_owned(), ToolKind::Read);
        Ok(ToolPreview { title, kind, locations: Vec::new(), idempotent: true })
    }

    async fn run(&self, _: &ToolCall, _: &ToolContext) -> Result<ToolResult, ToolError> {
        let text = format!("sk-{} {}", "a1".repeat(16), "x".repeat(1 << 20));
        Ok(ToolResult::text(ToolEnd::Completed, text))
    }
}

#[tokio::test]
async fn what_a_lent_tool_says_is_bounded_and_without_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let bench = SessionTools { tools: vec![Arc::new(Gossip)], ..bench(&folder, "assistant") };
    let ToolDecision::Run(call) = evaluate(&bench, Policy::Ask, "gossip", &json!({})) else { panic!("not allowed") };
    let (signals, _heard) = mpsc::channel(8);
    let result = bench.run(&call, signals, CancellationToken::new()).await;
    let most = "x".repeat(Limits::default().result - "[redacted] ".len());
    let text = format!("[redacted] {most}\n[the rest is left out]");
    assert_eq!(result, ToolResult::text(ToolEnd::Completed, text));
}

const PACKAGE: &str =
    r#"{"name":"a","dependencies":{"x":"1"},"sXcriYpts":{"postinstall":"evil"},"scripts":{"test":"jest"}}"#;

fn call_with(bench: &SessionTools, number: u128, name: &str, arguments: &Value) -> ToolDecision {
    bench.evaluate(
        SessionPolicy::chosen(Policy::AutoEdit),
        &Provenance::default(),
        ToolCallId::new(Uuid::from_u128(number)),
        name,
        arguments,
        &mut Count(9),
    )
}

async fn end_of(bench: &SessionTools, call: &ToolCall) -> ToolEnd {
    let (signals, _heard) = mpsc::channel(8);
    bench.run(call, signals, CancellationToken::new()).await.end
}

#[test]
fn under_auto_edit_only_the_scripts_of_a_package_are_asked_about() {
    let folder = tempfile::tempdir().unwrap();
    let bench = bench(&folder, "assistant");
    std::fs::create_dir(folder.path().join("sub")).unwrap();
    std::fs::write(folder.path().join("package.json"), PACKAGE).unwrap();
    std::fs::write(folder.path().join("sub/pyproject.toml"), "[project]\nname = 'a'\n").unwrap();
    let runs = |name: &str, arguments: Value| {
        matches!(evaluate(&bench, Policy::AutoEdit, name, &arguments), ToolDecision::Run(_))
    };
    let write = |path: &str, content: &str| runs("write", json!({"path": path, "content": content}));
    let edit = |path: &str, old: &str, new: &str| runs("edit", json!({"path": path, "old": old, "new": new}));
    assert!(edit("package.json", r#""x":"1""#, r#""x":"2""#));
    assert!(write("package.json", &PACKAGE.replace(r#""name":"a""#, r#""name":"b""#)));
    assert!(write("new/package.json", r#"{"name":"new"}"#));
    assert!(edit("sub/pyproject.toml", "'a'", "'b'"));
    assert!(write("src/main.rs", "fn main() {}"));
    assert!(!edit("package.json", "jest", "evil"), "another script");
    assert!(!edit("package.json", r#""scripts""#, r#""scrapts""#), "no scripts any more");
    assert!(!edit("package.json", "sXcriYpts", "scripts"), "a key that becomes the scripts");
    assert!(!edit("package.json", r#""name":"a""#, r#""packageManager":"evil""#));
    assert!(!edit("package.json", "not there", "x"), "an editor may hold another text");
    assert!(!edit("package.json", "{", "{ not json"), "nobody knows what another reader makes of it");
    assert!(!write("package.json", r#"{"name":"a","scripts":{"test":"evil"}}"#));
    assert!(!write("PACKAGE.JSON", r#"{"scripts":{"test":"evil"}}"#));
    assert!(!write("new/package.json", r#"{"scripts":{"postinstall":"evil"}}"#));
    assert!(!write("composer.json", r#"{"scripts":{"post-install-cmd":"evil"}}"#));
    assert!(!write("sub/pyproject.toml", "[project]\nname = 'a'\n[tool.poe.tasks]\nx = 'evil'\n"));
    assert!(!write("deno.json", r#"{"tasks":{"x":"evil"}}"#));
}

/// Each alone leaves the scripts as they are, and both are decided about before either runs.
#[tokio::test]
async fn changes_that_make_scripts_only_together_are_not_made_unasked() {
    let folder = tempfile::tempdir().unwrap();
    let bench = bench(&folder, "assistant");
    let path = folder.path().join("package.json");
    std::fs::write(&path, PACKAGE).unwrap();
    let edit = |old: &str, new: &str| json!({"path": "package.json", "old": old, "new": new});
    let (first, second) = (edit("sXcriYpts", "scriYpts"), edit("iYpts", "ipts"));
    let (ToolDecision::Run(first), ToolDecision::Run(_)) =
        (call_with(&bench, 1, "edit", &first), call_with(&bench, 2, "edit", &edit("sXcriYpts", "sXcripts")))
    else {
        panic!("each alone changes nothing that runs")
    };
    let ToolDecision::Run(second) = call_with(&bench, 3, "edit", &second) else {
        panic!("it changes nothing that runs")
    };
    assert_eq!(end_of(&bench, &first).await, ToolEnd::Completed);
    assert_eq!(end_of(&bench, &second).await, ToolEnd::Failed, "together they do");
    assert!(std::fs::read_to_string(&path).unwrap().contains("scriYpts"));
    // Asked about again, and allowed, it is made.
    let (call, question) = asked(call_with(&bench, 4, "edit", &second.arguments));
    bench.record_answer(&call, &question, &answer(Reply::Chosen { choice: "x".into(), kind: ChoiceKind::AllowOnce }));
    assert_eq!(end_of(&bench, &call).await, ToolEnd::Completed);
}

#[test]
fn who_allowed_changes_of_a_package_did_not_allow_those_of_its_scripts() {
    let folder = tempfile::tempdir().unwrap();
    let bench = bench(&folder, "assistant");
    std::fs::write(folder.path().join("package.json"), PACKAGE).unwrap();
    let chosen = |kind| answer(Reply::Chosen { choice: choice_id(kind).into(), kind });
    let edit = |old: &str, new: &str| json!({"path": "package.json", "old": old, "new": new});
    let (call, question) = asked(evaluate(&bench, Policy::Ask, "edit", &edit(r#""x":"1""#, r#""x":"2""#)));
    bench.record_answer(&call, &question, &chosen(ChoiceKind::AllowAlways));
    assert!(matches!(evaluate(&bench, Policy::Ask, "edit", &edit(r#""x":"1""#, r#""x":"3""#)), ToolDecision::Run(_)));
    let (call, question) = asked(evaluate(&bench, Policy::Ask, "edit", &edit("jest", "other")));
    bench.record_answer(&call, &question, &chosen(ChoiceKind::AllowAlways));
    assert!(matches!(evaluate(&bench, Policy::Ask, "edit", &edit("jest", "other")), ToolDecision::Run(_)));
    asked(evaluate(&bench, Policy::Ask, "edit", &edit("jest", "evil")));
    // A no to the file is a no to its scripts.
    let (call, question) =
        asked(evaluate(&bench, Policy::Ask, "write", &json!({"path": "deno.json", "content": "{}"})));
    bench.record_answer(&call, &question, &chosen(ChoiceKind::RejectAlways));
    let scripts = json!({"path": "deno.json", "content": r#"{"tasks":{"x":"y"}}"#});
    assert!(matches!(evaluate(&bench, Policy::Auto, "write", &scripts), ToolDecision::Refuse(..)));
}

#[tokio::test]
async fn a_repository_in_a_folder_of_any_name_is_asked_about() {
    let folder = tempfile::tempdir().unwrap();
    let bench = bench(&folder, "assistant");
    let write = |path: &str| json!({"path": path, "content": "x"});
    let mut calls = Vec::new();
    for (number, path) in (1..).zip(["bare/config", "bare/HEAD", "bare/objects/x", "bare/refs/x"]) {
        let ToolDecision::Run(call) = call_with(&bench, number, "write", &write(path)) else { panic!("asked: {path}") };
        calls.push(call);
    }
    let ends = futures::future::join_all(calls.iter().map(|call| end_of(&bench, call))).await;
    assert_eq!(ends.iter().filter(|end| **end == ToolEnd::Failed).count(), 1, "the one that makes it a repository");
    std::fs::write(folder.path().join("bare/HEAD"), "ref: refs/heads/main").unwrap();
    for name in ["objects", "refs"] {
        std::fs::create_dir_all(folder.path().join("bare").join(name)).unwrap();
    }
    for path in ["bare/hooks/pre-commit", "bare/config", "bare/info/attributes"] {
        asked(call_with(&bench, 9, "write", &write(path)));
    }
    assert!(matches!(call_with(&bench, 9, "write", &write("bare/description")), ToolDecision::Run(_)));
}

/// The id of the choice that covers exactly the call.
fn choice_id(kind: ChoiceKind) -> &'static str {
    match kind {
        ChoiceKind::AllowOnce => "allow_once",
        ChoiceKind::AllowAlways => "allow_always",
        ChoiceKind::RejectOnce => "reject_once",
        ChoiceKind::RejectAlways => "reject_always",
    }
}
