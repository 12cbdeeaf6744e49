//! The other side of ADK's REST: what a server is told, and what the events of a run report. No IO.

use std::collections::HashSet;

use gander_domain::{
    DeltaKind, IdGenerator, Message, Outcome, Part, QuestionId, Reply, Report, Role, StopReason, ToolEnd, ToolResult,
    Usage,
};
use serde_json::{Value, json};

use super::content::{SentPart, read_adk_part, write_adk_part};
use crate::remote::{
    AnswerForm, CalledTool, RemoteAnswer, RemoteRequest, RemoteTurn, TurnReports, TurnStage, turn_report_text_form,
    turn_report_yes_or_no,
};

/// Where a session is at a server that speaks ADK's REST.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteSession {
    pub app: String,
    pub user: String,
    pub session: String,
}

/// One run of an agent behind a server that speaks ADK's REST.
#[derive(Debug)]
pub struct AdkClientTurn {
    address: RemoteSession,
    prompt: Vec<Value>,
    model: String,
    stage: TurnStage,
    reports: TurnReports,
    asked: Vec<AskedRemotely>,
    /// Answers that wait for the others: the server takes all of them together.
    answers: Vec<Value>,
    /// What was told in pieces since the last whole event, thoughts and words.
    streamed: [String; 2],
    /// Whole events that were taken in.
    seen: HashSet<String>,
    failure: Option<(String, String)>,
    /// The last whole event left nothing to do.
    is_final: bool,
    /// The session is read again: its events are the only sign of the turn's end.
    is_rereading: bool,
}

/// A call that stands for a question.
#[derive(Debug)]
struct AskedRemotely {
    id: QuestionId,
    /// The server's id and name of the call.
    call: String,
    name: String,
    is_open: bool,
}

/// The body that makes a session, with what was said before in it.
pub fn adk_new_session_body(before: &[&Message]) -> Value {
    let event = |(index, message): (usize, &&Message)| {
        let (author, role) = match message.role {
            Role::User => ("user", "user"),
            Role::Agent => ("agent", "model"),
            Role::Tool => return None,
        };
        let shown = message.parts.iter().filter(|part| !matches!(part, Part::ToolUse { .. } | Part::ToolResult { .. }));
        let parts: Vec<Value> = shown.map(write_adk_part).collect();
        (!parts.is_empty()).then(|| {
            json!({ "author": author, "invocationId": format!("before-{index}"),
                "content": { "role": role, "parts": parts } })
        })
    };
    let events: Vec<Value> = before.iter().enumerate().filter_map(event).collect();
    if events.is_empty() { json!({}) } else { json!({ "events": events }) }
}

impl RemoteSession {
    /// Where sessions of an app and a user are made.
    pub fn sessions_path(app: &str, user: &str) -> String {
        format!("/apps/{app}/users/{user}/sessions")
    }

    fn path(&self) -> String {
        format!("{}/{}", Self::sessions_path(&self.app, &self.user), self.session)
    }
}

impl AdkClientTurn {
    /// A run in this session. `known` are the ids of the events that it has already.
    pub fn new(address: RemoteSession, prompt: &[Part], model: &str, known: HashSet<String>) -> Self {
        Self {
            address,
            prompt: prompt.iter().map(write_adk_part).collect(),
            model: model.to_owned(),
            stage: TurnStage::Running,
            reports: TurnReports::default(),
            asked: Vec::new(),
            answers: Vec::new(),
            streamed: Default::default(),
            seen: known,
            failure: None,
            is_final: false,
            is_rereading: false,
        }
    }

    fn run_request(&self, parts: &[Value]) -> RemoteRequest {
        let RemoteSession { app, user, session } = &self.address;
        let message = json!({ "role": "user", "parts": parts });
        let body = json!({ "appName": app, "userId": user, "sessionId": session, "newMessage": message,
            "streaming": true });
        RemoteRequest::post("/run_sse", body, AnswerForm::Stream)
    }

