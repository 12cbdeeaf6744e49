//! Requests of a client, read into what they ask for.

mod params;

use gander_domain::session_command::check_session_command_title;
use gander_domain::{IfBusy, Part, SessionId};
use serde_json::{Map, Value, json};

use self::params::{
    Authenticate, CommandInput, Initialize, List, Named, OpenParams, Prompt, SetMode, SetModel, SetOption, SetTitle,
    read_params,
};
use super::abilities::ClientAbilities;
use super::acp_options::WhenBusy;
use super::content::{self, refuse_nul_in_content};
use super::error::acp_unknown_session_error;
use super::schema::{ClientCapabilities, SessionArchiveFilter};
use super::slash_commands;
use super::types::{AgentProfile, ArchiveFilter, ListFilter, SessionParams};
use crate::jsonrpc::Error;

/// The longest path in bytes.
const MAX_PATH: usize = 4096;
/// Where in `_meta` of a prompt stands what it does if a run is under way.
/// A client's name does not grow longer than so many letters.
const MAX_CLIENT_NAME: usize = 64;

const IF_BUSY_META: [&str; 2] = ["ifBusy", "gander/ifBusy"];

/// Where in `_meta` of a list stands whether it holds sessions that were never prompted.
const UNPROMPTED_META: [&str; 2] = ["unprompted", "gander/unprompted"];
/// Where in what is kept of a prompt stands the command that its client named as such.
const NAMED_COMMAND: &str = "command";

/// Methods of ours and of goose that the server handles itself.
const EXTENSIONS: [&str; 2] = ["_gander/", "_goose/"];

