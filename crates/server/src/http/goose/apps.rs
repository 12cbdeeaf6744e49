//! Apps as goose's clients keep them.

use axum::extract::Path;
use axum::response::{Html, IntoResponse};
use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Answer, Caller, Fault, bad, json_answer, read};
use crate::apps::AppError;

/// `GET /agent/list_apps`: each with its page.
pub(super) async fn list(caller: Caller) -> Answer {
    let (desk, principal) = (caller.desk(), &caller.peer.principal);
    let mut apps: Vec<Value> = Vec::new();
    for app in desk.apps.list(principal).await? {
        let mut shown = app.shown();
        shown["text"] = json!(desk.apps.read(principal, &app.name, None).await?.1);
        apps.push(shown);
    }
    json_answer(json!({ "apps": apps }))
}

/// `GET /agent/export_app/{name}`.
pub(super) async fn export(caller: Caller, Path(name): Path<String>) -> Answer {
    let (_, html) = caller.desk().apps.read(&caller.peer.principal, &name, None).await?;
    // The page is somebody's program: it must not run as one of ours.
    let mut response = Html(html).into_response();
    let policy = http::HeaderValue::from_static("sandbox");
    response.headers_mut().insert(http::header::CONTENT_SECURITY_POLICY, policy);
    Ok(response)
}

/// `POST /agent/import_app`.
pub(super) async fn import(caller: Caller, body: Bytes) -> Answer {
    #[derive(Deserialize)]
    struct Import {
        html: String,
    }
    let Import { html } = read(&body)?;
    let name = caller.desk().apps.import(&caller.peer.principal, html).await?;
    let message = format!("App '{name}' imported");
    Ok((StatusCode::CREATED, axum::Json(json!({ "name": name, "message": message }))).into_response())
}

impl From<AppError> for Fault {
    fn from(error: AppError) -> Self {
        match error {
            AppError::Missing(_) => Self::new(StatusCode::NOT_FOUND, error.to_string()),
            AppError::Taken(_) => Self::new(StatusCode::CONFLICT, error.to_string()),
            AppError::BadName(_) | AppError::BadPage(_) => bad(error.to_string()),
            AppError::Kept(error) => {
                tracing::error!(%error, "apps could not be read or kept");
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "the store failed")
            }
        }
    }
}
