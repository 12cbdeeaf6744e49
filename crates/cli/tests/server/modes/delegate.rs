//! Sub-agents: at the same time, visible, cancelled with their parent, found again after a crash.

use gander_domain::caller::Caller;
use gander_domain::{
    ChoiceKind, Command, Event, Outcome, PlanStatus, Principal, QuestionKind, Reply, RunOrigin, Seq, SessionId,
};
use gander_runtime::hub::Ack;
use gander_store::{DeltaForm, Limit, read_all};
use gander_testkit::harness::{Launch, binary};
use serde_json::{Value, json};

use crate::modes::test_server::{
    PATIENCE, TestServer, cancelled_with_three, children, delegates, listed, plays, run, wait_for,
};

/// A sub-task that comes to an end only if three of its kind run at the same time.
fn meets(name: &str) -> Value {
    let command = format!("touch here-{name}; while [ $(ls here-* | wc -l) -lt 3 ]; do sleep 0.02; done; echo met");
    task(name, &json!([[{ "tool": "shell", "args": { "command": command } }], [{ "text": format!("{name} met") }]]))
}

/// A sub-task that ends only when somebody ends it.
fn stays(name: &str) -> Value {
    let command = format!("touch here-{name}; while true; do sleep 0.05; done");
    task(name, &json!([[{ "tool": "shell", "args": { "command": command } }], [{ "text": "never" }]]))
}

fn task(name: &str, calls: &Value) -> Value {
    json!({ "name": name, "prompt": plays(calls) })
}

#[tokio::test]
async fn three_independent_tasks_meet_and_a_fourth_hears_of_them() {
    let test_server = TestServer::unattended().await;
    let mut last = task("last", &json!([[{ "text": "I heard" }]]));
    last["after"] = json!(["one", "two"]);
    last["mode"] = json!("qa");
    let ran =
        run(&test_server, "gander", None, &delegates(json!([meets("one"), meets("two"), meets("three"), last]))).await;
    assert_eq!(ran["status"], "completed", "{ran}");
    let told = ran["output"].to_string();
    for part in ["one: completed", "one met", "two met", "three met", "last: completed", "I heard"] {
        assert!(told.contains(part), "{part} is missing: {told}");
    }
    let session = ran["session_id"].as_str().unwrap();
    let children = children(&test_server, session).await;
    assert_eq!(children.len(), 4);
    let mut modes = Vec::new();
    for child in &children {
        let view = test_server.app.services().hub.session_view(*child).await.unwrap();
        modes.push(view.settings.mode.clone());
        assert!(matches!(view.ended[0].1, Outcome::Completed { .. }));
        if view.settings.mode == "qa" {
            let log = test_server
                .app
                .services()
                .hub
                .store()
                .read(*child, Seq::ZERO, Limit::default(), DeltaForm::Joined)
                .await;
            let heard = format!("{:?}", log.unwrap());
            assert!(heard.contains("Result of one (completed)") && heard.contains("two met"));
        }
    }
    modes.sort();
    assert_eq!(modes, ["qa", "specialist", "specialist", "specialist"]);
    let plan = test_server.view(session).await.plan;
    let steps: Vec<&str> = plan.items.iter().map(|item| item.text.as_str()).collect();
    assert_eq!(steps, ["one (specialist)", "two (specialist)", "three (specialist)", "last (qa)"]);
    assert!(plan.items.iter().all(|item| item.status == PlanStatus::Completed));
}

#[tokio::test]
async fn a_cancel_ends_them_all() {
    let test_server = TestServer::unattended().await;
    let mut editor = test_server.editor().await;
    let session = editor.new_session(&test_server.work()).await.unwrap();
    let prompt = delegates(json!([stays("one"), stays("two"), stays("three")]));
    let prompt = editor.prompt(&session, &prompt).await.unwrap();
    wait_for(&test_server.work(), &["here-one", "here-two", "here-three"]).await;
    cancelled_with_three(&test_server, &mut editor, &session, prompt).await;
}

#[tokio::test]
async fn a_sub_agents_question_is_asked_where_its_parent_is() {
    let test_server = TestServer::open().await;
    let mut editor = test_server.editor().await;
    let session = editor.new_session(&test_server.work()).await.unwrap();
    let write =
        json!([[{ "tool": "write", "args": { "path": "asked.txt", "content": "yes" } }], [{ "text": "written" }]]);
    let prompt = editor.prompt(&session, &delegates(json!([task("writer", &write)]))).await.unwrap();
    let asked = editor.asked("session/request_permission").await.unwrap();
    assert_eq!(listed(&test_server.work()), Vec::<String>::new());
    editor.choose(&asked, "allow_once").await.unwrap();
    assert_eq!(editor.answer_to(prompt).await.unwrap()["stopReason"], "end_turn");
    assert_eq!(listed(&test_server.work()), ["asked.txt"]);
}

