//! A person who speaks into the running turn.

use expect_test::expect;
use gander_agent::turn::Input;
use gander_models::ModelStop;

use crate::turn::script::{Script, calls, done, says, user, wants};

#[test]
fn while_the_model_speaks_it_is_asked_anew_from_there() {
    let mut script = Script::begun("tell me about geese");
    script.unprinted().model(vec![says("Geese are")]).feed(Input::Steer(user("no, ducks")));
    script.model(vec![says("Ducks."), done(ModelStop::EndTurn)]);
    expect![[r#"
        > model: 1 events
        - message #1 started
        - deltas: Text Geese are
        > steer: no, ducks
        abort model
        call model
            user: tell me about geese
            agent: Geese are
            user: no, ducks
        > model: 2 events
        - message #2 started
        - deltas: Text Ducks.
        - message done:
        - ended completed EndTurn
        end
    "#]]
    .assert_eq(script.happened());
}

#[test]
fn before_the_model_said_anything_nothing_is_kept_of_the_call() {
    let mut script = Script::begun("write");
    script.unprinted().model(calls(0, "write", "{")).feed(Input::Steer(user("stop that")));
    expect![[r#"
        > model: 2 events
        > steer: stop that
        abort model
        call model
            user: write
            user: stop that
    "#]]
    .assert_eq(script.happened());
}

#[test]
fn while_tools_run_it_is_heard_with_their_results() {
    let mut script = Script::begun("look");
    script.unprinted().model(wants(&["look", "look"])).run(0).done(0).feed(Input::Steer(user("hurry"))).run(1).done(1);
    expect![[r#"
        > model: 5 events
        - message #3 started
        - message done: look #1 {} | look #2 {}
        - wanted look #1: open
        - wanted look #2: open
        > order to run #1
        run look #1
        > #1 done: Completed fine
        - done #1: Completed fine
        > steer: hurry
        > order to run #2
        run look #2
        > #2 done: Completed fine
        - done #2: Completed fine
        call model
            user: look
            agent: look #1 {} | look #2 {}
            tool: #1 Completed fine | #2 Completed fine
            user: hurry
    "#]]
    .assert_eq(script.happened());
}
