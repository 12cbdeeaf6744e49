//! The other side of ACP-REST: what a server is told, and what the events of its run report. No IO.

use gander_domain::{
    DeltaKind, IdGenerator, Message as Said, Notice, Outcome, Part, Plan, QuestionId, QuestionKind, Reply, Report,
    Role, StopReason, ToolEnd, ToolResult,
};
use serde_json::{Map, Value, json};

use super::content::{acp_rest_message_part, read_acp_rest_part};
use super::types::MessagePart;
use crate::remote::{
    AnswerForm, CalledTool, RemoteAnswer, RemoteRequest, RemoteTurn, TurnReports, TurnStage,
    turn_report_described_question, turn_report_text_form,
};

/// One run of an agent behind a server that speaks ACP-REST.
#[derive(Debug)]
pub struct AcpRestClientTurn {
    agent: String,
    session: Option<String>,
    input: Vec<Value>,
    /// As the server calls it.
    run: Option<String>,
    asked: Option<AskedRemotely>,
    stage: TurnStage,
    reports: TurnReports,
    /// Calls have no ids here: they are counted.
    calls: usize,
    /// Pieces of the message that is being told.
    pieces: usize,
    seen: EventPosition,
    /// How far events that are told again were skipped; nothing while they are new.
    replayed: Option<EventPosition>,
}

/// A place among the events of a run: text may be cut otherwise when it is told again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct EventPosition {
    events: usize,
    /// Bytes of text after the last event that is none.
    text: usize,
}

/// What the run awaits.
#[derive(Debug)]
struct AskedRemotely {
    id: QuestionId,
    /// The server's own id of the question, if it is one of our kind.
    theirs: Option<Value>,
    is_choice: bool,
}

impl AcpRestClientTurn {
    /// A run of this agent, in a session that the server knows or in a new one, after what was said before.
    pub fn new(agent: &str, session: Option<String>, before: &[&Said], prompt: &[Part]) -> Self {
        let earlier = before.iter().filter_map(|message| acp_rest_input_message(message.role, &message.parts));
        let input = earlier.chain(acp_rest_input_message(Role::User, prompt)).collect();
        Self {
            agent: agent.to_owned(),
            session,
            input,
            run: None,
            asked: None,
            stage: TurnStage::Running,
            reports: TurnReports::default(),
            calls: 0,
            pieces: 0,
            seen: EventPosition::default(),
            replayed: None,
        }
    }

    fn handle_one(&mut self, event: &Value, ids: &mut dyn IdGenerator) {
        let kind = event["type"].as_str().unwrap_or_default();
        if self.stage == TurnStage::Over || (kind == "generic" && self.replayed.is_some()) {
            return;
        }
        if let Some((growth, text)) =
            Some(&event["part"]).filter(|_| kind == "message.part").and_then(acp_rest_grown_text)
        {
            let new = self.new_text(text).to_owned();
            self.pieces += 1;
            return self.reports.append_text(growth, &new, ids);
        }
        if kind != "generic" && !self.advance() {
            return;
        }
        match kind {
            "run.created" | "run.in-progress" => self.note_run(&event["run"]),
            "message.created" => self.pieces = 0,
            "message.part" => {
                self.pieces += 1;
                self.handle_part(&event["part"], ids);
            }
            "message.completed" => self.message_completed(&event["message"], ids),
            "run.awaiting" => self.run_awaits(&event["run"], ids),
            "generic" => self.handle_generic(&event["generic"]),
            "run.completed" => self.end(Outcome::Completed { stop: StopReason::EndTurn }),
            "run.cancelled" => self.end(Outcome::Cancelled),
            "run.failed" => self.end(acp_rest_failed_outcome(&event["run"]["error"])),
            "error" => self.end(acp_rest_failed_outcome(&event["error"])),
            // what newer versions may tell
            _ => {}
        }
    }

    /// Counts an event that is no text; false if it was told before.
    fn advance(&mut self) -> bool {
        if let Some(replayed) = &mut self.replayed {
            *replayed = EventPosition { events: replayed.events + 1, text: 0 };
            if replayed.events <= self.seen.events {
                return false;
            }
            self.replayed = None;
        }
        self.seen = EventPosition { events: self.seen.events + 1, text: 0 };
        true
    }

