//! `AuditTrail`: the fold of a session's log into what was done in it, by whom and with whose consent.

use std::collections::HashMap;

use gander_domain::{
    Answer, Choice, Entry, Event, Part, Principal, Question, QuestionId, QuestionKind, Reply, RunId, RunOrigin, Seq,
    SessionId, Timestamp, ToolCall, ToolCallId, ToolContent, ToolEnd, ToolResult,
};
use gander_tools::permission::permission_call_fingerprint;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One action of an agent: a call of a tool, from who asked for the run to how it ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditRecord {
    pub session: SessionId,
    /// Whose session it is.
    pub owner: Principal,
    /// Where the call stands in the log.
    pub seq: Seq,
    /// When it was called.
    pub at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// Who asked for the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<Principal>,
    /// In which protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    pub tool: String,
    /// SHA-256 of the tool's name and its arguments: what an approval is bound to.
    pub hash: String,
    /// The call in one line. Content: gone once the session is deleted, as are the fields up to `decision`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// What a person was shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<String>,
    /// Whether somebody was asked, and what they said.
    pub decision: AuditDecision,
    /// Who answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<Principal>,
    /// From which protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_from: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_at: Option<Timestamp>,
    /// When it began to run; absent: it never did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// How it ended; absent: it has not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<ToolEnd>,
    /// Of a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// The session was deleted by this principal: what it held is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_by: Option<Principal>,
}

/// Whether somebody was asked about a call, and what they said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AuditDecision {
    /// It ran unasked: a policy, rule or grant allowed it.
    Unasked,
    /// Somebody is asked.
    Pending,
    /// Somebody chose this.
    Chosen {
        /// Its id in the question.
        choice: String,
    },
    /// Nobody said yes, for this reason: a person's no, a cancelled run, nobody there.
    Declined {
        /// One word.
        reason: String,
    },
    /// A rule or the policy forbade it, or it was no valid call.
    Refused,
}

impl AuditRecord {
    /// What is kept once the session is deleted: who, when, which tool, exit code and hash.
    #[must_use]
    pub fn without_content(self, deleted_by: &Principal) -> Self {
        Self { title: None, arguments: None, shown: None, deleted_by: Some(deleted_by.clone()), ..self }
    }

    /// True if this principal asked for it or answered about it, or owns the session.
    pub fn concerns(&self, principal: &Principal) -> bool {
        [Some(&self.owner), self.asked_by.as_ref(), self.answered_by.as_ref()].contains(&Some(principal))
    }
}

/// Folds a session's log. Feed it every entry, then take [`AuditTrail::into_records`].
#[derive(Debug)]
pub struct AuditTrail {
    session: SessionId,
    owner: Principal,
    origins: HashMap<RunId, RunOrigin>,
    records: Vec<AuditRecord>,
    /// Where the record of each open call is.
    open: HashMap<ToolCallId, usize>,
    questions: HashMap<QuestionId, usize>,
}

impl AuditTrail {
    /// Of a session that belongs to this principal.
    pub fn new(session: SessionId, owner: Principal) -> Self {
        let (origins, records, open, questions) = Default::default();
        Self { session, owner, origins, records, open, questions }
    }

    /// All of them, in the order of the log.
    pub fn into_records(self) -> Vec<AuditRecord> {
        self.records
    }

    /// Takes in the next entry.
    pub fn apply(&mut self, entry: &Entry) {
        match &entry.event {
            Event::RunStarted { origin } | Event::RunQueued { origin, .. } => {
                entry.run.map(|run| self.origins.insert(run, origin.clone()));
            }
            Event::ToolCalled { call } => self.open_record(entry, call),
            Event::ToolStarted { call } => self.update(*call, |record| record.started_at = Some(entry.at)),
            Event::ToolDone { call, result } => self.close_record(*call, entry.at, result),
            Event::QuestionAsked { question } => self.add_question(question),
            Event::QuestionAnswered { question, answer } => self.add_answer(*question, entry.at, answer),
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
            | Event::UsageAdded { .. }
            | Event::RunRecovered { .. }
            | Event::CancelRequested { .. }
            | Event::RunEnded { .. }
            | Event::MessageStarted { .. }
            | Event::PartDelta { .. }
            | Event::MessageDone { .. }
            | Event::ToolUpdated { .. }
            | Event::OpaqueUpdate { .. }
            | Event::Unknown(_) => {} // no action
        }
    }

