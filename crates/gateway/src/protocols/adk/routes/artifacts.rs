//! Artifacts over HTTP. A name may hold slashes, so what follows it is told from its end.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, Request};
use axum::response::IntoResponse;
use gander_wire::adk::{AdkRefusal, NewAdkArtifact};
use serde::Deserialize;
use serde_json::Value;

use super::session_path::{ArtifactPathParam, SessionPath};
use super::{HandlerResult, read_adk_body};
use crate::protocols::adk::VersionChoice;

/// `?version=n`.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct VersionQuery {
    version: Option<String>,
}

/// What is asked for below an artifact's name.
#[derive(Debug, PartialEq, Eq)]
enum ArtifactPath<'a> {
    Content(&'a str),
    Versions(&'a str),
    AllMetadata(&'a str),
    Version(&'a str, &'a str),
    Metadata(&'a str, &'a str),
}

/// `GET …/artifacts`.
pub(crate) async fn list_adk_artifacts(at: SessionPath) -> HandlerResult {
    let located = at.find_session().await?;
    Ok(Json(at.state.adk.list_artifacts(&at.caller, &located).await?).into_response())
}

/// `POST …/artifacts`.
pub(crate) async fn save_adk_artifact(at: SessionPath, request: Request) -> HandlerResult {
    let (_, _, body) = read_adk_body(request).await?;
    let new = NewAdkArtifact::from_body(&body)?;
    let located = at.find_session().await?;
    Ok(Json(at.state.adk.save_artifact(&at.caller, &located, new).await?).into_response())
}

/// `GET …/artifacts/{name}` and everything below it.
pub(crate) async fn get_adk_artifact(
    at: SessionPath,
    Path(ArtifactPathParam { name }): Path<ArtifactPathParam>,
    wanted: Result<Query<VersionQuery>, QueryRejection>,
) -> HandlerResult {
    let located = at.find_session().await?;
    let (adk, caller) = (&at.state.adk, &at.caller);
    Ok(match parse_artifact_path(&name) {
        ArtifactPath::Content(name) => {
            let version = wanted.ok().and_then(|Query(wanted)| wanted.version);
            let which = version.map_or(Ok(VersionChoice::Latest), |version| parse_artifact_version(&version))?;
            Json(adk.load_artifact(caller, &located, name, which).await?).into_response()
        }
        ArtifactPath::Versions(name) => {
            let versions = adk.list_versions(caller, &located, name).await?;
            Json(versions.iter().map(|version| version.version).collect::<Vec<u64>>()).into_response()
        }
        ArtifactPath::AllMetadata(name) => Json(adk.list_versions(caller, &located, name).await?).into_response(),
        ArtifactPath::Version(name, version) => {
            Json(adk.load_artifact(caller, &located, name, parse_artifact_version(version)?).await?).into_response()
        }
        ArtifactPath::Metadata(name, version) => {
            Json(adk.describe_version(caller, &located, name, parse_artifact_version(version)?).await?).into_response()
        }
    })
}

/// `DELETE …/artifacts/{name}`.
pub(crate) async fn delete_adk_artifact(
    at: SessionPath,
    Path(ArtifactPathParam { name }): Path<ArtifactPathParam>,
) -> HandlerResult {
    let located = at.find_session().await?;
    at.state.adk.delete_artifact(&at.caller, &located, &name).await?;
    Ok(Json(Value::Null).into_response())
}

fn parse_artifact_path(rest: &str) -> ArtifactPath<'_> {
    if let Some(name) = rest.strip_suffix("/versions/metadata") {
        return ArtifactPath::AllMetadata(name);
    }
    if let Some(name) = rest.strip_suffix("/versions") {
        return ArtifactPath::Versions(name);
    }
    if let Some((name, version)) = rest.strip_suffix("/metadata").and_then(|rest| rest.rsplit_once("/versions/")) {
        return ArtifactPath::Metadata(name, version);
    }
    match rest.rsplit_once("/versions/") {
        Some((name, version)) if !version.contains('/') => ArtifactPath::Version(name, version),
        Some(_) | None => ArtifactPath::Content(rest),
    }
}

fn parse_artifact_version(text: &str) -> Result<VersionChoice, AdkRefusal> {
    match text {
        "latest" => Ok(VersionChoice::Latest),
        digits => digits.parse().map(VersionChoice::Number).map_err(|_| AdkRefusal::new(422, "Invalid version ID")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_a_name_is_told_from_its_end() {
        assert_eq!(parse_artifact_path("a/b.txt"), ArtifactPath::Content("a/b.txt"));
        assert_eq!(parse_artifact_path("a/b.txt/versions"), ArtifactPath::Versions("a/b.txt"));
        assert_eq!(parse_artifact_path("a/versions/1/b"), ArtifactPath::Content("a/versions/1/b"));
        assert_eq!(parse_artifact_path("a/versions/1"), ArtifactPath::Version("a", "1"));
        assert_eq!(parse_artifact_path("a/versions/latest/metadata"), ArtifactPath::Metadata("a", "latest"));
        assert_eq!(parse_artifact_path("a/versions/metadata"), ArtifactPath::AllMetadata("a"));
    }
}
