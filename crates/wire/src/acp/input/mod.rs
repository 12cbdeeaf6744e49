//! Requests of a client, read into what they ask for.

mod params;

use gander_domain::{Part, SessionId};
use serde_json::{Value, json};

use self::params::{
    Authenticate, Initialize, List, Named, Opening, Prompt, SetMode, SetModel, SetOption, SetTitle, read,
};
use super::abilities::Abilities;
use super::content::{self, no_nul, title};
use super::error::unknown_session;
use super::schema::{ClientCapabilities, SessionArchiveFilter};
use super::slash_commands::{self, Slash};
use super::types::{ArchiveFilter, Profile, SessionParams};
use crate::jsonrpc::Error;

/// The longest path in bytes.
const MAX_PATH: usize = 4096;
/// Methods of ours and of goose that the server handles itself.
const EXTENSIONS: [&str; 2] = ["_gander/", "_goose/"];

/// What a client asks for.
#[derive(Debug, PartialEq)]
pub enum Request {
    /// Who are you?
    Initialize(Hello),
    /// Log in.
    Authenticate { method: String },
    /// Log out.
    Logout,
    /// Make a session.
    New(SessionParams),
    /// Show a session from its beginning.
    Load(SessionId, SessionParams),
    /// Go on with a session.
    Resume(SessionId, SessionParams),
    /// Make a session that begins where this one is now.
    Fork(SessionId, SessionParams),
    /// Which sessions are there?
    List { cwd: Option<String>, cursor: Option<String>, archived: ArchiveFilter },
    /// I leave this session.
    Close(SessionId),
    /// Nobody needs this session any more.
    Delete(SessionId),
    /// Put this session away.
    Archive(SessionId),
    /// Take it out again.
    Unarchive(SessionId),
    /// This is what it is called.
    SetTitle(SessionId, String),
    /// Is it in use?
    Status(SessionId),
    /// Stop. Sent with an id by some clients, and then answered.
    Cancel(SessionId),
    /// Something about a session that has to be open here.
    Session(SessionId, SessionRequest),
    /// A method of ours or of goose.
    Extension { method: String, params: Value },
}

/// What a client asks of an open session.
#[derive(Debug, PartialEq)]
pub enum SessionRequest {
    /// Begin a run.
    Prompt { parts: Vec<Part>, meta: Option<Value> },
    /// Do this instead of asking the model.
    Slash(Slash),
    /// Say this into the running turn.
    Steer { parts: Vec<Part>, idle: WhenIdle },
    /// Change the mode.
    SetMode { mode: String },
    /// Change a config option.
    SetOption { option: String, value: String },
}

/// What becomes of a message for a running turn if none runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenIdle {
    /// It begins one.
    Start,
    /// The client is told to send it as a prompt.
    Decline,
}

/// What a client says at `initialize`.
#[derive(Debug, PartialEq)]
pub struct Hello {
    /// The newest version it speaks, as it said it; null if it did not.
    pub version: Value,
    /// What it can do for us.
    pub abilities: Abilities,
}

/// Reads a request.
pub fn request(method: &str, params: Value, profile: &Profile) -> Result<Request, Error> {
    match method {
        "initialize" => hello(params).map(Request::Initialize),
        "authenticate" => read(params).map(|Authenticate { method_id }| Request::Authenticate { method: method_id }),
        "logout" if !profile.logins.is_empty() => Ok(Request::Logout),
        "session/new" => read::<Opening>(params)?.check(profile).map(Request::New),
        "session/load" => opening(params, profile).map(|(session, opening)| Request::Load(session, opening)),
        "session/resume" => opening(params, profile).map(|(session, opening)| Request::Resume(session, opening)),
        "session/fork" => opening(params, profile).map(|(session, opening)| Request::Fork(session, opening)),
        "session/list" => list(params),
        "session/close" => session(params).map(Request::Close),
        "session/delete" => session(params).map(Request::Delete),
        "session/archive" => session(params).map(Request::Archive),
        "session/unarchive" => session(params).map(Request::Unarchive),
        "session/set_title" => set_title(params),
        "session/status" => session(params).map(Request::Status),
        "session/cancel" => session(params).map(Request::Cancel),
        "session/prompt" => prompt(params, profile),
        "_session/steering" => steer(params, profile),
        "session/set_mode" => set_mode(params),
        "session/set_config_option" => set_option(params),
        "session/set_model" => set_model(params),
        _ if EXTENSIONS.iter().any(|prefix| method.starts_with(prefix)) => {
            Ok(Request::Extension { method: method.to_owned(), params })
        }
        _ => Err(Error::method_not_found(method)),
    }
}

/// The session that `session/cancel` names.
pub fn cancel(params: Value) -> Result<SessionId, Error> {
    session(params)
}

