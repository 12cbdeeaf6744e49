//! Bodies of requests, read into types that cannot be wrong.

use gander_domain::{Part, Role, State};
use serde_json::{Map, Value, json};

use super::MAX_ID;
use super::content::{self, FunctionResponse, SentPart};
use super::key_case::either_key_case_field;
use super::refusal::{AdkBodyProblem, AdkRefusal};
use crate::check;

/// Names of functions that only this protocol itself calls.
pub const RESERVED_FUNCTIONS: [&str; 3] = ["adk_request_confirmation", "adk_request_input", "adk_request_credential"];

/// Where a run belongs: app, user, session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionAddress {
    /// The agent.
    pub app: String,
    /// The user.
    pub user: String,
    /// The session.
    pub session: String,
}

/// Something to do in a session.
#[derive(Clone, Debug, PartialEq)]
pub struct AdkRunRequest {
    pub address: SessionAddress,
    /// What is said.
    pub said: RunInput,
    /// What was sent, to be shown as it was.
    pub content: Option<Value>,
    /// In pieces?
    pub streaming: bool,
    /// Values to be set before.
    pub state_delta: State,
    /// What events of this run carry beside.
    pub custom_metadata: Map<String, Value>,
    /// Which model answers, and how, for agents that others run.
    pub run_config: Map<String, Value>,
    /// The client shows one event per answer.
    pub one_event: bool,
    /// Said over a live connection.
    pub live: bool,
    /// The run that is meant, if the client says so.
    pub invocation: Option<String>,
}

/// What a run begins with.
#[derive(Clone, Debug, PartialEq)]
pub enum RunInput {
    /// Words, pictures.
    Parts(Vec<Part>),
    /// Answers in functions' places.
    Responses(Vec<FunctionResponse>),
    /// Nothing: go on with what was said.
    Nothing,
}

/// A session to be made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewAdkSession {
    /// The name that the client chose.
    pub id: Option<String>,
    /// Its first values.
    pub state: State,
    /// What was said elsewhere: who, and what.
    pub events: Vec<(Role, Vec<Part>)>,
}

/// An artifact to be put away.
#[derive(Clone, Debug, PartialEq)]
pub struct NewAdkArtifact {
    /// Under which name.
    pub name: String,
    pub part: Part,
    /// What its saver wants to find again.
    pub metadata: Map<String, Value>,
}

impl AdkRunRequest {
    /// The body of a run. With an address in the path the body need not name one.
    pub fn from_body(body: &[u8], path: Option<SessionAddress>) -> Result<Self, AdkRefusal> {
        Self::from_object(&read_adk_object(body)?, path)
    }

    pub(super) fn from_object(object: &Map<String, Value>, path: Option<SessionAddress>) -> Result<Self, AdkRefusal> {
        let (content, parts) = read_adk_new_message(object)?;
        let given = |name: &str| either_key_case_field(object, name).and_then(Value::as_str).map(str::to_owned);
        let address = match path {
            Some(address) => {
                check_adk_address(object, &address)?;
                address
            }
            None => {
                require_adk_body_fields(object, &["userId", "sessionId"])?;
                let app = given("appName")
                    .ok_or_else(|| AdkRefusal::new(400, "app_name is required when ADK_DEFAULT_APP_NAME is not set"))?;
                let (user, session) = (given("userId").unwrap_or_default(), given("sessionId").unwrap_or_default());
                SessionAddress { app, user, session }
            }
        };
        Ok(Self {
            address,
            said: adk_run_input(parts),
            content,
            streaming: either_key_case_field(object, "streaming") == Some(&Value::Bool(true)),
            state_delta: read_optional_adk_object(object, "stateDelta")?,
            custom_metadata: read_optional_adk_object(object, "customMetadata")?,
            run_config: read_optional_adk_object(object, "runConfig")?,
            one_event: either_key_case_field(object, "functionCallEventId").is_some(),
            live: false,
            invocation: read_optional_adk_text(object, "invocationId")?.filter(|name| !name.is_empty()),
        })
    }
}

