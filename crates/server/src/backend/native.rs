//! The native agent as a back-end: gives the driver its model, tools and surroundings.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gander_agent::AgentSettings;
use gander_agent::driver::{Equipment, GrantBook, Orders, Surroundings, drive};
use gander_agent::mcp::Servers;
use gander_agent::notes::{Notes, Own};
use gander_agent::permission::Rule;
use gander_agent::tools::{Host, Limits, LocalHost, Offers, Toolbox, Workspace};
use gander_domain::{Context, Notice, Outcome, Report, Severity};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Backend, Beginning, Lent, Stay};
use crate::apps::{AppTools, Apps};
use crate::clock::SystemIds;
use crate::extensions::Extensions;
use crate::models::Models;
use crate::recipes::{Followed, Recipes};
use crate::trust::Trust;

/// How long a run waits for MCP servers that are still starting. Later ones join it while it runs.
const PATIENCE: Duration = Duration::from_secs(10);

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
    /// Whose own settings count.
    pub trust: Trust,
    /// The MCP servers of sessions.
    pub extensions: Arc<Extensions>,
    /// Where the person keeps notes and skills of their own.
    pub own: Own,
    /// Which sessions follow which recipe.
    pub recipes: Arc<Recipes>,
    /// Everybody's apps.
    pub apps: Apps,
}

/// What was written down for a run before it began.
struct Prepared {
    notes: Notes,
    followed: Option<Followed>,
    apps: AppTools,
}

#[async_trait]
impl Backend for Native {
    async fn drive(&self, stay: Stay) {
        if stay.lent.host.as_ref().is_some_and(|host| host.offers() == Offers::default()) {
            drop(stay.reports.send(Report::Noticed(left_alone())).await);
        }
        if let Some(notice) = self.trust.notice(stay.view.session, Path::new(&stay.view.workspace)) {
            drop(stay.reports.send(Report::Noticed(notice)).await);
        }
        let servers = self.extensions.of(&stay.view);
        let first = stay.beginning == Beginning::Fresh && stay.view.ended.is_empty();
        let session = stay.view.session;
        let apps = AppTools { apps: self.apps.clone(), principal: stay.view.owner.clone() };
        let Stay { context, lent, orders, reports, stop, .. } = stay;
        let mut orders = Orders::from(orders);
        settle(&servers, &mut orders, &stop).await;
        let followed = match self.recipes.of(session).await {
            Ok(followed) => followed,
            Err(error) => {
                tracing::error!(%error, "a session's recipe could not be read");
                let outcome = Outcome::failed("recipe", "the session's recipe could not be read");
                return drop(reports.send(Report::Ended(outcome)).await);
            }
        };
        let notes = self.notes(&context).await;
        if first {
            tell(&reports, &notes.warnings).await;
        }
        match self.equip(&context, &lent, servers, Prepared { notes, followed, apps }).await {
            Ok(equipment) => drive(equipment, context, orders, reports, stop).await,
            Err(outcome) => {
                // Nobody hears it only if the session is gone.
                drop(reports.send(Report::Ended(outcome)).await);
            }
        }
    }
}

impl Native {
    /// What people wrote for agents, as it is now. Files may be slow: no task waits for them.
    async fn notes(&self, context: &Context) -> Notes {
        let (own, names) = (self.own.clone(), self.settings.context_files.clone());
        let workspace = PathBuf::from(&context.workspace);
        let read = tokio::task::spawn_blocking(move || Notes::read(&own, &workspace, &names)).await;
        read.unwrap_or_default()
    }

    async fn equip(
        &self,
        context: &Context,
        lent: &Lent,
        servers: Arc<Servers>,
        prepared: Prepared,
    ) -> Result<Equipment, Outcome> {
        let model = self.models.of(context.settings.model.as_deref(), lent.keys.as_ref()).await;
        let model = model.map_err(|error| Outcome::failed("model", error.to_string()))?;
        let workspace = Arc::new(open(context)?);
        let host = lent.host.clone();
        let local = || Arc::new(LocalHost::new(Arc::clone(&workspace), self.limits.file)) as Arc<dyn Host>;
        let Prepared { notes, followed, apps } = prepared;
        let mut task = followed.as_ref().map(|followed| followed.recipe.task()).unwrap_or_default();
        task.guests.push(Arc::new(apps));
        let surroundings = Surroundings {
            toolbox: Arc::clone(&self.toolbox),
            servers,
            host: host.unwrap_or_else(local),
            workspace: Arc::clone(&workspace),
            rules: Arc::clone(&self.rules),
            grants: Arc::clone(&self.grants),
            today: jiff::Timestamp::now().strftime("%F").to_string(),
            notes,
            task,
        };
        let ids = Box::new(SystemIds);
        let limit = followed.and_then(|followed| followed.recipe.settings?.max_turns);
        let settings = AgentSettings { max_turns: limit.unwrap_or(self.settings.max_turns), ..self.settings.clone() };
        Ok(Equipment::new(settings, model, surroundings, context, ids))
    }
}

/// Gives servers that are still starting a moment. A run that is cancelled or stopped meanwhile does not wait.
async fn settle(servers: &Servers, orders: &mut Orders, stop: &CancellationToken) {
    if servers.is_empty() {
        return;
    }
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        () = orders.cancelled() => {}
        settled = tokio::time::timeout(PATIENCE, servers.settled()) => {
            if settled.is_err() {
                tracing::debug!("a run begins before all of its MCP servers");
            }
        }
    }
}

/// Says once per session what was left out of its notes.
async fn tell(reports: &mpsc::Sender<Report>, warnings: &[String]) {
    for title in warnings {
        let notice = Notice { severity: Severity::Warning, title: title.clone(), detail: None };
        // Nobody hears it only if the session is gone.
        drop(reports.send(Report::Noticed(notice)).await);
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
