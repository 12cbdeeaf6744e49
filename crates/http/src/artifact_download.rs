//! What a session keeps under a name, as a file: responses point here for what is too large for them.

use axum::extract::Query;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gander_domain::SessionId;
use gander_domain::caller::Caller;
use gander_runtime::hub::HubError;
use gander_services::artifacts::{ArtifactContent, ArtifactError, ArtifactScope, SavedVersion};
use gander_services::sessions::SessionError;
use gander_store::StoreError;
use http::Uri;
use http::header::{self, HeaderValue};
use serde::Deserialize;

use crate::state::HttpState;

/// `?name=…&version=…`.
#[derive(Debug, Deserialize)]
struct ArtifactQuery {
    name: String,
    version: u64,
}

/// Why there is no file.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    #[error("an artifact is asked for by its session's id, its name and its version: {0}")]
    Unreadable(String),
    #[error("no such artifact: {0}")]
    Missing(String),
    #[error("the store failed, see the server's log")]
    Failed,
    #[error("the store is busy or read-only, try again in a moment")]
    Later,
}

/// One version, for the owner of its session.
pub async fn download_artifact(
    state: &HttpState,
    caller: &Caller,
    session: &str,
    uri: &Uri,
) -> Result<Response, DownloadError> {
    let services = &state.services;
    let query =
        Query::<ArtifactQuery>::try_from_uri(uri).map_err(|error| DownloadError::Unreadable(error.body_text()))?;
    let Query(ArtifactQuery { name, version }) = query;
    let session: SessionId = session.parse().map_err(|_| DownloadError::Unreadable("no session's id".to_owned()))?;
    match services.sessions.find(caller, session).await {
        Ok(_) => {}
        Err(error) if error.is_unknown() => return Err(DownloadError::Missing(name)),
        Err(SessionError::Hub(HubError::Store(error))) => return Err(download_store_error(&error)),
        Err(error) => return Err(download_internal_error(&error)),
    }
    let found = services.artifacts.load(&ArtifactScope::for_session(session), &name, Some(version)).await;
    let found = found.map_err(|error| match error {
        ArtifactError::Store(error) => download_store_error(&error),
        ArtifactError::BadName(..) | ArtifactError::TooLarge(_) | ArtifactError::Full => {
            download_internal_error(&error)
        }
    })?;
    let (version, content) = found.ok_or(DownloadError::Missing(name))?;
    artifact_file_response(&version, content)
}

/// Whatever it is, a browser keeps it and does not run it here: an agent wrote it.
fn artifact_file_response(version: &SavedVersion, content: ArtifactContent) -> Result<Response, DownloadError> {
    let (bytes, otherwise) = match content {
        ArtifactContent::Text { text } => (text.into_bytes(), "text/plain; charset=utf-8"),
        ArtifactContent::Bytes { data } => {
            (STANDARD.decode(data).map_err(|error| download_internal_error(&error))?, "application/octet-stream")
        }
    };
    let mime = version.mime.as_deref().and_then(|mime| HeaderValue::from_str(mime).ok());
    let mut response = bytes.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, mime.unwrap_or(HeaderValue::from_static(otherwise)));
    headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox"));
    Ok(response)
}

fn download_store_error(error: &StoreError) -> DownloadError {
    if error.is_outage() { DownloadError::Later } else { download_internal_error(error) }
}

fn download_internal_error(error: &dyn std::error::Error) -> DownloadError {
    tracing::error!(%error, "an artifact could not be read");
    DownloadError::Failed
}
