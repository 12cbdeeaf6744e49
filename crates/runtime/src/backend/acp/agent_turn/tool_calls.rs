//! The tool calls of an agent elsewhere: when they are wanted, asked about, started and over.

use gander_client::schema::{self, RequestPermissionRequest, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields};
use gander_domain::{
    IdGenerator, MessageId, Part, Question, QuestionId, Report, ToolCall, ToolCallId, ToolContent, ToolEnd, ToolGate,
    ToolKind, ToolResult,
};
use gander_wire::acp::content::acp_tool_content;
use gander_wire::acp::merge_agent_words;
use gander_wire::acp::projection::acp_tool_call;
use serde_json::{Value, json};

use super::AgentTurn;
use super::content::{agent_turn_tool_content, agent_turn_tool_location, agent_turn_word_by_name};
use super::said_besides::SaidBesides;

/// What the reports of a call tell by themselves, whatever else is told with them.
const TOLD_FIELDS: [&str; 4] = ["toolCallId", "status", "rawOutput", "content"];

/// A call as far as it is known.
#[derive(Debug)]
pub(super) struct RemoteCall {
    pub(super) call: ToolCall,
    pub(super) stage: CallStage,
    pub(super) content: Vec<ToolContent>,
    /// The content as it came, if what is shown of it is not all.
    whole_content: Option<Value>,
    /// What else the agent said of it before it was wanted.
    words: Option<Value>,
    /// The how manieth of the turn.
    place: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallStage {
    /// Announced, and not yet known whether it asks first: nobody was told.
    Fresh,
    /// A person is asked.
    Asked(QuestionId),
    /// It runs.
    Started,
    /// It is over.
    Done,
}

impl AgentTurn {
    /// Calls that did not ask run already.
    pub(super) fn start_called_tools(&mut self, ids: &mut dyn IdGenerator, reports: &mut Vec<Report>) {
        if self.calls.values().all(|call| call.stage != CallStage::Fresh) {
            return;
        }
        let mut fresh: Vec<&mut RemoteCall> =
            self.calls.values_mut().filter(|call| call.stage == CallStage::Fresh).collect();
        fresh.sort_by_key(|call| call.place);
        for call in fresh {
            call.start(ids, &mut self.open, reports);
        }
    }

    pub(super) fn handle_tool_call(
        &mut self,
        told: schema::ToolCall,
        whole: Option<SaidBesides>,
        ids: &mut dyn IdGenerator,
        reports: &mut Vec<Report>,
    ) {
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
            kind: agent_turn_word_by_name(&told.kind).unwrap_or(ToolKind::Other),
            arguments: told.raw_input.filter(Value::is_object).unwrap_or_else(|| json!({})),
            locations: told.locations.iter().map(agent_turn_tool_location).collect(),
            idempotent: false,
        };
        let (place, stage) = (self.calls.len(), CallStage::Fresh);
        let mut call = RemoteCall { call, stage, content: Vec::new(), whole_content: None, words: None, place };
        call.set_content(told.content, whole.as_ref());
        call.words = whole.and_then(|whole| call.unshown_words(whole, reports));
        self.calls.insert(theirs.clone(), call);
        if told.status != ToolCallStatus::Pending {
            self.change_status(&theirs, told.status, told.raw_output, ids, reports);
        }
    }

