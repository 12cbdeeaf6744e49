//! The other side of A2A, 1.0 and 0.3: what a server is told, and what the updates of its task report. No IO.

mod interface;
mod parts;

use std::collections::{HashMap, HashSet};

use gander_domain::{
    DeltaKind, IdGenerator, Notice, Outcome, Part, Plan, QuestionId, QuestionKind, Reply, Report, StopReason,
};
use serde_json::{Map, Value, json};

pub use self::interface::{A2aBinding, A2aInterface, NoInterface};
use self::parts::{
    ReadPart, a2a_client_answer_parts, a2a_client_function_result_part, a2a_client_parts_text, a2a_client_prompt_parts,
    read_a2a_client_part,
};
use super::{A2aMessage, EXTENSION, TaskState};
use crate::remote::{
    AnswerForm, CalledTool, RemoteAnswer, RemoteRequest, RemoteTurn, TurnReports, TurnStage,
    turn_report_described_question, turn_report_text_form,
};

/// One task of an agent behind a server that speaks A2A.
#[derive(Debug)]
pub struct A2aClientTurn {
    interface: A2aInterface,
    first: A2aMessage,
    context: Option<String>,
    task: Option<String>,
    stage: TurnStage,
    reports: TurnReports,
    asked: Option<AskedRemotely>,
    artifacts: HashMap<String, KnownArtifact>,
    open_artifact: Option<String>,
    /// Messages that were taken in, by their ids: a task that is read again repeats them.
    messages: HashSet<String>,
    /// Whether anything was said that is no thought.
    has_spoken: bool,
    resumes: usize,
}

/// What was told of an artifact.
#[derive(Clone, Copy, Debug, Default)]
struct KnownArtifact {
    /// Bytes of its text.
    text: usize,
    /// Parts that are no text.
    others: usize,
}

/// What the task waits for.
#[derive(Debug)]
pub(super) struct AskedRemotely {
    id: QuestionId,
    /// The server's own id of the question, if it is one of our kind.
    pub(super) theirs: Option<Value>,
    pub(super) is_choice: bool,
}

impl A2aClientTurn {
    /// A task in a context that the server knows or in a new one. The message's id makes it one task, however often it is sent.
    pub fn new(interface: A2aInterface, context: Option<String>, message_id: &str, prompt: &[Part]) -> Self {
        let first = a2a_client_prompt_parts(message_id, context.clone(), prompt);
        Self {
            interface,
            first,
            context,
            task: None,
            stage: TurnStage::Running,
            reports: TurnReports::default(),
            asked: None,
            artifacts: HashMap::new(),
            open_artifact: None,
            messages: HashSet::new(),
            has_spoken: false,
            resumes: 0,
        }
    }

    /// A bare update, whatever the binding put around it.
    fn handle_update(&mut self, update: &Value, ids: &mut dyn IdGenerator) {
        let named = |name: &str| update.get(name).filter(|inner| inner.is_object());
        match update["kind"].as_str() {
            Some("task") => self.handle_task(update, ids),
            Some("message") => self.handle_reply(update, ids),
            Some("status-update") => self.handle_status_update(update, ids),
            Some("artifact-update") => self.handle_artifact_update(update, ids),
            Some(_) | None => {
                if let Some(task) = named("task") {
                    self.handle_task(task, ids);
                } else if let Some(message) = named("message") {
                    self.handle_reply(message, ids);
                } else if let Some(status) = named("statusUpdate") {
                    self.handle_status_update(status, ids);
                } else if let Some(artifact) = named("artifactUpdate") {
                    self.handle_artifact_update(artifact, ids);
                } else if update["status"].is_object() {
                    self.handle_task(update, ids);
                }
            }
        }
    }

    fn note_ids(&mut self, task: &Value, context: &Value) {
        let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        self.task = text(task).or_else(|| self.task.take());
        self.context = text(context).or_else(|| self.context.take());
    }

