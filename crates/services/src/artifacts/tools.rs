//! `artifact_save`, `artifact_list` and `artifact_read`: an agent's way to its session's artifacts.

use std::sync::Arc;

use async_trait::async_trait;
use gander_domain::sanitize;
use gander_domain::{SessionId, ToolCall, ToolKind, ToolResult, ToolSpec};
use gander_tools::{Group, ListedTool, Tool, ToolContext, ToolEffect, ToolError, ToolEvent, ToolPreview, Workspace};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::page::artifact_text_page;
use super::{ArtifactContent, ArtifactError, ArtifactScope, Artifacts, NamedArtifact, NewVersion};
use crate::tool_arguments::{parse_tool_arguments, tool_call_preview, tool_spec_with_arguments, tool_text_result};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Save {
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
struct Read {
    name: String,
    #[serde(default)]
    version: Option<u64>,
    #[serde(default)]
    offset: usize,
}

/// A call, parsed.
enum ArtifactCall {
    Save(Save),
    List,
    Read(Read),
}

/// Why nothing came of a call, in words for the model.
#[derive(Debug, thiserror::Error)]
enum Unable {
    /// The part of the name before the colon belongs to others.
    #[error("names that begin with user: are reserved, choose another: {0}")]
    Theirs(String),
    /// No such artifact, or no such version of it.
    #[error("no such artifact: {0}")]
    Missing(String),
    /// It is a picture or the like.
    #[error("this artifact is not a text: {0}")]
    NoText(String),
    /// Nothing is left of it there.
    #[error("this artifact has fewer lines than that: {0}")]
    Past(usize),
    #[error(transparent)]
    NamedArtifact(#[from] ArtifactError),
}

/// The tools as lists show them.
pub fn listed_artifact_tools() -> Vec<ListedTool> {
    ArtifactToolKind::ALL.map(|kind| ListedTool { spec: artifact_tool_spec(kind), group: Group::Artifacts }).into()
}

fn artifact_tool_spec(kind: ArtifactToolKind) -> ToolSpec {
    let text = || json!({"type": "string"});
    let from_0 = || json!({"type": "integer", "minimum": 0});
    match kind {
        ArtifactToolKind::Save => tool_spec_with_arguments(
            kind.name(),
            "Saves a text as a named artifact for the user: a report, a table, a page. Saving the same name again makes a new version.",
            &json!({"name": text(), "text": text(), "media_type": text()}),
            &["name", "text"],
        ),
        ArtifactToolKind::List => {
            tool_spec_with_arguments(kind.name(), "Lists the artifacts of this session.", &json!({}), &[])
        }
        ArtifactToolKind::Read => tool_spec_with_arguments(
            kind.name(),
            "Reads an artifact that is a text, in its latest version or an older one. A long one comes in parts: offset \
is the number of lines to skip.",
            &json!({"name": text(), "version": from_0(), "offset": from_0()}),
            &["name"],
        ),
    }
}

/// Which of the tools.
#[derive(Clone, Copy)]
enum ArtifactToolKind {
    Save,
    List,
    Read,
}

impl ArtifactToolKind {
    const ALL: [Self; 3] = [Self::Save, Self::List, Self::Read];

    fn name(self) -> &'static str {
        match self {
            Self::Save => "artifact_save",
            Self::List => "artifact_list",
            Self::Read => "artifact_read",
        }
    }

    fn parse_call(self, arguments: &Value) -> Result<ArtifactCall, ToolError> {
        match self {
            Self::Save => parse_tool_arguments(arguments).map(ArtifactCall::Save),
            Self::List => parse_tool_arguments(arguments).map(|List {}| ArtifactCall::List),
            Self::Read => parse_tool_arguments(arguments).map(ArtifactCall::Read),
        }
    }
}

/// One of the tools, for one session's runs.
struct ArtifactTool {
    kind: ArtifactToolKind,
    artifacts: Artifacts,
    session: SessionId,
    /// So many bytes of a text are read at once.
    page: usize,
}

/// The tools for a session's runs; a text is read in pages of so many bytes.
pub fn artifact_tools(artifacts: &Artifacts, session: SessionId, page: usize) -> Vec<Arc<dyn Tool>> {
    let tool = |kind| ArtifactTool { kind, artifacts: artifacts.clone(), session, page };
    ArtifactToolKind::ALL.map(|kind| Arc::new(tool(kind)) as Arc<dyn Tool>).into()
}

#[async_trait]
impl Tool for ArtifactTool {
    fn name(&self) -> &str {
        self.kind.name()
    }

    fn group(&self) -> Group {
        Group::Artifacts
    }

    fn effect(&self) -> ToolEffect {
        match self.kind {
            ArtifactToolKind::Save => ToolEffect::StoreWrite,
            ArtifactToolKind::List | ArtifactToolKind::Read => ToolEffect::Internal,
        }
    }

    fn spec(&self) -> ToolSpec {
        artifact_tool_spec(self.kind)
    }

    fn preview(&self, arguments: &Value, _workspace: &Workspace) -> Result<ToolPreview, ToolError> {
        Ok(tool_call_preview(artifact_call_title(&self.kind.parse_call(arguments)?)))
    }

    async fn run(&self, call: &ToolCall, context: &ToolContext) -> Result<ToolResult, ToolError> {
        tool_text_result(match self.kind.parse_call(&call.arguments)? {
            ArtifactCall::Save(save) => self.save(save, &context.signals).await,
            ArtifactCall::List => self.list().await,
            ArtifactCall::Read(read) => self.load(read).await,
        })
    }
}

/// A call in one line for people, and what kind of thing it does.
fn artifact_call_title(call: &ArtifactCall) -> (String, ToolKind) {
    match call {
        ArtifactCall::Save(save) => (format!("Save artifact {}", sanitize::sanitized_line(&save.name)), ToolKind::Edit),
        ArtifactCall::List => ("List artifacts".to_owned(), ToolKind::Read),
        ArtifactCall::Read(read) => (format!("Read artifact {}", sanitize::sanitized_line(&read.name)), ToolKind::Read),
    }
}

impl ArtifactTool {
    async fn save(&self, save: Save, signals: &mpsc::Sender<ToolEvent>) -> Result<String, Unable> {
        let Save { name, text, media_type } = save;
        if name.starts_with("user:") {
            return Err(Unable::Theirs(name));
        }
        let mime = Some(media_type.unwrap_or_else(|| "text/plain".to_owned()));
        let (metadata, content) = (Map::new(), ArtifactContent::Text { text });
        let logged = content.content_for_log();
        let new = NewVersion { name: name.clone(), mime: mime.clone(), metadata, content };
        let version = self.artifacts.save(&self.artifact_scope(), new).await?.number;
        if signals.send(ToolEvent::Saved { name: name.clone(), version, mime, content: logged }).await.is_err() {
            tracing::debug!(name, "an artifact was saved after its run");
        }
        Ok(format!("saved {name}, version {version}"))
    }

    async fn list(&self) -> Result<String, Unable> {
        let kept = self.artifacts.list(&self.artifact_scope()).await?;
        let line = |kept: &NamedArtifact| format!("- {} ({} versions)", kept.name, kept.versions.len());
        let lines: Vec<String> = kept.iter().map(line).collect();
        Ok(if lines.is_empty() { "no artifacts yet".to_owned() } else { lines.join("\n") })
    }

    async fn load(&self, read: Read) -> Result<String, Unable> {
        let found = self.artifacts.load(&self.artifact_scope(), &read.name, read.version).await?;
        match found {
            Some((_, ArtifactContent::Text { text })) => {
                artifact_text_page(&text, read.offset, self.page).ok_or(Unable::Past(read.offset))
            }
            Some((_, ArtifactContent::Bytes { .. })) => Err(Unable::NoText(read.name)),
            None => Err(Unable::Missing(read.name)),
        }
    }

    fn artifact_scope(&self) -> ArtifactScope {
        ArtifactScope::for_session(self.session)
    }
}
