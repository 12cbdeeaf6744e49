//! One run of the native agent on its way from the prompt to the driver.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use gander_agent::context_files::ContextFiles;
use gander_agent::delegate::{SubagentRunner, delegate_tool};
use gander_agent::driver::{ModePrompt, RunDeps, SessionTools};
use gander_agent::modes::ModeSet;
use gander_agent::recipe_run::{SubRecipeEnv, SubRecipeSource, sub_recipe_tools};
use gander_agent::route::ModelQuery;
use gander_agent::turn::{TurnSetup, exceeded_budget};
use gander_domain::{Context, Notice, Outcome, Report, Routing, SessionView, Severity, TextMark};
use gander_mcp::Servers;
use gander_runtime::backend::ClientResources;
use gander_services::apps::app_tools;
use gander_services::artifacts::artifact_tools;
use gander_services::memory::memory_tools;
use gander_services::recipes::{Recipes, SessionRecipe};
use gander_store::clock::SystemIds;
use gander_tools::{BuiltIn, Host, LocalHost, Tool, Workspace};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::native::{Native, RunSettings};
use crate::{routing, subagents};

/// One run before it is driven. Call [`NativeRun::route_prompt`] on a fresh one, then [`NativeRun::prepare`]: the mode
/// that routing chose decides which model, prompt and tools the run has.
pub(super) struct NativeRun<'a> {
    pub native: &'a Native,
    /// As they were when the run began.
    pub settings: RunSettings,
    pub context: Context,
    pub view: SessionView,
    pub client_resources: ClientResources,
    pub servers: Arc<Servers>,
    pub reports: mpsc::Sender<Report>,
}

