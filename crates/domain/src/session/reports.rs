//! What a back-end tells, checked against the laws: whatever it says, the log stays lawful.

use serde_json::Value;

use super::{Effect, MachineContext, OrderTiming, Session};
use crate::active_run::ToolStage;
use crate::{
    Answer, Delta, DeltaKind, Event, MAX_STATE_BYTES, Message, MessageId, Notice, Order, Part, Question, QuestionId,
    Reply, Report, ResetReason, Role, RunId, Severity, State, TextMark, ToolCall, ToolCallId, ToolContent, ToolEnd,
    ToolGate, ToolResult, state,
};

impl Session {
    /// Takes in what a back-end says about its run. A report of another run is dropped.
    pub fn handle_report(&mut self, context: &mut MachineContext<'_>, run: RunId, report: Report) {
        let Some(active) = self.view.run.as_ref().filter(|active| active.id == run) else { return };
        let cancelling = active.cancelling;
        if !self.has_backend || (cancelling && !report_closes_something(&report)) {
            return;
        }
        match report {
            Report::MessageStarted { message } => self.open_message(context, run, message),
            Report::Deltas(deltas) => self.append_deltas(context, run, deltas),
            Report::MessageDone { tail, native, interrupted } => {
                if !tail.is_empty() && !cancelling {
                    self.ensure_open_message(context, run);
                }
                self.finish_message(context, tail, native, interrupted);
            }
            Report::ToolWanted { call, gate } => self.handle_tool_wanted(context, run, call, gate),
            Report::ToolReady { call } => self.start_tool(context, run, call),
            Report::ToolUpdated { call, content } => self.handle_tool_updated(context, run, call, content),
            Report::ToolDone { call, result } => self.handle_tool_done(context, run, call, result),
            Report::Asked(question) => self.ask_question(context, run, question),
            Report::Withdrawn(question) => self.withdraw_question(context, run, question),
            Report::PlanSet(plan) => self.append_durable(context, run, Event::PlanSet { plan }),
            Report::StateChanged { delta, call } => self.handle_state_changed(context, run, delta, call),
            Report::ArtifactSaved { name, version, mime, content, call } => {
                self.append_durable(context, run, Event::ArtifactSaved { name, version, mime, content, call });
            }
            Report::TextMarked(mark) => self.handle_text_marked(context, run, mark),
            Report::Routed(route) if self.view.settings.routing.is_off() => drop(route),
            Report::Routed(route) => self.append_durable(context, run, Event::Routed { route }),
            Report::UsageAdded(usage) => {
                self.append_durable(context, run, Event::UsageAdded { usage: usage.clamped() })
            }
            Report::Titled(title) if self.view.title.is_none() => {
                self.append_durable(context, run, Event::TitleSet { title })
            }
            Report::Titled(_) => {}
            Report::Noticed(notice) => self.append_durable(context, run, Event::Noticed { notice }),
            // The open message goes on behind it.
            Report::OpaqueUpdate { protocol, body } => {
                self.append(context.at, Some(run), Event::OpaqueUpdate { protocol, body })
            }
            Report::WithMeta { report, meta } => self.handle_report_with_meta(context, run, *report, meta),
            Report::Compacted { keep_to, replacement } => {
                let replacement = self.with_unconfirmed_steering(replacement);
                let reason = ResetReason::Compacted;
                self.append_durable(context, run, Event::HistoryReset { keep_to, replacement, reason });
            }
            Report::Parked => self.handle_parked(context, run),
            Report::Ended(outcome) => self.end_run(context, outcome),
        }
    }

    /// The meta goes to the entry that the report is about: neither to one that only closes a message before it, nor to
    /// what follows from a wanted tool.
    fn handle_report_with_meta(
        &mut self,
        context: &mut MachineContext<'_>,
        run: RunId,
        report: Report,
        meta: Box<Value>,
    ) {
        let before = self.effects.len();
        self.handle_report(context, run, report);
        let written = self.effects.iter_mut().skip(before).rev().filter_map(|effect| match effect {
            Effect::Append(entry) => Some(entry),
            Effect::Order { .. } => None,
        });
        let follows = |event: &Event| matches!(event, Event::ToolStarted { .. } | Event::QuestionAsked { .. });
        if let Some(entry) = written.into_iter().find(|entry| !follows(&entry.event)) {
            entry.meta = Some(meta);
        }
    }

