//! What a model is shown: the fold of a log into a conversation.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use gander_domain::context::CallStage;
use gander_domain::{
    Command, Context, Delta, DeltaKind, IfBusy, Message, MessageId, Outcome, Part, Report, ResetReason, Role, Seq,
    StopReason, ToolEnd, ToolGate, ToolResult,
};
use gander_testkit::{SessionScript, build};
use uuid::Uuid;

const RUN: u128 = 1;

fn running() -> SessionScript {
    let mut script = SessionScript::begin();
    script.prompt(build::run(RUN), IfBusy::Refuse).unwrap();
    script
}

fn context(script: &SessionScript) -> Context {
    Context::replay(&script.log).unwrap()
}

fn says(script: &mut SessionScript, text: &str, tail: Vec<Part>) {
    script.report(build::run(RUN), Report::Deltas(vec![Delta { growth: DeltaKind::Text, text: text.to_owned() }]));
    script.report(build::run(RUN), Report::MessageDone { tail, native: None, interrupted: false });
}

fn wants(n: u128) -> Part {
    let call = build::shell(build::call_id(n));
    Part::ToolUse { call: call.id, name: call.name, arguments: call.arguments }
}

fn runs(script: &mut SessionScript, n: u128) {
    let call = build::shell(build::call_id(n));
    script.report(build::run(RUN), Report::ToolWanted { call, gate: ToolGate::Open });
    let result = ToolResult::text(ToolEnd::Completed, format!("result {n}"));
    script.report(build::run(RUN), Report::ToolDone { call: build::call_id(n), result });
}

fn ends(script: &mut SessionScript) {
    script.report(build::run(RUN), Report::Ended(Outcome::Completed { stop: StopReason::EndTurn }));
}

/// One line per message: who, and what in short.
fn lines(context: &Context) -> Vec<String> {
    let short = |part: &Part| match part {
        Part::Text { text } => text.clone(),
        Part::ToolUse { call, .. } => format!("use {}", call.uuid().as_u128()),
        Part::ToolResult { call, .. } => format!("result {}", call.uuid().as_u128()),
        other => format!("{other:?}"),
    };
    let line = |message: &Message| {
        format!("{:?}: {}", message.role, message.parts.iter().map(short).collect::<Vec<_>>().join(", "))
    };
    context.messages.iter().map(|message| line(message)).collect()
}

#[test]
fn results_stand_behind_the_message_that_asked_also_when_a_person_spoke_in_between() {
    let mut script = running();
    says(&mut script, "look", vec![wants(1), wants(2)]);
    runs(&mut script, 1);
    script.prompt(build::run(9), IfBusy::Steer).unwrap();
    runs(&mut script, 2);
    let expected = ["User: hello", "Agent: look, use 1, use 2", "Tool: result 1, result 2", "User: hello"];
    assert_eq!(lines(&context(&script)), expected);
    assert_eq!(context(&script).pending, []);
}

#[test]
fn what_was_interrupted_is_not_shown_again() {
    let mut script = running();
    script.report(build::run(RUN), Report::Deltas(vec![Delta { growth: DeltaKind::Text, text: "half".to_owned() }]));
    script.crash(&gander_domain::Recovery::default());
    says(&mut script, "whole", Vec::new());
    assert_eq!(lines(&context(&script)), ["User: hello", "Agent: whole"]);
}

#[test]
fn a_pending_call_knows_how_far_it_is() {
    let mut script = running();
    says(&mut script, "", vec![wants(1), wants(2), wants(3)]);
    let ask = ToolGate::Ask(build::permission(build::question_id(1), build::call_id(1)));
    script.report(build::run(RUN), Report::ToolWanted { call: build::shell(build::call_id(1)), gate: ask });
    script.report(build::run(RUN), Report::ToolWanted { call: build::shell(build::call_id(2)), gate: ToolGate::Open });
    let stages: Vec<_> = context(&script).pending.into_iter().map(|pending| pending.stage).collect();
    assert!(matches!(stages[..], [CallStage::Asked(_), CallStage::Started, CallStage::Requested]), "{stages:?}");
}

