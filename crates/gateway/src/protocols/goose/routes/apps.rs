//! Apps as goose's clients keep them.

use axum::extract::Path;
use axum::response::{Html, IntoResponse};
use bytes::Bytes;
use gander_services::apps::AppError;
use gander_services::artifacts::ArtifactError;
use gander_services::errors::service_error_from_store;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{GooseCaller, HandlerResult, goose_json_response, read_goose_json};
use crate::protocols::goose::error::{GooseError, goose_bad_request};

/// `GET /agent/list_apps`: each with its page.
pub(crate) async fn list_goose_apps(caller: GooseCaller) -> HandlerResult {
    let (services, principal) = (caller.services(), &caller.peer.caller.principal);
    let mut apps: Vec<Value> = Vec::new();
    for app in services.apps.list(principal).await? {
        let mut shown = app.to_json();
        shown["text"] = json!(services.apps.read(principal, &app.name, None).await?.1);
        apps.push(shown);
    }
    goose_json_response(json!({ "apps": apps }))
}

/// `GET /agent/export_app/{name}`.
pub(crate) async fn export_goose_app(caller: GooseCaller, Path(name): Path<String>) -> HandlerResult {
    let (_, html) = caller.services().apps.read(&caller.peer.caller.principal, &name, None).await?;
    // The page is somebody's program: it must not run as one of ours.
    let mut response = Html(html).into_response();
    let policy = http::HeaderValue::from_static("sandbox");
    response.headers_mut().insert(http::header::CONTENT_SECURITY_POLICY, policy);
    Ok(response)
}

/// `POST /agent/import_app`.
pub(crate) async fn import_goose_app(caller: GooseCaller, body: Bytes) -> HandlerResult {
    #[derive(Deserialize)]
    struct Import {
        html: String,
    }
    let Import { html } = read_goose_json(&body)?;
    let name = caller.services().apps.import(&caller.peer.caller.principal, html).await?;
    let message = format!("App '{name}' imported");
    Ok((StatusCode::CREATED, axum::Json(json!({ "name": name, "message": message }))).into_response())
}

impl From<AppError> for GooseError {
    fn from(error: AppError) -> Self {
        match error {
            AppError::Missing(_) => Self::new(StatusCode::NOT_FOUND, error.to_string()),
            AppError::Taken(_) => Self::new(StatusCode::CONFLICT, error.to_string()),
            AppError::BadName(_) | AppError::BadPage(_) => goose_bad_request(error.to_string()),
            AppError::Kept(ArtifactError::Store(error)) => service_error_from_store(&error).into(),
            AppError::Kept(error @ ArtifactError::TooLarge(_)) => {
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, error.to_string())
            }
            AppError::Kept(error @ ArtifactError::BadName(..)) => goose_bad_request(error.to_string()),
            AppError::Kept(error @ ArtifactError::Full) => {
                Self::new(StatusCode::INSUFFICIENT_STORAGE, error.to_string())
            }
        }
    }
}
