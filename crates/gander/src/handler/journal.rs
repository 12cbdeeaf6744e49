//! What a durable handler did before it was called again, from the log.

use std::collections::VecDeque;

use gander_domain::{Entry, Event, QuestionId, Reply, RunId, ToolCall, ToolCallId, ToolResult};

/// The steps that a handler has to repeat before it goes on.
#[derive(Debug, Default)]
pub(super) struct Journal {
    steps: VecDeque<Step>,
}

/// One thing that a handler did and waited for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    Question { id: QuestionId, reply: Option<Reply> },
    Tool(Box<RecordedCall>),
}

/// A tool call, as far as it came.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RecordedCall {
    pub(super) call: ToolCall,
    /// The permission request, if there was one.
    pub(super) question: Option<QuestionId>,
    pub(super) reply: Option<Reply>,
    pub(super) started: bool,
    pub(super) result: Option<ToolResult>,
}

impl Journal {
    /// The steps of a run.
    pub(super) fn of_run<'a>(run: RunId, entries: impl IntoIterator<Item = &'a Entry>) -> Self {
        let mut journal = Self::default();
        entries.into_iter().filter(|entry| entry.run == Some(run)).for_each(|entry| journal.apply(&entry.event));
        journal
    }

    /// True while what is done now was done before.
    pub(super) fn is_replaying(&self) -> bool {
        !self.steps.is_empty()
    }

    /// The next step.
    pub(super) fn next_step(&mut self) -> Option<Step> {
        self.steps.pop_front()
    }

    fn apply(&mut self, event: &Event) {
        match event {
            Event::ToolCalled { call } => self.steps.push_back(Step::Tool(Box::new(RecordedCall {
                call: call.clone(),
                question: None,
                reply: None,
                started: false,
                result: None,
            }))),
            Event::QuestionAsked { question } => match question.call {
                Some(call) => self.update_call(call, |recorded| recorded.question = Some(question.id)),
                None => self.steps.push_back(Step::Question { id: question.id, reply: None }),
            },
            Event::QuestionAnswered { question, answer } => self.record_reply(*question, &answer.reply),
            Event::ToolStarted { call } => self.update_call(*call, |recorded| recorded.started = true),
            Event::ToolDone { call, result } => {
                self.update_call(*call, |recorded| recorded.result = Some(result.clone()));
            }
            Event::SessionCreated { .. }
            | Event::TitleSet { .. }
            | Event::SettingsChanged { .. }
            | Event::ArchiveSet { .. }
            | Event::HistoryReset { .. }
            | Event::Noticed { .. }
            | Event::PlanSet { .. }
            | Event::StateChanged { .. }
            | Event::ArtifactSaved { .. }
            | Event::Routed { .. }
            | Event::UsageAdded { .. }
            | Event::RunQueued { .. }
            | Event::RunStarted { .. }
            | Event::RunRecovered { .. }
            | Event::CancelRequested { .. }
            | Event::RunEnded { .. }
            | Event::MessageStarted { .. }
            | Event::PartDelta { .. }
            | Event::MessageDone { .. }
            | Event::ToolUpdated { .. }
            | Event::TextMarked { .. }
            | Event::OpaqueUpdate { .. }
            | Event::Unknown(_) => {} // no handler waits for these
        }
    }

    fn record_reply(&mut self, question: QuestionId, given: &Reply) {
        for step in &mut self.steps {
            match step {
                Step::Question { id, reply } if *id == question => *reply = Some(given.clone()),
                Step::Tool(call) if call.question == Some(question) => call.reply = Some(given.clone()),
                Step::Question { .. } | Step::Tool(_) => {}
            }
        }
    }

    fn update_call(&mut self, id: ToolCallId, change: impl FnOnce(&mut RecordedCall)) {
        let calls = self.steps.iter_mut().filter_map(|step| match step {
            Step::Tool(call) => Some(call),
            Step::Question { .. } => None,
        });
        if let Some(call) = calls.into_iter().find(|recorded| recorded.call.id == id) {
            change(call);
        }
    }
}
