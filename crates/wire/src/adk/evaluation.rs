//! Evaluations: cases with what is expected, what a run gave, and the objects that tell how well both agree.
//!
//! Bodies are kept as JSON: a case is written and read again by the same page, and only what counts here is looked at.

use serde_json::{Map, Value, json};

use super::MAX_ID;
use super::eval_metrics::EvalMetric;
use super::key_case::either_key_case_field;
use super::refusal::{AdkBodyProblem, AdkRefusal};
use super::requests::{check_adk_id, read_adk_object};
use crate::key_case::camel_case;

/// Most turns of one case.
const MAX_INVOCATIONS: usize = 64;

/// Values below these keys are the user's own: their keys are no field names.
const USERS_KEYS: [&str; 5] = ["args", "response", "state", "finalSessionState", "stateDelta"];

/// A case: prompts, and what is expected of the agent.
#[derive(Clone, Debug, PartialEq)]
pub struct EvalCase {
    pub id: String,
    /// The whole case, with its keys in camelCase.
    pub value: Value,
}

/// A session that becomes a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddSession {
    pub case: String,
    pub user: String,
    pub session: String,
}

/// Cases to run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunEvalRequest {
    /// None: all of the set.
    pub cases: Vec<String>,
    pub metrics: Vec<EvalMetric>,
}

impl EvalCase {
    /// The body of `PUT …/eval-cases/{id}`.
    pub fn from_body(id: &str, body: &[u8]) -> Result<Self, AdkRefusal> {
        let mut value = evaluation_with_camel_case_keys(Value::Object(read_adk_object(body)?));
        match value.get("evalId").and_then(Value::as_str).filter(|said| !said.is_empty()) {
            Some(said) if said != id => {
                let message = "Eval id in EvalCase should match the eval id in the API route.";
                return Err(AdkRefusal::new(400, message));
            }
            Some(_) | None => value["evalId"] = json!(id),
        }
        Self::from_value(value)
    }

    /// A case made from what happened in a session.
    pub fn from_events(request: &AddSession, app: &str, at: f64, events: &[Value]) -> Result<Self, AdkRefusal> {
        Self::from_value(json!({
            "evalId": request.case,
            "conversation": evaluation_invocations(events),
            "sessionInput": { "appName": app, "userId": request.user, "state": {} },
            "creationTimestamp": at,
        }))
    }

    fn from_value(value: Value) -> Result<Self, AdkRefusal> {
        let id = check_adk_id(value["evalId"].as_str().unwrap_or_default())?;
        if value["conversation"].is_null() == value["conversationScenario"].is_null() {
            let message = "Value error, Exactly one of conversation and conversation_scenario must be provided.";
            return Err(AdkRefusal::invalid_body(&[], message, Value::Null));
        }
        let turns = value["conversation"].as_array();
        if turns.is_none() && !value["conversation"].is_null() {
            let problem = AdkBodyProblem::wrong_type("list_type", &["conversation"], "a valid list", &Value::Null);
            return Err(AdkRefusal::unprocessable(&[problem]));
        }
        let turns = turns.map_or(&[][..], Vec::as_slice);
        if turns.len() > MAX_INVOCATIONS {
            let message = format!("Value error, a case has at most {MAX_INVOCATIONS} invocations");
            return Err(AdkRefusal::invalid_body(&["conversation"], message, json!(turns.len())));
        }
        if turns.iter().any(|turn| !turn["userContent"]["parts"].is_array()) {
            let problem = AdkBodyProblem::missing_field(&["conversation", "userContent"], &Value::Null);
            return Err(AdkRefusal::unprocessable(&[problem]));
        }
        Ok(Self { id, value })
    }

    /// The turns: what the user says, and what is expected.
    pub fn invocations(&self) -> Option<&[Value]> {
        self.value["conversation"].as_array().map(Vec::as_slice)
    }
}

impl AddSession {
    /// The body of `POST …/add-session`.
    pub fn from_body(body: &[u8]) -> Result<Self, AdkRefusal> {
        let object = read_adk_object(body)?;
        let text = |name: &str| required_evaluation_text(&object, name);
        Ok(Self { case: check_adk_id(&text("evalId")?)?, user: text("userId")?, session: text("sessionId")? })
    }
}

impl RunEvalRequest {
    /// The body of `POST …/run`.
    pub fn from_body(body: &[u8]) -> Result<Self, AdkRefusal> {
        let object = read_adk_object(body)?;
        for (name, why) in [
            ("liveModelConfig", "no model here is live: cases run as text"),
            ("userSimulatorConfig", "there is no simulated user here: cases are conversations"),
        ] {
            if either_key_case_field(&object, name).is_some() {
                return Err(AdkRefusal::new(501, why));
            }
        }
        let ids = ["evalCaseIds", "evalIds"].map(|name| either_key_case_field(&object, name).and_then(Value::as_array));
        let ids = ids.into_iter().flatten().flatten();
        let Some(metrics) = either_key_case_field(&object, "evalMetrics") else {
            return Err(AdkRefusal::unprocessable(&[AdkBodyProblem::missing_field(&["evalMetrics"], &Value::Null)]));
        };
        let metrics = metrics.as_array().map_or(&[][..], Vec::as_slice);
        Ok(Self {
            cases: ids.filter_map(Value::as_str).map(str::to_owned).collect(),
            metrics: metrics.iter().map(EvalMetric::from_value).collect::<Result<_, _>>()?,
        })
    }
}