    pub(super) fn handle_tool_update(
        &mut self,
        update: ToolCallUpdate,
        whole: Option<SaidBesides>,
        ids: &mut dyn IdGenerator,
        reports: &mut Vec<Report>,
    ) {
        let theirs = update.tool_call_id.to_string();
        if !self.calls.contains_key(&theirs) {
            self.handle_tool_call(unannounced_turn_tool_call(&update), None, ids, reports);
        }
        let Some(call) = self.calls.get_mut(&theirs) else { return };
        let fields = update.fields;
        call.learn(&fields);
        let shows = fields.content.is_some();
        if let Some(content) = fields.content {
            call.set_content(content, whole.as_ref());
        }
        let before = reports.len();
        if shows && call.stage == CallStage::Started && fields.status.is_none() {
            call.push_shown(reports);
        }
        // What is said with the start or the end of a call belongs to that, not to its announcement.
        let moves = fields.status.is_some_and(|status| status != ToolCallStatus::Pending);
        let (waits, id) = (call.stage == CallStage::Fresh && !moves, call.call.id);
        let words = match (waits, whole) {
            (true, Some(whole)) => {
                let words = call.unshown_words(whole, reports);
                call.add_words(words);
                None
            }
            (_, whole) => whole.map(|whole| (call.unshown_words(whole.clone(), reports), whole)),
        };
        if let Some(status) = fields.status {
            self.change_status(&theirs, status, fields.raw_output, ids, reports);
        }
        if let Some((Some(words), mut whole)) = words {
            let told = reports[before..].iter_mut().rev().find(|report| tells_of_update(report));
            match told {
                Some(report) => add_report_words(report, words),
                // Nothing that other protocols are told: a title, arguments, `_meta` alone.
                None => {
                    whole.update_mut()["toolCallId"] = json!(id);
                    reports.push(whole.into_opaque());
                }
            }
        }
    }

