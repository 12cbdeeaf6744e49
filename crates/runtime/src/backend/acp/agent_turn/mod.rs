//! One turn of an agent elsewhere: its updates and questions in, reports out. No IO.
//!
//! What an agent says beyond the words that are known here is kept beside what it means (see [`said_besides`]).

mod content;
mod said_besides;
mod tool_calls;

use std::collections::HashMap;

use gander_client::schema::{
    self, ContentBlock, ContentChunk, Meta, PromptResponse, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, SelectedPermissionOutcome, SessionUpdate,
};
use gander_domain::sanitize;
use gander_domain::{
    Choice, ChoiceKind, Delta, DeltaKind, IdGenerator, MessageId, Notice, Outcome, Part, Question, QuestionId,
    QuestionKind, QuestionOrigin, RejectReason, Reply, Report, Severity, StopReason, Usage,
};
use gander_wire::acp::{REASON_META, UNATTENDED_META};
use serde_json::{Value, json};

use self::content::{agent_turn_block_part, agent_turn_plan, agent_turn_preview, agent_turn_word_by_name, shown_block};
pub(in crate::backend) use self::said_besides::ToldUpdate;
use self::said_besides::{SaidBesides, permission_words};
use self::tool_calls::{CallStage, RemoteCall};

/// One turn of an agent elsewhere.
#[derive(Debug, Default)]
pub(in crate::backend) struct AgentTurn {
    model: String,
    /// The message that grows, by the agent's id for it.
    open: Option<Option<String>>,
    calls: HashMap<String, RemoteCall>,
    /// What says no to a question, for those who say why instead of choosing it.
    rejections: HashMap<QuestionId, String>,
    /// Something was too large to be kept, and people know.
    told_of_loss: bool,
}

impl AgentTurn {
    /// A turn that this model answers.
    pub(in crate::backend) fn new(model: impl Into<String>) -> Self {
        Self { model: model.into(), ..Self::default() }
    }

    /// Takes in what happened in the session.
    pub(in crate::backend) fn handle_update(&mut self, told: ToldUpdate, ids: &mut dyn IdGenerator) -> Vec<Report> {
        let mut reports = Vec::new();
        let ToldUpdate { known, whole } = told;
        match (known, whole) {
            (Some(known), None) => self.handle_known(known, None, ids, &mut reports),
            (Some(known), Some(whole)) => self.handle_known(known, Some(SaidBesides::new(whole)), ids, &mut reports),
            (None, Some(whole)) => self.handle_unknown(SaidBesides::new(whole), ids, &mut reports),
            (None, None) => {}
        }
        self.tell_of_losses(reports)
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the schema's enum is open")]
    fn handle_known(
        &mut self,
        update: SessionUpdate,
        whole: Option<SaidBesides>,
        ids: &mut dyn IdGenerator,
        reports: &mut Vec<Report>,
    ) {
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => self.append_chunk(DeltaKind::Text, chunk, whole, ids, reports),
            SessionUpdate::AgentThoughtChunk(chunk) => {
                self.append_chunk(DeltaKind::Thought, chunk, whole, ids, reports)
            }
            SessionUpdate::ToolCall(call) => self.handle_tool_call(call, whole, ids, reports),
            SessionUpdate::ToolCallUpdate(update) => self.handle_tool_update(update, whole, ids, reports),
            SessionUpdate::Plan(plan) => {
                let bare = json!(agent_turn_plan(&plan).items.iter().map(content::shown_plan_item).collect::<Vec<_>>());
                let report = Report::PlanSet(agent_turn_plan(&plan));
                let shown = json!({ "sessionUpdate": "plan", "entries": bare });
                SaidBesides::push_annotated(whole, &shown, report, reports);
            }
            SessionUpdate::SessionInfoUpdate(info) => {
                reports.extend(json!(info)["title"].as_str().map(|title| Report::Titled(title.to_owned())));
                reports.extend(whole.and_then(SaidBesides::without_title));
            }
            SessionUpdate::Notice(notice) => reports.push(Report::Noticed(agent_turn_notice(&json!(notice)))),
            // our own prompt, and what was learned as choices of the session
            SessionUpdate::UserMessageChunk(_)
            | SessionUpdate::AvailableCommandsUpdate(_)
            | SessionUpdate::CurrentModeUpdate(_)
            | SessionUpdate::ConfigOptionUpdate(_) => {}
            // what no other protocol has a word for
            _ => reports.extend(whole.map(SaidBesides::into_opaque)),
        }
    }

