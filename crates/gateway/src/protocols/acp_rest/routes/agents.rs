//! Which agents there are.

use axum::Json;
use axum::extract::{Path, Query};
use axum::response::IntoResponse;
use gander_wire::acp_rest::{AcpRestRefusal, AgentList};
use serde::Deserialize;

use super::{AcpRestCaller, HandlerResult};

/// The most that can be asked for at once.
const MAX_PAGE: usize = 1_000;

#[derive(Deserialize)]
pub(crate) struct Page {
    limit: Option<usize>,
    offset: Option<usize>,
}

/// All of them, unless a page is asked for: the SDKs never turn pages.
pub(crate) async fn list_acp_rest_agents(
    AcpRestCaller { state, caller, .. }: AcpRestCaller,
    page: Result<Query<Page>, axum::extract::rejection::QueryRejection>,
) -> HandlerResult {
    let Query(Page { limit, offset }) = page.map_err(|error| AcpRestRefusal::unreadable(error.body_text()))?;
    if limit.is_some_and(|limit| !(1..=MAX_PAGE).contains(&limit)) {
        return Err(AcpRestRefusal::unreadable(format!("limit must be from 1 to {MAX_PAGE}")).into());
    }
    let agents = state.acp_rest.list_agents(&caller, offset.unwrap_or(0), limit.unwrap_or(usize::MAX)).await?;
    Ok(Json(AgentList { agents }).into_response())
}

/// One of them.
pub(crate) async fn get_acp_rest_agent(
    AcpRestCaller { state, caller, .. }: AcpRestCaller,
    Path(name): Path<String>,
) -> HandlerResult {
    Ok(Json(state.acp_rest.describe_agent(&caller, &name).await?).into_response())
}
