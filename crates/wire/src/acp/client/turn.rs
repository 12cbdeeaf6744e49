//! One turn of an agent elsewhere: its updates and questions in, reports out. No IO.

use std::collections::HashMap;

use gander_domain::sanitize;
use gander_domain::{
    Choice, ChoiceKind, Delta, DeltaKind, IdGenerator, Location, MessageId, Notice, Outcome, Part, Plan, PlanItem,
    Question, QuestionId, QuestionKind, QuestionOrigin, Reply, Report, Severity, StopReason, ToolCall, ToolCallId,
    ToolContent, ToolEnd, ToolGate, ToolKind, ToolResult, Usage,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::acp::content;
use crate::acp::schema::{
    self, ContentBlock, ContentChunk, PromptResponse, RequestPermissionOutcome, RequestPermissionRequest,
    SelectedPermissionOutcome, SessionUpdate, ToolCallContent, ToolCallStatus, ToolCallUpdate,
};
use crate::acp::types::AgentProfile;

/// One turn of an agent elsewhere.
#[derive(Debug, Default)]
pub struct AgentTurn {
    model: String,
    /// The message that grows, by the agent's id for it.
    open: Option<Option<String>>,
    calls: HashMap<String, RemoteCall>,
}

#[derive(Debug)]
struct RemoteCall {
    call: ToolCall,
    stage: CallStage,
    content: Vec<ToolContent>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallStage {
    /// Wanted, and not yet known whether it asks first.
    Fresh,
    /// A person is asked.
    Asked(QuestionId),
    /// It runs.
    Started,
    /// It is over.
    Done,
}

impl AgentTurn {
    /// A turn that this model answers.
    pub fn new(model: impl Into<String>) -> Self {
        Self { model: model.into(), ..Self::default() }
    }

    /// Takes in what happened in the session.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the schema's enum is open")]
    pub fn handle_update(&mut self, update: SessionUpdate, ids: &mut dyn IdGenerator) -> Vec<Report> {
        let mut reports = Vec::new();
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => self.append_chunk(DeltaKind::Text, chunk, ids, &mut reports),
            SessionUpdate::AgentThoughtChunk(chunk) => self.append_chunk(DeltaKind::Thought, chunk, ids, &mut reports),
            SessionUpdate::ToolCall(call) => self.handle_tool_call(call, ids, &mut reports),
            SessionUpdate::ToolCallUpdate(update) => self.handle_tool_update(update, ids, &mut reports),
            SessionUpdate::Plan(plan) => reports.push(Report::PlanSet(self::read_agent_turn_plan(&plan))),
            SessionUpdate::SessionInfoUpdate(info) => {
                let title = json!(info)["title"].as_str().map(|title| Report::Titled(title.to_owned()));
                reports.extend(title);
            }
            SessionUpdate::Notice(notice) => {
                let said = json!(notice);
                let title = ["title", "message"].iter().find_map(|key| said[*key].as_str()).unwrap_or_default();
                let notice = Notice { severity: Severity::Info, title: title.to_owned(), detail: None };
                reports.push(Report::Noticed(notice));
            }
            // our own prompt, and what only matters to somebody who looks at the agent's own settings
            _ => {}
        }
        reports
    }

    /// The agent asks whether it may.
    pub fn handle_permission(
        &mut self,
        request: &RequestPermissionRequest,
        ids: &mut dyn IdGenerator,
    ) -> (QuestionId, Vec<Report>) {
        let (mut reports, theirs) = (Vec::new(), request.tool_call.tool_call_id.to_string());
        if !self.calls.contains_key(&theirs) {
            self.handle_tool_call(unannounced_turn_tool_call(&request.tool_call), ids, &mut reports);
        }
        let id = QuestionId::make(ids);
        let Some(known) = self.calls.get_mut(&theirs) else { return (id, reports) };
        let choices = request.options.iter().map(|option| Choice {
            id: option.option_id.to_string(),
            name: option.name.clone(),
            kind: convert_turn_word_by_name(&option.kind).unwrap_or(ChoiceKind::RejectOnce),
        });
        let ask = QuestionKind::Choose { choices: choices.collect() };
        let call = Some(known.call.id);
        let title = sanitize::sanitized_call_text(&known.call.name, &known.call.arguments, &known.call.title);
        let question = Question {
            id,
            call,
            title,
            ask,
            origin: QuestionOrigin::Held,
            fingerprint: None,
            plan: None,
            subagent: None,
            preview: Vec::new(),
            outward: None,
        };
        reports.push(match known.stage {
            CallStage::Fresh => Report::ToolWanted { call: known.call.clone(), gate: ToolGate::Ask(question) },
            CallStage::Asked(_) | CallStage::Started | CallStage::Done => Report::Asked(question),
        });
        known.stage = CallStage::Asked(id);
        (id, reports)
    }

    /// The agent wants a form filled in.
    pub fn handle_form(&mut self, message: &str, schema: Value, ids: &mut dyn IdGenerator) -> (QuestionId, Report) {
        let (id, title, origin) = (QuestionId::make(ids), sanitize::sanitized_line(message), QuestionOrigin::Held);
        (
            id,
            Report::Asked(Question {
                id,
                call: None,
                title,
                ask: QuestionKind::Form { schema },
                origin,
                fingerprint: None,
                plan: None,
                subagent: None,
                preview: Vec::new(),
                outward: None,
            }),
        )
    }

    /// What the agent is answered, and what is to be reported.
    pub fn answer_question(
        &mut self,
        question: QuestionId,
        reply: &Reply,
    ) -> (RequestPermissionOutcome, Option<Report>) {
        let asked = self.calls.values_mut().find(|call| call.stage == CallStage::Asked(question));
        let ready = asked.filter(|_| reply.is_allowed()).map(|call| {
            call.stage = CallStage::Started;
            Report::ToolReady { call: call.call.id }
        });
        let outcome = match reply {
            Reply::Chosen { choice, .. } => {
                RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(choice.clone()))
            }
            Reply::Rejected { .. }
            | Reply::Filled { .. }
            | Reply::Declined
            | Reply::Cancelled
            | Reply::Interrupted
            | Reply::Superseded => RequestPermissionOutcome::Cancelled,
        };
        (outcome, ready)
    }

    /// The turn is over.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the schema's enum is open")]
    pub fn handle_end(&mut self, response: &PromptResponse) -> Vec<Report> {
        let mut reports = self.close_turn(false);
        if let Some(usage) = &response.usage {
            reports.push(Report::UsageAdded(Usage {
                model: self.model.clone(),
                input: usage.input_tokens,
                output: usage.output_tokens,
                cached: usage.cached_read_tokens.unwrap_or(0),
                thinking: usage.thought_tokens.unwrap_or(0),
                ..Usage::default()
            }));
        }
        let outcome = match response.stop_reason {
            schema::StopReason::MaxTokens => Outcome::Completed { stop: StopReason::MaxTokens },
            schema::StopReason::MaxTurnRequests => Outcome::Completed { stop: StopReason::MaxTurns },
            schema::StopReason::Refusal => Outcome::Completed { stop: StopReason::Refusal },
            schema::StopReason::Cancelled => Outcome::Cancelled,
            _ => Outcome::Completed { stop: StopReason::EndTurn },
        };
        reports.push(Report::Ended(outcome));
        reports
    }

    /// The agent failed, or is gone: what it said stays.
    pub fn handle_failure(&mut self, reason: &str, message: &str) -> Vec<Report> {
        let mut reports = self.close_turn(true);
        reports.push(Report::Ended(Outcome::failed(reason, message)));
        reports
    }

    fn close_turn(&mut self, interrupted: bool) -> Vec<Report> {
        let mut reports = Vec::new();
        self.start_called_tools(&mut reports);
        if self.open.take().is_some() {
            reports.push(Report::MessageDone { tail: Vec::new(), native: None, interrupted });
        }
        reports
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the schema's enum is open")]
    fn append_chunk(
        &mut self,
        growth: DeltaKind,
        chunk: ContentChunk,
        ids: &mut dyn IdGenerator,
        reports: &mut Vec<Report>,
    ) {
        self.start_called_tools(reports);
        let id = chunk.message_id.as_ref().map(ToString::to_string);
        if self.open.as_ref().is_some_and(|open| *open != id) {
            reports.push(Report::MessageDone { tail: Vec::new(), native: None, interrupted: false });
            self.open = None;
        }
        if self.open.is_none() {
            reports.push(Report::MessageStarted { message: MessageId::make(ids) });
            self.open = Some(id);
        }
        match chunk.content {
            ContentBlock::Text(text) => reports.push(Report::Deltas(vec![Delta { growth, text: text.text }])),
            other => {
                self.open = None;
                reports.push(Report::MessageDone {
                    tail: vec![agent_turn_block_part(other)],
                    native: None,
                    interrupted: false,
                });
            }
        }
    }

    /// Calls that did not ask run already.
    fn start_called_tools(&mut self, reports: &mut Vec<Report>) {
        for call in self.calls.values_mut().filter(|call| call.stage == CallStage::Fresh) {
            call.stage = CallStage::Started;
            reports.push(Report::ToolWanted { call: call.call.clone(), gate: ToolGate::External });
        }
    }

    fn handle_tool_call(&mut self, told: schema::ToolCall, ids: &mut dyn IdGenerator, reports: &mut Vec<Report>) {
        let theirs = told.tool_call_id.to_string();
        if self.calls.contains_key(&theirs) {
            return;
        }
        let id = theirs.parse().unwrap_or_else(|_| ToolCallId::make(ids));
        let call = ToolCall {
            id,
            // goose gives no name: its titles begin with one, as in `shell · ls`
            name: told.name.clone().unwrap_or_else(|| told.title.split(" · ").next().unwrap_or_default().to_owned()),
            title: told.title,
            kind: convert_turn_word_by_name(&told.kind).unwrap_or(ToolKind::Other),
            arguments: told.raw_input.filter(Value::is_object).unwrap_or_else(|| json!({})),
            locations: told.locations.iter().map(agent_turn_tool_location).collect(),
            idempotent: false,
        };
        if self.open.take().is_none() {
            reports.push(Report::MessageStarted { message: MessageId::make(ids) });
        }
        let tail = vec![Part::ToolUse { call: id, name: call.name.clone(), arguments: call.arguments.clone() }];
        reports.push(Report::MessageDone { tail, native: None, interrupted: false });
        let content = told.content.into_iter().map(agent_turn_tool_content).collect();
        self.calls.insert(theirs.clone(), RemoteCall { call, stage: CallStage::Fresh, content });
        if told.status != ToolCallStatus::Pending {
            self.finish_tool_call(&theirs, told.status, told.raw_output, reports);
        }
    }

    fn handle_tool_update(&mut self, update: ToolCallUpdate, ids: &mut dyn IdGenerator, reports: &mut Vec<Report>) {
        let theirs = update.tool_call_id.to_string();
        if !self.calls.contains_key(&theirs) {
            self.handle_tool_call(unannounced_turn_tool_call(&update), ids, reports);
        }
        let fields = update.fields;
        if let (Some(call), Some(content)) = (self.calls.get_mut(&theirs), fields.content) {
            call.content = content.into_iter().map(agent_turn_tool_content).collect();
            if call.stage == CallStage::Started && fields.status.is_none() {
                reports.push(Report::ToolUpdated { call: call.call.id, content: call.content.clone() });
            }
        }
        if let Some(status) = fields.status {
            self.finish_tool_call(&theirs, status, fields.raw_output, reports);
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the schema's enum is open")]
    fn finish_tool_call(
        &mut self,
        theirs: &str,
        status: ToolCallStatus,
        raw: Option<Value>,
        reports: &mut Vec<Report>,
    ) {
        let Some(call) = self.calls.get_mut(theirs) else { return };
        let end = match status {
            ToolCallStatus::Completed => ToolEnd::Completed,
            ToolCallStatus::Failed => ToolEnd::Failed,
            _ if status == ToolCallStatus::InProgress && call.stage == CallStage::Fresh => {
                call.stage = CallStage::Started;
                return reports.push(Report::ToolWanted { call: call.call.clone(), gate: ToolGate::External });
            }
            _ => return,
        };
        if call.stage == CallStage::Fresh {
            reports.push(Report::ToolWanted { call: call.call.clone(), gate: ToolGate::External });
        }
        if call.stage != CallStage::Done {
            call.stage = CallStage::Done;
            let result = ToolResult { end, content: std::mem::take(&mut call.content), raw };
            reports.push(Report::ToolDone { call: call.call.id, result });
        }
    }
}

/// A call that is first heard of by an update or a question about it.
fn unannounced_turn_tool_call(update: &ToolCallUpdate) -> schema::ToolCall {
    let fields = &update.fields;
    let title = fields.title.clone().unwrap_or_else(|| "tool".to_owned());
    schema::ToolCall::new(update.tool_call_id.clone(), title)
        .name(fields.name.clone())
        .kind(fields.kind.unwrap_or_default())
        .locations(fields.locations.clone().unwrap_or_default())
        .raw_input(fields.raw_input.clone())
}

/// A block as a part; what cannot be checked is kept as it came.
fn agent_turn_block_part(block: ContentBlock) -> Part {
    let raw = json!(block);
    let profile = AgentProfile { image: true, audio: true, ..AgentProfile::default() };
    let read = content::acp_prompt_parts(vec![block], &profile).ok().and_then(|mut parts| parts.pop());
    read.unwrap_or(Part::Unknown(raw))
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the schema's enum is open")]
fn agent_turn_tool_content(content: ToolCallContent) -> ToolContent {
    match content {
        ToolCallContent::Content(content) => ToolContent::Part { part: agent_turn_block_part(content.content) },
        ToolCallContent::Diff(diff) => {
            let path = diff.path.to_string_lossy().into_owned();
            ToolContent::Diff { path, old: diff.old_text, new: diff.new_text }
        }
        other => ToolContent::Part { part: Part::Unknown(json!(other)) },
    }
}

fn agent_turn_tool_location(location: &schema::ToolCallLocation) -> Location {
    Location { line: location.line, ..Location::file(location.path.to_string_lossy()) }
}

fn read_agent_turn_plan(told: &schema::Plan) -> Plan {
    let item = |entry: &schema::PlanEntry| PlanItem {
        text: entry.content.clone(),
        priority: convert_turn_word_by_name(&entry.priority).unwrap_or_default(),
        status: convert_turn_word_by_name(&entry.status).unwrap_or_default(),
    };
    Plan { items: told.entries.iter().map(item).collect() }
}

/// The protocol's word for something that we call the same.
fn convert_turn_word_by_name<T: DeserializeOwned>(word: &impl Serialize) -> Option<T> {
    serde_json::from_value(json!(word)).ok()
}
