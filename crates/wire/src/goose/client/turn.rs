//! One turn of a goosed: its events in, reports out. No IO.

use std::collections::HashMap;

use gander_domain::sanitize;
use gander_domain::{
    Answer, Choice, ChoiceKind, Delta, DeltaKind, IdGenerator, MessageId, Notice, Outcome, Part, ProviderPayload,
    Question, QuestionId, QuestionKind, QuestionOrigin, Reply, Report, Severity, StopReason, ToolCall, ToolCallId,
    ToolContent, ToolGate, ToolKind, Usage,
};
use serde_json::{Value, json};

use super::status::GoosedError;
use super::{PAYLOAD_NAME, request};
use crate::goose::content::{read_goose_plain_content, read_goose_tool_result, unwrap_goose_content_outcome};

/// One turn of a goosed.
///
/// Feed it every event of the stream, then [`GoosedTurn::handle_stream_end`] if the stream ended before [`GoosedTurn::is_over`].
#[derive(Debug)]
pub struct GoosedTurn {
    model: String,
    /// The message that grows, by goose's id.
    open: Option<String>,
    /// Ours, by goose's ids.
    calls: HashMap<String, ToolCallId>,
    /// Wanted, and not yet known whether they ask first.
    fresh: Vec<(String, ToolCall)>,
    /// What waits for a person.
    asked: HashMap<QuestionId, PendingTool>,
    /// Tokens that the session had used before, read and written.
    before: Option<(u64, u64)>,
    failure: Option<GoosedError>,
    over: bool,
}

/// What a goosed is to be told.
#[derive(Clone, Debug, PartialEq)]
pub enum GoosedRequest {
    /// May the tool run?
    Confirm {
        /// By goose's id.
        id: String,
        /// What it is to do.
        action: &'static str,
    },
    /// A form was filled in.
    Elicited {
        /// By goose's id.
        id: String,
        /// The content; null if the person did not want to.
        data: Value,
    },
}

#[derive(Clone, Debug)]
struct PendingTool {
    id: String,
    /// The call that it is about; none for a form.
    call: Option<ToolCallId>,
    form: bool,
}

