//! A session as an address names it, and who asks for it.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{FromRequestParts, Path};
use axum::response::{IntoResponse, Response};
use gander_wire::adk::Refusal;
use http::request::Parts;
use serde::Deserialize;

use crate::door::adk::{Located, Place};
use crate::http::site::Site;
use crate::token::Identity;

/// `/apps/{app}/users/{user}/sessions/{id}` and everything below.
pub(super) struct At {
    pub(super) site: Arc<Site>,
    pub(super) identity: Identity,
    pub(super) place: Place,
    pub(super) id: String,
}

#[derive(Deserialize)]
struct Names {
    app: String,
    user: String,
    id: String,
}

/// What is below, as one text.
#[derive(Deserialize)]
pub(super) struct Named {
    pub(super) name: String,
}

impl At {
    /// The session, if there is one for whoever asks.
    pub(super) async fn find(&self) -> Result<Located, Refusal> {
        self.site.adk.find(&self.identity, self.place.clone(), &self.id).await
    }
}

impl FromRequestParts<Arc<Site>> for At {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, site: &Arc<Site>) -> Result<Self, Response> {
        let identity = Extension::<Identity>::from_request_parts(parts, site).await;
        let Extension(identity) = identity.map_err(IntoResponse::into_response)?;
        let names = Path::<Names>::from_request_parts(parts, site).await;
        let Path(Names { app, user, id }) = names.map_err(IntoResponse::into_response)?;
        Ok(Self { site: Arc::clone(site), identity, place: Place { app, user }, id })
    }
}
