//! The form in which the unified server branch of goose answered, for clients that were written for it.
//!
//! The shipped SDKs read `in-progress`, parts whose `trajectory` is all they have, and a failure as `run.failed` alone: that
//! is what everybody gets who asks for nothing else. Requests are read in both forms.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::types::{AcpRestEvent, AcpRestRun};

/// How runs and events are spelt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AcpRestDialect {
    /// As acp-sdk 1.0.3 reads them.
    #[default]
    Standard,
    /// As the unified server branch of goose wrote them.
    Goosed,
}

impl AcpRestDialect {
    /// Every name that can be asked for.
    pub const NAMES: [&str; 2] = ["standard", "goosed"];

    /// The dialect of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "standard" => Some(Self::Standard),
            "goosed" => Some(Self::Goosed),
            _ => None,
        }
    }

    /// A run as it is answered.
    pub fn run_object(self, run: &AcpRestRun) -> Value {
        let mut run = acp_rest_dialect_json(run);
        match self {
            Self::Standard => {}
            Self::Goosed => translate_acp_rest_run_to_dialect(&mut run),
        }
        run
    }

    /// An event as it is told: in the branch's form an error is one of its own, before the run that failed of it.
    pub fn event_objects(self, event: &AcpRestEvent<'_>) -> Vec<Value> {
        let mut told = acp_rest_dialect_json(event);
        if self == Self::Standard {
            return vec![told];
        }
        let error = (told["type"] == "run.failed").then(|| told["run"]["error"].clone());
        let error = error.filter(|error| !error.is_null()).map(|error| json!({ "type": "error", "error": error }));
        if let Some(run) = told.get_mut("run") {
            translate_acp_rest_run_to_dialect(run);
        }
        if let Some(message) = told.get_mut("message") {
            translate_acp_rest_message_to_dialect(message);
        }
        if let Some(part) = told.get_mut("part") {
            translate_acp_rest_part_to_dialect(part);
        }
        error.into_iter().chain([told]).collect()
    }
}

fn acp_rest_dialect_json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).expect("wire types are made of what JSON can say")
}

fn translate_acp_rest_run_to_dialect(run: &mut Value) {
    if run["status"] == "in-progress" {
        run["status"] = json!("in_progress");
    }
    run["output"].as_array_mut().into_iter().flatten().for_each(translate_acp_rest_message_to_dialect);
}

fn translate_acp_rest_message_to_dialect(message: &mut Value) {
    message["parts"].as_array_mut().into_iter().flatten().for_each(translate_acp_rest_part_to_dialect);
}

/// Tool calls and their results are JSON as content too, a thought is text that says what it is.
fn translate_acp_rest_part_to_dialect(part: &mut Value) {
    let Some(metadata) =
        part["metadata"].as_object().filter(|metadata| metadata.get("kind") == Some(&json!("trajectory")))
    else {
        return;
    };
    let field = |name: &str| metadata.get(name).cloned().unwrap_or_default();
    let content = match (metadata.get("tool_name"), metadata.get("tool_output")) {
        (Some(name), Some(output)) => json!({ "type": "tool_response", "name": name, "output": output }),
        (Some(name), None) => json!({ "type": "tool_request", "name": name, "arguments": field("tool_input") }),
        (None, _) => {
            part["content"] = field("message");
            part["metadata"] = Value::Object(Map::from_iter([("thinking".to_owned(), json!(true))]));
            return;
        }
    };
    part["content_type"] = json!("application/json");
    part["content"] = json!(content.to_string());
}
