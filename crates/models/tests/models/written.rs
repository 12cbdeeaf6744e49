//! A conversation that grows is written as if it were written anew each time.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use gander_domain::{Effort, Message, MessageId, Part, Role, ToolCallId, ToolEnd, ToolResult};
use gander_models::wire::{EffortStyle, Profile, Quirks, Wire};
use gander_models::{EncodedHistoryCache, ModelInfo, Request};
use serde_json::{Value, json};
use uuid::Uuid;

const WIRES: [Wire; 3] = [Wire::OpenaiChat, Wire::OpenaiResponses, Wire::Anthropic];

fn profile() -> Profile {
    let info = ModelInfo {
        provider: "somebody".into(),
        model: "m-1".into(),
        window: None,
        max_output: None,
        images: true,
        audio: true,
        thinking: true,
        price: None,
        scripted: false,
    };
    Profile { info, quirks: Quirks { effort: EffortStyle::Budget, ..Quirks::default() } }
}

fn request(messages: &[Arc<Message>]) -> Request {
    let messages = messages.to_vec();
    Request {
        system: "Be brief.".into(),
        messages,
        tools: Arc::new([]),
        effort: Some(Effort::Low),
        temperature: None,
        max_output: None,
        params: serde_json::Map::new(),
    }
}

fn message(number: u128, role: Role, parts: Vec<Part>) -> Arc<Message> {
    let id = MessageId::new(Uuid::from_u128(number));
    Arc::new(Message { id, role, parts, interrupted: number.is_multiple_of(23), native: None })
}

/// Questions, answers, silence, two people in a row, and tools with and without a result.
fn conversation(count: u128) -> Vec<Arc<Message>> {
    let mut messages = Vec::new();
    for number in 0..count {
        let call = ToolCallId::new(Uuid::from_u128(1_000 + number / 7));
        let (role, part) = match number % 7 {
            0 | 4 => (Role::User, Part::text(format!("question {number}"))),
            1 => (Role::Agent, Part::ToolUse { call, name: "list".into(), arguments: json!({"n": number as u64}) }),
            2 if number.is_multiple_of(5) => (Role::Tool, Part::text("")),
            2 => (Role::Tool, Part::ToolResult { call, result: ToolResult::text(ToolEnd::Completed, "a \"b\"") }),
            3 => (Role::Agent, Part::text(format!("answer {number}"))),
            5 => (Role::User, Part::text(if number.is_multiple_of(2) { "" } else { "and more" })),
            _ => (Role::Agent, Part::text(if number.is_multiple_of(3) { "  " } else { "well" })),
        };
        messages.push(message(number + 1, role, vec![part]));
    }
    messages
}

#[test]
fn what_was_written_before_is_used_and_nothing_differs() {
    let messages = conversation(220);
    for wire in WIRES {
        let written = EncodedHistoryCache::default();
        for end in 1..=messages.len() {
            let request = request(&messages[..end]);
            let again = wire.encode_with_cache(&request, &profile(), &written);
            assert_eq!(text(&again), text(&wire.encode(&request, &profile())), "{wire:?}, {end} messages");
        }
    }
}

#[test]
fn another_history_with_the_same_beginning_is_written_for_itself() {
    let messages = conversation(300);
    let mut other = messages[..150].to_vec();
    other.extend(conversation(600).split_off(450));
    for wire in WIRES {
        let written = EncodedHistoryCache::default();
        for history in [&messages, &other, &messages, &messages[..120].to_vec(), &other] {
            let request = request(history);
            let again = wire.encode_with_cache(&request, &profile(), &written);
            assert_eq!(text(&again), text(&wire.encode(&request, &profile())), "{wire:?}");
        }
    }
}

#[test]
fn each_system_prompt_is_written_as_itself() {
    let long = "long \"prompt\"\n".repeat(8_000);
    let many = (0..20).map(|number| format!("You are \"{number}\".\n\u{1}é"));
    let prompts: Vec<String> = many.chain([String::new(), long]).collect();
    for wire in WIRES {
        let written = EncodedHistoryCache::default();
        for prompt in prompts.iter().chain(&prompts[..3]).chain(&prompts[18..]) {
            let request = Request { system: prompt.clone(), ..request(&conversation(3)) };
            let body = wire.encode_with_cache(&request, &profile(), &written);
            let body: Value = serde_json::from_slice(&body).unwrap();
            let said = match wire {
                Wire::OpenaiChat => body["messages"].as_array().unwrap().iter().find(|one| one["role"] == "system"),
                Wire::OpenaiResponses => body.get("instructions"),
                Wire::Anthropic => body.get("system").map(|system| &system[0]["text"]),
            };
            let said = said.map(|said| said.get("content").unwrap_or(said).as_str().unwrap());
            assert_eq!(said, Some(prompt.as_str()).filter(|prompt| !prompt.is_empty()), "{wire:?}");
        }
    }
}

/// Checked to be JSON.
fn text(body: &[u8]) -> String {
    serde_json::from_slice::<Value>(body).unwrap();
    String::from_utf8(body.to_vec()).unwrap()
}