/// What the body calls app, user and session is what the path calls them.
fn check_adk_address(object: &Map<String, Value>, path: &SessionAddress) -> Result<(), AdkRefusal> {
    let names = [("appName", &path.app), ("userId", &path.user), ("sessionId", &path.session)];
    let differs = |(name, value): &(&'static str, &String)| {
        let said = either_key_case_field(object, name)?;
        let message = "Value error, the body and the path differ".to_owned();
        let location = [json!("body"), json!(name)].to_vec();
        let problem = AdkBodyProblem { kind: "value_error", location, message, input: said.clone() };
        // An agent answers to its name with hyphens and with underscores.
        let spelled = |text: &str| if *name == "appName" { text.replace('-', "_") } else { text.to_owned() };
        let same = said.as_str().is_some_and(|said| spelled(said) == spelled(value));
        (!same).then_some(problem)
    };
    let problems: Vec<AdkBodyProblem> = names.iter().filter_map(differs).collect();
    if problems.is_empty() { Ok(()) } else { Err(AdkRefusal::unprocessable(&problems)) }
}

fn read_optional_adk_text(object: &Map<String, Value>, name: &str) -> Result<Option<String>, AdkRefusal> {
    match either_key_case_field(object, name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => {
            Err(adk_body_problem_refusal(AdkBodyProblem::wrong_type("string_type", &[name], "a valid string", other)))
        }
    }
}

impl NewAdkSession {
    /// The body of a new session: nothing, `null`, or an object.
    pub fn from_body(body: &[u8]) -> Result<Self, AdkRefusal> {
        if body.is_empty() || body == b"null" {
            return Ok(Self::default());
        }
        let object = read_adk_object(body)?;
        let state = read_optional_adk_object(&object, "state")?;
        if either_key_case_field(&object, "options")
            .is_some_and(|options| options.as_object().is_none_or(|all| !all.is_empty()))
        {
            return Err(AdkRefusal::new(400, "Session options are not supported by the configured session service."));
        }
        let id = match either_key_case_field(&object, "sessionId") {
            None => None,
            Some(Value::String(id)) => Some(check_adk_id(id)?),
            Some(other) => {
                return Err(adk_body_problem_refusal(AdkBodyProblem::wrong_type(
                    "string_type",
                    &["sessionId"],
                    "a valid string",
                    other,
                )));
            }
        };
        let events = match either_key_case_field(&object, "events") {
            None => Vec::new(),
            Some(Value::Array(events)) => {
                let read = events.iter().enumerate().map(|(location, event)| read_adk_imported_event(location, event));
                read.collect::<Result<Vec<_>, _>>()?
            }
            Some(other) => {
                return Err(adk_body_problem_refusal(AdkBodyProblem::wrong_type(
                    "list_type",
                    &["events"],
                    "a valid list",
                    other,
                )));
            }
        };
        Ok(Self { id, state, events })
    }

    /// The body of a new session whose name is in the path: its values, or an object that holds them.
    pub fn from_named_body(id: &str, body: &[u8]) -> Result<Self, AdkRefusal> {
        let id = Some(check_adk_id(id)?);
        if body.is_empty() || body == b"null" {
            return Ok(Self { id, ..Self::default() });
        }
        let object = read_adk_object(body)?;
        let wrapped = object.get("state").is_some_and(Value::is_object)
            && object.keys().all(|key| matches!(key.as_str(), "state" | "events"));
        if wrapped {
            return Ok(Self { id, ..Self::from_body(body)? });
        }
        Ok(Self { id, state: object, events: Vec::new() })
    }
}

impl NewAdkArtifact {
    /// The body of a new artifact.
    pub fn from_body(body: &[u8]) -> Result<Self, AdkRefusal> {
        let value = parse_adk_body(body)?;
        // A name with NUL is a name that nothing can have, not a body that cannot be read.
        if value.get("filename").and_then(Value::as_str).is_some_and(|name| name.contains('\0')) {
            return Err(AdkRefusal::new(400, "not the name of an artifact, it has no control characters"));
        }
        let object = into_adk_object(value)?;
        require_adk_body_fields(&object, &["filename", "artifact"])?;
        let whole = Value::Object(object.clone());
        let name = either_key_case_field(&object, "filename").and_then(Value::as_str);
        let name = name.ok_or_else(|| {
            adk_body_problem_refusal(AdkBodyProblem::wrong_type("string_type", &["filename"], "a valid string", &whole))
        })?;
        let sent = content::read_adk_part(
            either_key_case_field(&object, "artifact").unwrap_or(&Value::Null),
            &[json!("body"), json!("artifact")],
        );
        let Some(SentPart::Part(part)) = sent.map_err(|problem| adk_body_problem_refusal(*problem))? else {
            return Err(AdkRefusal::new(400, "an artifact is text or inline data"));
        };
        Ok(Self { name: name.to_owned(), part, metadata: read_optional_adk_object(&object, "customMetadata")? })
    }
}

