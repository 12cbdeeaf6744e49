//! A session whose run asks whether a tool may run: one of the vectors of `wire`.

use std::sync::OnceLock;

use gander_domain::{Entry, Event, IdGenerator, Question, RunId, SessionId, SessionView};
use uuid::Uuid;

/// Ids that count, so that each input does the same each time.
#[derive(Default)]
pub(crate) struct CountingIds(pub(crate) u128);

impl IdGenerator for CountingIds {
    fn next_id(&mut self) -> Uuid {
        self.0 += 1;
        Uuid::from_u128(self.0)
    }
}

pub(crate) fn session_id() -> SessionId {
    SessionId::new(Uuid::from_u128(1))
}

pub(crate) fn run_id() -> RunId {
    RunId::new(Uuid::from_u128(101))
}

/// The session's log.
pub(crate) fn session_log() -> &'static [Entry] {
    static LOG: OnceLock<Vec<Entry>> = OnceLock::new();
    LOG.get_or_init(|| {
        let lines = include_str!("../../crates/wire/tests/vectors/permission_open/log.jsonl").lines();
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    })
}

/// The session after its first entry.
pub(crate) fn session_view() -> SessionView {
    static VIEW: OnceLock<SessionView> = OnceLock::new();
    VIEW.get_or_init(|| SessionView::replay(&session_log()[..1]).unwrap()).clone()
}

/// The question that is open in the end.
pub(crate) fn permission_question() -> &'static Question {
    let question = session_log().iter().find_map(|entry| match &entry.event {
        Event::QuestionAsked { question } => Some(question),
        _ => None,
    });
    question.unwrap()
}