    /// What of a text is new.
    fn new_text<'a>(&mut self, text: &'a str) -> &'a str {
        let Some(replayed) = &mut self.replayed else {
            self.seen.text += text.len();
            return text;
        };
        let begins = replayed.text;
        replayed.text += text.len();
        if replayed.events < self.seen.events || replayed.text <= self.seen.text {
            return "";
        }
        let known = self.seen.text.saturating_sub(begins);
        self.seen.text = replayed.text;
        text.get(known..).unwrap_or_default()
    }

    fn note_run(&mut self, run: &Value) {
        let text = |key: &str| run[key].as_str().map(str::to_owned);
        self.run = text("run_id").or_else(|| self.run.take());
        self.session = text("session_id").or_else(|| self.session.take());
    }

    /// A piece that is no plain text: a tool, a picture, a file.
    fn handle_part(&mut self, part: &Value, ids: &mut dyn IdGenerator) {
        if let Some(tool) = part["metadata"]["tool_name"].as_str() {
            return self.handle_tool(tool, &part["metadata"], ids);
        }
        let read =
            serde_json::from_value::<MessagePart>(part.clone()).ok().and_then(|part| read_acp_rest_part(&part).ok());
        self.reports.append_part(read.unwrap_or_else(|| Part::Unknown(part.clone())), ids);
    }

    /// The same metadata tell of a call and of its result.
    fn handle_tool(&mut self, name: &str, trajectory: &Value, ids: &mut dyn IdGenerator) {
        let (arguments, output) = (&trajectory["tool_input"], &trajectory["tool_output"]);
        let open = self.reports.find_open(name, arguments).filter(|_| !output.is_null());
        let theirs = open.unwrap_or_else(|| {
            self.calls += 1;
            format!("call-{}", self.calls)
        });
        self.reports
            .tool_called(&CalledTool { theirs: &theirs, name, title: trajectory["message"].as_str(), arguments }, ids);
        if !output.is_null() {
            self.reports.tool_done(&theirs, acp_rest_tool_result(output));
        }
    }

    /// Servers that do not tell a message in pieces tell it here.
    fn message_completed(&mut self, message: &Value, ids: &mut dyn IdGenerator) {
        let untold = message["parts"].as_array().into_iter().flatten().filter(|_| self.pieces == 0);
        for part in untold.cloned().collect::<Vec<_>>() {
            match acp_rest_grown_text(&part) {
                Some((growth, text)) => self.reports.append_text(growth, text, ids),
                None => self.handle_part(&part, ids),
            }
        }
        self.pieces = 0;
        self.reports.finish_message(false);
    }

    fn run_awaits(&mut self, run: &Value, ids: &mut dyn IdGenerator) {
        self.note_run(run);
        let parts = run["await_request"]["message"]["parts"].as_array().cloned().unwrap_or_default();
        let of = |json: bool| {
            let is_json = |part: &&Value| part["content_type"].as_str().is_some_and(|mime| mime.ends_with("json"));
            parts.iter().filter(move |part| is_json(part) == json).filter_map(|part| part["content"].as_str())
        };
        let title = of(false).collect::<Vec<_>>().join("\n");
        let title = if title.is_empty() { "The agent waits for an answer".to_owned() } else { title };
        let detail: Value = of(true).find_map(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        let ask = turn_report_described_question(&detail).unwrap_or_else(turn_report_text_form);
        let is_choice = matches!(ask, QuestionKind::Choose { .. });
        let about = self.reports.fresh_call().filter(|_| is_choice);
        let id = self.reports.ask(&title, ask, about.as_deref(), ids);
        self.asked = Some(AskedRemotely { id, theirs: detail.get("question").cloned(), is_choice });
        self.stage = TurnStage::Asking;
    }

    /// What this protocol has no word for, as servers of our own kind tell it.
    fn handle_generic(&mut self, generic: &Value) {
        let report = match generic["kind"].as_str().unwrap_or_default() {
            "plan" => serde_json::from_value::<Plan>(generic["plan"].clone()).ok().map(Report::PlanSet),
            "notice" => serde_json::from_value::<Notice>(generic["notice"].clone()).ok().map(Report::Noticed),
            "title" => generic["title"].as_str().map(|title| Report::Titled(title.to_owned())),
            "usage" => serde_json::from_value(generic["usage"].clone()).ok().map(Report::UsageAdded),
            _ => None,
        };
        self.reports.extend(report);
    }

    fn end(&mut self, outcome: Outcome) {
        self.stage = TurnStage::Over;
        self.reports.end(outcome);
    }
}

impl RemoteTurn for AcpRestClientTurn {
    fn first_request(&self) -> RemoteRequest {
        let mut body = json!({ "agent_name": self.agent, "input": self.input, "mode": "stream" });
        if let Some(session) = &self.session {
            body["session_id"] = json!(session);
        }
        RemoteRequest::post("/runs", body, AnswerForm::Stream)
    }

    /// An event of a stream, or all events of the run from its first one.
    fn handle_event(&mut self, event: &Value, ids: &mut dyn IdGenerator) -> Vec<Report> {
        match event["events"].as_array() {
            Some(events) => {
                self.replayed = Some(EventPosition::default());
                events.iter().for_each(|event| self.handle_one(event, ids));
                self.replayed = None;
            }
            None => self.handle_one(event, ids),
        }
        self.reports.take()
    }

