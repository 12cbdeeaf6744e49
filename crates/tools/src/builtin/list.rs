//! `list`: names the files of a folder, or those that fit a pattern.

use std::ops::ControlFlow;

use async_trait::async_trait;
use gander_domain::{ToolCall, ToolEnd, ToolKind, ToolResult, ToolSpec};
use globset::{GlobBuilder, GlobMatcher};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::locations;
use crate::files::walk::{Walk, WalkedEntry, WalkedKind};
use crate::{Group, Limits, Located, Tool, ToolContext, ToolEffect, ToolError, ToolPreview, Workspace, arguments};
use gander_domain::sanitize;

pub(crate) struct List {
    pub(crate) limits: Limits,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListArguments {
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    glob: Option<String>,
    #[serde(default)]
    depth: Option<usize>,
    #[serde(default)]
    hidden: bool,
}

#[async_trait]
impl Tool for List {
    fn name(&self) -> &str {
        "list"
    }

    fn group(&self) -> Group {
        Group::Look
    }

    fn effect(&self) -> ToolEffect {
        ToolEffect::Read
    }

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name().to_owned(),
            description: "Names the files and folders (with a / at the end) of a folder, or all files below it that fit a \
                          glob such as **/*.rs. What .gitignore names is left out, and so are hidden files unless hidden is \
                          set."
                .into(),
            schema: json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "The folder; default: the workspace's root"},
                    "glob": {"type": "string", "description": "Pattern of paths below the folder; searches all levels"},
                    "depth": {"type": "integer", "minimum": 1, "description": "Levels to go down; default 1, with glob all"},
                    "hidden": {"type": "boolean", "description": "Name hidden files too; default false"}
                },
                "additionalProperties": false
            }).into(),
        }
    }

    fn preview(&self, arguments: &Value, workspace: &Workspace) -> Result<ToolPreview, ToolError> {
        let arguments: ListArguments = arguments::parse_tool_arguments(arguments)?;
        let located = workspace.locate_path(arguments.path())?;
        let name = sanitize::sanitized_line(&workspace.display_name(&located));
        let title = match &arguments.glob {
            Some(glob) => {
                list_glob_matcher(glob).map(|_| format!("List {} in {name}", sanitize::sanitized_line(glob)))?
            }
            None => format!("List {name}"),
        };
        Ok(ToolPreview {
            title,
            kind: ToolKind::Search,
            locations: vec![locations::location_of(&located)],
            idempotent: true,
        })
    }

    async fn run(&self, call: &ToolCall, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let arguments: ListArguments = arguments::parse_tool_arguments(&call.arguments)?;
        let located = locations::locate_again(call, arguments.path(), &context.workspace)?;
        let (workspace, limits, stop) = (context.workspace.clone(), self.limits, context.cancel.child_token());
        let work = tokio::task::spawn_blocking(move || list_files(&arguments, &located, &workspace, limits, &stop));
        tokio::select! {
            () = context.cancel.cancelled() => Err(ToolError::cancelled()),
            listed = work => listed.map_err(|error| ToolError::failed(format!("listing broke off: {error}")))?,
        }
    }
}

impl ListArguments {
    fn path(&self) -> &str {
        self.path.as_deref().filter(|path| !path.is_empty()).unwrap_or(".")
    }
}

/// A glob whose `*` stays inside one folder.
pub(crate) fn list_glob_matcher(glob: &str) -> Result<GlobMatcher, ToolError> {
    let built = GlobBuilder::new(glob).literal_separator(true).build();
    built.map(|glob| glob.compile_matcher()).map_err(|error| ToolError::failed(format!("glob is not valid: {error}")))
}

fn list_files(
    arguments: &ListArguments,
    located: &Located,
    workspace: &Workspace,
    limits: Limits,
    stop: &CancellationToken,
) -> Result<ToolResult, ToolError> {
    let matcher = arguments.glob.as_deref().map(list_glob_matcher).transpose()?;
    let depth = arguments.depth.unwrap_or(if matcher.is_some() { usize::MAX } else { 1 });
    let mut names = Vec::new();
    let mut more = false;
    Walk { workspace, depth, hidden: arguments.hidden }.visit(located, &mut |found: WalkedEntry| {
        let below = found.located.relative.strip_prefix(&located.relative).unwrap_or(&found.located.relative);
        let fits = matcher.as_ref().is_none_or(|matcher| found.kind != WalkedKind::Folder && matcher.is_match(below));
        more = fits && names.len() == limits.entries;
        if fits && !more {
            names.push(listed_entry_name(workspace, &found));
        }
        if more || stop.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    let mut text = names.join("\n");
    match (names.is_empty(), more) {
        (true, _) => text.push_str("[nothing found]"),
        (false, true) => text.push_str(&format!("\n[only the first {} are shown: ask for less]", limits.entries)),
        (false, false) => {}
    }
    Ok(ToolResult::text(ToolEnd::Completed, text))
}

fn listed_entry_name(workspace: &Workspace, found: &WalkedEntry) -> String {
    let name = workspace.display_name(&found.located);
    match found.kind {
        WalkedKind::Folder => format!("{name}/"),
        WalkedKind::Link => format!("{name}@"),
        WalkedKind::File => name,
    }
}
