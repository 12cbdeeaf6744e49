//! Apps: small web pages that agents make and people keep, in versions.

mod tools;

use gander_domain::{Principal, Timestamp};
use serde_json::{Map, Value, json};

use crate::artifacts::{ArtifactContent, ArtifactError, ArtifactScope, Artifacts, NewVersion, SavedVersion};

pub use tools::{app_tools, listed_app_tools};

/// What apps are, on the shelf.
const PAGE_MIME: &str = "text/html";

/// Bytes of a page.
const MAX_PAGE_BYTES: usize = 2 << 20;

/// Letters of a name.
const MAX_NAME_CHARS: usize = 100;

/// Everybody's apps.
#[derive(Clone)]
pub struct Apps {
    artifacts: Artifacts,
}

/// What is known of an app without its page.
#[derive(Clone, Debug, PartialEq)]
pub struct AppSummary {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// Its latest version, from 0.
    pub version: u64,
    /// When that was made.
    pub at: Timestamp,
}

/// Why an app is not kept or found.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// The name.
    #[error("an app's name has 1 to {MAX_NAME_CHARS} letters, digits, blanks, dots, _ and -: {0:?}")]
    BadName(String),
    /// The page.
    #[error("not a valid page, {0}")]
    BadPage(String),
    /// There is none.
    #[error("no such app: {0}")]
    Missing(String),
    /// There is one.
    #[error("an app with this name already exists: {0}")]
    Taken(String),
    /// The store says no.
    #[error(transparent)]
    Kept(#[from] ArtifactError),
}

impl Apps {
    /// Those among these artifacts.
    pub fn new(artifacts: Artifacts) -> Self {
        Self { artifacts }
    }

    /// Somebody's apps, by name.
    pub async fn list(&self, principal: &Principal) -> Result<Vec<AppSummary>, AppError> {
        let kept = self.artifacts.list(&apps_scope(principal)).await?;
        Ok(kept.iter().filter_map(|kept| Some(app_summary(&kept.name, kept.versions.last()?))).collect())
    }

    /// A page, in this version or the latest.
    pub async fn read(
        &self,
        principal: &Principal,
        name: &str,
        version: Option<u64>,
    ) -> Result<(AppSummary, String), AppError> {
        let missing = || AppError::Missing(name.to_owned());
        let (version, content) =
            self.artifacts.load(&apps_scope(principal), name, version).await?.ok_or_else(missing)?;
        match content {
            ArtifactContent::Text { text } => Ok((app_summary(name, &version), text)),
            ArtifactContent::Bytes { .. } => Err(missing()),
        }
    }

    /// Keeps a new version of an app, or a new app; gives the version.
    pub async fn save(
        &self,
        principal: &Principal,
        name: &str,
        description: Option<&str>,
        html: String,
    ) -> Result<u64, AppError> {
        check_app_name(name)?;
        check_app_page(&html)?;
        let mut metadata = Map::new();
        metadata.extend(description.map(|text| ("description".to_owned(), Value::from(text))));
        let new = NewVersion {
            name: name.to_owned(),
            mime: Some(PAGE_MIME.to_owned()),
            metadata,
            content: ArtifactContent::Text { text: html },
        };
        Ok(self.artifacts.save(&apps_scope(principal), new).await?.number)
    }

    /// Keeps a page that came from elsewhere under its title; gives the name.
    pub async fn import(&self, principal: &Principal, html: String) -> Result<String, AppError> {
        let between = |open: &str, close: &str| Some(html.split_once(open)?.1.split_once(close)?.0.trim().to_owned());
        let title = between("<title>", "</title>").filter(|title| !title.is_empty());
        let name = title.ok_or_else(|| AppError::BadPage("it has no title to name it by".to_owned()))?;
        self.save(principal, &name, None, html).await?;
        Ok(name)
    }

    /// Takes an app away with all its versions.
    pub async fn delete(&self, principal: &Principal, name: &str) -> Result<(), AppError> {
        match self.artifacts.delete(&apps_scope(principal), name).await? {
            true => Ok(()),
            false => Err(AppError::Missing(name.to_owned())),
        }
    }
}

impl AppSummary {
    /// As goose's clients know it.
    pub fn to_json(&self) -> Value {
        json!({
            "uri": format!("ui://apps/{}", self.name), "name": self.name, "description": self.description,
            "mimeType": "text/html;profile=mcp-app", "mcpServers": ["apps"], "version": self.version,
            "updatedAt": crate::times::format_rfc3339(self.at),
        })
    }
}

fn apps_scope(principal: &Principal) -> ArtifactScope {
    ArtifactScope::for_user(principal, "apps")
}

fn app_summary(name: &str, version: &SavedVersion) -> AppSummary {
    let description = version.metadata.get("description").and_then(Value::as_str).map(str::to_owned);
    AppSummary { name: name.to_owned(), description, version: version.number, at: version.saved_at() }
}

fn check_app_name(name: &str) -> Result<(), AppError> {
    let plain = |letter: char| letter.is_alphanumeric() || matches!(letter, ' ' | '.' | '_' | '-');
    let edges = name.starts_with(['.', ' ']) || name.ends_with(' ');
    match name.is_empty() || name.chars().count() > MAX_NAME_CHARS || !name.chars().all(plain) || edges {
        true => Err(AppError::BadName(name.chars().take(MAX_NAME_CHARS).collect())),
        false => Ok(()),
    }
}

fn check_app_page(html: &str) -> Result<(), AppError> {
    let start = html.trim_start();
    if html.len() > MAX_PAGE_BYTES {
        return Err(AppError::BadPage(format!("it is larger than {MAX_PAGE_BYTES} bytes: {}", html.len())));
    }
    match start.starts_with('<') && !html.contains('\0') {
        true => Ok(()),
        false => Err(AppError::BadPage("it is no HTML".to_owned())),
    }
}
