//! `app_create`, `app_update`, `app_list` and `app_read`: an agent's way to apps.

use std::sync::Arc;

use async_trait::async_trait;
use gander_domain::sanitize;
use gander_domain::{Principal, ToolCall, ToolKind, ToolResult, ToolSpec};
use gander_tools::{Group, ListedTool, Tool, ToolContext, ToolEffect, ToolError, ToolPreview, Workspace};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{AppError, Apps};
use crate::tool_arguments::{parse_tool_arguments, tool_call_preview, tool_spec_with_arguments, tool_text_result};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Create {
    name: String,
    #[serde(default)]
    description: Option<String>,
    html: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Update {
    name: String,
    #[serde(default)]
    html: Option<String>,
    #[serde(default)]
    edits: Vec<Edit>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    old: String,
    new: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Read {
    name: String,
    #[serde(default)]
    version: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {}

/// A call, parsed.
enum AppCall {
    Create(Create),
    Update(Update),
    List,
    Read(Read),
}

/// The tools as lists show them.
pub fn listed_app_tools() -> Vec<ListedTool> {
    AppToolKind::ALL.map(|kind| ListedTool { spec: app_tool_spec(kind), group: Group::Apps }).into()
}

fn app_tool_spec(kind: AppToolKind) -> ToolSpec {
    let text = || json!({"type": "string"});
    let edits = json!({"type": "array", "items": {"type": "object", "properties": {"old": text(), "new": text()},
"required": ["old", "new"], "additionalProperties": false}});
    match kind {
        AppToolKind::Create => tool_spec_with_arguments(
            kind.name(),
            "Makes an app: one HTML page with its styles and scripts inside, which loads nothing from elsewhere.",
            &json!({"name": text(), "description": text(), "html": text()}),
            &["name", "html"],
        ),
        AppToolKind::Update => tool_spec_with_arguments(
            kind.name(),
            "Makes a new version of an app: its whole page as html, or edits that each replace a text occurring once.",
            &json!({"name": text(), "html": text(), "edits": edits}),
            &["name"],
        ),
        AppToolKind::List => tool_spec_with_arguments(kind.name(), "Lists the apps there are.", &json!({}), &[]),
        AppToolKind::Read => tool_spec_with_arguments(
            kind.name(),
            "Gives an app's page, in its latest version or an older one.",
            &json!({"name": text(), "version": {"type": "integer", "minimum": 0}}),
            &["name"],
        ),
    }
}

/// Which of the tools.
#[derive(Clone, Copy)]
enum AppToolKind {
    Create,
    Update,
    List,
    Read,
}

impl AppToolKind {
    const ALL: [Self; 4] = [Self::Create, Self::Update, Self::List, Self::Read];

    fn name(self) -> &'static str {
        match self {
            Self::Create => "app_create",
            Self::Update => "app_update",
            Self::List => "app_list",
            Self::Read => "app_read",
        }
    }

    fn parse_call(self, arguments: &Value) -> Result<AppCall, ToolError> {
        match self {
            Self::Create => parse_tool_arguments(arguments).map(AppCall::Create),
            Self::Update => parse_tool_arguments(arguments).map(AppCall::Update),
            Self::List => parse_tool_arguments(arguments).map(|List {}| AppCall::List),
            Self::Read => parse_tool_arguments(arguments).map(AppCall::Read),
        }
    }
}

/// One of the tools, for one person's sessions.
struct AppTool {
    kind: AppToolKind,
    apps: Apps,
    principal: Principal,
}

/// The tools for a person's sessions.
pub fn app_tools(apps: &Apps, principal: &Principal) -> Vec<Arc<dyn Tool>> {
    let tool = |kind| AppTool { kind, apps: apps.clone(), principal: principal.clone() };
    AppToolKind::ALL.map(|kind| Arc::new(tool(kind)) as Arc<dyn Tool>).into()
}

#[async_trait]
impl Tool for AppTool {
    fn name(&self) -> &str {
        self.kind.name()
    }

    fn group(&self) -> Group {
        Group::Apps
    }

    fn effect(&self) -> ToolEffect {
        match self.kind {
            AppToolKind::Create | AppToolKind::Update => ToolEffect::StoreWrite,
            AppToolKind::List | AppToolKind::Read => ToolEffect::Internal,
        }
    }

    fn spec(&self) -> ToolSpec {
        app_tool_spec(self.kind)
    }

    fn preview(&self, arguments: &Value, _workspace: &Workspace) -> Result<ToolPreview, ToolError> {
        Ok(tool_call_preview(app_call_title(&self.kind.parse_call(arguments)?)))
    }

    async fn run(&self, call: &ToolCall, _context: &ToolContext) -> Result<ToolResult, ToolError> {
        tool_text_result(self.execute_call(self.kind.parse_call(&call.arguments)?).await)
    }
}

/// A call in one line for people, and what kind of thing it does.
fn app_call_title(call: &AppCall) -> (String, ToolKind) {
    match call {
        AppCall::Create(create) => (format!("Make the app {}", sanitize::sanitized_line(&create.name)), ToolKind::Edit),
        AppCall::Update(update) => {
            (format!("Change the app {}", sanitize::sanitized_line(&update.name)), ToolKind::Edit)
        }
        AppCall::List => ("List the apps".to_owned(), ToolKind::Read),
        AppCall::Read(read) => (format!("Read the app {}", sanitize::sanitized_line(&read.name)), ToolKind::Read),
    }
}

impl AppTool {
    async fn execute_call(&self, call: AppCall) -> Result<String, AppError> {
        let (apps, principal) = (&self.apps, &self.principal);
        match call {
            AppCall::Create(Create { name, description, html }) => {
                if apps.list(principal).await?.iter().any(|known| known.name == name) {
                    return Err(AppError::Taken(name));
                }
                apps.save(principal, &name, description.as_deref(), html).await?;
                Ok(format!("created the app {name}"))
            }
            AppCall::Update(Update { name, html, edits }) => {
                let (old, page) = apps.read(principal, &name, None).await?;
                let page = html.map_or_else(|| apply_app_edits(page, &edits), Ok)?;
                let version = apps.save(principal, &name, old.description.as_deref(), page).await?;
                Ok(format!("the app {name} is now in version {version}"))
            }
            AppCall::List => {
                let known = apps.list(principal).await?;
                let line = |app: &super::AppSummary| {
                    let about = app.description.as_deref().unwrap_or("no description");
                    format!("- {} (version {}): {about}", app.name, app.version)
                };
                let lines: Vec<String> = known.iter().map(line).collect();
                Ok(if lines.is_empty() { "there are no apps".to_owned() } else { lines.join("\n") })
            }
            AppCall::Read(Read { name, version }) => Ok(apps.read(principal, &name, version).await?.1),
        }
    }
}

fn apply_app_edits(mut page: String, edits: &[Edit]) -> Result<String, AppError> {
    if edits.is_empty() {
        return Err(AppError::BadPage("give html or edits".to_owned()));
    }
    for Edit { old, new } in edits {
        match page.matches(old.as_str()).count() {
            1 if !old.is_empty() => page = page.replacen(old.as_str(), new, 1),
            count => return Err(AppError::BadPage(format!("this text occurs {count} times in it, not once: {old}"))),
        }
    }
    Ok(page)
}