    /// All of a task, the first time or again.
    fn handle_task(&mut self, task: &Value, ids: &mut dyn IdGenerator) {
        self.note_ids(&task["id"], &task["contextId"]);
        for message in task["history"].as_array().into_iter().flatten() {
            let is_agent = matches!(message["role"].as_str(), Some("agent" | "ROLE_AGENT"));
            if is_agent && self.messages.insert(message["messageId"].to_string()) {
                self.handle_progress(message, ids);
            }
        }
        for artifact in task["artifacts"].as_array().into_iter().flatten() {
            self.apply_artifact(artifact, false, ids);
        }
        self.handle_status(&task["status"], &task["metadata"], ids);
    }

    /// An answer without a task.
    fn handle_reply(&mut self, message: &Value, ids: &mut dyn IdGenerator) {
        self.note_ids(&Value::Null, &message["contextId"]);
        for part in a2a_client_message_parts(message) {
            self.say_part(&part, ids);
        }
        self.end(Outcome::Completed { stop: StopReason::EndTurn });
    }

    fn handle_artifact_update(&mut self, update: &Value, ids: &mut dyn IdGenerator) {
        self.note_ids(&update["taskId"], &update["contextId"]);
        self.apply_artifact(&update["artifact"], update["append"] == true, ids);
        if update["lastChunk"] == true {
            self.open_artifact = None;
            self.reports.finish_message(false);
        }
    }

    /// An artifact is a message of the agent. One that is told whole again repeats what was told in pieces.
    fn apply_artifact(&mut self, artifact: &Value, append: bool, ids: &mut dyn IdGenerator) {
        let id = artifact["artifactId"].as_str().unwrap_or_default().to_owned();
        if self.open_artifact.as_ref() != Some(&id) {
            self.reports.finish_message(false);
            self.open_artifact = Some(id.clone());
        }
        let mut known = self.artifacts.get(&id).copied().unwrap_or_default();
        let mut repeated = if append { KnownArtifact::default() } else { known };
        if !append {
            known = KnownArtifact::default();
        }
        for part in a2a_client_message_parts(artifact) {
            match read_a2a_client_part(&part) {
                ReadPart::Text { text, .. } => {
                    known.text += text.len();
                    let skipped = repeated.text.min(text.len());
                    repeated.text -= skipped;
                    let new = text.get(skipped..).unwrap_or(text);
                    self.has_spoken |= !new.is_empty();
                    self.reports.append_text(DeltaKind::Text, new, ids);
                }
                ReadPart::Data(_) | ReadPart::File(_) => {
                    known.others += 1;
                    match repeated.others.checked_sub(1) {
                        Some(rest) => repeated.others = rest,
                        None => self.say_part(&part, ids),
                    }
                }
            }
        }
        self.artifacts.insert(id, known);
    }

    /// Something that the agent says or does.
    fn say_part(&mut self, part: &Value, ids: &mut dyn IdGenerator) {
        match read_a2a_client_part(part) {
            ReadPart::Text { text, is_thought } => {
                let growth = if is_thought { DeltaKind::Thought } else { DeltaKind::Text };
                self.has_spoken |= !is_thought;
                self.reports.append_text(growth, text, ids);
            }
            ReadPart::Data(data) => {
                if !self.handle_data(&data, &part["metadata"], ids) {
                    self.has_spoken = true;
                    self.reports.append_part(Part::Unknown(data), ids);
                }
            }
            ReadPart::File(file) => {
                self.has_spoken = true;
                self.reports.append_part(*file, ids);
            }
        }
    }

    fn handle_status_update(&mut self, update: &Value, ids: &mut dyn IdGenerator) {
        self.note_ids(&update["taskId"], &update["contextId"]);
        self.handle_status(&update["status"], &update["metadata"], ids);
    }

