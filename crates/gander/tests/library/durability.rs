//! What becomes of a handler when its process dies.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use gander::testing::{Harness, TestSession};
use gander::{Agent, AgentInfo, Permission, PromptRequest, PromptResult, StopReason, UpdateSink};
use serde_json::{Value, json};

/// Says something, does some work, asks, and works again.
async fn deploy(work: Arc<AtomicUsize>, _request: PromptRequest, sink: UpdateSink) -> PromptResult {
    sink.text("building. ").await?;
    let built = sink.tool_call("build").input(json!({ "target": "x" })).run(async {
        work.fetch_add(1, Ordering::SeqCst);
        Ok::<_, std::io::Error>("built")
    });
    let built = built.await??;
    match sink.tool_call("deploy").title("Deploy it").request_permission().await? {
        Permission::Allowed(call) => call.done("deployed").await?,
        Permission::Rejected { .. } => return Ok(StopReason::Refusal),
    }
    sink.text(format!("{} and deployed", built.text())).await?;
    Ok(StopReason::EndTurn)
}

fn deployer(durable: bool, work: &Arc<AtomicUsize>) -> Agent {
    let work = Arc::clone(work);
    let handler = move |request, sink| deploy(Arc::clone(&work), request, sink);
    let agent = Agent::new(AgentInfo::new("deployer", "1.0.0"));
    if durable { agent.on_durable_prompt(handler) } else { agent.on_prompt(handler) }
}

/// Prompts and stops the server while the permission request is open. Gives the session's id.
async fn stop_while_asked(harness: Harness, agent: Agent) -> (Harness, String) {
    let session = harness.new_session().await.unwrap();
    session.leave_permissions_open();
    let prompted = async { session.prompt("go").await.is_err() };
    let asked = wait_for_question(&session);
    tokio::select! {
        _ = prompted => panic!("the turn ended before it asked"),
        () = asked => {}
    }
    let id = session.id();
    (harness.restart(agent).await.unwrap(), id)
}

async fn wait_for_question(session: &TestSession) {
    while session.seen().questions.is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The runs of the server, as ACP-REST shows the one of a session.
async fn wait_for_update(session: &TestSession, wanted: impl Fn(&Value) -> bool) {
    let seen = async {
        while !session.seen().updates.iter().any(&wanted) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let seen = tokio::time::timeout(Duration::from_secs(20), seen).await;
    assert!(seen.is_ok(), "{:#?}", session.seen().updates);
}

#[tokio::test]
async fn a_handler_that_dies_while_it_asks_has_failed_and_its_question_is_closed() {
    let work = Arc::new(AtomicUsize::new(0));
    let harness = Harness::start(deployer(false, &work)).await.unwrap();
    let (harness, id) = stop_while_asked(harness, deployer(false, &work)).await;
    let session = harness.load_session(&id).await.unwrap();
    let ended = |update: &Value| update["sessionUpdate"] == "tool_call_update" && update["status"] == "failed";
    wait_for_update(&session, ended).await;
    // Nothing hangs: the session takes the next prompt, which is a call of its own.
    session.allow_permissions();
    let turn = session.prompt("again").await.unwrap();
    assert_eq!((turn.text.as_str(), turn.stop_reason.as_str()), ("building. built and deployed", "end_turn"));
    assert_eq!((turn.questions.len(), work.load(Ordering::SeqCst)), (1, 2));
    let (_, runs) = harness.get(&format!("/sessions/{id}")).await.unwrap();
    assert_eq!(runs["id"], json!(id), "{runs}");
}

#[tokio::test]
async fn a_durable_handler_goes_on_after_a_restart_and_repeats_nothing() {
    let work = Arc::new(AtomicUsize::new(0));
    let harness = Harness::start(deployer(true, &work)).await.unwrap();
    let (harness, id) = stop_while_asked(harness, deployer(true, &work)).await;
    assert_eq!(work.load(Ordering::SeqCst), 1);
    let session = harness.load_session(&id).await.unwrap();
    // Whoever loads the session is asked; the answer starts the handler again.
    wait_for_question(&session).await;
    session.allow_permissions();
    wait_for_update(&session, |update| update["content"]["text"] == "built and deployed").await;
    assert_eq!(session.seen().text, "building. built and deployed");
    assert_eq!(work.load(Ordering::SeqCst), 1, "the finished tool call was not done again");
}

#[tokio::test]
async fn a_durable_handler_that_does_something_else_fails_and_says_so() {
    let calls = Arc::new(AtomicUsize::new(0));
    let handler = move |_request: PromptRequest, sink: UpdateSink| {
        let call = calls.fetch_add(1, Ordering::SeqCst);
        async move {
            sink.tool_call(format!("call-{call}")).run(async { Ok::<_, std::io::Error>("done") }).await??;
            sink.tool_call("ask").request_permission().await?;
            Ok(StopReason::EndTurn)
        }
    };
    let agent = Agent::new(AgentInfo::new("fickle", "1.0.0")).on_durable_prompt(handler);
    let harness = Harness::start(agent).await.unwrap();
    let session = harness.new_session().await.unwrap();
    session.allow_permissions();
    let failed = session.prompt("go").await.unwrap_err().to_string();
    assert!(failed.contains("did not repeat"), "{failed}");
}