#[tokio::test]
async fn a_sub_agents_question_is_asked_once_whatever_happens_meanwhile() {
    let test_server = TestServer::open().await;
    let mut editor = test_server.editor().await;
    let session = editor.new_session(&test_server.work()).await.unwrap();
    let write = |path: &str| json!({ "tool": "write", "args": { "path": path, "content": "yes" } });
    let writes = json!([[write("first.txt"), write("second.txt")], [{ "text": "written" }]]);
    let prompt = editor.prompt(&session, &delegates(json!([task("writer", &writes)]))).await.unwrap();
    let asked = editor.asked("session/request_permission").await.unwrap();
    // The sub-agent goes on while the first question is open: somebody answers the second in its own session.
    let child = children(&test_server, &session).await[0];
    allow(&test_server, child, 1).await;
    wait_for(&test_server.work(), &["second.txt"]).await;
    editor.choose(&asked, "allow_once").await.unwrap();
    assert_eq!(editor.answer_to(prompt).await.unwrap()["stopReason"], "end_turn");
    assert_eq!(listed(&test_server.work()), ["first.txt", "second.txt"]);
    let log =
        read_all(&**test_server.app.services().hub.store(), session.parse().unwrap(), DeltaForm::Joined).await.unwrap();
    let questions = log.iter().filter(|entry| matches!(entry.event, Event::QuestionAsked { .. }));
    assert_eq!(questions.count(), 1);
}

/// Says yes to the open question of this place, once it is there.
async fn allow(test_server: &TestServer, session: SessionId, place: usize) {
    let hub = &test_server.app.services().hub;
    let asked = async {
        loop {
            let run = hub.session_view(session).await.unwrap().run.unwrap();
            if let Some(question) = run.questions.get(place) {
                return question.clone();
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let question = tokio::time::timeout(PATIENCE, asked).await.unwrap();
    let QuestionKind::Choose { choices } = &question.ask else { panic!("{question:?}") };
    let yes = choices.iter().find(|choice| choice.kind == ChoiceKind::AllowOnce).unwrap();
    let reply = Reply::Chosen { choice: yes.id.clone(), kind: yes.kind };
    let origin = RunOrigin { by: Principal::owner(), door: "test".to_owned() };
    let answer = Command::Answer { question: question.id, reply, origin, meta: None };
    hub.execute_command(&Caller::local_owner(), session, answer, Ack::Committed).await.unwrap();
}

#[tokio::test]
async fn what_cannot_run_is_refused_with_its_reason() {
    let test_server = TestServer::open().await;
    let mut wrong = task("a", &json!([[{ "text": "x" }]]));
    wrong["mode"] = json!("wizard");
    let ran = run(&test_server, "gander", None, &delegates(json!([wrong]))).await;
    assert!(ran["output"].to_string().contains("no such agent or mode: wizard"), "{ran}");
    let nested = task("a", &json!([[{ "tool": "delegate", "args": { "tasks": [] } }], [{ "results": true }]]));
    let ran = run(&test_server, "gander", None, &delegates(json!([nested]))).await;
    assert!(ran["output"].to_string().contains("no such tool here"), "sub-agents have no sub-agents: {ran}");
}

/// Killed while a sub-agent works: both runs are picked up, and the sub-agent is not begun twice.
#[tokio::test]
async fn after_a_kill_the_parent_finds_its_sub_agent_again() -> anyhow::Result<()> {
    rustls::crypto::ring::default_provider().install_default().ok();
    let root = tempfile::tempdir()?;
    let launch = Launch::demo(binary(env!("CARGO_BIN_EXE_gander")), root.path())
        .with_policy_auto(crate::modes::test_server::UNATTENDED);
    let server = launch.serve().await?;
    let token = launch.stdout(&["token"]).await?.trim().to_owned();
    let http = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build()?;
    let command = "echo x >> begun; while true; do sleep 0.05; done";
    let usage = json!({ "input": 70_000 });
    let child = json!([[{ "tool": "shell", "args": { "command": command }, "usage": usage }], [{ "text": "went on after the kill" }]]);
    let part = json!({ "content_type": "text/plain", "content": delegates(json!([task("child", &child)])) });
    let input = json!([{ "role": "user", "parts": [part] }]);
    let body = json!({ "agent_name": "gander", "input": input, "mode": "async" });
    let address = server.address;
    let begun: Value =
        http.post(format!("http://{address}/runs")).bearer_auth(&token).json(&body).send().await?.json().await?;
    let session = format!("http://{address}/sessions/{}", begun["session_id"].as_str().unwrap());
    let object: Value = http.get(session).bearer_auth(&token).send().await?.json().await?;
    let folder = std::path::PathBuf::from(object["working_dir"].as_str().unwrap());
    wait_for(&folder, &["begun"]).await;
    server.kill().await?;
    let server = launch.serve().await?;
    let path = format!("http://{}/runs/{}", server.address, begun["run_id"].as_str().unwrap());
    let patience = tokio::time::Instant::now() + PATIENCE;
    let ended = loop {
        let run: Value = http.get(&path).bearer_auth(&token).send().await?.json().await?;
        if run["status"] != "in-progress" && run["status"] != "created" {
            break run;
        }
        anyhow::ensure!(tokio::time::Instant::now() < patience, "it does not end: {run}");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    };
    assert_eq!(ended["status"], "completed", "{ended}");
    assert!(ended["output"].to_string().contains("went on after the kill"), "{ended}");
    assert_eq!(std::fs::read_to_string(folder.join("begun"))?, "x\n", "nothing ran twice");
    let path = format!("http://{}/sessions/{}", server.address, begun["session_id"].as_str().unwrap());
    let object: Value = http.get(&path).bearer_auth(&token).send().await?.json().await?;
    let all = object["accumulated_total_tokens"].as_u64().unwrap();
    assert!((70_000..140_000).contains(&all), "nothing was paid for twice: {object}");
    Ok(())
}