    /// An update of an unknown kind, or of a known one with content of an unknown kind.
    fn handle_unknown(&mut self, whole: SaidBesides, ids: &mut dyn IdGenerator, reports: &mut Vec<Report>) {
        let content = whole.update()["content"].clone();
        let speaks = matches!(whole.kind(), "agent_message_chunk" | "agent_thought_chunk");
        if !speaks || !content["type"].is_string() {
            return reports.push(whole.into_opaque());
        }
        let id = whole.update()["messageId"].as_str().map(str::to_owned);
        self.open_message(id.clone(), ids, reports);
        self.open = None;
        let done = Report::MessageDone { tail: vec![Part::Unknown(content)], native: None, interrupted: false };
        SaidBesides::push_annotated(Some(whole), &json!({ "messageId": id }), done, reports);
    }

    /// The agent asks whether it may.
    pub(in crate::backend) fn handle_permission(
        &mut self,
        request: &RequestPermissionRequest,
        ids: &mut dyn IdGenerator,
    ) -> (QuestionId, Vec<Report>) {
        let (mut reports, theirs) = (Vec::new(), request.tool_call.tool_call_id.to_string());
        self.note_called(request, ids, &mut reports);
        let id = QuestionId::make(ids);
        let Some(known) = self.calls.get_mut(&theirs) else { return (id, reports) };
        let choices = request.options.iter().map(|option| Choice {
            id: option.option_id.to_string(),
            name: option.name.clone(),
            kind: agent_turn_word_by_name(&option.kind).unwrap_or(ChoiceKind::RejectOnce),
        });
        let choices: Vec<Choice> = choices.collect();
        if let Some(no) = choices.iter().find(|choice| choice.kind == ChoiceKind::RejectOnce) {
            self.rejections.insert(id, no.id.clone());
        }
        let asked_with = request.tool_call.fields.content.clone();
        let question = Question {
            id,
            call: Some(known.call.id),
            title: sanitize::sanitized_call_text(&known.call.name, &known.call.arguments, &known.call.title),
            ask: QuestionKind::Choose { choices },
            origin: QuestionOrigin::Held,
            fingerprint: None,
            plan: None,
            subagent: None,
            preview: asked_with.map_or_else(|| known.content.clone(), agent_turn_preview),
            outward: None,
            meta: None,
        };
        let meta = permission_words(request, &known.call, &question);
        let question = Question { meta, ..question };
        known.ask(question, ids, &mut self.open, &mut reports);
        (id, self.tell_of_losses(reports))
    }

    /// The agent wants a form filled in.
    pub(in crate::backend) fn handle_form(
        &mut self,
        message: &str,
        schema: Value,
        ids: &mut dyn IdGenerator,
    ) -> (QuestionId, Report) {
        let (id, title, origin) = (QuestionId::make(ids), sanitize::sanitized_line(message), QuestionOrigin::Held);
        let question = Question {
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
            meta: None,
        };
        (id, Report::Asked(question))
    }

    /// What the agent is answered, and what is to be reported.
    pub(in crate::backend) fn answer_question(
        &mut self,
        question: QuestionId,
        reply: &Reply,
    ) -> (RequestPermissionResponse, Option<Report>) {
        let asked = self.calls.values_mut().find(|call| call.stage == CallStage::Asked(question));
        let ready = asked.filter(|_| reply.is_allowed()).map(|call| {
            call.stage = CallStage::Started;
            Report::ToolReady { call: call.call.id }
        });
        let no = self.rejections.remove(&question);
        let selected = |choice: &str| {
            let selected = SelectedPermissionOutcome::new(choice.to_owned());
            RequestPermissionResponse::new(RequestPermissionOutcome::Selected(selected))
        };
        let response = match (reply, no) {
            (Reply::Chosen { choice, .. }, _) => selected(choice),
            // A no is no cancel: an agent that is told why may try something else.
            (Reply::Rejected { reason }, Some(no)) => selected(&no).meta(agent_turn_reject_meta(reason)),
            (
                Reply::Rejected { .. }
                | Reply::Filled { .. }
                | Reply::Declined
                | Reply::Cancelled
                | Reply::Interrupted
                | Reply::Superseded,
                _,
            ) => RequestPermissionResponse::new(RequestPermissionOutcome::Cancelled),
        };
        (response, ready)
    }

