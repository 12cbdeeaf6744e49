//! How open things are closed: messages, tool calls, questions, runs.

use super::{MachineContext, Session};
use crate::active_run::{OpenTool, ToolStage};
use crate::{Answer, Event, Outcome, Part, ProviderPayload, QuestionId, Reply, RunId, ToolCallId, ToolEnd, ToolResult};

impl Session {
    /// A back-end is gone without having said so: its run cannot go on.
    pub fn handle_backend_exit(&mut self, context: &mut MachineContext<'_>, run: RunId, message: &str) {
        if self.view.run.as_ref().is_some_and(|active| active.id == run) && self.has_backend {
            self.end_run(context, Outcome::failed("backend", message));
        }
    }

    /// Closes everything that is open, ends the run and starts the next one that waits.
    pub(super) fn end_run(&mut self, context: &mut MachineContext<'_>, outcome: Outcome) {
        let Some(run) = &self.view.run else { return };
        let id = run.id;
        let outcome = if run.cancelling && !cfg!(bug = "cancel_forgotten") { Outcome::Cancelled } else { outcome };
        let whole = matches!(outcome, Outcome::Completed { .. });
        (self.has_backend, self.answer_may_be_missed) = (false, false);
        self.close_message(context, !whole);
        let cancelled = outcome == Outcome::Cancelled;
        self.answer_open_questions(context, if cancelled { &Reply::Cancelled } else { &Reply::Interrupted });
        self.close_open_tools(context, cancelled);
        self.append(context.at, Some(id), Event::RunEnded { outcome });
        self.start_next_queued_run(context);
    }

    /// The machine has grown the message itself, so the whole equals its deltas.
    pub(super) fn close_message(&mut self, context: &mut MachineContext<'_>, interrupted: bool) {
        self.finish_message(context, Vec::new(), None, interrupted);
    }

    pub(super) fn finish_message(
        &mut self,
        context: &mut MachineContext<'_>,
        tail: Vec<Part>,
        native: Option<ProviderPayload>,
        interrupted: bool,
    ) {
        let Some(run) = &mut self.view.run else { return };
        let (id, Some(mut message)) = (run.id, run.open.clone()) else { return };
        message.parts.extend(tail);
        message.native = native;
        message.interrupted = interrupted;
        self.append(context.at, Some(id), Event::MessageDone { message });
    }

    pub(super) fn answer_open_questions(&mut self, context: &mut MachineContext<'_>, reply: &Reply) {
        let Some(run) = &self.view.run else { return };
        let run_id = run.id;
        let open: Vec<QuestionId> = run.questions.iter().map(|question| question.id).collect();
        for question in open {
            let answer = Answer { by: None, door: None, reply: reply.clone() };
            self.append(context.at, Some(run_id), Event::QuestionAnswered { question, answer });
        }
    }

    fn close_open_tools(&mut self, context: &mut MachineContext<'_>, cancelled: bool) {
        if cfg!(bug = "orphan_tools") {
            return;
        }
        let Some(run) = &self.view.run else { return };
        let run_id = run.id;
        let ends: Vec<(ToolCallId, ToolResult)> =
            run.tools.iter().map(|tool| (tool.call.id, closed_orphan_result(tool, cancelled))).collect();
        for (call, result) in ends {
            self.append(context.at, Some(run_id), Event::ToolDone { call, result });
        }
    }

    fn start_next_queued_run(&mut self, context: &mut MachineContext<'_>) {
        if let Some(next) = self.view.queue.first().cloned() {
            self.start_run(context, next.id, next.origin, next.parts, next.meta);
        }
    }
}

fn closed_orphan_result(tool: &OpenTool, cancelled: bool) -> ToolResult {
    match (tool.stage, cancelled) {
        (ToolStage::Started, false) => closed_unknown_outcome_result(),
        (ToolStage::Started, true) => ToolResult::text(ToolEnd::Cancelled, "cancelled while it ran"),
        (ToolStage::Allowed | ToolStage::Asked | ToolStage::Refused, _) => {
            ToolResult::text(ToolEnd::Cancelled, "cancelled before it ran")
        }
    }
}

/// What the model is told of a tool whose end nobody saw.
pub(super) fn closed_unknown_outcome_result() -> ToolResult {
    ToolResult::text(
        ToolEnd::Interrupted,
        "interrupted: it may or may not have taken effect, check before doing it again",
    )
}
