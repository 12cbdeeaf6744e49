//! The native agent as a back-end: gives the driver its model, tools and surroundings.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use gander_agent::AgentSettings;
use gander_agent::driver::{Equipment, GrantBook, Surroundings, drive};
use gander_agent::permission::Rule;
use gander_agent::tools::{Host, Limits, LocalHost, Offers, Toolbox, Workspace};
use gander_domain::{Context, Notice, Outcome, Report, Severity};

use super::{Backend, Stay};
use crate::clock::SystemIds;
use crate::models::Models;

/// The native agent.
pub struct Native {
    /// Who answers.
    pub models: Arc<Models>,
    /// Limits and pauses.
    pub settings: AgentSettings,
    /// Limits of its tools.
    pub limits: Limits,
    /// Its tools.
    pub toolbox: Arc<Toolbox>,
    /// What the owner decided beforehand.
    pub rules: Arc<[Rule]>,
    /// What people decided for good.
    pub grants: Arc<dyn GrantBook>,
}

#[async_trait]
impl Backend for Native {
    async fn drive(&self, stay: Stay) {
        if stay.lent.host.as_ref().is_some_and(|host| host.offers() == Offers::default()) {
            drop(stay.reports.send(Report::Noticed(left_alone())).await);
        }
        match self.equip(&stay).await {
            Ok(equipment) => drive(equipment, stay.context, stay.orders, stay.reports, stay.stop).await,
            Err(outcome) => {
                // Nobody hears it only if the session is gone.
                drop(stay.reports.send(Report::Ended(outcome)).await);
            }
        }
    }
}

impl Native {
    async fn equip(&self, stay: &Stay) -> Result<Equipment, Outcome> {
        let context = &stay.context;
        let model = self.models.of(context.settings.model.as_deref(), stay.lent.keys.as_ref()).await;
        let model = model.map_err(|error| Outcome::failed("model", error.to_string()))?;
        let workspace = Arc::new(open(context)?);
        let host = stay.lent.host.clone();
        let local = || Arc::new(LocalHost::new(Arc::clone(&workspace), self.limits.file)) as Arc<dyn Host>;
        let surroundings = Surroundings {
            toolbox: Arc::clone(&self.toolbox),
            servers: Arc::default(),
            host: host.unwrap_or_else(local),
            workspace: Arc::clone(&workspace),
            rules: Arc::clone(&self.rules),
            grants: Arc::clone(&self.grants),
            today: jiff::Timestamp::now().strftime("%F").to_string(),
            hints: String::new(),
        };
        let ids = Box::new(SystemIds);
        Ok(Equipment::new(self.settings.clone(), model, surroundings, context, ids))
    }
}

/// Whoever prompted lent files or terminals, and is gone.
fn left_alone() -> Notice {
    let title = "The editor that asked is gone: its files and terminals are now those of the server".to_owned();
    Notice { severity: Severity::Info, title, detail: None }
}

fn open(context: &Context) -> Result<Workspace, Outcome> {
    let folders: Vec<PathBuf> = context.folders.iter().map(PathBuf::from).collect();
    Workspace::open(Path::new(&context.workspace), &folders).map_err(|error| {
        Outcome::failed("workspace", format!("the session's folder cannot be entered: {}: {error}", context.workspace))
    })
}
