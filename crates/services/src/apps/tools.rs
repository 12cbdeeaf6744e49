//! `app_create`, `app_update`, `app_list` and `app_read`: an agent's way to apps.

use async_trait::async_trait;
use gander_domain::sanitize;
use gander_domain::{Principal, ToolKind, ToolSpec};
use gander_tools::Signal;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{AppError, Apps};
use crate::toolset::{Toolset, arguments as of, spec};

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
pub enum Wanted {
    Create(Create),
    Update(Update),
    List,
    Read(Read),
}

/// What they are.
pub fn specs() -> Vec<ToolSpec> {
    let text = || json!({"type": "string"});
    let edits = json!({"type": "array", "items": {"type": "object", "properties": {"old": text(), "new": text()},
        "required": ["old", "new"], "additionalProperties": false}});
    vec![
        spec(
            "app_create",
            "Makes an app: one HTML page with its styles and scripts inside, which loads nothing from elsewhere.",
            &json!({"name": text(), "description": text(), "html": text()}),
            &["name", "html"],
        ),
        spec(
            "app_update",
            "Makes a new version of an app: its whole page as html, or edits that each replace a text occurring once.",
            &json!({"name": text(), "html": text(), "edits": edits}),
            &["name"],
        ),
        spec("app_list", "Lists the apps there are.", &json!({}), &[]),
        spec(
            "app_read",
            "Gives an app's page, in its latest version or an older one.",
            &json!({"name": text(), "version": {"type": "integer", "minimum": 0}}),
            &["name"],
        ),
    ]
}

#[async_trait]
impl Toolset for AppTools {
    type Wanted = Wanted;

    fn specs(&self) -> Vec<ToolSpec> {
        specs()
    }

    fn read(&self, name: &str, arguments: &Value) -> Option<Result<Wanted, String>> {
        Some(match name {
            "app_create" => of(arguments).map(Wanted::Create),
            "app_update" => of(arguments).map(Wanted::Update),
            "app_list" => of(arguments).map(|List {}| Wanted::List),
            "app_read" => of(arguments).map(Wanted::Read),
            _ => return None,
        })
    }

    fn title(&self, wanted: &Wanted) -> (String, ToolKind) {
        match wanted {
            Wanted::Create(create) => {
                (format!("Make the app {}", sanitize::visible_line(&create.name)), ToolKind::Edit)
            }
            Wanted::Update(update) => {
                (format!("Change the app {}", sanitize::visible_line(&update.name)), ToolKind::Edit)
            }
            Wanted::List => ("List the apps".to_owned(), ToolKind::Read),
            Wanted::Read(read) => (format!("Read the app {}", sanitize::visible_line(&read.name)), ToolKind::Read),
        }
    }

    async fn carry_out(&self, wanted: Wanted, _signals: &mpsc::Sender<Signal>) -> Result<String, String> {
        self.done(wanted).await.map_err(|error| error.to_string())
    }
}

impl AppTools {
    async fn done(&self, wanted: Wanted) -> Result<String, AppError> {
        let (apps, principal) = (&self.apps, &self.principal);
        match wanted {
            Wanted::Create(Create { name, description, html }) => {
                if apps.list(principal).await?.iter().any(|known| known.name == name) {
                    return Err(AppError::Taken(name));
                }
                apps.save(principal, &name, description.as_deref(), html).await?;
                Ok(format!("made the app {name}"))
            }
            Wanted::Update(Update { name, html, edits }) => {
                let (old, page) = apps.read(principal, &name, None).await?;
                let page = html.map_or_else(|| edited(page, &edits), Ok)?;
                let version = apps.save(principal, &name, old.description.as_deref(), page).await?;
                Ok(format!("the app {name} is now in version {version}"))
            }
            Wanted::List => {
                let known = apps.list(principal).await?;
                let line = |app: &super::Summary| {
                    let about = app.description.as_deref().unwrap_or("no description");
                    format!("- {} (version {}): {about}", app.name, app.version)
                };
                let lines: Vec<String> = known.iter().map(line).collect();
                Ok(if lines.is_empty() { "there are no apps".to_owned() } else { lines.join("\n") })
            }
            Wanted::Read(Read { name, version }) => Ok(apps.read(principal, &name, version).await?.1),
        }
    }
}

fn edited(mut page: String, edits: &[Edit]) -> Result<String, AppError> {
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
