//! The native agent as a back-end: gives the driver its model, tools and surroundings.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use gander_agent::AgentSettings;
use gander_agent::context_files::{ContextFiles, UserDirs};
use gander_agent::delegate::OptionalSubagents;
use gander_agent::driver::{Orders, RunDeps, RunEnv, drive};
use gander_agent::modes::{AgentCatalog, ModeSet};
use gander_agent::recipe_run::{ReadFile, SubRecipeSource, SubRecipes};
use gander_agent::route::ModelQuery;
use gander_agent::turn::exceeded_budget;
use gander_domain::{Context, Notice, Outcome, Report, Route, Routing, SessionView, Severity, Usage};
use gander_mcp::Servers;
use gander_runtime::backend::{Backend, BackendRun, ClientResources, RunStart};
use gander_runtime::hub::WeakHub;
use gander_services::apps::{AppTools, Apps};
use gander_services::artifacts::{ArtifactTools, Artifacts};
use gander_services::extensions::Extensions;
use gander_services::grants::Grants;
use gander_services::memory::{Memories, MemoryTools};
use gander_services::models::Models;
use gander_services::recipes::{Recipes, SessionRecipe};
use gander_services::toolset::ToolsetAdapter;
use gander_services::trust::Trust;
use gander_services::workspaces::Workspaces;
use gander_store::clock::SystemIds;
use gander_tools::permission::Rule;
use gander_tools::{BuiltIn, FileAccess, Host, Limits, LocalHost, Offers, Toolbox, Workspace};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{routing, subagents};

/// How long a run waits for MCP servers that are still starting. Later ones join it while it runs.
const SERVERS_READY_TIMEOUT: Duration = Duration::from_secs(10);

/// The native agent.
pub struct Native {
    /// The agents and their modes.
    pub agent_catalog: Arc<AgentCatalog>,
    /// Who answers.
    pub models: Arc<Models>,
    /// Limits and pauses.
    pub settings: AgentSettings,
    /// Limits of its tools.
    pub limits: Limits,
    /// How files are read for sessions.
    pub files: FileAccess,
    /// Which folders sessions work in.
    pub workspaces: Workspaces,
    /// Its tools.
    pub toolbox: Arc<Toolbox>,
    /// What the owner decided beforehand.
    pub rules: Arc<[Rule]>,
    /// What people decided for good.
    pub grants: Grants,
    /// Whose own settings count.
    pub trust: Trust,
    /// The MCP servers of sessions.
    pub extensions: Arc<Extensions>,
    /// Where the person keeps notes and skills of their own.
    pub own: UserDirs,
    /// Which sessions follow which recipe.
    pub recipes: Arc<Recipes>,
    /// Everybody's apps.
    pub apps: Apps,
    /// What was put away under a name.
    pub artifacts: Artifacts,
    /// What agents were asked to remember.
    pub memories: Memories,
    /// Where sub-agents are begun, once there is such a place.
    pub hub: Arc<OnceLock<WeakHub>>,
}

/// Who answers a prompt, and the sub-tasks that are handed out first.
struct Course {
    route: Route,
    parts: Option<Value>,
    /// What it took to find out.
    used: Vec<Usage>,
}

/// What was written down for a run before it began.
struct Prepared {
    context_files: ContextFiles,
    followed: Option<SessionRecipe>,
    apps: AppTools,
    subs: Vec<SubRecipeSource>,
    parts: Option<Value>,
}

#[async_trait]
impl Backend for Native {
    async fn drive(&self, backend_run: BackendRun) {
        if backend_run.client_resources.host.as_ref().is_some_and(|host| host.offers() == Offers::default()) {
            drop(backend_run.reports.send(Report::Noticed(client_left_notice())).await);
        }
        if let Some(notice) =
            self.trust.untrusted_notice(backend_run.view.session, Path::new(&backend_run.view.workspace))
        {
            drop(backend_run.reports.send(Report::Noticed(notice)).await);
        }
        let servers = self.extensions.servers_of(&backend_run.view);
        let first = backend_run.start == RunStart::Fresh && backend_run.view.ended.is_empty();
        let session = backend_run.view.session;
        let apps = AppTools { apps: self.apps.clone(), principal: backend_run.view.owner.clone() };
        let BackendRun { mut context, mut view, start, client_resources, orders, reports, stop, .. } = backend_run;
        let mut orders = Orders::from(orders);
        let mut parts = None;
        if start == RunStart::Fresh
            && let Some(course) = self.course(&context, &view, &client_resources).await
        {
            context.settings.apply_route(&course.route);
            drop(reports.send(Report::Routed(course.route)).await);
            for usage in course.used {
                view.spent.add(&usage);
                drop(reports.send(Report::UsageAdded(usage)).await);
            }
            parts = course.parts;
        }
        settle(&servers, &mut orders, &stop).await;
        let followed = match self.recipes.recipe_of_session(session).await {
            Ok(followed) => followed,
            Err(error) => {
                tracing::error!(%error, "a session's recipe could not be read");
                let outcome = Outcome::failed("recipe", "the session's recipe could not be read");
                return drop(reports.send(Report::Ended(outcome)).await);
            }
        };
        let mut notes = self.notes(&context).await;
        if servers.built_ins().has(BuiltIn::Memory) {
            notes.hints.push_str(&self.remembered(&view).await);
        }
        let (subs, left_out) = load_sub_recipes(&self.recipes, followed.clone()).await;
        if first {
            send_warnings(&reports, &[notes.warnings.clone(), left_out].concat()).await;
        }
        let prepared = Prepared { context_files: notes, followed, apps, subs, parts };
        match self.equip(&context, &view, &client_resources, servers, prepared).await {
            Ok(equipment) => drive(equipment, context, orders, reports, stop).await,
            Err(outcome) => {
                // Nobody hears it only if the session is gone.
                drop(reports.send(Report::Ended(outcome)).await);
            }
        }
    }
}

