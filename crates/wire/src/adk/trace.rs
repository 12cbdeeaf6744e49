//! What happened in a session as spans: its runs, and the model calls and tools in each, with what pages read of them.

use std::collections::BTreeMap;

use gander_domain::{Entry, Event as Fact, Message, Part, Role, RunId, Timestamp, ToolCall, ToolCallId, Usage};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::content::adk_function_call_id;
use super::projection::adk_invocation_id;

/// The log record that says what a model call gave.
const INFERENCE_DETAILS_EVENT: &str = "gen_ai.client.inference.operation.details";

/// All spans of a session, from all its entries. A run that is under way ends with its last entry.
pub fn adk_session_trace_spans(entries: &[Entry], conversation: &str) -> Vec<Value> {
    let mut tracing = AdkTraceBuilder { conversation, agent: String::new(), open: None, done: Vec::new() };
    entries.iter().for_each(|entry| tracing.handle_entry(entry));
    tracing.close_run();
    tracing.done.iter().map(TraceSpan::to_json).collect()
}

/// What is known of one event: the attributes of its span, and which span that is.
pub fn adk_trace_span_attributes(spans: &[Value], event: &str) -> Option<Value> {
    let is_it = |span: &&Value| span["attributes"]["gcp.vertex.agent.event_id"] == event;
    let span = spans.iter().find(is_it)?;
    let mut known = span["attributes"].clone();
    known["trace_id"] = span["trace_id"].clone();
    known["span_id"] = span["span_id"].clone();
    Some(known)
}

struct TraceSpan {
    name: String,
    trace: RunId,
    id: Uuid,
    parent: Option<Uuid>,
    from: Timestamp,
    to: Timestamp,
    attributes: Map<String, Value>,
    /// What a model call gave.
    said: Option<Value>,
}

struct AdkTraceBuilder<'a> {
    conversation: &'a str,
    agent: String,
    open: Option<OpenRun>,
    done: Vec<TraceSpan>,
}

/// A run under way.
struct OpenRun {
    run: RunId,
    agent: String,
    began: Timestamp,
    last: Timestamp,
    /// Since then nothing but the model is waited for.
    free: Timestamp,
    calls: BTreeMap<ToolCallId, (String, Timestamp)>,
    /// The span of the last model call, which its cost belongs to.
    model: Option<usize>,
}

