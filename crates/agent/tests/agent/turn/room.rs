//! A window that fills up.

use expect_test::expect;
use gander_agent::turn::{Input, TurnSetup};
use gander_domain::{Context, Event, Message, MessageId, Role, ToolEnd, ToolResult};
use gander_models::{ModelError, ModelStop};
use uuid::Uuid;

use crate::turn::script::{Script, calls, done, end, fold, info, prompted, says, setup, start, used, user, wants};

/// A small window, and a context with an older run in it.
fn long() -> (TurnSetup, Context) {
    let mut context = prompted("the first question");
    let run = context.run;
    let id = MessageId::new(Uuid::from_u128(0xcccc));
    fold(&mut context, run, Event::MessageDone { message: Message::text(id, Role::Agent, "the first answer") });
    end(&mut context);
    start(&mut context, "the second question");
    (TurnSetup { model: info(), ..setup() }, context)
}

#[test]
fn what_is_old_is_summarised_and_the_run_stays_word_for_word() {
    let (setup, context) = long();
    let mut script = Script::new(setup, context);
    let mut events = calls(0, "look", "{}");
    events.push(used(ModelStop::ToolUse, 900));
    script.feed(Input::Begin).model(events);
    script.run(0).unprinted().done(0);
    script.model(vec![says("They talked "), says("about one."), used(ModelStop::EndTurn, 50)]);
    script.model(vec![says("Two."), done(ModelStop::EndTurn)]);
    expect![[r#"
        > #1 done: Completed fine
        - done #1: Completed fine
        - noticed Info: the model's window is full: older messages are being summarised
        call model
            user: The older part of the conversation:

        # User
        the first question

        # Agent
        the first answer

        > model: 3 events
        - used 50 in, 0 out
        - compacted
            user: The older part of this conversation was replaced by this summary of it:

        They talked about one.
            user: the second question
            agent: look #1 {}
            tool: #1 Completed fine
        call model
            user: The older part of this conversation was replaced by this summary of it:

        They talked about one.
            user: the second question
            agent: look #1 {}
            tool: #1 Completed fine
        > model: 2 events
        - message #4 started
        - deltas: Text Two.
        - message done:
        - ended completed EndTurn
        end
    "#]]
    .assert_eq(script.happened());
}

#[test]
fn a_person_may_ask_for_room_and_gets_nothing_else() {
    let mut context = prompted("the first question");
    let run = context.run;
    let id = MessageId::new(Uuid::from_u128(0xcccc));
    fold(&mut context, run, Event::MessageDone { message: Message::text(id, Role::Agent, "the first answer") });
    end(&mut context);
    start(&mut context, "/compact");
    let mut script = Script::new(setup(), context);
    script.feed(Input::Begin).model(vec![says("They talked."), used(ModelStop::EndTurn, 50)]);
    expect![[r#"
        > begin
        - noticed Info: older messages are being summarised
        call model
            user: The older part of the conversation:

        # User
        the first question

        # Agent
        the first answer

        > model: 2 events
        - used 50 in, 0 out
        - compacted
            user: The older part of this conversation was replaced by this summary of it:

        They talked.
        - message #2 started
        - message done, native: The conversation so far is summarised.
        - ended completed EndTurn
        end
    "#]]
    .assert_eq(script.happened());
}

#[test]
fn a_conversation_refused_as_too_long_is_summarised_once() {
    let (setup, context) = long();
    let mut script = Script::new(setup, context);
    let too_long = || Input::ModelFailed(ModelError::ContextTooLong("too long".into()));
    script
        .feed(Input::Begin)
        .unprinted()
        .feed(too_long())
        .model(vec![says("One."), done(ModelStop::EndTurn)])
        .feed(too_long());
    expect![[r#"
        > model failed: too long
        - noticed Info: the model's window is full: older messages are being summarised
        call model
            user: The older part of the conversation:

        # User
        the first question

        # Agent
        the first answer

        > model: 2 events
        - compacted
            user: The older part of this conversation was replaced by this summary of it:

        One.
            user: the second question
        call model
            user: The older part of this conversation was replaced by this summary of it:

        One.
            user: the second question
        > model failed: too long
        - ended failed model: too long
        end
    "#]]
    .assert_eq(script.happened());
}

#[test]
fn with_nothing_to_summarise_too_long_is_the_end() {
    let mut script = Script::begun("a very long prompt");
    script.unprinted().feed(Input::ModelFailed(ModelError::ContextTooLong("too long: 9000 tokens".into())));
    expect![[r#"
        > model failed: too long: 9000 tokens
        - ended failed model: too long: 9000 tokens
        end
    "#]]
    .assert_eq(script.happened());
}

#[test]
fn a_summary_that_fails_is_tried_again_and_then_done_without() {
    let (mut setup, mut context) = long();
    setup.settings.retries = 1;
    context.tokens = Some(900);
    let mut script = Script::new(setup, context);
    let broken = || Input::ModelFailed(ModelError::Network("the connection broke".into()));
    script.feed(Input::Begin).feed(broken()).feed(Input::Waited).feed(broken());
    expect![[r#"
        > begin
        - noticed Info: the model's window is full: older messages are being summarised
        call model
            user: The older part of the conversation:

        # User
        the first question

        # Agent
        the first answer

        > model failed: the connection broke
        - noticed Warning: the connection broke (retrying in 1.0 s (attempt 2 of 2))
        wait 1s
        > waited
        call model
            user: The older part of the conversation:

        # User
        the first question

        # Agent
        the first answer

        > model failed: the connection broke
        - noticed Warning: older messages could not be summarised (the connection broke)
        call model
            user: the first question
            agent: the first answer
            user: the second question
    "#]]
    .assert_eq(script.happened());
}

#[test]
fn who_speaks_while_a_summary_is_made_is_heard() {
    let (setup, mut context) = long();
    context.tokens = Some(900);
    let mut script = Script::new(setup, context);
    script.feed(Input::Begin).unprinted().feed(Input::Steer(user("and a third one")));
    script.model(vec![says("One."), done(ModelStop::EndTurn)]);
    expect![[r#"
        > steer: and a third one
        > model: 2 events
        - compacted
            user: The older part of this conversation was replaced by this summary of it:

        One.
            user: the second question
            user: and a third one
        call model
            user: The older part of this conversation was replaced by this summary of it:

        One.
            user: the second question
            user: and a third one
    "#]]
    .assert_eq(script.happened());
}

#[test]
fn of_a_run_that_is_too_long_itself_the_prompt_and_the_end_are_kept() {
    let mut setup = setup();
    setup.model = info();
    let mut script = Script::new(setup, prompted("read everything"));
    script.feed(Input::Begin);
    for n in 0..2 {
        script.model(wants(&["look"])).run(n);
        let result = ToolResult::text(ToolEnd::Completed, format!("{n}").repeat(1_800));
        script.unprinted().ends(n, result);
    }
    expect![[r#"
        > #3 done: Completed 1111...1800
        - done #3: Completed 1111...1800
        - noticed Info: the model's window is full: older messages are being summarised
        call model
            user: The ...1230
    "#]]
    .assert_eq(script.happened());
    script.unprinted().model(vec![says("Much was read."), done(ModelStop::EndTurn)]);
    expect![[r#"
        > model: 2 events
        - compacted
            user: The older part of this conversation was replaced by this summary of it:

        Much was read.
            user: read everything
            agent: look #3 {}
            tool: #3 Completed 1111...1800
        call model
            user: The older part of this conversation was replaced by this summary of it:

        Much was read.
            user: read everything
            agent: look #3 {}
            tool: #3 Completed 1111...1800
    "#]]
    .assert_eq(script.happened());
}

#[test]
fn a_giant_result_is_cut_for_the_model_alone() {
    let mut setup = setup();
    setup.settings.max_result_chars = 20;
    let mut script = Script::new(setup, prompted("read it"));
    script.feed(Input::Begin).model(wants(&["look"])).run(0);
    let giant = ToolResult::text(ToolEnd::Completed, "beginning, a long middle part, end");
    script.unprinted().ends(0, giant);
    expect![[r#"
        > #1 done: Completed beginning, a long middle part, end
        - done #1: Completed beginning, a long middle part, end
        call model
            user: read it
            agent: look #1 {}
            tool: #1 Completed beginning,
        [... 14 bytes left out ...]
         part, end
    "#]]
    .assert_eq(script.happened());
}
