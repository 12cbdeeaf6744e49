//! Artifacts of a session, and those of a user under `user:` names.

use gander_domain::Part;
use gander_domain::caller::Caller;
use gander_services::artifacts::{ArtifactError, Content, NewVersion, Shelf, Version};
use gander_wire::adk::types::seconds;
use gander_wire::adk::{ArtifactVersion, NewArtifact, Refusal};
use serde_json::{Value, json};

use super::{Adk, Located, Place, failed};

/// Which version of an artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbered {
    /// The latest.
    Latest,
    /// This one.
    Number(u64),
}

impl Adk {
    /// The names of all artifacts that a session sees.
    pub async fn artifacts(&self, identity: &Caller, located: &Located) -> Result<Vec<String>, Refusal> {
        let mut names = Vec::new();
        for shelf in [Shelf::session(located.session), of_user(identity, &located.place)] {
            let kept = self.desk.artifacts.list(&shelf).await.map_err(refused)?;
            names.extend(kept.into_iter().map(|kept| kept.name));
        }
        let view = self.view(located.session).await?;
        names.extend(self.desk.hub.backend().holdings(&view).await);
        Ok(names)
    }

    /// Puts something away.
    pub async fn save(
        &self,
        identity: &Caller,
        located: &Located,
        new: NewArtifact,
    ) -> Result<ArtifactVersion, Refusal> {
        let (mime, content) = content(new.part)?;
        let version = NewVersion { name: new.name.clone(), mime, metadata: new.metadata, content };
        let saved = self.desk.artifacts.save(&shelf(identity, located, &new.name), version).await.map_err(refused)?;
        Ok(described(located, &new.name, &saved))
    }

    /// One version, as a part.
    pub async fn load(
        &self,
        identity: &Caller,
        located: &Located,
        name: &str,
        which: Numbered,
    ) -> Result<Value, Refusal> {
        let number = match which {
            Numbered::Latest => None,
            Numbered::Number(number) => Some(number),
        };
        let found = self.desk.artifacts.load(&shelf(identity, located, name), name, number).await.map_err(refused)?;
        let Some((version, content)) = found else { return self.held(located, name, number).await };
        Ok(match content {
            Content::Text { text } => json!({ "text": text }),
            Content::Bytes { data } => json!({ "inlineData": { "data": data, "mimeType": version.mime } }),
        })
    }

    /// What the agent itself keeps for the session: it has one version, the present one.
    async fn held(&self, located: &Located, name: &str, number: Option<u64>) -> Result<Value, Refusal> {
        if number.is_some() {
            return Err(no_artifact());
        }
        let view = self.view(located.session).await?;
        let held = self.desk.hub.backend().holding(&view, name).await.ok_or_else(no_artifact)?;
        Ok(json!({ "text": held.text }))
    }

    /// All versions, without their contents.
    pub async fn versions(
        &self,
        identity: &Caller,
        located: &Located,
        name: &str,
    ) -> Result<Vec<ArtifactVersion>, Refusal> {
        let versions = self.desk.artifacts.versions(&shelf(identity, located, name), name).await.map_err(refused)?;
        Ok(versions.iter().map(|version| described(located, name, version)).collect())
    }

    /// One of them.
    pub async fn version(
        &self,
        identity: &Caller,
        located: &Located,
        name: &str,
        which: Numbered,
    ) -> Result<ArtifactVersion, Refusal> {
        let mut versions = self.versions(identity, located, name).await?;
        let found = match which {
            Numbered::Latest => versions.pop(),
            Numbered::Number(number) => versions.into_iter().find(|version| version.version == number),
        };
        found.ok_or_else(no_artifact)
    }

    /// Takes an artifact away; it need not be there.
    pub async fn remove(&self, identity: &Caller, located: &Located, name: &str) -> Result<(), Refusal> {
        let removed = self.desk.artifacts.delete(&shelf(identity, located, name), name).await;
        removed.map(drop).map_err(refused)
    }
}

fn shelf(identity: &Caller, located: &Located, name: &str) -> Shelf {
    if name.starts_with("user:") { of_user(identity, &located.place) } else { Shelf::session(located.session) }
}

fn of_user(identity: &Caller, place: &Place) -> Shelf {
    Shelf::person(&identity.principal, &format!("adk/{}/{}", place.app, place.user))
}

fn described(located: &Located, name: &str, version: &Version) -> ArtifactVersion {
    let Place { app, user } = &located.place;
    let session = if name.starts_with("user:") { String::new() } else { format!("/sessions/{}", located.name) };
    let number = version.number;
    ArtifactVersion {
        version: number,
        canonical_uri: format!("gander://apps/{app}/users/{user}{session}/artifacts/{name}/versions/{number}"),
        custom_metadata: version.metadata.clone(),
        create_time: seconds(version.saved_at()),
        mime_type: version.mime.clone(),
    }
}

fn content(part: Part) -> Result<(Option<String>, Content), Refusal> {
    match part {
        Part::Text { text } | Part::Thought { text } => Ok((Some("text/plain".to_owned()), Content::Text { text })),
        Part::Image { mime, data, .. } | Part::Audio { mime, data } => Ok((Some(mime), Content::Bytes { data })),
        Part::Resource { mime, blob: Some(data), .. } => Ok((mime, Content::Bytes { data })),
        Part::Resource { .. }
        | Part::Link { .. }
        | Part::ToolUse { .. }
        | Part::ToolResult { .. }
        | Part::Unknown(_) => Err(Refusal::new(400, "an artifact is text or inline data")),
    }
}

fn no_artifact() -> Refusal {
    Refusal::new(404, "Artifact not found")
}

fn refused(error: ArtifactError) -> Refusal {
    match error {
        ArtifactError::BadName(..) => Refusal::new(400, error.to_string()),
        ArtifactError::TooLarge(_) => Refusal::new(413, error.to_string()),
        ArtifactError::Full => Refusal::new(507, error.to_string()),
        ArtifactError::Store(error) => failed(error),
    }
}