    /// What is known already is not said again.
    fn handle_text_marked(&mut self, context: &mut MachineContext<'_>, run: RunId, mark: TextMark) {
        if !self.view.provenance.includes_mark(&mark) {
            self.append_durable(context, run, Event::TextMarked { mark });
        }
    }

    /// Whoever summarised may not have heard what a person said meanwhile: it is not lost.
    fn with_unconfirmed_steering(&self, mut replacement: Vec<Message>) -> Vec<Message> {
        for spoken in &self.unconfirmed_steering {
            if replacement.iter().all(|message| message.id != spoken.id) {
                replacement.push(spoken.clone());
            }
        }
        replacement
    }

    /// A back-end that keeps too much is told so where people see it.
    fn handle_state_changed(
        &mut self,
        context: &mut MachineContext<'_>,
        run: RunId,
        delta: State,
        call: Option<ToolCallId>,
    ) {
        let delta = state::state_without_temporary(delta);
        let event = match self.state_size_over_limit(&delta) {
            None => Event::StateChanged { delta, call },
            Some(size) => {
                let title = format!("Values were not kept, they would take more than {MAX_STATE_BYTES} bytes: {size}");
                Event::Noticed { notice: Notice { severity: Severity::Warning, title, detail: None } }
            }
        };
        self.append_durable(context, run, event);
    }

    /// A durable entry first closes the open message.
    fn append_durable(&mut self, context: &mut MachineContext<'_>, run: RunId, event: Event) {
        self.close_message(context, false);
        self.append(context.at, Some(run), event);
    }

    fn open_message(&mut self, context: &mut MachineContext<'_>, run: RunId, message: MessageId) {
        self.append_durable(context, run, Event::MessageStarted { message, role: Role::Agent });
    }

    fn ensure_open_message(&mut self, context: &mut MachineContext<'_>, run: RunId) {
        if self.growing_message().is_none() {
            let message = MessageId::make(context.ids);
            self.open_message(context, run, message);
        }
    }

    fn growing_message(&self) -> Option<&Message> {
        self.view.run.as_ref()?.open.as_ref()
    }

    fn append_deltas(&mut self, context: &mut MachineContext<'_>, run: RunId, deltas: Vec<Delta>) {
        self.ensure_open_message(context, run);
        let pieces = |Delta { growth, text }| Delta::split_text(text).into_iter().map(move |text| (growth, text));
        for (growth, text) in deltas.into_iter().filter(|delta| !delta.text.is_empty()).flat_map(pieces) {
            let Some(open) = self.growing_message() else { return };
            let (message, part) = (open.id, reported_delta_part_index(&open.parts, growth));
            self.append(context.at, Some(run), Event::PartDelta { message, part, growth, text });
        }
    }

    fn handle_tool_wanted(&mut self, context: &mut MachineContext<'_>, run: RunId, call: ToolCall, gate: ToolGate) {
        let id = call.id;
        if self.tool_stage(id).is_some() {
            return;
        }
        self.append_durable(context, run, Event::ToolCalled { call });
        match gate {
            ToolGate::Open => self.start_tool(context, run, id),
            ToolGate::Ask(question) => self.ask_question(context, run, Question { call: Some(id), ..question }),
            ToolGate::External => self.append(context.at, Some(run), Event::ToolStarted { call: id }),
            ToolGate::Denied(result) => self.append(context.at, Some(run), Event::ToolDone { call: id, result }),
        }
    }

    /// The back-end runs the tool when the order comes, and that is after the commit.
    fn start_tool(&mut self, context: &mut MachineContext<'_>, run: RunId, call: ToolCallId) {
        let Some(tool) = self.view.run.as_ref().and_then(|active| active.find_tool_call(call)) else { return };
        if tool.stage != ToolStage::Allowed && !cfg!(bug = "start_unasked") {
            return;
        }
        let when = if tool.call.idempotent { OrderTiming::AfterCommit } else { OrderTiming::AfterSync };
        self.append_durable(context, run, Event::ToolStarted { call });
        self.push_order(when, Order::RunTool { call });
    }

    fn handle_tool_updated(
        &mut self,
        context: &mut MachineContext<'_>,
        run: RunId,
        call: ToolCallId,
        content: Vec<ToolContent>,
    ) {
        if self.tool_stage(call) == Some(ToolStage::Started) {
            self.append_durable(context, run, Event::ToolUpdated { call, content });
        }
    }

