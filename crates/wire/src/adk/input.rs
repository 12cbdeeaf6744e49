//! Bodies of requests, read into types that cannot be wrong.

use gander_domain::{Part, Role, State};
use serde_json::{Map, Value, json};

use super::LONGEST_ID;
use super::content::{self, FunctionResponse, Sent};
use super::error::{Problem, Refusal};
use super::key_case::field;
use crate::check;

/// Names of functions that only this protocol itself calls.
pub const RESERVED: [&str; 3] = ["adk_request_confirmation", "adk_request_input", "adk_request_credential"];

/// Where a run belongs: app, user, session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The agent.
    pub app: String,
    /// The user.
    pub user: String,
    /// The session.
    pub session: String,
}

/// Something to do in a session.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRequest {
    /// Where.
    pub address: Address,
    /// What is said.
    pub said: Said,
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
pub enum Said {
    /// Words, pictures.
    Parts(Vec<Part>),
    /// Answers in functions' places.
    Responses(Vec<FunctionResponse>),
    /// Nothing: go on with what was said.
    Nothing,
}

/// A session to be made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewSession {
    /// The name that the client chose.
    pub id: Option<String>,
    /// Its first values.
    pub state: State,
    /// What was said elsewhere: who, and what.
    pub events: Vec<(Role, Vec<Part>)>,
}

/// An artifact to be put away.
#[derive(Clone, Debug, PartialEq)]
pub struct NewArtifact {
    /// Under which name.
    pub name: String,
    /// What.
    pub part: Part,
    /// What its saver wants to find again.
    pub metadata: Map<String, Value>,
}

impl RunRequest {
    /// The body of a run. With an address in the path the body need not name one.
    pub fn read(body: &[u8], path: Option<Address>) -> Result<Self, Refusal> {
        Self::of(&object(body)?, path)
    }

    pub(super) fn of(object: &Map<String, Value>, path: Option<Address>) -> Result<Self, Refusal> {
        let (content, parts) = message(object)?;
        let given = |name: &str| field(object, name).and_then(Value::as_str).map(str::to_owned);
        let address = match path {
            Some(address) => {
                same_address(object, &address)?;
                address
            }
            None => {
                require(object, &["userId", "sessionId"])?;
                let app = given("appName")
                    .ok_or_else(|| Refusal::new(400, "app_name is required when ADK_DEFAULT_APP_NAME is not set"))?;
                let (user, session) = (given("userId").unwrap_or_default(), given("sessionId").unwrap_or_default());
                Address { app, user, session }
            }
        };
        Ok(Self {
            address,
            said: said(parts),
            content,
            streaming: field(object, "streaming") == Some(&Value::Bool(true)),
            state_delta: map(object, "stateDelta")?,
            custom_metadata: map(object, "customMetadata")?,
            run_config: map(object, "runConfig")?,
            one_event: field(object, "functionCallEventId").is_some(),
            live: false,
            invocation: text(object, "invocationId")?.filter(|name| !name.is_empty()),
        })
    }
}

/// What the body calls app, user and session is what the path calls them.
fn same_address(object: &Map<String, Value>, path: &Address) -> Result<(), Refusal> {
    let names = [("appName", &path.app), ("userId", &path.user), ("sessionId", &path.session)];
    let differs = |(name, value): &(&'static str, &String)| {
        let said = field(object, name)?;
        let message = "Value error, the body and the path differ".to_owned();
        let place = [json!("body"), json!(name)].to_vec();
        let problem = Problem { kind: "value_error", place, message, input: said.clone() };
        // An agent answers to its name with hyphens and with underscores.
        let spelled = |text: &str| if *name == "appName" { text.replace('-', "_") } else { text.to_owned() };
        let same = said.as_str().is_some_and(|said| spelled(said) == spelled(value));
        (!same).then_some(problem)
    };
    let problems: Vec<Problem> = names.iter().filter_map(differs).collect();
    if problems.is_empty() { Ok(()) } else { Err(Refusal::unreadable(&problems)) }
}

fn text(object: &Map<String, Value>, name: &str) -> Result<Option<String>, Refusal> {
    match field(object, name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(unreadable(Problem::wrong("string_type", &[name], "a valid string", other))),
    }
}

impl NewSession {
    /// The body of a new session: nothing, `null`, or an object.
    pub fn read(body: &[u8]) -> Result<Self, Refusal> {
        if body.is_empty() || body == b"null" {
            return Ok(Self::default());
        }
        let object = object(body)?;
        let state = map(&object, "state")?;
        if field(&object, "options").is_some_and(|options| options.as_object().is_none_or(|all| !all.is_empty())) {
            return Err(Refusal::new(400, "Session options are not supported by the configured session service."));
        }
        let id = match field(&object, "sessionId") {
            None => None,
            Some(Value::String(id)) => Some(checked_id(id)?),
            Some(other) => {
                return Err(unreadable(Problem::wrong("string_type", &["sessionId"], "a valid string", other)));
            }
        };
        let events = match field(&object, "events") {
            None => Vec::new(),
            Some(Value::Array(events)) => {
                let read = events.iter().enumerate().map(|(place, event)| brought(place, event));
                read.collect::<Result<Vec<_>, _>>()?
            }
            Some(other) => return Err(unreadable(Problem::wrong("list_type", &["events"], "a valid list", other))),
        };
        Ok(Self { id, state, events })
    }

