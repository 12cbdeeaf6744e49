//! The laws as checks over a log. They know nothing of the machine that wrote it.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, clippy::large_enum_variant)]

use std::collections::{HashMap, HashSet};

use gander_domain::{
    DeltaKind, Entry, Event, MessageId, Order, OrderTiming, Outcome, Part, QuestionId, RunId, Seq, ToolCallId,
};
use gander_testkit::SessionScript;
use proptest::prelude::*;

type Check = Result<(), TestCaseError>;

pub fn one_active_run(log: &[Entry]) -> Check {
    let (mut active, mut started) = (None, HashSet::new());
    for entry in log {
        match &entry.event {
            Event::RunStarted { .. } => {
                prop_assert_eq!(active, None, "{} started beside another", entry.seq);
                prop_assert!(started.insert(entry.run), "{} started twice", entry.seq);
                active = entry.run;
            }
            Event::RunEnded { .. } if entry.run == active => active = None,
            _ => {}
        }
    }
    Ok(())
}

pub fn ends_once(log: &[Entry]) -> Check {
    let mut ended = HashSet::new();
    for entry in log {
        if let Some(run) = entry.run {
            prop_assert!(!ended.contains(&run), "{} after the end of its run", entry.seq);
            if matches!(entry.event, Event::RunEnded { .. }) {
                ended.insert(run);
            }
        }
    }
    for run in started(log) {
        prop_assert!(ended.contains(&run), "run {} never ended", run);
    }
    Ok(())
}

pub fn tools_end(log: &[Entry]) -> Check {
    let mut open: HashMap<ToolCallId, RunId> = HashMap::new();
    for entry in log {
        match &entry.event {
            Event::ToolCalled { call } => {
                prop_assert!(open.insert(call.id, entry.run.unwrap()).is_none(), "{} called twice", entry.seq);
            }
            Event::ToolStarted { call } => prop_assert!(open.contains_key(call), "{} started uncalled", entry.seq),
            Event::ToolDone { call, .. } => prop_assert!(open.remove(call).is_some(), "{} ended twice", entry.seq),
            Event::RunEnded { .. } => {
                let run = entry.run.unwrap();
                prop_assert!(open.values().all(|owner| *owner != run), "{} with an open tool call", entry.seq);
            }
            _ => {}
        }
    }
    Ok(())
}

pub fn one_answer(log: &[Entry]) -> Check {
    let mut open: HashMap<QuestionId, (Option<RunId>, Option<ToolCallId>)> = HashMap::new();
    let mut refused: HashSet<ToolCallId> = HashSet::new();
    for entry in log {
        match &entry.event {
            Event::QuestionAsked { question } => {
                prop_assert!(
                    open.insert(question.id, (entry.run, question.call)).is_none(),
                    "{} asked twice",
                    entry.seq
                );
                refused.extend(question.call);
            }
            Event::QuestionAnswered { question, answer } => {
                let call = open.remove(question);
                prop_assert!(call.is_some(), "{} answered twice or unasked", entry.seq);
                if let (Some((_, Some(call))), true) = (call, answer.reply.is_allowed()) {
                    refused.remove(&call);
                }
            }
            Event::ToolCalled { call } => drop(refused.remove(&call.id)),
            Event::ToolStarted { call } => prop_assert!(!refused.contains(call), "{} without a yes", entry.seq),
            Event::RunEnded { .. } => {
                prop_assert!(open.values().all(|(run, _)| *run != entry.run), "{} with an open question", entry.seq);
            }
            _ => {}
        }
    }
    Ok(())
}

pub fn cancel_wins(log: &[Entry]) -> Check {
    let mut cancelled = HashSet::new();
    for entry in log {
        match &entry.event {
            Event::CancelRequested { .. } => drop(cancelled.insert(entry.run)),
            Event::RunEnded { outcome } if cancelled.contains(&entry.run) => {
                prop_assert_eq!(outcome, &Outcome::Cancelled, "{}", entry.seq);
            }
            _ => {}
        }
    }
    Ok(())
}

pub fn death_fails(script: &mut SessionScript) -> Check {
    let Some(run) = script.session.view().run.clone() else { return Ok(()) };
    if run.cancelling || !script.session.has_backend() {
        return Ok(());
    }
    script.backend_dies(run.id);
    let failed = matches!(script.session.view().run_outcome(run.id), Some(Outcome::Failed { .. }));
    prop_assert!(failed, "{:?}", script.session.view().run_outcome(run.id));
    Ok(())
}

pub fn numbered(log: &[Entry]) -> Check {
    let numbers: Vec<Seq> = log.iter().map(|entry| entry.seq).collect();
    let expected: Vec<Seq> = (1..=log.len() as u64).map(Seq).collect();
    prop_assert_eq!(numbers, expected);
    Ok(())
}

pub fn whole_is_joined(log: &[Entry]) -> Check {
    let mut open: Option<(MessageId, Vec<Part>)> = None;
    let mut active = None;
    for entry in log {
        match &entry.event {
            Event::RunStarted { .. } => active = entry.run,
            Event::MessageStarted { message, .. } => {
                prop_assert!(open.is_none(), "{} opens a second message", entry.seq);
                open = Some((*message, Vec::new()));
            }
            Event::PartDelta { message, part, growth, text } => {
                let (id, parts) = open.as_mut().unwrap();
                prop_assert_eq!(&*id, message);
                grow(parts, *part as usize, *growth, text);
            }
            Event::MessageDone { message } => {
                if let Some((id, parts)) = open.take() {
                    prop_assert_eq!(id, message.id, "{} closes another message", entry.seq);
                    prop_assert_eq!(&parts[..], &message.parts[..parts.len()]);
                }
            }
            // The one exception of the law: agents say such things in mid-sentence.
            Event::OpaqueUpdate { .. } => {}
            // What belongs to another run, or to none, does not break a message.
            _ => prop_assert!(open.is_none() || entry.run != active, "{} while a message is open", entry.seq),
        }
    }
    Ok(())
}

fn grow(parts: &mut Vec<Part>, part: usize, growth: DeltaKind, piece: &str) {
    if parts.len() == part {
        parts.push(Part::empty_for_delta(growth));
    }
    match (&mut parts[part], growth) {
        (Part::Text { text }, DeltaKind::Text) | (Part::Thought { text }, DeltaKind::Thought) => text.push_str(piece),
        (other, _) => panic!("a delta of {growth:?} on {other:?}"),
    }
    assert_eq!(parts.len(), part + 1, "only the last part grows");
}

pub fn ordered_after_start(script: &SessionScript) -> Check {
    let mut ordered = HashSet::new();
    for (when, order, place) in &script.orders {
        let Order::RunTool { call } = order else { continue };
        prop_assert!(*when >= OrderTiming::AfterCommit);
        let start = script.log[..*place]
            .iter()
            .rposition(|entry| matches!(&entry.event, Event::ToolStarted { call: id } if id == call));
        prop_assert!(start.is_some(), "ordered before its start was written");
        let call = script.log[..*place].iter().rev().find_map(|entry| match &entry.event {
            Event::ToolCalled { call: described } if described.id == *call => Some(described),
            _ => None,
        });
        let again = !ordered.insert(start);
        prop_assert!(!again || call.unwrap().idempotent, "ordered twice");
        prop_assert!(
            call.unwrap().idempotent || *when == OrderTiming::AfterSync,
            "not synced before a tool that runs once"
        );
    }
    Ok(())
}

fn started(log: &[Entry]) -> Vec<RunId> {
    log.iter().filter(|entry| matches!(entry.event, Event::RunStarted { .. })).filter_map(|entry| entry.run).collect()
}