impl GoosedTurn {
    /// A turn that this model answers.
    pub fn new(model: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            open: None,
            calls: HashMap::new(),
            fresh: Vec::new(),
            asked: HashMap::new(),
            before: None,
            failure: None,
            over: false,
        }
    }

    /// True if the run has ended.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Why the turn failed, if it did.
    pub fn failure(&self) -> Option<&GoosedError> {
        self.failure.as_ref()
    }

    /// Takes in the next event. A sign of life only says that the stream lives.
    pub fn handle_event(&mut self, event: &Value, ids: &mut dyn IdGenerator) -> Vec<Report> {
        if self.over {
            return Vec::new();
        }
        let mut reports = Vec::new();
        if !goosed_turn_concerns_tool_calls(event) {
            self.start_called_tools(&mut reports);
        }
        match event["type"].as_str().unwrap_or_default() {
            "Message" => self.handle_message(&event["message"], ids, &mut reports),
            "Notification" => reports.extend(self.handle_notification(event)),
            "UpdateConversation" => {
                reports.push(goosed_turn_notice_report(Severity::Info, "Goose began its history anew"))
            }
            "ModelChange" => {
                reports.push(goosed_turn_notice_report(Severity::Info, &goosed_turn_model_change_text(event)))
            }
            "Error" => self.handle_error(event),
            "Finish" => self.handle_finish(event, &mut reports),
            // signs of life, and what newer versions may tell
            _ => {}
        }
        self.count_tokens(event, &mut reports);
        if self.over {
            reports.push(Report::Ended(self.run_outcome()));
        }
        reports
    }

    /// The stream is over before the turn is: what was received stays, and the run has failed.
    pub fn handle_stream_end(&mut self, why: &str) -> Vec<Report> {
        if self.over {
            return Vec::new();
        }
        self.over = true;
        let mut reports = Vec::new();
        self.start_called_tools(&mut reports);
        if self.open.take().is_some() {
            reports.push(goosed_turn_message_done(Vec::new(), None, true));
        }
        self.failure.get_or_insert_with(|| GoosedError::Cut(why.to_owned()));
        reports.push(Report::Ended(self.run_outcome()));
        reports
    }

    /// What goose is told of an answer, and what is to be reported; nothing if it did not ask.
    pub fn answer_question(
        &mut self,
        question: QuestionId,
        answer: &Answer,
    ) -> Option<(GoosedRequest, Option<Report>)> {
        let PendingTool { id, call, form } = self.asked.remove(&question)?;
        if form {
            let data = match &answer.reply {
                Reply::Filled { content } => content.clone(),
                Reply::Chosen { .. }
                | Reply::Rejected { .. }
                | Reply::Declined
                | Reply::Cancelled
                | Reply::Interrupted
                | Reply::Superseded => Value::Null,
            };
            return Some((GoosedRequest::Elicited { id, data }, None));
        }
        let ready = call.filter(|_| answer.reply.is_allowed()).map(|call| Report::ToolReady { call });
        Some((GoosedRequest::Confirm { id, action: request::goosed_confirmation_action(&answer.reply) }, ready))
    }

    fn run_outcome(&self) -> Outcome {
        match &self.failure {
            Some(trouble) => Outcome::failed(trouble.reason_code(), trouble.to_string()),
            None => Outcome::Completed { stop: StopReason::EndTurn },
        }
    }

    fn handle_error(&mut self, event: &Value) {
        let said = event["error"].as_str().unwrap_or("it gave no reason");
        let trouble = match said.contains("Session not found") {
            true => GoosedError::NotFound,
            false => GoosedError::Said(said.to_owned()),
        };
        self.failure.get_or_insert(trouble);
    }

    fn handle_finish(&mut self, event: &Value, reports: &mut Vec<Report>) {
        self.over = true;
        if self.open.take().is_some() {
            reports.push(goosed_turn_message_done(Vec::new(), None, false));
        }
        if self.before.is_none() {
            // Never told before: what the last call used is all there is.
            let (input, output) =
                token_counts(&event["token_state"], ["inputTokens", "input_tokens"], ["outputTokens", "output_tokens"]);
            reports.extend(self.usage_report(input, output));
        }
    }

    /// What a model call used shows in the sums that come with every event.
    fn count_tokens(&mut self, event: &Value, reports: &mut Vec<Report>) {
        let state = &event["token_state"];
        if state.get("accumulatedInputTokens").is_none_or(Value::is_null) {
            return;
        }
        let now = token_counts(state, ["accumulatedInputTokens"; 2], ["accumulatedOutputTokens"; 2]);
        let Some(before) = self.before.replace(now) else { return };
        let used = (now.0.saturating_sub(before.0), now.1.saturating_sub(before.1));
        reports.extend(self.usage_report(used.0, used.1));
    }

    fn usage_report(&self, input: u64, output: u64) -> Option<Report> {
        let usage = Usage { model: self.model.clone(), input, output, ..Usage::default() };
        (input + output > 0).then_some(Report::UsageAdded(usage))
    }

    fn handle_message(&mut self, message: &Value, ids: &mut dyn IdGenerator, reports: &mut Vec<Report>) {
        let id = message["id"].as_str().unwrap_or_default();
        let (mut tail, mut wanted) = (Vec::new(), Vec::new());
        for piece in message["content"].as_array().into_iter().flatten() {
            match piece["type"].as_str().unwrap_or_default() {
                "text" if message["role"] != "user" => {
                    self.append_text(id, DeltaKind::Text, &piece["text"], ids, reports)
                }
                "thinking" | "reasoning" => self.append_text(id, DeltaKind::Thought, &piece["thinking"], ids, reports),
                "toolRequest" | "frontendToolRequest" => wanted.push(self.tool_request(piece, ids)),
                "toolResponse" => self.handle_tool_response(piece, reports),
                "actionRequired" => self.ask_question(&piece["data"], ids, reports),
                "toolConfirmationRequest" => self.ask_question(piece, ids, reports),
                "systemNotification" => reports.extend(goosed_turn_system_notification(piece)),
                "text" | "redactedThinking" => {}
                _ => tail.push(read_goose_plain_content(piece)),
            }
        }
        if tail.is_empty() && wanted.is_empty() {
            return;
        }
        if self.open.take().is_none() {
            reports.push(Report::MessageStarted { message: MessageId::make(ids) });
        }
        tail.extend(wanted.iter().map(|(_, call)| Part::ToolUse {
            call: call.id,
            name: call.name.clone(),
            arguments: call.arguments.clone(),
        }));
        let theirs: Vec<&str> = wanted.iter().map(|(id, _)| id.as_str()).collect();
        let native = ProviderPayload { wire: PAYLOAD_NAME.to_owned(), items: json!({ "calls": theirs }) };
        reports.push(goosed_turn_message_done(tail, (!theirs.is_empty()).then_some(native), false));
        self.fresh.append(&mut wanted);
    }

    fn append_text(
        &mut self,
        id: &str,
        growth: DeltaKind,
        text: &Value,
        ids: &mut dyn IdGenerator,
        reports: &mut Vec<Report>,
    ) {
        let Some(text) = text.as_str().filter(|text| !text.is_empty()) else { return };
        if self.open.as_deref().is_some_and(|open| open != id) {
            reports.push(goosed_turn_message_done(Vec::new(), None, false));
            self.open = None;
        }
        if self.open.is_none() {
            reports.push(Report::MessageStarted { message: MessageId::make(ids) });
            self.open = Some(id.to_owned());
        }
        reports.push(Report::Deltas(vec![Delta { growth, text: text.to_owned() }]));
    }

    fn tool_request(&mut self, piece: &Value, ids: &mut dyn IdGenerator) -> (String, ToolCall) {
        let theirs = piece["id"].as_str().unwrap_or_default().to_owned();
        let call = unwrap_goose_content_outcome(&piece["toolCall"]);
        let name = call["name"].as_str().unwrap_or("unknown").to_owned();
        let arguments = call.get("arguments").filter(|arguments| arguments.is_object()).cloned();
        // Another server of our own kind has ids like ours: they stay the same at every door.
        let id = theirs.parse().unwrap_or_else(|_| ToolCallId::make(ids));
        self.calls.insert(theirs.clone(), id);
        let call = ToolCall {
            id,
            title: name.clone(),
            kind: goosed_turn_tool_kind(&name),
            name,
            arguments: arguments.unwrap_or_else(|| json!({})),
            locations: Vec::new(),
            idempotent: false,
        };
        (theirs, call)
    }

    /// Calls that did not ask run already.
    fn start_called_tools(&mut self, reports: &mut Vec<Report>) {
        reports.extend(self.fresh.drain(..).map(|(_, call)| Report::ToolWanted { call, gate: ToolGate::External }));
    }

    fn handle_tool_response(&mut self, piece: &Value, reports: &mut Vec<Report>) {
        self.start_called_tools(reports);
        let theirs = piece["id"].as_str().unwrap_or_default();
        if let Some(call) = self.calls.get(theirs) {
            self.asked.retain(|_, waiting| waiting.call != Some(*call));
            reports.push(Report::ToolDone { call: *call, result: read_goose_tool_result(&piece["toolResult"]) });
        }
    }

    fn ask_question(&mut self, data: &Value, ids: &mut dyn IdGenerator, reports: &mut Vec<Report>) {
        let Some(theirs) = data["id"].as_str().map(str::to_owned) else { return };
        let kind = data["actionType"].as_str().unwrap_or("toolConfirmation");
        if kind == "elicitationResponse" {
            return; // an answer that somebody gave
        }
        let (form, call) = (kind == "elicitation", self.calls.get(&theirs).copied());
        let text = |key: &str| data[key].as_str().map(str::to_owned);
        let (title, ask) = match form {
            true => {
                let schema = data.get("requested_schema").or_else(|| data.get("requestedSchema")).cloned();
                let ask = QuestionKind::Form { schema: schema.unwrap_or_else(|| json!({ "type": "object" })) };
                (sanitize::sanitized_line(&text("message").unwrap_or_else(|| "Goose asks".to_owned())), ask)
            }
            false => {
                let tool = text("toolName").unwrap_or_else(|| "a tool".to_owned());
                let prompt = text("prompt").unwrap_or_else(|| format!("Run {tool}?"));
                (
                    sanitize::sanitized_call_text(&tool, &data["arguments"], &prompt),
                    QuestionKind::Choose { choices: goosed_turn_confirmation_choices() },
                )
            }
        };
        let id = QuestionId::make(ids);
        let call = call.filter(|_| !form);
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
            meta: None,
        };
        let place = self.fresh.iter().position(|(fresh, _)| *fresh == theirs && !form);
        match place.map(|place| self.fresh.remove(place)) {
            Some((_, call)) => reports.push(Report::ToolWanted { call, gate: ToolGate::Ask(question) }),
            None => reports.push(Report::Asked(question)),
        }
        self.asked.insert(id, PendingTool { id: theirs, call, form });
    }

    /// A running tool says something.
    fn handle_notification(&mut self, event: &Value) -> Option<Report> {
        let call = *self.calls.get(event["request_id"].as_str()?)?;
        let params = &event["message"]["params"];
        let said = ["/data/output", "/data/message", "/data", "/message"]
            .iter()
            .find_map(|place| params.pointer(place)?.as_str())?;
        let content = vec![ToolContent::Part { part: Part::text(said) }];
        Some(Report::ToolUpdated { call, content })
    }
}