impl Native {
    /// The agents and modes of a session's folder.
    fn library(&self, view: &SessionView) -> Arc<ModeSet> {
        self.agent_catalog.modes_in(Path::new(&view.workspace))
    }

    /// What people wrote for agents, as it is now. Files may be slow: no task waits for them.
    async fn notes(&self, context: &Context) -> ContextFiles {
        let (own, names) = (self.own.clone(), self.settings.context_files.clone());
        let files = self.files.clone();
        let workspace = PathBuf::from(&context.workspace);
        let read = tokio::task::spawn_blocking(move || ContextFiles::read(&files, &own, &workspace, &names)).await;
        read.unwrap_or_default()
    }

    /// What agents were asked to remember, for this folder and everywhere.
    async fn remembered(&self, view: &SessionView) -> String {
        match self.memories.prompt_text(&view.owner, &view.workspace).await {
            Ok(told) if told.is_empty() => told,
            Ok(told) => format!("\n\n## What you were asked to remember\n{told}"),
            Err(error) => {
                tracing::warn!(%error, "a run begins without what it should remember");
                String::new()
            }
        }
    }

    /// A sub-agent has none of its own.
    fn office(&self, view: &SessionView, client_resources: &ClientResources) -> OptionalSubagents {
        let is_sub = view.run.as_ref().is_some_and(|run| run.origin.door == subagents::DOOR);
        let hub = self.hub.get().filter(|_| !is_sub)?.clone();
        let (agent_catalog, recipes) = (Arc::clone(&self.agent_catalog), Arc::clone(&self.recipes));
        let extensions = Arc::clone(&self.extensions);
        let (parent, client_resources) = (view.clone(), client_resources.clone());
        Some(Arc::new(subagents::Desk { hub, agent_catalog, recipes, extensions, parent, client_resources }))
    }

    /// Who answers the prompt, if the session leaves that open.
    async fn course(
        &self,
        context: &Context,
        view: &SessionView,
        client_resources: &ClientResources,
    ) -> Option<Course> {
        let judge = match context.settings.routing {
            Routing::Off => return None,
            Routing::Rules => None,
            // Without money nobody is asked.
            Routing::Model if exceeded_budget(context.settings.budget, view.spent).is_some() => None,
            Routing::Model => {
                let named = context.settings.model.as_deref();
                self.models.model_for_mode(named, Some("fast"), client_resources.keys.as_ref()).await.ok()
            }
        };
        let (library, mut judge) = (self.library(view), judge.as_deref().map(ModelQuery::new));
        let alone = !self.settings.split
            || self.recipes.has_recipe(view.session)
            || self.office(view, client_resources).is_none();
        let split = if alone { None } else { routing::split(&library, context, judge.as_mut()).await };
        let joined = split.and_then(|split| Some((split.route(&library, &context.settings)?, split.arguments())));
        let (route, parts) = match joined {
            Some((route, parts)) => (route, Some(parts)),
            None => (routing::route(&library, context, judge.as_mut()).await?, None),
        };
        Some(Course { route, parts, used: judge.map(ModelQuery::into_usage).unwrap_or_default() })
    }

    /// The folders of a session, if they may be worked in still.
    async fn open(&self, view: &SessionView, context: &Context) -> Result<Workspace, Outcome> {
        let (workspaces, files, owner) = (self.workspaces.clone(), self.files.clone(), view.owner.clone());
        let (folder, extra) = (context.workspace.clone(), context.folders.clone());
        let opened = tokio::task::spawn_blocking(move || {
            for named in std::iter::once(&folder).chain(&extra) {
                workspaces.check(&owner, named).map_err(|error| format!("the session's folder {error}"))?;
            }
            let extra: Vec<PathBuf> = extra.iter().map(PathBuf::from).collect();
            let closed = |error| format!("the session's folder cannot be entered: {folder}: {error}");
            files.open(Path::new(&folder), &extra).map_err(closed)
        });
        let opened = opened.await.unwrap_or_else(|error| Err(format!("file work broke off: {error}")));
        opened.map_err(|error| Outcome::failed("workspace", error))
    }