    /// The turn is over.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the schema's enum is open")]
    pub(in crate::backend) fn handle_end(
        &mut self,
        response: &PromptResponse,
        ids: &mut dyn IdGenerator,
    ) -> Vec<Report> {
        let mut reports = self.close_turn(false, ids);
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
    pub(in crate::backend) fn handle_failure(
        &mut self,
        reason: &str,
        message: &str,
        ids: &mut dyn IdGenerator,
    ) -> Vec<Report> {
        let mut reports = self.close_turn(true, ids);
        reports.push(Report::Ended(Outcome::failed(reason, message)));
        reports
    }

    fn close_turn(&mut self, interrupted: bool, ids: &mut dyn IdGenerator) -> Vec<Report> {
        let mut reports = Vec::new();
        self.start_called_tools(ids, &mut reports);
        if self.open.take().is_some() {
            reports.push(Report::MessageDone { tail: Vec::new(), native: None, interrupted });
        }
        reports
    }

    /// The message under this id of the agent's is the one that grows.
    fn open_message(&mut self, id: Option<String>, ids: &mut dyn IdGenerator, reports: &mut Vec<Report>) {
        self.start_called_tools(ids, reports);
        if self.open.as_ref().is_some_and(|open| *open != id) {
            reports.push(Report::MessageDone { tail: Vec::new(), native: None, interrupted: false });
            self.open = None;
        }
        if self.open.is_none() {
            reports.push(Report::MessageStarted { message: MessageId::make(ids) });
            self.open = Some(id);
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the schema's enum is open")]
    fn append_chunk(
        &mut self,
        growth: DeltaKind,
        chunk: ContentChunk,
        mut whole: Option<SaidBesides>,
        ids: &mut dyn IdGenerator,
        reports: &mut Vec<Report>,
    ) {
        self.open_message(chunk.message_id.as_ref().map(ToString::to_string), ids, reports);
        let (report, shown) = match chunk.content {
            ContentBlock::Text(text) => {
                let shown = whole.as_ref().map(|_| json!({ "type": "text", "text": text.text }));
                (Report::Deltas(vec![Delta { growth, text: text.text }]), shown)
            }
            other => {
                self.open = None;
                let part = agent_turn_block_part(other);
                let shown = whole.as_ref().map(|_| shown_block(&part));
                (Report::MessageDone { tail: vec![part], native: None, interrupted: false }, shown)
            }
        };
        let kind = match growth {
            DeltaKind::Text => "agent_message_chunk",
            DeltaKind::Thought => "agent_thought_chunk",
        };
        // A thought that is no text is told as what the agent said: the kind is part of what has to be kept.
        let kind = if matches!(report, Report::Deltas(_)) { kind } else { "agent_message_chunk" };
        let shown = shown.map(|content| json!({ "sessionUpdate": kind, "content": content })).unwrap_or_default();
        // The id of the message is ours in every update.
        whole.as_mut().and_then(|whole| whole.update_mut().as_object_mut()).and_then(|said| said.remove("messageId"));
        SaidBesides::push_annotated(whole, &shown, report, reports);
    }

    /// Once in a turn people are told that something was too large to be kept.
    fn tell_of_losses(&mut self, mut reports: Vec<Report>) -> Vec<Report> {
        let lost = reports.iter().position(said_besides::is_loss_notice);
        if lost.is_some() && std::mem::replace(&mut self.told_of_loss, true) {
            reports.retain(|report| !said_besides::is_loss_notice(report));
        }
        reports
    }
}

fn agent_turn_notice(said: &Value) -> Notice {
    let text = |key: &str| said[key].as_str().map(sanitize::sanitized_text);
    let severity = match said["severity"].as_str() {
        Some("error") => Severity::Error,
        Some("warning") => Severity::Warning,
        Some(_) | None => Severity::Info,
    };
    let title = text("title").or_else(|| text("message")).unwrap_or_default();
    Notice { severity, title, detail: text("description") }
}

/// Why somebody said no, where another gander reads it.
fn agent_turn_reject_meta(reason: &RejectReason) -> Meta {
    match reason {
        RejectReason::Said(said) => Meta::from_iter([(REASON_META.to_owned(), json!(said))]),
        RejectReason::Unattended => Meta::from_iter([(UNATTENDED_META.to_owned(), json!(true))]),
    }
}
