//! Recorded answers of the three wires: the events they give, cut at any byte.
#![allow(clippy::unwrap_used)]

use expect_test::{Expect, expect};
use gander_models::wire::Wire;
use gander_models::{ModelError, ModelEvent, ModelInfo};
use proptest::prelude::*;

const CHAT_TOOLS: &str = include_str!("streams/chat_tools.sse");
const CHAT_TEXT: &str = include_str!("streams/chat_text.sse");
const RESPONSES_TOOLS: &str = include_str!("streams/responses_tools.sse");
const ANTHROPIC_TOOLS: &str = include_str!("streams/anthropic_tools.sse");

const RECORDED: [(Wire, &str); 4] = [
    (Wire::OpenaiChat, CHAT_TOOLS),
    (Wire::OpenaiChat, CHAT_TEXT),
    (Wire::OpenaiResponses, RESPONSES_TOOLS),
    (Wire::Anthropic, ANTHROPIC_TOOLS),
];

fn info() -> ModelInfo {
    ModelInfo {
        provider: "acme".into(),
        model: "m-1".into(),
        window: None,
        max_output: None,
        images: true,
        audio: true,
        thinking: true,
        price: None,
        scripted: false,
    }
}

/// All events, and the error that ended them.
fn decode(wire: Wire, pieces: &[&[u8]]) -> (Vec<ModelEvent>, Option<ModelError>) {
    let (mut decoder, mut events) = (wire.new_decoder(&info()), Vec::new());
    for piece in pieces {
        if let Err(error) = decoder.feed_bytes(piece, &mut events) {
            return (events, Some(error));
        }
    }
    let error = decoder.finish_stream(&mut events).err();
    (events, error)
}

fn shown(wire: Wire, stream: &str) -> String {
    let (events, error) = decode(wire, &[stream.as_bytes()]);
    let mut text: String = events.iter().map(line).collect();
    if let Some(error) = error {
        text += &format!("error {error:?}\n");
    }
    text
}

fn line(event: &ModelEvent) -> String {
    match event {
        ModelEvent::Delta(delta) => format!("{:?} {:?}\n", delta.growth, delta.text),
        ModelEvent::ToolStarted { index, name } => format!("tool {index} {name}\n"),
        ModelEvent::ToolArguments { index, text } => format!("args {index} {text:?}\n"),
        ModelEvent::Part(part) => format!("{part:?}\n"),
        ModelEvent::Done(finish) => {
            let usage = finish.usage;
            let counts = [usage.input, usage.output, usage.cached, usage.cache_write, usage.thinking];
            let native = finish.native.as_ref().map(|native| format!("{} {}\n", native.wire, native.items));
            format!("done {:?} {counts:?}\n{}", finish.stop, native.unwrap_or_default())
        }
    }
}

fn check(wire: Wire, stream: &str, wanted: Expect) {
    wanted.assert_eq(&shown(wire, stream));
}

/// One chat chunk with this delta.
fn chunk(delta: &str, finish: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{finish}}}]}}\n\n")
}