fn hello(params: Value) -> Result<Hello, Error> {
    let Initialize { protocol_version, client_capabilities } = read(params)?;
    let number = protocol_version.as_u64().is_some_and(|version| version <= 0xFFFF);
    let known = number || protocol_version.is_string() || protocol_version.is_null();
    if !known {
        return Err(Error::invalid_params("invalid params: protocolVersion must be a whole number"));
    }
    let capabilities = client_capabilities.and_then(|value| serde_json::from_value::<ClientCapabilities>(value).ok());
    Ok(Hello { version: protocol_version, abilities: capabilities.as_ref().map(Into::into).unwrap_or_default() })
}

fn session(params: Value) -> Result<SessionId, Error> {
    session_id(&read::<Named>(params)?.session_id)
}

fn opening(params: Value, profile: &Profile) -> Result<(SessionId, SessionParams), Error> {
    let named = params.get("sessionId").cloned().unwrap_or_default();
    let session = session(json!({ "sessionId": named }))?;
    Ok((session, read::<Opening>(params)?.check(profile)?))
}

fn list(params: Value) -> Result<Request, Error> {
    let List { cwd, cursor, archived } = read(params)?;
    cwd.as_deref().map_or(Ok(()), |cwd| path("cwd", cwd))?;
    cursor.as_deref().map_or(Ok(()), |cursor| no_nul("cursor", cursor))?;
    let archived = match archived {
        None | Some(SessionArchiveFilter::Exclude) => ArchiveFilter::Exclude,
        Some(SessionArchiveFilter::Include) => ArchiveFilter::Include,
        Some(SessionArchiveFilter::Only) => ArchiveFilter::Only,
        Some(_) => return Err(Error::invalid_params("no such archive filter")),
    };
    Ok(Request::List { cwd, cursor, archived })
}

fn set_title(params: Value) -> Result<Request, Error> {
    let SetTitle { session_id: id, title: text } = read(params)?;
    Ok(Request::SetTitle(session_id(&id)?, title(&text)?))
}

/// A command that a client names as such must exist; a text that merely looks like one is for the model.
fn prompt(params: Value, profile: &Profile) -> Result<Request, Error> {
    let Prompt { session_id: id, prompt, command, meta } = read(params)?;
    let session = session_id(&id)?;
    let typed = command.as_ref().and_then(|command| slash_commands::for_agent(&command.name));
    let (prompt, command) = match typed {
        Some(line) => (vec![line.into()], None),
        None => (prompt, command),
    };
    let slash = match command {
        Some(command) => Some(slash_commands::named(&command.name, command.input.as_deref().unwrap_or_default())?),
        None => slash_commands::typed(&prompt)?,
    };
    if let Some(slash) = slash {
        return Ok(Request::Session(session, SessionRequest::Slash(slash)));
    }
    let parts = content::parts(prompt, profile)?;
    let meta = meta.map(|meta| json!({ "acp": { "_meta": meta } }));
    Ok(Request::Session(session, SessionRequest::Prompt { parts, meta }))
}

/// The extension that adapters of Claude, Codex and others answer.
fn steer(params: Value, profile: &Profile) -> Result<Request, Error> {
    let Prompt { session_id: id, prompt, meta, .. } = read(params)?;
    let idle = meta.as_ref().and_then(|meta| meta.get("steering")?.get("idleBehavior")?.as_str());
    let idle = if idle == Some("promptRequired") { WhenIdle::Decline } else { WhenIdle::Start };
    let parts = content::parts(prompt, profile)?;
    Ok(Request::Session(session_id(&id)?, SessionRequest::Steer { parts, idle }))
}

fn set_mode(params: Value) -> Result<Request, Error> {
    let SetMode { session_id: id, mode_id } = read(params)?;
    Ok(Request::Session(session_id(&id)?, SessionRequest::SetMode { mode: mode_id }))
}

fn set_option(params: Value) -> Result<Request, Error> {
    let SetOption { session_id: id, config_id, value } = read(params)?;
    Ok(Request::Session(session_id(&id)?, SessionRequest::SetOption { option: config_id, value }))
}

/// Removed from the protocol in June 2026, still sent by clients.
fn set_model(params: Value) -> Result<Request, Error> {
    let SetModel { session_id: id, model_id } = read(params)?;
    Ok(Request::Session(session_id(&id)?, SessionRequest::SetOption { option: "model".to_owned(), value: model_id }))
}

/// An id that we cannot have made is the id of no session.
fn session_id(text: &str) -> Result<SessionId, Error> {
    no_nul("sessionId", text)?;
    text.parse().map_err(|_| unknown_session(&text[..text.floor_char_boundary(64)]))
}

fn path(what: &str, path: &str) -> Result<(), Error> {
    no_nul(what, path)?;
    if path.len() > MAX_PATH {
        return Err(Error::invalid_params(format!("{what} is longer than this many bytes: {MAX_PATH}")));
    }
    if !path.starts_with('/') {
        return Err(Error::invalid_params(format!("{what} must be an absolute path: {path}")));
    }
    Ok(())
}
