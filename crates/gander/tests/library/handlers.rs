//! What a handler is told and what clients see of what it says.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use gander::testing::Harness;
use gander::{
    Agent, AgentInfo, Artifact, Form, FormAnswer, HandlerError, Mode, Part, Permission, PromptRequest, PromptResult,
    StopReason, ToolKind, UpdateError, UpdateSink, Usage,
};
use serde_json::json;

fn info(name: &str) -> AgentInfo {
    AgentInfo::new(name, "1.0.0")
}

#[tokio::test]
async fn a_handler_says_everything_there_is_to_say() {
    async fn answer(_request: PromptRequest, sink: UpdateSink) -> PromptResult {
        sink.thought("hm").await?;
        sink.text("one ").await?;
        sink.text("two").await?;
        sink.part(Part::Image { mime: "image/png".to_owned(), data: DOT.to_owned(), uri: None }).await?;
        let call = sink.tool_call("search").kind(ToolKind::Search).title("Search it").start().await?;
        call.progress("looking").await?;
        call.done(json!({ "found": 3 })).await?;
        sink.tool_call("fetch").start().await?.failed("no network").await?;
        sink.artifact(Artifact::bytes("dot.png", "image/png", b"not really")).await?;
        sink.usage(Usage { model: "mock/one".to_owned(), input: 5, output: 2, ..Usage::default() }).await?;
        sink.title("A title").await?;
        Ok(StopReason::MaxTokens)
    }
    let harness = Harness::start(Agent::new(info("all")).on_prompt(answer)).await.unwrap();
    let session = harness.new_session().await.unwrap();
    let turn = session.prompt("go").await.unwrap();
    assert_eq!(
        (turn.text.as_str(), turn.thoughts.as_str(), turn.stop_reason.as_str()),
        ("one two", "hm", "max_tokens")
    );
    let calls: Vec<_> = turn.tool_calls.iter().map(|call| (call.title.as_str(), call.status.as_str())).collect();
    assert_eq!(calls, [("Search it", "completed"), ("fetch", "failed")]);
    assert_eq!(turn.tool_calls[0].output, r#"{"found":3}"#);
    let (status, artifacts) = harness.get(&format!("/sessions/{}", session.id())).await.unwrap();
    assert_eq!((status.as_u16(), artifacts["name"].as_str()), (200, Some("A title")), "{artifacts}");
}

const DOT: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

#[tokio::test]
async fn a_handler_knows_its_session_its_history_and_its_mode() {
    async fn answer(request: PromptRequest, sink: UpdateSink) -> PromptResult {
        let session = request.session();
        let said: Vec<String> = request.history().iter().map(|message| format!("{:?}", message.role)).collect();
        sink.text(format!("{} {} {:?} {:?}", session.mode, session.owner, said, session.metadata.get("branch")))
            .await?;
        Ok(StopReason::EndTurn)
    }
    let modes = [Mode::new("calm", "Calm", ""), Mode::new("bold", "Bold", "")];
    let harness = Harness::start(Agent::new(info("knowing")).modes(modes).on_prompt(answer)).await.unwrap();
    let session = harness.new_session().await.unwrap();
    assert_eq!(session.prompt("a").await.unwrap().text, "calm owner [] None");
    let mode = json!({ "sessionId": session.id(), "modeId": "bold" });
    session.client().request::<serde_json::Value>("session/set_mode", &mode).await.unwrap();
    assert_eq!(session.prompt("b").await.unwrap().text, r#"bold owner ["User", "Agent"] None"#);
    let new = json!({ "cwd": "/", "mcpServers": [], "_meta": { "branch": "main" } });
    let made: serde_json::Value = session.client().request("session/new", &new).await.unwrap();
    let prompt = json!({ "sessionId": made["sessionId"], "prompt": [{ "type": "text", "text": "c" }] });
    session.client().request::<serde_json::Value>("session/prompt", &prompt).await.unwrap();
    assert!(session.seen().text.ends_with(r#"calm owner [] Some(String("main"))"#), "{}", session.seen().text);
}

#[tokio::test]
async fn a_cancelled_handler_is_told_and_may_tidy_up() {
    let tidied = Arc::new(Mutex::new(None));
    let noted = Arc::clone(&tidied);
    let agent = Agent::new(info("slow")).on_prompt(move |request, sink| {
        let noted = Arc::clone(&noted);
        async move {
            sink.text("working").await?;
            request.cancel_token().cancelled().await;
            *noted.lock().unwrap() = Some(sink.text("too late").await);
            Ok(StopReason::EndTurn)
        }
    });
    let harness = Harness::start(agent).await.unwrap();
    let session = harness.new_session().await.unwrap();
    let cancel = async {
        while session.seen().text != "working" {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        session.cancel().await.unwrap();
    };
    let (turn, ()) = tokio::join!(session.prompt("go"), cancel);
    let turn = turn.unwrap();
    assert_eq!((turn.stop_reason.as_str(), turn.text.as_str()), ("cancelled", "working"));
    assert_eq!(*tidied.lock().unwrap(), Some(Err(UpdateError::Cancelled)));
}

#[tokio::test]
async fn a_handler_that_does_not_listen_to_a_cancel_is_dropped() {
    let agent = Agent::new(info("deaf")).on_prompt(|_, sink| async move {
        sink.text("working").await?;
        std::future::pending::<PromptResult>().await
    });
    let harness = Harness::start(agent).await.unwrap();
    let session = harness.new_session().await.unwrap();
    let cancel = async {
        while session.seen().text != "working" {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        session.cancel().await.unwrap();
    };
    let (turn, ()) = tokio::join!(session.prompt("go"), cancel);
    assert_eq!(turn.unwrap().stop_reason, "cancelled");
}

#[tokio::test]
async fn errors_and_panics_of_a_handler_fail_its_run_and_nothing_else() {
    let agent = Agent::new(info("failing")).on_prompt(|request, _sink| async move {
        match request.text().as_str() {
            "panic" => panic!("on purpose"),
            "io" => Err(std::io::Error::other("disk on fire").into()),
            "input" => Err(HandlerError::invalid_input("not like this")),
            _ => Ok(StopReason::EndTurn),
        }
    });
    let harness = Harness::start(agent).await.unwrap();
    let session = harness.new_session().await.unwrap();
    let failure = |text: &'static str| {
        let session = &session;
        async move { session.prompt(text).await.unwrap_err().to_string() }
    };
    assert!(failure("io").await.contains("disk on fire"));
    assert!(failure("input").await.contains("not like this"));
    assert!(failure("panic").await.contains("failed inside"));
    assert_eq!(session.prompt("fine").await.unwrap().stop_reason, "end_turn");
}

#[tokio::test]
async fn a_question_waits_in_place_with_the_handlers_variables() {
    let calls = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&calls);
    let agent = Agent::new(info("asking")).on_prompt(move |_, sink| {
        *counted.lock().unwrap() += 1;
        async move {
            sink.text("before ").await?;
            let answer = sink.ask(Form::new("Which?").choice("one", "Which one", ["a", "b"])).await?;
            let chosen = answer.text("one").unwrap_or("none").to_owned();
            let permission = sink.tool_call("go").request_permission().await?;
            let allowed = match permission {
                Permission::Allowed(call) => call.done("went").await.is_ok(),
                Permission::Rejected { .. } => false,
            };
            sink.text(format!("after {chosen} {allowed} {}", answer == FormAnswer::Declined)).await?;
            Ok(StopReason::EndTurn)
        }
    });
    let harness = Harness::start(agent).await.unwrap();
    let session = harness.new_session().await.unwrap();
    session.fill_forms(json!({ "one": "b" }));
    session.allow_permissions();
    let turn = session.prompt("go").await.unwrap();
    assert_eq!((turn.text.as_str(), *calls.lock().unwrap()), ("before after b true false", 1));
    assert_eq!(turn.questions, ["Which?", "go"]);
}

#[tokio::test]
async fn a_sink_that_was_kept_says_nothing_after_the_end() {
    let kept = Arc::new(Mutex::new(None));
    let keeper = Arc::clone(&kept);
    let agent = Agent::new(info("keeping")).on_prompt(move |_, sink| {
        *keeper.lock().unwrap() = Some(sink);
        async { Ok(StopReason::EndTurn) }
    });
    let harness = Harness::start(agent).await.unwrap();
    harness.new_session().await.unwrap().prompt("go").await.unwrap();
    let sink: UpdateSink = kept.lock().unwrap().take().unwrap();
    assert_eq!(sink.text("still here").await, Err(UpdateError::Ended));
}
