//! The chat without a terminal and without a server: keys and messages in, screen and calls out.
#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use gander_client::Error;
use gander_client::schema::{ClientCapabilities, ElicitationCapabilities, ElicitationFormCapabilities, Implementation};
use gander_wire::acp::client::{AgentClient, AgentEvent};
use serde_json::{Value, json};

use super::app::{ChatApp, TerminalAction};
use super::conversation::{Conversation, Work};
use super::effects::{Call, Effect};
use super::history::InputHistory;
use super::key_parser::{Key, KeyParser};
use super::transcript::{Echo, Transcript};
use super::view::Frame;
use crate::output::Style;

/// An app, a server that says what the test says, and everything that was printed.
struct Bench {
    app: ChatApp,
    client: AgentClient,
    now: Instant,
    printed: Vec<String>,
}

impl Bench {
    /// In a new session in which nothing was said yet.
    fn new() -> Self {
        let conversation = Conversation::new(Transcript::new(Style::Plain, 60, Echo::Shown), "/workspace".into(), None);
        let app = ChatApp::new(conversation, InputHistory::default());
        let mut client = AgentClient::default();
        let forms = ElicitationCapabilities::new().form(ElicitationFormCapabilities::new());
        client.initialize_with(Implementation::new("test", "1"), ClientCapabilities::new().elicitation(forms));
        let mut bench = Self { app, client, now: Instant::now(), printed: Vec::new() };
        bench.app.conversation.handle_connected();
        assert_eq!(bench.calls(), ["session/new"]);
        let option = |id: &str, current: &str| {
            let choices = json!([{ "value": current, "name": current }, { "value": "other", "name": "Other" }]);
            json!({ "id": id, "name": id, "type": "select", "currentValue": current, "options": choices })
        };
        let opened =
            json!({ "sessionId": "s1", "configOptions": [option("mode", "assistant"), option("model", "a/b")] });
        bench.answer(Call::New, opened);
        bench.answer(Call::Show, json!({ "workspace": "/workspace", "run": null }));
        bench.calls();
        bench
    }

    fn type_text(&mut self, text: &str) {
        for key in KeyParser::default().push(text.as_bytes()) {
            assert_eq!(self.app.handle_key(self.now, key), TerminalAction::Nothing);
        }
    }

    /// The blocks of the prompts that were sent, and nothing else.
    fn prompts(&mut self) -> Vec<String> {
        let mut prompts = Vec::new();
        while let Some(effect) = self.app.conversation.poll_effect() {
            if let Effect::Call { method: "session/prompt", params, .. } = effect {
                prompts.push(params["prompt"].to_string());
            }
        }
        prompts
    }

    fn press(&mut self, key: Key) {
        self.now += Duration::from_secs(2);
        self.app.handle_key(self.now, key);
    }

    fn answer(&mut self, call: Call, result: Value) {
        self.app.conversation.handle_answer(call, Ok(result));
        self.app.settle(self.now);
    }

    /// The server sends a message.
    fn tell(&mut self, message: &Value) {
        self.client.handle_message(message.to_string().as_bytes());
        while let Some(event) = self.client.poll_event() {
            self.app.conversation.handle_event(event);
        }
        self.app.settle(self.now);
    }

