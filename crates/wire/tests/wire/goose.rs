//! goose's forms: what every scenario's log is told as, and that what any version wrote can be read.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use gander_domain::{
    Command, Entry, Event, IdGenerator, Message, Part, ResetReason, Role, Seq, SessionView, ToolContent, ToolEnd,
};
use gander_testkit::vectors::scenarios;
use gander_wire::goose::{GooseTranscript, projection, requests, whole_goose_transcript};
use serde_json::{Value, json};
use uuid::Uuid;

#[derive(Default)]
struct Counted(u128);

impl IdGenerator for Counted {
    fn next_id(&mut self) -> Uuid {
        self.0 += 1;
        Uuid::from_u128(self.0)
    }
}

/// The events that a client is sent which is there from the beginning.
fn live(log: &[Entry]) -> Vec<String> {
    let mut view = SessionView::from_created(&log[0]).unwrap();
    let mut events = Vec::new();
    for entry in &log[1..] {
        events.extend(projection::project_goose_entry(&view, entry).iter().map(Value::to_string));
        view.apply(entry);
    }
    events
}

#[test]
fn every_scenario_is_told_as_expected() {
    for scenario in scenarios(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors")).unwrap() {
        scenario.check("goose.jsonl", &live(&scenario.log)).unwrap();
        let messages: Vec<String> = whole_goose_transcript(&scenario.log).iter().map(Value::to_string).collect();
        scenario.check("goose_conversation.jsonl", &messages).unwrap();
    }
}

/// Law 7 for this protocol: whoever joins the deltas of one message has what a later reader finds.
#[test]
fn streamed_and_stored_text_are_the_same() {
    for scenario in scenarios(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors")).unwrap() {
        if scenario.log.iter().any(|entry| matches!(entry.event, Event::HistoryReset { .. })) {
            continue; // a history that began anew is told whole
        }
        let mut said = String::new();
        for line in live(&scenario.log) {
            said.push_str(&assistant_text(&serde_json::from_str::<Value>(&line).unwrap()["message"]));
        }
        let stored: String = whole_goose_transcript(&scenario.log).iter().map(assistant_text).collect();
        assert_eq!(said, stored, "{}", scenario.name);
    }
}

fn assistant_text(message: &Value) -> String {
    let pieces = message["content"].as_array().filter(|_| message["role"] == "assistant");
    pieces
        .into_iter()
        .flatten()
        .filter(|piece| piece["type"] == "text")
        .filter_map(|piece| piece["text"].as_str())
        .collect()
}

fn exported() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/data/goose-1.52-export.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn a_conversation_of_goose_comes_out_as_it_went_in() {
    let file = exported();
    let messages = file["conversation"].as_array().unwrap();
    let read = requests::read_goose_conversation(messages, &mut Counted::default()).unwrap();
    let roles: Vec<Role> = read.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::User, Role::Agent, Role::Tool, Role::Agent]);
    let Part::ToolUse { call, name, .. } = &read[2].parts[1] else { panic!("{:?}", read[2]) };
    let Part::ToolResult { call: answered, result } = &read[3].parts[0] else { panic!("{:?}", read[3]) };
    assert_eq!((call, name.as_str(), result.end), (answered, "shell", ToolEnd::Completed));
    let reset = Event::HistoryReset { keep_to: Seq::ZERO, replacement: read, reason: ResetReason::Replaced };
    let entry = Entry { seq: Seq(2), at: Default::default(), run: None, event: reset, meta: None };
    assert_eq!(whole_goose_transcript([&entry]), *messages);
}

#[test]
fn going_back_inside_an_imported_history_says_its_beginning_again() {
    let file = exported();
    let read =
        requests::read_goose_conversation(file["conversation"].as_array().unwrap(), &mut Counted::default()).unwrap();
    let first: Vec<Message> = read[..2].to_vec();
    let reset = Event::HistoryReset { keep_to: Seq::ZERO, replacement: read, reason: ResetReason::Replaced };
    let entry = Entry { seq: Seq(2), at: Default::default(), run: None, event: reset, meta: None };
    let transcript = GooseTranscript::replay([&entry]);
    let back = |count| transcript.rewind_command(count);
    let rewound = |keep_to, replacement| Command::Reset { keep_to, replacement, reason: ResetReason::Rewound };
    assert_eq!(back(2), rewound(Seq::ZERO, first));
    assert_eq!(back(9), rewound(Seq(2), vec![]));
    assert_eq!(transcript.count_before_message("chatcmpl-1"), Some(2));
    assert_eq!(transcript.count_before_second(1_794_811_162), 1);
}

