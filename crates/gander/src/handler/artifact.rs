//! What an agent makes and gives a name: files for people to keep.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gander_domain::ArtifactContent;
use gander_services::artifacts::NewVersion;
use serde_json::Map;

/// Something that the agent made: a document, an image, a table. Saved under a name, in versions; clients of A2A, ADK and
/// ACP-REST get it as an artifact, those of ACP find it by name.
#[derive(Clone, Debug, PartialEq)]
pub struct Artifact {
    name: String,
    mime: String,
    content: ArtifactContent,
}

impl Artifact {
    /// A text, such as `text/markdown`.
    pub fn text(name: impl Into<String>, mime: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), mime: mime.into(), content: ArtifactContent::Text { text: text.into() } }
    }

    /// Anything else.
    pub fn bytes(name: impl Into<String>, mime: impl Into<String>, bytes: impl AsRef<[u8]>) -> Self {
        let content = ArtifactContent::Bytes { data: STANDARD.encode(bytes) };
        Self { name: name.into(), mime: mime.into(), content }
    }

    pub(super) fn into_version(self) -> NewVersion {
        NewVersion { name: self.name, mime: Some(self.mime), metadata: Map::new(), content: self.content }
    }
}
