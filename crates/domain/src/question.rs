//! Questions to people. Permission, elicitation and confirmation are one type.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{OutwardCall, Plan, Principal, QuestionId, ToolCall, ToolCallId, ToolContent};

/// Something a person is asked. It is answered exactly once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// Its id, the same at every door.
    pub id: QuestionId,
    /// The tool call it is about, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<ToolCallId>,
    /// One line for people.
    pub title: String,
    /// What is asked.
    pub ask: QuestionKind,
    /// Who waits for the answer.
    pub origin: QuestionOrigin,
    /// Binds an approval to the tool and the arguments that were shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// The plan that is to be approved: it can be answered with a changed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Box<PlanProposal>>,
    /// The call of a sub-agent that it is about, for this session knows no call of theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent: Option<Box<SubagentCall>>,
    /// What an approval would do, as far as its tool can tell before: the change of a file, a command and its folder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preview: Vec<ToolContent>,
    /// Asked because the call would carry something out while private data and untrusted text are in the context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outward: Option<Box<OutwardCall>>,
    /// What only the protocol of the agent that asks could say: opaque to everybody else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<Value>>,
}

/// What a sub-agent asks about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubagentCall {
    /// The name of its task.
    pub agent: String,
    /// What it wants to do.
    pub call: ToolCall,
    /// What an approval would do, as its own question shows it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preview: Vec<ToolContent>,
}

/// A plan that a person is to approve.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanProposal {
    /// The plan.
    pub plan: Plan,
    /// The mode that carries it out; absent: the one that proposed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<String>,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum QuestionKind {
    /// Choose one.
    Choose {
        /// The choices, in order of display.
        choices: Vec<Choice>,
    },
    /// Fill in a form.
    Form {
        /// JSON Schema of the content.
        schema: Value,
    },
    /// Do something at an address, then come back.
    Visit {
        /// The address.
        url: String,
    },
}

/// One way to answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// Its id inside the question.
    pub id: String,
    /// Its label.
    pub name: String,
    /// What it means.
    pub kind: ChoiceKind,
}

/// What choosing means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChoiceKind {
    /// Yes, this once.
    AllowOnce,
    /// Yes, and the same thing again without asking.
    AllowAlways,
    /// No, this once.
    RejectOnce,
    /// No, and the same thing never.
    RejectAlways,
}

/// Who waits for the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionOrigin {
    /// Asked before the tool ran: survives anything and owns nothing.
    Parked,
    /// A live child waits: closed as interrupted when that child dies.
    Held,
    /// A live child asks, and the run goes on without the answer: closed like one that is held.
    #[serde(rename = "aside")]
    NonBlocking,
}

/// The one answer to a question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Who answered; absent if nobody did (cancelled, interrupted, superseded).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Principal>,
    /// From which door, such as `acp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub door: Option<String>,
    /// What was answered.
    pub reply: Reply,
}

/// What was answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Reply {
    /// A choice was made.
    Chosen {
        choice: String,
        /// What it means.
        kind: ChoiceKind,
    },
    /// A form was filled in, or an address visited.
    Filled {
        /// The content.
        content: Value,
    },
    /// No, this once, and why: the model is told.
    Rejected { reason: RejectReason },
    /// The person does not want to answer.
    Declined,
    /// The run was cancelled, or the only client attached said so.
    Cancelled,
    /// The child that asked is gone.
    Interrupted,
    /// A new prompt took its place.
    Superseded,
}

/// Why somebody said no.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RejectReason {
    /// In the person's own words.
    Said(String),
    /// A client without a person answered: nobody could be asked.
    Unattended,
}

impl Question {
    /// What an approval would do, the question's own or that of the sub-agent which asks.
    pub fn shown_preview(&self) -> &[ToolContent] {
        match &self.subagent {
            Some(asked) if self.preview.is_empty() => &asked.preview,
            Some(_) | None => &self.preview,
        }
    }

    /// True if the run goes on without its answer.
    pub fn is_non_blocking(&self) -> bool {
        self.origin == QuestionOrigin::NonBlocking
    }

    /// The plan that an answer approves: the proposed one, or what the person made of it.
    pub fn approved_plan(&self, reply: &Reply) -> Option<Plan> {
        let proposal = self.plan.as_ref().filter(|_| reply.is_allowed())?;
        match reply {
            Reply::Filled { content } => Plan::parse_edited(content).ok(),
            Reply::Chosen { .. }
            | Reply::Rejected { .. }
            | Reply::Declined
            | Reply::Cancelled
            | Reply::Interrupted
            | Reply::Superseded => Some(proposal.plan.clone()),
        }
    }

    /// The choice with this id, if it has one.
    pub fn find_choice(&self, id: &str) -> Option<&Choice> {
        match &self.ask {
            QuestionKind::Choose { choices } => choices.iter().find(|choice| choice.id == id),
            QuestionKind::Form { .. } | QuestionKind::Visit { .. } => None,
        }
    }
}

impl Reply {
    /// True only for an explicit yes: nothing else ever lets a tool run.
    pub fn is_allowed(&self) -> bool {
        match self {
            Self::Chosen { kind: ChoiceKind::AllowOnce | ChoiceKind::AllowAlways, .. } | Self::Filled { .. } => true,
            Self::Chosen { kind: ChoiceKind::RejectOnce | ChoiceKind::RejectAlways, .. }
            | Self::Rejected { .. }
            | Self::Declined
            | Self::Cancelled
            | Self::Interrupted
            | Self::Superseded => false,
        }
    }
}