    fn update(&mut self, update: &Value) {
        let params = json!({ "sessionId": "s1", "update": update });
        self.tell(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }));
    }

    fn say(&mut self, message: &str, text: &str) {
        let content = json!({ "type": "text", "text": text });
        self.update(&json!({ "sessionUpdate": "agent_message_chunk", "messageId": message, "content": content }));
    }

    fn ask(&mut self) {
        let options = json!([
            { "optionId": "yes", "name": "Allow", "kind": "allow_once" },
            { "optionId": "always", "name": "Always allow", "kind": "allow_always" },
            { "optionId": "no", "name": "Reject", "kind": "reject_once" },
        ]);
        let tool = json!({ "toolCallId": "t1", "title": "touch a", "kind": "execute", "name": "shell", "rawInput": { "command": "touch a" } });
        let params = json!({ "sessionId": "s1", "toolCall": tool, "options": options });
        self.tell(&json!({ "jsonrpc": "2.0", "id": "q1", "method": "session/request_permission", "params": params }));
    }

    /// What is wanted, in a word each: methods, answers, the end.
    fn calls(&mut self) -> Vec<String> {
        let mut calls = Vec::new();
        while let Some(effect) = self.app.conversation.poll_effect() {
            calls.push(match effect {
                Effect::Call { method, .. } => method.to_owned(),
                Effect::Cancel { session } => format!("cancel {session}"),
                Effect::Respond { responder, response } => {
                    self.client.respond(responder, &response);
                    if let Some(action) = response["action"].as_str() {
                        calls.push(format!("{action} {}", response["content"]));
                        continue;
                    }
                    let reason = response["_meta"]["gander/reason"].as_str().unwrap_or_default();
                    format!("{} {reason}", response["outcome"]["optionId"].as_str().unwrap()).trim_end().to_owned()
                }
                Effect::Decline { permission } => {
                    self.client.decline(permission);
                    "decline".to_owned()
                }
                Effect::Leave { exit } => format!("leave {exit:?}"),
            });
        }
        self.printed.extend(self.app.conversation.transcript.take_done());
        calls
    }

    fn printed(&mut self) -> String {
        self.calls();
        self.printed.join("\n")
    }

    fn screen(&self, columns: usize, rows: usize) -> Vec<String> {
        let frame = Frame { columns, rows, tick: 0, waited: Duration::ZERO };
        let view = self.app.view(frame, Style::Plain);
        assert!(view.rows.len() <= rows && view.cursor.0 < view.rows.len(), "{view:?}");
        assert!(view.rows.iter().all(|row| row.chars().count() < columns), "{view:?}");
        view.rows
    }
}

#[test]
fn a_prompt_streams_and_ends() {
    let mut bench = Bench::new();
    bench.type_text("hello\r");
    assert_eq!(bench.calls(), ["session/prompt"]);
    bench.say("m1", "**Hi** there");
    assert_eq!(bench.screen(60, 20)[0], "Hi there");
    assert!(bench.screen(60, 20).iter().any(|row| row.contains("waiting for a/b")));
    assert!(!bench.printed().contains("Hi there"), "what still grows is not in the scrollback");
    bench.answer(Call::Prompt, json!({ "stopReason": "end_turn", "usage": { "inputTokens": 5, "outputTokens": 7 } }));
    assert!(bench.printed().ends_with("› hello\n\nHi there\n\n  5 tokens in, 7 out · 0 s"), "{}", bench.printed());
    assert_eq!(bench.app.conversation.work, Work::Idle);
    assert_eq!(bench.screen(60, 20), ["", "› ", "assistant · a/b · /help"]);
}

#[test]
fn a_question_is_answered_with_a_key_or_with_words() {
    for (keys, answer) in [("y", "yes"), ("n", "no"), ("a", "always"), ("3", "no"), ("rnot now\r", "no not now")] {
        let mut bench = Bench::new();
        bench.type_text("go\r");
        bench.calls();
        bench.ask();
        let screen = bench.screen(60, 20).join("\n");
        assert!(screen.contains("? Run this command?\n    $ touch a\n  1) Allow (y)"), "{screen}");
        bench.now += Duration::from_secs(2);
        bench.type_text(keys);
        assert_eq!(bench.calls(), [answer], "{keys}");
        assert!(!bench.app.is_asked());
    }
}

#[test]
fn who_is_typing_does_not_answer_by_accident() {
    let mut bench = Bench::new();
    bench.type_text("go\r");
    bench.calls();
    bench.type_text("next I wa");
    bench.ask();
    bench.type_text("ny");
    assert_eq!((bench.calls(), bench.app.editor.text()), (Vec::new(), "next I wany"));
    bench.press(Key::Char('y'));
    assert_eq!(bench.calls(), ["yes"]);
    assert_eq!(bench.app.editor.text(), "next I wany", "the draft is still there");
}

