//! Small values with sensible content, for tests.

use gander_domain::{
    Choice, ChoiceKind, Principal, Question, QuestionId, QuestionKind, QuestionOrigin, RunId, RunOrigin, SessionId,
    SessionInit, Settings, ToolCall, ToolCallId, ToolKind,
};
use serde_json::json;
use uuid::Uuid;

/// Session number `n`.
pub fn session(n: u128) -> SessionId {
    SessionId::new(Uuid::from_u128(n))
}

/// Run number `n`.
pub fn run(n: u128) -> RunId {
    RunId::new(Uuid::from_u128(n))
}

/// Question number `n`.
pub fn question_id(n: u128) -> QuestionId {
    QuestionId::new(Uuid::from_u128(n))
}

/// Tool call number `n`.
pub fn call_id(n: u128) -> ToolCallId {
    ToolCallId::new(Uuid::from_u128(n))
}

/// The owner, at the door that tests use.
pub fn origin() -> RunOrigin {
    RunOrigin { by: Principal::owner(), door: "test".to_owned() }
}

/// The settings of a new session.
pub fn settings() -> Settings {
    Settings::new("gander", "assistant")
}

/// A new session.
pub fn birth(session: SessionId) -> SessionInit {
    SessionInit {
        session,
        owner: Principal::owner(),
        workspace: "/workspace".to_owned(),
        folders: Vec::new(),
        settings: settings(),
        parent: None,
        meta: None,
        inherited: Default::default(),
    }
}

/// A call of `shell` that must not run twice.
pub fn shell(id: ToolCallId) -> ToolCall {
    ToolCall {
        id,
        name: "shell".to_owned(),
        title: "echo hi".to_owned(),
        kind: ToolKind::Execute,
        arguments: json!({"command": "echo hi"}),
        locations: Vec::new(),
        idempotent: false,
    }
}

/// A call of `read`, which may run twice.
pub fn read(id: ToolCallId) -> ToolCall {
    ToolCall {
        id,
        name: "read".to_owned(),
        title: "a.txt".to_owned(),
        kind: ToolKind::Read,
        arguments: json!({"path": "a.txt"}),
        locations: Vec::new(),
        idempotent: true,
    }
}

/// May this call run?
pub fn permission(id: QuestionId, call: ToolCallId) -> Question {
    Question {
        id,
        call: Some(call),
        title: "Run echo hi?".to_owned(),
        ask: QuestionKind::Choose {
            choices: vec![choice("allow", ChoiceKind::AllowOnce), choice("reject", ChoiceKind::RejectOnce)],
        },
        origin: QuestionOrigin::Parked,
        fingerprint: None,
        plan: None,
        subagent: None,
        preview: Vec::new(),
        outward: None,
        meta: None,
    }
}

fn choice(id: &str, kind: ChoiceKind) -> Choice {
    Choice { id: id.to_owned(), name: id.to_owned(), kind }
}
