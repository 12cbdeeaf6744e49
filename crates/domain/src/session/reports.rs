//! What a back-end tells, checked against the laws: whatever it says, the log stays lawful.

use super::{Now, Session, When};
use crate::view::ToolStage;
use crate::{
    Answer, Delta, Event, Gate, Growth, Message, MessageId, Notice, Order, Part, Question, QuestionId, Reply, Report,
    ResetReason, Role, RunId, STATE_LIMIT, Severity, State, ToolCall, ToolCallId, ToolContent, ToolEnd, ToolResult,
    state,
};

impl Session {
    /// Takes in what a back-end says about its run. A report of another run is dropped.
    pub fn report(&mut self, now: &mut Now<'_>, run: RunId, report: Report) {
        let Some(active) = self.view.run.as_ref().filter(|active| active.id == run) else { return };
        let cancelling = active.cancelling;
        if !self.attached || (cancelling && !closes(&report)) {
            return;
        }
        match report {
            Report::MessageStarted { message } => self.open_message(now, run, message),
            Report::Deltas(deltas) => self.grow(now, run, deltas),
            Report::MessageDone { tail, native, interrupted } => {
                if !tail.is_empty() && !cancelling {
                    self.ensure_open(now, run);
                }
                self.finish_message(now, tail, native, interrupted);
            }
            Report::ToolWanted { call, gate } => self.tool_wanted(now, run, call, gate),
            Report::ToolReady { call } => self.start_tool(now, run, call),
            Report::ToolUpdated { call, content } => self.tool_updated(now, run, call, content),
            Report::ToolDone { call, result } => self.tool_done(now, run, call, result),
            Report::Asked(question) => self.ask(now, run, question),
            Report::Withdrawn(question) => self.withdraw(now, run, question),
            Report::PlanSet(plan) => self.fact(now, run, Event::PlanSet { plan }),
            Report::StateChanged { delta, call } => self.state_changed(now, run, delta, call),
            Report::ArtifactSaved { name, version, mime, content, call } => {
                self.fact(now, run, Event::ArtifactSaved { name, version, mime, content, call });
            }
            Report::Routed(route) if self.view.settings.routing.is_off() => drop(route),
            Report::Routed(route) => self.fact(now, run, Event::Routed { route }),
            Report::UsageAdded(usage) => self.fact(now, run, Event::UsageAdded { usage }),
            Report::Titled(title) if self.view.title.is_none() => self.fact(now, run, Event::TitleSet { title }),
            Report::Titled(_) => {}
            Report::Noticed(notice) => self.fact(now, run, Event::Noticed { notice }),
            Report::Compacted { keep_to, replacement } => {
                let replacement = self.with_spoken(replacement);
                let reason = ResetReason::Compacted;
                self.fact(now, run, Event::HistoryReset { keep_to, replacement, reason });
            }
            Report::Parked => self.park(now, run),
            Report::Ended(outcome) => self.end_run(now, outcome),
        }
    }

    /// Whoever summarised may not have heard what a person said meanwhile: it is not lost.
    fn with_spoken(&self, mut replacement: Vec<Message>) -> Vec<Message> {
        for spoken in &self.spoken {
            if replacement.iter().all(|message| message.id != spoken.id) {
                replacement.push(spoken.clone());
            }
        }
        replacement
    }

    /// A back-end that keeps too much is told so where people see it.
    fn state_changed(&mut self, now: &mut Now<'_>, run: RunId, delta: State, call: Option<ToolCallId>) {
        let delta = state::lasting(delta);
        let event = match self.overfull(&delta) {
            None => Event::StateChanged { delta, call },
            Some(size) => {
                let title = format!("Values were not kept, they would take more than {STATE_LIMIT} bytes: {size}");
                Event::Noticed { notice: Notice { severity: Severity::Warning, title, detail: None } }
            }
        };
        self.fact(now, run, event);
    }

    /// A durable entry first closes the open message.
    fn fact(&mut self, now: &mut Now<'_>, run: RunId, event: Event) {
        self.close_message(now, false);
        self.append(now.at, Some(run), event);
    }

    fn open_message(&mut self, now: &mut Now<'_>, run: RunId, message: MessageId) {
        self.fact(now, run, Event::MessageStarted { message, role: Role::Agent });
    }

    fn ensure_open(&mut self, now: &mut Now<'_>, run: RunId) {
        if self.open().is_none() {
            let message = MessageId::make(now.ids);
            self.open_message(now, run, message);
        }
    }

    fn open(&self) -> Option<&Message> {
        self.view.run.as_ref()?.open.as_ref()
    }

    fn grow(&mut self, now: &mut Now<'_>, run: RunId, deltas: Vec<Delta>) {
        self.ensure_open(now, run);
        let pieces = |Delta { growth, text }| Delta::pieces(text).into_iter().map(move |text| (growth, text));
        for (growth, text) in deltas.into_iter().filter(|delta| !delta.text.is_empty()).flat_map(pieces) {
            let Some(open) = self.open() else { return };
            let (message, part) = (open.id, growing_part(&open.parts, growth));
            self.append(now.at, Some(run), Event::PartDelta { message, part, growth, text });
        }
    }

