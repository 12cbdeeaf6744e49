//! Tools and resources of a session's MCP servers, used by a client without the agent. Who may is decided here.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gander_domain::caller::Caller;
use gander_domain::{
    Part, Role, ServiceError, SessionId, SessionView, ToolCall, ToolCallId, ToolContent, ToolKind, ToolResult,
};
use gander_mcp::{PromptSpec, Servers};
use gander_store::clock::SystemIds;
use gander_tools::protected::{Afterwards, OnChange, SetAsideChanges};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::Services;
use crate::errors::service_error_from_denied;

/// How long a server that sleeps may take to be ready.
const SERVER_READY_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a server may take to say one of its prompts.
const PROMPT_TIMEOUT: Duration = Duration::from_secs(30);

/// Progress that nobody reads.
const PROGRESS_CAPACITY: usize = 16;

/// Why a tool is not called.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DirectCallError {
    /// The caller may not, or the session is none of its own.
    #[error(transparent)]
    Refused(#[from] ServiceError),
    /// It is a built-in one, which nobody but the agent uses.
    #[error("only the agent uses this tool: {0}")]
    AgentOnly(String),
    /// No server of the session has it.
    #[error("no such tool: {0}")]
    UnknownTool(String),
    /// A server does not start.
    #[error("an extension is not ready")]
    NotReady,
    /// A program changed files between two calls, and nobody has said yet whether that is wanted.
    #[error(
        "these files make other programs run something and changed since the last call, a prompt in this session asks what becomes of them: {0}"
    )]
    Undecided(String),
    /// The server went away.
    #[error("the extension is gone")]
    Gone,
}

/// Calls a tool: the caller decides, so nobody is asked.
pub async fn call_tool_directly(
    services: &Services,
    caller: &Caller,
    session: SessionId,
    name: &str,
    arguments: &Value,
) -> Result<ToolResult, DirectCallError> {
    caller.may_call_tool().map_err(service_error_from_denied)?;
    let (view, servers) = direct_call_servers(services, caller, session).await?;
    let described = servers.describe_call(ToolCallId::make(&mut SystemIds), name, arguments);
    let described = described.ok_or_else(|| match services.tools.iter().any(|tool| tool.spec.name == name) {
        true => DirectCallError::AgentOnly(name.to_owned()),
        false => DirectCallError::UnknownTool(name.to_owned()),
    })?;
    match described {
        Ok(call) if servers.runs_program(&call) => run_watched_directly(services, &view, &servers, &call).await,
        Ok(call) => run_tool_directly(&servers, &call).await,
        Err(misfit) => Ok(misfit),
    }
}

/// Reads a resource. The program that has it may have to be started for that, which takes more than reading.
pub async fn read_resource_directly(
    services: &Services,
    caller: &Caller,
    session: SessionId,
    server: &str,
    uri: &str,
) -> Result<ToolResult, DirectCallError> {
    caller.may_prompt().map_err(service_error_from_denied)?;
    let (view, servers) = direct_call_servers(services, caller, session).await?;
    run_watched_directly(services, &view, &servers, &direct_read_resource_call(json!({ "server": server, "uri": uri })))
        .await
}

/// The prompts of a session's MCP servers. Who may only read sees those of servers that are there already.
pub async fn list_prompts_directly(
    services: &Services,
    caller: &Caller,
    session: SessionId,
) -> Result<Vec<PromptSpec>, DirectCallError> {
    if caller.may_prompt().is_err() {
        let view = services.sessions.view(caller, session).await.map_err(ServiceError::from)?;
        return Ok(services.extensions.servers_of(&view).prompt_specs());
    }
    Ok(direct_call_servers(services, caller, session).await?.1.prompt_specs())
}

/// What a prompt of one of the session's MCP servers says with these arguments; `None` if there is none of this name.
/// Its name is the server's own, or `server:name`.
pub async fn get_prompt_directly(
    services: &Services,
    caller: &Caller,
    session: SessionId,
    name: &str,
    arguments: Map<String, Value>,
) -> Result<Option<Vec<(Role, Vec<Part>)>>, DirectCallError> {
    caller.may_prompt().map_err(service_error_from_denied)?;
    let (_, servers) = direct_call_servers(services, caller, session).await?;
    let known = servers.prompt_specs();
    let whole = known.iter().find(|prompt| prompt.slash_command_name() == name);
    let Some(prompt) = whole.or_else(|| known.iter().find(|prompt| prompt.name == name)) else { return Ok(None) };
    let answer = tokio::time::timeout(PROMPT_TIMEOUT, servers.get_prompt(prompt, arguments)).await;
    let messages = answer.map_err(|_| DirectCallError::NotReady)?;
    messages.map(Some).map_err(|why| ServiceError::BadParams(why).into())
}

/// Reading is itself a tool, under a name that no server's tool can have.
fn direct_read_resource_call(arguments: Value) -> ToolCall {
    ToolCall {
        id: ToolCallId::make(&mut SystemIds),
        name: "read_resource".to_owned(),
        title: "read_resource".to_owned(),
        kind: ToolKind::Read,
        arguments,
        locations: Vec::new(),
        idempotent: true,
    }
}

/// Runs a call that a program on this machine works for. There is no turn in which somebody could be asked about files
/// that make something run: what the program does to them now is undone, and what it did since the last call is left to
/// the next turn, which asks.
async fn run_watched_directly(
    services: &Services,
    view: &SessionView,
    servers: &Servers,
    call: &ToolCall,
) -> Result<ToolResult, DirectCallError> {
    let folders: Vec<PathBuf> = std::iter::once(&view.workspace).chain(&view.folders).map(PathBuf::from).collect();
    let unwatched =
        |error: io::Error| ServiceError::Internal(format!("the workspace could not be looked through: {error}"));
    let changed = services.protected.changes_since_last(&folders, OnChange::Ask).await.map_err(unwatched)?;
    if let Some(changed) = changed.filter(SetAsideChanges::has_changes) {
        return Err(DirectCallError::Undecided(changed.path_names()));
    }
    let watched = services.protected.watch_command(&folders).await.map_err(unwatched)?;
    let watched = watched.followed_by(Afterwards::Programs);
    let mut result = run_tool_directly(servers, call).await?;
    if let Some(aside) = watched.finish_command(OnChange::SetAside).await.map_err(unwatched)? {
        let names = aside.path_names();
        let note =
            format!("[what it did to these files was undone, for they make other programs run something: {names}]");
        result.content.push(ToolContent::Part { part: Part::text(note) });
    }
    Ok(result)
}

/// A caller who hangs up stops what it called.
async fn run_tool_directly(servers: &Servers, call: &ToolCall) -> Result<ToolResult, DirectCallError> {
    let (signals, mut heard) = mpsc::channel(PROGRESS_CAPACITY);
    let cancel = CancellationToken::new();
    let _stop = cancel.clone().drop_guard();
    let deaf = async { while heard.recv().await.is_some() {} };
    let (result, ()) = tokio::join!(servers.call_tool(call, signals, cancel), deaf);
    result.ok_or(DirectCallError::Gone)
}

async fn direct_call_servers(
    services: &Services,
    caller: &Caller,
    session: SessionId,
) -> Result<(SessionView, Arc<Servers>), DirectCallError> {
    let view = services.sessions.view(caller, session).await.map_err(ServiceError::from)?;
    let servers = services.extensions.servers_of(&view);
    servers.start_all();
    let ready = tokio::time::timeout(SERVER_READY_TIMEOUT, servers.wait_until_tried()).await;
    ready.map_err(|_| DirectCallError::NotReady)?;
    Ok((view, servers))
}