/// Whether a call asks first is known once something else is told.
fn goosed_turn_concerns_tool_calls(event: &Value) -> bool {
    const KINDS: [&str; 4] = ["toolRequest", "frontendToolRequest", "actionRequired", "toolConfirmationRequest"];
    let pieces = event["message"]["content"].as_array();
    pieces.is_some_and(|pieces| pieces.iter().any(|piece| KINDS.iter().any(|kind| piece["type"] == *kind)))
}

/// goose does not say what sort of thing a tool does: the names of its own ones do.
fn goosed_turn_tool_kind(name: &str) -> ToolKind {
    match name.rsplit("__").next().unwrap_or(name) {
        "shell" | "bash" | "execute_command" => ToolKind::Execute,
        "write" | "edit" | "text_editor" | "str_replace" => ToolKind::Edit,
        "read" | "view" | "tree" | "analyze" => ToolKind::Read,
        "search" | "grep" | "glob" => ToolKind::Search,
        "fetch" | "web_scrape" => ToolKind::Fetch,
        _ => ToolKind::Other,
    }
}

fn goosed_turn_confirmation_choices() -> Vec<Choice> {
    let choice = |id: &str, name: &str, kind| Choice { id: id.to_owned(), name: name.to_owned(), kind };
    vec![
        choice("allow_once", "Allow once", ChoiceKind::AllowOnce),
        choice("always_allow", "Always allow", ChoiceKind::AllowAlways),
        choice("deny_once", "Deny", ChoiceKind::RejectOnce),
        choice("always_deny", "Always deny", ChoiceKind::RejectAlways),
    ]
}

fn goosed_turn_message_done(tail: Vec<Part>, native: Option<ProviderPayload>, interrupted: bool) -> Report {
    Report::MessageDone { tail, native, interrupted }
}

fn goosed_turn_notice_report(severity: Severity, title: &str) -> Report {
    Report::Noticed(Notice { severity, title: title.to_owned(), detail: None })
}

fn goosed_turn_model_change_text(event: &Value) -> String {
    let text = |key: &str| event[key].as_str().unwrap_or_default();
    format!("Goose now uses {} ({})", text("model"), text("mode"))
}

/// What goose thinks aloud about itself is not worth telling.
fn goosed_turn_system_notification(piece: &Value) -> Option<Report> {
    let severity = match piece["notificationType"].as_str()? {
        "thinkingMessage" => return None,
        "creditsExhausted" => Severity::Warning,
        _ => Severity::Info,
    };
    Some(goosed_turn_notice_report(severity, piece["msg"].as_str()?))
}

/// Two counters, each under one of two names.
fn token_counts(state: &Value, input: [&str; 2], output: [&str; 2]) -> (u64, u64) {
    let number = |names: [&str; 2]| names.iter().find_map(|name| state[*name].as_u64()).unwrap_or(0);
    (number(input), number(output))
}
