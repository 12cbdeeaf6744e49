//! What the demo plays for which words and scripts.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use gander_domain::{MessageId, ToolCallId};
use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::{Catalogue, ModelEvent};

fn message(role: Role, parts: Vec<Part>) -> Arc<Message> {
    Arc::new(Message { id: MessageId::new(Uuid::nil()), role, parts, interrupted: false, native: None })
}

fn user(text: &str) -> Arc<Message> {
    message(Role::User, vec![Part::text(text)])
}

fn tool_use(number: u128, name: &str) -> Part {
    Part::ToolUse { call: ToolCallId::new(Uuid::from_u128(number)), name: name.into(), arguments: json!({}) }
}

fn request(messages: Vec<Arc<Message>>) -> Request {
    request_with_tools(messages, &["plan"])
}

fn request_with_tools(messages: Vec<Arc<Message>>, names: &[&str]) -> Request {
    let spec =
        |name: &&str| ToolSpec { name: (*name).to_owned(), description: String::new(), schema: json!({}).into() };
    let tools = names.iter().map(spec).collect();
    Request {
        system: String::new(),
        messages,
        tools,
        effort: None,
        temperature: None,
        max_output: None,
        params: Default::default(),
    }
}

fn demo(name: &str) -> Demo {
    Demo::new(Catalogue::built_in().vendor("demo").unwrap().model_info("demo", name))
}

/// One line per event, without waiting for any.
fn scheduled_lines(messages: Vec<Arc<Message>>) -> String {
    let beats = match demo("demo").schedule_answer(&request(messages)) {
        Ok(beats) => beats,
        Err(error) => return format!("error {error}"),
    };
    let lines = beats.iter().flat_map(|beat| match &beat.events {
        Ok(events) => events.iter().map(line).collect(),
        Err(error) => vec![format!("error {error}")],
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn line(event: &ModelEvent) -> String {
    match event {
        ModelEvent::Delta(delta) => format!("{:?} {:?}", delta.growth, delta.text),
        ModelEvent::ToolStarted { index, name } => format!("tool {index} {name}"),
        ModelEvent::ToolArguments { index, text } => format!("args {index} {text}"),
        ModelEvent::Part(Part::Image { mime, data, .. }) => format!("{mime} {}", &data[..12]),
        ModelEvent::Part(part) => format!("{part:?}"),
        ModelEvent::Done(finish) => format!("done {:?} {}/{}", finish.stop, finish.usage.input, finish.usage.output),
    }
}

#[test]
fn a_script_says_exactly_what_happens() {
    let script = r#"please [[script:[{"thought":"hm"},{"text":"grüße","chunks":3},{"text":"x","repeat":2},
        {"tool":"shell","args":{"command":"ls"},"chunks":2},{"tool":"list"},{"image":true},
        {"usage":{"input":10,"output":5}},{"stop":"max_tokens"}]]] thanks"#;
    let wanted = "Thought \"hm\"\nText \"grü\"\nText \"ße\"\nText \"x\"\nText \"x\"\ntool 0 shell\nargs 0 {\"comman\n\
                  args 0 d\":\"ls\"}\ntool 1 list\nargs 1 {}\nimage/png iVBORw0KGgoA\ndone MaxTokens 10/5";
    assert_eq!(scheduled_lines(vec![user(script)]), wanted);
}

#[test]
fn a_script_of_several_calls_goes_on_where_it_stands() {
    let script = r#"[[script:[[{"tool":"list"}],[{"text":"second"},{"error":"overloaded"},{"text":"never"}]]]]"#;
    let first = vec![user("old"), message(Role::Agent, vec![]), user(script)];
    assert_eq!(scheduled_lines(first.clone()), "tool 0 list\nargs 0 {}\ndone ToolUse 24/1");
    let mut half = Message::clone(&message(Role::Agent, vec![Part::text("half")]));
    half.interrupted = true;
    let then = [first, vec![Arc::new(half), message(Role::Agent, vec![tool_use(1, "list")])]].concat();
    let wanted = "Text \"second\"\nerror the scripted demo failed on purpose";
    assert_eq!(scheduled_lines(then.clone()), wanted);
    let beyond = [then, vec![message(Role::Agent, vec![])]].concat();
    assert_eq!(scheduled_lines(beyond).lines().last(), Some("done EndTurn 25/12"));
}

#[test]
fn a_bad_script_is_an_error() {
    for script in ["[[script:[{\"txt\":1}]]]", "[[script:[", "[[script:", "[[script:[]", "[[script:7]]"] {
        let told = scheduled_lines(vec![user(script)]);
        assert!(told.starts_with("error the script cannot be read: "), "{told}");
    }
}

