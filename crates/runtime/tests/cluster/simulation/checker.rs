//! What must be true in the end, whatever went wrong.

use std::collections::{BTreeMap, BTreeSet};

use gander_domain::{Entry, Event, QuestionId, RunId, SessionId, ToolCallId};
use gander_store::{DeltaForm, read_all};
use gander_testkit::build;

use super::{World, is_legal_end};

/// Promises that were broken.
pub async fn check(world: &World, sessions: u128) -> Vec<String> {
    let mut broken = std::mem::take(&mut world.facts().violations);
    let mut all = SessionFacts::default();
    for number in 1..=sessions {
        let session = build::session(number);
        let log = read_all(&world.store, session, DeltaForm::Exact).await.unwrap();
        check_log(session, &log, &mut broken);
        check_transcripts(world, session, &log, &mut broken);
        all.collect(&log);
    }
    check_outside(world, &all, &mut broken);
    broken
}

/// What the logs of all sessions say.
#[derive(Default)]
struct SessionFacts {
    runs: BTreeSet<RunId>,
    started_tools: BTreeSet<ToolCallId>,
    answers: BTreeMap<QuestionId, u32>,
}

impl SessionFacts {
    fn collect(&mut self, log: &[Entry]) {
        for entry in log {
            match &entry.event {
                Event::RunStarted { .. } | Event::RunQueued { .. } => self.runs.extend(entry.run),
                Event::ToolStarted { call } => drop(self.started_tools.insert(*call)),
                Event::QuestionAnswered { question, .. } => *self.answers.entry(*question).or_default() += 1,
                _ => {}
            }
        }
    }
}

/// P2 and P9: no hole, one run at a time, each ends once and with everything of it closed.
fn check_log(session: SessionId, log: &[Entry], broken: &mut Vec<String>) {
    let mut active: Option<RunId> = None;
    let (mut ended, mut open_tools, mut open_questions) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for (index, entry) in log.iter().enumerate() {
        if entry.seq.0 != index as u64 + 1 {
            broken.push(format!("{session}: entry {} at place {}", entry.seq, index + 1));
        }
        match &entry.event {
            Event::RunStarted { .. } => {
                if active.is_some() {
                    broken.push(format!("{session}: two runs at once, {:?}", entry.run));
                }
                active = entry.run;
            }
            Event::ToolCalled { call } => drop(open_tools.insert((entry.run, call.id))),
            Event::ToolDone { call, .. } => open_tools.retain(|(_, open)| open != call),
            Event::QuestionAsked { question } => drop(open_questions.insert((entry.run, question.id))),
            Event::QuestionAnswered { question, .. } => open_questions.retain(|(_, open)| open != question),
            Event::RunEnded { outcome } => {
                let once = entry.run.is_some_and(|run| ended.insert(run));
                // A run that waited in the queue may be cancelled while another one has open tools and questions.
                let is_open = open_tools.iter().any(|(run, _)| *run == entry.run)
                    || open_questions.iter().any(|(run, _)| *run == entry.run);
                if !once || is_open || !is_legal_end(outcome) {
                    broken.push(format!("{session}: bad end of {:?}: {outcome:?}", entry.run));
                }
                if active == entry.run {
                    active = None;
                }
            }
            _ => {}
        }
    }
}

/// P2 and P3: what a reader saw is the log, through however many nodes.
fn check_transcripts(world: &World, session: SessionId, log: &[Entry], broken: &mut Vec<String>) {
    for (of, seen) in &world.facts().transcripts {
        if *of == session && !log.starts_with(seen) {
            let place = seen.iter().zip(log).position(|(seen, stored)| seen != stored);
            broken.push(format!("{session}: a reader saw what is not stored, at {place:?} of {}", log.len()));
        }
    }
}

fn check_outside(world: &World, all: &SessionFacts, broken: &mut Vec<String>) {
    let facts = world.facts();
    for (session, run) in &facts.accepted {
        if !all.runs.contains(run) {
            broken.push(format!("{session}: accepted and lost: {run}"));
        }
    }
    let mut ran = BTreeSet::new();
    for (call, _) in &facts.ledger {
        if !ran.insert(*call) {
            broken.push(format!("tool ran twice: {call}"));
        }
        if !all.started_tools.contains(call) {
            broken.push(format!("tool ran without its start in the log: {call}"));
        }
    }
    for (question, count) in &facts.answered {
        if *count > 1 || all.answers.get(question) != Some(&1) {
            broken.push(format!("question {question}: {count} accepted, in the log: {:?}", all.answers.get(question)));
        }
    }
    for ((session, epoch), nodes) in &facts.writers {
        if nodes.len() > 1 {
            broken.push(format!("{session}: epoch {epoch} has writers {nodes:?}"));
        }
    }
    if !facts.children.is_empty() {
        broken.push(format!("programs still alive: {:?}", facts.children));
    }
}