/// What a client asks for.
#[derive(Debug, PartialEq)]
pub enum ClientRequest {
    /// Who are you?
    Initialize(InitializeParams),
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
    List { cwd: Option<String>, cursor: Option<String>, filter: ListFilter },
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
    Prompt { parts: Vec<Part>, meta: Option<Value>, if_busy: IfBusy },
    /// Be told when the run under way has ended.
    Wait,
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
pub struct InitializeParams {
    /// The newest version it speaks, as it said it; null if it did not.
    pub version: Value,
    /// What it calls itself, for people.
    pub name: Option<String>,
    /// What it can do for us.
    pub abilities: ClientAbilities,
}

/// Reads a request.
pub fn read_acp_client_request(method: &str, params: Value, profile: &AgentProfile) -> Result<ClientRequest, Error> {
    match method {
        "initialize" => read_initialize(params).map(ClientRequest::Initialize),
        "authenticate" => {
            read_params(params).map(|Authenticate { method_id }| ClientRequest::Authenticate { method: method_id })
        }
        "logout" if !profile.logins.is_empty() => Ok(ClientRequest::Logout),
        "session/new" => read_params::<OpenParams>(params)?.into_session_params(profile).map(ClientRequest::New),
        "session/load" => {
            read_open_params(params, profile).map(|(session, opening)| ClientRequest::Load(session, opening))
        }
        "session/resume" => {
            read_open_params(params, profile).map(|(session, opening)| ClientRequest::Resume(session, opening))
        }
        "session/fork" => {
            read_open_params(params, profile).map(|(session, opening)| ClientRequest::Fork(session, opening))
        }
        "session/list" => read_list_sessions(params),
        "session/close" => read_acp_session_id(params).map(ClientRequest::Close),
        "session/delete" => read_acp_session_id(params).map(ClientRequest::Delete),
        "session/archive" => read_acp_session_id(params).map(ClientRequest::Archive),
        "session/unarchive" => read_acp_session_id(params).map(ClientRequest::Unarchive),
        "session/set_title" => read_set_title(params),
        "session/status" => read_acp_session_id(params).map(ClientRequest::Status),
        "session/cancel" => read_acp_session_id(params).map(ClientRequest::Cancel),
        "session/prompt" => read_acp_prompt(params, profile),
        "_gander/session/wait" => {
            read_acp_session_id(params).map(|session| ClientRequest::Session(session, SessionRequest::Wait))
        }
        "_session/steering" => read_steer(params, profile),
        "session/set_mode" => read_set_mode(params),
        "session/set_config_option" => read_set_option(params),
        "session/set_model" => read_set_model(params),
        _ if EXTENSIONS.iter().any(|prefix| method.starts_with(prefix)) => {
            Ok(ClientRequest::Extension { method: method.to_owned(), params })
        }
        _ => Err(Error::method_not_found(method)),
    }
}

/// The command that a prompt's client named as such: it must exist.
pub fn read_named_command_request(meta: Option<&Value>) -> Option<&str> {
    let name = meta?.get("acp")?.get(NAMED_COMMAND)?.as_str()?;
    Some(name.strip_prefix('/').unwrap_or(name))
}

/// The session that `session/cancel` names.
pub fn read_acp_cancelled_session(params: Value) -> Result<SessionId, Error> {
    read_acp_session_id(params)
}

fn read_initialize(params: Value) -> Result<InitializeParams, Error> {
    let Initialize { protocol_version, client_info, client_capabilities } = read_params(params)?;
    let number = protocol_version.as_u64().is_some_and(|version| version <= 0xFFFF);
    let known = number || protocol_version.is_string() || protocol_version.is_null();
    if !known {
        return Err(Error::invalid_params("invalid params: protocolVersion must be a whole number"));
    }
    let capabilities = client_capabilities.and_then(|value| serde_json::from_value::<ClientCapabilities>(value).ok());
    Ok(InitializeParams {
        version: protocol_version,
        name: client_info.as_ref().and_then(initialize_client_name),
        abilities: capabilities.as_ref().map(Into::into).unwrap_or_default(),
    })
}

/// What a client calls itself: its title, else its name, on one line and not too long.
fn initialize_client_name(info: &Value) -> Option<String> {
    let said = ["title", "name"].iter().filter_map(|field| info.get(field)?.as_str());
    let short = |text: &str| text.chars().filter(|one| !one.is_control()).take(MAX_CLIENT_NAME).collect::<String>();
    said.map(|text| short(text.trim())).find(|text| !text.is_empty())
}

fn read_acp_session_id(params: Value) -> Result<SessionId, Error> {
    parse_acp_session_id(&read_params::<Named>(params)?.session_id)
}

fn read_open_params(params: Value, profile: &AgentProfile) -> Result<(SessionId, SessionParams), Error> {
    let named = params.get("sessionId").cloned().unwrap_or_default();
    let session = read_acp_session_id(json!({ "sessionId": named }))?;
    Ok((session, read_params::<OpenParams>(params)?.into_session_params(profile)?))
}

fn read_list_sessions(params: Value) -> Result<ClientRequest, Error> {
    let List { cwd, cursor, archived, meta } = read_params(params)?;
    cwd.as_deref().map_or(Ok(()), |cwd| check_path_param("cwd", cwd))?;
    cursor.as_deref().map_or(Ok(()), |cursor| refuse_nul_in_content("cursor", cursor))?;
    let archived = match archived {
        None | Some(SessionArchiveFilter::Exclude) => ArchiveFilter::Exclude,
        Some(SessionArchiveFilter::Include) => ArchiveFilter::Include,
        Some(SessionArchiveFilter::Only) => ArchiveFilter::Only,
        Some(_) => return Err(Error::invalid_params("no such archive filter")),
    };
    let asked = meta.and_then(|meta| UNPROMPTED_META.iter().find_map(|name| meta.get(*name)?.as_bool()));
    let filter = ListFilter { archived, unprompted: asked.unwrap_or(false) };
    Ok(ClientRequest::List { cwd, cursor, filter })
}

fn read_set_title(params: Value) -> Result<ClientRequest, Error> {
    let SetTitle { session_id: id, title: text } = read_params(params)?;
    let title = check_session_command_title(&text).map_err(|error| Error::invalid_params(error.to_string()))?;
    Ok(ClientRequest::SetTitle(parse_acp_session_id(&id)?, title))
}

/// A command that a client names as such must exist, which the server finds out by what is kept of it; a text that
/// merely looks like one is for the agent.
fn read_acp_prompt(params: Value, profile: &AgentProfile) -> Result<ClientRequest, Error> {
    let Prompt { session_id: id, prompt, command, meta } = read_params(params)?;
    let session = parse_acp_session_id(&id)?;
    let prompt = match &command {
        Some(CommandInput { name, input }) => {
            slash_commands::prompt_for_slash_command(name, input.as_deref().unwrap_or_default(), prompt)
        }
        None => prompt,
    };
    let parts = content::acp_prompt_parts(prompt, profile)?;
    let if_busy = read_if_busy(meta.as_ref(), profile)?;
    let mut kept = Map::new();
    kept.extend(meta.map(|meta| ("_meta".to_owned(), meta)));
    kept.extend(command.map(|command| (NAMED_COMMAND.to_owned(), json!(command.name))));
    let meta = (!kept.is_empty()).then(|| json!({ "acp": kept }));
    Ok(ClientRequest::Session(session, SessionRequest::Prompt { parts, meta, if_busy }))
}

/// What the prompt does if a run is under way, in `_meta` under [`IF_BUSY_META`], else as this agent is set.
fn read_if_busy(meta: Option<&Value>, profile: &AgentProfile) -> Result<IfBusy, Error> {
    let said = meta.and_then(|meta| IF_BUSY_META.iter().find_map(|name| meta.get(*name)));
    let Some(said) = said else { return Ok(profile.if_busy.into()) };
    let when: Result<WhenBusy, _> = serde_json::from_value(said.clone());
    when.map(IfBusy::from).map_err(|_| Error::invalid_params(format!("ifBusy is refuse, queue or steer, not: {said}")))
}

/// The extension that adapters of Claude, Codex and others answer.
fn read_steer(params: Value, profile: &AgentProfile) -> Result<ClientRequest, Error> {
    let Prompt { session_id: id, prompt, meta, .. } = read_params(params)?;
    let idle = meta.as_ref().and_then(|meta| meta.get("steering")?.get("idleBehavior")?.as_str());
    let idle = if idle == Some("promptRequired") { WhenIdle::Decline } else { WhenIdle::Start };
    let parts = content::acp_prompt_parts(prompt, profile)?;
    Ok(ClientRequest::Session(parse_acp_session_id(&id)?, SessionRequest::Steer { parts, idle }))
}

fn read_set_mode(params: Value) -> Result<ClientRequest, Error> {
    let SetMode { session_id: id, mode_id } = read_params(params)?;
    Ok(ClientRequest::Session(parse_acp_session_id(&id)?, SessionRequest::SetMode { mode: mode_id }))
}

fn read_set_option(params: Value) -> Result<ClientRequest, Error> {
    let SetOption { session_id: id, config_id, value } = read_params(params)?;
    Ok(ClientRequest::Session(parse_acp_session_id(&id)?, SessionRequest::SetOption { option: config_id, value }))
}

/// Removed from the protocol in June 2026, still sent by clients.
fn read_set_model(params: Value) -> Result<ClientRequest, Error> {
    let SetModel { session_id: id, model_id } = read_params(params)?;
    Ok(ClientRequest::Session(
        parse_acp_session_id(&id)?,
        SessionRequest::SetOption { option: "model".to_owned(), value: model_id },
    ))
}

/// An id that we cannot have made is the id of no session.
fn parse_acp_session_id(text: &str) -> Result<SessionId, Error> {
    refuse_nul_in_content("sessionId", text)?;
    text.parse().map_err(|_| acp_unknown_session_error(&text[..text.floor_char_boundary(64)]))
}

fn check_path_param(what: &str, path: &str) -> Result<(), Error> {
    refuse_nul_in_content(what, path)?;
    if path.len() > MAX_PATH {
        return Err(Error::invalid_params(format!("{what} is longer than this many bytes: {MAX_PATH}")));
    }
    if !path.starts_with('/') {
        return Err(Error::invalid_params(format!("{what} must be an absolute path: {path}")));
    }
    Ok(())
}
