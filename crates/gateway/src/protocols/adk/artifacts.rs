//! Artifacts of a session, and those of a user under `user:` names.

use gander_domain::Part;
use gander_domain::caller::Caller;
use gander_runtime::backend::RemoteContent;
use gander_services::artifacts::{ArtifactContent, ArtifactError, ArtifactScope, NewVersion, SavedVersion};
use gander_wire::adk::types::adk_epoch_seconds;
use gander_wire::adk::{AdkRefusal, ArtifactVersion, NewAdkArtifact};
use serde_json::{Value, json};

use super::{Adk, AppUser, LocatedSession, adk_store_refusal};

/// Which version of an artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionChoice {
    /// The latest.
    Latest,
    /// This one.
    Number(u64),
}

impl Adk {
    /// The names of all artifacts that a session sees.
    pub async fn list_artifacts(&self, caller: &Caller, located: &LocatedSession) -> Result<Vec<String>, AdkRefusal> {
        let mut names = Vec::new();
        for scope in [ArtifactScope::for_session(located.session), adk_user_artifact_scope(caller, &located.app_user)] {
            let kept = self.services.artifacts.list(&scope).await.map_err(adk_artifact_refusal)?;
            names.extend(kept.into_iter().map(|kept| kept.name));
        }
        let view = self.load_view(caller, located.session).await?;
        names.extend(self.services.hub.backend().list_remote_files(&view).await);
        Ok(names)
    }

    /// Puts something away.
    pub async fn save_artifact(
        &self,
        caller: &Caller,
        located: &LocatedSession,
        new: NewAdkArtifact,
    ) -> Result<ArtifactVersion, AdkRefusal> {
        let (mime, content) = adk_artifact_content(new.part)?;
        let version = NewVersion { name: new.name.clone(), mime, metadata: new.metadata, content };
        let saved = self
            .services
            .artifacts
            .save(&adk_artifact_scope(caller, located, &new.name), version)
            .await
            .map_err(adk_artifact_refusal)?;
        Ok(adk_artifact_version(located, &new.name, &saved))
    }

    /// One version, as a part.
    pub async fn load_artifact(
        &self,
        caller: &Caller,
        located: &LocatedSession,
        name: &str,
        which: VersionChoice,
    ) -> Result<Value, AdkRefusal> {
        let number = match which {
            VersionChoice::Latest => None,
            VersionChoice::Number(number) => Some(number),
        };
        let found = self
            .services
            .artifacts
            .load(&adk_artifact_scope(caller, located, name), name, number)
            .await
            .map_err(adk_artifact_refusal)?;
        let Some((version, content)) = found else {
            return self.load_agent_artifact(caller, located, name, number).await;
        };
        Ok(match content {
            ArtifactContent::Text { text } => json!({ "text": text }),
            ArtifactContent::Bytes { data } => json!({ "inlineData": { "data": data, "mimeType": version.mime } }),
        })
    }

    /// What the agent itself keeps for the session: it has one version, the present one.
    async fn load_agent_artifact(
        &self,
        caller: &Caller,
        located: &LocatedSession,
        name: &str,
        number: Option<u64>,
    ) -> Result<Value, AdkRefusal> {
        if number.is_some() {
            return Err(no_such_adk_artifact());
        }
        let view = self.load_view(caller, located.session).await?;
        let held = self.services.hub.backend().read_remote_file(&view, name).await.ok_or_else(no_such_adk_artifact)?;
        Ok(match held.content {
            RemoteContent::Text(text) => json!({ "text": text }),
            RemoteContent::Base64(data) => json!({ "inlineData": { "mimeType": held.mime, "data": data } }),
        })
    }

    /// All versions, without their contents.
    pub async fn list_versions(
        &self,
        caller: &Caller,
        located: &LocatedSession,
        name: &str,
    ) -> Result<Vec<ArtifactVersion>, AdkRefusal> {
        let versions = self
            .services
            .artifacts
            .versions(&adk_artifact_scope(caller, located, name), name)
            .await
            .map_err(adk_artifact_refusal)?;
        Ok(versions.iter().map(|version| adk_artifact_version(located, name, version)).collect())
    }

    /// One of them.
    pub async fn describe_version(
        &self,
        caller: &Caller,
        located: &LocatedSession,
        name: &str,
        which: VersionChoice,
    ) -> Result<ArtifactVersion, AdkRefusal> {
        let mut versions = self.list_versions(caller, located, name).await?;
        let found = match which {
            VersionChoice::Latest => versions.pop(),
            VersionChoice::Number(number) => versions.into_iter().find(|version| version.version == number),
        };
        found.ok_or_else(no_such_adk_artifact)
    }

    /// Takes an artifact away; it need not be there.
    pub async fn delete_artifact(
        &self,
        caller: &Caller,
        located: &LocatedSession,
        name: &str,
    ) -> Result<(), AdkRefusal> {
        let removed = self.services.artifacts.delete(&adk_artifact_scope(caller, located, name), name).await;
        removed.map(drop).map_err(adk_artifact_refusal)
    }
}

fn adk_artifact_scope(caller: &Caller, located: &LocatedSession, name: &str) -> ArtifactScope {
    if name.starts_with("user:") {
        adk_user_artifact_scope(caller, &located.app_user)
    } else {
        ArtifactScope::for_session(located.session)
    }
}

fn adk_user_artifact_scope(caller: &Caller, app_user: &AppUser) -> ArtifactScope {
    ArtifactScope::for_user(&caller.principal, &format!("adk/{}/{}", app_user.app, app_user.user))
}

fn adk_artifact_version(located: &LocatedSession, name: &str, version: &SavedVersion) -> ArtifactVersion {
    let AppUser { app, user } = &located.app_user;
    let session = if name.starts_with("user:") { String::new() } else { format!("/sessions/{}", located.name) };
    let number = version.number;
    ArtifactVersion {
        version: number,
        canonical_uri: format!("gander://apps/{app}/users/{user}{session}/artifacts/{name}/versions/{number}"),
        custom_metadata: version.metadata.clone(),
        create_time: adk_epoch_seconds(version.saved_at()),
        mime_type: version.mime.clone(),
    }
}

fn adk_artifact_content(part: Part) -> Result<(Option<String>, ArtifactContent), AdkRefusal> {
    match part {
        Part::Text { text } | Part::Thought { text } => {
            Ok((Some("text/plain".to_owned()), ArtifactContent::Text { text }))
        }
        Part::Image { mime, data, .. } | Part::Audio { mime, data } => {
            Ok((Some(mime), ArtifactContent::Bytes { data }))
        }
        Part::Resource { mime, blob: Some(data), .. } => Ok((mime, ArtifactContent::Bytes { data })),
        Part::Resource { .. }
        | Part::Link { .. }
        | Part::ToolUse { .. }
        | Part::ToolResult { .. }
        | Part::Unknown(_) => Err(AdkRefusal::new(400, "an artifact is text or inline data")),
    }
}

fn no_such_adk_artifact() -> AdkRefusal {
    AdkRefusal::new(404, "Artifact not found")
}

fn adk_artifact_refusal(error: ArtifactError) -> AdkRefusal {
    match error {
        ArtifactError::BadName(..) => AdkRefusal::new(400, error.to_string()),
        ArtifactError::TooLarge(_) => AdkRefusal::new(413, error.to_string()),
        ArtifactError::Full => AdkRefusal::new(507, error.to_string()),
        ArtifactError::Store(error) => adk_store_refusal(error),
    }
}
