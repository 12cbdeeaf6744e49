//! The run that a session is in: its open message, tools and questions.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Answer, DeltaKind, Message, Part, Question, QuestionId, QuestionOrigin, RunId, RunOrigin, Seq, Timestamp, ToolCall,
    ToolCallId,
};

/// A run that started and has not ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActiveRun {
    /// Its id.
    pub id: RunId,
    /// Who asked.
    pub origin: RunOrigin,
    /// Its first entry.
    pub from: Seq,
    /// When it started.
    pub started_at: Timestamp,
    /// When its last entry was written.
    pub last_at: Timestamp,
    /// What the door left for itself.
    pub meta: Option<Value>,
    /// Has somebody cancelled it?
    pub cancelling: bool,
    /// How often it was picked up after a crash.
    pub recovered: u32,
    /// The message that is growing.
    pub open: Option<Message>,
    /// How many bytes of each of its parts have come, also where the text itself was forgotten.
    pub grown: Vec<usize>,
    /// Tool calls without an end.
    pub tools: Vec<OpenTool>,
    /// Questions without an answer.
    pub questions: Vec<Question>,
}

/// A tool call without an end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenTool {
    /// The call.
    pub call: ToolCall,
    /// How far it is.
    pub stage: ToolStage,
}

/// How far a tool call without an end is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStage {
    /// It may run.
    Allowed,
    /// A person is asked.
    Asked,
    /// A person said no.
    Refused,
    /// Its start is in the log.
    Started,
}

impl ActiveRun {
    /// True if it waits for people only: no message grows, no tool runs, nobody holds a child for it.
    pub fn is_awaiting(&self) -> bool {
        !self.questions.is_empty()
            && !self.cancelling
            && self.open.is_none()
            && self.tools.iter().all(|tool| tool.stage != ToolStage::Started)
            && self.questions.iter().all(|question| question.origin == QuestionOrigin::Parked)
    }

    /// The oldest open question that holds it up.
    pub fn blocking_question(&self) -> Option<&Question> {
        self.questions.iter().find(|question| !question.is_non_blocking())
    }

    /// The open call with this id.
    pub fn find_tool_call(&self, call: ToolCallId) -> Option<&OpenTool> {
        self.tools.iter().find(|tool| tool.call.id == call)
    }

    /// The open question with this id.
    pub fn find_question(&self, id: QuestionId) -> Option<&Question> {
        self.questions.iter().find(|question| question.id == id)
    }

    pub(super) fn set_stage(&mut self, call: ToolCallId, stage: ToolStage) {
        self.tools.iter_mut().filter(|tool| tool.call.id == call).for_each(|tool| tool.stage = stage);
    }

    pub(super) fn add_question(&mut self, question: &Question) {
        if let Some(call) = question.call {
            self.set_stage(call, ToolStage::Asked);
        }
        self.questions.push(question.clone());
    }

    pub(super) fn record_answer(&mut self, id: QuestionId, answer: &Answer) {
        let call = self.find_question(id).and_then(|question| question.call);
        if !cfg!(bug = "two_answers") {
            self.questions.retain(|open| open.id != id);
        }
        if let Some(call) = call {
            self.set_stage(call, if answer.reply.is_allowed() { ToolStage::Allowed } else { ToolStage::Refused });
        }
    }

    pub(super) fn append_delta(&mut self, part: u32, growth: DeltaKind, text: &str) {
        let Some(open) = &mut self.open else { return };
        if open.parts.len() <= part as usize {
            open.parts.push(Part::empty_for_delta(growth));
            self.grown.push(0);
        }
        if let Some(grown) = self.grown.last_mut() {
            *grown += text.len();
        }
        if let Some(Part::Text { text: whole } | Part::Thought { text: whole }) = open.parts.last_mut() {
            whole.push_str(text);
        }
    }
}