/// The values of `PATCH`.
pub fn read_adk_state_delta(body: &[u8]) -> Result<State, AdkRefusal> {
    let object = read_adk_object(body)?;
    require_adk_body_fields(&object, &["stateDelta"])?;
    read_optional_adk_object(&object, "stateDelta")
}

/// The session that `PATCH …/memory` names.
pub fn read_adk_memory_session_id(body: &[u8]) -> Result<String, AdkRefusal> {
    let object = read_adk_object(body)?;
    require_adk_body_fields(&object, &["sessionId"])?;
    Ok(either_key_case_field(&object, "sessionId").and_then(Value::as_str).unwrap_or_default().to_owned())
}

/// The consent of `POST /config/telemetry`.
pub fn read_adk_telemetry_consent(body: &[u8]) -> Result<bool, AdkRefusal> {
    let object = read_adk_object(body)?;
    require_adk_body_fields(&object, &["telemetry"])?;
    match either_key_case_field(&object, "telemetry") {
        Some(Value::Bool(consent)) => Ok(*consent),
        other => {
            let found = other.unwrap_or(&Value::Null);
            Err(adk_body_problem_refusal(AdkBodyProblem::wrong_type(
                "bool_type",
                &["telemetry"],
                "a valid boolean",
                found,
            )))
        }
    }
}

/// A name that a client chose: it goes into addresses.
pub fn check_adk_id(id: &str) -> Result<String, AdkRefusal> {
    let id = id.trim();
    if id.is_empty() || id.len() > MAX_ID || id.chars().any(|letter| letter.is_control() || letter == '/') {
        let message = format!("Value error, an id has 1 to {MAX_ID} bytes, no slash and no control character");
        return Err(AdkRefusal::invalid_body(&["sessionId"], message, json!(&id[..id.floor_char_boundary(64)])));
    }
    Ok(id.to_owned())
}

pub(super) fn read_adk_object(body: &[u8]) -> Result<Map<String, Value>, AdkRefusal> {
    into_adk_object(parse_adk_body(body)?)
}

fn parse_adk_body(body: &[u8]) -> Result<Value, AdkRefusal> {
    serde_json::from_slice(body).map_err(|error| AdkRefusal::invalid_json(&error))
}

fn into_adk_object(value: Value) -> Result<Map<String, Value>, AdkRefusal> {
    if check::contains_nul(&value) {
        return Err(adk_body_problem_refusal(AdkBodyProblem::wrong_type(
            "value_error",
            &[],
            "free of NUL",
            &Value::Null,
        )));
    }
    let Value::Object(object) = value else {
        return Err(adk_body_problem_refusal(AdkBodyProblem::wrong_type(
            "model_attributes_type",
            &[],
            "a valid dictionary",
            &value,
        )));
    };
    Ok(object)
}

fn adk_body_problem_refusal(problem: AdkBodyProblem) -> AdkRefusal {
    AdkRefusal::unprocessable(&[problem])
}

