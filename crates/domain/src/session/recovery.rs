//! Picking up a run whose process died.

use super::closing::closed_unknown_outcome_result;
use super::{MachineContext, OrderTiming, Session};
use crate::active_run::{ActiveRun, ToolStage};
use crate::{Answer, Event, Order, Outcome, QuestionId, QuestionOrigin, Reply, RunId, ToolCallId};

/// How open runs are picked up when the server starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// Pick them up at all? If not, they end as failed.
    pub resume: bool,
    /// Not if the last entry is older than this many microseconds.
    pub max_age: i64,
    /// Not if they were picked up this often already.
    pub max_times: u32,
}

impl Default for Recovery {
    fn default() -> Self {
        Self { resume: true, max_age: 15 * 60 * 1_000_000, max_times: 3 }
    }
}

impl Session {
    /// Settles the run that was open when the last process died. A run that awaits people goes on waiting.
    pub fn recover(&mut self, context: &mut MachineContext<'_>, recovery: &Recovery) {
        self.has_backend = false;
        let Some(run) = &self.view.run else {
            return self.start_stranded(context);
        };
        let (id, times, age) = (run.id, run.recovered, context.at.as_micros() - run.last_at.as_micros());
        if run.cancelling {
            return self.end_run(context, Outcome::Cancelled);
        }
        self.close_message(context, true);
        self.close_live_questions(context, id);
        if self.view.run.as_ref().is_some_and(ActiveRun::is_awaiting) {
            return;
        }
        if !recovery.resume || age > recovery.max_age || times >= recovery.max_times {
            return self
                .end_run(context, Outcome::failed("interrupted", "the server stopped while this run was under way"));
        }
        self.close_unknown_tools(context, id);
        self.append(context.at, Some(id), Event::RunRecovered { attempt: times + 1 });
        self.has_backend = true;
        self.push_order(OrderTiming::AfterCommit, Order::Resume { run: id });
    }

    /// A prompt that waited behind a run whose end was written, but whose own start was not.
    fn start_stranded(&mut self, context: &mut MachineContext<'_>) {
        if let Some(next) = self.view.queue.first().cloned() {
            self.start_run(context, next.id, next.origin, next.parts, next.meta);
        }
    }

    /// The child that asked died with the server.
    fn close_live_questions(&mut self, context: &mut MachineContext<'_>, run: RunId) {
        let Some(active) = &self.view.run else { return };
        let held: Vec<QuestionId> = active
            .questions
            .iter()
            .filter(|question| question.origin != QuestionOrigin::Parked)
            .map(|question| question.id)
            .collect();
        for question in held {
            let answer = Answer { by: None, door: None, reply: Reply::Interrupted };
            self.append(context.at, Some(run), Event::QuestionAnswered { question, answer });
        }
    }

    /// Of a tool that must not run twice the model is told that nobody knows. Any other is run again by the
    /// back-end that resumes.
    fn close_unknown_tools(&mut self, context: &mut MachineContext<'_>, run: RunId) {
        let Some(active) = &self.view.run else { return };
        let unknown: Vec<ToolCallId> = active
            .tools
            .iter()
            .filter(|tool| tool.stage == ToolStage::Started && !tool.call.idempotent)
            .map(|tool| tool.call.id)
            .collect();
        for call in unknown {
            self.append(context.at, Some(run), Event::ToolDone { call, result: closed_unknown_outcome_result() });
        }
    }
}
