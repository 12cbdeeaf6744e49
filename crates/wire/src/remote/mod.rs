//! One turn of an agent behind another server, without IO: what it is sent, and what its events report.
//!
//! Each protocol has its own turn in its `client` module. A driver sends the requests and feeds what comes back.

mod turn_reports;

use gander_domain::{IdGenerator, QuestionId, Reply, Report};
use serde_json::Value;

pub(crate) use self::turn_reports::{
    CalledTool, TurnReports, turn_report_described_question, turn_report_text_form, turn_report_yes_or_no,
};

/// One turn of an agent behind another server.
///
/// Send [`RemoteTurn::first_request`] and feed every event of the answer. When a stream ends, look at [`RemoteTurn::stage`]:
/// a turn that is still [`TurnStage::Running`] goes on with [`RemoteTurn::resume_request`].
pub trait RemoteTurn: Send + Sync {
    /// What begins the turn.
    fn first_request(&self) -> RemoteRequest;

    /// Takes in an event of a stream, or a whole answer.
    fn handle_event(&mut self, event: &Value, ids: &mut dyn IdGenerator) -> Vec<Report>;

    /// A stream came to a proper end. Protocols without a last event end their turn so.
    fn handle_stream_end(&mut self) -> Vec<Report> {
        Vec::new()
    }

    /// What an answer makes the peer be told; nothing while it waits for others, or if the peer did not ask.
    fn answer_question(&mut self, question: QuestionId, reply: &Reply) -> RemoteAnswer;

    /// What brings the rest of a turn whose stream broke off, if the protocol has a way.
    fn resume_request(&mut self) -> Option<RemoteRequest>;

    /// What stops the turn; nothing if leaving does.
    fn cancel_request(&self) -> Option<RemoteRequest>;

    /// The turn cannot go on: what was said stays.
    fn handle_failure(&mut self, reason: &str, message: &str) -> Vec<Report>;

    /// How far the turn is.
    fn stage(&self) -> TurnStage;

    /// The peer's own id of the session, once it told one.
    fn remote_session(&self) -> Option<&str>;
}

/// How far a turn is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TurnStage {
    /// The peer is at work.
    #[default]
    Running,
    /// It waits for answers, and streams nothing.
    Asking,
    /// It is over, and its end was reported.
    Over,
}

/// What comes of an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RemoteAnswer {
    pub report: Option<Report>,
    pub request: Option<RemoteRequest>,
}

/// A request that a peer is to be sent.
#[derive(Clone, Debug, PartialEq)]
pub struct RemoteRequest {
    /// After the peer's address.
    pub path: String,
    /// Sent by POST; without one it is a GET, which may be repeated.
    pub body: Option<Value>,
    pub answer: AnswerForm,
}

/// How a request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerForm {
    /// Server-sent events.
    Stream,
    /// One JSON value.
    Whole,
}

impl RemoteRequest {
    /// A GET of one JSON value.
    pub fn get(path: impl Into<String>) -> Self {
        Self { path: path.into(), body: None, answer: AnswerForm::Whole }
    }

    /// A POST.
    pub fn post(path: impl Into<String>, body: Value, answer: AnswerForm) -> Self {
        Self { path: path.into(), body: Some(body), answer }
    }
}
