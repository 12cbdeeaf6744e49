//! What a run did, as spans: a view of its log, like any protocol's.

use std::collections::HashMap;

use gander_domain::{
    Entry, Event, Outcome, Question, QuestionId, RunId, SessionId, Timestamp, ToolCall, ToolCallId, ToolEnd,
    ToolResult, Usage,
};
use serde_json::Value;

use super::{RunTrace, Span, SpanKind};

/// Folds the entries of one run. Feed it all of them, then take [`RunSpans::into_spans`].
pub(super) struct RunSpans {
    session: SessionId,
    run: RunId,
    root: Option<RootSpan>,
    tools: HashMap<ToolCallId, (Timestamp, String)>,
    questions: HashMap<QuestionId, Timestamp>,
    spans: Vec<Span>,
}

/// The run itself.
struct RootSpan {
    trace: RunTrace,
    span: Span,
    is_ended: bool,
    usage: (u64, u64),
}

impl RunSpans {
    pub(super) fn new(session: SessionId, run: RunId) -> Self {
        let (tools, questions, spans) = Default::default();
        Self { session, run, root: None, tools, questions, spans }
    }

    /// All of them, if the run has ended and whoever began its trace wants it recorded.
    pub(super) fn into_spans(mut self) -> Vec<Span> {
        let Some(RootSpan { span, is_ended: true, usage: (input, output), .. }) = self.root else { return Vec::new() };
        if !span.context.sampled {
            return Vec::new();
        }
        let span = span.with("gen_ai.usage.input_tokens", input).with("gen_ai.usage.output_tokens", output);
        self.spans.push(span);
        self.spans
    }

    /// Takes in the next entry.
    pub(super) fn apply(&mut self, entry: &Entry) {
        if entry.run != Some(self.run) {
            return;
        }
        match &entry.event {
            Event::RunQueued { origin, .. } | Event::RunStarted { origin } => self.begin(entry, &origin.door),
            Event::RunRecovered { .. } => self.add_event(entry.at, "recovered"),
            Event::CancelRequested { .. } => self.add_event(entry.at, "cancel requested"),
            Event::RunEnded { outcome } => self.end(entry.at, outcome),
            Event::ToolCalled { call: ToolCall { id, name, .. } } => {
                self.tools.insert(*id, (entry.at, name.clone()));
            }
            Event::ToolStarted { call } => {
                self.tools.entry(*call).and_modify(|(started, _)| *started = entry.at);
            }
            Event::ToolDone { call, result } => self.end_tool(*call, entry.at, result),
            Event::QuestionAsked { question: Question { id, .. } } => {
                self.questions.insert(*id, entry.at);
            }
            Event::QuestionAnswered { question, answer } => {
                self.end_question(*question, entry.at, answer.door.as_deref());
            }
            Event::UsageAdded { usage } => self.add_usage(usage),
            Event::SessionCreated { .. }
            | Event::TitleSet { .. }
            | Event::SettingsChanged { .. }
            | Event::ArchiveSet { .. }
            | Event::HistoryReset { .. }
            | Event::Noticed { .. }
            | Event::PlanSet { .. }
            | Event::StateChanged { .. }
            | Event::ArtifactSaved { .. }
            | Event::TextMarked { .. }
            | Event::Routed { .. }
            | Event::MessageStarted { .. }
            | Event::PartDelta { .. }
            | Event::MessageDone { .. }
            | Event::ToolUpdated { .. }
            | Event::OpaqueUpdate { .. }
            | Event::Unknown(_) => {} // what was said is nobody's business
        }
    }

    /// At its first entry. A run that waited in the queue has that as part of its time.
    fn begin(&mut self, entry: &Entry, protocol: &str) {
        if self.root.is_some() {
            return self.add_event(entry.at, "started");
        }
        let trace = RunTrace::new(self.session, self.run, entry.meta.as_deref());
        // Without the span of a request the prompt itself is what came from outside.
        let kind = if trace.parent.is_some() { SpanKind::Internal } else { SpanKind::Server };
        let span = Span::new(trace.context(), trace.parent, "invoke_agent", kind, entry.at)
            .with("gen_ai.operation.name", "invoke_agent")
            .with("gen_ai.conversation.id", self.session.to_string())
            .with("gander.run.id", self.run.to_string())
            .with("gander.protocol", protocol);
        self.root = Some(RootSpan { trace, span, is_ended: false, usage: (0, 0) });
    }

    fn end(&mut self, at: Timestamp, outcome: &Outcome) {
        let Some(root) = &mut self.root else { return };
        let (word, error) = match outcome {
            Outcome::Completed { .. } => ("completed", None),
            Outcome::Cancelled => ("cancelled", None),
            Outcome::Failed { reason, .. } => ("failed", Some(reason.clone())),
        };
        root.span.attributes.push(("gander.outcome", word.into()));
        (root.span.end, root.span.error, root.is_ended) = (at, error, true);
    }

    fn end_tool(&mut self, call: ToolCallId, at: Timestamp, result: &ToolResult) {
        let Some((root, (start, name))) = self.root.as_ref().zip(self.tools.remove(&call)) else { return };
        let context = root.trace.part(self.session, "tool", &call.to_string());
        let parent = Some(root.span.context.span_id);
        let mut span = Span::new(context, parent, &format!("execute_tool {name}"), SpanKind::Internal, start)
            .with("gen_ai.operation.name", "execute_tool")
            .with("gen_ai.tool.name", name)
            .with("gen_ai.tool.call.id", call.to_string())
            .with("gander.tool.end", tool_end_word(result.end));
        if let Some(code) = result.raw.as_ref().and_then(|raw| raw.get("exit_code")).and_then(Value::as_i64) {
            span = span.with("process.exit.code", code);
        }
        let has_failed = !matches!(result.end, ToolEnd::Completed | ToolEnd::Rejected);
        span.error = has_failed.then(|| tool_end_word(result.end).to_owned());
        self.spans.push(Span { end: at, ..span });
    }

    /// How long a person was waited for.
    fn end_question(&mut self, question: QuestionId, at: Timestamp, protocol: Option<&str>) {
        let Some((root, start)) = self.root.as_ref().zip(self.questions.remove(&question)) else { return };
        let context = root.trace.part(self.session, "question", &question.to_string());
        let parent = Some(root.span.context.span_id);
        let mut span = Span::new(context, parent, "wait_for_answer", SpanKind::Internal, start);
        if let Some(protocol) = protocol {
            span = span.with("gander.answered_from", protocol);
        }
        self.spans.push(Span { end: at, ..span });
    }

    fn add_event(&mut self, at: Timestamp, name: &'static str) {
        if let Some(root) = &mut self.root {
            root.span.events.push((at, name));
        }
    }

    fn add_usage(&mut self, usage: &Usage) {
        if let Some(root) = &mut self.root {
            let (input, output) = root.usage;
            root.usage = (input.saturating_add(usage.input), output.saturating_add(usage.output));
        }
    }
}

fn tool_end_word(end: ToolEnd) -> &'static str {
    match end {
        ToolEnd::Completed => "completed",
        ToolEnd::Failed => "failed",
        ToolEnd::Rejected => "rejected",
        ToolEnd::Cancelled => "cancelled",
        ToolEnd::Interrupted => "interrupted",
    }
}
