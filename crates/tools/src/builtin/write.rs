//! `write`: makes a file or replaces it whole.

use async_trait::async_trait;
use gander_domain::{ToolCall, ToolContent, ToolKind, ToolResult, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};

use super::change::WriteLock;
use super::{change, locations};
use crate::blocking::BlockingPool;
use crate::{Group, Limits, Tool, ToolContext, ToolEffect, ToolError, ToolPreview, Workspace, arguments};
use gander_domain::sanitize;

pub(crate) struct Write {
    pub(crate) limits: Limits,
    pub(crate) blocking: BlockingPool,
    pub(crate) lock: WriteLock,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    content: String,
}

#[async_trait]
impl Tool for Write {
    fn name(&self) -> &str {
        "write"
    }

    fn group(&self) -> Group {
        Group::Edit
    }

    fn effect(&self) -> ToolEffect {
        ToolEffect::FileWrite
    }

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name().to_owned(),
            description:
                "Makes a file in the workspace, or replaces it whole; missing folders are made. To change a part \
                          of a file use edit."
                    .into(),
            schema: json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "Relative to the workspace's root, or absolute inside it"},
                    "content": {"type": "string", "description": "The whole new text"}
                },
                "required": ["path", "content"],
                "additionalProperties": false
            }).into(),
        }
    }

    fn preview(&self, arguments: &Value, workspace: &Workspace) -> Result<ToolPreview, ToolError> {
        let Arguments { path, .. } = arguments::parse_tool_arguments(arguments)?;
        let located = workspace.locate_path(&path)?;
        Ok(ToolPreview {
            title: format!("Write {}", sanitize::sanitized_line(&workspace.display_name(&located))),
            kind: ToolKind::Edit,
            locations: vec![locations::location_of(&located)],
            idempotent: false,
        })
    }

    fn proposal(&self, arguments: &Value, workspace: &Workspace) -> Vec<ToolContent> {
        let Ok(Arguments { path, content }) = arguments::parse_tool_arguments(arguments) else { return Vec::new() };
        let Ok(located) = workspace.locate_path(&path) else { return Vec::new() };
        let old = change::text_on_disk_before_change(&located, workspace, self.limits.file);
        vec![change::change_diff_content(&located, old, content)]
    }

    fn find_objection(&self, arguments: &Value, workspace: &Workspace) -> Option<String> {
        let Arguments { path, content } = arguments::parse_tool_arguments(arguments).ok()?;
        let located = workspace.locate_path(&path).ok()?;
        let old = change::text_on_disk_before_change(&located, workspace, self.limits.file);
        change::change_objection(&located, workspace, old.as_deref(), &content)
    }

    async fn run(&self, call: &ToolCall, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let Arguments { path, content } = arguments::parse_tool_arguments(&call.arguments)?;
        let located = locations::locate_again(call, &path, &context.workspace)?;
        tokio::select! {
            () = context.cancel.cancelled() => Err(ToolError::cancelled()),
            result = async {
                let old = change::text_before_change(&located, context, self.limits.file).await?;
                change::apply_change(&located, old, content, context, (&self.blocking, &self.lock)).await
            } => result,
        }
    }
}
