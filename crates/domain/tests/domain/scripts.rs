//! The machine's important paths, written out.

#![allow(clippy::unwrap_used)]

use expect_test::{Expect, expect};
use gander_domain::{
    Accepted, ChoiceKind, Command, CommandError, Delta, DeltaKind, Event, IfBusy, Order, OrderTiming, Outcome, Part,
    Question, QuestionOrigin, Recovery, Reply, Report, Role, RunOrigin, StopReason, ToolEnd, ToolGate, ToolResult,
};
use gander_testkit::{SessionScript, build};
use serde_json::json;

const END: Report = Report::Ended(Outcome::Completed { stop: StopReason::EndTurn });

/// Kinds only: the values are compared by the law tests and by the vectors.
fn kinds(script: &SessionScript) -> String {
    let kind = |line: &str| {
        let kind = line.split("\"kind\":\"").nth(1).unwrap_or(line);
        kind.split('"').next().unwrap_or(kind).to_owned()
    };
    script.lines(0).lines().map(|line| kind(line) + "\n").collect()
}

fn check(script: &SessionScript, expected: Expect) {
    expected.assert_eq(&kinds(script));
}

fn running() -> SessionScript {
    let mut script = SessionScript::begin();
    assert_eq!(script.prompt(build::run(1), IfBusy::Refuse), Ok(Accepted::Started(build::run(1))));
    script
}

fn asking() -> SessionScript {
    let mut script = running();
    let call = build::shell(build::call_id(1));
    let gate = ToolGate::Ask(build::permission(build::question_id(1), call.id));
    script.report(build::run(1), Report::ToolWanted { call, gate });
    script
}

fn answer(choice: &str) -> Command {
    let reply = Reply::Chosen { choice: choice.to_owned(), kind: ChoiceKind::AllowOnce };
    Command::Answer { question: build::question_id(1), reply, origin: build::origin(), meta: None }
}

fn last_order(script: &SessionScript) -> (OrderTiming, Order) {
    let (when, order, _) = script.orders.last().unwrap();
    (*when, order.clone())
}

fn says(run: u128, text: &str, if_busy: IfBusy) -> Command {
    let (run, origin, parts) = (build::run(run), build::origin(), vec![Part::text(text)]);
    Command::Prompt { run, origin, parts, if_busy, meta: None }
}