impl AdkTraceBuilder<'_> {
    fn handle_entry(&mut self, entry: &Entry) {
        let inside = self.belongs_to_run(entry);
        match &entry.event {
            Fact::SessionCreated { settings, .. } => self.agent.clone_from(&settings.agent),
            Fact::SettingsChanged { patch } => self.agent = patch.agent.clone().unwrap_or_else(|| self.agent.clone()),
            Fact::RunStarted { .. } => self.run_started(entry),
            Fact::RunEnded { .. } if inside => self.close_run(),
            Fact::MessageDone { message } if inside => self.message_done(entry.at, message),
            Fact::ToolCalled { call } if inside => self.tool_called(entry.at, call),
            Fact::ToolStarted { call } if inside => self.tool_started(entry.at, *call),
            Fact::ToolDone { call, .. } if inside => self.tool_done(entry.at, *call),
            Fact::QuestionAnswered { .. } | Fact::RunRecovered { .. } if inside => self.mark_model_free(entry.at),
            Fact::UsageAdded { usage } if inside => self.add_usage(usage),
            Fact::Routed { route } if inside => self.set_agent(&route.mode),
            Fact::RunQueued { .. }
            | Fact::RunEnded { .. }
            | Fact::RunRecovered { .. }
            | Fact::CancelRequested { .. }
            | Fact::MessageStarted { .. }
            | Fact::PartDelta { .. }
            | Fact::MessageDone { .. }
            | Fact::ToolCalled { .. }
            | Fact::ToolStarted { .. }
            | Fact::ToolUpdated { .. }
            | Fact::ToolDone { .. }
            | Fact::QuestionAsked { .. }
            | Fact::QuestionAnswered { .. }
            | Fact::UsageAdded { .. }
            | Fact::TitleSet { .. }
            | Fact::ArchiveSet { .. }
            | Fact::HistoryReset { .. }
            | Fact::Noticed { .. }
            | Fact::PlanSet { .. }
            | Fact::StateChanged { .. }
            | Fact::ArtifactSaved { .. }
            | Fact::TextMarked { .. }
            | Fact::Routed { .. }
            | Fact::OpaqueUpdate { .. }
            | Fact::Unknown(_) => {}
        }
    }

    /// True if it belongs to the run under way, which it is then the last entry of.
    fn belongs_to_run(&mut self, entry: &Entry) -> bool {
        let open = self.open.as_mut().filter(|open| entry.run == Some(open.run));
        open.map(|open| open.last = entry.at).is_some()
    }

    fn tool_called(&mut self, at: Timestamp, call: &ToolCall) {
        if let Some(open) = &mut self.open {
            open.calls.insert(call.id, (call.name.clone(), at));
        }
    }

    fn tool_started(&mut self, at: Timestamp, call: ToolCallId) {
        if let Some((_, from)) = self.open.as_mut().and_then(|open| open.calls.get_mut(&call)) {
            *from = at;
        }
    }

    fn mark_model_free(&mut self, at: Timestamp) {
        if let Some(open) = &mut self.open {
            open.free = at;
        }
    }

    fn set_agent(&mut self, mode: &str) {
        if let Some(open) = &mut self.open {
            mode.clone_into(&mut open.agent);
        }
    }

    fn run_started(&mut self, entry: &Entry) {
        self.close_run();
        let Some(run) = entry.run else { return };
        let (at, agent) = (entry.at, self.agent.clone());
        self.open = Some(OpenRun { run, agent, began: at, last: at, free: at, calls: BTreeMap::new(), model: None });
    }

    /// The run itself, which everything else in it hangs from.
    fn close_run(&mut self) {
        let Some(open) = self.open.take() else { return };
        let mut attributes = self.span_attributes(&open, "invoke_agent");
        attributes.insert("gcp.vertex.agent.invocation_id".to_owned(), json!(adk_invocation_id(open.run)));
        let (from, to) = (open.began, open.last);
        let name = format!("invoke_agent {}", open.agent);
        self.done.push(TraceSpan {
            name,
            trace: open.run,
            id: open.run.uuid(),
            parent: None,
            from,
            to,
            attributes,
            said: None,
        });
    }

    fn message_done(&mut self, at: Timestamp, message: &Message) {
        let Some(mut open) = self.open.take() else { return };
        if message.role == Role::Agent && !message.parts.is_empty() {
            let mut attributes = self.span_attributes(&open, "generate_content");
            attributes.insert("gcp.vertex.agent.event_id".to_owned(), json!(message.id));
            attributes.insert("gcp.vertex.agent.invocation_id".to_owned(), json!(adk_invocation_id(open.run)));
            let finish = if message.interrupted { "error" } else { "stop" };
            attributes.insert("gen_ai.response.finish_reasons".to_owned(), json!([finish]));
            let parts: Vec<Value> = message.parts.iter().filter_map(adk_trace_message_part).collect();
            let said = json!([{ "role": "assistant", "parts": parts, "finish_reason": finish }]);
            let (name, id, parent) = ("generate_content".to_owned(), message.id.uuid(), Some(open.run.uuid()));
            let (trace, from, said) = (open.run, open.free, Some(said));
            open.model = Some(self.done.len());
            self.done.push(TraceSpan { name, trace, id, parent, from, to: at, attributes, said });
        }
        open.free = at;
        self.open = Some(open);
    }

    fn tool_done(&mut self, at: Timestamp, call: ToolCallId) {
        let Some(mut open) = self.open.take() else { return };
        if let Some((name, from)) = open.calls.remove(&call) {
            let mut attributes = self.span_attributes(&open, "execute_tool");
            attributes.insert("gen_ai.tool.name".to_owned(), json!(name));
            attributes.insert("gen_ai.tool.call.id".to_owned(), json!(adk_function_call_id(call)));
            attributes.insert("gcp.vertex.agent.event_id".to_owned(), json!(call));
            let (name, parent) = (format!("execute_tool {name}"), Some(open.run.uuid()));
            let (trace, id) = (open.run, call.uuid());
            self.done.push(TraceSpan { name, trace, id, parent, from, to: at, attributes, said: None });
        }
        open.free = at;
        self.open = Some(open);
    }

    /// What a sub-agent paid is in its own session.
    fn add_usage(&mut self, usage: &Usage) {
        let model = self.open.as_mut().filter(|_| usage.child.is_none()).and_then(|open| open.model.take());
        let Some(span) = model.and_then(|location| self.done.get_mut(location)) else { return };
        let model = usage.model.rsplit('/').next().unwrap_or_default();
        span.name = format!("generate_content {model}");
        span.attributes.insert("gen_ai.request.model".to_owned(), json!(model));
        span.attributes.insert("gen_ai.usage.input_tokens".to_owned(), json!(usage.input));
        span.attributes.insert("gen_ai.usage.output_tokens".to_owned(), json!(usage.output));
    }

    fn span_attributes(&self, open: &OpenRun, operation: &str) -> Map<String, Value> {
        Map::from_iter([
            ("gen_ai.operation.name".to_owned(), json!(operation)),
            ("gen_ai.agent.name".to_owned(), json!(open.agent)),
            ("gen_ai.conversation.id".to_owned(), json!(self.conversation)),
        ])
    }
}

impl TraceSpan {
    fn to_json(&self) -> Value {
        let nanos = |at: Timestamp| at.as_micros().saturating_mul(1_000);
        let mut logs = Vec::new();
        if let Some(said) = &self.said {
            let mut attributes = self.attributes.clone();
            attributes.insert("gen_ai.output.messages".to_owned(), said.clone());
            logs.push(json!({ "event_name": INFERENCE_DETAILS_EVENT, "body": null, "attributes": attributes }));
        }
        json!({
            "name": self.name, "start_time": nanos(self.from), "end_time": nanos(self.to),
            "trace_id": self.trace.uuid().simple().to_string(), "span_id": adk_trace_span_id(self.id),
            "parent_span_id": self.parent.map(adk_trace_span_id), "attributes": self.attributes, "logs": logs,
        })
    }
}

/// The random half of an id. Texts, since pages read numbers of that size wrongly.
fn adk_trace_span_id(id: Uuid) -> String {
    format!("{:016x}", id.as_u64_pair().1)
}

fn adk_trace_message_part(part: &Part) -> Option<Value> {
    match part {
        Part::Text { text } => Some(json!({ "type": "text", "content": text })),
        Part::ToolUse { call, name, arguments } => {
            let arguments = arguments.as_object();
            Some(
                json!({ "type": "tool_call", "id": adk_function_call_id(*call), "name": name, "arguments": arguments }),
            )
        }
        Part::Thought { .. }
        | Part::Image { .. }
        | Part::Audio { .. }
        | Part::Link { .. }
        | Part::Resource { .. }
        | Part::ToolResult { .. }
        | Part::Unknown(_) => None,
    }
}