    fn handle_one(&mut self, event: &Value, ids: &mut dyn IdGenerator) {
        // The original ends its stream with such an object when the agent raises an exception.
        if let Some(error) = event.get("error").filter(|error| !error.is_null()) {
            let text = error.as_str().map_or_else(|| error.to_string(), str::to_owned);
            self.failure.get_or_insert(("agent_failed".to_owned(), text));
            return;
        }
        let is_piece = event["partial"] == true;
        let id = event["id"].as_str().unwrap_or_default();
        if event["author"] == "user" || (!is_piece && !id.is_empty() && !self.seen.insert(id.to_owned())) {
            return;
        }
        if let Some(code) = event["errorCode"].as_str() {
            let message = event["errorMessage"].as_str().unwrap_or("the agent gave no reason");
            self.failure.get_or_insert((code.to_owned(), message.to_owned()));
        }
        let parts = event["content"]["parts"].as_array().cloned().unwrap_or_default();
        parts.iter().for_each(|part| self.handle_part(part, is_piece, ids));
        if is_piece {
            return;
        }
        if parts.iter().any(|part| part["text"].is_string()) {
            self.reports.finish_message(false);
        }
        self.streamed = Default::default();
        let leaves_work = |part: &Value| part.get("functionCall").or_else(|| part.get("functionResponse")).is_some();
        self.is_final = !parts.is_empty() && !parts.iter().any(leaves_work);
        self.add_usage(&event["usageMetadata"]);
    }

    fn handle_part(&mut self, part: &Value, is_piece: bool, ids: &mut dyn IdGenerator) {
        if let Some(text) = part["text"].as_str() {
            return self.handle_text(text, part["thought"] == true, is_piece, ids);
        }
        if let Some(call) = part.get("functionCall").filter(|_| !is_piece) {
            return self.handle_call(call, ids);
        }
        if let Some(response) = part.get("functionResponse").filter(|_| !is_piece) {
            let theirs = response["id"].as_str().unwrap_or_default();
            return self.reports.tool_done(theirs, adk_response_result(&response["response"]));
        }
        if !is_piece && let Ok(Some(SentPart::Part(part))) = read_adk_part(part, &[]) {
            self.reports.append_part(part, ids);
        }
    }

    /// What is whole was mostly told in pieces before.
    fn handle_text(&mut self, text: &str, is_thought: bool, is_piece: bool, ids: &mut dyn IdGenerator) {
        let growth = if is_thought { DeltaKind::Thought } else { DeltaKind::Text };
        let streamed = &mut self.streamed[usize::from(!is_thought)];
        if is_piece {
            streamed.push_str(text);
            return self.reports.append_text(growth, text, ids);
        }
        match text.strip_prefix(streamed.as_str()) {
            Some(rest) => {
                streamed.clear();
                self.reports.append_text(growth, rest, ids);
            }
            // One of several whole parts that were told as one stream of pieces.
            None if streamed.starts_with(text) => drop(streamed.drain(..text.len())),
            None => self.reports.append_text(growth, text, ids),
        }
    }

    fn handle_call(&mut self, call: &Value, ids: &mut dyn IdGenerator) {
        let text = |key: &str| call[key].as_str().unwrap_or_default();
        let (theirs, name, args) = (text("id"), text("name"), &call["args"]);
        let (title, ask, about) = match name {
            "adk_request_confirmation" => {
                let original = &args["originalFunctionCall"];
                let about = original["id"].as_str().unwrap_or_default();
                let (tool, arguments) = (original["name"].as_str().unwrap_or("tool"), &original["args"]);
                self.reports.tool_called(&CalledTool { theirs: about, name: tool, title: None, arguments }, ids);
                let hint = args["toolConfirmation"]["hint"].as_str().filter(|hint| !hint.is_empty());
                (
                    hint.map_or_else(|| format!("Run {tool}?"), str::to_owned),
                    turn_report_yes_or_no(),
                    Some(about.to_owned()),
                )
            }
            "adk_request_input" => {
                let schema = args.get("response_schema").or_else(|| args.get("responseSchema"));
                let schema = schema.filter(|schema| schema.is_object()).cloned();
                let ask =
                    schema.map_or_else(turn_report_text_form, |schema| gander_domain::QuestionKind::Form { schema });
                (args["message"].as_str().unwrap_or("The agent asks").to_owned(), ask, None)
            }
            _ => {
                let called = CalledTool { theirs, name, title: None, arguments: args };
                return self.reports.tool_called(&called, ids);
            }
        };
        let id = self.reports.ask(&title, ask, about.as_deref(), ids);
        self.asked.push(AskedRemotely { id, call: theirs.to_owned(), name: name.to_owned(), is_open: true });
    }

    fn add_usage(&mut self, usage: &Value) {
        let count = |key: &str| usage[key].as_u64().unwrap_or(0);
        let (input, output) = (count("promptTokenCount"), count("candidatesTokenCount"));
        if input + output > 0 {
            let (cached, thinking) = (count("cachedContentTokenCount"), count("thoughtsTokenCount"));
            let model = self.model.clone();
            self.reports.push(Report::UsageAdded(Usage { model, input, output, cached, thinking, ..Usage::default() }));
        }
    }