#[test]
fn a_command_to_the_session_is_a_run_without_a_back_end() {
    let mut script = running();
    script.report(build::run(1), END);
    let orders = script.orders.len();
    assert_eq!(script.command(says(2, "/title Mine", IfBusy::Refuse)), Ok(Accepted::Started(build::run(2))));
    assert_eq!(script.command(says(3, "/clear", IfBusy::Refuse)), Ok(Accepted::Started(build::run(3))));
    assert_eq!(script.command(says(4, "/title", IfBusy::Refuse)), Err(CommandError::BadTitle));
    assert_eq!((script.orders.len(), script.session.view().title.as_deref()), (orders, Some("Mine")));
    let context = gander_domain::Context::replay(&script.log).unwrap();
    assert!(context.messages.is_empty(), "no model hears of it: {:?}", context.messages);
    check(
        &script,
        expect![[r#"
        session_created
        run_started
        message_done
        run_ended
        run_started
        message_done
        message_done
        title_set
        run_ended
        run_started
        message_done
        message_done
        history_reset
        run_ended
    "#]],
    );
}

#[test]
fn commands_to_a_busy_session_wait_for_their_turn_except_a_title() {
    let mut script = running();
    assert_eq!(script.command(says(2, "/title Now", IfBusy::Refuse)), Ok(Accepted::Done));
    assert_eq!(script.command(says(3, "/clear", IfBusy::Refuse)), Err(CommandError::RunActive(build::run(1))));
    assert_eq!(script.command(says(4, "/clear", IfBusy::Steer)), Err(CommandError::RunActive(build::run(1))));
    assert_eq!(script.command(says(5, "/clear", IfBusy::Queue)), Ok(Accepted::Queued(build::run(5))));
    assert_eq!(script.session.view().title.as_deref(), Some("Now"));
    script.report(build::run(1), END);
    assert!(script.session.view().run.is_none(), "the queued command is over, too");
    assert_eq!(kinds(&script).matches("history_reset").count(), 1);
}

#[test]
fn a_streamed_turn() {
    let mut script = running();
    let delta = |growth, text: &str| Delta { growth, text: text.to_owned() };
    let deltas = vec![delta(DeltaKind::Thought, "hm"), delta(DeltaKind::Text, "Hel"), delta(DeltaKind::Text, "lo")];
    script.report(build::run(1), Report::Deltas(deltas));
    script.report(build::run(1), Report::MessageDone { tail: Vec::new(), native: None, interrupted: false });
    script.report(build::run(1), END);
    check(
        &script,
        expect![[r#"
        session_created
        run_started
        message_done
        message_started
        part_delta
        part_delta
        part_delta
        message_done
        run_ended
    "#]],
    );
}

#[test]
fn an_opaque_update_leaves_the_message_open_and_meta_goes_to_the_entry_that_is_meant() {
    let mut script = running();
    let delta = |text: &str| Report::Deltas(vec![Delta { growth: DeltaKind::Text, text: text.to_owned() }]);
    let body = || Box::new(json!({ "a": 1 }));
    let with_meta = |report| Report::WithMeta { report: Box::new(report), meta: body() };
    script.report(build::run(1), delta("Hel"));
    script.report(build::run(1), Report::OpaqueUpdate { protocol: "acp".to_owned(), body: body() });
    script.report(build::run(1), with_meta(delta("lo")));
    let call = build::shell(build::call_id(1));
    script.report(build::run(1), with_meta(Report::ToolWanted { call, gate: ToolGate::External }));
    script.report(build::run(1), with_meta(Report::Titled("Given".to_owned())));
    script.report(build::run(1), with_meta(Report::Titled("not heard: it has one".to_owned())));
    let entries = script.log.iter().filter(|entry| entry.meta.as_deref() == Some(&json!({ "a": 1 })));
    let noted: Vec<String> = entries.map(|entry| json!(entry.event)["kind"].as_str().unwrap().to_owned()).collect();
    assert_eq!(noted, ["part_delta", "tool_called", "title_set"]);
    let whole = script.log.iter().filter_map(|entry| {
        let Event::MessageDone { message } = &entry.event else { return None };
        (message.role == Role::Agent).then(|| message.plain_text())
    });
    assert_eq!(whole.collect::<Vec<_>>(), ["Hello"]);
}

#[test]
fn cancel_while_asked_ends_cancelled() {
    let mut script = asking();
    script.command(Command::Cancel { run: None, origin: build::origin() }).unwrap();
    script.report(build::run(1), END); // a back-end that did not listen
    check(
        &script,
        expect![[r#"
        session_created
        run_started
        message_done
        tool_called
        question_asked
        cancel_requested
        question_answered
        tool_done
        run_ended
    "#]],
    );
    assert_eq!(script.session.view().run_outcome(build::run(1)), Some(&Outcome::Cancelled));
}

#[test]
fn a_prompt_after_a_cancel_starts_when_the_cancelled_run_has_ended() {
    let mut script = running();
    script.command(Command::Cancel { run: None, origin: build::origin() }).unwrap();
    assert_eq!(script.prompt(build::run(2), IfBusy::Refuse), Ok(Accepted::Queued(build::run(2))));
    assert_eq!(script.prompt(build::run(3), IfBusy::Steer), Ok(Accepted::Queued(build::run(3))));
    script.report(build::run(1), END);
    check(
        &script,
        expect![[r#"
        session_created
        run_started
        message_done
        cancel_requested
        run_queued
        run_queued
        run_ended
        run_started
        message_done
    "#]],
    );
    // The one that runs now was not cancelled: others are refused again.
    assert_eq!(script.prompt(build::run(4), IfBusy::Refuse), Err(CommandError::RunActive(build::run(2))));
}

#[test]
fn a_second_cancel_is_for_what_its_caller_has_prompted_since() {
    let mut script = running();
    let cancel = || Command::Cancel { run: None, origin: build::origin() };
    script.command(cancel()).unwrap();
    script.prompt(build::run(2), IfBusy::Refuse).unwrap();
    let other = RunOrigin { door: "another".to_owned(), ..build::origin() };
    let parts = vec![Part::text("stays")];
    let stays = Command::Prompt { run: build::run(3), origin: other, parts, if_busy: IfBusy::Queue, meta: None };
    script.command(stays).unwrap();
    script.command(cancel()).unwrap();
    assert_eq!(script.session.view().run_outcome(build::run(2)), Some(&Outcome::Cancelled));
    script.report(build::run(1), END);
    assert_eq!(script.session.view().run.as_ref().map(|run| run.id), Some(build::run(3)));
}

#[test]
fn a_message_to_one_run_reaches_no_other() {
    let mut script = running();
    let to = |run: u128| IfBusy::SteerRun(build::run(run));
    assert_eq!(script.prompt(build::run(2), to(1)), Ok(Accepted::Steered(build::run(1))));
    assert_eq!(script.prompt(build::run(3), to(7)), Err(CommandError::NotRunning));
    script.command(Command::Cancel { run: None, origin: build::origin() }).unwrap();
    assert_eq!(script.prompt(build::run(4), to(1)), Err(CommandError::NotRunning));
    script.report(build::run(1), END);
    assert_eq!(script.prompt(build::run(5), to(1)), Err(CommandError::NotRunning));
}

#[test]
fn values_are_kept_by_name_within_a_limit() {
    let mut script = asking();
    let delta = |text: &str| serde_json::from_str::<gander_domain::State>(text).unwrap();
    let set = |delta| Command::SetState { delta, meta: None };
    script.command(set(delta(r#"{"a":1,"user:b":2,"temp:c":3}"#))).unwrap();
    script.command(set(delta(r#"{"a":{"x":null}}"#))).unwrap();
    assert_eq!(script.session.view().state, delta(r#"{"a":{"x":null}}"#));
    let huge = "x".repeat(gander_domain::MAX_STATE_BYTES);
    let refused = script.command(set(delta(&format!(r#"{{"b":"{huge}"}}"#))));
    assert!(matches!(refused, Err(CommandError::StateFull(_))), "{refused:?}");
    assert_eq!(script.session.view().state, delta(r#"{"a":{"x":null}}"#));
}

#[test]
fn the_first_answer_wins_and_the_second_is_told() {
    let mut script = asking();
    assert_eq!(script.command(answer("reject")), Ok(Accepted::Done));
    assert_eq!(script.command(answer("allow")), Err(CommandError::NoSuchQuestion(build::question_id(1))));
    script.report(build::run(1), Report::ToolReady { call: build::call_id(1) }); // a back-end that did not listen
    assert!(!script.orders.iter().any(|(_, order, _)| matches!(order, Order::RunTool { .. })));
}

#[test]
fn a_parked_run_owns_nothing_and_resumes_on_its_answer() {
    let mut script = asking();
    script.report(build::run(1), Report::Parked);
    assert!(!script.session.has_backend());
    script.crash(&Recovery::default());
    assert!(!script.session.has_backend(), "it goes on waiting after a crash");
    script.command(answer("allow")).unwrap();
    assert_eq!(last_order(&script), (OrderTiming::AfterCommit, Order::Resume { run: build::run(1) }));
    script.report(build::run(1), Report::ToolReady { call: build::call_id(1) });
    assert_eq!(last_order(&script), (OrderTiming::AfterSync, Order::RunTool { call: build::call_id(1) }));
}

#[test]
fn a_tool_whose_end_nobody_saw_is_told_and_never_run_again() {
    let mut script = running();
    script.report(build::run(1), Report::ToolWanted { call: build::shell(build::call_id(1)), gate: ToolGate::Open });
    script.crash(&Recovery::default());
    check(
        &script,
        expect![[r#"
        session_created
        run_started
        message_done
        tool_called
        tool_started
        tool_done
        run_recovered
    "#]],
    );
    assert_eq!(last_order(&script), (OrderTiming::AfterCommit, Order::Resume { run: build::run(1) }));
}

#[test]
fn an_idempotent_tool_stays_open_for_the_back_end_that_resumes() {
    let mut script = running();
    script.report(build::run(1), Report::ToolWanted { call: build::read(build::call_id(1)), gate: ToolGate::Open });
    script.crash(&Recovery::default());
    assert_eq!(last_order(&script), (OrderTiming::AfterCommit, Order::Resume { run: build::run(1) }));
    assert!(script.session.view().run.as_ref().unwrap().find_tool_call(build::call_id(1)).is_some());
}

#[test]
fn an_answer_that_crosses_a_parking_back_end_is_not_lost() {
    let mut script = asking();
    script.command(answer("allow")).unwrap(); // on its way while the back-end says:
    script.report(build::run(1), Report::Parked);
    assert_eq!(last_order(&script), (OrderTiming::AfterCommit, Order::Resume { run: build::run(1) }));
    assert!(script.session.has_backend());
}

#[test]
fn an_answer_that_a_back_end_heard_is_no_crossing_one() {
    let mut script = running();
    let child = build::permission(build::question_id(1), build::call_id(1));
    script.report(build::run(1), Report::Asked(Question { call: None, origin: QuestionOrigin::Held, ..child }));
    script.command(answer("allow")).unwrap(); // the child's question, heard by whoever holds the child
    let call = build::shell(build::call_id(2));
    let gate = ToolGate::Ask(build::permission(build::question_id(2), call.id));
    script.report(build::run(1), Report::ToolWanted { call, gate });
    script.report(build::run(1), Report::Parked);
    assert!(!script.session.has_backend(), "it waits, and nobody is started for nothing");
    script.report(build::run(1), END);

    let mut script = asking();
    script.command(answer("allow")).unwrap();
    script.report(build::run(1), END); // it was heard: the run came to its end
    script.prompt(build::run(2), IfBusy::Refuse).unwrap();
    let call = build::shell(build::call_id(2));
    let gate = ToolGate::Ask(build::permission(build::question_id(2), call.id));
    script.report(build::run(2), Report::ToolWanted { call, gate });
    script.report(build::run(2), Report::Parked);
    assert!(!script.session.has_backend(), "what another run was told is not this one's");
}

/// What is asked aside holds nothing up, and is gone with whoever asked it.
#[test]
fn a_run_goes_on_without_the_answer_to_what_is_asked_aside() {
    let mut script = running();
    let child = build::permission(build::question_id(1), build::call_id(1));
    script.report(build::run(1), Report::Asked(Question { call: None, origin: QuestionOrigin::NonBlocking, ..child }));
    let run = script.session.view().run.as_ref().unwrap();
    assert_eq!((run.questions.len(), run.blocking_question(), run.is_awaiting()), (1, None, false));
    script.crash(&Recovery::default());
    let run = script.session.view().run.as_ref().unwrap();
    assert_eq!((run.questions.len(), run.recovered), (0, 1), "the child that asked is gone, the run is picked up");
    assert_eq!(last_order(&script), (OrderTiming::AfterCommit, Order::Resume { run: build::run(1) }));
}

#[test]
fn a_run_is_not_picked_up_for_ever() {
    let mut script = running();
    (0..4).for_each(|_| script.crash(&Recovery::default()));
    let outcome = script.session.view().run_outcome(build::run(1)).cloned();
    assert!(matches!(outcome, Some(Outcome::Failed { reason, .. }) if reason == "interrupted"));
}

#[test]
fn an_old_run_is_not_picked_up() {
    let mut script = running();
    script.clock += Recovery::default().max_age + 1;
    script.crash(&Recovery::default());
    assert!(script.session.view().run.is_none());
}

#[test]
fn a_queued_prompt_starts_when_its_turn_comes() {
    let mut script = running();
    assert_eq!(script.prompt(build::run(2), IfBusy::Queue), Ok(Accepted::Queued(build::run(2))));
    assert_eq!(script.prompt(build::run(2), IfBusy::Queue), Ok(Accepted::Repeated(build::run(2))));
    script.report(build::run(1), END);
    assert_eq!(last_order(&script), (OrderTiming::Immediately, Order::Begin { run: build::run(2) }));
}

#[test]
fn the_queue_has_an_end() {
    let mut script = running();
    for n in 2..18 {
        assert_eq!(script.prompt(build::run(n), IfBusy::Queue), Ok(Accepted::Queued(build::run(n))));
    }
    assert_eq!(script.prompt(build::run(18), IfBusy::Queue), Err(CommandError::QueueFull(16)));
}

#[test]
fn a_busy_session_refuses_and_says_which_run() {
    let mut script = running();
    assert_eq!(script.prompt(build::run(2), IfBusy::Refuse), Err(CommandError::RunActive(build::run(1))));
    let mut script = asking();
    assert_eq!(script.prompt(build::run(2), IfBusy::Refuse), Err(CommandError::RunAwaiting(build::run(1))));
}

#[test]
fn a_prompt_may_supersede_a_run_that_waits() {
    let mut script = asking();
    script.report(build::run(1), Report::Parked);
    assert_eq!(script.prompt(build::run(2), IfBusy::QueueOrSupersede), Ok(Accepted::Started(build::run(2))));
    check(
        &script,
        expect![[r#"
        session_created
        run_started
        message_done
        tool_called
        question_asked
        question_answered
        tool_done
        run_ended
        run_started
        message_done
    "#]],
    );
}

#[test]
fn a_message_into_a_running_turn_belongs_to_it() {
    let mut script = running();
    assert_eq!(script.prompt(build::run(2), IfBusy::Steer), Ok(Accepted::Steered(build::run(1))));
    assert!(matches!(last_order(&script), (OrderTiming::AfterCommit, Order::Steer { .. })));
}

#[test]
fn a_rejected_call_reaches_the_model_as_rejected() {
    let mut script = asking();
    script.command(answer("reject")).unwrap();
    let result = ToolResult::text(ToolEnd::Completed, "a lie");
    script.report(build::run(1), Report::ToolDone { call: build::call_id(1), result });
    let end = script.lines(0);
    assert!(end.contains("it never started") && !end.contains("a lie"), "{end}");
}

#[test]
fn an_empty_prompt_is_refused_and_changes_nothing() {
    let mut script = SessionScript::begin();
    let before = script.log.clone();
    let (run, origin, parts) = (build::run(1), build::origin(), Vec::<Part>::new());
    let refused = script.command(Command::Prompt { run, origin, parts, if_busy: IfBusy::Refuse, meta: None });
    assert_eq!((refused, script.log), (Err(CommandError::EmptyPrompt), before));
}
