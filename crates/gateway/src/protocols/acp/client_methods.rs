//! Methods of our own (`_gander/…`) for every client: what pages need and the protocol lacks.

use std::path::PathBuf;
use std::sync::Arc;

use gander_domain::{Seq, ServiceError, SessionId};
use gander_runtime::hub::CommitRecord;
use gander_services::Services;
use gander_services::errors::{service_error_from_hub, service_error_from_store};
use gander_services::extension_changes as changes;
use gander_services::session_watch::{
    WatchQuery, WatchedSessions, watch_session_log, watch_sessions, watched_status_word,
};
use gander_services::sessions::HistoryEnd;
use gander_store::{DeltaForm, Durability, Limit, SessionSummary};
use gander_tools::BuiltIn;
use gander_tools::files::complete::complete_paths;
use gander_wire::acp::{history_conversation_updates, history_state_updates};
use gander_wire::goose::session::goose_session_time;
use gander_wire::inspect::Inspection;
use serde::Deserialize;
use serde_json::{Value, json};

use super::artifact_methods::{handle_artifact_list, handle_artifact_read};
use super::gander_methods::read_gander_params;
use crate::ClientPeer;

/// Sessions in one answer at most, and unless the client says how many.
const MAX_SESSIONS: u32 = 500;
const DEFAULT_SESSIONS: u32 = 50;
/// Paths in one answer.
const MAX_PATHS: usize = 20;
/// Messages in one part of a conversation at most, and unless the client says how many. The last part may have more: a
/// message is never cut.
const MAX_MESSAGES: usize = 500;
const DEFAULT_MESSAGES: usize = 40;
/// Entries in one answer at most, and unless the client says how many.
const MAX_ENTRIES: usize = 500;
const DEFAULT_ENTRIES: usize = 200;
/// A longer beginning of a path is none.
const MAX_QUERY: usize = 1024;

/// Carries out a method that every client may call; `None` if there is none of this name.
pub(super) async fn handle_client_method(
    services: &Services,
    peer: &ClientPeer,
    method: &str,
    params: &Value,
) -> Option<Result<Value, ServiceError>> {
    Some(match method {
        "_gander/sessions/watch" => handle_client_watch(services, peer, params.clone()).await,
        "_gander/workspace/files" => handle_client_complete_files(services, peer, params.clone()).await,
        "_gander/extensions/status" => handle_client_extension_status(services, peer, params.clone()).await,
        "_gander/extensions/login" => handle_client_begin_login(services, peer, params.clone()).await,
        "_gander/extensions/login/wait" => handle_client_wait_for_login(services, peer, params.clone()).await,
        "_gander/agents/list" => handle_client_list_agents(services, peer, params.clone()).await,
        "_gander/artifacts/list" => handle_artifact_list(services, peer, params.clone()).await,
        "_gander/artifacts/read" => handle_artifact_read(services, peer, params.clone()).await,
        "_gander/session/history" => handle_client_read_history(services, peer, params.clone()).await,
        "_gander/session/watch" => handle_client_watch_entries(services, peer, params.clone()).await,
        "_gander/session/inspect" => handle_client_inspect_session(services, peer, params.clone()).await,
        _ => return None,
    })
}

