//! What is sent on the three wires: plain, replayed, from another provider, with images, with orphans.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use expect_test::{Expect, expect};
use gander_domain::{
    Effort, Message, MessageId, Part, ProviderPayload, Role, ToolCallId, ToolContent, ToolEnd, ToolResult, ToolSpec,
};
use gander_models::wire::{EffortStyle, Profile, Quirks, Wire};
use gander_models::{ModelInfo, Request};
use serde_json::{Value, json};
use uuid::Uuid;

fn profile(provider: &str, quirks: Quirks) -> Profile {
    let info = ModelInfo {
        provider: provider.into(),
        model: "m-1".into(),
        window: None,
        max_output: Some(8192),
        images: true,
        audio: true,
        thinking: true,
        price: None,
        scripted: false,
    };
    Profile { info, quirks }
}

fn request(messages: Vec<Message>) -> Request {
    let tool = ToolSpec {
        name: "list".into(),
        description: "Lists files.".into(),
        schema: json!({"type": "object", "properties": {"path": {"type": "string"}}}).into(),
    };
    Request {
        system: "Be brief.".into(),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: Arc::new([tool]),
        effort: None,
        temperature: None,
        max_output: None,
        params: serde_json::Map::new(),
    }
}

fn bare(messages: Vec<Message>) -> Request {
    Request { system: String::new(), tools: Arc::new([]), ..request(messages) }
}

fn message(role: Role, parts: Vec<Part>) -> Message {
    Message { id: MessageId::new(Uuid::nil()), role, parts, interrupted: false, native: None }
}

fn user(text: &str) -> Message {
    message(Role::User, vec![Part::text(text)])
}

fn call_id(number: u128) -> ToolCallId {
    ToolCallId::new(Uuid::from_u128(number))
}

fn tool_use(number: u128, name: &str) -> Part {
    Part::ToolUse { call: call_id(number), name: name.into(), arguments: json!({"path": "."}) }
}

fn result(number: u128, result: ToolResult) -> Part {
    Part::ToolResult { call: call_id(number), result }
}

fn image() -> Part {
    Part::Image { mime: "image/png".into(), data: "AAAA".into(), uri: None }
}

fn native(wire: &str, provider: &str, items: Value) -> Option<ProviderPayload> {
    let items = json!({"provider": provider, "model": "m-1-2026-01-01", "items": items});
    Some(ProviderPayload { wire: wire.into(), items })
}

/// Two calls, one of which never got a result.
fn with_tools(native: Option<ProviderPayload>) -> Vec<Message> {
    let thought = Part::Thought { text: "hm".into() };
    let parts = vec![thought, Part::text("I look."), tool_use(1, "list"), tool_use(2, "grep")];
    let agent = Message { native, ..message(Role::Agent, parts) };
    let done = result(1, ToolResult::text(ToolEnd::Completed, "a.txt"));
    vec![user("What is here?"), agent, message(Role::Tool, vec![done]), user("Go on.")]
}

/// A picture in, a picture out of a tool, a diff, a failure, and a tool that said nothing.
fn with_images() -> Vec<Message> {
    let shown = ToolResult { end: ToolEnd::Completed, content: vec![ToolContent::Part { part: image() }], raw: None };
    let diff = ToolContent::Diff { path: "/w/a".into(), old: None, new: "x".into() };
    let changed = ToolResult { end: ToolEnd::Completed, content: vec![diff], raw: None };
    let silent = ToolResult { end: ToolEnd::Failed, content: vec![], raw: None };
    let calls = [1, 2, 3].map(|number| tool_use(number, "read")).to_vec();
    let results = vec![result(3, silent), result(1, shown), result(2, changed)];
    let asked = vec![Part::text("Look:"), image(), link()];
    vec![message(Role::User, asked), message(Role::Agent, calls), message(Role::Tool, results)]
}

fn link() -> Part {
    Part::Link { uri: "file:///w/a".into(), name: "a".into(), mime: None, more: None }
}

