//! Hostile steps: ids come from small pools, so that they collide, repeat and arrive out of order.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, clippy::large_enum_variant)]

use gander_domain::{ChoiceKind, Policy, Question, QuestionOrigin, ResetReason};
use gander_domain::{
    Command, Delta, DeltaKind, IfBusy, MessageId, Outcome, Part, Recovery, Reply, Report, Seq, SettingsPatch,
    StopReason, ToolEnd, ToolGate, ToolResult,
};
use gander_testkit::{SessionScript, build};
use proptest::prelude::*;
use serde_json::json;
use uuid::Uuid;

#[derive(Clone, Debug)]
pub enum Step {
    Prompt(u128, IfBusy),
    Cancel(u128),
    CancelAny,
    Answer(u128, &'static str),
    Configure(bool),
    Title,
    Reset(u64),
    /// About the active run, or about a run of this number.
    Report(Option<u128>, Report),
    BackendDies,
    Crash(Recovery),
    Wait(i64),
}

pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    proptest::collection::vec(step(), 1..60)
}

pub fn play(script: &mut SessionScript, step: &Step) {
    let active = script.session.view().run.as_ref().map(|run| run.id);
    match step {
        Step::Prompt(run, if_busy) => drop(script.prompt(build::run(*run), *if_busy)),
        Step::Cancel(run) => {
            drop(script.command(Command::Cancel { run: Some(build::run(*run)), origin: build::origin() }))
        }
        Step::CancelAny => drop(script.command(Command::Cancel { run: None, origin: build::origin() })),
        Step::Answer(question, choice) => drop(script.command(answer(*question, choice))),
        Step::Configure(auto) => {
            let policy = Some(if *auto { Policy::Auto } else { Policy::Ask });
            drop(script.command(Command::Configure { patch: SettingsPatch { policy, ..SettingsPatch::default() } }));
        }
        Step::Title => drop(script.command(Command::SetTitle { title: "A title".to_owned() })),
        Step::Reset(keep_to) => {
            let (keep_to, replacement, reason) = (Seq(*keep_to), Vec::new(), ResetReason::Cleared);
            drop(script.command(Command::Reset { keep_to, replacement, reason }));
        }
        Step::Report(run, report) => {
            if let Some(run) = run.map(build::run).or(active) {
                script.report(run, report.clone());
            }
        }
        Step::BackendDies => active.into_iter().for_each(|run| script.backend_dies(run)),
        Step::Crash(recovery) => script.crash(recovery),
        Step::Wait(micros) => script.clock += micros,
    }
}

fn answer(question: u128, choice: &str) -> Command {
    let reply = match choice {
        "declined" => Reply::Declined,
        "cancelled" => Reply::Cancelled,
        "interrupted" => Reply::Interrupted,
        choice => Reply::Chosen { choice: choice.to_owned(), kind: ChoiceKind::AllowOnce },
    };
    Command::Answer { question: build::question_id(question), reply, origin: build::origin(), meta: None }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1u128..8, if_busy()).prop_map(|(run, if_busy)| Step::Prompt(run, if_busy)),
        1 => (1u128..8).prop_map(Step::Cancel),
        1 => Just(Step::CancelAny),
        4 => (1u128..5, choice()).prop_map(|(question, choice)| Step::Answer(question, choice)),
        1 => any::<bool>().prop_map(Step::Configure),
        1 => Just(Step::Title),
        1 => (0u64..40).prop_map(Step::Reset),
        24 => report().prop_map(|report| Step::Report(None, report)),
        2 => (1u128..8, report()).prop_map(|(run, report)| Step::Report(Some(run), report)),
        1 => Just(Step::BackendDies),
        2 => recovery().prop_map(Step::Crash),
        1 => (0i64..1_000_000_000).prop_map(Step::Wait),
    ]
}

fn if_busy() -> impl Strategy<Value = IfBusy> {
    let steer_run = (1u128..8).prop_map(|run| IfBusy::SteerRun(build::run(run)));
    let others = [IfBusy::Refuse, IfBusy::Queue, IfBusy::QueueOrSupersede, IfBusy::Steer];
    prop_oneof![4 => prop::sample::select(others.to_vec()), 1 => steer_run]
}

fn choice() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        4 => Just("allow"),
        2 => Just("reject"),
        1 => Just("no such choice"),
        1 => Just("declined"),
        1 => Just("cancelled"),
        1 => Just("interrupted"),
    ]
}

