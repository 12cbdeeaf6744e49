//! Requests that are several in one: taken apart where the session leaves open who answers, and only there.

use gander_domain::{Event, PlanStatus, ToolEnd};
use gander_store::{DeltaForm, read_all};
use serde_json::json;

use crate::modes::test_server::{TestServer, cancelled_with_three, children, plays, run, says, wait_for};

/// A point of a list whose agent runs this command.
fn point(number: usize, command: &str) -> String {
    let calls = json!([[{ "tool": "shell", "args": { "command": command } }]]);
    format!("- Prepare part {number} {}\n", plays(&calls))
}

/// Three points, none of which comes to an end before all have begun.
fn three() -> String {
    let meet = "while [ $(ls here-* | wc -l) -lt 3 ]; do sleep 0.02; done; echo met";
    (1..=3).map(|number| point(number, &format!("touch here-{number}; {meet}"))).collect()
}

#[tokio::test]
async fn three_independent_parts_meet_and_their_results_are_joined() {
    let server = TestServer::unattended().await;
    let ran = run(&server, "auto", None, &three()).await;
    assert_eq!(ran["status"], "completed", "{ran}");
    let session = ran["session_id"].as_str().unwrap();
    assert_eq!(children(&server, session).await.len(), 3);
    let view = server.view(session).await;
    assert_eq!((view.settings.mode.as_str(), view.settings.routing.is_off()), ("assistant", false));
    let steps: Vec<(&str, PlanStatus)> = view.plan.items.iter().map(|item| (item.text.as_str(), item.status)).collect();
    assert_eq!(steps.len(), 3, "{steps:?}");
    assert!(steps.iter().all(|(text, status)| text.starts_with("Prepare part") && *status == PlanStatus::Completed));
    let log =
        read_all(&**server.app.services().hub.store(), session.parse().unwrap(), DeltaForm::Joined).await.unwrap();
    let progress: Vec<usize> = log.iter().filter_map(|entry| running(&entry.event)).collect();
    assert_eq!(progress.first(), Some(&3), "all three are under way at once: {progress:?}");
    let told = log.iter().find_map(|entry| results(&entry.event)).unwrap();
    assert_eq!(told.matches("met").count(), 3, "what each gave is in one result: {told}");
    let why = log.iter().find_map(|entry| reasons(&entry.event)).unwrap();
    assert_eq!(why[0], "it is several requests in one: its list has 3 tasks");
    assert!(ran["output"].to_string().contains("`delegate` is completed"), "the model has the last word: {ran}");
}

/// How many steps of a plan are under way.
fn running(event: &Event) -> Option<usize> {
    let Event::PlanSet { plan } = event else { return None };
    Some(plan.items.iter().filter(|item| item.status == PlanStatus::InProgress).count())
}

fn results(event: &Event) -> Option<String> {
    let Event::ToolDone { result, .. } = event else { return None };
    (result.end == ToolEnd::Completed).then(|| format!("{:?}", result.content))
}

fn reasons(event: &Event) -> Option<&[String]> {
    if let Event::Routed { route } = event { Some(&route.reasons) } else { None }
}

#[tokio::test]
async fn a_cancel_ends_every_part() {
    let server = TestServer::unattended().await;
    let mut editor = server.editor().await;
    let session = editor.new_session(&server.work()).await.unwrap();
    let option = json!({ "sessionId": session, "configId": "routing", "value": "auto" });
    editor.call("session/set_config_option", option).await.unwrap();
    let stays = |number: usize| point(number, &format!("touch here-{number}; while true; do sleep 0.05; done"));
    let prompt = editor.prompt(&session, &(1..=3).map(stays).collect::<String>()).await.unwrap();
    wait_for(&server.work(), &["here-1", "here-2", "here-3"]).await;
    cancelled_with_three(&server, &mut editor, &session, prompt).await;
}

#[tokio::test]
async fn what_is_simple_or_not_left_open_stays_whole() {
    let server = TestServer::open().await;
    let simple = run(&server, "auto", None, &format!("Fix the bug and run the tests {}", says("fixed"))).await;
    assert_eq!(simple["output"][0]["parts"][0]["content"], "fixed", "{simple}");
    let lists = format!("- Read the one file\n- Read the other file\n\n{}", says("both"));
    let chosen = run(&server, "gander", None, &lists).await;
    let off = TestServer::with(&[("GANDER_AGENT_SPLIT", "false")]).await;
    let switched = run(&off, "auto", None, &lists).await;
    for (server, ran) in [(&server, simple), (&server, chosen), (&off, switched)] {
        assert_eq!(ran["status"], "completed", "{ran}");
        assert!(children(server, ran["session_id"].as_str().unwrap()).await.is_empty(), "{ran}");
    }
}

#[tokio::test]
async fn what_follows_a_conversation_stays_whole() {
    let server = TestServer::open().await;
    let lists = |text: &str| format!("- Read the one file\n- Read the other file\n\n{}", says(text));
    let first = run(&server, "auto", None, &says("hello")).await;
    let session = first["session_id"].as_str().unwrap();
    let later = run(&server, "auto", Some(session), &lists("both")).await;
    assert_eq!(later["output"][0]["parts"][0]["content"], "both", "{later}");
    assert!(children(&server, session).await.is_empty(), "sub-agents would know nothing of it");
    let alone = run(&server, "auto", None, &lists("both")).await;
    assert_eq!(children(&server, alone["session_id"].as_str().unwrap()).await.len(), 2, "it would come apart at first");
}

#[tokio::test]
async fn a_model_can_be_asked_to_take_it_apart() {
    let server = TestServer::open().await;
    let mut editor = server.editor().await;
    let session = editor.new_session(&server.work()).await.unwrap();
    let option = json!({ "sessionId": session, "configId": "routing", "value": "model" });
    editor.call("session/set_config_option", option).await.unwrap();
    let task = |name: &str, role: &str| json!({ "name": name, "prompt": says(&format!("{name} said")), "role": role });
    let tasks = json!([task("one", "coding/qa"), task("two", "pm")]);
    let verdict = json!({ "tasks": tasks, "confidence": 77, "reason": "two crafts" }).to_string();
    // The judge and whoever then joins are shown the same script: its first call is the verdict.
    let usage = json!({ "input": 7_000_000, "output": 5 });
    editor.turn(&session, &plays(&json!([[{ "text": verdict, "usage": usage }], [{ "text": "x" }]]))).await.unwrap();
    let hub = &server.app.services().hub;
    let log = read_all(&**hub.store(), session.parse().unwrap(), DeltaForm::Joined).await.unwrap();
    let why = log.iter().find_map(|entry| reasons(&entry.event)).unwrap();
    assert_eq!(why, ["it is several requests in one: 2 tasks", "two crafts"]);
    let told = log.iter().find_map(|entry| results(&entry.event)).unwrap();
    assert!(told.contains("one said") && told.contains("two said"), "{told}");
    let mut modes = Vec::new();
    for child in children(&server, &session).await {
        modes.push(hub.session_view(child).await.unwrap().settings.mode);
    }
    modes.sort();
    assert_eq!(modes, ["pm", "qa"]);
    assert!(server.view(&session).await.spent.input >= 7_000_000, "who was asked is paid as well");
}
