//! The questions of a turn: asked one at a time, in the order in which they came.

use std::collections::VecDeque;

use gander_client::schema::{PermissionOption, RequestPermissionRequest, ToolCallUpdate};
use gander_wire::acp::client::PermissionRequest;
use gander_wire::jsonrpc::RequestId;

/// A question that waits for a person.
pub(crate) struct RunQuestion {
    pub(crate) permission: PermissionRequest,
    pub(crate) session: String,
    pub(crate) tool: ToolCallUpdate,
    pub(crate) options: Vec<PermissionOption>,
}

/// Questions without an answer. At most one of them is on the screen: whoever answers must know what.
#[derive(Default)]
pub(crate) struct Questions {
    asked: Option<RunQuestion>,
    waiting: VecDeque<RunQuestion>,
}

/// Where a question was that somebody else answered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Withdrawn {
    /// On the screen.
    Asked(PermissionRequest),
    /// It had not been asked yet.
    Waiting(PermissionRequest),
    /// It was none of these.
    Unknown,
}

impl RunQuestion {
    pub(crate) fn new(permission: PermissionRequest, request: RequestPermissionRequest) -> Self {
        let RequestPermissionRequest { session_id, tool_call, options, .. } = request;
        Self { permission, session: session_id.0.to_string(), tool: tool_call, options }
    }

    /// The sub-agent that asks, if one does.
    pub(crate) fn subagent(&self) -> Option<&str> {
        self.tool.meta.as_ref()?.get("gander/subagent")?.as_str()
    }
}

impl Questions {
    /// One more. A question that is asked again takes the place of its last request.
    pub(crate) fn push(&mut self, question: RunQuestion) -> Option<PermissionRequest> {
        let before = self.withdraw(question.permission.id());
        self.waiting.push_back(question);
        match before {
            Withdrawn::Asked(permission) | Withdrawn::Waiting(permission) => Some(permission),
            Withdrawn::Unknown => None,
        }
    }

    /// The next one for the screen, if none is there and one waits; and how many wait behind it.
    pub(crate) fn next_question(&mut self) -> Option<(&RunQuestion, usize)> {
        if self.asked.is_some() {
            return None;
        }
        self.asked = self.waiting.pop_front();
        let waiting = self.waiting.len();
        self.asked.as_ref().map(|asked| (asked, waiting))
    }

    /// The one on the screen.
    pub(crate) fn asked(&self) -> Option<&RunQuestion> {
        self.asked.as_ref()
    }

    /// Takes the one on the screen, to answer it.
    pub(crate) fn take_asked(&mut self) -> Option<RunQuestion> {
        self.asked.take()
    }

    /// Somebody else answered this one.
    pub(crate) fn withdraw(&mut self, id: &RequestId) -> Withdrawn {
        if let Some(question) = self.asked.take_if(|asked| asked.permission.id() == id) {
            return Withdrawn::Asked(question.permission);
        }
        let place = self.waiting.iter().position(|waiting| waiting.permission.id() == id);
        match place.and_then(|place| self.waiting.remove(place)) {
            Some(question) => Withdrawn::Waiting(question.permission),
            None => Withdrawn::Unknown,
        }
    }

    /// All of them: nobody will answer any more.
    pub(crate) fn drain(&mut self) -> Vec<RunQuestion> {
        self.asked.take().into_iter().chain(self.waiting.drain(..)).collect()
    }
}