fn recovery() -> impl Strategy<Value = Recovery> {
    prop_oneof![
        3 => Just(Recovery::default()),
        1 => Just(Recovery { resume: false, ..Recovery::default() }),
    ]
}

fn report() -> impl Strategy<Value = Report> {
    prop_oneof![
        2 => (1u128..6).prop_map(|message| Report::MessageStarted { message: MessageId::new(Uuid::from_u128(message)) }),
        5 => proptest::collection::vec(delta(), 0..4).prop_map(Report::Deltas),
        2 => any::<bool>().prop_map(|interrupted| Report::MessageDone { tail: Vec::new(), native: None, interrupted }),
        1 => Just(Report::MessageDone { tail: vec![Part::text("tail")], native: None, interrupted: false }),
        5 => (1u128..5, any::<bool>(), gate()).prop_map(|(id, safe, gate)| wanted(id, safe, gate)),
        3 => (1u128..5).prop_map(|id| Report::ToolReady { call: build::call_id(id) }),
        1 => (1u128..5).prop_map(|id| Report::ToolUpdated { call: build::call_id(id), content: Vec::new() }),
        3 => (1u128..5, end()).prop_map(|(id, end)| Report::ToolDone {
            call: build::call_id(id),
            result: ToolResult::text(end, "done"),
        }),
        1 => (1u128..5, origin()).prop_map(|(id, origin)| Report::Asked(bare_question(id, origin))),
        1 => (1u128..5).prop_map(|id| Report::Withdrawn(build::question_id(id))),
        1 => (1u128..5).prop_map(|id| Report::StateChanged { delta: state(), call: Some(build::call_id(id)) }),
        1 => Just(Report::ArtifactSaved { name: "a.txt".to_owned(), version: 0, mime: None, content: None, call: None }),
        1 => Just(Report::Titled("Given".to_owned())),
        1 => Just(Report::Compacted { keep_to: Seq::ZERO, replacement: Vec::new() }),
        1 => Just(Report::OpaqueUpdate { protocol: "acp".to_owned(), body: Box::new(json!({ "update": {} })) }),
        1 => delta().prop_map(|delta| with_meta(Report::Deltas(vec![delta]))),
        1 => Just(with_meta(Report::MessageDone { tail: vec![Part::text("tail")], native: None, interrupted: false })),
        2 => Just(Report::Parked),
        2 => outcome().prop_map(Report::Ended),
    ]
}

fn state() -> gander_domain::State {
    let values = [("a", 1), ("user:b", 2), ("temp:c", 3)];
    values.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect()
}

fn delta() -> impl Strategy<Value = Delta> {
    (any::<bool>(), "[a-zä ]{0,3}").prop_map(|(thought, text)| {
        let growth = if thought { DeltaKind::Thought } else { DeltaKind::Text };
        Delta { growth, text }
    })
}

fn wanted(id: u128, safe: bool, gate: ToolGate) -> Report {
    let id = build::call_id(id);
    let call = if safe { build::read(id) } else { build::shell(id) };
    Report::ToolWanted { call, gate }
}

fn gate() -> impl Strategy<Value = ToolGate> {
    prop_oneof![
        2 => Just(ToolGate::Open),
        3 => (1u128..5).prop_map(|id| ToolGate::Ask(build::permission(build::question_id(id), build::call_id(1)))),
        1 => Just(ToolGate::External),
        1 => Just(ToolGate::Denied(ToolResult::text(ToolEnd::Rejected, "no"))),
    ]
}

fn origin() -> impl Strategy<Value = QuestionOrigin> {
    prop_oneof![Just(QuestionOrigin::Parked), Just(QuestionOrigin::Held), Just(QuestionOrigin::NonBlocking)]
}

fn with_meta(report: Report) -> Report {
    Report::WithMeta { report: Box::new(report), meta: Box::new(json!({ "acp": {} })) }
}

fn bare_question(id: u128, origin: QuestionOrigin) -> Question {
    Question { call: None, origin, ..build::permission(build::question_id(id), build::call_id(1)) }
}

fn end() -> impl Strategy<Value = ToolEnd> {
    prop_oneof![Just(ToolEnd::Completed), Just(ToolEnd::Failed), Just(ToolEnd::Rejected)]
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        Just(Outcome::Completed { stop: StopReason::EndTurn }),
        Just(Outcome::Cancelled),
        Just(Outcome::failed("model", "broken")),
    ]
}
