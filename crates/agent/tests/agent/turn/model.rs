//! The model: what it says, how it stops, how it fails.

use std::time::Duration;

use expect_test::expect;
use gander_agent::turn::Input;
use gander_domain::{Part, ProviderPayload};
use gander_models::{Finish, ModelError, ModelEvent, ModelStop, Tokens};
use serde_json::json;

use crate::turn::script::{Script, calls, done, prompted, says, setup, thinks, wants};

#[test]
fn an_answer_is_reported_batch_by_batch() {
    let mut context = prompted("hello there");
    context.has_title = false;
    let mut script = Script::new(setup(), context);
    script.feed(Input::Begin).model(vec![thinks("hm"), thinks("m"), says("Hel")]).model(vec![says(""), says("lo")]);
    let usage = Tokens { input: 12, output: 3, ..Tokens::default() };
    let native = Some(ProviderPayload { wire: "test".into(), items: json!([1]) });
    script.model(vec![says("!"), ModelEvent::Done(Finish { stop: ModelStop::EndTurn, usage, native })]);
    expect![[r#"
        > begin
        - titled hello there
        call model
            user: hello there
        > model: 3 events
        - message #1 started
        - deltas: Thought hm | Thought m | Text Hel
        > model: 2 events
        - deltas: Text lo
        > model: 2 events
        - deltas: Text !
        - message done, native:
        - used 12 in, 3 out
        - ended completed EndTurn
        end
    "#]]
    .assert_eq(script.happened());
}

#[test]
fn a_picture_comes_whole_after_the_words() {
    let mut script = Script::begun("draw");
    let image = Part::Image { mime: "image/png".into(), data: "AA==".into(), uri: None };
    script.unprinted().model(vec![ModelEvent::Part(image), says("there"), done(ModelStop::EndTurn)]);
    expect![[r#"
        > model: 3 events
        - message #1 started
        - deltas: Text there
        - message done: Image { mime: "image/png", data: "AA==", uri: None }
        - ended completed EndTurn
        end
    "#]]
    .assert_eq(script.happened());
}

#[test]
fn a_failure_that_nobody_saw_is_tried_again() {
    let mut script = Script::begun("hello");
    let broken = || ModelError::Network("the connection broke".into());
    script.unprinted().feed(Input::ModelFailed(broken())).feed(Input::Waited);
    script.model(calls(0, "write", "{\"te")).feed(Input::ModelFailed(broken())).feed(Input::Waited);
    script.feed(Input::ModelFailed(broken()));
    expect![[r#"
        > model failed: the connection broke
        - noticed Warning: the connection broke (retrying in 1.0 s (attempt 2 of 3))
        wait 1s
        > waited
        call model
            user: hello
        > model: 2 events
        > model failed: the connection broke
        - noticed Warning: the connection broke (retrying in 2.0 s (attempt 3 of 3))
        wait 2s
        > waited
        call model
            user: hello
        > model failed: the connection broke
        - ended failed model: the connection broke
        end
    "#]]
    .assert_eq(script.happened());
}

#[test]
fn a_failure_in_the_middle_closes_the_half_message_and_begins_another() {
    let mut script = Script::begun("hello");
    script.unprinted().model(vec![says("Hel")]).feed(Input::ModelFailed(ModelError::Idle("nothing came".into())));
    script.feed(Input::Waited).model(vec![says("Hello."), done(ModelStop::EndTurn)]);
    expect![[r#"
        > model: 1 events
        - message #1 started
        - deltas: Text Hel
        > model failed: nothing came
        - message done, interrupted:
        - noticed Warning: nothing came (retrying in 1.0 s (attempt 2 of 3))
        wait 1s
        > waited
        call model
            user: hello
        > model: 2 events
        - message #2 started
        - deltas: Text Hello.
        - message done:
        - ended completed EndTurn
        end
    "#]]
    .assert_eq(script.happened());
}

#[test]
fn a_long_pause_is_told_and_one_that_is_too_long_ends_the_run() {
    let limited = |seconds| ModelError::RateLimited {
        message: "slow down".into(),
        retry_after: Some(Duration::from_secs(seconds)),
    };
    let mut script = Script::begun("hello");
    script
        .unprinted()
        .feed(Input::ModelFailed(limited(30)))
        .feed(Input::Waited)
        .feed(Input::ModelFailed(limited(3_600)));
    expect![[r#"
        > model failed: slow down
        - noticed Warning: slow down (retrying in 30.0 s (attempt 2 of 3))
        wait 30s
        > waited
        call model
            user: hello
        > model failed: slow down
        - ended failed model: slow down
        end
    "#]]
    .assert_eq(script.happened());
}

#[test]
fn a_wrong_key_is_not_tried_again() {
    let mut script = Script::begun("hello");
    script.unprinted().feed(Input::ModelFailed(ModelError::Unauthorized("test: the key is wrong".into())));
    expect![[r#"
        > model failed: test: the key is wrong
        - ended failed model: test: the key is wrong
        end
    "#]]
    .assert_eq(script.happened());
}

#[test]
fn refusals_end_the_run_and_call_no_tools() {
    let mut script = Script::begun("hello");
    let mut events = vec![says("I will not.")];
    events.extend(calls(0, "write", "{}"));
    events.push(done(ModelStop::Refusal));
    script.unprinted().model(events);
    expect![[r#"
        > model: 4 events
        - message #1 started
        - deltas: Text I will not.
        - message done:
        - ended completed Refusal
        end
    "#]]
    .assert_eq(script.happened());
    let mut script = Script::begun("hello");
    script.unprinted().feed(Input::ModelFailed(ModelError::Refused("against the rules".into())));
    expect![[r#"
        > model failed: against the rules
        - noticed Warning: the request was refused (against the rules)
        - ended completed Refusal
        end
    "#]]
    .assert_eq(script.happened());
}

#[test]
fn a_call_that_was_cut_off_never_runs() {
    let mut script = Script::begun("write a novel");
    let mut events = vec![says("Here:")];
    events.extend(calls(0, "write", r#"{"text": "It was a dark"#));
    events.push(done(ModelStop::MaxTokens));
    script.unprinted().model(events);
    expect![[r#"
        > model: 4 events
        - message #1 started
        - deltas: Text Here:
        - message done:
        - noticed Warning: the model's answer was cut off inside a call of write
        - ended completed MaxTokens
        end
    "#]]
    .assert_eq(script.happened());
    let mut script = Script::begun("write two");
    let mut events = calls(0, "write", r#"{"text": "one"}"#);
    events.push(ModelEvent::ToolStarted { index: 1, name: "write".into() });
    events.push(done(ModelStop::MaxTokens));
    script.unprinted().model(events);
    expect![[r#"
        > model: 4 events
        - message #2 started
        - message done: write #1 {"text":"one"}
        - noticed Warning: the model's answer was cut off inside a call of write
        - wanted write #1: open
    "#]]
    .assert_eq(script.happened());
}

#[test]
fn calls_without_arguments_and_with_nonsense_reach_the_tool_as_they_are() {
    let mut script = Script::begun("look");
    let mut events = calls(0, "look", "");
    events.extend(calls(1, "look", "not json"));
    events.push(done(ModelStop::EndTurn));
    script.unprinted().model(events);
    expect![[r#"
        > model: 5 events
        - message #3 started
        - message done: look #1 {} | look #2 "not json"
        - wanted look #1: open
        - wanted look #2: open
    "#]]
    .assert_eq(script.happened());
}

#[test]
fn an_empty_answer_is_asked_for_once_more() {
    let mut script = Script::begun("hello");
    script.unprinted().model(vec![done(ModelStop::EndTurn)]).model(vec![done(ModelStop::EndTurn)]);
    expect![[r#"
        > model: 1 events
        call model
            user: hello
        > model: 1 events
        - noticed Warning: the model gave an empty answer
        - ended completed EndTurn
        end
    "#]]
    .assert_eq(script.happened());
    let mut script = Script::begun("hello");
    script
        .model(vec![done(ModelStop::EndTurn)])
        .model(wants(&["forbidden"]))
        .unprinted()
        .model(vec![done(ModelStop::EndTurn)]);
    expect![[r#"
        > model: 1 events
        call model
            user: hello
            agent: forbidden #1 {}
            tool: #1 Rejected the policy forbids it
    "#]]
    .assert_eq(script.happened());
}

#[test]
fn cancel_in_the_middle_of_an_answer_drops_the_call() {
    let mut script = Script::begun("hello");
    script.model(vec![says("Hel")]).unprinted().feed(Input::Cancel).model(vec![says("lo"), done(ModelStop::EndTurn)]);
    expect![[r#"
        > cancel
        abort model
        - ended cancelled
        end
        > model: 2 events
    "#]]
    .assert_eq(script.happened());
    let mut script = Script::begun("hello");
    script
        .feed(Input::ModelFailed(ModelError::Network("broke".into())))
        .unprinted()
        .feed(Input::Cancel)
        .feed(Input::Waited);
    expect![[r#"
        > cancel
        - ended cancelled
        end
        > waited
    "#]]
    .assert_eq(script.happened());
}
