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
    let house = TestServer::open().await;
    let session = house.session(1).await;
    house.goose.will_reply(vec![says("he"), says("llo"), finishes(12, 3)]);
    let events = house.run(session, 1, "hi").await;
    assert_eq!(said(&events), ["hello"]);
    assert_eq!(outcome(&events), &DONE);
    let usage = Usage { model: "goose".to_owned(), input: 12, output: 3, ..Usage::default() };
    assert!(events.contains(&Event::UsageAdded { usage }), "{events:?}");
    let prompt = &house.goose.heard("POST /reply")[0]["user_message"];
    assert_eq!(prompt["content"], json!([{"type": "text", "text": "hi"}]));
}

#[tokio::test]
async fn a_tool_of_goose_is_told_and_not_run_here() {
    let house = TestServer::open().await;
    let session = house.session(1).await;
    let arguments = json!({"command": "ls"});
    house.goose.will_reply(vec![
        says("look: "),
        calls("call_1", "shell", &arguments),
        gives("call_1", "a.txt"),
        says("one file"),
        finishes(1, 1),
    ]);
    let events = house.run(session, 1, "what is here?").await;
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
        let house = TestServer::open().await;
        let session = house.session(1).await;
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
        house.goose.will_reply(steps);
        let run = house.prompt(session, 1, vec![Part::text("go")], None).await;
        house.until(session, run, asked).await;
        house.answer(session, kind).await;
        let events = house.until(session, run, ended).await;
        assert_eq!(outcome(&events), &DONE);
        assert_eq!(result(&events).unwrap().end, end);
        let confirmation = &house.goose.heard("POST /action-required/tool-confirmation")[0];
        assert_eq!((&confirmation["id"], &confirmation["action"]), (&json!("call_1"), &json!(action)));
        let started = events.iter().filter(|event| matches!(event, Event::ToolStarted { .. })).count();
        assert_eq!(started, usize::from(kind == AllowOnce), "nothing starts without a yes");
    }
}

#[tokio::test]
async fn before_1_16_answers_went_elsewhere() {
    let house = TestServer::open().await;
    let session = house.session(1).await;
    house.goose.will_fail("POST /action-required/tool-confirmation", &[404]);
    house.goose.will_reply(vec![
        calls("c", "shell", &json!({})),
        asks("c", "shell"),
        Step::Confirmed,
        gives("c", "x"),
        finishes(1, 1),
    ]);
    let run = house.prompt(session, 1, vec![Part::text("go")], None).await;
    house.until(session, run, asked).await;
    house.answer(session, AllowOnce).await;
    house.until(session, run, ended).await;
    assert_eq!(house.goose.heard("POST /confirm").len(), 1);
}

#[tokio::test]
async fn a_form_of_goose_is_filled_in_here() {
    let house = TestServer::open().await;
    let session = house.session(1).await;
    let data =
        json!({"actionType": "elicitation", "id": "e1", "message": "Which?", "requested_schema": {"type": "object"}});
    let form = json!({"type": "Message", "message": {"id": null, "role": "assistant", "content": [{"type": "actionRequired", "data": data}]}});
    house.goose.will_reply(vec![Step::Event(form), Step::Elicited, says("thanks"), finishes(1, 1)]);
    let run = house.prompt(session, 1, vec![Part::text("go")], None).await;
    house.until(session, run, asked).await;
    let question = house.hub.view(session).await.unwrap().run.unwrap().questions.remove(0);
    assert_eq!(question.ask, QuestionKind::Form { schema: json!({"type": "object"}) });
    house.reply(session, question.id, Reply::Filled { content: json!({"x": 1}) }).await;
    let events = house.until(session, run, ended).await;
    assert_eq!(said(&events), ["thanks"]);
    let answer = &house.goose.heard("POST /reply")[1]["user_message"]["content"][0]["data"];
    assert_eq!(answer, &json!({"actionType": "elicitationResponse", "id": "e1", "user_data": {"x": 1}}));
}

#[tokio::test]
async fn a_cut_stream_keeps_what_came() {
    let house = TestServer::open().await;
    let session = house.session(1).await;
    house.goose.will_reply(vec![says("half an ans"), Step::Cut]);
    let events = house.run(session, 1, "go").await;
    assert_eq!(said(&events), ["half an ans"]);
    let Outcome::Failed { reason, .. } = outcome(&events) else { panic!("{events:?}") };
    assert_eq!(reason, "stream_cut");
}

#[tokio::test]
async fn cancelling_leaves_the_stream_and_so_stops_goose() {
    let house = TestServer::open().await;
    let session = house.session(1).await;
    house.goose.will_reply(vec![says("working"), Step::Hang]);
    let run = house.prompt(session, 1, vec![Part::text("go")], None).await;
    house.until(session, run, |event| matches!(event, Event::PartDelta { .. })).await;
    let command = Command::Cancel { run: None, origin: build::origin() };
    house.hub.command(&Caller::local_owner(), session, command, Ack::Committed).await.unwrap();
    let events = house.until(session, run, ended).await;
    assert_eq!(outcome(&events), &Outcome::Cancelled);
    house.goose.is_left(1).await;
}

#[tokio::test]
async fn an_error_of_goose_is_the_end_of_the_run() {
    let house = TestServer::open().await;
    let session = house.session(1).await;
    house.goose.will_reply(vec![Step::Event(json!({"type": "Error", "error": "Provider not set"}))]);
    let events = house.run(session, 1, "go").await;
    assert_eq!(outcome(&events), &Outcome::failed("goose", "Provider not set"));
}

#[tokio::test]
async fn what_is_no_event_ends_the_run_too() {
    let house = TestServer::open().await;
    let session = house.session(1).await;
    house.goose.will_reply(vec![
        Step::Event(json!("not an object")),
        Step::Event(json!({"type": "Later"})),
        goosed::finishes(1, 1),
    ]);
    let events = house.run(session, 1, "go").await;
    assert_eq!(outcome(&events), &DONE, "what nobody knows is passed over");
}
