//! `artifact_save`, `artifact_list` and `artifact_read`: an agent's way to its session's artifacts.

use async_trait::async_trait;
use gander_domain::sanitize;
use gander_domain::{SessionId, ToolKind, ToolSpec};
use gander_tools::ToolEvent;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::page::text_page;
use super::{ArtifactContent, ArtifactError, ArtifactScope, Artifacts, NamedArtifact, NewVersion};
use crate::toolset::{Toolset, parse_arguments, tool_spec};

/// The artifacts of one session, for its runs.
pub struct ArtifactTools {
    /// Everybody's.
    pub artifacts: Artifacts,
    /// Which session.
    pub session: SessionId,
    /// So many bytes of a text are read at once.
    pub page: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Save {
    name: String,
    text: String,
    #[serde(default)]
    media_type: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Read {
    name: String,
    #[serde(default)]
    version: Option<u64>,
    #[serde(default)]
    offset: usize,
}

/// A call, read.
pub enum ArtifactCall {
    Save(Save),
    List,
    Read(Read),
}

/// Why nothing came of a call, in words for the model.
#[derive(Debug, thiserror::Error)]
enum Unable {
    /// The part of the name before the colon belongs to others.
    #[error("names that begin with user: are for what people keep, take another: {0}")]
    Theirs(String),
    /// No such artifact, or no such version of it.
    #[error("no such artifact: {0}")]
    Missing(String),
    /// It is a picture or the like.
    #[error("this artifact is no text: {0}")]
    NoText(String),
    /// Nothing is left of it there.
    #[error("this artifact has fewer lines than that: {0}")]
    Past(usize),
    #[error(transparent)]
    NamedArtifact(#[from] ArtifactError),
}

/// What they are.
pub fn artifact_tool_specs() -> Vec<ToolSpec> {
    let text = || json!({"type": "string"});
    let from_0 = || json!({"type": "integer", "minimum": 0});
    vec![
        tool_spec(
            "artifact_save",
            "Puts a text away under a name, for whoever asked: a report, a table, a page. The same name again is a new version.",
            &json!({"name": text(), "text": text(), "media_type": text()}),
            &["name", "text"],
        ),
        tool_spec("artifact_list", "Lists what was put away in this session.", &json!({}), &[]),
        tool_spec(
            "artifact_read",
            "Gives a text that was put away, in its latest version or an older one. A long one comes in parts: offset \
says how many lines to leave out before.",
            &json!({"name": text(), "version": from_0(), "offset": from_0()}),
            &["name"],
        ),
    ]
}

#[async_trait]
impl Toolset for ArtifactTools {
    type Call = ArtifactCall;

    fn specs(&self) -> Vec<ToolSpec> {
        artifact_tool_specs()
    }

    fn parse_call(&self, name: &str, arguments: &Value) -> Option<Result<ArtifactCall, String>> {
        Some(match name {
            "artifact_save" => parse_arguments(arguments).map(ArtifactCall::Save),
            "artifact_list" => parse_arguments(arguments).map(|List {}| ArtifactCall::List),
            "artifact_read" => parse_arguments(arguments).map(ArtifactCall::Read),
            _ => return None,
        })
    }

    fn call_title(&self, call: &ArtifactCall) -> (String, ToolKind) {
        match call {
            ArtifactCall::Save(save) => (format!("Put away {}", sanitize::visible_line(&save.name)), ToolKind::Edit),
            ArtifactCall::List => ("List what was put away".to_owned(), ToolKind::Read),
            ArtifactCall::Read(read) => {
                (format!("Read the artifact {}", sanitize::visible_line(&read.name)), ToolKind::Read)
            }
        }
    }

    async fn execute(&self, call: ArtifactCall, signals: &mpsc::Sender<ToolEvent>) -> Result<String, String> {
        let done = match call {
            ArtifactCall::Save(save) => self.save(save, signals).await,
            ArtifactCall::List => self.list().await,
            ArtifactCall::Read(read) => self.load(read).await,
        };
        done.map_err(|error| error.to_string())
    }
}

impl ArtifactTools {
    async fn save(&self, save: Save, signals: &mpsc::Sender<ToolEvent>) -> Result<String, Unable> {
        let Save { name, text, media_type } = save;
        if name.starts_with("user:") {
            return Err(Unable::Theirs(name));
        }
        let mime = Some(media_type.unwrap_or_else(|| "text/plain".to_owned()));
        let (metadata, content) = (Map::new(), ArtifactContent::Text { text });
        let told = content.content_for_log();
        let new = NewVersion { name: name.clone(), mime: mime.clone(), metadata, content };
        let version = self.artifacts.save(&self.artifact_scope(), new).await?.number;
        if signals.send(ToolEvent::Saved { name: name.clone(), version, mime, content: told }).await.is_err() {
            tracing::debug!(name, "an artifact was saved after its run");
        }
        Ok(format!("{name} is put away in version {version}"))
    }

    async fn list(&self) -> Result<String, Unable> {
        let kept = self.artifacts.list(&self.artifact_scope()).await?;
        let line = |kept: &NamedArtifact| format!("- {} ({} versions)", kept.name, kept.versions.len());
        let lines: Vec<String> = kept.iter().map(line).collect();
        Ok(if lines.is_empty() { "nothing was put away yet".to_owned() } else { lines.join("\n") })
    }

    async fn load(&self, read: Read) -> Result<String, Unable> {
        let found = self.artifacts.load(&self.artifact_scope(), &read.name, read.version).await?;
        match found {
            Some((_, ArtifactContent::Text { text })) => {
                text_page(&text, read.offset, self.page).ok_or(Unable::Past(read.offset))
            }
            Some((_, ArtifactContent::Bytes { .. })) => Err(Unable::NoText(read.name)),
            None => Err(Unable::Missing(read.name)),
        }
    }

    fn artifact_scope(&self) -> ArtifactScope {
        ArtifactScope::for_session(self.session)
    }
}
