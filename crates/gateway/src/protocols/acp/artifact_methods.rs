//! What the tools of a session saved as artifacts, for ACP clients: the list, and one version with its content.

use gander_domain::{ArtifactContent, ServiceError, SessionId};
use gander_services::Services;
use gander_services::artifacts::{ArtifactError, ArtifactScope, NamedArtifact};
use gander_services::errors::service_error_from_store;
use gander_wire::goose::session::goose_session_time;
use serde::Deserialize;
use serde_json::{Value, json};

use super::gander_methods::read_gander_params;
use crate::ClientPeer;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct List {
    session_id: SessionId,
}

pub(super) async fn handle_artifact_list(
    services: &Services,
    peer: &ClientPeer,
    params: Value,
) -> Result<Value, ServiceError> {
    let List { session_id } = read_gander_params(params)?;
    services.sessions.view(&peer.caller, session_id).await?;
    let artifacts = services.artifacts.list(&ArtifactScope::for_session(session_id)).await;
    let artifacts = artifacts.map_err(artifact_method_error)?;
    Ok(json!({ "artifacts": artifacts.iter().map(artifact_list_row).collect::<Vec<_>>() }))
}

fn artifact_list_row(artifact: &NamedArtifact) -> Value {
    let last = artifact.versions.last();
    json!({
        "name": artifact.name,
        "versions": artifact.versions.len(),
        "mimeType": last.and_then(|version| version.mime.as_deref()),
        "updatedAt": last.map(|version| goose_session_time(version.saved_at())),
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Read {
    session_id: SessionId,
    name: String,
    #[serde(default)]
    version: Option<u64>,
}

pub(super) async fn handle_artifact_read(
    services: &Services,
    peer: &ClientPeer,
    params: Value,
) -> Result<Value, ServiceError> {
    let Read { session_id, name, version } = read_gander_params(params)?;
    services.sessions.view(&peer.caller, session_id).await?;
    let found = services.artifacts.load(&ArtifactScope::for_session(session_id), &name, version).await;
    let Some((version, content)) = found.map_err(artifact_method_error)? else {
        return Err(ServiceError::BadParams(format!("no such artifact: {name}")));
    };
    let content = match content {
        ArtifactContent::Text { text } => ("text", text),
        ArtifactContent::Bytes { data } => ("blob", data),
    };
    Ok(json!({ "name": name, "version": version.number, "mimeType": version.mime, (content.0): content.1 }))
}

fn artifact_method_error(error: ArtifactError) -> ServiceError {
    match error {
        ArtifactError::Store(error) => service_error_from_store(&error),
        ArtifactError::BadName(..) | ArtifactError::TooLarge(_) | ArtifactError::Full => {
            ServiceError::BadParams(error.to_string())
        }
    }
}
