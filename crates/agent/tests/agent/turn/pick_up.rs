//! A turn that finds calls in the log which are without a result.

use expect_test::{Expect, expect};
use gander_agent::turn::Input;
use gander_domain::context::CallStage;
use gander_domain::{Answer, Context, Event, Question};

use crate::turn::script::{Script, fold, no, setup, wants, yes};

/// What the log says after the model wanted this tool.
fn after(tool: &str) -> Context {
    let mut script = Script::begun("go");
    script.model(wants(&[tool]));
    script.context().clone()
}

fn asked(context: &Context) -> Question {
    let CallStage::Asked(question) = &context.pending[0].stage else { panic!("not asked") };
    question.clone()
}

fn answered(answer: Answer) -> Context {
    let mut context = after("danger");
    let question = asked(&context).id;
    let run = context.run;
    fold(&mut context, run, Event::QuestionAnswered { question, answer });
    context
}

fn started(tool: &str) -> Context {
    let mut context = after(tool);
    let (run, call) = (context.run, context.pending[0].id);
    fold(&mut context, run, Event::ToolStarted { call });
    context
}

fn check(context: Context, expected: Expect) {
    let mut script = Script::new(setup(), context);
    script.feed(Input::Begin);
    expected.assert_eq(script.happened());
}

#[test]
fn an_open_question_is_waited_for() {
    check(
        after("danger"),
        expect![[r#"
        > begin
        - parked
        end
    "#]],
    );
}

#[test]
fn a_yes_starts_the_call() {
    check(
        answered(yes()),
        expect![[r#"
        > begin
        - ready #1
    "#]],
    );
}

#[test]
fn a_no_is_told_to_the_model() {
    check(
        answered(no()),
        expect![[r#"
        > begin
        - done #1: Rejected the user said no: it did not run
        call model
            user: go
            agent: danger #1 {}
            tool: #1 Rejected the user said no: it did not run
    "#]],
    );
}

#[test]
fn a_yes_to_something_else_is_asked_again() {
    let mut context = answered(yes());
    let CallStage::Answered(question, _) = &mut context.pending[0].stage else { panic!("not answered") };
    question.fingerprint = Some("of another call".into());
    check(
        context,
        expect![[r#"
        > begin
        - asked #1
        - parked
        end
    "#]],
    );
}

#[test]
fn a_call_that_was_allowed_but_not_started_is_started() {
    check(
        after("write"),
        expect![[r#"
        > begin
        - ready #1
    "#]],
    );
}

#[test]
fn a_started_call_runs_again_only_if_that_changes_nothing() {
    check(
        started("look"),
        expect![[r#"
        > begin
        run look #1
    "#]],
    );
    check(
        started("write"),
        expect![[r#"
        > begin
        - done #1: Interrupted interrupted: it may or may not have taken effect, check before doing it again
        call model
            user: go
            agent: write #1 {}
            tool: #1 Interrupted interrupted: it may or may not have taken effect, check before doing it again
    "#]],
    );
}

#[test]
fn an_answer_whose_end_is_missing_is_not_asked_for_again() {
    let mut script = Script::begun("go");
    script
        .model(vec![crate::turn::script::says("Done."), crate::turn::script::done(gander_models::ModelStop::EndTurn)]);
    check(
        script.context().clone(),
        expect![[r#"
        > begin
        - ended completed EndTurn
        end
    "#]],
    );
}
