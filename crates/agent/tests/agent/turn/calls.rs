//! Tools: allowed, asked, refused, unknown, in parallel, cancelled.

use expect_test::expect;
use gander_agent::turn::Input;
use gander_domain::{ChoiceKind, Part, Plan, Policy, Settings, ToolContent};
use gander_models::ModelStop;
use serde_json::json;

use crate::turn::script::{Script, calls, done, no, prompted, reply, says, setup, wants, yes};

#[test]
fn a_tool_waits_for_the_order_that_says_its_start_is_committed() {
    let mut script = Script::begun("tidy up");
    script.model(wants(&["write"])).run(0).done(0);
    expect![[r#"
        > begin
        call model
            user: tidy up
        > model: 3 events
        - message #2 started
        - message done: write #1 {}
        - wanted write #1: open
        > order to run #1
        run write #1
        > #1 done: Completed fine
        - done #1: Completed fine
        call model
            user: tidy up
            agent: write #1 {}
            tool: #1 Completed fine
    "#]]
    .assert_eq(script.happened());
}

#[test]
fn tools_run_side_by_side_and_the_model_hears_all_of_them() {
    let mut script = Script::begun("look around");
    let mut events = vec![says("Looking.")];
    events.extend(calls(0, "look", r#"{"at":1}"#));
    events.extend(calls(1, "look", r#"{"at":2}"#));
    events.push(done(ModelStop::ToolUse));
    script.unprinted().model(events).run(1).run(0);
    let shown = vec![ToolContent::Part { part: Part::text("half way") }];
    script.feed(Input::ToolShows(script.wanted[0], shown));
    script.feed(Input::ToolPlans(script.wanted[1], Plan::default()));
    script.done(1).done(0).model(vec![says("Done."), done(ModelStop::EndTurn)]);
    expect![[r#"
        > model: 6 events
        - message #1 started
        - deltas: Text Looking.
        - message done: look #2 {"at":1} | look #3 {"at":2}
        - wanted look #2: open
        - wanted look #3: open
        > order to run #3
        run look #3
        > order to run #2
        run look #2
        > #2 shows
        - updated #2
        > #3 plans
        - plan of 0
        > #3 done: Completed fine
        - done #3: Completed fine
        > #2 done: Completed fine
        - done #2: Completed fine
        call model
            user: look around
            agent: Looking. | look #2 {"at":1} | look #3 {"at":2}
            tool: #3 Completed fine | #2 Completed fine
        > model: 2 events
        - message #4 started
        - deltas: Text Done.
        - message done:
        - ended completed EndTurn
        end
    "#]]
    .assert_eq(script.happened());
}

#[test]
fn a_yes_starts_the_tool_and_a_no_is_told_to_the_model() {
    let mut script = Script::begun("do both");
    script.unprinted().model(wants(&["danger", "danger", "write"])).run(2);
    script.answer(0, yes()).run(0).answer(1, no()).done(2).done(0);
    expect![[r#"
        > model: 7 events
        - message #4 started
        - message done: danger #1 {} | danger #2 {} | write #3 {}
        - wanted danger #1: ask #5
        - wanted danger #2: ask #6
        - wanted write #3: open
        > order to run #3
        run write #3
        > answered #5: Chosen { choice: "once", kind: AllowOnce }
        - ready #1
        > order to run #1
        run danger #1
        > answered #6: Chosen { choice: "no", kind: RejectOnce }
        - done #2: Rejected the user said no: it did not run
        > #3 done: Completed fine
        - done #3: Completed fine
        > #1 done: Completed fine
        - done #1: Completed fine
        call model
            user: do both
            agent: danger #1 {} | danger #2 {} | write #3 {}
            tool: #2 Rejected the user said no: it did not run | #3 Completed fine | #1 Completed fine
    "#]]
    .assert_eq(script.happened());
}

#[test]
fn with_nothing_but_questions_left_it_parks() {
    let mut script = Script::begun("do it");
    script.unprinted().model(wants(&["danger", "look"])).run(1).done(1).answer(0, yes());
    expect![[r#"
        > model: 5 events
        - message #3 started
        - message done: danger #1 {} | look #2 {}
        - wanted danger #1: ask #4
        - wanted look #2: open
        > order to run #2
        run look #2
        > #2 done: Completed fine
        - done #2: Completed fine
        - parked
        end
        > answered #4: Chosen { choice: "once", kind: AllowOnce }
    "#]]
    .assert_eq(script.happened());
}

#[test]
fn always_counts_from_then_on() {
    let mut script = Script::begun("do it");
    script.unprinted().model(wants(&["danger", "write"])).run(1);
    script.answer(0, reply("always", ChoiceKind::AllowAlways)).run(0).done(0).done(1).model(wants(&["danger"]));
    expect![[r#"
        > model: 5 events
        - message #3 started
        - message done: danger #1 {} | write #2 {}
        - wanted danger #1: ask #4
        - wanted write #2: open
        > order to run #2
        run write #2
        > answered #4: Chosen { choice: "always", kind: AllowAlways }
        - ready #1
        > order to run #1
        run danger #1
        > #1 done: Completed fine
        - done #1: Completed fine
        > #2 done: Completed fine
        - done #2: Completed fine
        call model
            user: do it
            agent: danger #1 {} | write #2 {}
            tool: #1 Completed fine | #2 Completed fine
        > model: 3 events
        - message #6 started
        - message done: danger #5 {}
        - wanted danger #5: open
    "#]]
    .assert_eq(script.happened());
}

#[test]
fn an_order_for_a_call_that_was_not_allowed_runs_nothing() {
    let mut script = Script::begun("do it");
    script
        .model(wants(&["danger", "write"]))
        .unprinted()
        .run(0)
        .run(1)
        .run(1)
        .answer(0, yes())
        .answer(0, yes())
        .run(0)
        .run(0);
    expect![[r#"
        > order to run #1
        > order to run #2
        run write #2
        > order to run #2
        > answered #4: Chosen { choice: "once", kind: AllowOnce }
        - ready #1
        > answered #4: Chosen { choice: "once", kind: AllowOnce }
        > order to run #1
        run danger #1
        > order to run #1
    "#]]
    .assert_eq(script.happened());
}

#[test]
fn unknown_tools_and_forbidden_ones_are_told_to_the_model() {
    let mut script = Script::begun("do it");
    script.unprinted().model(wants(&["forbidden", "unheard_of"]));
    expect![[r#"
        > model: 5 events
        - message #3 started
        - message done: forbidden #1 {} | unheard_of #2 {}
        - wanted forbidden #1: shut Rejected the policy forbids it
        - wanted unheard_of #2: shut Failed no such tool: unheard_of
        call model
            user: do it
            agent: forbidden #1 {} | unheard_of #2 {}
            tool: #1 Rejected the policy forbids it | #2 Failed no such tool: unheard_of
    "#]]
    .assert_eq(script.happened());
}

#[test]
fn five_wrong_calls_in_a_row_end_the_run() {
    let mut script = Script::begun("do it");
    script.model(wants(&["a", "b"])).model(wants(&["c", "d"])).unprinted().model(wants(&["e"]));
    expect![[r#"
        > model: 3 events
        - message #8 started
        - message done: e #7 {}
        - wanted e #7: shut Failed no such tool: e
        - ended failed tool_calls: the model called tools wrongly 5 times in a row
        end
    "#]]
    .assert_eq(script.happened());
    let mut script = Script::begun("do it");
    script.model(wants(&["a", "b", "c", "d", "look"])).run(4).done(4).unprinted().model(wants(&["e"]));
    expect![[r#"
        > model: 3 events
        - message #8 started
        - message done: e #7 {}
        - wanted e #7: shut Failed no such tool: e
        call model
            user: do it
            agent: a #1 {} | b #2 {} | c #3 {} | d #4 {} | look #5 {}
            tool: #1 Failed no such tool: a | #2 Failed no such tool: b | #3 Failed no such tool: c | #4 Failed no such tool: d | #5 Completed fine
            agent: e #7 {}
            tool: #7 Failed no such tool: e
    "#]].assert_eq(script.happened());
}

#[test]
fn a_changed_policy_counts_for_the_next_call() {
    let mut script = Script::begun("do it");
    let settings = Settings { policy: Policy::Auto, ..prompted("").settings };
    script.unprinted().feed(Input::Configured(settings)).model(wants(&["danger"]));
    expect![[r#"
        > configured: Auto
        > model: 3 events
        - message #2 started
        - message done: danger #1 {}
        - wanted danger #1: open
    "#]]
    .assert_eq(script.happened());
}

#[test]
fn cancel_while_tools_run_stops_them_and_nothing_starts_afterwards() {
    let mut script = Script::begun("do it");
    script.model(wants(&["write", "danger", "look"])).run(0).unprinted().feed(Input::Cancel);
    script.run(2).answer(0, yes()).done(0).feed(Input::Cancel);
    expect![[r#"
        > cancel
        stop tools
        - ended cancelled
        end
        > order to run #3
        > answered #5: Chosen { choice: "once", kind: AllowOnce }
        > #1 done: Completed fine
        > cancel
    "#]]
    .assert_eq(script.happened());
}

#[test]
fn a_run_ends_after_as_many_model_calls_as_it_may_make() {
    let mut setup = setup();
    setup.settings.max_turns = 2;
    let mut script = Script::new(setup, prompted("go on"));
    script.feed(Input::Begin).model(wants(&["forbidden"])).unprinted().model(wants(&["forbidden"]));
    expect![[r#"
        > model: 3 events
        - message #4 started
        - message done: forbidden #3 {}
        - wanted forbidden #3: shut Rejected the policy forbids it
        - ended completed MaxTurns
        end
    "#]]
    .assert_eq(script.happened());
}

#[test]
fn what_a_run_hands_out_by_itself_is_no_call_of_the_model() {
    let mut setup = setup();
    setup.settings.max_turns = 1;
    setup.subtasks = Some(json!({ "tasks": [] }));
    let mut script = Script::new(setup, prompted("two in one"));
    script.feed(Input::Begin).run(0).done(0).model(wants(&["forbidden"]));
    expect![[r#"
        > begin
        - message #1 started
        - message done, native: delegate #2 {"tasks":[]}
        - wanted delegate #2: open
        > order to run #2
        run delegate #2
        > #2 done: Completed fine
        - done #2: Completed fine
        call model
            user: two in one
            agent: delegate #2 {"tasks":[]}
            tool: #2 Completed fine
        > model: 3 events
        - message #4 started
        - message done: forbidden #3 {}
        - wanted forbidden #3: shut Rejected the policy forbids it
        - ended completed MaxTurns
        end
    "#]]
    .assert_eq(script.happened());
}

#[test]
fn calls_beyond_the_limit_wait_and_start_in_their_order() {
    let mut setup = setup();
    setup.settings.parallel_tool_calls = 2;
    let mut script = Script::new(setup, prompted("tidy up"));
    script.feed(Input::Begin);
    script.unprinted().model(wants(&["write", "write", "danger", "write", "write"]));
    // The one that asks takes no slot until somebody has said yes, and then waits behind those that came before.
    script.run(0).run(1).answer(0, yes()).done(1).done(0);
    expect![[r#"
        > model: 11 events
        - message #6 started
        - message done: write #1 {} | write #2 {} | danger #3 {} | write #4 {} | write #5 {}
        - wanted write #1: open
        - wanted write #2: open
        - wanted danger #3: ask #7
        > order to run #1
        run write #1
        > order to run #2
        run write #2
        > answered #7: Chosen { choice: "once", kind: AllowOnce }
        > #2 done: Completed fine
        - done #2: Completed fine
        - wanted write #4: open
        > #1 done: Completed fine
        - done #1: Completed fine
        - wanted write #5: open
    "#]]
    .assert_eq(script.happened());
}

#[test]
fn a_thousand_calls_never_run_more_than_eight_at_once() {
    let mut script = Script::begun("tidy up");
    script.unprinted().model(wants(&["write"; 1_000]));
    let (mut started, mut most) = (0, 0);
    for ended in 0..1_000 {
        while started < script.wanted.len() {
            script.run(started);
            started += 1;
        }
        most = most.max(started - ended);
        script.done(ended);
    }
    assert_eq!((started, most), (1_000, 8));
}
