//! What every turn of another server reports in the same way: messages that grow, tools, questions, the end.

use gander_domain::sanitize;
use gander_domain::{
    Choice, ChoiceKind, Delta, DeltaKind, IdGenerator, MessageId, Outcome, Part, Question, QuestionId, QuestionKind,
    QuestionOrigin, Report, ToolCall, ToolCallId, ToolGate, ToolKind, ToolResult,
};
use serde_json::{Value, json};

/// Gathers the reports of a turn.
#[derive(Debug, Default)]
pub(crate) struct TurnReports {
    reports: Vec<Report>,
    has_open_message: bool,
    calls: Vec<RemoteCall>,
}

/// A tool that the peer says it uses.
#[derive(Debug)]
struct RemoteCall {
    /// The peer's id, or whatever else tells calls apart there.
    theirs: String,
    call: ToolCall,
    stage: CallStage,
}

/// As a peer describes a call.
#[derive(Debug)]
pub(crate) struct CalledTool<'a> {
    pub(crate) theirs: &'a str,
    pub(crate) name: &'a str,
    pub(crate) title: Option<&'a str>,
    pub(crate) arguments: &'a Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallStage {
    /// Wanted, and not yet known whether it asks first.
    Fresh,
    Asked(QuestionId),
    Started,
    Done,
}

impl TurnReports {
    /// What was gathered.
    pub(crate) fn take(&mut self) -> Vec<Report> {
        std::mem::take(&mut self.reports)
    }

    pub(crate) fn push(&mut self, report: Report) {
        self.reports.push(report);
    }

    pub(crate) fn extend(&mut self, reports: impl IntoIterator<Item = Report>) {
        self.reports.extend(reports);
    }

    /// The open message grows.
    pub(crate) fn append_text(&mut self, growth: DeltaKind, text: &str, ids: &mut dyn IdGenerator) {
        if text.is_empty() {
            return;
        }
        self.start_fresh_calls();
        self.ensure_message(ids);
        let delta = Delta { growth, text: text.to_owned() };
        match self.reports.last_mut() {
            Some(Report::Deltas(deltas)) => deltas.push(delta),
            Some(_) | None => self.reports.push(Report::Deltas(vec![delta])),
        }
    }

    /// A part that does not grow: it closes the message.
    pub(crate) fn append_part(&mut self, part: Part, ids: &mut dyn IdGenerator) {
        self.start_fresh_calls();
        self.ensure_message(ids);
        self.has_open_message = false;
        self.reports.push(Report::MessageDone { tail: vec![part], native: None, interrupted: false });
    }

    /// The open message, if there is one, is whole.
    pub(crate) fn finish_message(&mut self, interrupted: bool) {
        if std::mem::take(&mut self.has_open_message) {
            self.reports.push(Report::MessageDone { tail: Vec::new(), native: None, interrupted });
        }
    }

    /// The peer uses a tool. Whether it asks first is seen by what follows.
    pub(crate) fn tool_called(&mut self, called: &CalledTool<'_>, ids: &mut dyn IdGenerator) {
        if self.find_call(called.theirs).is_some() {
            return;
        }
        self.start_fresh_calls();
        // Another server of our own kind has ids like ours: they stay the same everywhere.
        let own_form = called.theirs.strip_prefix("adk-").unwrap_or(called.theirs);
        let id = own_form.parse().unwrap_or_else(|_| ToolCallId::make(ids));
        let arguments = if called.arguments.is_object() { called.arguments.clone() } else { json!({}) };
        let name = called.name.to_owned();
        let title = called.title.filter(|title| !title.is_empty()).unwrap_or(called.name).to_owned();
        self.ensure_message(ids);
        self.has_open_message = false;
        let tail = vec![Part::ToolUse { call: id, name: name.clone(), arguments: arguments.clone() }];
        self.reports.push(Report::MessageDone { tail, native: None, interrupted: false });
        let kind = ToolKind::Other;
        let call = ToolCall { id, name, title, kind, arguments, locations: Vec::new(), idempotent: false };
        self.calls.push(RemoteCall { theirs: called.theirs.to_owned(), call, stage: CallStage::Fresh });
    }

    /// The peer says more of a call than its name.
    pub(crate) fn describe_call(&mut self, theirs: &str, described: &Value) {
        let described: Option<ToolCall> = serde_json::from_value(described.clone()).ok();
        if let (Some(call), Some(described)) = (self.find_call_mut(theirs), described) {
            call.call = ToolCall { id: call.call.id, idempotent: false, ..described };
        }
    }

    /// A tool shows something while it runs.
    pub(crate) fn tool_updated(&mut self, theirs: &str, content: Vec<gander_domain::ToolContent>) {
        self.start_fresh_calls();
        if let Some(call) = self.find_call(theirs).filter(|call| call.stage == CallStage::Started) {
            self.reports.push(Report::ToolUpdated { call: call.call.id, content });
        }
    }

    /// A tool came to its end. One that still asks has none: what the peer says is a placeholder.
    pub(crate) fn tool_done(&mut self, theirs: &str, result: ToolResult) {
        self.start_fresh_calls();
        let Some(call) = self.find_call_mut(theirs) else { return };
        if matches!(call.stage, CallStage::Asked(_) | CallStage::Done) {
            return;
        }
        call.stage = CallStage::Done;
        let id = call.call.id;
        self.reports.push(Report::ToolDone { call: id, result });
    }

