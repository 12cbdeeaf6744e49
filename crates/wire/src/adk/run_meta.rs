//! What a run's log entry keeps of ADK's request for a back-end that is another server: which model, and what functions gave.

use gander_domain::Part;
use serde_json::{Map, Value, json};

use super::content::FunctionResponse;
use super::{PROTOCOL_NAME, RunInput};

/// The model that a request names, and how it is to answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestedModel {
    /// Its name.
    pub model: Option<String>,
    /// Parameters of its provider.
    pub parameters: Map<String, Value>,
}

/// What of a request such a back-end makes use of, as members of ADK's part of the meta.
pub fn adk_run_meta_of_remote_agent(run_config: Map<String, Value>, input: &RunInput) -> Map<String, Value> {
    let mut members = Map::new();
    if !run_config.is_empty() {
        members.insert("runConfig".to_owned(), Value::Object(run_config));
    }
    if let RunInput::Responses(responses) = input {
        let given = |given: &FunctionResponse| {
            let id = given.id.strip_prefix("adk-").unwrap_or(&given.id);
            json!({ "functionResponse": { "id": id, "name": given.name, "response": given.response } })
        };
        members.insert("responses".to_owned(), responses.iter().map(given).collect());
    }
    members
}

/// The model that the run's request named; nothing if it was another protocol's.
pub fn requested_model_in_adk_run_meta(meta: Option<&Value>) -> RequestedModel {
    let config = meta.and_then(|meta| meta.get(PROTOCOL_NAME)?.get("runConfig")?.as_object());
    let model = config.and_then(|config| config.get("model")?.as_str()).map(str::to_owned);
    let parameters = config.and_then(|config| config.get("generationConfig")?.as_object()).cloned();
    RequestedModel { model, parameters: parameters.unwrap_or_default() }
}

/// What functions gave, where the request held nothing but that.
pub fn function_responses_in_adk_run_meta(meta: Option<&Value>) -> Vec<Part> {
    let given = meta.and_then(|meta| meta.get(PROTOCOL_NAME)?.get("responses")?.as_array());
    given.into_iter().flatten().cloned().map(Part::Unknown).collect()
}