    /// A call that never started cannot have completed.
    fn handle_tool_done(
        &mut self,
        context: &mut MachineContext<'_>,
        run: RunId,
        call: ToolCallId,
        mut result: ToolResult,
    ) {
        let Some(stage) = self.tool_stage(call) else { return };
        if stage != ToolStage::Started && result.end == ToolEnd::Completed {
            result = ToolResult::text(ToolEnd::Failed, "it never started");
        }
        self.withdraw_questions_about(context, run, call);
        self.append_durable(context, run, Event::ToolDone { call, result });
    }

    /// A call that is over needs no answer any more.
    fn withdraw_questions_about(&mut self, context: &mut MachineContext<'_>, run: RunId, call: ToolCallId) {
        let Some(active) = &self.view.run else { return };
        let open: Vec<QuestionId> = active
            .questions
            .iter()
            .filter(|question| question.call == Some(call))
            .map(|question| question.id)
            .collect();
        open.into_iter().for_each(|question| self.withdraw_question(context, run, question));
    }

    fn ask_question(&mut self, context: &mut MachineContext<'_>, run: RunId, question: Question) {
        let Some(active) = &self.view.run else { return };
        let about_nothing = question.call.is_some_and(|call| active.find_tool_call(call).is_none());
        if active.find_question(question.id).is_some() || about_nothing {
            return;
        }
        self.append_durable(context, run, Event::QuestionAsked { question });
    }

    fn withdraw_question(&mut self, context: &mut MachineContext<'_>, run: RunId, question: QuestionId) {
        if self.view.run.as_ref().is_some_and(|active| active.find_question(question).is_some()) {
            let answer = Answer { by: None, door: None, reply: Reply::Interrupted };
            self.append_durable(context, run, Event::QuestionAnswered { question, answer });
        }
    }

    /// Parking with nothing to wait for would leave the run open for ever. An answer that crossed the report
    /// on its way was heard by nobody: another back-end goes on with it.
    fn handle_parked(&mut self, context: &mut MachineContext<'_>, run: RunId) {
        self.close_message(context, true);
        let missed = std::mem::take(&mut self.answer_may_be_missed);
        if missed && self.view.run.as_ref().is_some_and(|active| !active.cancelling) {
            return self.push_order(OrderTiming::AfterCommit, Order::Resume { run });
        }
        match self.view.run.as_ref().filter(|active| active.is_awaiting()) {
            Some(_) => self.has_backend = false,
            None => self.end_run(context, crate::Outcome::failed("backend", "the agent stopped without an end")),
        }
    }

    fn tool_stage(&self, call: ToolCallId) -> Option<ToolStage> {
        self.view.run.as_ref()?.find_tool_call(call).map(|tool| tool.stage)
    }
}

/// After a cancel only what closes something is heard.
fn report_closes_something(report: &Report) -> bool {
    match report {
        Report::MessageDone { .. }
        | Report::ToolDone { .. }
        | Report::UsageAdded(_)
        | Report::Parked
        | Report::Ended(_) => true,
        Report::WithMeta { report, .. } => report_closes_something(report),
        Report::MessageStarted { .. }
        | Report::Deltas(_)
        | Report::ToolWanted { .. }
        | Report::ToolReady { .. }
        | Report::ToolUpdated { .. }
        | Report::Asked(_)
        | Report::Withdrawn(_)
        | Report::PlanSet(_)
        | Report::TextMarked(_)
        | Report::StateChanged { .. }
        | Report::ArtifactSaved { .. }
        | Report::Titled(_)
        | Report::Noticed(_)
        | Report::OpaqueUpdate { .. }
        | Report::Routed(_)
        | Report::Compacted { .. } => false,
    }
}

/// Deltas of another kind than the last part open the next one.
fn reported_delta_part_index(parts: &[Part], growth: DeltaKind) -> u32 {
    let last = match (parts.last(), growth) {
        (Some(Part::Text { .. }), DeltaKind::Text) | (Some(Part::Thought { .. }), DeltaKind::Thought) => {
            parts.len() - 1
        }
        (_, DeltaKind::Text | DeltaKind::Thought) => parts.len(),
    };
    last as u32
}