    fn tool_wanted(&mut self, now: &mut Now<'_>, run: RunId, call: ToolCall, gate: Gate) {
        let id = call.id;
        if self.tool_stage(id).is_some() {
            return;
        }
        self.fact(now, run, Event::ToolCalled { call });
        match gate {
            Gate::Open => self.start_tool(now, run, id),
            Gate::Ask(question) => self.ask(now, run, Question { call: Some(id), ..question }),
            Gate::Foreign => self.append(now.at, Some(run), Event::ToolStarted { call: id }),
            Gate::Shut(result) => self.append(now.at, Some(run), Event::ToolDone { call: id, result }),
        }
    }

    /// The back-end runs the tool when the order comes, and that is after the commit.
    fn start_tool(&mut self, now: &mut Now<'_>, run: RunId, call: ToolCallId) {
        let Some(tool) = self.view.run.as_ref().and_then(|active| active.tool(call)) else { return };
        if tool.stage != ToolStage::Allowed && !cfg!(bug = "start_unasked") {
            return;
        }
        let when = if tool.call.idempotent { When::Committed } else { When::Synced };
        self.fact(now, run, Event::ToolStarted { call });
        self.order(when, Order::RunTool { call });
    }

    fn tool_updated(&mut self, now: &mut Now<'_>, run: RunId, call: ToolCallId, content: Vec<ToolContent>) {
        if self.tool_stage(call) == Some(ToolStage::Started) {
            self.fact(now, run, Event::ToolUpdated { call, content });
        }
    }

    /// A call that never started cannot have completed.
    fn tool_done(&mut self, now: &mut Now<'_>, run: RunId, call: ToolCallId, mut result: ToolResult) {
        let Some(stage) = self.tool_stage(call) else { return };
        if stage != ToolStage::Started && result.end == ToolEnd::Completed {
            result = ToolResult::text(ToolEnd::Failed, "it never started");
        }
        self.answer_about(now, run, call);
        self.fact(now, run, Event::ToolDone { call, result });
    }

    /// A call that is over needs no answer any more.
    fn answer_about(&mut self, now: &mut Now<'_>, run: RunId, call: ToolCallId) {
        let Some(active) = &self.view.run else { return };
        let open: Vec<QuestionId> = active
            .questions
            .iter()
            .filter(|question| question.call == Some(call))
            .map(|question| question.id)
            .collect();
        open.into_iter().for_each(|question| self.withdraw(now, run, question));
    }

    fn ask(&mut self, now: &mut Now<'_>, run: RunId, question: Question) {
        let Some(active) = &self.view.run else { return };
        let about_nothing = question.call.is_some_and(|call| active.tool(call).is_none());
        if active.question(question.id).is_some() || about_nothing {
            return;
        }
        self.fact(now, run, Event::QuestionAsked { question });
    }

    fn withdraw(&mut self, now: &mut Now<'_>, run: RunId, question: QuestionId) {
        if self.view.run.as_ref().is_some_and(|active| active.question(question).is_some()) {
            let answer = Answer { by: None, reply: Reply::Interrupted };
            self.fact(now, run, Event::QuestionAnswered { question, answer });
        }
    }

    /// Parking with nothing to wait for would leave the run open for ever. An answer that crossed the report
    /// on its way was heard by nobody: another back-end goes on with it.
    fn park(&mut self, now: &mut Now<'_>, run: RunId) {
        self.close_message(now, true);
        let crossed = std::mem::take(&mut self.crossed);
        if crossed && self.view.run.as_ref().is_some_and(|active| !active.cancelling) {
            return self.order(When::Committed, Order::Resume { run });
        }
        match self.view.run.as_ref().filter(|active| active.is_awaiting()) {
            Some(_) => self.attached = false,
            None => self.end_run(now, crate::Outcome::failed("backend", "the agent stopped without an end")),
        }
    }

    fn tool_stage(&self, call: ToolCallId) -> Option<ToolStage> {
        self.view.run.as_ref()?.tool(call).map(|tool| tool.stage)
    }
}

/// After a cancel only what closes something is heard.
fn closes(report: &Report) -> bool {
    match report {
        Report::MessageDone { .. }
        | Report::ToolDone { .. }
        | Report::UsageAdded(_)
        | Report::Parked
        | Report::Ended(_) => true,
        Report::MessageStarted { .. }
        | Report::Deltas(_)
        | Report::ToolWanted { .. }
        | Report::ToolReady { .. }
        | Report::ToolUpdated { .. }
        | Report::Asked(_)
        | Report::Withdrawn(_)
        | Report::PlanSet(_)
        | Report::StateChanged { .. }
        | Report::ArtifactSaved { .. }
        | Report::Titled(_)
        | Report::Noticed(_)
        | Report::Routed(_)
        | Report::Compacted { .. } => false,
    }
}

/// Deltas of another kind than the last part open the next one.
fn growing_part(parts: &[Part], growth: Growth) -> u32 {
    let last = match (parts.last(), growth) {
        (Some(Part::Text { .. }), Growth::Text) | (Some(Part::Thought { .. }), Growth::Thought) => parts.len() - 1,
        (_, Growth::Text | Growth::Thought) => parts.len(),
    };
    last as u32
}