#[test]
fn chat_with_thoughts_and_two_tools() {
    check(
        Wire::OpenaiChat,
        CHAT_TOOLS,
        expect![[r#"
        Thought "The \"user\" "
        Thought "wants Grüße 🪿."
        Text "I will\n"
        Text "look — zwölf."
        tool 0 list
        args 0 "{\"pa"
        tool 1 grep
        args 1 "{\"pattern\":"
        args 0 "th\":\"ä\"}"
        args 1 "\"fn\"}"
        done ToolUse [120, 45, 100, 0, 12]
        openai_chat {"provider":"acme","model":"m-1","items":[{"role":"assistant","content":"I will\nlook — zwölf.","tool_calls":[{"id":"call_a1","type":"function","function":{"name":"list","arguments":"{\"path\":\"ä\"}"}},{"id":"call_b2","type":"function","function":{"name":"grep","arguments":"{\"pattern\":\"fn\"}"}}],"reasoning_content":"The \"user\" wants Grüße 🪿."}]}
    "#]],
    );
}

#[test]
fn chat_without_an_end_mark_but_with_a_reason_is_whole() {
    check(
        Wire::OpenaiChat,
        CHAT_TEXT,
        expect![[r#"
        Text "Hel"
        Text "lo"
        done EndTurn [5, 4, 0, 0, 0]
    "#]],
    );
}

#[test]
fn responses_with_a_summary_and_two_tools() {
    check(
        Wire::OpenaiResponses,
        RESPONSES_TOOLS,
        expect![[r#"
        Thought "**Looking** "
        Thought "around 🪿"
        Thought "\n\n"
        Thought "Then more"
        Text "On my way."
        tool 0 list
        tool 1 grep
        args 0 "{\"path\":"
        args 1 "{\"pattern\":\"x\"}"
        args 0 "\".\"}"
        done ToolUse [200, 80, 128, 0, 64]
        openai_responses {"provider":"acme","model":"m-1","items":[{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"**Looking** around 🪿"},{"type":"summary_text","text":"Then more"}],"encrypted_content":"gAAAAB=="},{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"On my way.","annotations":[]}]},{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_x","name":"list","arguments":"{\"path\":\".\"}"},{"id":"fc_2","type":"function_call","status":"completed","call_id":"call_y","name":"grep","arguments":"{\"pattern\":\"x\"}"}]}
    "#]],
    );
}

#[test]
fn anthropic_with_signed_thinking_and_two_tools() {
    check(
        Wire::Anthropic,
        ANTHROPIC_TOOLS,
        expect![[r#"
        Thought "Two tools, "
        Thought "übrigens."
        Text "Let me "
        Text "see\t🪿."
        tool 0 grep
        args 0 "{\"pattern\": \"T"
        args 0 "ODO\"}"
        tool 1 list
        args 1 "{}"
        done ToolUse [1065, 89, 1000, 40, 0]
        anthropic {"provider":"acme","model":"m-1","items":[{"type":"thinking","thinking":"Two tools, übrigens.","signature":"EqQBCgIYAhIM"},{"type":"redacted_thinking","data":"EmwKAhgBEgy3va3pzix"},{"type":"text","text":"Let me see\t🪿."},{"type":"tool_use","id":"toolu_01","name":"grep","input":{"pattern":"TODO"}},{"type":"tool_use","id":"toolu_02","name":"list","input":{}}]}
    "#]],
    );
}

#[test]
fn calls_that_all_have_number_zero_are_told_apart_by_their_ids() {
    let call = |id: &str, path: &str| {
        let function = format!("{{\"name\":\"read\",\"arguments\":\"{{\\\"path\\\":\\\"{path}\\\"}}\"}}");
        chunk(
            &format!(
                "{{\"tool_calls\":[{{\"index\":0,\"id\":\"{id}\",\"function\":{function},\
                 \"extra_content\":{{\"google\":{{\"thought_signature\":\"s\"}}}}}}]}}"
            ),
            "null",
        )
    };
    let stream = call("one", "a") + &call("two", "b") + &chunk("{}", "\"stop\"") + "data: [DONE]\n\n";
    check(
        Wire::OpenaiChat,
        &stream,
        expect![[r#"
        tool 0 read
        args 0 "{\"path\":\"a\"}"
        tool 1 read
        args 1 "{\"path\":\"b\"}"
        done ToolUse [0, 0, 0, 0, 0]
        openai_chat {"provider":"acme","model":"m-1","items":[{"role":"assistant","content":null,"tool_calls":[{"id":"one","type":"function","function":{"name":"read","arguments":"{\"path\":\"a\"}"},"extra_content":{"google":{"thought_signature":"s"}}},{"id":"two","type":"function","function":{"name":"read","arguments":"{\"path\":\"b\"}"},"extra_content":{"google":{"thought_signature":"s"}}}]}]}
    "#]],
    );
}

#[test]
fn typed_content_refusals_and_images_of_chat_servers_are_read() {
    let parts = r#"[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"yes"}]"#;
    let image = r#"{"images":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}"#;
    let stream = chunk(&format!("{{\"content\":{parts}}}"), "null")
        + &chunk(image, "null")
        + &chunk(r#"{"refusal":"no"}"#, "\"stop\"");
    check(
        Wire::OpenaiChat,
        &stream,
        expect![[r#"
        Thought "hm"
        Text "yes"
        Image { mime: "image/png", data: "AAAA", uri: None }
        Text "no"
        done Refusal [0, 0, 0, 0, 0]
    "#]],
    );
}

#[test]
fn fragments_of_reasoning_details_are_joined_for_replay() {
    let detail = |rest: &str| {
        chunk(&format!("{{\"reasoning_details\":[{{\"type\":\"reasoning.text\",\"index\":0,{rest}}}]}}"), "null")
    };
    let stream = detail("\"text\":\"a\",\"signature\":null")
        + &detail("\"text\":\"b\"")
        + &detail("\"text\":null,\"signature\":\"sig\"")
        + &chunk("{\"content\":\"x\"}", "\"stop\"");
    check(
        Wire::OpenaiChat,
        &stream,
        expect![[r#"
            Text "x"
            done EndTurn [0, 0, 0, 0, 0]
            openai_chat {"provider":"acme","model":"m-1","items":[{"role":"assistant","content":"x","reasoning_details":[{"type":"reasoning.text","index":0,"text":"ab","signature":"sig"}]}]}
        "#]],
    );
}

#[test]
fn arguments_that_are_cut_by_the_limit_are_no_error_but_bad_ones_are() {
    let call = r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"shell","arguments":"{\"comm"}}]}"#;
    check(
        Wire::OpenaiChat,
        &chunk(call, "\"length\""),
        expect![[r#"
        tool 0 shell
        args 0 "{\"comm"
        done MaxTokens [0, 0, 0, 0, 0]
    "#]],
    );
    check(
        Wire::OpenaiChat,
        &chunk(call, "\"tool_calls\""),
        expect![[r#"
        tool 0 shell
        args 0 "{\"comm"
        error BadArguments("acme/m-1 called shell with arguments that are not a JSON object: {\"comm")
    "#]],
    );
    let anthropic = ANTHROPIC_TOOLS.replace("ODO\\\"}", "ODO");
    assert!(matches!(decode(Wire::Anthropic, &[anthropic.as_bytes()]).1, Some(ModelError::BadArguments(_))));
    let limited = anthropic.replace("\"stop_reason\":\"tool_use\"", "\"stop_reason\":\"max_tokens\"");
    let (events, error) = decode(Wire::Anthropic, &[limited.as_bytes()]);
    assert_eq!((error, events.last().map(line).unwrap().as_str()), (None, "done MaxTokens [1065, 89, 1000, 40, 0]\n"));
}

#[test]
fn errors_inside_a_stream_say_who_and_what() {
    check(
        Wire::Anthropic,
        "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
        expect![[r#"
            error Overloaded { message: "acme had trouble in the middle of its answer: Overloaded", retry_after: None }
        "#]],
    );
    check(
        Wire::OpenaiResponses,
        "data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"rate_limit_exceeded\",\"message\":\"slow down\"}}}\n\n",
        expect![[r#"
            error RateLimited { message: "acme reached a rate limit in the middle of its answer: slow down", retry_after: None }
        "#]],
    );
    check(
        Wire::OpenaiResponses,
        "data: {\"type\":\"error\",\"code\":\"context_length_exceeded\",\"message\":\"too long\"}\n\n",
        expect![[r#"
            error ContextTooLong("acme ran out of window in the middle of its answer: too long")
        "#]],
    );
    check(
        Wire::OpenaiChat,
        "data: {\"error\":{\"code\":402,\"message\":\"Insufficient credits\"},\"choices\":[]}\n\n",
        expect![[r#"
            error NoCredit("acme ran out of credit in the middle of its answer: Insufficient credits")
        "#]],
    );
}

#[test]
fn broken_streams_are_clear_errors() {
    check(
        Wire::OpenaiChat,
        "data: {\"choices\":[{\"delta\":{\"content\":\n\n",
        expect![[r#"
        error BadStream("acme sent an event that cannot be read (EOF while parsing a value at line 1 column 32): {\"choices\":[{\"delta\":{\"content\":")
    "#]],
    );
    check(
        Wire::OpenaiChat,
        "{\"error\":\"no such route\"}",
        expect![[r#"
        error BadStream("expected a stream of events but got something else, is the base URL right? it begins: {\"error\":\"no such route\"}")
    "#]],
    );
    check(
        Wire::OpenaiResponses,
        "<html>\n<body>502</body>",
        expect![[r#"
        error BadStream("expected a stream of events but got a web page, is the base URL right? it begins: <html>")
    "#]],
    );
    for (wire, stream) in [(Wire::OpenaiChat, CHAT_TOOLS), (Wire::OpenaiResponses, RESPONSES_TOOLS)] {
        let half = &stream.as_bytes()[..stream.len() / 2];
        let cut = ModelError::Network("the answer was cut off before its end, provider: acme".into());
        assert_eq!(decode(wire, &[half]).1, Some(cut));
    }
    let early = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    check(
        Wire::OpenaiChat,
        early,
        expect![[r#"
        Text "a"
        error Network("the answer was cut off before its end, provider: acme")
    "#]],
    );
}

#[test]
fn every_cut_gives_the_same_events() {
    for (wire, stream) in RECORDED {
        let bytes = stream.as_bytes();
        let whole = decode(wire, &[bytes]);
        assert_eq!(whole.1, None);
        for at in 0..=bytes.len() {
            let (one, two) = bytes.split_at(at);
            assert_eq!(decode(wire, &[one, two]), whole, "{wire:?} cut at {at}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(decode(wire, &single), whole);
    }
}

#[test]
fn windows_line_ends_give_the_same_events() {
    for (wire, stream) in RECORDED {
        assert_eq!(decode(wire, &[stream.replace('\n', "\r\n").as_bytes()]), decode(wire, &[stream.as_bytes()]));
    }
}

/// Bytes that look enough like a stream to get deep.
fn nearly_a_stream() -> impl Strategy<Value = Vec<u8>> {
    let flip = (any::<prop::sample::Index>(), any::<u8>());
    (0..RECORDED.len(), prop::collection::vec(flip, 0..6)).prop_map(|(at, flips)| {
        let mut bytes = RECORDED[at].1.as_bytes().to_vec();
        for (index, byte) in flips {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        bytes
    })
}

proptest! {
    #[test]
    fn any_bytes_in_any_pieces_give_the_same_and_never_panic(
        bytes in prop_oneof![prop::collection::vec(any::<u8>(), 0..300), nearly_a_stream()],
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        at.extend([0, bytes.len()]);
        at.sort_unstable();
        let pieces: Vec<&[u8]> = at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        for wire in [Wire::OpenaiChat, Wire::OpenaiResponses, Wire::Anthropic] {
            prop_assert_eq!(decode(wire, &pieces), decode(wire, &[&bytes]));
        }
    }
}