fn check(wire: Wire, request: &Request, profile: &Profile, wanted: Expect) {
    let body: Value = serde_json::from_slice(&wire.encode(request, profile)).unwrap();
    wanted.assert_eq(&lines(&body));
}

/// One line per field and message: readable, and a change shows where it is.
fn lines(body: &Value) -> String {
    let mut text = String::new();
    for (field, value) in body.as_object().unwrap() {
        match value.as_array() {
            Some(list) if field == "messages" || field == "input" => {
                text += &format!("{field}\n");
                list.iter().for_each(|item| text += &format!("  {item}\n"));
            }
            Some(_) | None => text += &format!("{field} {value}\n"),
        }
    }
    text
}

#[test]
fn chat() {
    let plain = profile("acme", Quirks::default());
    check(
        Wire::OpenaiChat,
        &request(with_tools(None)),
        &plain,
        expect![[r#"
            model "m-1"
            tools [{"type":"function","function":{"name":"list","description":"Lists files.","parameters":{"type":"object","properties":{"path":{"type":"string"}}}}}]
            stream true
            stream_options {"include_usage":true}
            messages
              {"role":"system","content":"Be brief."}
              {"role":"user","content":"What is here?"}
              {"role":"assistant","content":"I look.","tool_calls":[{"id":"call_00000000000000000000000000000001","type":"function","function":{"name":"list","arguments":"{\"path\":\".\"}"}},{"id":"call_00000000000000000000000000000002","type":"function","function":{"name":"grep","arguments":"{\"path\":\".\"}"}}]}
              {"role":"tool","content":"a.txt","tool_call_id":"call_00000000000000000000000000000001"}
              {"role":"tool","content":"interrupted: it may or may not have run, and its output is lost","tool_call_id":"call_00000000000000000000000000000002"}
              {"role":"user","content":"Go on."}
        "#]],
    );
}

#[test]
fn chat_replays_its_own_message_and_its_ids() {
    let items = json!([{"role": "assistant", "content": "I look.", "reasoning_content": "hm", "tool_calls": [
        {"id": "srv1", "type": "function", "function": {"name": "list", "arguments": "{ \"path\" : \".\" }"}},
        {"id": "srv2", "type": "function", "function": {"name": "grep", "arguments": "{}"}, "extra_content": {"a": 1}},
    ]}]);
    let messages = with_tools(native("openai_chat", "acme", items));
    check(
        Wire::OpenaiChat,
        &bare(messages.clone()),
        &profile("acme", Quirks::default()),
        expect![[r#"
            model "m-1"
            stream true
            stream_options {"include_usage":true}
            messages
              {"role":"user","content":"What is here?"}
              {"role":"assistant","content":"I look.","tool_calls":[{"id":"srv1","type":"function","function":{"name":"list","arguments":"{ \"path\" : \".\" }"}},{"id":"srv2","type":"function","function":{"name":"grep","arguments":"{}"},"extra_content":{"a":1}}]}
              {"role":"tool","content":"a.txt","tool_call_id":"srv1"}
              {"role":"tool","content":"interrupted: it may or may not have run, and its output is lost","tool_call_id":"srv2"}
              {"role":"user","content":"Go on."}
        "#]],
    );
    let insists = Quirks { replay_reasoning: true, ..Quirks::default() };
    check(
        Wire::OpenaiChat,
        &bare(messages),
        &profile("acme", insists),
        expect![[r#"
            model "m-1"
            stream true
            stream_options {"include_usage":true}
            messages
              {"role":"user","content":"What is here?"}
              {"role":"assistant","content":"I look.","reasoning_content":"hm","tool_calls":[{"id":"srv1","type":"function","function":{"name":"list","arguments":"{ \"path\" : \".\" }"}},{"id":"srv2","type":"function","function":{"name":"grep","arguments":"{}"},"extra_content":{"a":1}}]}
              {"role":"tool","content":"a.txt","tool_call_id":"srv1"}
              {"role":"tool","content":"interrupted: it may or may not have run, and its output is lost","tool_call_id":"srv2"}
              {"role":"user","content":"Go on."}
        "#]],
    );
}

#[test]
fn chat_with_images() {
    check(
        Wire::OpenaiChat,
        &bare(with_images()),
        &profile("acme", Quirks::default()),
        expect![[r#"
            model "m-1"
            stream true
            stream_options {"include_usage":true}
            messages
              {"role":"user","content":[{"type":"text","text":"Look:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},{"type":"text","text":"[a](file:///w/a)"}]}
              {"role":"assistant","content":null,"tool_calls":[{"id":"call_00000000000000000000000000000001","type":"function","function":{"name":"read","arguments":"{\"path\":\".\"}"}},{"id":"call_00000000000000000000000000000002","type":"function","function":{"name":"read","arguments":"{\"path\":\".\"}"}},{"id":"call_00000000000000000000000000000003","type":"function","function":{"name":"read","arguments":"{\"path\":\".\"}"}}]}
              {"role":"tool","content":"see the image below","tool_call_id":"call_00000000000000000000000000000001"}
              {"role":"tool","content":"created /w/a","tool_call_id":"call_00000000000000000000000000000002"}
              {"role":"tool","content":"failed, without output","tool_call_id":"call_00000000000000000000000000000003"}
              {"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}
        "#]],
    );
    let mut blind = profile("acme", Quirks::default());
    blind.info.images = false;
    check(
        Wire::OpenaiChat,
        &bare(with_images()[..1].to_vec()),
        &blind,
        expect![[r#"
            model "m-1"
            stream true
            stream_options {"include_usage":true}
            messages
              {"role":"user","content":"Look:\n[an image of type image/png, which this model cannot see]\n[a](file:///w/a)"}
        "#]],
    );
}

#[test]
fn chat_quirks_are_data() {
    let quirks = Quirks {
        effort: EffortStyle::Word,
        max_completion_tokens: true,
        no_stream_options: true,
        short_tool_ids: true,
        ..Quirks::default()
    };
    let asked = Request { effort: Some(Effort::High), max_output: Some(99), ..bare(with_tools(None)) };
    check(
        Wire::OpenaiChat,
        &asked,
        &profile("acme", quirks),
        expect![[r#"
            model "m-1"
            stream true
            max_completion_tokens 99
            reasoning_effort "high"
            messages
              {"role":"user","content":"What is here?"}
              {"role":"assistant","content":"I look.","tool_calls":[{"id":"000000001","type":"function","function":{"name":"list","arguments":"{\"path\":\".\"}"}},{"id":"000000002","type":"function","function":{"name":"grep","arguments":"{\"path\":\".\"}"}}]}
              {"role":"tool","content":"a.txt","tool_call_id":"000000001"}
              {"role":"tool","content":"interrupted: it may or may not have run, and its output is lost","tool_call_id":"000000002"}
              {"role":"user","content":"Go on."}
        "#]],
    );
    let object = Quirks { effort: EffortStyle::Object, effort_off: Some("none".into()), ..Quirks::default() };
    let asked = Request { effort: Some(Effort::Off), ..bare(vec![user("hi")]) };
    check(
        Wire::OpenaiChat,
        &asked,
        &profile("acme", object),
        expect![[r#"
            model "m-1"
            stream true
            stream_options {"include_usage":true}
            reasoning {"effort":"none"}
            messages
              {"role":"user","content":"hi"}
        "#]],
    );
}

#[test]
fn responses() {
    let word = Quirks { effort: EffortStyle::Word, ..Quirks::default() };
    let asked = Request { effort: Some(Effort::Low), max_output: Some(99), ..request(with_tools(None)) };
    check(
        Wire::OpenaiResponses,
        &asked,
        &profile("openai", word),
        expect![[r#"
            model "m-1"
            instructions "Be brief."
            tools [{"type":"function","name":"list","description":"Lists files.","parameters":{"type":"object","properties":{"path":{"type":"string"}}},"strict":false}]
            stream true
            store false
            include ["reasoning.encrypted_content"]
            reasoning {"effort":"low","summary":"auto"}
            max_output_tokens 99
            input
              {"type":"message","role":"user","content":[{"type":"input_text","text":"What is here?"}]}
              {"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look."}]}
              {"type":"function_call","call_id":"call_00000000000000000000000000000001","name":"list","arguments":"{\"path\":\".\"}"}
              {"type":"function_call","call_id":"call_00000000000000000000000000000002","name":"grep","arguments":"{\"path\":\".\"}"}
              {"type":"function_call_output","call_id":"call_00000000000000000000000000000001","output":"a.txt"}
              {"type":"function_call_output","call_id":"call_00000000000000000000000000000002","output":"interrupted: it may or may not have run, and its output is lost"}
              {"type":"message","role":"user","content":[{"type":"input_text","text":"Go on."}]}
        "#]],
    );
}

#[test]
fn responses_replays_its_own_items_and_drops_reasoning_that_was_not_sealed() {
    let items = json!([
        {"type": "reasoning", "id": "rs_0", "summary": []},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "xyz"},
        {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
        {"type": "function_call", "id": "fc_1", "call_id": "srv1", "name": "list", "arguments": "{ \"path\":\".\"}"},
        {"type": "function_call", "id": "fc_2", "call_id": "srv2", "name": "grep", "arguments": "{}"},
    ]);
    let messages = with_tools(native("openai_responses", "openai", items));
    let plain = Quirks { no_summary: true, ..Quirks::default() };
    check(
        Wire::OpenaiResponses,
        &bare(messages),
        &profile("openai", plain),
        expect![[r#"
            model "m-1"
            stream true
            store false
            include ["reasoning.encrypted_content"]
            input
              {"type":"message","role":"user","content":[{"type":"input_text","text":"What is here?"}]}
              {"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"xyz"}
              {"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"I look."}]}
              {"type":"function_call","id":"fc_1","call_id":"srv1","name":"list","arguments":"{ \"path\":\".\"}"}
              {"type":"function_call","id":"fc_2","call_id":"srv2","name":"grep","arguments":"{}"}
              {"type":"function_call_output","call_id":"srv1","output":"a.txt"}
              {"type":"function_call_output","call_id":"srv2","output":"interrupted: it may or may not have run, and its output is lost"}
              {"type":"message","role":"user","content":[{"type":"input_text","text":"Go on."}]}
        "#]],
    );
}

#[test]
fn responses_with_images() {
    let mut plain = profile("openai", Quirks::default());
    plain.info.thinking = false;
    check(
        Wire::OpenaiResponses,
        &bare(with_images()),
        &plain,
        expect![[r#"
            model "m-1"
            stream true
            store false
            input
              {"type":"message","role":"user","content":[{"type":"input_text","text":"Look:"},{"type":"input_image","image_url":"data:image/png;base64,AAAA"},{"type":"input_text","text":"[a](file:///w/a)"}]}
              {"type":"function_call","call_id":"call_00000000000000000000000000000001","name":"read","arguments":"{\"path\":\".\"}"}
              {"type":"function_call","call_id":"call_00000000000000000000000000000002","name":"read","arguments":"{\"path\":\".\"}"}
              {"type":"function_call","call_id":"call_00000000000000000000000000000003","name":"read","arguments":"{\"path\":\".\"}"}
              {"type":"function_call_output","call_id":"call_00000000000000000000000000000001","output":[{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]}
              {"type":"function_call_output","call_id":"call_00000000000000000000000000000002","output":"created /w/a"}
              {"type":"function_call_output","call_id":"call_00000000000000000000000000000003","output":"failed, without output"}
        "#]],
    );
}

#[test]
fn anthropic() {
    let budget = Quirks { effort: EffortStyle::Budget, ..Quirks::default() };
    let asked = Request { effort: Some(Effort::High), ..request(with_tools(None)) };
    check(
        Wire::Anthropic,
        &asked,
        &profile("anthropic", budget),
        expect![[r#"
            model "m-1"
            max_tokens 8192
            system [{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}]
            tools [{"name":"list","description":"Lists files.","input_schema":{"type":"object","properties":{"path":{"type":"string"}}},"cache_control":{"type":"ephemeral"}}]
            stream true
            thinking {"type":"enabled","budget_tokens":4096}
            messages
              {"role":"user","content":[{"type":"text","text":"What is here?"}]}
              {"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"call_00000000000000000000000000000001","name":"list","input":{"path":"."}},{"type":"tool_use","id":"call_00000000000000000000000000000002","name":"grep","input":{"path":"."}}]}
              {"role":"user","content":[{"type":"tool_result","tool_use_id":"call_00000000000000000000000000000001","content":[{"type":"text","text":"a.txt"}]},{"type":"tool_result","tool_use_id":"call_00000000000000000000000000000002","content":[{"type":"text","text":"interrupted: it may or may not have run, and its output is lost"}],"is_error":true},{"type":"text","text":"Go on.","cache_control":{"type":"ephemeral"}}]}
        "#]],
    );
}

#[test]
fn anthropic_replays_its_own_blocks_to_itself_only() {
    let items = json!([
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "toolu_1", "name": "list", "input": {"path": "."}},
        {"type": "tool_use", "id": "toolu_2", "name": "grep", "input": {}},
    ]);
    let messages = with_tools(native("anthropic", "anthropic", items));
    let adaptive = Quirks { effort: EffortStyle::Adaptive, ..Quirks::default() };
    let asked = Request { effort: Some(Effort::Medium), ..bare(messages.clone()) };
    check(
        Wire::Anthropic,
        &asked,
        &profile("anthropic", adaptive.clone()),
        expect![[r#"
            model "m-1"
            max_tokens 8192
            stream true
            thinking {"type":"adaptive","display":"summarized"}
            output_config {"effort":"medium"}
            messages
              {"role":"user","content":[{"type":"text","text":"What is here?"}]}
              {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"sig"},{"type":"text","text":"I look."},{"type":"tool_use","id":"toolu_1","name":"list","input":{"path":"."}},{"type":"tool_use","id":"toolu_2","name":"grep","input":{}}]}
              {"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"a.txt"}]},{"type":"tool_result","tool_use_id":"toolu_2","content":[{"type":"text","text":"interrupted: it may or may not have run, and its output is lost"}],"is_error":true},{"type":"text","text":"Go on.","cache_control":{"type":"ephemeral"}}]}
        "#]],
    );
    let elsewhere = Wire::Anthropic.encode(&asked, &profile("mirror", adaptive.clone()));
    let neutral = Request { effort: Some(Effort::Medium), ..bare(with_tools(None)) };
    assert_eq!(elsewhere, Wire::Anthropic.encode(&neutral, &profile("mirror", adaptive.clone())));
    let mut other = profile("anthropic", adaptive.clone());
    other.info.model = "m-2".into();
    assert_eq!(Wire::Anthropic.encode(&asked, &other), Wire::Anthropic.encode(&neutral, &other));
    let chat = Wire::OpenaiChat.encode(&bare(messages), &profile("anthropic", Quirks::default()));
    assert_eq!(chat, Wire::OpenaiChat.encode(&bare(with_tools(None)), &profile("anthropic", Quirks::default())));
}

#[test]
fn anthropic_with_images() {
    check(
        Wire::Anthropic,
        &bare(with_images()),
        &profile("anthropic", Quirks::default()),
        expect![[r#"
            model "m-1"
            max_tokens 8192
            stream true
            messages
              {"role":"user","content":[{"type":"text","text":"Look:"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}},{"type":"text","text":"[a](file:///w/a)"}]}
              {"role":"assistant","content":[{"type":"tool_use","id":"call_00000000000000000000000000000001","name":"read","input":{"path":"."}},{"type":"tool_use","id":"call_00000000000000000000000000000002","name":"read","input":{"path":"."}},{"type":"tool_use","id":"call_00000000000000000000000000000003","name":"read","input":{"path":"."}}]}
              {"role":"user","content":[{"type":"tool_result","tool_use_id":"call_00000000000000000000000000000001","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]},{"type":"tool_result","tool_use_id":"call_00000000000000000000000000000002","content":[{"type":"text","text":"created /w/a"}]},{"type":"tool_result","tool_use_id":"call_00000000000000000000000000000003","content":[{"type":"text","text":"failed, without output"}],"is_error":true,"cache_control":{"type":"ephemeral"}}]}
        "#]],
    );
}

#[test]
fn anthropic_does_not_begin_to_think_amid_the_tools_of_another() {
    let budget = profile("anthropic", Quirks { effort: EffortStyle::Budget, ..Quirks::default() });
    let thinking = |messages: &[Message]| {
        let asked = Request { effort: Some(Effort::Low), max_output: Some(8192), ..bare(messages.to_vec()) };
        let body: Value = serde_json::from_slice(&Wire::Anthropic.encode(&asked, &budget)).unwrap();
        body.get("thinking").cloned()
    };
    let messages = with_tools(None);
    assert_eq!(thinking(&messages[..3]), None);
    assert_eq!(thinking(&messages), Some(json!({"type": "enabled", "budget_tokens": 4096})));
}

#[test]
fn a_half_message_is_never_sent_again() {
    let half = Message { interrupted: true, ..message(Role::Agent, vec![Part::text("half"), tool_use(9, "list")]) };
    let empty = message(Role::Agent, vec![Part::Thought { text: "only a thought".into() }]);
    let with = bare(vec![user("a"), half, empty, user("b")]);
    let without = bare(vec![user("a"), user("b")]);
    for wire in [Wire::OpenaiChat, Wire::OpenaiResponses, Wire::Anthropic] {
        let plain = profile("acme", Quirks::default());
        assert_eq!(wire.encode(&with, &plain), wire.encode(&without, &plain));
    }
}

#[test]
fn a_temperature_is_sent_as_it_was_set_and_only_if_it_was() {
    let plain = profile("acme", Quirks::default());
    let budget = profile("anthropic", Quirks { effort: EffortStyle::Budget, ..Quirks::default() });
    let sent = |wire: Wire, profile: &Profile, temperature: Option<f32>, effort: Option<Effort>| {
        let asked = Request { temperature, effort, max_output: Some(8192), ..bare(vec![user("hi")]) };
        let body: Value = serde_json::from_slice(&wire.encode(&asked, profile)).unwrap();
        body.get("temperature").cloned()
    };
    for wire in [Wire::OpenaiChat, Wire::OpenaiResponses, Wire::Anthropic] {
        assert_eq!(sent(wire, &plain, None, None), None, "{wire:?}");
        assert_eq!(sent(wire, &plain, Some(0.35), None), Some(json!(0.35)), "{wire:?}");
        assert_eq!(sent(wire, &plain, Some(0.0), None), Some(json!(0.0)), "{wire:?}: zero is a temperature");
    }
    assert_eq!(sent(Wire::OpenaiChat, &plain, Some(1.7), None), Some(json!(1.7)));
    assert_eq!(sent(Wire::Anthropic, &plain, Some(1.7), None), Some(json!(1.0)), "it counts from 0 to 1 there");
    assert_eq!(sent(Wire::Anthropic, &budget, Some(0.35), Some(Effort::High)), None, "who thinks takes none");
}

#[test]
fn further_parameters_are_sent_and_change_nothing_that_is_set() {
    let plain = profile("acme", Quirks::default());
    let params = json!({"top_p": 0.5, "temperature": 1, "model": "other", "messages": [], "input": [], "tools": [{}], "store": true});
    let params = params.as_object().unwrap().clone();
    for wire in [Wire::OpenaiChat, Wire::OpenaiResponses, Wire::Anthropic] {
        let asked = Request { temperature: Some(0.25), ..bare(vec![user("hi")]) };
        let without: Value = serde_json::from_slice(&wire.encode(&asked, &plain)).unwrap();
        let asked = Request { params: params.clone(), ..asked };
        let mut with: Value = serde_json::from_slice(&wire.encode(&asked, &plain)).unwrap();
        assert_eq!(with.as_object_mut().unwrap().remove("top_p"), Some(json!(0.5)), "{wire:?}");
        assert_eq!(with, without, "{wire:?}");
    }
}
