//! What pages ask about agents: who there is, how they are built. Small and true.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::response::IntoResponse;
use axum::{Extension, Json};
use gander_domain::AgentManifest;
use gander_domain::caller::Caller;
use gander_services::slash_commands;
use gander_wire::adk::agent_info::{self, ToolInfo};
use gander_wire::adk::{AdkRefusal, eval_metrics};
use serde::Deserialize;
use serde_json::json;

use super::HandlerResult;
use super::evaluations::{get_evaluation, is_evaluation};
use crate::protocols::adk::AdkState;
use crate::protocols::adk::error::adk_whole_response_refusal;

/// `?detailed=true`, `?dark_mode=true`.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct AgentsQuery {
    detailed: Option<String>,
    dark_mode: Option<String>,
}

/// `GET /version`.
pub(crate) async fn get_adk_version() -> HandlerResult {
    let language_version = env!("CARGO_PKG_RUST_VERSION");
    let body = json!({ "version": gander_services::VERSION, "language": "rust", "language_version": language_version });
    Ok(Json(body).into_response())
}

/// `GET /list-apps`.
pub(crate) async fn list_adk_agents(
    State(state): State<Arc<AdkState>>,
    wanted: Result<Query<AgentsQuery>, QueryRejection>,
) -> HandlerResult {
    let apps = state.adk.list_apps();
    if wanted.is_ok_and(|Query(wanted)| is_true_in_agents_query(wanted.detailed.as_deref())) {
        return Ok(Json(agent_info::adk_app_list(apps.iter().map(|app| &**app))).into_response());
    }
    Ok(Json(apps.iter().map(|app| app.name.as_str()).collect::<Vec<_>>()).into_response())
}

/// `GET /apps/{app}/app-info`.
pub(crate) async fn get_adk_agent_info(
    State(state): State<Arc<AdkState>>,
    Extension(caller): Extension<Caller>,
    Path(app): Path<String>,
) -> HandlerResult {
    let agent = state.adk.find_app(&app)?;
    let mut tools = adk_agent_tools(&state, &agent);
    tools.extend(state.adk.remote_tools(&caller, &agent).await?);
    let commands = slash_commands::list_agent_slash_commands(&state.services, &caller, &agent.name).await;
    let commands = commands.map_err(|error| AdkRefusal::new(500, error.to_string()))?;
    let ways = state
        .adk
        .named_modes(&agent)
        .into_iter()
        .map(|way| (Arc::clone(&way), adk_agent_tools(&state, &way)))
        .collect::<Vec<_>>();
    Ok(Json(agent_info::adk_app_info(&agent, &tools, &commands, &ways)).into_response())
}

/// `GET /config/telemetry`: nothing is sent anywhere.
pub(crate) async fn get_telemetry() -> HandlerResult {
    Ok(Json(json!({ "telemetry": false })).into_response())
}

/// `GET /dev/apps/{app}/…`.
pub(crate) async fn get_agent_dev_info(
    State(state): State<Arc<AdkState>>,
    Extension(caller): Extension<Caller>,
    Path((app, what)): Path<(String, String)>,
    wanted: Result<Query<AgentsQuery>, QueryRejection>,
) -> HandlerResult {
    let agent = state.adk.find_app(&app)?;
    let tools = adk_agent_tools(&state, &agent);
    let dark = wanted.is_ok_and(|Query(wanted)| is_true_in_agents_query(wanted.dark_mode.as_deref()));
    let steps: Vec<&str> = what.split('/').collect();
    let body = match steps.as_slice() {
        ["build_graph"] => {
            let model = state.services.models.known_default();
            agent_info::adk_agent_build_graph(&agent, &tools, model.as_deref())
        }
        ["build_graph_image"] => json!({ "": { "dotSrc": agent_info::adk_agent_dot_graph(&agent, &tools, dark) } }),
        ["graph"] | ["users", _, "sessions", _, "events", _, "graph"] => {
            json!({ "dotSrc": agent_info::adk_agent_dot_graph(&agent, &tools, dark) })
        }
        ["debug", "trace", "session", session] => {
            let _whole = state.whole_response_permit().await.map_err(adk_whole_response_refusal)?;
            state.adk.session_spans(&caller, &app, session).await?.into()
        }
        ["debug", "trace", event] => {
            let _whole = state.whole_response_permit().await.map_err(adk_whole_response_refusal)?;
            let known = state.adk.event_trace(&caller, event).await?;
            known.ok_or_else(|| AdkRefusal::new(404, "Trace not found"))?
        }
        steps if is_evaluation(steps) => return get_evaluation(&state, &caller, &agent.name, steps).await,
        ["metrics-info"] => eval_metrics::eval_metrics_info(),
        ["tests"] => json!([]),
        ["builder"] => return Ok("".into_response()),
        _ => return Err(AdkRefusal::new(404, "Not Found").into()),
    };
    Ok(Json(body).into_response())
}

/// Only of the built-in agents it is known which tools they have in which mode.
fn adk_agent_tools(state: &AdkState, agent: &AgentManifest) -> Vec<ToolInfo> {
    let services = &state.services;
    let settings = services.agents.settings_for_agent(&agent.name, &services.default_session_settings());
    let known =
        services.agents.default_manifest().family.as_ref().is_some_and(|family| agent.family.as_ref() == Some(family));
    let Some(settings) = settings.filter(|_| known) else { return Vec::new() };
    let tool_info = |tool: &gander_tools::ListedTool| ToolInfo {
        name: tool.spec.name.clone(),
        description: tool.spec.description.clone(),
        parameters: (*tool.spec.schema).clone(),
    };
    let (mode, extensions) =
        (services.agent_catalog.modes().selected_mode(&settings), services.extensions.built_ins_everywhere());
    mode.filter_tools(&services.tools).filter(|tool| extensions.offers_group(tool.group)).map(tool_info).collect()
}

fn is_true_in_agents_query(text: Option<&str>) -> bool {
    text.is_some_and(|text| matches!(text.to_ascii_lowercase().as_str(), "true" | "1"))
}
