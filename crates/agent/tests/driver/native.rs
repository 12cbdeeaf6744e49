//! The real tools and permissions behind the driver's judge.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use gander_agent::driver::{Grants, Guest, Hands, Workbench};
use gander_agent::model::ToolSpec;
use gander_agent::modes::Library;
use gander_agent::tools::{Limits, LocalHost, Signal, Toolbox, Workspace};
use gander_agent::turn::{Judge, Judgement};
use gander_domain::{ChoiceKind, Ids, Policy, Question, Reply, ToolCall, ToolCallId, ToolEnd, ToolKind, ToolResult};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::bench::answer;

struct Count(u128);

impl Ids for Count {
    fn next_id(&mut self) -> Uuid {
        self.0 += 1;
        Uuid::from_u128(self.0)
    }
}

fn bench(folder: &tempfile::TempDir, mode: &str) -> Workbench {
    let toolbox = Arc::new(Toolbox::builtin(Limits::default()));
    let modes = Library::built_in().agents()[0].modes.clone();
    let mode = modes.into_iter().find(|known| known.id == mode).unwrap();
    let workspace = Arc::new(Workspace::open(folder.path(), &[]).unwrap());
    Workbench {
        mode: Mutex::new(mode),
        servers: Arc::default(),
        host: Arc::new(LocalHost::new(workspace.clone(), 1 << 20)),
        toolbox,
        workspace,
        rules: Arc::new([]),
        grants: Arc::new(Grants::default()),
        guests: Vec::new(),
        office: None,
        policy: Mutex::new(Policy::Ask),
        plan: Mutex::default(),
    }
}

fn judge(bench: &Workbench, policy: Policy, name: &str, arguments: &Value) -> Judgement {
    bench.judge(policy, ToolCallId::new(Uuid::from_u128(1)), name, arguments, &mut Count(1))
}

fn asked(judgement: Judgement) -> (ToolCall, Question) {
    let Judgement::Ask(call, question) = judgement else { panic!("not asked: {judgement:?}") };
    (call, question)
}

#[test]
fn policies_and_modes_decide() {
    let folder = tempfile::tempdir().unwrap();
    let assistant = bench(&folder, "assistant");
    let write = json!({"path": "a.txt", "content": "one"});
    let read = json!({"path": "a.txt"});
    assert!(matches!(judge(&assistant, Policy::Ask, "read", &read), Judgement::Run(_)));
    assert!(matches!(judge(&assistant, Policy::Ask, "write", &write), Judgement::Ask(..)));
    assert!(matches!(judge(&assistant, Policy::Auto, "write", &write), Judgement::Run(_)));
    assert!(matches!(judge(&assistant, Policy::ReadOnly, "write", &write), Judgement::Refuse(..)));
    assert!(matches!(judge(&assistant, Policy::Auto, "write", &json!({"file": 1})), Judgement::Bad(_)));
    assert!(matches!(judge(&assistant, Policy::Auto, "unheard_of", &json!({})), Judgement::Bad(_)));
    let planner = bench(&folder, "planner");
    assert!(matches!(judge(&planner, Policy::Auto, "write", &write), Judgement::Bad(_)));
    assert!(matches!(judge(&planner, Policy::Auto, "read", &read), Judgement::Run(_)));
}

#[test]
fn always_and_never_are_written_down_as_shown() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str| json!({"path": path, "content": "one"});
    let chosen = |kind| answer(Reply::Chosen { choice: "x".into(), kind });
    let bench = bench(&folder, "assistant");
    let (call, question) = asked(judge(&bench, Policy::Ask, "write", &write("a.txt")));
    bench.learn(&call, &question, &chosen(ChoiceKind::AllowOnce));
    asked(judge(&bench, Policy::Ask, "write", &write("a.txt")));
    bench.learn(
        &call,
        &Question { fingerprint: Some("of another".into()), ..question.clone() },
        &chosen(ChoiceKind::AllowAlways),
    );
    asked(judge(&bench, Policy::Ask, "write", &write("a.txt")));
    bench.learn(&call, &question, &chosen(ChoiceKind::AllowAlways));
    bench.learn(&call, &question, &chosen(ChoiceKind::AllowAlways));
    assert!(matches!(judge(&bench, Policy::Ask, "write", &write("a.txt")), Judgement::Run(_)));
    let (call, question) = asked(judge(&bench, Policy::Ask, "write", &write("b.txt")));
    bench.learn(&call, &question, &chosen(ChoiceKind::RejectAlways));
    assert!(matches!(judge(&bench, Policy::Auto, "write", &write("b.txt")), Judgement::Refuse(..)));
    assert_eq!(bench.grants.grants().len(), 2);
}

#[tokio::test]
async fn it_runs_what_it_judged() {
    let folder = tempfile::tempdir().unwrap();
    let bench = bench(&folder, "assistant");
    let arguments = json!({"path": "a.txt", "content": "one"});
    let Judgement::Run(call) = judge(&bench, Policy::Auto, "write", &arguments) else { panic!("not allowed") };
    let (signals, _heard) = mpsc::channel(8);
    let result = bench.run(&call, signals, CancellationToken::new()).await;
    assert_eq!(result.end, ToolEnd::Completed);
    assert_eq!(std::fs::read_to_string(folder.path().join("a.txt")).unwrap(), "one");
}

/// A guest that tells more than it should.
struct Gossip;

#[async_trait]
impl Guest for Gossip {
    fn specs(&self) -> Vec<ToolSpec> {
        vec![ToolSpec { name: "gossip".into(), description: "Talks".into(), schema: json!({"type": "object"}) }]
    }

    fn needed(&self) -> bool {
        true
    }

    fn describe(&self, id: ToolCallId, name: &str, arguments: &Value) -> Option<Result<ToolCall, ToolResult>> {
        let (name, title, arguments) = (name.to_owned(), "Talk".to_owned(), arguments.clone());
        let kind = ToolKind::Read;
        Some(Ok(ToolCall { id, name, title, kind, arguments, locations: Vec::new(), idempotent: true }))
    }

    async fn run(&self, _: &ToolCall, _: &mpsc::Sender<Signal>, _: &CancellationToken) -> Option<ToolResult> {
        let text = format!("sk-{} {}", "a1".repeat(16), "x".repeat(1 << 20));
        Some(ToolResult::text(ToolEnd::Completed, text))
    }
}

#[tokio::test]
async fn what_a_guest_says_is_bounded_and_without_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let bench = Workbench { guests: vec![Arc::new(Gossip)], ..bench(&folder, "assistant") };
    let call = Gossip.describe(ToolCallId::new(Uuid::from_u128(1)), "gossip", &json!({})).unwrap().unwrap();
    let (signals, _heard) = mpsc::channel(8);
    let result = bench.run(&call, signals, CancellationToken::new()).await;
    let most = "x".repeat(Limits::default().result - "[redacted] ".len());
    let text = format!("[redacted] {most}\n[the rest is left out]");
    assert_eq!(result, ToolResult::text(ToolEnd::Completed, text));
}