    fn answer_question(&mut self, question: QuestionId, reply: &Reply) -> RemoteAnswer {
        let (Some(asked), Some(run)) = (self.asked.take_if(|asked| asked.id == question), &self.run) else {
            return RemoteAnswer::default();
        };
        let message = json!({ "role": "user", "parts": acp_rest_answer_parts(&asked, reply) });
        let resume = json!({ "type": "message", "message": message });
        let body = json!({ "run_id": run, "await_resume": resume, "mode": "stream" });
        let request = RemoteRequest::post(format!("/runs/{run}"), body, AnswerForm::Stream);
        self.stage = TurnStage::Running;
        RemoteAnswer { report: self.reports.answered(question, reply.is_allowed()), request: Some(request) }
    }

    fn resume_request(&mut self) -> Option<RemoteRequest> {
        Some(RemoteRequest::get(format!("/runs/{}/events", self.run.as_ref()?)))
    }

    fn cancel_request(&self) -> Option<RemoteRequest> {
        let run = self.run.as_ref()?;
        Some(RemoteRequest::post(format!("/runs/{run}/cancel"), json!({}), AnswerForm::Whole))
    }

    fn handle_failure(&mut self, reason: &str, message: &str) -> Vec<Report> {
        self.end(Outcome::failed(reason, message));
        self.reports.take()
    }

    fn stage(&self) -> TurnStage {
        self.stage
    }

    fn remote_session(&self) -> Option<&str> {
        self.session.as_deref()
    }
}

/// A message with something that this protocol shows.
fn acp_rest_input_message(role: Role, parts: &[Part]) -> Option<Value> {
    let parts: Vec<MessagePart> = parts.iter().filter_map(acp_rest_message_part).collect();
    let role = match role {
        Role::User => "user",
        Role::Agent => "agent",
        Role::Tool => return None,
    };
    (!parts.is_empty()).then(|| json!({ "role": role, "parts": parts }))
}

/// A piece of text, or of a thought.
fn acp_rest_grown_text(part: &Value) -> Option<(DeltaKind, &str)> {
    let metadata = &part["metadata"];
    if metadata["kind"] == "trajectory" && metadata["tool_name"].is_null() {
        return metadata["message"].as_str().map(|text| (DeltaKind::Thought, text));
    }
    let is_plain = part["content_type"].as_str().is_none_or(|mime| mime.starts_with("text/plain"))
        && part["name"].is_null()
        && metadata["tool_name"].is_null()
        && part["content_encoding"] != "base64";
    part["content"].as_str().filter(|_| is_plain).map(|text| (DeltaKind::Text, text))
}

fn acp_rest_tool_result(output: &Value) -> ToolResult {
    let end = match output["status"].as_str() {
        Some("failed") => ToolEnd::Failed,
        Some("rejected") => ToolEnd::Rejected,
        Some("cancelled") => ToolEnd::Cancelled,
        Some("interrupted") => ToolEnd::Interrupted,
        Some(_) | None if output.get("error").is_some_and(|error| !error.is_null()) => ToolEnd::Failed,
        Some(_) | None => ToolEnd::Completed,
    };
    let mut rest: Map<String, Value> = output.as_object().cloned().unwrap_or_default();
    rest.remove("status");
    let text = rest.remove("text").and_then(|text| text.as_str().map(str::to_owned));
    let text = text.or_else(|| output.as_str().map(str::to_owned)).unwrap_or_default();
    let mut result = ToolResult::text(end, text);
    result.raw = (!rest.is_empty()).then_some(Value::Object(rest));
    result
}

fn acp_rest_failed_outcome(error: &Value) -> Outcome {
    let message = error["message"].as_str().unwrap_or("the agent gave no reason");
    let reason = error["data"]["reason"].as_str().or_else(|| error["code"].as_str()).unwrap_or("agent_failed");
    Outcome::failed(reason, message)
}

/// The choice or the content: in words, and as JSON for servers of our own kind and for forms.
fn acp_rest_answer_parts(asked: &AskedRemotely, reply: &Reply) -> Vec<Value> {
    let text = |text: &str| json!({ "content_type": "text/plain", "content": text });
    let data = |value: Value| json!({ "content_type": "application/json", "content": value.to_string() });
    match reply {
        Reply::Chosen { choice, .. } => match &asked.theirs {
            Some(theirs) => vec![text(choice), data(json!({ "question": theirs, "choice": choice }))],
            None => vec![text(choice)],
        },
        Reply::Filled { content } => match content["text"].as_str().filter(|_| asked.theirs.is_none()) {
            Some(said) => vec![text(said)],
            None => vec![data(content.clone())],
        },
        Reply::Rejected { .. } | Reply::Declined | Reply::Cancelled | Reply::Interrupted | Reply::Superseded => {
            vec![text(if asked.is_choice { "no" } else { "decline" })]
        }
    }
}