    /// The stream, or all events of the session, came to their end.
    fn settle(&mut self) {
        let outcome = match self.failure.take() {
            Some((reason, message)) => Outcome::failed(reason, message),
            None if self.asked.iter().any(|asked| asked.is_open) => {
                self.stage = TurnStage::Asking;
                return;
            }
            None => Outcome::Completed { stop: StopReason::EndTurn },
        };
        self.stage = TurnStage::Over;
        self.reports.end(outcome);
    }
}

impl RemoteTurn for AdkClientTurn {
    fn first_request(&self) -> RemoteRequest {
        self.run_request(&self.prompt)
    }

    /// An event of a stream, or the session as it is now.
    fn handle_event(&mut self, event: &Value, ids: &mut dyn IdGenerator) -> Vec<Report> {
        match event["events"].as_array() {
            Some(events) => {
                events.iter().for_each(|event| self.handle_one(event, ids));
                let asks = self.asked.iter().any(|asked| asked.is_open);
                if self.is_rereading && (self.is_final || asks || self.failure.is_some()) {
                    self.is_rereading = false;
                    self.settle();
                }
            }
            None => self.handle_one(event, ids),
        }
        self.reports.take()
    }

    /// There is no last event: the end of the stream is the end of the run.
    fn handle_stream_end(&mut self) -> Vec<Report> {
        self.settle();
        self.reports.take()
    }

    fn answer_question(&mut self, question: QuestionId, reply: &Reply) -> RemoteAnswer {
        let Some(asked) = self.asked.iter_mut().find(|asked| asked.id == question && asked.is_open) else {
            return RemoteAnswer::default();
        };
        asked.is_open = false;
        let response = adk_answer_response(&asked.name, reply);
        let response = json!({ "id": asked.call, "name": asked.name, "response": response });
        self.answers.push(json!({ "functionResponse": response }));
        let report = self.reports.answered(question, reply.is_allowed());
        if self.asked.iter().any(|asked| asked.is_open) {
            return RemoteAnswer { report, request: None };
        }
        self.asked.clear();
        (self.stage, self.is_final) = (TurnStage::Running, false);
        let answers = std::mem::take(&mut self.answers);
        RemoteAnswer { report, request: Some(self.run_request(&answers)) }
    }

    /// Nothing streams the rest: the session is read again until it shows an end.
    fn resume_request(&mut self) -> Option<RemoteRequest> {
        self.is_rereading = true;
        Some(RemoteRequest::get(self.address.path()))
    }

    /// A run stops when its stream is left.
    fn cancel_request(&self) -> Option<RemoteRequest> {
        None
    }

    fn handle_failure(&mut self, reason: &str, message: &str) -> Vec<Report> {
        self.stage = TurnStage::Over;
        self.reports.end(Outcome::failed(reason, message));
        self.reports.take()
    }

    fn stage(&self) -> TurnStage {
        self.stage
    }

    fn remote_session(&self) -> Option<&str> {
        Some(&self.address.session)
    }
}

fn adk_response_result(response: &Value) -> ToolResult {
    if let Some(error) = response.get("error").filter(|error| !error.is_null()) {
        let text = error.as_str().map_or_else(|| error.to_string(), str::to_owned);
        let rejected = text.contains("call is rejected");
        return ToolResult::text(if rejected { ToolEnd::Rejected } else { ToolEnd::Failed }, text);
    }
    let text = ["result", "output"].iter().find_map(|key| response[*key].as_str());
    let text = text.map_or_else(|| response.to_string(), str::to_owned);
    let mut result = ToolResult::text(ToolEnd::Completed, text);
    let is_more = response.as_object().is_some_and(|fields| fields.keys().any(|key| key != "result"));
    result.raw = is_more.then(|| response.clone());
    result
}

/// The original takes nothing but a flag for a confirmation.
fn adk_answer_response(name: &str, reply: &Reply) -> Value {
    match (name, reply) {
        ("adk_request_confirmation", reply) => json!({ "confirmed": reply.is_allowed() }),
        (_, Reply::Filled { content }) => content.clone(),
        (_, Reply::Chosen { choice, .. }) => json!({ "choice": choice }),
        (_, Reply::Rejected { .. } | Reply::Declined | Reply::Cancelled | Reply::Interrupted | Reply::Superseded) => {
            json!({ "confirmed": false })
        }
    }
}
