//! The driver, with a scripted model and scripted tools.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

mod bench;
mod native;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use gander_domain::{Order, Outcome, Reply, Report, StopReason, ToolCallId, ToolEnd, ToolGate};
use gander_models::{ModelError, ModelStop};
use tokio::sync::Notify;

use bench::{Bench, Line, done, says, text_of, wants};

const END: Report = Report::Ended(Outcome::Completed { stop: StopReason::EndTurn });

#[tokio::test]
async fn one_batch_of_the_network_is_one_report() {
    let batches = vec![vec![says("a"), says("b")], vec![says("c")], vec![says("d"), done(ModelStop::EndTurn)]];
    let mut bench = Bench::new(vec![Line::Batches(batches)]);
    bench.begin().await;
    assert_eq!(bench.texts_until_end().await, ["ab", "c", "d"]);
    bench.gone().await;
}

#[tokio::test]
async fn tools_overlap() {
    // Each of the two waits until the other runs.
    let mut bench = Bench::new(vec![Line::Batches(vec![wants(&["meet", "meet"])]), Line::says("fine")]);
    bench.begin().await;
    for _ in 0..2 {
        let call = bench.wanted().await;
        bench.order(Order::RunTool { call }).await;
    }
    let ends = [bench.tool_end().await, bench.tool_end().await];
    assert_eq!(ends, [ToolEnd::Completed, ToolEnd::Completed]);
    assert_eq!(bench.last().await, END);
}

