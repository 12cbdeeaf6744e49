//! What pages want to change about agents: evaluations are, the rest is not done here, and each answer says why.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, Request, State};
use gander_domain::caller::Caller;
use gander_wire::adk::AdkRefusal;

use super::evaluations::{change_evaluation, is_evaluation};
use super::{HandlerResult, read_adk_body};
use crate::protocols::adk::AdkState;

/// `POST /agent-identity/finalize`.
pub(crate) async fn refuse_finalize_identity() -> HandlerResult {
    Err(AdkRefusal::new(501, "there are no identities of a cloud here").into())
}

/// `POST`, `PUT` and `DELETE` of `/dev/apps/{app}/…`.
pub(crate) async fn change_adk_agent(
    State(state): State<Arc<AdkState>>,
    Extension(caller): Extension<Caller>,
    Path((app, what)): Path<(String, String)>,
    request: Request,
) -> HandlerResult {
    let agent = state.adk.find_app(&app)?;
    let steps: Vec<&str> = what.split('/').collect();
    if is_evaluation(&steps) {
        let method = request.method().clone();
        let (_, _, body) = read_adk_body(request).await?;
        return change_evaluation(&state, &caller, &agent.name, (&method, &steps), &body).await;
    }
    let (status, text) = match steps.first().copied().unwrap_or_default() {
        "tests" => (501, "there are no recorded tests here"),
        "builder" => (501, "agents are files in the server's folder of agents, they are not built here"),
        "deploy" => (501, "nothing is deployed from here"),
        _ => (404, "Not Found"),
    };
    Err(AdkRefusal::new(status, text).into())
}