    /// The body of a new session whose name is in the path: its values, or an object that holds them.
    pub fn named(id: &str, body: &[u8]) -> Result<Self, Refusal> {
        let id = Some(checked_id(id)?);
        if body.is_empty() || body == b"null" {
            return Ok(Self { id, ..Self::default() });
        }
        let object = object(body)?;
        let wrapped = object.get("state").is_some_and(Value::is_object)
            && object.keys().all(|key| matches!(key.as_str(), "state" | "events"));
        if wrapped {
            return Ok(Self { id, ..Self::read(body)? });
        }
        Ok(Self { id, state: object, events: Vec::new() })
    }
}

impl NewArtifact {
    /// The body of a new artifact.
    pub fn read(body: &[u8]) -> Result<Self, Refusal> {
        let value = parsed(body)?;
        // A name with NUL is a name that nothing can have, not a body that cannot be read.
        if value.get("filename").and_then(Value::as_str).is_some_and(|name| name.contains('\0')) {
            return Err(Refusal::new(400, "not the name of an artifact, it has no control characters"));
        }
        let object = object_of(value)?;
        require(&object, &["filename", "artifact"])?;
        let whole = Value::Object(object.clone());
        let name = field(&object, "filename").and_then(Value::as_str);
        let name =
            name.ok_or_else(|| unreadable(Problem::wrong("string_type", &["filename"], "a valid string", &whole)))?;
        let sent =
            content::read(field(&object, "artifact").unwrap_or(&Value::Null), &[json!("body"), json!("artifact")]);
        let Some(Sent::Part(part)) = sent.map_err(|problem| unreadable(*problem))? else {
            return Err(Refusal::new(400, "an artifact is text or inline data"));
        };
        Ok(Self { name: name.to_owned(), part, metadata: map(&object, "customMetadata")? })
    }
}

/// The values of `PATCH`.
pub fn state_delta(body: &[u8]) -> Result<State, Refusal> {
    let object = object(body)?;
    require(&object, &["stateDelta"])?;
    map(&object, "stateDelta")
}

/// The session that `PATCH …/memory` names.
pub fn session_id(body: &[u8]) -> Result<String, Refusal> {
    let object = object(body)?;
    require(&object, &["sessionId"])?;
    Ok(field(&object, "sessionId").and_then(Value::as_str).unwrap_or_default().to_owned())
}

/// The consent of `POST /config/telemetry`.
pub fn telemetry(body: &[u8]) -> Result<bool, Refusal> {
    let object = object(body)?;
    require(&object, &["telemetry"])?;
    match field(&object, "telemetry") {
        Some(Value::Bool(consent)) => Ok(*consent),
        other => {
            let found = other.unwrap_or(&Value::Null);
            Err(unreadable(Problem::wrong("bool_type", &["telemetry"], "a valid boolean", found)))
        }
    }
}

/// A name that a client chose: it goes into addresses.
pub fn checked_id(id: &str) -> Result<String, Refusal> {
    let id = id.trim();
    if id.is_empty() || id.len() > LONGEST_ID || id.chars().any(|letter| letter.is_control() || letter == '/') {
        let message = format!("Value error, an id has 1 to {LONGEST_ID} bytes, no slash and no control character");
        return Err(Refusal::invalid(&["sessionId"], message, json!(&id[..id.floor_char_boundary(64)])));
    }
    Ok(id.to_owned())
}

pub(super) fn object(body: &[u8]) -> Result<Map<String, Value>, Refusal> {
    object_of(parsed(body)?)
}

fn parsed(body: &[u8]) -> Result<Value, Refusal> {
    serde_json::from_slice(body).map_err(|error| Refusal::no_json(&error))
}

fn object_of(value: Value) -> Result<Map<String, Value>, Refusal> {
    if check::holds_nul(&value) {
        return Err(unreadable(Problem::wrong("value_error", &[], "free of NUL", &Value::Null)));
    }
    let Value::Object(object) = value else {
        return Err(unreadable(Problem::wrong("model_attributes_type", &[], "a valid dictionary", &value)));
    };
    Ok(object)
}

fn unreadable(problem: Problem) -> Refusal {
    Refusal::unreadable(&[problem])
}