/// True if the answer comes when something happens that others do.
pub(super) fn client_method_waits(method: &str) -> bool {
    matches!(method, "_gander/sessions/watch" | "_gander/session/watch" | "_gander/extensions/login/wait")
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Watch {
    after: Option<String>,
    text: Option<String>,
    archived: bool,
    limit: Option<u32>,
}

async fn handle_client_watch(services: &Services, peer: &ClientPeer, params: Value) -> Result<Value, ServiceError> {
    let Watch { after, text, archived, limit } = read_gander_params(params)?;
    let text = text.filter(|text| !text.trim().is_empty());
    let query = WatchQuery { text, archived, limit: limit.unwrap_or(DEFAULT_SESSIONS).clamp(1, MAX_SESSIONS) };
    let now = watch_sessions(services, &peer.caller.principal, &query, after.as_deref()).await;
    now.map(|now| watched_sessions_json(&now)).map_err(|error| service_error_from_store(&error))
}

fn watched_sessions_json(now: &WatchedSessions) -> Value {
    let sessions: Vec<Value> =
        now.sessions.iter().map(|(summary, clients)| watched_session_json(summary, clients)).collect();
    json!({ "cursor": now.next_cursor(), "sessions": sessions, "more": now.more, "waiting": now.waiting })
}

fn watched_session_json(summary: &SessionSummary, clients: &[Arc<str>]) -> Value {
    json!({
        "sessionId": summary.session,
        "cwd": summary.workspace,
        "title": Some(&summary.title).filter(|title| !title.is_empty()),
        "agent": summary.agent,
        "state": watched_status_word(summary.state),
        "createdAt": goose_session_time(summary.created_at),
        "updatedAt": goose_session_time(summary.updated_at),
        "archived": summary.archived,
        "messages": summary.messages,
        "parent": summary.parent,
        "clients": clients.len(),
        "clientNames": clients,
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Files {
    session_id: SessionId,
    #[serde(default)]
    query: String,
}

/// Files of a session's workspace, as its agent may list them.
async fn handle_client_complete_files(
    services: &Services,
    peer: &ClientPeer,
    params: Value,
) -> Result<Value, ServiceError> {
    let Files { session_id, query } = read_gander_params(params)?;
    let view = services.sessions.view(&peer.caller, session_id).await?;
    if query.len() > MAX_QUERY {
        return Err(ServiceError::BadParams(format!("query is longer than this many bytes: {MAX_QUERY}")));
    }
    let (files, root) = (services.files.clone(), PathBuf::from(&view.workspace));
    let folders: Vec<PathBuf> = view.folders.iter().map(PathBuf::from).collect();
    let paths = tokio::task::spawn_blocking(move || {
        files.open(&root, &folders).map(|workspace| complete_paths(&workspace, &query, MAX_PATHS)).unwrap_or_default()
    });
    let paths = paths.await.map_err(|error| ServiceError::Internal(error.to_string()))?;
    Ok(json!({ "paths": paths }))
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    session_id: Option<SessionId>,
}

/// The built-in tools and the MCP servers, and how these are in a session. Programs and addresses are the owner's alone.
async fn handle_client_extension_status(
    services: &Services,
    peer: &ClientPeer,
    params: Value,
) -> Result<Value, ServiceError> {
    let Status { session_id } = read_gander_params(params)?;
    let on = match session_id {
        Some(session) => {
            let view = services.sessions.view(&peer.caller, session).await?;
            services.extensions.built_ins(&view)
        }
        None => services.extensions.built_ins_everywhere(),
    };
    let built_in = |known: BuiltIn| {
        let state = if on.is_enabled(known) { "on" } else { "off" };
        json!({ "name": known.name(), "kind": "built_in", "state": state, "description": known.description() })
    };
    let server = |listed: &Value| {
        let mut shown = json!({ "name": listed["name"], "kind": "mcp", "state": "configured" });
        for field in ["state", "tools"].iter().filter(|field| !listed[**field].is_null()) {
            shown[*field] = listed[*field].clone();
        }
        for field in ["place", "reason"].iter().filter(|field| peer.caller.is_owner() && !listed[**field].is_null()) {
            shown[*field] = listed[*field].clone();
        }
        shown
    };
    let servers = services.extensions.list_json(session_id);
    let servers = servers.as_array().map(|servers| servers.iter().map(server).collect::<Vec<_>>()).unwrap_or_default();
    Ok(json!({ "extensions": BuiltIn::ALL.map(built_in).into_iter().chain(servers).collect::<Vec<_>>() }))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Login {
    #[serde(default)]
    session_id: Option<SessionId>,
    name: String,
}

/// The address that a person opens to log in at an MCP server. Tokens belong to the caller's own principal, and a turn
/// that needs the login shows the same address.
async fn handle_client_begin_login(
    services: &Services,
    peer: &ClientPeer,
    params: Value,
) -> Result<Value, ServiceError> {
    let Login { session_id, name } = read_gander_params(params)?;
    changes::begin_extension_login(services, &peer.caller, session_id, &name).await.map(|url| json!({ "url": url }))
}

async fn handle_client_wait_for_login(
    services: &Services,
    peer: &ClientPeer,
    params: Value,
) -> Result<Value, ServiceError> {
    let Login { name, .. } = read_gander_params(params)?;
    changes::wait_for_extension_login(services, &peer.caller, &name).await.map(|()| json!({}))
}

/// The agents that a session can be set to, each with the names of its modes, the default first; all without a session.
async fn handle_client_list_agents(
    services: &Services,
    peer: &ClientPeer,
    params: Value,
) -> Result<Value, ServiceError> {
    let Status { session_id } = read_gander_params(params)?;
    let view = match session_id {
        Some(session) => Some(services.sessions.view(&peer.caller, session).await?),
        None => None,
    };
    let catalog = (services.catalog)(view.as_ref().map_or("/", |view| view.workspace.as_str()));
    let modes: Vec<_> = match &view {
        Some(view) => catalog.roster.available_modes(&view.settings).collect(),
        None => catalog.roster.agent_modes().iter().collect(),
    };
    let agents = catalog.roster.agents().iter().filter_map(|agent| {
        let own = modes.iter().filter(|way| way.agent.name == agent.name).map(|way| way.name.as_str());
        let own: Vec<&str> = own.collect();
        let shown = json!({ "name": agent.name, "title": agent.title, "description": agent.description, "modes": own });
        (!own.is_empty()).then_some(shown)
    });
    Ok(json!({ "agents": agents.collect::<Vec<_>>() }))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct History {
    session_id: SessionId,
    #[serde(default)]
    last: Option<Value>,
    #[serde(default)]
    limit: Option<usize>,
}

/// A part of a conversation as updates, read from its end; beside it the title, the plan and the usage as they are now.
async fn handle_client_read_history(
    services: &Services,
    peer: &ClientPeer,
    params: Value,
) -> Result<Value, ServiceError> {
    let History { session_id, last, limit } = read_gander_params(params)?;
    let limit = limit.unwrap_or(DEFAULT_MESSAGES).clamp(1, MAX_MESSAGES);
    let view = services.sessions.view(&peer.caller, session_id).await?;
    let last = last.as_ref().map(history_end).transpose()?;
    let page = services.sessions.history_page(session_id, last, limit).await?;
    let catalog = (services.catalog)(&view.workspace);
    let updates = history_conversation_updates(&view, &catalog, &page.entries);
    Ok(
        json!({ "updates": updates, "earlier": page.earlier.map(|end| end.to_string()), "state": history_state_updates(&view, &catalog) }),
    )
}

/// The number of an entry, or what an earlier answer said.
fn history_end(last: &Value) -> Result<HistoryEnd, ServiceError> {
    let text = last.as_str().map_or_else(|| last.to_string(), str::to_owned);
    text.parse()
        .map_err(|_| ServiceError::BadParams(format!("last is neither an entry's number nor an earlier: {text}")))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WatchEntries {
    session_id: SessionId,
    #[serde(default)]
    after: u64,
}

async fn handle_client_watch_entries(
    services: &Services,
    peer: &ClientPeer,
    params: Value,
) -> Result<Value, ServiceError> {
    let WatchEntries { session_id, after } = read_gander_params(params)?;
    services.sessions.view(&peer.caller, session_id).await?;
    let head = watch_session_log(services, session_id, Seq(after)).await;
    head.map(|head| json!({ "head": head })).map_err(|error| service_error_from_hub(session_id, &error.into()))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Inspect {
    session_id: SessionId,
    #[serde(default)]
    after: u64,
    #[serde(default)]
    limit: Option<usize>,
}

/// A page of a session's log with what every protocol says of each entry. The log is folded from its beginning: this is
/// for people who look, not for programs that follow.
async fn handle_client_inspect_session(
    services: &Services,
    peer: &ClientPeer,
    params: Value,
) -> Result<Value, ServiceError> {
    let Inspect { session_id, after, limit } = read_gander_params(params)?;
    let limit = limit.unwrap_or(DEFAULT_ENTRIES).clamp(1, MAX_ENTRIES);
    let view = services.sessions.view(&peer.caller, session_id).await?;
    let (store, catalog) = (services.hub.store(), (services.catalog)(&view.workspace));
    let (mut inspection, mut place, mut shown) = (Inspection::default(), Seq::ZERO, Vec::new());
    while shown.len() < limit {
        let page = store.read(session_id, place, Limit::default(), DeltaForm::Joined).await;
        let page = page.map_err(|error| service_error_from_hub(session_id, &error.into()))?;
        let Some(last) = page.last() else { break };
        place = last.seq;
        for entry in page {
            let projections = inspection.project_entry(&catalog, &entry);
            if entry.seq > Seq(after) && shown.len() < limit {
                shown.push(json!({ "entry": entry, "projections": projections }));
            }
        }
    }
    let head = store.head(session_id).await.map_err(|error| service_error_from_hub(session_id, &error.into()))?;
    let last = shown.last().and_then(|last| last["entry"]["seq"].as_u64()).unwrap_or_default();
    let commits = services.hub.commits(session_id, Seq(after).next(), Seq(last));
    let names = services.clients.attached_names(session_id);
    Ok(json!({
        "entries": shown,
        "head": head,
        "commits": commits.iter().map(inspected_commit).collect::<Vec<_>>(),
        "clients": names.len(),
        "clientNames": names,
    }))
}

fn inspected_commit(commit: &CommitRecord) -> Value {
    let CommitRecord { first, last, sync, took } = commit;
    json!({ "first": first, "last": last, "synced": *sync == Durability::Barrier, "micros": u64::try_from(took.as_micros()).unwrap_or(u64::MAX) })
}
