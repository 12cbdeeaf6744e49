//! What must hold of every exported log, whatever happened to the processes that wrote it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::ensure;
use gander_domain::{Entry, Event, Message, Part, Role, RunId};

/// Demands the laws of one log whose runs are all over.
pub(crate) fn check(entries: &[Entry]) -> anyhow::Result<()> {
    numbered(entries)?;
    runs_end_once(entries)?;
    tools_run_once_and_end(entries)?;
    questions_are_answered_once(entries)?;
    texts_are_whole(entries)
}

/// Runs that began and did not end.
pub(crate) fn open_runs(entries: &[Entry]) -> BTreeSet<RunId> {
    let mut open = BTreeSet::new();
    for entry in entries {
        match (&entry.event, entry.run) {
            (Event::RunStarted { .. } | Event::RunQueued { .. }, Some(run)) => open.insert(run),
            (Event::RunEnded { .. }, Some(run)) => open.remove(&run),
            _ => false,
        };
    }
    open
}

fn numbered(entries: &[Entry]) -> anyhow::Result<()> {
    ensure!(!entries.is_empty(), "the log is empty");
    for (entry, expected) in entries.iter().zip(1..) {
        ensure!(entry.seq.0 == expected, "entry {expected} has the number {}", entry.seq);
    }
    Ok(())
}

fn runs_end_once(entries: &[Entry]) -> anyhow::Result<()> {
    let mut ends: BTreeMap<RunId, usize> = BTreeMap::new();
    for entry in entries {
        if let (Event::RunEnded { .. }, Some(run)) = (&entry.event, entry.run) {
            *ends.entry(run).or_default() += 1;
        }
    }
    ensure!(ends.values().all(|times| *times == 1), "a run ended more than once: {ends:?}");
    ensure!(open_runs(entries).is_empty(), "a run did not end: {:?}", open_runs(entries));
    Ok(())
}

fn tools_run_once_and_end(entries: &[Entry]) -> anyhow::Result<()> {
    let mut open = BTreeMap::new();
    let (mut started, mut done) = (BTreeSet::new(), BTreeSet::new());
    for entry in entries {
        match &entry.event {
            Event::ToolCalled { call } => {
                open.insert(call.id, entry.run);
            }
            Event::ToolStarted { call } => ensure!(started.insert(*call), "a tool call started twice: {call}"),
            Event::ToolDone { call, .. } => {
                ensure!(open.remove(call).is_some() && done.insert(*call), "a tool call ended twice: {call}");
            }
            Event::RunEnded { .. } => {
                ensure!(!open.values().any(|run| *run == entry.run), "a tool call outlived its run: {open:?}");
            }
            _ => {}
        }
    }
    Ok(())
}

fn questions_are_answered_once(entries: &[Entry]) -> anyhow::Result<()> {
    let mut open = BTreeSet::new();
    for entry in entries {
        match &entry.event {
            Event::QuestionAsked { question } => ensure!(open.insert(question.id), "asked twice: {}", question.id),
            Event::QuestionAnswered { question, .. } => ensure!(open.remove(question), "answered twice: {question}"),
            _ => {}
        }
    }
    ensure!(open.is_empty(), "never answered: {open:?}");
    Ok(())
}

/// Every text of the model is its deltas from the first on, none missing, doubled or moved, and equals their sum.
fn texts_are_whole(entries: &[Entry]) -> anyhow::Result<()> {
    let mut grown: BTreeMap<String, String> = BTreeMap::new();
    for entry in entries {
        match &entry.event {
            Event::PartDelta { message, text, .. } => grown.entry(message.to_string()).or_default().push_str(text),
            Event::MessageDone { message } if message.role == Role::Agent => {
                let whole = text_of(message);
                ensure!(whole == expected(&whole), "deltas are missing, doubled or moved: {whole}");
                if let Some(deltas) = grown.get(&message.id.to_string()) {
                    ensure!(*deltas == whole, "deltas {deltas} became the message {whole}");
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn text_of(message: &Message) -> String {
    let text = |part: &Part| match part {
        Part::Text { text } => Some(text.clone()),
        _ => None,
    };
    message.parts.iter().filter_map(text).collect()
}

/// What as many numbered deltas of the same word look like.
fn expected(text: &str) -> String {
    let word = text.strip_prefix('~').and_then(|rest| rest.split(':').next()).unwrap_or_default();
    let one = |index: usize| format!("~{word}:{index} ");
    if word.parse::<u64>().is_err() { text.to_owned() } else { (0..text.matches('~').count()).map(one).collect() }
}