fn require(object: &Map<String, Value>, names: &[&str]) -> Result<(), Refusal> {
    let whole = Value::Object(object.clone());
    let check = |name: &&str| match field(object, name) {
        None => Some(Problem::missing(&[name], &whole)),
        Some(_) => None,
    };
    let mut problems: Vec<Problem> = names.iter().filter_map(check).collect();
    for name in ["userId", "sessionId"].iter().filter(|name| names.contains(name)) {
        if let Some(other) = field(object, name).filter(|value| !value.is_string()) {
            problems.push(Problem::wrong("string_type", &[name], "a valid string", other));
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(Refusal::unreadable(&problems)) }
}

pub(super) fn map(object: &Map<String, Value>, name: &str) -> Result<Map<String, Value>, Refusal> {
    match field(object, name) {
        None => Ok(Map::new()),
        Some(Value::Object(map)) => Ok(map.clone()),
        Some(other) => Err(unreadable(Problem::wrong("dict_type", &[name], "a valid dictionary", other))),
    }
}

/// What was sent, and its parts. Some clients of the path form send `message` as a mere string.
fn message(object: &Map<String, Value>) -> Result<(Option<Value>, Vec<Sent>), Refusal> {
    if let Some(text) = field(object, "message").and_then(Value::as_str) {
        return Ok((None, vec![Sent::Part(Part::text(text))]));
    }
    let Some(content) = field(object, "newMessage") else { return Ok((None, Vec::new())) };
    let Some(fields) = content.as_object() else {
        let problem = Problem::wrong("model_attributes_type", &["newMessage"], "a valid dictionary", content);
        return Err(unreadable(problem));
    };
    let empty = Vec::new();
    let parts = match field(fields, "parts") {
        None => &empty,
        Some(Value::Array(parts)) => parts,
        Some(other) => {
            return Err(unreadable(Problem::wrong("list_type", &["newMessage", "parts"], "a valid list", other)));
        }
    };
    let mut sent = Vec::new();
    for (index, value) in parts.iter().enumerate() {
        let place = [json!("body"), json!("newMessage"), json!("parts"), json!(index)];
        sent.extend(content::read(value, &place).map_err(|problem| unreadable(*problem))?);
    }
    Ok((Some(content.clone()), sent))
}

/// Answers go before words: a message that has both answers.
fn said(sent: Vec<Sent>) -> Said {
    let (mut parts, mut responses) = (Vec::new(), Vec::new());
    for one in sent {
        match one {
            Sent::Part(part) => parts.push(part),
            Sent::Response(response) => responses.push(response),
        }
    }
    match (responses.is_empty(), parts.is_empty()) {
        (false, _) => Said::Responses(responses),
        (true, false) => Said::Parts(parts),
        (true, true) => Said::Nothing,
    }
}

/// An event that a client brings along when it makes a session: words only.
fn brought(index: usize, event: &Value) -> Result<(Role, Vec<Part>), Refusal> {
    let no = |what: &str| Refusal::new(400, format!("Session initialization event {index} cannot include {what}."));
    let empty = Map::new();
    let event = event.as_object().unwrap_or(&empty);
    if field(event, "actions").and_then(Value::as_object).is_some_and(|actions| !actions.is_empty()) {
        return Err(no("event actions"));
    }
    if field(event, "longRunningToolIds").and_then(Value::as_array).is_some_and(|ids| !ids.is_empty()) {
        return Err(no("long-running tool IDs"));
    }
    if let Some(time) = field(event, "timestamp").filter(|time| !time.as_f64().is_some_and(check::is_a_time)) {
        let place = [json!("body"), json!("events"), json!(index), json!("timestamp")].to_vec();
        let message = "Input should be seconds since 1970".to_owned();
        return Err(unreadable(Problem { kind: "float_type", place, message, input: time.clone() }));
    }
    let content = field(event, "content").and_then(Value::as_object).unwrap_or(&empty);
    let parts = field(content, "parts").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let reserved = |part: &Value| {
        let named = |key| part.get(key).and_then(|call| call.get("name")?.as_str());
        let name = named("functionCall").or_else(|| named("function_call"));
        name.or_else(|| named("functionResponse")).is_some_and(|name| RESERVED.contains(&name))
    };
    if parts.iter().any(reserved) {
        return Err(no("ADK protocol function calls"));
    }
    let author = field(event, "author").and_then(Value::as_str).unwrap_or("user");
    let role = if author == "user" { Role::User } else { Role::Agent };
    let mut read = Vec::new();
    for (place, value) in parts.iter().enumerate() {
        let place = [json!("body"), json!("events"), json!(index), json!("content"), json!("parts"), json!(place)];
        match content::read(value, &place).map_err(|problem| unreadable(*problem))? {
            Some(Sent::Part(part)) => read.push(part),
            Some(Sent::Response(_)) => read.push(Part::Unknown(value.clone())),
            None => {}
        }
    }
    Ok((role, read))
}
