//! What the terminal shows of all sessions: their states, who began them, and what a short id means.

use gander_domain::caller::Caller;
use gander_domain::{AgentManifest, ServiceError, SessionCatalog, SessionId};
use gander_services::Services;
use gander_services::models::Provider;
use gander_services::sessions::{SessionError, SessionFilter};
use gander_store::{PageKey, RunQuery, RunSort, RunState, SessionStatus, SessionSummary};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::ClientPeer;

/// Sessions on one page.
const PAGE_SIZE: u32 = 200;

/// Sessions that are looked through for a short id: whoever has more says more of it.
const MAX_SEARCHED: usize = 100_000;

/// Sessions that a short id is said to mean.
const MAX_MATCHES: usize = 8;

#[derive(Deserialize)]
pub(super) struct ListParams {
    #[serde(default)]
    cwd: Option<String>,
    #[serde(default)]
    cursor: Option<String>,
    /// Only those in this state.
    #[serde(default)]
    state: Option<StateName>,
}

/// What a session does now.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StateName {
    Running,
    Waiting,
    Idle,
}

#[derive(Deserialize)]
pub(super) struct FindParams {
    prefix: String,
}

#[derive(Deserialize)]
pub(super) struct CatalogParams {
    #[serde(default)]
    cwd: Option<String>,
}

/// A page of the caller's sessions, last changed first.
pub(super) async fn list_session_overview(
    services: &Services,
    peer: &ClientPeer,
    params: ListParams,
) -> Result<Value, ServiceError> {
    let after = params.cursor.map(|cursor| cursor.parse()).transpose().map_err(ServiceError::BadParams)?;
    let state = params.state.map(|state| match state {
        StateName::Running => SessionStatus::Running,
        StateName::Waiting => SessionStatus::Awaiting,
        StateName::Idle => SessionStatus::Idle,
    });
    let workspace = params.cwd.map(|cwd| services.workspaces.canonical_name(cwd));
    let filter = SessionFilter { workspace, state, after, limit: PAGE_SIZE, ..SessionFilter::default() };
    let page = services.sessions.list(&peer.caller, filter).await?;
    let rows = page.sessions.iter().map(|summary| session_overview_row(services, &peer.caller, summary));
    let rows = futures::future::try_join_all(rows).await?;
    Ok(json!({ "sessions": rows, "nextCursor": page.next.map(|next| next.to_string()) }))
}

/// The sessions whose id begins like this.
pub(super) async fn find_session_by_prefix(
    services: &Services,
    peer: &ClientPeer,
    params: FindParams,
) -> Result<Value, ServiceError> {
    let prefix = params.prefix.to_ascii_lowercase();
    let (mut matches, mut after, mut searched): (Vec<SessionId>, Option<PageKey>, usize) = (Vec::new(), None, 0);
    for archived in [false, true] {
        loop {
            let filter = SessionFilter { archived, after, limit: 1_000, ..SessionFilter::default() };
            let page = services.sessions.list(&peer.caller, filter).await?;
            searched += page.sessions.len();
            let fitting = page.sessions.iter().map(|summary| summary.session);
            matches.extend(fitting.filter(|session| session.to_string().starts_with(&prefix)));
            after = page.next;
            if after.is_none() || searched >= MAX_SEARCHED || matches.len() > MAX_MATCHES {
                break;
            }
        }
    }
    matches.truncate(MAX_MATCHES);
    Ok(json!({ "sessions": matches }))
}

/// What sessions in a folder can be set to.
pub(super) async fn catalog_overview(services: &Services, params: CatalogParams) -> Value {
    let default = services.models.default_model().await;
    let catalog: std::sync::Arc<SessionCatalog> = (services.catalog)(params.cwd.as_deref().unwrap_or("/"));
    let modes = catalog.roster.agent_modes().iter().map(|way| {
        json!({
            "name": way.name, "agent": way.agent.name, "title": way.mode.name, "description": way.mode.description,
            "category": way.mode.category,
        })
    });
    let agents = catalog.roster.agents().iter().map(|agent| agent_overview_row(services, agent));
    let models = catalog.models.iter().map(|model| json!({ "id": model.id, "default": model.id == default.model }));
    json!({
        "modes": modes.collect::<Vec<_>>(),
        "agents": agents.collect::<Vec<_>>(),
        "models": models.collect::<Vec<_>>(),
        "providers": services.models.providers().iter().map(provider_overview_row).collect::<Vec<_>>(),
        "defaultModel": default.model,
        "defaultModelReason": default.reason,
    })
}

/// An agent, and why it cannot run here if it cannot.
fn agent_overview_row(services: &Services, agent: &AgentManifest) -> Value {
    let AgentManifest { name, title, description, modes, .. } = agent;
    let mut row = json!({ "name": name, "title": title, "description": description, "modes": modes.len() });
    if let Some(problem) = services.agents.find_problem(name) {
        row["problem"] = json!({ "reason": problem.reason, "fix": problem.fix });
    }
    row
}

/// A provider, and which variable holds its key. Never the key.
fn provider_overview_row(provider: &Provider) -> Value {
    let keys = provider.variables.iter().filter(|variable| variable.secret).map(|variable| &variable.name);
    json!({
        "name": provider.name,
        "title": provider.title,
        "defaultModel": provider.default_model,
        "configured": provider.configured,
        "built": provider.built,
        "keyVariables": keys.collect::<Vec<_>>(),
    })
}

async fn session_overview_row(
    services: &Services,
    caller: &Caller,
    summary: &SessionSummary,
) -> Result<Value, SessionError> {
    let state = match summary.state {
        SessionStatus::Running => "running",
        SessionStatus::Awaiting => "waiting",
        SessionStatus::Idle if session_has_failed(services, caller, summary).await? => "failed",
        SessionStatus::Idle => "idle",
    };
    Ok(json!({
        "sessionId": summary.session,
        "title": summary.title,
        "cwd": summary.workspace,
        "agent": summary.agent,
        "updatedAt": summary.updated_at.as_micros(),
        "state": state,
        "parent": summary.parent,
        "messages": summary.messages,
    }))
}

/// True if the last thing that happened is that a run could not go on.
async fn session_has_failed(
    services: &Services,
    caller: &Caller,
    summary: &SessionSummary,
) -> Result<bool, SessionError> {
    let query = RunQuery {
        principal: summary.owner.clone(),
        agent: None,
        session: Some(summary.session),
        state: None,
        since: None,
        after: None,
        limit: 1,
    };
    let last = services.sessions.list_runs(caller, query).await?.rows.into_iter().next();
    Ok(last.is_some_and(|run| matches!(run.state, RunState::Ended(..)) && run.state.sort_key() == RunSort::Failed))
}
