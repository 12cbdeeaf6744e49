//! A session as an address names it, and who asks for it.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{FromRequestParts, Path};
use axum::response::{IntoResponse, Response};
use gander_domain::caller::Caller;
use gander_wire::adk::AdkRefusal;
use http::request::Parts;
use serde::Deserialize;

use crate::protocols::adk::AdkState;
use crate::protocols::adk::{AppUser, LocatedSession};

/// `/apps/{app}/users/{user}/sessions/{id}` and everything below.
pub(crate) struct SessionPath {
    pub(crate) state: Arc<AdkState>,
    pub(crate) caller: Caller,
    pub(crate) app_user: AppUser,
    pub(crate) id: String,
}

#[derive(Deserialize)]
struct SessionPathParams {
    app: String,
    user: String,
    id: String,
}

/// What is below, as one text.
#[derive(Deserialize)]
pub(crate) struct ArtifactPathParam {
    pub(crate) name: String,
}

impl SessionPath {
    /// The session, if there is one for whoever asks.
    pub(crate) async fn find_session(&self) -> Result<LocatedSession, AdkRefusal> {
        self.state.adk.find_session(&self.caller, self.app_user.clone(), &self.id).await
    }
}

impl FromRequestParts<Arc<AdkState>> for SessionPath {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<AdkState>) -> Result<Self, Response> {
        let caller = Extension::<Caller>::from_request_parts(parts, state).await;
        let Extension(caller) = caller.map_err(IntoResponse::into_response)?;
        let names = Path::<SessionPathParams>::from_request_parts(parts, state).await;
        let Path(SessionPathParams { app, user, id }) = names.map_err(IntoResponse::into_response)?;
        Ok(Self { state: Arc::clone(state), caller, app_user: AppUser { app, user }, id })
    }
}