    fn open_record(&mut self, entry: &Entry, call: &ToolCall) {
        let origin = entry.run.and_then(|run| self.origins.get(&run));
        self.open.insert(call.id, self.records.len());
        self.records.push(AuditRecord {
            session: self.session,
            owner: self.owner.clone(),
            seq: entry.seq,
            at: entry.at,
            run: entry.run,
            asked_by: origin.map(|origin| origin.by.clone()),
            protocol: origin.map(|origin| origin.door.clone()),
            tool: call.name.clone(),
            hash: permission_call_fingerprint(call),
            title: Some(call.title.clone()),
            arguments: Some(call.arguments.clone()),
            shown: None,
            decision: AuditDecision::Unasked,
            answered_by: None,
            answered_from: None,
            answered_at: None,
            started_at: None,
            ended_at: None,
            end: None,
            exit_code: None,
            deleted_by: None,
        });
    }

    fn update(&mut self, call: ToolCallId, change: impl FnOnce(&mut AuditRecord)) {
        if let Some(record) = self.open.get(&call).and_then(|index| self.records.get_mut(*index)) {
            change(record);
        }
    }

    fn close_record(&mut self, call: ToolCallId, at: Timestamp, result: &ToolResult) {
        self.update(call, |record| {
            record.ended_at = Some(at);
            record.end = Some(result.end);
            record.exit_code = result.raw.as_ref().and_then(|raw| raw.get("exit_code")).and_then(Value::as_i64);
            let never_ran = record.started_at.is_none() && record.decision == AuditDecision::Unasked;
            if never_ran && matches!(result.end, ToolEnd::Rejected | ToolEnd::Failed) {
                record.decision = AuditDecision::Refused;
            }
        });
        self.open.remove(&call);
    }

    fn add_question(&mut self, question: &Question) {
        let Some(call) = question.call else { return };
        if let Some(index) = self.open.get(&call) {
            self.questions.insert(question.id, *index);
        }
        self.update(call, |record| {
            record.decision = AuditDecision::Pending;
            record.shown = Some(audit_trail_text(question));
        });
    }

    fn add_answer(&mut self, question: QuestionId, at: Timestamp, answer: &Answer) {
        let Some(record) = self.questions.remove(&question).and_then(|index| self.records.get_mut(index)) else {
            return;
        };
        record.decision = audit_trail_decision(&answer.reply);
        record.answered_by.clone_from(&answer.by);
        record.answered_from.clone_from(&answer.door);
        record.answered_at = Some(at);
    }
}

fn audit_trail_decision(reply: &Reply) -> AuditDecision {
    let declined = |reason: &str| AuditDecision::Declined { reason: reason.to_owned() };
    match reply {
        Reply::Chosen { choice, .. } => AuditDecision::Chosen { choice: choice.clone() },
        Reply::Filled { .. } => AuditDecision::Chosen { choice: "filled".to_owned() },
        Reply::Rejected { .. } => declined("rejected"),
        Reply::Declined => declined("declined"),
        Reply::Cancelled => declined("cancelled"),
        Reply::Interrupted => declined("interrupted"),
        Reply::Superseded => declined("superseded"),
    }
}

/// The question as a person saw it: its title, what an approval would do, and what could be chosen.
fn audit_trail_text(question: &Question) -> String {
    let previews = question.preview.iter().filter_map(|content| match content {
        ToolContent::Part { part: Part::Text { text } } => Some(text.clone()),
        ToolContent::Diff { path, .. } => Some(format!("change of {path}")),
        ToolContent::Part { .. } | ToolContent::Terminal { .. } => None,
    });
    let choices = match &question.ask {
        QuestionKind::Choose { choices } => choices.iter().map(|Choice { name, .. }| format!("[{name}]")).collect(),
        QuestionKind::Form { .. } | QuestionKind::Visit { .. } => Vec::new(),
    };
    let lines = std::iter::once(question.title.clone()).chain(previews).chain([choices.join(" ")]);
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}