    fn handle_status(&mut self, status: &Value, metadata: &Value, ids: &mut dyn IdGenerator) {
        // The protobuf of 0.3 spells one state with two l.
        let name = status["state"].as_str().unwrap_or_default().replace("CANCELLED", "CANCELED");
        let message = &status["message"];
        let Some(state) = TaskState::parse(&name) else { return };
        let is_new = !message.is_object() || self.messages.insert(message["messageId"].to_string());
        match state {
            TaskState::Submitted | TaskState::Working if is_new => self.handle_progress(message, ids),
            TaskState::Submitted | TaskState::Working => {}
            TaskState::InputRequired | TaskState::AuthRequired if is_new => self.task_asks(message, ids),
            TaskState::InputRequired | TaskState::AuthRequired => {}
            TaskState::Completed => {
                if !self.has_spoken {
                    a2a_client_message_parts(message).iter().for_each(|part| self.say_part(part, ids));
                }
                self.end(Outcome::Completed { stop: a2a_client_stop_reason(metadata) });
            }
            TaskState::Rejected => self.end(Outcome::Completed { stop: StopReason::Refusal }),
            TaskState::Canceled => self.end(Outcome::Cancelled),
            TaskState::Failed => {
                let reason = metadata[EXTENSION]["reason"].as_str().unwrap_or("agent_failed");
                let text = a2a_client_parts_text(message);
                let text = if text.is_empty() { "the agent gave no reason".to_owned() } else { text };
                self.end(Outcome::failed(reason, text));
            }
        }
    }

    /// What an agent says of its work while it works is no answer yet: it is shown as a thought.
    fn handle_progress(&mut self, message: &Value, ids: &mut dyn IdGenerator) {
        let parts = a2a_client_message_parts(message);
        let is_described = parts.iter().any(|part| part["data"]["kind"] == "tool_called");
        for part in &parts {
            match read_a2a_client_part(part) {
                ReadPart::Text { text, .. } if !is_described => {
                    self.reports.append_text(DeltaKind::Thought, text, ids);
                }
                ReadPart::Text { .. } => {}
                ReadPart::Data(data) => drop(self.handle_data(&data, &part["metadata"], ids)),
                ReadPart::File(file) => self.reports.append_part(*file, ids),
            }
        }
    }

    /// Data that tell of tools and plans: ours by our extension, or those of Google's ADK. False for any other.
    fn handle_data(&mut self, data: &Value, metadata: &Value, ids: &mut dyn IdGenerator) -> bool {
        let call_id = data["call"].as_str().unwrap_or_default();
        let read_notice = || serde_json::from_value::<Notice>(data["notice"].clone()).ok().map(Report::Noticed);
        let read_plan = || serde_json::from_value::<Plan>(json!({ "items": data["items"] })).ok().map(Report::PlanSet);
        match (data["kind"].as_str(), metadata["adk_type"].as_str()) {
            (Some("tool_called"), _) => self.tool_described(&data["call"], ids),
            (Some("tool_updated"), _) => {
                let content = serde_json::from_value(data["content"].clone()).unwrap_or_default();
                self.reports.tool_updated(call_id, content);
            }
            (Some("tool_done"), _) => {
                if let Ok(result) = serde_json::from_value(data["result"].clone()) {
                    self.reports.tool_done(call_id, result);
                }
            }
            (Some("plan"), _) => self.reports.extend(read_plan()),
            (Some("notice"), _) => self.reports.extend(read_notice()),
            (Some("tool_started" | "state" | "routed" | "artifact_saved" | "question" | "thought"), _) => {}
            (_, Some("function_call")) => {
                let text = |key: &str| data[key].as_str().unwrap_or_default();
                let called =
                    CalledTool { theirs: text("id"), name: text("name"), title: None, arguments: &data["args"] };
                self.reports.tool_called(&called, ids);
            }
            (_, Some("function_response")) => {
                let theirs = data["id"].as_str().unwrap_or_default();
                self.reports.tool_done(theirs, a2a_client_function_result_part(&data["response"]));
            }
            (Some(_) | None, _) => return false,
        }
        true
    }

    fn tool_described(&mut self, call: &Value, ids: &mut dyn IdGenerator) {
        let text = |key: &str| call[key].as_str().unwrap_or_default();
        let (theirs, title, arguments) = (text("id"), Some(text("title")), &call["arguments"]);
        self.reports.tool_called(&CalledTool { theirs, name: text("name"), title, arguments }, ids);
        self.reports.describe_call(theirs, call);
    }