    async fn equip(
        &self,
        context: &Context,
        view: &SessionView,
        client_resources: &ClientResources,
        servers: Arc<Servers>,
        prepared: Prepared,
    ) -> Result<RunDeps, Outcome> {
        let mode = self.library(view).mode(&context.settings);
        let model = self.models.model_for_mode(
            context.settings.model.as_deref(),
            mode.model.as_deref(),
            client_resources.keys.as_ref(),
        );
        let model = model.await.map_err(|error| Outcome::failed("model", error.to_string()))?;
        let workspace = Arc::new(self.open(view, context).await?);
        let host = client_resources.host.clone();
        let local = || Arc::new(LocalHost::new(Arc::clone(&workspace), self.limits.file)) as Arc<dyn Host>;
        let Prepared { context_files: notes, followed, apps, subs, parts } = prepared;
        let office = self.office(view, client_resources);
        let mut task = followed.as_ref().map(|followed| followed.recipe.task()).unwrap_or_default();
        task.providers.push(Arc::new(ToolsetAdapter(apps)));
        let page = self.limits.result / 2; // the rest is for where it goes on, and for masks of secrets
        let artifacts = ArtifactTools { artifacts: self.artifacts.clone(), session: view.session, page };
        task.providers.push(Arc::new(ToolsetAdapter(artifacts)));
        let (principal, folder) = (view.owner.clone(), view.workspace.clone());
        task.providers.push(Arc::new(ToolsetAdapter(MemoryTools {
            memories: self.memories.clone(),
            principal,
            folder,
        })));
        task.parts = parts;
        if let Some(office) = office.clone().filter(|_| !subs.is_empty()) {
            let (people, folder) = (Arc::clone(&servers) as _, context.workspace.clone());
            let recipes = Arc::clone(&self.recipes);
            let read: ReadFile = Box::new(move |path| recipes.read_workspace_file(&folder, path));
            task.providers.push(Arc::new(SubRecipes { subs, office, people, read }));
        }
        let surroundings = RunEnv {
            catalog: self.agent_catalog.scoped(&view.workspace),
            spent: view.spent,
            plan: view.plan.clone(),
            office,
            toolbox: Arc::clone(&self.toolbox),
            servers,
            host: host.unwrap_or_else(local),
            workspace: Arc::clone(&workspace),
            rules: Arc::clone(&self.rules),
            grants: self.grants.for_principal(&view.owner),
            today: jiff::Timestamp::now().strftime("%F").to_string(),
            context_files: notes,
            task,
        };
        let ids = Box::new(SystemIds);
        Ok(RunDeps::new(self.settings.clone(), model, surroundings, context, ids))
    }
}

/// Gives servers that start for the first time a moment; one that is down costs a run nothing. A run that is cancelled or stopped meanwhile does not wait.
async fn settle(servers: &Servers, orders: &mut Orders, stop: &CancellationToken) {
    if servers.is_empty() {
        return;
    }
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        () = orders.wait_for_cancel() => {}
        settled = tokio::time::timeout(SERVERS_READY_TIMEOUT, servers.wait_until_tried()) => {
            if settled.is_err() {
                tracing::debug!("a run begins before all of its MCP servers");
            }
        }
    }
}

/// The recipes that a session's recipe uses, and what was left out.
async fn load_sub_recipes(
    recipes: &Arc<Recipes>,
    followed: Option<SessionRecipe>,
) -> (Vec<SubRecipeSource>, Vec<String>) {
    let Some(followed) = followed.filter(|followed| !followed.recipe.sub_recipes.is_empty()) else {
        return Default::default();
    };
    let recipes = Arc::clone(recipes);
    tokio::task::spawn_blocking(move || recipes.load_sub_recipes(&followed)).await.unwrap_or_default()
}

/// Says once per session what was left out of its notes.
async fn send_warnings(reports: &mpsc::Sender<Report>, warnings: &[String]) {
    for title in warnings {
        let notice = Notice { severity: Severity::Warning, title: title.clone(), detail: None };
        // Nobody hears it only if the session is gone.
        drop(reports.send(Report::Noticed(notice)).await);
    }
}

/// Whoever prompted lent files or terminals, and is gone.
fn client_left_notice() -> Notice {
    let title = "The editor that asked is gone: its files and terminals are now those of the server".to_owned();
    Notice { severity: Severity::Info, title, detail: None }
}