/// The id in the body of a new set: in the object `evalSet`, whose own keys are in `snake_case`.
pub fn read_eval_set_id(body: &[u8]) -> Result<String, AdkRefusal> {
    let object = read_adk_object(body)?;
    let set = either_key_case_field(&object, "evalSet").and_then(Value::as_object).unwrap_or(&object);
    check_eval_set_id(&required_evaluation_text(set, "evalSetId")?)
}

/// A set has a name as a file has.
pub fn check_eval_set_id(id: &str) -> Result<String, AdkRefusal> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.');
    if id.is_empty() || id.len() > MAX_ID || !id.chars().all(is_plain) || id.starts_with('.') {
        let message = "Invalid Eval Set ID, it has letters, digits, `_`, `-` and `.` and does not begin with a dot";
        return Err(AdkRefusal::new(400, message));
    }
    Ok(id.to_owned())
}

fn required_evaluation_text(object: &Map<String, Value>, name: &str) -> Result<String, AdkRefusal> {
    match either_key_case_field(object, name) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => {
            let problem = AdkBodyProblem::wrong_type("string_type", &[name], "a valid string", other);
            Err(AdkRefusal::unprocessable(&[problem]))
        }
        None => Err(AdkRefusal::unprocessable(&[AdkBodyProblem::missing_field(&[name], &Value::Null)])),
    }
}

/// Clients write either spelling.
fn evaluation_with_camel_case_keys(value: Value) -> Value {
    match value {
        Value::Object(object) => {
            let renamed = object.into_iter().map(|(key, value)| {
                let key = camel_case(&key);
                let value =
                    if USERS_KEYS.contains(&key.as_str()) { value } else { evaluation_with_camel_case_keys(value) };
                (key, value)
            });
            Value::Object(renamed.collect())
        }
        Value::Array(items) => items.into_iter().map(evaluation_with_camel_case_keys).collect(),
        plain @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => plain,
    }
}

/// The turns of a session's events, in order: what the user said, what was called, what was answered in the end.
pub fn evaluation_invocations(events: &[Value]) -> Vec<Value> {
    let mut turns: Vec<(&str, Vec<&Value>)> = Vec::new();
    for event in events.iter().filter(|event| event["partial"] != json!(true)) {
        let id = event["invocationId"].as_str().unwrap_or_default();
        match turns.iter_mut().find(|(known, _)| *known == id) {
            Some((_, events)) => events.push(event),
            None => turns.push((id, vec![event])),
        }
    }
    turns
        .iter()
        .map(|(id, events)| evaluation_invocation(id, events))
        .filter(|turn| turn["userContent"].is_object())
        .collect()
}

/// One turn that ran for a case: the run's events, and what the case has the user say.
pub fn ran_evaluation_invocation(user_content: &Value, events: &[Value]) -> Value {
    let events: Vec<&Value> = events.iter().filter(|event| event["partial"] != json!(true)).collect();
    let id = events.first().and_then(|event| event["invocationId"].as_str()).unwrap_or_default();
    let mut turn = evaluation_invocation(id, &events);
    turn["userContent"] = user_content.clone();
    turn
}

fn evaluation_invocation(id: &str, events: &[&Value]) -> Value {
    let (mut turn, mut steps) = (Map::new(), Vec::new());
    let last = events.iter().rposition(|event| event["author"] != "user" && is_final_evaluation_response(event));
    for (index, event) in events.iter().enumerate() {
        let parts = event["content"]["parts"].as_array().map_or(&[][..], Vec::as_slice);
        if event["author"] == "user" {
            if !parts.is_empty() {
                turn.insert("userContent".to_owned(), event["content"].clone());
                turn.insert("creationTimestamp".to_owned(), event["timestamp"].clone());
            }
        } else if Some(index) == last {
            turn.insert("finalResponse".to_owned(), event["content"].clone());
        } else if !parts.is_empty() {
            steps.push(json!({ "author": event["author"], "content": event["content"] }));
        }
    }
    turn.insert("invocationId".to_owned(), json!(id));
    turn.insert("intermediateData".to_owned(), json!({ "invocationEvents": steps }));
    Value::Object(turn)
}

/// Words that no call follows.
fn is_final_evaluation_response(event: &Value) -> bool {
    let parts = event["content"]["parts"].as_array().map_or(&[][..], Vec::as_slice);
    let calls = |part: &Value| !part["functionCall"].is_null() || !part["functionResponse"].is_null();
    !parts.is_empty() && !parts.iter().any(calls)
}