#[test]
fn a_question_that_others_answered_is_gone() {
    let mut bench = Bench::new();
    bench.ask();
    bench.tell(&json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": "q1" } }));
    assert_eq!((bench.app.is_asked(), bench.calls()), (false, vec!["decline".to_owned()]));
    assert!(bench.printed().contains("answered by another client"));
}

#[test]
fn a_form_is_filled_in_field_by_field() {
    let mut bench = Bench::new();
    bench.type_text("go\r");
    bench.calls();
    let properties = json!({
        "a": { "type": "string", "title": "Your name" },
        "b": { "type": "integer", "maximum": 8 },
        "c": { "type": "string", "enum": ["red", "blue"] },
    });
    let schema = json!({ "type": "object", "properties": properties, "required": ["a", "b"] });
    let params = json!({ "sessionId": "s1", "mode": "form", "message": "Who are you?", "requestedSchema": schema });
    let request = json!({ "jsonrpc": "2.0", "id": "f1", "method": "elicitation/create", "params": params });
    bench.tell(&request);
    assert!(
        bench.screen(60, 20).join("\n").contains("? Who are you?\n  1 of 3: Your name"),
        "{:?}",
        bench.screen(60, 20)
    );
    bench.now += Duration::from_secs(2);
    bench.type_text("Ada\rmany\r");
    assert!(bench.screen(60, 20).join("\n").contains("not a whole number\n› many"));
    bench.press(Key::KillToStart);
    bench.type_text("30\r");
    assert!(bench.screen(60, 20).join("\n").contains("must be at most 8\n› 30"), "{:?}", bench.screen(60, 20));
    bench.press(Key::KillToStart);
    bench.type_text("3\r\r");
    assert_eq!(bench.calls(), [r#"accept {"a":"Ada","b":3}"#]);
    bench.tell(&request);
    bench.press(Key::Escape);
    assert_eq!(bench.calls(), ["decline null"]);
    bench.tell(&request);
    bench.tell(&json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": "f1" } }));
    assert_eq!((bench.app.is_asked(), bench.calls()), (false, vec!["cancel null".to_owned()]));
}

#[test]
fn a_message_that_did_not_arrive_is_sent_again_with_its_links() {
    let mut bench = Bench::new();
    bench.type_text("read @notes.md \r");
    let sent = bench.prompts();
    assert!(sent[0].contains("file:///workspace/notes.md"), "{sent:?}");
    bench.app.conversation.handle_lost();
    bench.app.conversation.handle_connected();
    bench.answer(Call::Load, json!({}));
    assert_eq!(bench.prompts(), sent);
    assert!(bench.printed().contains("it is sent again"));
}

#[test]
fn ctrl_c_cancels_and_a_second_one_leaves() {
    let mut bench = Bench::new();
    bench.type_text("go\r");
    bench.ask();
    bench.calls();
    bench.press(Key::Interrupt);
    assert_eq!(bench.calls(), ["decline", "cancel s1"]);
    bench.press(Key::Interrupt);
    assert_eq!(bench.calls(), ["leave Done"]);
    let mut idle = Bench::new();
    idle.type_text("draft");
    idle.press(Key::Interrupt);
    assert_eq!((idle.calls(), idle.app.editor.text()), (Vec::new(), ""));
    assert!(idle.screen(60, 20).concat().contains("ctrl-c again leaves"));
    idle.press(Key::Interrupt);
    assert_eq!(idle.calls(), ["leave Done"]);
}

#[test]
fn a_message_that_comes_before_the_session_is_open_waits_for_it() {
    let mut bench = Bench::new();
    bench.type_text("/new\rhello\r");
    assert_eq!(bench.calls(), ["session/new"]);
    bench.answer(Call::New, json!({ "sessionId": "s2" }));
    bench.answer(Call::Show, json!({ "run": null }));
    assert_eq!(bench.calls(), ["_gander/session/show", "session/prompt"]);
}

#[test]
fn a_message_into_a_running_turn_is_handed_to_it() {
    let mut bench = Bench::new();
    bench.type_text("go\r");
    bench.type_text("and faster\r");
    assert_eq!(bench.calls(), ["session/prompt", "_session/steering"]);
    let refused = Error { code: 1, message: "no".into(), data: None };
    bench.app.conversation.handle_answer(Call::Steer("and faster".into()), Err(refused));
    bench.app.settle(bench.now);
    assert_eq!(bench.app.editor.text(), "and faster", "what was not taken goes back to its writer");
}

#[test]
fn the_turn_of_another_client_is_followed_to_its_end() {
    let mut bench = Bench::new();
    let content = json!({ "type": "text", "text": "from the page" });
    bench.update(&json!({ "sessionUpdate": "user_message_chunk", "messageId": "u1", "content": content }));
    assert_eq!(bench.calls(), ["_gander/session/wait"]);
    bench.say("m1", "done\n");
    bench.answer(Call::Wait, json!({ "stopReason": "end_turn" }));
    assert_eq!(bench.app.conversation.work, Work::Idle);
    assert!(bench.printed().ends_with("› from the page\n\ndone"));
}

#[test]
fn a_lost_server_is_found_again_where_it_was() {
    let mut bench = Bench::new();
    bench.type_text("go\r");
    bench.say("m1", "one two ");
    bench.calls();
    bench.app.conversation.handle_lost();
    bench.app.conversation.handle_connected();
    assert_eq!(bench.calls(), ["session/load"]);
    let content = json!({ "type": "text", "text": "go" });
    bench.update(&json!({ "sessionUpdate": "user_message_chunk", "messageId": "u1", "content": content }));
    bench.say("m1", "one two three");
    bench.answer(Call::Load, json!({}));
    bench.answer(Call::Show, json!({ "run": { "id": "r" } }));
    assert_eq!(bench.calls(), ["_gander/session/show", "_gander/session/wait"]);
    bench.say("m1", " four\n");
    bench.answer(Call::Wait, json!({ "stopReason": "end_turn" }));
    let printed = bench.printed();
    assert_eq!((printed.matches("› go").count(), printed.matches("one two").count()), (1, 1), "{printed}");
    assert!(printed.ends_with("three four"), "{printed}");
}

#[test]
fn commands_and_files_are_completed() {
    let mut bench = Bench::new();
    bench.type_text("/mod");
    let screen = bench.screen(60, 20).join("\n");
    assert!(screen.contains("▸ /mode   mode: assistant\n    /model  model: a/b"), "{screen}");
    bench.press(Key::Down);
    bench.press(Key::Tab);
    assert_eq!(bench.app.editor.text(), "/model ");
    bench.press(Key::Enter);
    assert!(bench.screen(60, 20).iter().any(|row| row.starts_with("▸ a/b")), "a list to choose from");
    bench.type_text("oth\r");
    assert_eq!(bench.calls(), ["session/set_config_option"]);
    bench.type_text("see @sr");
    assert_eq!(bench.calls().last().map(String::as_str), Some("_gander/workspace/files"));
    bench.answer(Call::Files { query: "sr".into() }, json!({ "paths": ["src/", "usr.txt"] }));
    bench.press(Key::Tab);
    assert_eq!(bench.app.editor.text(), "see @src/");
    bench.answer(Call::Files { query: "stale".into() }, json!({ "paths": ["x"] }));
    assert!(bench.app.completion.is_none(), "an answer to what is not typed any more");
}

#[test]
fn earlier_inputs_come_back_and_lines_are_added() {
    let mut bench = Bench::new();
    bench.type_text("first\r");
    bench.press(Key::Up);
    assert_eq!(bench.app.editor.text(), "first");
    bench.press(Key::NewLine);
    bench.type_text("second\\\rthird");
    assert_eq!(bench.app.editor.text(), "first\nsecond\nthird");
    assert!(bench.screen(60, 20).join("\n").contains("› first\n  second\n  third"));
}

#[test]
fn everything_fits_into_a_small_terminal() {
    let mut bench = Bench::new();
    bench.type_text("go\r");
    bench.say("m1", &"word ".repeat(400));
    bench.screen(40, 8);
    bench.ask();
    bench.screen(40, 12);
    bench.press(Key::Char('?'));
    bench.screen(60, 24);
    let long = "x".repeat(500);
    bench.press(Key::Char('y'));
    bench.type_text(&long);
    bench.screen(40, 16);
}

/// What the parser of messages makes of an event is all that the machine sees.
#[test]
fn events_of_other_sessions_are_passed_over() {
    let mut bench = Bench::new();
    let content = json!({ "type": "text", "text": "elsewhere" });
    let update = json!({ "sessionUpdate": "agent_message_chunk", "messageId": "m", "content": content });
    bench.tell(
        &json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s2", "update": update } }),
    );
    bench.app.conversation.handle_event(AgentEvent::Notified { method: "x".into(), params: Value::Null });
    assert_eq!((bench.app.conversation.work, bench.calls()), (Work::Idle, Vec::new()));
}