#[test]
fn a_rewind_keeps_what_came_before_and_a_clear_keeps_nothing() {
    let mut script = running();
    says(&mut script, "one", Vec::new());
    ends(&mut script);
    let place = script.session.view().head;
    script.prompt(build::run(2), IfBusy::Refuse).unwrap();
    script.report(build::run(2), Report::Ended(Outcome::Completed { stop: StopReason::EndTurn }));
    let reset = |keep_to, reason| Command::Reset { keep_to, replacement: Vec::new(), reason };
    script.command(reset(place, ResetReason::Rewound)).unwrap();
    assert_eq!(lines(&context(&script)), ["User: hello", "Agent: one"]);
    script.command(reset(Seq::ZERO, ResetReason::Cleared)).unwrap();
    assert_eq!(lines(&context(&script)), [""; 0]);
    assert_eq!(script.session.view().context_from, script.session.view().head);
}

#[test]
fn what_a_replaced_history_marks_as_interrupted_is_for_people_only() {
    let mut script = running();
    ends(&mut script);
    let said = |id, text| Message::text(MessageId::new(Uuid::from_u128(id)), Role::User, text);
    let replacement = vec![said(1, "for all"), Message { interrupted: true, ..said(2, "for people") }];
    script.command(Command::Reset { keep_to: Seq::ZERO, replacement, reason: ResetReason::Replaced }).unwrap();
    assert_eq!(lines(&context(&script)), ["User: for all"]);
}

#[test]
fn a_compaction_in_the_middle_of_a_run_keeps_the_runs_own_messages_known() {
    let mut script = running();
    says(&mut script, "look", vec![wants(1)]);
    runs(&mut script, 1);
    let before = context(&script);
    let own: Vec<Message> =
        before.messages[before.run_start_index()..].iter().map(|message| (**message).clone()).collect();
    let summary = Message::text(MessageId::new(Uuid::from_u128(77)), Role::User, "summary");
    let replacement = [vec![summary], own].concat();
    script.report(build::run(RUN), Report::Compacted { keep_to: Seq::ZERO, replacement });
    let after = context(&script);
    assert_eq!(lines(&after), ["User: summary", "User: hello", "Agent: look, use 1", "Tool: result 1"]);
    assert_eq!(after.run_start_index(), 1);
}

#[test]
fn what_is_said_while_a_summary_is_made_is_not_lost() {
    let mut script = running();
    says(&mut script, "old", Vec::new());
    script.prompt(build::run(9), IfBusy::Steer).unwrap();
    let heard = context(&script);
    script.prompt(build::run(10), IfBusy::Steer).unwrap();
    let unheard = context(&script).messages.last().unwrap().id;
    let summary = Message::text(MessageId::new(Uuid::from_u128(77)), Role::User, "summary");
    let last = Message::clone(heard.messages.last().unwrap());
    let replacement = vec![summary, last];
    script.report(build::run(RUN), Report::Compacted { keep_to: Seq::ZERO, replacement });
    let after = context(&script);
    assert_eq!(after.messages.iter().map(|message| message.id).next_back(), Some(unheard));
    assert_eq!(after.messages.len(), 3);
}

#[test]
fn reading_from_the_last_reset_gives_the_same_as_reading_everything() {
    let mut script = running();
    says(&mut script, "old", Vec::new());
    ends(&mut script);
    let reset = Command::Reset { keep_to: Seq::ZERO, replacement: Vec::new(), reason: ResetReason::Cleared };
    script.command(reset).unwrap();
    script.prompt(build::run(3), IfBusy::Refuse).unwrap();
    let view = script.session.view();
    let mut short = Context::empty(view.settings.clone(), view.workspace.clone(), view.folders.clone());
    let from = view.context_from;
    script.log.iter().filter(|entry| entry.seq >= from).for_each(|entry| short.apply(entry));
    short.provenance = view.provenance.clone(); // as whoever reads from the middle does
    assert_eq!(short, context(&script));
}