#[test]
fn what_has_no_delay_comes_together_and_what_has_one_waits() {
    let script = r#"[[script:[{"text":"a","repeat":3},{"text":"b","repeat":2,"delay_ms":250}]]]"#;
    let beats = demo("demo").schedule_answer(&request(vec![user(script)])).unwrap();
    let shape: Vec<_> = beats.iter().map(|beat| (beat.wait.as_millis(), beat.events.as_ref().unwrap().len())).collect();
    assert_eq!(shape, [(0, 3), (250, 1), (250, 2)]);
}

#[tokio::test]
async fn it_streams_like_any_other_model() {
    let demo = demo("demo");
    assert_eq!((demo.info().qualified_name().as_str(), demo.info().scripted), ("demo/demo", true));
    let mut stream = demo.stream(request(vec![user(r#"[[script:[{"text":"x","repeat":100}]]]"#)])).await.unwrap();
    let mut sizes = Vec::new();
    while let Some(batch) = stream.next_batch().await {
        sizes.push(batch.unwrap().len());
    }
    assert_eq!(sizes, [64, 37]);
    let failing = request(vec![user(r#"[[script:[{"error":"network"}]]]"#)]);
    let error = ModelError::Network("the scripted demo failed on purpose".into());
    assert_eq!(demo.stream(failing).await.unwrap_err(), error);
}

#[test]
fn every_word_has_its_scene() {
    for scene in script::demo_scenes() {
        let shown = scheduled_lines(vec![user(&format!("Show me {}!", scene.word.to_uppercase()))]);
        let is_right = match scene.word.as_str() {
            "text" => shown.contains("scripted") && shown.ends_with("done EndTurn 4/41"),
            "thought" => shown.starts_with("Thought "),
            "tools" => shown.contains("tool 0 list") && shown.contains("tool 1 grep"),
            "ask" => shown.contains("tool 0 shell"),
            "edit" => shown.contains("tool 0 write"),
            "plan" => shown.contains("tool 0 plan"),
            "image" => shown.contains("image/png"),
            "error" => shown.ends_with("error the scripted demo failed on purpose"),
            "long" => shown.lines().count() == 601,
            other => panic!("a scene without a test: {other}"),
        };
        assert!(is_right, "{}: {shown}", scene.word);
    }
}

#[test]
fn a_plan_is_shown_whatever_tools_a_mode_offers() {
    for (tools, shown) in
        [(&["plan"][..], "plan"), (&["propose_plan", "read"], "propose_plan"), (&["read"], "1. show a plan")]
    {
        let call = demo("demo").next_call(&request_with_tools(vec![user("plan")], tools)).unwrap();
        let step = &call[0];
        let said = step.tool.as_deref().or(step.text.as_deref()).unwrap();
        assert!(said.contains(shown), "{tools:?}: {said}");
    }
}

#[test]
fn anything_else_is_told_what_this_is() {
    for asked in ["hello there", "help me with tools"] {
        let shown = scheduled_lines(vec![user(asked)]).replace("\"\nText \"", "");
        assert!(shown.contains("I am gander's scripted demo, not a language model"), "{shown}");
        assert!(shown.contains("- `ask`: a shell command that needs your permission"), "{shown}");
    }
}

#[test]
fn it_closes_with_what_the_tools_gave() {
    let result = |number: u128, end: ToolEnd, text: &str| Part::ToolResult {
        call: ToolCallId::new(Uuid::from_u128(number)),
        result: ToolResult::text(end, text),
    };
    let messages = vec![
        user("tools"),
        message(Role::Agent, vec![tool_use(1, "list"), tool_use(2, "grep")]),
        message(Role::Tool, vec![result(1, ToolEnd::Completed, "a\nb\n"), result(2, ToolEnd::Rejected, "no")]),
    ];
    let shown = scheduled_lines(messages).replace("\"\nText \"", "");
    let wanted =
        "Text \"The tools are done:\\n\\n- `list` is completed, 2 lines: a\\n- `grep` was not allowed: no\\n\"";
    assert_eq!(shown.lines().next(), Some(wanted));
}

#[test]
fn a_full_window_is_told() {
    let error = demo("tiny").schedule_answer(&request(vec![user(&"long ".repeat(4000))])).unwrap_err();
    let told = "the conversation does not fit into the demo's window, tokens: 5001 of 4000";
    assert_eq!(error, ModelError::ContextTooLong(told.into()));
}
