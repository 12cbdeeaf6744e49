//! Requests of a client, read into what they ask for.

use gander_domain::{Part, SessionId};
use serde::Deserialize;
use serde_json::{Value, json};

use super::content::{self, no_nul};
use super::error::unknown_session;
use super::schema::{ClientCapabilities, ContentBlock, McpServer};
use super::types::{Abilities, Profile, SessionParams};
use crate::jsonrpc::{Error, Params};

/// The longest path in bytes.
const MAX_PATH: usize = 4096;
/// Methods of ours that the server handles itself.
const EXTENSION: &str = "_gander/";

/// What a client asks for.
#[derive(Debug, PartialEq)]
pub enum Request {
    /// Who are you?
    Initialize(Hello),
    /// Log in.
    Authenticate { method: String },
    /// Make a session.
    New(SessionParams),
    /// Show a session from its beginning.
    Load(SessionId, SessionParams),
    /// Go on with a session.
    Resume(SessionId, SessionParams),
    /// Which sessions are there?
    List { cwd: Option<String>, cursor: Option<String> },
    /// I leave this session.
    Close(SessionId),
    /// Nobody needs this session any more.
    Delete(SessionId),
    /// Stop. Sent with an id by some clients, and then answered.
    Cancel(SessionId),
    /// Something about a session that has to be open here.
    Session(SessionId, SessionRequest),
    /// A method of ours.
    Extension { method: String, params: Value },
}

/// What a client asks of an open session.
#[derive(Debug, PartialEq)]
pub enum SessionRequest {
    /// Begin a run.
    Prompt { parts: Vec<Part>, meta: Option<Value> },
    /// Change the mode.
    SetMode { mode: String },
    /// Change a config option.
    SetOption { option: String, value: String },
}

/// What a client says at `initialize`.
#[derive(Debug, PartialEq)]
pub struct Hello {
    /// The newest version it speaks.
    pub version: u16,
    /// What it can do for us.
    pub abilities: Abilities,
}

/// Reads a request.
pub fn request(method: &str, params: Params<'_>, profile: &Profile) -> Result<Request, Error> {
    match method {
        "initialize" => hello(params).map(Request::Initialize),
        "authenticate" => params.parse().map(|Authenticate { method_id }| Request::Authenticate { method: method_id }),
        "session/new" => params.parse::<Opening>().and_then(Opening::check).map(Request::New),
        "session/load" => opening(params).map(|(session, opening)| Request::Load(session, opening)),
        "session/resume" => opening(params).map(|(session, opening)| Request::Resume(session, opening)),
        "session/list" => list(params),
        "session/close" => session(params).map(Request::Close),
        "session/delete" => session(params).map(Request::Delete),
        "session/cancel" => session(params).map(Request::Cancel),
        "session/prompt" => prompt(params, profile),
        "session/set_mode" => set_mode(params),
        "session/set_config_option" => set_option(params),
        "session/set_model" => set_model(params),
        _ if method.starts_with(EXTENSION) => {
            Ok(Request::Extension { method: method.to_owned(), params: params.parse()? })
        }
        _ => Err(Error::method_not_found(method)),
    }
}

/// The session that `session/cancel` names.
pub fn cancel(params: Params<'_>) -> Result<SessionId, Error> {
    session(params)
}

fn hello(params: Params<'_>) -> Result<Hello, Error> {
    let Initialize { protocol_version, client_capabilities } = params.parse()?;
    let capabilities = client_capabilities.and_then(|value| serde_json::from_value::<ClientCapabilities>(value).ok());
    Ok(Hello { version: protocol_version, abilities: capabilities.as_ref().map(Into::into).unwrap_or_default() })
}

fn session(params: Params<'_>) -> Result<SessionId, Error> {
    session_id(&params.parse::<Named>()?.session_id)
}

fn opening(params: Params<'_>) -> Result<(SessionId, SessionParams), Error> {
    Ok((session(params)?, params.parse::<Opening>()?.check()?))
}

fn list(params: Params<'_>) -> Result<Request, Error> {
    let List { cwd, cursor } = params.parse()?;
    cwd.as_deref().map_or(Ok(()), |cwd| path("cwd", cwd))?;
    cursor.as_deref().map_or(Ok(()), |cursor| no_nul("cursor", cursor))?;
    Ok(Request::List { cwd, cursor })
}

fn prompt(params: Params<'_>, profile: &Profile) -> Result<Request, Error> {
    let Prompt { session_id: id, prompt, meta } = params.parse()?;
    let parts = content::parts(prompt, profile)?;
    let meta = meta.map(|meta| json!({ "acp": { "_meta": meta } }));
    Ok(Request::Session(session_id(&id)?, SessionRequest::Prompt { parts, meta }))
}

fn set_mode(params: Params<'_>) -> Result<Request, Error> {
    let SetMode { session_id: id, mode_id } = params.parse()?;
    Ok(Request::Session(session_id(&id)?, SessionRequest::SetMode { mode: mode_id }))
}

fn set_option(params: Params<'_>) -> Result<Request, Error> {
    let SetOption { session_id: id, config_id, value } = params.parse()?;
    Ok(Request::Session(session_id(&id)?, SessionRequest::SetOption { option: config_id, value }))
}

/// Removed from the protocol in June 2026, still sent by clients.
fn set_model(params: Params<'_>) -> Result<Request, Error> {
    let SetModel { session_id: id, model_id } = params.parse()?;
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

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Initialize {
    protocol_version: u16,
    client_capabilities: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Authenticate {
    method_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named {
    session_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Opening {
    cwd: Option<String>,
    mcp_servers: Option<Vec<McpServer>>,
    additional_directories: Option<Vec<String>>,
    #[serde(rename = "_meta")]
    meta: Option<Value>,
}

#[derive(Deserialize)]
struct List {
    cwd: Option<String>,
    cursor: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Prompt {
    session_id: String,
    prompt: Vec<ContentBlock>,
    #[serde(rename = "_meta")]
    meta: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SetMode {
    session_id: String,
    mode_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SetOption {
    session_id: String,
    config_id: String,
    value: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SetModel {
    session_id: String,
    model_id: String,
}

impl Opening {
    fn check(self) -> Result<SessionParams, Error> {
        let folders = self.additional_directories.unwrap_or_default();
        self.cwd.as_deref().map_or(Ok(()), |cwd| path("cwd", cwd))?;
        folders.iter().try_for_each(|folder| path("additionalDirectories", folder))?;
        let mcp_servers = self.mcp_servers.unwrap_or_default();
        mcp_servers.iter().try_for_each(mcp_server)?;
        Ok(SessionParams { cwd: self.cwd, folders, mcp_servers, meta: self.meta })
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the schema's enum is open")]
fn mcp_server(server: &McpServer) -> Result<(), Error> {
    match server {
        McpServer::Stdio(stdio) => {
            no_nul("name", &stdio.name)?;
            no_nul("command", &stdio.command.to_string_lossy())?;
            stdio.args.iter().try_for_each(|argument| no_nul("args", argument))
        }
        McpServer::Http(http) => no_nul("name", &http.name).and(no_nul("url", &http.url)),
        McpServer::Sse(sse) => no_nul("name", &sse.name).and(no_nul("url", &sse.url)),
        _ => Err(Error::invalid_params("MCP server of an unknown kind")),
    }
}
