//! Artifacts over HTTP. A name may hold slashes, so what follows it is told from its end.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, Request};
use axum::response::IntoResponse;
use gander_wire::adk::{NewArtifact, Refusal};
use serde::Deserialize;
use serde_json::Value;

use super::session_path::{At, Named};
use super::{Answer, whole};
use crate::protocols::adk::Numbered;

/// `?version=n`.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Wanted {
    version: Option<String>,
}

/// What is asked for below an artifact's name.
#[derive(Debug, PartialEq, Eq)]
enum Below<'a> {
    Content(&'a str),
    Versions(&'a str),
    AllMetadata(&'a str),
    Version(&'a str, &'a str),
    Metadata(&'a str, &'a str),
}

/// `GET …/artifacts`.
pub(crate) async fn list(at: At) -> Answer {
    let located = at.find().await?;
    Ok(Json(at.state.adk.artifacts(&at.identity, &located).await?).into_response())
}

/// `POST …/artifacts`.
pub(crate) async fn save(at: At, request: Request) -> Answer {
    let (_, _, body) = whole(request).await?;
    let new = NewArtifact::read(&body)?;
    let located = at.find().await?;
    Ok(Json(at.state.adk.save(&at.identity, &located, new).await?).into_response())
}

/// `GET …/artifacts/{name}` and everything below it.
pub(crate) async fn get(
    at: At,
    Path(Named { name }): Path<Named>,
    wanted: Result<Query<Wanted>, QueryRejection>,
) -> Answer {
    let located = at.find().await?;
    let (adk, identity) = (&at.state.adk, &at.identity);
    Ok(match below(&name) {
        Below::Content(name) => {
            let version = wanted.ok().and_then(|Query(wanted)| wanted.version);
            let which = version.map_or(Ok(Numbered::Latest), |version| number(&version))?;
            Json(adk.load(identity, &located, name, which).await?).into_response()
        }
        Below::Versions(name) => {
            let versions = adk.versions(identity, &located, name).await?;
            Json(versions.iter().map(|version| version.version).collect::<Vec<u64>>()).into_response()
        }
        Below::AllMetadata(name) => Json(adk.versions(identity, &located, name).await?).into_response(),
        Below::Version(name, version) => {
            Json(adk.load(identity, &located, name, number(version)?).await?).into_response()
        }
        Below::Metadata(name, version) => {
            Json(adk.version(identity, &located, name, number(version)?).await?).into_response()
        }
    })
}

/// `DELETE …/artifacts/{name}`.
pub(crate) async fn delete(at: At, Path(Named { name }): Path<Named>) -> Answer {
    let located = at.find().await?;
    at.state.adk.remove(&at.identity, &located, &name).await?;
    Ok(Json(Value::Null).into_response())
}

fn below(rest: &str) -> Below<'_> {
    if let Some(name) = rest.strip_suffix("/versions/metadata") {
        return Below::AllMetadata(name);
    }
    if let Some(name) = rest.strip_suffix("/versions") {
        return Below::Versions(name);
    }
    if let Some((name, version)) = rest.strip_suffix("/metadata").and_then(|rest| rest.rsplit_once("/versions/")) {
        return Below::Metadata(name, version);
    }
    match rest.rsplit_once("/versions/") {
        Some((name, version)) if !version.contains('/') => Below::Version(name, version),
        Some(_) | None => Below::Content(rest),
    }
}

fn number(text: &str) -> Result<Numbered, Refusal> {
    match text {
        "latest" => Ok(Numbered::Latest),
        digits => digits.parse().map(Numbered::Number).map_err(|_| Refusal::new(422, "Invalid version ID")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_a_name_is_told_from_its_end() {
        assert_eq!(below("a/b.txt"), Below::Content("a/b.txt"));
        assert_eq!(below("a/b.txt/versions"), Below::Versions("a/b.txt"));
        assert_eq!(below("a/versions/1/b"), Below::Content("a/versions/1/b"));
        assert_eq!(below("a/versions/1"), Below::Version("a", "1"));
        assert_eq!(below("a/versions/latest/metadata"), Below::Metadata("a", "latest"));
        assert_eq!(below("a/versions/metadata"), Below::AllMetadata("a"));
    }
}