/// A history is not refused for it, but no model is shown as a picture what is none, in a tool's result neither.
#[test]
fn what_is_no_picture_is_not_one_in_a_history() {
    let zip = json!({"type": "image", "data": "UEsDBBQAAAAIAA==", "mimeType": "image/png"});
    let result = json!({"status": "success", "value": {"content": [zip]}});
    let messages = [
        json!({"role": "user", "created": 1, "content": [zip]}),
        json!({"role": "user", "created": 1, "content": [{"type": "toolResponse", "id": "c", "toolResult": result}]}),
    ];
    let read = requests::read_goose_conversation(&messages, &mut Counted::default()).unwrap();
    assert_eq!(read[0].parts, [Part::Unknown(zip.clone())]);
    let Part::ToolResult { result, .. } = &read[1].parts[0] else { panic!("{:?}", read[1]) };
    assert_eq!(result.content, [ToolContent::Part { part: Part::Unknown(zip) }]);
}

/// What adk2goose, old desktops and bots really send.
#[test]
fn lenient_prompts() {
    let cases = [
        (json!({"role": "user", "content": "hi"}), vec![Part::text("hi")]),
        (
            json!({"id": "", "role": "user", "created": 1, "content": [{"type": "text", "text": "a\u{E0041}b"}],
                "metadata": {"user_visible": true}}),
            vec![Part::text("ab")],
        ),
        (
            json!({"content": [{"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}]}),
            vec![Part::Image { mime: "image/png".into(), data: "iVBORw0KGgo=".into(), uri: None }],
        ),
        (
            json!({"content": [{"type": "toolResponse", "id": "c", "toolResult": [{"type": "text", "text": "42"}]}]}),
            vec![Part::text("[result of tool call c]\n42")],
        ),
    ];
    for (message, parts) in cases {
        assert_eq!(
            requests::read_goose_prompt(&message).unwrap(),
            requests::GoosePrompt { parts, answers: vec![] },
            "{message}"
        );
    }
    let answer = json!({"actionType": "elicitationResponse", "id": "e1", "user_data": {"x": 1}});
    let answered =
        requests::read_goose_prompt(&json!({"content": [{"type": "actionRequired", "data": answer}]})).unwrap();
    assert_eq!(answered, requests::GoosePrompt { parts: vec![], answers: vec![("e1".into(), json!({"x": 1}))] });
}

#[test]
fn what_cannot_be_read_is_named() {
    use requests::BadGooseMessage::*;
    let cases = [
        (json!(1), NoObject("message")),
        (json!({"role": "user"}), Empty),
        (json!({"content": []}), Empty),
        (json!({"content": 7}), NoObject("content")),
        (json!({"content": [{"text": "x"}]}), NoType),
        (json!({"content": [{"type": "sparkle", "x": 1}]}), UnknownType("sparkle".into())),
        (json!({"content": [{"type": "text", "text": 7}]}), NoText),
        (json!({"role": "system2", "content": "x"}), BadRole("system2".into())),
        (json!({"role": 7, "content": "x"}), BadRole("7".into())),
    ];
    for (message, error) in cases {
        assert_eq!(requests::read_goose_prompt(&message), Err(error), "{message}");
    }
    // A stored history may be of a later version: what nobody knows is kept.
    let sparkle = json!({"type": "sparkle", "x": 1});
    let kept = requests::read_goose_conversation(&[json!({"content": [sparkle]})], &mut Counted::default()).unwrap();
    assert_eq!(kept[0].parts, [Part::Unknown(sparkle)]);
    let wizard = [json!({"role": "wizard", "content": "x"})];
    assert_eq!(requests::read_goose_conversation(&wizard, &mut Counted::default()), Err(BadRole("wizard".into())));
}