    /// The peer's id of the newest call of this name and these arguments that has no end.
    pub(crate) fn find_open(&self, name: &str, arguments: &Value) -> Option<String> {
        let open = |call: &&RemoteCall| call.stage != CallStage::Done && call.call.name == name;
        let same = |call: &&RemoteCall| call.call.arguments == *arguments;
        let mut calls = self.calls.iter().rev().filter(open);
        let exact = self.calls.iter().rev().filter(open).find(same);
        exact.or_else(|| calls.next()).map(|call| call.theirs.clone())
    }

    /// The call that waits to hear whether it asks, if there is one.
    pub(crate) fn fresh_call(&self) -> Option<String> {
        self.calls.iter().rev().find(|call| call.stage == CallStage::Fresh).map(|call| call.theirs.clone())
    }

    /// The peer asks, about a call or about nothing.
    pub(crate) fn ask(
        &mut self,
        title: &str,
        ask: QuestionKind,
        about: Option<&str>,
        ids: &mut dyn IdGenerator,
    ) -> QuestionId {
        let id = QuestionId::make(ids);
        self.finish_message(false);
        let asked = about.and_then(|theirs| self.calls.iter_mut().find(|call| call.theirs == theirs));
        let mut question = turn_report_question(id, title, ask);
        let report = match asked {
            Some(call) if call.stage != CallStage::Done => {
                question.call = Some(call.call.id);
                question.title = sanitize::sanitized_call_text(&call.call.name, &call.call.arguments, title);
                match std::mem::replace(&mut call.stage, CallStage::Asked(id)) {
                    CallStage::Fresh => Report::ToolWanted { call: call.call.clone(), gate: ToolGate::Ask(question) },
                    CallStage::Asked(_) | CallStage::Started | CallStage::Done => Report::Asked(question),
                }
            }
            Some(_) | None => Report::Asked(question),
        };
        self.start_fresh_calls();
        self.reports.push(report);
        id
    }

    /// What an answer starts. A tool that was refused is over when the peer says so.
    pub(crate) fn answered(&mut self, question: QuestionId, is_allowed: bool) -> Option<Report> {
        let call = self.calls.iter_mut().find(|call| call.stage == CallStage::Asked(question))?;
        call.stage = CallStage::Started;
        is_allowed.then_some(Report::ToolReady { call: call.call.id })
    }

    /// The turn is over.
    pub(crate) fn end(&mut self, outcome: Outcome) {
        self.start_fresh_calls();
        self.finish_message(matches!(outcome, Outcome::Failed { .. }));
        self.reports.push(Report::Ended(outcome));
    }

    /// Calls that did not ask run already.
    fn start_fresh_calls(&mut self) {
        for call in self.calls.iter_mut().filter(|call| call.stage == CallStage::Fresh) {
            call.stage = CallStage::Started;
            self.reports.push(Report::ToolWanted { call: call.call.clone(), gate: ToolGate::External });
        }
    }

    fn ensure_message(&mut self, ids: &mut dyn IdGenerator) {
        if !std::mem::replace(&mut self.has_open_message, true) {
            self.reports.push(Report::MessageStarted { message: MessageId::make(ids) });
        }
    }

    fn find_call(&self, theirs: &str) -> Option<&RemoteCall> {
        self.calls.iter().find(|call| call.theirs == theirs)
    }

    fn find_call_mut(&mut self, theirs: &str) -> Option<&mut RemoteCall> {
        self.calls.iter_mut().find(|call| call.theirs == theirs)
    }
}

fn turn_report_question(id: QuestionId, title: &str, ask: QuestionKind) -> Question {
    Question {
        id,
        call: None,
        title: sanitize::sanitized_line(title),
        ask,
        origin: QuestionOrigin::Held,
        fingerprint: None,
        plan: None,
        subagent: None,
        preview: Vec::new(),
        outward: None,
        meta: None,
    }
}

/// A form of one text: what a peer asks that says no more than its words.
pub(crate) fn turn_report_text_form() -> QuestionKind {
    let text = json!({ "type": "string" });
    QuestionKind::Form { schema: json!({ "type": "object", "properties": { "text": text }, "required": ["text"] }) }
}

/// Yes or no, where the peer knows no other answers.
pub(crate) fn turn_report_yes_or_no() -> QuestionKind {
    let choice = |id: &str, name: &str, kind| Choice { id: id.to_owned(), name: name.to_owned(), kind };
    let choices = vec![
        choice("allow_once", "Allow once", ChoiceKind::AllowOnce),
        choice("reject_once", "Reject", ChoiceKind::RejectOnce),
    ];
    QuestionKind::Choose { choices }
}

/// What a peer of our own kind asks, from the details that it tells beside its words.
pub(crate) fn turn_report_described_question(detail: &Value) -> Option<QuestionKind> {
    if let Some(choices) = detail.get("choices") {
        let choices: Vec<Choice> = serde_json::from_value(choices.clone()).ok()?;
        return (!choices.is_empty()).then_some(QuestionKind::Choose { choices });
    }
    if let Some(schema) = detail.get("schema") {
        return Some(QuestionKind::Form { schema: schema.clone() });
    }
    let url = detail.get("url")?.as_str()?;
    Some(QuestionKind::Visit { url: url.to_owned() })
}