impl NativeRun<'_> {
    /// Finds out who answers the prompt, if the session leaves that open, and sets the run to it. Returns the sub-tasks
    /// that are handed out first, if the prompt is several requests in one.
    pub(super) async fn route_prompt(&mut self) -> Option<Value> {
        let model = match self.context.settings.routing {
            Routing::Off => return None,
            Routing::Rules => None,
            // With the budget spent no model is asked.
            Routing::Model if exceeded_budget(self.context.settings.budget, self.view.spent).is_some() => None,
            Routing::Model => {
                let named = self.context.settings.model.as_deref();
                let keys = self.client_resources.keys.as_ref();
                let model = self.native.models.model_for_mode(named, Some("fast"), keys).await.ok();
                model.map(|model| self.native.telemetry.trace_model(model, &self.view))
            }
        };
        let (modes, mut query) = (self.available_modes(), model.as_deref().map(ModelQuery::new));
        let split = match self.may_split().await {
            true => routing::split_prompt(&modes, &self.context, query.as_mut()).await,
            false => None,
        };
        let split = split.and_then(|split| {
            Some((split.delegating_route(&modes, &self.context.settings)?, split.as_tool_arguments()))
        });
        let (route, subtasks) = match split {
            Some((route, subtasks)) => (route, Some(subtasks)),
            None => (routing::choose_route(&modes, &self.context, query.as_mut()).await?, None),
        };
        let usage = query.map(ModelQuery::into_usage).unwrap_or_default();
        self.context.settings.apply_route(&route);
        drop(self.reports.send(Report::Routed(route)).await);
        for usage in usage {
            self.view.spent.add_usage(&usage);
            drop(self.reports.send(Report::UsageAdded(usage)).await);
        }
        subtasks
    }

    /// What an agent of another system said in this session before is text from outside.
    pub(super) async fn mark_other_agents(&mut self) {
        let modes = self.available_modes();
        let is_ours = |name: &str| modes.agent_manifests().any(|agent| agent.name == name);
        let provenance = &mut self.context.provenance;
        let Some(other) = provenance.agents().find(|name| !is_ours(name)) else { return };
        let mark = TextMark { untrusted: Some(format!("the agent {other}")), private: None };
        provenance.add_mark(&mark, self.context.head);
        drop(self.reports.send(Report::TextMarked(mark)).await);
    }

    /// Reads and opens everything that the run works with. The error is how it ends instead.
    pub(super) async fn prepare_turn(
        &self,
        is_first_run: bool,
        subtasks: Option<Value>,
    ) -> Result<(RunDeps, TurnSetup), Outcome> {
        let recipe = self.session_recipe().await?;
        let mut context_files = self.read_context_files().await;
        if self.servers.built_ins().is_enabled(BuiltIn::Memory) {
            context_files.hints.push_str(&self.memory_section().await);
        }
        let (sub_recipes, left_out) = load_native_sub_recipes(&self.native.recipes, recipe.clone()).await;
        if is_first_run {
            send_native_run_warnings(&self.reports, &[context_files.warnings.clone(), left_out].concat()).await;
        }
        let mode = self.available_modes().selected_mode(&self.context.settings);
        let (named, keys) = (self.context.settings.model.as_deref(), self.client_resources.keys.as_ref());
        let model = self.native.models.model_for_mode(named, mode.model.as_deref(), keys).await;
        let model = model.map_err(|error| Outcome::failed("model", error.to_string()))?;
        let model = self.native.telemetry.trace_model(model, &self.view);
        let workspace = Arc::new(self.open_workspace().await?);
        let task = recipe.map(|followed| followed.recipe.run_task()).unwrap_or_default();
        let tools = Arc::new(self.session_tools(workspace, task.tools, sub_recipes));
        let mode_prompt = ModePrompt {
            catalog: self.native.agent_catalog.for_folder(&self.view.workspace),
            tools: Arc::clone(&tools),
            workspace: self.context.workspace.clone(),
            folders: self.context.folders.clone(),
            today: jiff::Timestamp::now().strftime("%F").to_string(),
            context_files,
            instructions: task.instructions,
        };
        let mode = mode_prompt.apply_settings(&self.context.settings);
        let mut model_info = model.info().clone();
        // A client may have told how much of the window counts.
        model_info.window = self.context.settings.model_params.window.or(model_info.window);
        let setup = TurnSetup {
            settings: self.settings.agent.clone(),
            model: model_info,
            system: mode.system,
            tools: mode.tools,
            evaluator: Arc::clone(&tools) as _,
            goal: task.goal,
            subtasks,
            spent: self.view.spent,
        };
        let (servers, ids) = (Arc::clone(&self.servers), Box::new(SystemIds));
        Ok((RunDeps { model, executor: tools, servers, ids, mode_prompt: Some(mode_prompt) }, setup))
    }

    /// The tools of the session's run, and what its calls are judged by.
    fn session_tools(
        &self,
        workspace: Arc<Workspace>,
        task_tools: Vec<Arc<dyn Tool>>,
        sub_recipes: Vec<SubRecipeSource>,
    ) -> SessionTools {
        let Native { apps, artifacts, memories, .. } = self.native;
        let RunSettings { limits, toolbox, rules, policy, .. } = self.settings.clone();
        let plan = Arc::new(Mutex::new(self.view.plan.clone()));
        let subagents = self.subagent_runner();
        let delegate = subagents.clone().map(|runner| delegate_tool(runner, self.servers.clone(), Arc::clone(&plan)));
        let page = limits.result / 2; // the rest is for where it goes on, and for masks of secrets
        let sub_recipes = subagents.map(|subagents| sub_recipe_tools(sub_recipes, &self.sub_recipe_env(subagents)));
        let tools = delegate
            .into_iter()
            .chain(task_tools)
            .chain(app_tools(apps, &self.view.owner))
            .chain(artifact_tools(artifacts, self.view.session, page))
            .chain(memory_tools(memories, &self.view.owner, &self.view.workspace))
            .chain(sub_recipes.into_iter().flatten());
        let local = || Arc::new(LocalHost::new(Arc::clone(&workspace), limits.file)) as Arc<dyn Host>;
        SessionTools {
            toolbox,
            servers: Arc::clone(&self.servers),
            mode: Mutex::new(self.available_modes().selected_mode(&self.context.settings)),
            host: self.client_resources.host.clone().unwrap_or_else(local),
            workspace: Arc::clone(&workspace),
            rules,
            grants: self.native.grants.for_principal(&self.view.owner),
            tools: tools.collect(),
            own_tools: Arc::clone(&self.native.own_tools),
            plan,
            policy: Mutex::new(self.context.settings.session_policy()),
            provenance: Mutex::new(self.context.provenance.clone()),
            setting: policy,
            approved: Mutex::default(),
            has_compared: AtomicBool::default(),
        }
    }

    fn sub_recipe_env(&self, subagents: Arc<dyn SubagentRunner>) -> SubRecipeEnv {
        let (recipes, folder) = (Arc::clone(&self.native.recipes), self.context.workspace.clone());
        let read = Arc::new(move |path: &str| recipes.read_workspace_file(&folder, path));
        SubRecipeEnv { subagents, prompter: Arc::clone(&self.servers) as _, read }
    }

    /// The agents and modes of the session's folder.
    fn available_modes(&self) -> Arc<ModeSet> {
        self.native.agent_catalog.modes_in(Path::new(&self.view.workspace))
    }

    /// A prompt is not split where a recipe says what is to be done, nor where there are no sub-agents.
    async fn may_split(&self) -> bool {
        // A recipe that could not be looked for may be there.
        let has_recipe = async || self.native.recipes.has_recipe(self.view.session).await.unwrap_or(true);
        self.settings.agent.split && self.subagent_runner().is_some() && !has_recipe().await
    }

    /// None for a run that is a sub-agent itself.
    fn subagent_runner(&self) -> Option<Arc<dyn SubagentRunner>> {
        let is_subagent = self.view.run.as_ref().is_some_and(|run| run.origin.door == subagents::DOOR);
        let hub = self.native.hub.get().filter(|_| !is_subagent)?.clone();
        Some(Arc::new(subagents::HubSubagents {
            hub,
            agent_catalog: Arc::clone(&self.native.agent_catalog),
            recipes: Arc::clone(&self.native.recipes),
            extensions: Arc::clone(&self.native.extensions),
            trace: self.view.run.as_ref().and_then(|run| self.native.telemetry.run_context(self.view.session, run)),
            parent: self.view.clone(),
            client_resources: self.client_resources.clone(),
        }))
    }

    async fn session_recipe(&self) -> Result<Option<SessionRecipe>, Outcome> {
        self.native.recipes.recipe_of_session(self.view.session).await.map_err(|error| {
            tracing::error!(%error, "a session's recipe could not be read");
            Outcome::failed("recipe", "the session's recipe could not be read")
        })
    }

    /// What people wrote for agents, as it is now. Files may be slow: they are read on a thread for blocking work.
    async fn read_context_files(&self) -> ContextFiles {
        let (user_dirs, names) = (self.native.user_dirs.clone(), self.settings.agent.context_files.clone());
        let (files, workspace) = (self.native.files.clone(), PathBuf::from(&self.context.workspace));
        let read = tokio::task::spawn_blocking(move || {
            ContextFiles::read_context_files(&files, &user_dirs, &workspace, &names)
        });
        read.await.unwrap_or_default()
    }

    /// What agents were asked to remember, for this folder and everywhere, as a section of the prompt.
    async fn memory_section(&self) -> String {
        match self.native.memories.prompt_text(&self.view.owner, &self.view.workspace).await {
            Ok(text) if text.is_empty() => text,
            Ok(text) => format!("\n\n## What you were asked to remember\n{text}"),
            Err(error) => {
                tracing::warn!(%error, "a run begins without what it should remember");
                String::new()
            }
        }
    }

    /// Opens the session's folders, if it may still work in them.
    async fn open_workspace(&self) -> Result<Workspace, Outcome> {
        let (workspaces, files, owner) =
            (self.native.workspaces.clone(), self.native.files.clone(), self.view.owner.clone());
        let (folder, extra) = (self.context.workspace.clone(), self.context.folders.clone());
        let opened = tokio::task::spawn_blocking(move || {
            for named in std::iter::once(&folder).chain(&extra) {
                workspaces.check_allowed(&owner, named).map_err(|error| format!("the session's folder {error}"))?;
            }
            let extra: Vec<PathBuf> = extra.iter().map(PathBuf::from).collect();
            let closed = |error| format!("the session's folder cannot be entered: {folder}: {error}");
            files.open(Path::new(&folder), &extra).map_err(closed)
        });
        let opened = opened.await.unwrap_or_else(|error| Err(format!("file work broke off: {error}")));
        opened.map_err(|error| Outcome::failed("workspace", error))
    }
}

/// The recipes that a session's recipe uses, and what was left out.
async fn load_native_sub_recipes(
    recipes: &Arc<Recipes>,
    followed: Option<SessionRecipe>,
) -> (Vec<SubRecipeSource>, Vec<String>) {
    let Some(followed) = followed.filter(|followed| !followed.recipe.sub_recipes.is_empty()) else {
        return Default::default();
    };
    let recipes = Arc::clone(recipes);
    tokio::task::spawn_blocking(move || recipes.load_sub_recipes(&followed)).await.unwrap_or_default()
}

/// Says once per session what was left out of its context files.
async fn send_native_run_warnings(reports: &mpsc::Sender<Report>, warnings: &[String]) {
    for title in warnings {
        let notice = Notice { severity: Severity::Warning, title: title.clone(), detail: None };
        // Nobody hears it only if the session is gone.
        drop(reports.send(Report::Noticed(notice)).await);
    }
}
