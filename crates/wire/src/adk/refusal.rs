//! Errors: `detail` for clients in python, `error` for those in JavaScript, both in every body.

use gander_domain::sanitize;
use serde_json::{Value, json};

/// Why a request is not carried out.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{status}: {error}")]
pub struct AdkRefusal {
    /// The HTTP status.
    pub status: u16,
    /// A sentence, or a list of [`AdkBodyProblem`]s.
    pub detail: Value,
    /// The same as one sentence.
    pub error: String,
}

/// What is wrong with a body, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct AdkBodyProblem {
    /// A word for programs, such as `missing`.
    pub kind: &'static str,
    /// The way to it.
    pub location: Vec<Value>,
    /// A sentence.
    pub message: String,
    /// What was found there.
    pub input: Value,
}

impl AdkRefusal {
    /// A refusal with one sentence.
    pub fn new(status: u16, detail: impl Into<String>) -> Self {
        let error = sanitize::sanitized_text(&detail.into());
        Self { status, detail: Value::String(error.clone()), error }
    }

    /// No such session.
    pub fn no_such_session() -> Self {
        Self::new(404, "Session not found")
    }

    /// No such agent.
    pub fn no_such_app(name: &str) -> Self {
        Self::new(404, format!("Agent not found: '{name}'"))
    }

    /// A body that does not have the form it must have.
    pub fn unprocessable(problems: &[AdkBodyProblem]) -> Self {
        let texts: Vec<String> = problems.iter().map(AdkBodyProblem::problem_text).collect();
        Self {
            status: 422,
            detail: problems.iter().map(AdkBodyProblem::problem_json).collect(),
            error: texts.join("; "),
        }
    }

    /// A body with one thing in it that cannot be.
    pub fn invalid_body(location: &[&str], message: impl Into<String>, input: Value) -> Self {
        Self::unprocessable(&[AdkBodyProblem {
            kind: "value_error",
            location: adk_refusal_location_steps(location),
            message: message.into(),
            input,
        }])
    }

    /// A query with one thing in it that cannot be.
    pub fn invalid_query(name: &str, kind: &'static str, message: impl Into<String>, input: &str) -> Self {
        let location = ["query", name].map(Value::from).to_vec();
        Self::unprocessable(&[AdkBodyProblem { kind, location, message: message.into(), input: input.into() }])
    }

    /// A body that is no JSON.
    pub fn invalid_json(error: &serde_json::Error) -> Self {
        let problem = json!({
            "type": "json_invalid",
            "loc": ["body", error.column()],
            "msg": "JSON decode error",
            "input": {},
            "ctx": { "error": error.to_string() },
        });
        Self { status: 422, detail: json!([problem]), error: format!("the body is no JSON: {error}") }
    }

    /// The body of the answer.
    pub fn response_body(&self) -> Value {
        json!({ "detail": self.detail, "error": self.error })
    }
}

impl AdkBodyProblem {
    /// Something that has to be there is not.
    pub fn missing_field(location: &[&str], input: &Value) -> Self {
        Self {
            kind: "missing",
            location: adk_refusal_location_steps(location),
            message: "Field required".to_owned(),
            input: input.clone(),
        }
    }

    /// Something else should be there.
    pub fn wrong_type(kind: &'static str, location: &[&str], wanted: &str, input: &Value) -> Self {
        Self {
            kind,
            location: adk_refusal_location_steps(location),
            message: format!("Input should be {wanted}"),
            input: input.clone(),
        }
    }

    fn problem_text(&self) -> String {
        let location: Vec<String> = self.location.iter().map(|step| step.to_string().replace('"', "")).collect();
        sanitize::sanitized_text(&format!("{}: {}", location.join("."), self.message))
    }

    fn problem_json(&self) -> Value {
        let input = self
            .input
            .as_str()
            .map_or_else(|| self.input.clone(), |text| Value::String(sanitize::sanitized_text(text)));
        json!({ "type": self.kind, "loc": self.location, "msg": sanitize::sanitized_text(&self.message), "input": input })
    }
}

fn adk_refusal_location_steps(location: &[&str]) -> Vec<Value> {
    std::iter::once("body").chain(location.iter().copied()).map(Value::from).collect()
}
