//! `app_create`, `app_update`, `app_list` and `app_read`: an agent's way to apps.

use async_trait::async_trait;
use gander_domain::sanitize;
use gander_domain::{Principal, ToolKind, ToolSpec};
use gander_tools::ToolEvent;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{AppError, Apps};
use crate::toolset::{Toolset, parse_arguments, tool_spec};

/// The apps of one person, for their sessions.
pub struct AppTools {
    /// Everybody's.
    pub apps: Apps,
    /// Whose session it is.
    pub principal: Principal,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Create {
    name: String,
    #[serde(default)]
    description: Option<String>,
    html: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Update {
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
pub struct Read {
    name: String,
    #[serde(default)]
    version: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {}

/// A call, read.
pub enum AppCall {
    Create(Create),
    Update(Update),
    List,
    Read(Read),
}

/// What they are.
pub fn app_tool_specs() -> Vec<ToolSpec> {
    let text = || json!({"type": "string"});
    let edits = json!({"type": "array", "items": {"type": "object", "properties": {"old": text(), "new": text()},
"required": ["old", "new"], "additionalProperties": false}});
    vec![
        tool_spec(
            "app_create",
            "Makes an app: one HTML page with its styles and scripts inside, which loads nothing from elsewhere.",
            &json!({"name": text(), "description": text(), "html": text()}),
            &["name", "html"],
        ),
        tool_spec(
            "app_update",
            "Makes a new version of an app: its whole page as html, or edits that each replace a text occurring once.",
            &json!({"name": text(), "html": text(), "edits": edits}),
            &["name"],
        ),
        tool_spec("app_list", "Lists the apps there are.", &json!({}), &[]),
        tool_spec(
            "app_read",
            "Gives an app's page, in its latest version or an older one.",
            &json!({"name": text(), "version": {"type": "integer", "minimum": 0}}),
            &["name"],
        ),
    ]
}

#[async_trait]
impl Toolset for AppTools {
    type Call = AppCall;

    fn specs(&self) -> Vec<ToolSpec> {
        app_tool_specs()
    }

    fn parse_call(&self, name: &str, arguments: &Value) -> Option<Result<AppCall, String>> {
        Some(match name {
            "app_create" => parse_arguments(arguments).map(AppCall::Create),
            "app_update" => parse_arguments(arguments).map(AppCall::Update),
            "app_list" => parse_arguments(arguments).map(|List {}| AppCall::List),
            "app_read" => parse_arguments(arguments).map(AppCall::Read),
            _ => return None,
        })
    }

    fn call_title(&self, call: &AppCall) -> (String, ToolKind) {
        match call {
            AppCall::Create(create) => {
                (format!("Make the app {}", sanitize::visible_line(&create.name)), ToolKind::Edit)
            }
            AppCall::Update(update) => {
                (format!("Change the app {}", sanitize::visible_line(&update.name)), ToolKind::Edit)
            }
            AppCall::List => ("List the apps".to_owned(), ToolKind::Read),
            AppCall::Read(read) => (format!("Read the app {}", sanitize::visible_line(&read.name)), ToolKind::Read),
        }
    }

    async fn execute(&self, call: AppCall, _signals: &mpsc::Sender<ToolEvent>) -> Result<String, String> {
        self.execute_call(call).await.map_err(|error| error.to_string())
    }
}

impl AppTools {
    async fn execute_call(&self, call: AppCall) -> Result<String, AppError> {
        let (apps, principal) = (&self.apps, &self.principal);
        match call {
            AppCall::Create(Create { name, description, html }) => {
                if apps.list(principal).await?.iter().any(|known| known.name == name) {
                    return Err(AppError::Taken(name));
                }
                apps.save(principal, &name, description.as_deref(), html).await?;
                Ok(format!("made the app {name}"))
            }
            AppCall::Update(Update { name, html, edits }) => {
                let (old, page) = apps.read(principal, &name, None).await?;
                let page = html.map_or_else(|| apply_edits(page, &edits), Ok)?;
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

fn apply_edits(mut page: String, edits: &[Edit]) -> Result<String, AppError> {
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