    /// A permission may be the first that is heard of a call, or say more of it.
    pub(super) fn note_called(
        &mut self,
        request: &RequestPermissionRequest,
        ids: &mut dyn IdGenerator,
        reports: &mut Vec<Report>,
    ) {
        match self.calls.get_mut(&request.tool_call.tool_call_id.to_string()) {
            Some(known) if known.stage == CallStage::Fresh => known.learn(&request.tool_call.fields),
            Some(_) => {}
            None => self.handle_tool_call(unannounced_turn_tool_call(&request.tool_call), None, ids, reports),
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the schema's enum is open")]
    fn change_status(
        &mut self,
        theirs: &str,
        status: ToolCallStatus,
        raw: Option<Value>,
        ids: &mut dyn IdGenerator,
        reports: &mut Vec<Report>,
    ) {
        let Some(call) = self.calls.get_mut(theirs) else { return };
        let end = match status {
            ToolCallStatus::Completed => ToolEnd::Completed,
            ToolCallStatus::Failed => ToolEnd::Failed,
            ToolCallStatus::InProgress if call.stage == CallStage::Fresh => {
                call.start(ids, &mut self.open, reports);
                if !call.content.is_empty() {
                    call.push_shown(reports);
                }
                return;
            }
            _ => return,
        };
        if call.stage == CallStage::Fresh {
            call.start(ids, &mut self.open, reports);
        }
        if call.stage != CallStage::Done {
            call.stage = CallStage::Done;
            let result = ToolResult { end, content: std::mem::take(&mut call.content), raw };
            let done = Report::ToolDone { call: call.call.id, result };
            push_with_content(call.whole_content.take(), done, reports);
        }
    }
}

impl RemoteCall {
    /// A person is asked about it.
    pub(super) fn ask(
        &mut self,
        question: Question,
        ids: &mut dyn IdGenerator,
        open: &mut Option<Option<String>>,
        reports: &mut Vec<Report>,
    ) {
        let id = question.id;
        match self.stage {
            CallStage::Fresh => self.announce(ToolGate::Ask(question), ids, open, reports),
            CallStage::Asked(_) | CallStage::Started | CallStage::Done => reports.push(Report::Asked(question)),
        }
        self.stage = CallStage::Asked(id);
    }

    fn start(&mut self, ids: &mut dyn IdGenerator, open: &mut Option<Option<String>>, reports: &mut Vec<Report>) {
        self.announce(ToolGate::External, ids, open, reports);
        self.stage = CallStage::Started;
    }

    /// Tells of it: only now, because agents announce a call before they know its arguments.
    fn announce(
        &mut self,
        gate: ToolGate,
        ids: &mut dyn IdGenerator,
        open: &mut Option<Option<String>>,
        reports: &mut Vec<Report>,
    ) {
        let call = self.call.clone();
        if open.take().is_none() {
            reports.push(Report::MessageStarted { message: MessageId::make(ids) });
        }
        let tail = vec![Part::ToolUse { call: call.id, name: call.name.clone(), arguments: call.arguments.clone() }];
        reports.push(Report::MessageDone { tail, native: None, interrupted: false });
        let wanted = Report::ToolWanted { call, gate };
        reports.push(match self.words.take() {
            Some(meta) => Report::WithMeta { report: Box::new(wanted), meta: Box::new(meta) },
            None => wanted,
        });
    }

    /// What it shows now.
    fn push_shown(&self, reports: &mut Vec<Report>) {
        let shown = Report::ToolUpdated { call: self.call.id, content: self.content.clone() };
        push_with_content(self.whole_content.clone(), shown, reports);
    }

    fn set_content(&mut self, content: Vec<schema::ToolCallContent>, whole: Option<&SaidBesides>) {
        self.content = content.into_iter().map(agent_turn_tool_content).collect();
        let came = whole.map(|whole| &whole.update()["content"]).filter(|came| came.is_array());
        // A terminal of the agent's is none of a client's: what it printed stands in its place.
        let has_terminal = |came: &Value| came.as_array().into_iter().flatten().any(|item| item["type"] == "terminal");
        let came = came.filter(|came| !has_terminal(came) && **came != json!(acp_tool_content(&self.content)));
        self.whole_content = came.cloned();
    }

    /// What an update says of the call itself counts until people are told of the call.
    fn learn(&mut self, fields: &ToolCallUpdateFields) {
        if self.stage != CallStage::Fresh {
            return;
        }
        let call = &mut self.call;
        if let Some(title) = &fields.title {
            call.title.clone_from(title);
        }
        if let Some(name) = &fields.name {
            call.name.clone_from(name);
        }
        if let Some(kind) = fields.kind.as_ref().and_then(agent_turn_word_by_name) {
            call.kind = kind;
        }
        if let Some(arguments) = fields.raw_input.as_ref().filter(|arguments| arguments.is_object()) {
            call.arguments = arguments.clone();
        }
        if let Some(locations) = &fields.locations {
            call.locations = locations.iter().map(agent_turn_tool_location).collect();
        }
    }

    /// What was said of the call beyond what its announcement tells.
    fn unshown_words(&self, mut whole: SaidBesides, reports: &mut Vec<Report>) -> Option<Value> {
        let mut shown = json!(acp_tool_call(&self.call));
        forget_told_fields(whole.update_mut());
        shown["sessionUpdate"] = whole.update()["sessionUpdate"].clone();
        whole.into_words(&shown, reports)
    }

    fn add_words(&mut self, words: Option<Value>) {
        match (&mut self.words, words) {
            (Some(known), Some(words)) => merge_agent_words(known, &words),
            (known @ None, words) => *known = words,
            (Some(_), None) => {}
        }
    }
}

fn forget_told_fields(update: &mut Value) {
    if let Some(fields) = update.as_object_mut() {
        fields.retain(|key, _| !TOLD_FIELDS.contains(&key.as_str()));
    }
}

/// Adds the report with the content as it came.
fn push_with_content(content: Option<Value>, report: Report, reports: &mut Vec<Report>) {
    let came = content.map(|content| SaidBesides::new(json!({ "update": { "content": content } })));
    SaidBesides::push_annotated(came, &Value::Null, report, reports);
}

/// True for what a client is shown as an update of a call.
fn tells_of_update(report: &Report) -> bool {
    let bare = if let Report::WithMeta { report, .. } = report { report } else { report };
    matches!(bare, Report::ToolUpdated { .. } | Report::ToolDone { .. })
}

fn add_report_words(report: &mut Report, words: Value) {
    if let Report::WithMeta { meta, .. } = report {
        return merge_agent_words(meta, &words);
    }
    let bare = std::mem::replace(report, Report::Parked);
    *report = Report::WithMeta { report: Box::new(bare), meta: Box::new(words) };
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