    fn task_asks(&mut self, message: &Value, ids: &mut dyn IdGenerator) {
        let parts = a2a_client_message_parts(message);
        let detail = parts.iter().map(|part| &part["data"]).find(|data| data["kind"] == "question");
        let detail = detail.cloned().unwrap_or_default();
        let ask = turn_report_described_question(&detail).unwrap_or_else(turn_report_text_form);
        let said = a2a_client_parts_text(message);
        let title = detail["title"].as_str().unwrap_or(&said);
        let title = if title.is_empty() { "The agent waits for an answer" } else { title };
        let is_choice = matches!(ask, QuestionKind::Choose { .. });
        let id = self.reports.ask(title, ask, detail["call"].as_str(), ids);
        self.asked = Some(AskedRemotely { id, theirs: detail.get("id").cloned(), is_choice });
        self.open_artifact = None;
        self.stage = TurnStage::Asking;
    }

    fn end(&mut self, outcome: Outcome) {
        if self.stage != TurnStage::Over {
            self.stage = TurnStage::Over;
            self.reports.end(outcome);
        }
    }
}

impl RemoteTurn for A2aClientTurn {
    fn first_request(&self) -> RemoteRequest {
        self.interface.send_request(&self.first)
    }

    fn handle_event(&mut self, event: &Value, ids: &mut dyn IdGenerator) -> Vec<Report> {
        if self.stage == TurnStage::Over {
            return Vec::new();
        }
        match (event.get("result"), event.get("error")) {
            (_, Some(error)) if !error.is_null() => {
                let message = error["message"].as_str().unwrap_or("the agent gave no reason").to_owned();
                self.end(Outcome::failed("agent_refused", message));
            }
            (Some(result), _) => self.handle_update(result, ids),
            (None, _) => self.handle_update(event, ids),
        }
        self.reports.take()
    }

    fn answer_question(&mut self, question: QuestionId, reply: &Reply) -> RemoteAnswer {
        let Some(asked) = self.asked.take_if(|asked| asked.id == question) else { return RemoteAnswer::default() };
        let mut message = a2a_client_prompt_parts(&format!("{question}-answer"), self.context.clone(), &[]);
        message.task_id.clone_from(&self.task);
        message.parts = a2a_client_answer_parts(&asked, reply);
        message.metadata =
            asked.theirs.map(|theirs| Map::from_iter([(EXTENSION.to_owned(), json!({ "question": theirs }))]));
        self.stage = TurnStage::Running;
        let report = self.reports.answered(question, reply.is_allowed());
        RemoteAnswer { report, request: Some(self.interface.send_request(&message)) }
    }

    /// By a subscription where the server streams, and by looking at the task: one that is over has no subscription.
    fn resume_request(&mut self) -> Option<RemoteRequest> {
        let task = self.task.as_ref()?;
        self.resumes += 1;
        match self.interface.streams && self.resumes % 2 == 1 {
            true => Some(self.interface.task_request("subscribe", task, AnswerForm::Stream)),
            false => Some(self.interface.task_request("get", task, AnswerForm::Whole)),
        }
    }

    fn cancel_request(&self) -> Option<RemoteRequest> {
        Some(self.interface.task_request("cancel", self.task.as_ref()?, AnswerForm::Whole))
    }

    fn handle_failure(&mut self, reason: &str, message: &str) -> Vec<Report> {
        self.end(Outcome::failed(reason, message));
        self.reports.take()
    }

    fn stage(&self) -> TurnStage {
        self.stage
    }

    fn remote_session(&self) -> Option<&str> {
        self.context.as_deref()
    }
}

fn a2a_client_message_parts(message: &Value) -> Vec<Value> {
    message["parts"].as_array().cloned().unwrap_or_default()
}

fn a2a_client_stop_reason(metadata: &Value) -> StopReason {
    serde_json::from_value(metadata[EXTENSION]["stopReason"].clone()).unwrap_or(StopReason::EndTurn)
}
