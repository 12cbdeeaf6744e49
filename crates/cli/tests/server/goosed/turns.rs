//! What a goosed streams, as it stands in the log.

use gander_domain::ChoiceKind::{AllowOnce, RejectOnce};
use gander_domain::caller::Caller;
use gander_domain::{Command, Event, Outcome, Part, QuestionKind, Reply, StopReason, ToolEnd, ToolResult, Usage};
use gander_runtime::hub::Ack;
use gander_testkit::goosed::{Step, asks, calls, finishes, gives, says};
use gander_testkit::{build, goosed};
use serde_json::json;

use super::test_server::{TestServer, outcome, said};

fn asked(event: &Event) -> bool {
    matches!(event, Event::QuestionAsked { .. })
}

fn ended(event: &Event) -> bool {
    matches!(event, Event::RunEnded { .. })
}

fn result(events: &[Event]) -> Option<&ToolResult> {
    events.iter().find_map(|event| match event {
        Event::ToolDone { result, .. } => Some(result),
        _ => None,
    })
}

const DONE: Outcome = Outcome::Completed { stop: StopReason::EndTurn };

#[tokio::test]
async fn words_come_as_they_are_streamed_and_usage_is_counted() {
    let server = TestServer::open().await;
    let session = server.session(1).await;
    server.goose.will_reply(vec![says("he"), says("llo"), finishes(12, 3)]);
    let events = server.run(session, 1, "hi").await;
    assert_eq!(said(&events), ["hello"]);
    assert_eq!(outcome(&events), &DONE);
    let usage = Usage { model: "goose".to_owned(), input: 12, output: 3, ..Usage::default() };
    assert!(events.contains(&Event::UsageAdded { usage }), "{events:?}");
    let prompt = &server.goose.heard("POST /reply")[0]["user_message"];
    assert_eq!(prompt["content"], json!([{"type": "text", "text": "hi"}]));
}

#[tokio::test]
async fn a_tool_of_goose_is_told_and_not_run_here() {
    let server = TestServer::open().await;
    let session = server.session(1).await;
    let arguments = json!({"command": "ls"});
    server.goose.will_reply(vec![
        says("look: "),
        calls("call_1", "shell", &arguments),
        gives("call_1", "a.txt"),
        says("one file"),
        finishes(1, 1),
    ]);
    let events = server.run(session, 1, "what is here?").await;
    assert_eq!(said(&events), ["look: ", "one file"]);
    assert_eq!(result(&events), Some(&ToolResult::text(ToolEnd::Completed, "a.txt")));
    let call = events.iter().find_map(|event| match event {
        Event::ToolCalled { call } => Some(call),
        _ => None,
    });
    assert_eq!(call.map(|call| (call.name.as_str(), &call.arguments)), Some(("shell", &arguments)));
}

#[tokio::test]
async fn a_question_of_goose_is_answered_here() {
    for (kind, action, end) in
        [(AllowOnce, "allow_once", ToolEnd::Completed), (RejectOnce, "deny_once", ToolEnd::Failed)]
    {
        let server = TestServer::open().await;
        let session = server.session(1).await;
        let response = match end {
            ToolEnd::Completed => gives("call_1", "done"),
            _ => {
                let value = json!({"content": [{"type": "text", "text": "declined"}], "isError": true});
                let content = json!({"type": "toolResponse", "id": "call_1", "toolResult": {"status": "success", "value": value}});
                Step::Event(json!({"type": "Message", "message": {"id": "t", "role": "user", "content": [content]}}))
            }
        };
        let steps = vec![
            calls("call_1", "shell", &json!({})),
            asks("call_1", "shell"),
            Step::Confirmed,
            response,
            finishes(1, 1),
        ];
        server.goose.will_reply(steps);
        let run = server.prompt(session, 1, vec![Part::text("go")], None).await;
        server.until(session, run, asked).await;
        server.answer(session, kind).await;
        let events = server.until(session, run, ended).await;
        assert_eq!(outcome(&events), &DONE);
        assert_eq!(result(&events).unwrap().end, end);
        let confirmation = &server.goose.heard("POST /action-required/tool-confirmation")[0];
        assert_eq!((&confirmation["id"], &confirmation["action"]), (&json!("call_1"), &json!(action)));
        let started = events.iter().filter(|event| matches!(event, Event::ToolStarted { .. })).count();
        assert_eq!(started, usize::from(kind == AllowOnce), "nothing starts without a yes");
    }
}

