//! The other side of goose's REST: events of a goosed as reports, prompts and answers as its requests.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use std::sync::Arc;

use gander_domain::{
    Answer, ChoiceKind, Message, MessageId, Outcome, Part, QuestionKind, Reply, Report, Role, Timestamp, ToolEnd,
    ToolGate,
};
use gander_testkit::CountingIds;
use gander_wire::goose::client::request::{self, ProviderChoice};
use gander_wire::goose::client::{GoosedRequest, GoosedTurn};
use serde_json::{Value, json};

struct Heard {
    turn: GoosedTurn,
    ids: CountingIds,
    reports: Vec<Report>,
}

impl Heard {
    fn new() -> Self {
        Self { turn: GoosedTurn::new("mock/model"), ids: CountingIds::default(), reports: Vec::new() }
    }

    fn event(&mut self, event: Value) -> &mut Self {
        self.reports.extend(self.turn.handle_event(&event, &mut self.ids));
        self
    }

    fn says(&mut self, id: &str, content: Value) -> &mut Self {
        self.event(json!({
            "type": "Message",
            "message": {"id": id, "role": "assistant", "created": 1, "content": [content], "metadata": {}},
        }))
    }

    fn told(&self) -> Vec<String> {
        self.reports.iter().map(line).collect()
    }
}