#[tokio::test]
async fn no_tool_runs_before_its_order() {
    let mut bench = Bench::new(vec![Line::Batches(vec![wants(&["count"])]), Line::says("fine")]);
    bench.begin().await;
    let call = bench.wanted().await;
    tokio::task::yield_now().await;
    assert_eq!(bench.hands.count.load(Ordering::SeqCst), 0);
    bench.order(Order::RunTool { call }).await;
    assert_eq!(bench.tool_end().await, ToolEnd::Completed);
    assert_eq!(bench.hands.count.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_tool_that_panics_has_failed_and_the_run_goes_on() {
    let mut bench = Bench::new(vec![Line::Batches(vec![wants(&["panic"])]), Line::says("oh")]);
    bench.begin().await;
    let call = bench.wanted().await;
    bench.order(Order::RunTool { call }).await;
    assert_eq!(bench.tool_end().await, ToolEnd::Failed);
    assert_eq!(bench.last().await, END);
}

#[tokio::test]
async fn what_a_tool_shows_comes_before_its_end() {
    let mut bench = Bench::new(vec![Line::Batches(vec![wants(&["show"])]), Line::says("fine")]);
    bench.begin().await;
    let call = bench.wanted().await;
    bench.order(Order::RunTool { call }).await;
    let shown = [bench.report().await, bench.report().await, bench.report().await];
    let kinds = shown.each_ref().map(|report| match report {
        Report::ToolUpdated { .. } => "updated",
        Report::PlanSet(_) => "plan",
        Report::ToolDone { .. } => "done",
        _ => "?",
    });
    assert_eq!(kinds, ["updated", "plan", "done"]);
}

#[tokio::test]
async fn cancel_in_the_middle_of_a_stream_stops_reading_at_once() {
    let dropped = Arc::new(Notify::new());
    let mut bench = Bench::new(vec![Line::Hangs(vec![says("a")], dropped.clone())]);
    bench.begin().await;
    assert_eq!(text_of(&bench.deltas().await), "a");
    bench.order(Order::Cancel).await;
    assert_eq!(bench.last().await, Report::Ended(Outcome::Cancelled));
    dropped.notified().await;
    bench.gone().await;
}

#[tokio::test]
async fn cancel_while_the_model_is_dialled_does_not_wait_for_it() {
    let mut bench = Bench::new(vec![Line::NeverConnects]);
    bench.begin().await;
    bench.order(Order::Cancel).await;
    assert_eq!(bench.last().await, Report::Ended(Outcome::Cancelled));
    bench.gone().await;
}

#[tokio::test]
async fn cancel_while_a_tool_runs_lets_it_clean_up() {
    let mut bench = Bench::new(vec![Line::Batches(vec![wants(&["linger"])])]);
    bench.begin().await;
    let call = bench.wanted().await;
    bench.order(Order::RunTool { call }).await;
    bench.hands.begun.notified().await;
    bench.order(Order::Cancel).await;
    assert_eq!(bench.last().await, Report::Ended(Outcome::Cancelled));
    bench.gone().await;
    assert_eq!(bench.hands.cleaned.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_driver_told_to_leave_drops_a_tool_that_does_not_listen() {
    let mut bench = Bench::new(vec![Line::Batches(vec![wants(&["deaf"])])]);
    bench.begin().await;
    let call = bench.wanted().await;
    bench.order(Order::RunTool { call }).await;
    bench.hands.begun.notified().await;
    bench.cancel.cancel();
    bench.gone().await;
    bench.hands.dropped.notified().await;
}

#[tokio::test]
async fn with_only_a_question_left_it_parks_and_goes() {
    let mut bench = Bench::new(vec![Line::Batches(vec![wants(&["ask"])])]);
    bench.begin().await;
    let Report::ToolWanted { gate: ToolGate::Ask(_), .. } = bench.until_wanted().await else { panic!("not asked") };
    assert_eq!(bench.report().await, Report::Parked);
    bench.gone().await;
}

#[tokio::test]
async fn a_question_is_answered_while_another_tool_runs() {
    let answers = vec![Line::Batches(vec![wants(&["ask", "linger"])]), Line::says("fine")];
    let mut bench = Bench::new(answers);
    bench.begin().await;
    let Report::ToolWanted { call, gate: ToolGate::Ask(question) } = bench.until_wanted().await else {
        panic!("not asked")
    };
    let other = bench.wanted().await;
    bench.order(Order::RunTool { call: other }).await;
    bench.hands.begun.notified().await;
    bench.order(Order::Answered { question: question.id, answer: bench::answer(Reply::Declined) }).await;
    let Report::ToolDone { call: refused, result } = bench.report().await else { panic!("not told") };
    assert_eq!((refused, result.end), (call.id, ToolEnd::Rejected));
    bench.hands.release.notify_one();
    assert_eq!(bench.tool_end().await, ToolEnd::Completed);
    assert_eq!(bench.last().await, END);
}

#[tokio::test]
async fn a_failed_call_is_made_again() {
    let broken = || Line::Fails(ModelError::Network("broke".into()));
    let mut bench = Bench::new(vec![broken(), Line::Batches(vec![vec![says("a")]]), Line::says("b")]);
    bench.begin().await;
    // The second call broke off after its first word.
    assert_eq!(bench.texts_until_end().await, ["a", "b"]);
    assert_eq!(bench.model.calls.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn nobody_takes_the_reports_and_a_cancel_is_heard_all_the_same() {
    let flood: Vec<_> = (0..1_000).map(|_| vec![says("x")]).collect();
    let mut bench = Bench::with_room_for(2, vec![Line::Batches(flood)]);
    bench.begin().await;
    while bench.model.read.load(Ordering::SeqCst) < 1 {
        tokio::task::yield_now().await;
    }
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    let read = bench.model.read.load(Ordering::SeqCst);
    assert!(read < 10, "it reads no further than the reports are taken: {read}");
    bench.order(Order::Cancel).await;
    assert_eq!(bench.last().await, Report::Ended(Outcome::Cancelled));
    bench.gone().await;
}

#[tokio::test]
async fn when_nobody_hears_it_any_more_it_goes() {
    let mut bench = Bench::new(vec![Line::Batches(vec![vec![says("a")]; 5])]);
    bench.hang_up();
    bench.begin().await;
    bench.gone().await;
}

#[tokio::test]
async fn an_order_for_an_unknown_call_changes_nothing() {
    let mut bench = Bench::new(vec![Line::Batches(vec![wants(&["count"])]), Line::says("fine")]);
    bench.begin().await;
    let call = bench.wanted().await;
    bench.order(Order::RunTool { call: ToolCallId::new(uuid::Uuid::max()) }).await;
    bench.order(Order::RunTool { call }).await;
    bench.order(Order::RunTool { call }).await;
    assert_eq!(bench.last().await, END);
    assert_eq!(bench.hands.count.load(Ordering::SeqCst), 1);
}