#[tokio::test]
async fn before_1_16_answers_went_elsewhere() {
    let server = TestServer::open().await;
    let session = server.session(1).await;
    server.goose.will_fail("POST /action-required/tool-confirmation", &[404]);
    server.goose.will_reply(vec![
        calls("c", "shell", &json!({})),
        asks("c", "shell"),
        Step::Confirmed,
        gives("c", "x"),
        finishes(1, 1),
    ]);
    let run = server.prompt(session, 1, vec![Part::text("go")], None).await;
    server.until(session, run, asked).await;
    server.answer(session, AllowOnce).await;
    server.until(session, run, ended).await;
    assert_eq!(server.goose.heard("POST /confirm").len(), 1);
}

#[tokio::test]
async fn a_form_of_goose_is_filled_in_here() {
    let server = TestServer::open().await;
    let session = server.session(1).await;
    let data =
        json!({"actionType": "elicitation", "id": "e1", "message": "Which?", "requested_schema": {"type": "object"}});
    let form = json!({"type": "Message", "message": {"id": null, "role": "assistant", "content": [{"type": "actionRequired", "data": data}]}});
    server.goose.will_reply(vec![Step::Event(form), Step::Elicited, says("thanks"), finishes(1, 1)]);
    let run = server.prompt(session, 1, vec![Part::text("go")], None).await;
    server.until(session, run, asked).await;
    let question = server.hub.session_view(session).await.unwrap().run.unwrap().questions.remove(0);
    assert_eq!(question.ask, QuestionKind::Form { schema: json!({"type": "object"}) });
    server.reply(session, question.id, Reply::Filled { content: json!({"x": 1}) }).await;
    let events = server.until(session, run, ended).await;
    assert_eq!(said(&events), ["thanks"]);
    let answer = &server.goose.heard("POST /reply")[1]["user_message"]["content"][0]["data"];
    assert_eq!(answer, &json!({"actionType": "elicitationResponse", "id": "e1", "user_data": {"x": 1}}));
}

#[tokio::test]
async fn a_cut_stream_keeps_what_came() {
    let server = TestServer::open().await;
    let session = server.session(1).await;
    server.goose.will_reply(vec![says("half an ans"), Step::Cut]);
    let events = server.run(session, 1, "go").await;
    assert_eq!(said(&events), ["half an ans"]);
    let Outcome::Failed { reason, .. } = outcome(&events) else { panic!("{events:?}") };
    assert_eq!(reason, "stream_cut");
}

#[tokio::test]
async fn cancelling_leaves_the_stream_and_so_stops_goose() {
    let server = TestServer::open().await;
    let session = server.session(1).await;
    server.goose.will_reply(vec![says("working"), Step::Hang]);
    let run = server.prompt(session, 1, vec![Part::text("go")], None).await;
    server.until(session, run, |event| matches!(event, Event::PartDelta { .. })).await;
    let command = Command::Cancel { run: None, origin: build::origin() };
    server.hub.execute_command(&Caller::local_owner(), session, command, Ack::Committed).await.unwrap();
    let events = server.until(session, run, ended).await;
    assert_eq!(outcome(&events), &Outcome::Cancelled);
    server.goose.is_left(1).await;
}

#[tokio::test]
async fn an_error_of_goose_is_the_end_of_the_run() {
    let server = TestServer::open().await;
    let session = server.session(1).await;
    server.goose.will_reply(vec![Step::Event(json!({"type": "Error", "error": "Provider not set"}))]);
    let events = server.run(session, 1, "go").await;
    assert_eq!(outcome(&events), &Outcome::failed("goose", "Provider not set"));
}

#[tokio::test]
async fn what_is_no_event_ends_the_run_too() {
    let server = TestServer::open().await;
    let session = server.session(1).await;
    server.goose.will_reply(vec![
        Step::Event(json!("not an object")),
        Step::Event(json!({"type": "Later"})),
        goosed::finishes(1, 1),
    ]);
    let events = server.run(session, 1, "go").await;
    assert_eq!(outcome(&events), &DONE, "what nobody knows is passed over");
}