fn line(report: &Report) -> String {
    match report {
        Report::MessageStarted { .. } => "started".to_owned(),
        Report::Deltas(deltas) => format!("{:?} {}", deltas[0].growth, deltas[0].text),
        Report::MessageDone { tail, interrupted, .. } => format!("done {} {interrupted}", tail.len()),
        Report::ToolWanted { call, gate } => {
            let gate = match gate {
                ToolGate::External => "runs",
                ToolGate::Ask(_) => "asks",
                ToolGate::Open | ToolGate::Denied(_) => "never",
            };
            format!("{} {gate}", call.name)
        }
        Report::ToolDone { result, .. } => format!("tool {:?}", result.end),
        Report::Asked(question) => format!("asked {}", question.title),
        Report::UsageAdded(usage) => format!("used {} {} {}", usage.model, usage.input, usage.output),
        Report::Noticed(notice) => format!("notice {}", notice.title),
        Report::Ended(outcome) => format!("{outcome:?}"),
        other => format!("{other:?}"),
    }
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn tool_request(id: &str) -> Value {
    let value = json!({"name": "shell", "arguments": {"command": "ls"}});
    json!({"type": "toolRequest", "id": id, "toolCall": {"status": "success", "value": value}})
}

fn tool_response(id: &str) -> Value {
    let value = json!({"content": [text("a.txt")], "isError": false});
    json!({"type": "Message", "message": {"id": "r", "role": "user", "content": [
        {"type": "toolResponse", "id": id, "toolResult": {"status": "success", "value": value}},
    ]}})
}

fn finish(state: Value) -> Value {
    json!({"type": "Finish", "reason": "stop", "token_state": state})
}

#[test]
fn words_under_one_id_are_one_message_and_pings_say_nothing() {
    let mut heard = Heard::new();
    heard.event(json!({"type": "Ping"})).says("m1", json!({"type": "thinking", "thinking": "hm", "signature": ""}));
    heard.says("m1", text("he")).event(json!({"type": "Ping"})).says("m1", text("llo")).says("m2", text("again"));
    heard.event(finish(json!({"inputTokens": 7, "outputTokens": 2})));
    assert_eq!(
        heard.told(),
        [
            "started",
            "Thought hm",
            "Text he",
            "Text llo",
            "done 0 false",
            "started",
            "Text again",
            "done 0 false",
            "used mock/model 7 2",
            "Completed { stop: EndTurn }",
        ]
    );
    assert!(heard.turn.is_over());
}

#[test]
fn what_a_turn_used_is_the_growth_of_the_sums() {
    let state =
        |input, output| json!({"inputTokens": 1, "accumulatedInputTokens": input, "accumulatedOutputTokens": output});
    let mut heard = Heard::new();
    let mut message = json!({"type": "Message", "message": {"id": "m", "role": "assistant", "content": [text("x")]}});
    message["token_state"] = state(100, 10);
    heard.event(message.clone());
    message["token_state"] = state(150, 30);
    heard.event(message).event(finish(state(170, 31)));
    let used: Vec<String> = heard.told().into_iter().filter(|line| line.starts_with("used")).collect();
    assert_eq!(used, ["used mock/model 50 20", "used mock/model 20 1"]);
}

#[test]
fn a_tool_that_does_not_ask_runs() {
    let mut heard = Heard::new();
    heard.says("m1", text("look")).says("m1", tool_request("call_1")).event(tool_response("call_1"));
    heard.event(finish(Value::Null));
    let expected =
        ["started", "Text look", "done 1 false", "shell runs", "tool Completed", "Completed { stop: EndTurn }"];
    assert_eq!(heard.told(), expected);
}

#[test]
fn a_tool_that_asks_runs_after_a_yes() {
    let mut heard = Heard::new();
    let confirmation = json!({"type": "actionRequired", "data": {
        "actionType": "toolConfirmation", "id": "call_1", "toolName": "shell", "arguments": {}, "prompt": null}});
    heard.says("m1", tool_request("call_1")).says("", confirmation);
    assert_eq!(heard.told(), ["started", "done 1 false", "shell asks"]);
    let Some(Report::ToolWanted { call, gate: ToolGate::Ask(question) }) = heard.reports.last().cloned() else {
        panic!()
    };
    let QuestionKind::Choose { choices } = &question.ask else { panic!() };
    assert_eq!(choices.len(), 4);
    let reply = Reply::Chosen { choice: "always_allow".into(), kind: ChoiceKind::AllowAlways };
    let (tell, report) =
        heard.turn.answer_question(question.id, &Answer { by: None, door: None, reply: reply.clone() }).unwrap();
    assert_eq!(tell, GoosedRequest::Confirm { id: "call_1".into(), action: "always_allow" });
    assert_eq!(report, Some(Report::ToolReady { call: call.id }));
    assert_eq!(
        heard.turn.answer_question(question.id, &Answer { by: None, door: None, reply }),
        None,
        "an answer counts once"
    );
    heard.event(tool_response("call_1"));
    let Some(Report::ToolDone { call: done, result }) = heard.reports.last() else { panic!() };
    assert_eq!((*done, result.end), (call.id, ToolEnd::Completed));
}

#[test]
fn a_no_does_not_let_the_tool_run_and_a_form_is_filled_in() {
    let mut heard = Heard::new();
    heard.says("m1", tool_request("c")).event(json!({"type": "Ping"}));
    let late = json!({"type": "actionRequired", "data": {
        "actionType": "toolConfirmation", "id": "c", "toolName": "shell", "prompt": "really?"}});
    let form = json!({"type": "actionRequired", "data": {
        "actionType": "elicitation", "id": "e1", "message": "Which?", "requested_schema": {"type": "object"}}});
    heard.says("", late).says("", form);
    assert_eq!(heard.told()[2..], ["shell runs", "asked shell (really?)", "asked Which?"]);
    let questions: Vec<_> = heard
        .reports
        .iter()
        .filter_map(|report| match report {
            Report::Asked(question) => Some(question.clone()),
            _ => None,
        })
        .collect();
    let no = Reply::Chosen { choice: "deny_once".into(), kind: ChoiceKind::RejectOnce };
    let told = heard.turn.answer_question(questions[0].id, &Answer { by: None, door: None, reply: no }).unwrap();
    assert_eq!(told, (GoosedRequest::Confirm { id: "c".into(), action: "deny_once" }, None));
    let filled = Reply::Filled { content: json!({"x": 1}) };
    let told = heard.turn.answer_question(questions[1].id, &Answer { by: None, door: None, reply: filled }).unwrap();
    assert_eq!(told, (GoosedRequest::Elicited { id: "e1".into(), data: json!({"x": 1}) }, None));
}

#[test]
fn a_cut_stream_keeps_what_came_and_says_so() {
    let mut heard = Heard::new();
    heard.says("m1", text("half"));
    let last = heard.turn.handle_stream_end("connection reset");
    let outcome = Outcome::failed("stream_cut", "Goose's stream broke off: connection reset");
    assert_eq!(last.iter().map(line).collect::<Vec<_>>(), ["done 0 true".to_owned(), format!("{outcome:?}")]);
    assert_eq!(heard.turn.handle_stream_end("again"), [], "a run ends once");
}

#[test]
fn an_error_ends_the_run_and_a_lost_session_is_known_as_such() {
    let mut heard = Heard::new();
    heard.event(json!({"type": "Error", "error": "Provider not set"})).event(finish(Value::Null));
    assert_eq!(heard.told(), [format!("{:?}", Outcome::failed("goose", "Provider not set"))]);
    let mut lost = Heard::new();
    lost.event(json!({"type": "Error", "error": "Failed to read session: Session not found"}));
    let last = lost.turn.handle_stream_end("end");
    assert_eq!(last, [Report::Ended(Outcome::failed("not_found", "Goose session not found"))]);
}

#[test]
fn a_result_goes_back_under_the_id_that_goose_gave() {
    let mut heard = Heard::new();
    heard.says("m1", tool_request("call_77"));
    let Some(Report::MessageDone { tail, native, .. }) = heard.reports.last().cloned() else { panic!() };
    let Part::ToolUse { call, .. } = &tail[0] else { panic!() };
    let id = MessageId::new(call.uuid());
    let said = Message { id, role: Role::Agent, parts: tail.clone(), interrupted: false, native };
    let response = json!({"functionResponse": {"id": call.to_string(), "name": "shell", "response": {"ok": 1}}});
    let parts = [Part::text("done"), Part::Unknown(response)];
    let message = request::goosed_prompt_message(&parts, &[Arc::new(said)], Timestamp::from_micros(5_000_000));
    let value =
        json!({"content": [{"type": "text", "text": "{\"ok\":1}"}], "isError": false, "structuredContent": {"ok": 1}});
    assert_eq!(
        message,
        json!({
            "id": null, "role": "user", "created": 5, "metadata": {"userVisible": true, "agentVisible": true},
            "content": [text("done"), {"type": "toolResponse", "id": "call_77", "toolResult": {"status": "success", "value": value}}],
        })
    );
}

#[test]
fn the_provider_is_told_only_if_there_is_something_to_tell() {
    let wanted = |model: Option<&str>, parameters: Value| ProviderChoice {
        model: model.map(str::to_owned),
        parameters: parameters.as_object().cloned().unwrap(),
    };
    let told =
        |model, parameters, current| request::goosed_update_provider_body("s", &wanted(model, parameters), current);
    assert_eq!(told(None, json!({}), Some("openai")), None);
    assert_eq!(told(Some("gpt"), json!({}), None), None, "nobody knows whose model that is");
    assert_eq!(
        told(Some("openai/gpt"), json!({"temperature": 0.5, "context_limit": 9}), None),
        Some(
            json!({"session_id": "s", "provider": "openai", "model": "gpt", "context_limit": 9, "request_params": {"temperature": 0.5}})
        )
    );
    assert_eq!(
        told(None, json!({"top_p": 1}), Some("openai")),
        Some(json!({"session_id": "s", "provider": "openai", "request_params": {"top_p": 1}}))
    );
}
