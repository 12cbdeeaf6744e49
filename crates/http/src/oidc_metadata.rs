//! `/.well-known/oauth-protected-resource` (RFC 9728): which identity provider's tokens count here, and how to log in.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use gander_services::oidc::{OidcSettings, ServerLogin};
use http::request::Parts;
use serde_json::json;

use crate::error::not_found_response;
use crate::origin_check::request_base_url;
use crate::state::HttpState;

/// Where clients find it.
pub(crate) const OIDC_METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

/// Public, because it is for those who have no token yet. Without an identity provider there is no such route.
pub(crate) async fn get_oidc_metadata(State(state): State<Arc<HttpState>>, parts: Parts) -> Response {
    let Some(provider) = state.tokens.provider() else { return not_found_response(parts.uri).await };
    let settings = provider.settings();
    Json(json!({
        "resource": request_base_url(&parts),
        "authorization_servers": [settings.issuer],
        "bearer_methods_supported": ["header"],
        "scopes_supported": settings.scopes.keys().collect::<Vec<_>>(),
        "gander_login": server_login(settings),
    }))
    .into_response()
}

/// How `gander login` logs in; absent if the owner registered no client for it.
fn server_login(settings: &OidcSettings) -> Option<ServerLogin> {
    Some(ServerLogin {
        issuer: settings.issuer.clone(),
        client_id: settings.client_id.clone()?,
        audience: settings.audience.clone(),
        scopes: settings.login_scopes.clone(),
    })
}