fn require_adk_body_fields(object: &Map<String, Value>, names: &[&str]) -> Result<(), AdkRefusal> {
    let whole = Value::Object(object.clone());
    let check = |name: &&str| match either_key_case_field(object, name) {
        None => Some(AdkBodyProblem::missing_field(&[name], &whole)),
        Some(_) => None,
    };
    let mut problems: Vec<AdkBodyProblem> = names.iter().filter_map(check).collect();
    for name in ["userId", "sessionId"].iter().filter(|name| names.contains(name)) {
        if let Some(other) = either_key_case_field(object, name).filter(|value| !value.is_string()) {
            problems.push(AdkBodyProblem::wrong_type("string_type", &[name], "a valid string", other));
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(AdkRefusal::unprocessable(&problems)) }
}

pub(super) fn read_optional_adk_object(
    object: &Map<String, Value>,
    name: &str,
) -> Result<Map<String, Value>, AdkRefusal> {
    match either_key_case_field(object, name) {
        None => Ok(Map::new()),
        Some(Value::Object(map)) => Ok(map.clone()),
        Some(other) => {
            Err(adk_body_problem_refusal(AdkBodyProblem::wrong_type("dict_type", &[name], "a valid dictionary", other)))
        }
    }
}

/// What was sent, and its parts. Some clients of the path form send `message` as a mere string.
fn read_adk_new_message(object: &Map<String, Value>) -> Result<(Option<Value>, Vec<SentPart>), AdkRefusal> {
    if let Some(text) = either_key_case_field(object, "message").and_then(Value::as_str) {
        return Ok((None, vec![SentPart::Part(Part::text(text))]));
    }
    let Some(content) = either_key_case_field(object, "newMessage") else { return Ok((None, Vec::new())) };
    let Some(fields) = content.as_object() else {
        let problem =
            AdkBodyProblem::wrong_type("model_attributes_type", &["newMessage"], "a valid dictionary", content);
        return Err(adk_body_problem_refusal(problem));
    };
    let empty = Vec::new();
    let parts = match either_key_case_field(fields, "parts") {
        None => &empty,
        Some(Value::Array(parts)) => parts,
        Some(other) => {
            return Err(adk_body_problem_refusal(AdkBodyProblem::wrong_type(
                "list_type",
                &["newMessage", "parts"],
                "a valid list",
                other,
            )));
        }
    };
    let mut sent = Vec::new();
    for (index, value) in parts.iter().enumerate() {
        let location = [json!("body"), json!("newMessage"), json!("parts"), json!(index)];
        sent.extend(content::read_adk_part(value, &location).map_err(|problem| adk_body_problem_refusal(*problem))?);
    }
    Ok((Some(content.clone()), sent))
}

/// Answers go before words: a message that has both answers.
fn adk_run_input(sent: Vec<SentPart>) -> RunInput {
    let (mut parts, mut responses) = (Vec::new(), Vec::new());
    for one in sent {
        match one {
            SentPart::Part(part) => parts.push(part),
            SentPart::Response(response) => responses.push(response),
        }
    }
    match (responses.is_empty(), parts.is_empty()) {
        (false, _) => RunInput::Responses(responses),
        (true, false) => RunInput::Parts(parts),
        (true, true) => RunInput::Nothing,
    }
}

/// An event that a client brings along when it makes a session: words only.
fn read_adk_imported_event(index: usize, event: &Value) -> Result<(Role, Vec<Part>), AdkRefusal> {
    let no = |what: &str| AdkRefusal::new(400, format!("Session initialization event {index} cannot include {what}."));
    let empty = Map::new();
    let event = event.as_object().unwrap_or(&empty);
    if either_key_case_field(event, "actions").and_then(Value::as_object).is_some_and(|actions| !actions.is_empty()) {
        return Err(no("event actions"));
    }
    if either_key_case_field(event, "longRunningToolIds").and_then(Value::as_array).is_some_and(|ids| !ids.is_empty()) {
        return Err(no("long-running tool IDs"));
    }
    if let Some(time) =
        either_key_case_field(event, "timestamp").filter(|time| !time.as_f64().is_some_and(check::is_calendar_time))
    {
        let location = [json!("body"), json!("events"), json!(index), json!("timestamp")].to_vec();
        let message = "Input should be seconds since 1970".to_owned();
        return Err(adk_body_problem_refusal(AdkBodyProblem {
            kind: "float_type",
            location,
            message,
            input: time.clone(),
        }));
    }
    let content = either_key_case_field(event, "content").and_then(Value::as_object).unwrap_or(&empty);
    let parts = either_key_case_field(content, "parts").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let reserved = |part: &Value| {
        let named = |key| part.get(key).and_then(|call| call.get("name")?.as_str());
        let name = named("functionCall").or_else(|| named("function_call"));
        name.or_else(|| named("functionResponse")).is_some_and(|name| RESERVED_FUNCTIONS.contains(&name))
    };
    if parts.iter().any(reserved) {
        return Err(no("ADK protocol function calls"));
    }
    let author = either_key_case_field(event, "author").and_then(Value::as_str).unwrap_or("user");
    let role = if author == "user" { Role::User } else { Role::Agent };
    let mut read = Vec::new();
    for (location, value) in parts.iter().enumerate() {
        let location =
            [json!("body"), json!("events"), json!(index), json!("content"), json!("parts"), json!(location)];
        match content::read_adk_part(value, &location).map_err(|problem| adk_body_problem_refusal(*problem))? {
            Some(SentPart::Part(part)) => read.push(part),
            Some(SentPart::Response(_)) => read.push(Part::Unknown(value.clone())),
            None => {}
        }
    }
    Ok((role, read))
}
