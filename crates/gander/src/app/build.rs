//! Builds the parts of an application from its settings.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use futures::FutureExt as _;
use gander_agent::modes::AgentCatalog;
use gander_agent::{delegate, native_toolbox};
use gander_domain::{Policy, Principal, Recovery, SessionCatalog, Settings};
use gander_gateway::protocols;
use gander_mcp::Keyring;
use gander_native::{Native, RunSettings};
use gander_runtime::hub::{Hub, OnDeleted};
use gander_services::agents::Agents;
use gander_services::apps::listed_app_tools;
use gander_services::artifacts::listed_artifact_tools;
use gander_services::audit::Audit;
use gander_services::clients::AttachedClients;
use gander_services::extensions::{self, ExtensionsConfig, NetworkStore, PinStore};
use gander_services::memory::listed_memory_tools;
use gander_services::models::{ModelPreferences, Models};
use gander_services::paths::Paths;
use gander_services::schedules::{Schedules, canonical_time_zone};
use gander_services::sessions::Sessions;
use gander_services::shared_credentials::SharedCredentials;
use gander_services::state::SharedState;
use gander_services::token::owner_token;
use gander_services::trust::{PROJECT_FOLDER, Trust};
use gander_services::workspaces::Workspaces;
use gander_services::{Control, Services};
use gander_store::Store;
use gander_tools::permission::{LivePolicy, LiveRules};
use gander_tools::protected::ProtectedFiles;
use gander_tools::sandbox::Sandbox;
use gander_tools::{FileAccess, Group, ListedTool, Redactor, SharedToolState, ToolEnv, Toolbox};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::agents::ConfiguredAgents;
use super::stored_services::StoredServices;
use super::{AgentsFactory, ControlRequest, NativeAgent};
use crate::config::{Config, LiveConfig, OnRestart};
use crate::sandbox;

pub(super) fn build_models(config: &Config) -> anyhow::Result<Models> {
    Ok(Models::new(config.catalogue()?, config.keys.clone(), model_preferences(config)))
}

fn model_preferences(config: &Config) -> ModelPreferences {
    let section = &config.sections.model;
    let (default, fast, strong) = (section.default.clone(), section.fast.clone(), section.strong.clone());
    ModelPreferences { default, fast, strong }
}

/// The native agent, and whoever else there is.
pub(super) fn build_agents(
    config: &Config,
    (included, native): (NativeAgent, Native),
    store: &Arc<dyn Store>,
    configured: &ConfiguredAgents,
    more_agents: Vec<AgentsFactory>,
) -> anyhow::Result<Agents> {
    if !config.native {
        let only = config.agents.first().context("there is no agent")?;
        return Ok(Agents::answering_every_name(configured.build(config, only)?));
    }
    let mut added = more_agents.into_iter().flat_map(|make| make(store));
    let mut agents = match included {
        NativeAgent::Included => Agents::with_native_agents(Arc::clone(&native.agent_catalog), Arc::new(native)),
        NativeAgent::LeftOut => Agents::new(added.next().context("there is no agent: add one with `with_agent`")?),
    };
    added.try_for_each(|agent| agents.add(agent))?;
    agents.set_configured(configured.build_all(config));
    Ok(agents)
}

/// The agents and modes: built in, the owner's, and those of projects that are trusted.
pub(super) fn build_agent_catalog(config: &Config, trust: &Trust, files: &FileAccess) -> AgentCatalog {
    let trust = trust.clone();
    let place = PathBuf::from(PROJECT_FOLDER).join("agents");
    AgentCatalog::from_folder(config.agents_folder())
        .with_projects(place, files.clone(), move |folder| trust.is_trusted(folder))
}

/// Every tool of our own that a session may have, whichever of them are on.
pub(super) fn own_tools(toolbox: &Toolbox) -> Arc<[ListedTool]> {
    let delegate = ListedTool { spec: delegate::delegate_spec(), group: Group::Delegate };
    let lent = listed_app_tools().into_iter().chain(listed_artifact_tools()).chain(listed_memory_tools());
    toolbox.listed_tools().iter().cloned().chain([delegate]).chain(lent).collect()
}

pub(super) async fn load_schedules(config: &Config, store: &Arc<dyn Store>) -> anyhow::Result<Schedules> {
    let section = &config.sections.schedules;
    let zone = section.zone.as_deref().map(canonical_time_zone).transpose().context("schedules.zone")?;
    Ok(Schedules::load(Arc::clone(store), section.missed, zone).await?)
}

pub(super) fn build_extensions_config(
    config: &Config,
    (pins, networks): (PinStore, NetworkStore),
    registry: extensions::ExtensionRegistry,
    trust: &Trust,
    sandbox: Sandbox,
) -> ExtensionsConfig {
    ExtensionsConfig {
        environment: config.tool_environment.clone(),
        sandbox,
        network: sandbox::sandbox_network_access(config.sections.sandbox.server_network),
        limits: config.sections.tools.limits(),
        redactor: Redactor::new(secrets_to_redact(config)),
        networks,
        pins,
        keyring: Keyring::default(),
        registry,
        trust: trust.clone(),
        keys: config.keys.clone(),
        homes: config.paths.extensions_folder(),
    }
}

/// Fences of this server. They are tried out beside: nobody waits for that but the first command.
pub(super) fn build_sandbox(config: &Config) -> Sandbox {
    let sandbox = sandbox::configured_sandbox(config);
    let (tried, old) = (sandbox.clone(), config.paths.temporary_folder());
    std::thread::spawn(move || {
        if let Err(error) = std::fs::remove_dir_all(&old)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(%error, "temporary files of commands stay");
        }
        tracing::info!(layers = %tried.available_layers(), "the sandbox");
    });
    sandbox
}

/// What the settings say of runs, as they are when one begins. The tools are built anew only if the settings changed.
pub(super) fn build_run_settings(
    live: &Arc<LiveConfig>,
    sandbox: Sandbox,
    protected: ProtectedFiles,
) -> Arc<dyn Fn() -> RunSettings + Send + Sync> {
    // One for as long as the server runs: what a command of one session changes is compared with what another's allowed,
    // whichever settings each of them began with.
    let shared = SharedToolState::new(protected);
    let build = {
        let live = Arc::clone(live);
        move |config: &Config| {
            let limits = config.sections.tools.limits();
            let tool_env = ToolEnv {
                environment: config.tool_environment.clone(),
                redactor: Redactor::new(secrets_to_redact(config)),
                sandbox: sandbox.clone(),
                network: sandbox::sandbox_network_access(config.sections.sandbox.network),
                shared: shared.clone(),
                ..ToolEnv::default()
            };
            let (rules, policy) = (Arc::clone(&live), live_policy(&live));
            RunSettings {
                agent: config.sections.agent.clone(),
                limits,
                toolbox: Arc::new(native_toolbox(limits, tool_env, config.own.skills.clone())),
                rules: LiveRules::new(move || rules.rules()),
                policy: LivePolicy::new(policy),
            }
        }
    };
    let first = live.current();
    let built = Mutex::new((Arc::clone(&first), build(&first)));
    let live = Arc::clone(live);
    Arc::new(move || {
        let config = live.current();
        let mut built = built.lock().unwrap_or_else(PoisonError::into_inner);
        if !Arc::ptr_eq(&built.0, &config) {
            *built = (Arc::clone(&config), build(&config));
        }
        built.1.clone()
    })
}

/// The policy of new sessions, as the settings are now.
pub(super) fn live_policy(live: &Arc<LiveConfig>) -> impl Fn() -> Policy + Send + Sync + 'static {
    let live = Arc::clone(live);
    move || live.current().sections.permissions.policy
}

/// Gives models, MCP servers and what masks secrets new settings when there are some.
pub(super) fn follow_settings(
    live: &Arc<LiveConfig>,
    models: &Arc<Models>,
    services: &Services,
    configured: ConfiguredAgents,
) {
    let (models, extensions, files) = (Arc::clone(models), Arc::clone(&services.extensions), services.files.clone());
    let agents = Arc::clone(&services.agents);
    live.on_change(move |config| {
        match config.catalogue() {
            Ok(catalogue) => models.replace(catalogue, config.keys.clone(), model_preferences(config)),
            Err(error) => tracing::error!(%error, "the providers of the settings are wrong: the old ones stay"),
        }
        files.replace_redactor(Redactor::new(secrets_to_redact(config)));
        extensions.replace_configured(config.extensions.clone(), config.built_ins.clone());
        if config.native {
            agents.set_configured(configured.build_all(config));
        }
        agents.announce_choices();
    });
}

pub(super) fn build_native(
    config: &Config,
    models: &Arc<Models>,
    stored: &StoredServices,
    run_settings: Arc<dyn Fn() -> RunSettings + Send + Sync>,
    own_tools: &Arc<[ListedTool]>,
) -> Native {
    Native {
        agent_catalog: Arc::clone(&stored.agent_catalog),
        models: Arc::clone(models),
        run_settings,
        files: stored.files.clone(),
        workspaces: build_workspaces(config, &stored.files),
        grants: stored.grants.clone(),
        trust: stored.trust.clone(),
        extensions: Arc::clone(&stored.extensions),
        user_dirs: config.own.clone(),
        recipes: Arc::clone(&stored.recipes),
        apps: stored.apps.clone(),
        artifacts: stored.artifacts.clone(),
        memories: stored.memories.clone(),
        telemetry: stored.telemetry.clone(),
        own_tools: Arc::clone(own_tools),
        hub: Arc::default(),
    }
}

/// What goes with a session that is deleted: artifacts, its recipe, its extensions with their secrets.
pub(super) fn on_session_deleted(stored: &StoredServices) -> OnDeleted {
    let artifacts = stored.artifacts.on_session_deleted();
    let (recipes, extensions) = (Arc::clone(&stored.recipes), Arc::clone(&stored.extensions));
    Arc::new(move |session| {
        let artifacts = artifacts(session);
        let (recipes, extensions) = (Arc::clone(&recipes), Arc::clone(&extensions));
        Box::pin(async move {
            artifacts.await;
            recipes.forget_session(session).await;
            extensions.forget_session(session).await;
        })
    })
}

/// How files are read for sessions: never those of the server itself.
pub(super) fn build_file_access(config: &Config) -> FileAccess {
    FileAccess::new(Redactor::new(secrets_to_redact(config)))
        .with_hidden_folder(config.paths.data_directory().to_owned(), Paths::SCRATCH)
        .with_hidden_settings(&config.file)
}

pub(super) fn build_workspaces(config: &Config, files: &FileAccess) -> Workspaces {
    let server = &config.sections.server;
    Workspaces::new(config.paths.scratch_folder(), server.roots.clone(), files.clone())
        .with_agent_folders(server.workspaces.clone())
}

/// What no tool may show: the keys of providers and of other agents, the token of this server and the keys of its cluster.
fn secrets_to_redact(config: &Config) -> Vec<String> {
    let token = owner_token(&config.paths).ok().map(|token| token.expose_secret().to_owned());
    config.known_secrets().into_iter().chain(token).chain(config.sections.cluster.key_lines()).collect()
}

pub(super) fn recovery_policy(config: &Config) -> Recovery {
    let recovery = &config.sections.recovery;
    // What a run did after a backup was made is not in it: no tool may run a second time because of that.
    let is_restored = config.paths.restored().exists();
    Recovery {
        resume: recovery.on_restart == OnRestart::Resume && !is_restored,
        max_age: i64::try_from(recovery.max_age.0.as_micros()).unwrap_or(i64::MAX),
        max_times: recovery.max_times,
    }
}

pub(super) fn build_services(
    live: &Arc<LiveConfig>,
    hub: Hub,
    (native_agent, agents): (NativeAgent, Arc<Agents>),
    stored: StoredServices,
    models: &Arc<Models>,
    tools: Arc<[ListedTool]>,
    controls: mpsc::Sender<ControlRequest>,
) -> Services {
    let audit = build_audit(live, &hub, stored.credentials.clone());
    let (config, policy, live) = (live.started(), live_policy(live), Arc::clone(live));
    let known_agents = Arc::clone(&agents);
    let default_settings: Arc<dyn Fn() -> Settings + Send + Sync> = Arc::new(move || {
        let config = live.current();
        let chosen = config.default_agent.as_deref().and_then(|name| known_agents.manifest(name));
        let manifest = chosen.unwrap_or_else(|| known_agents.default_manifest());
        let (policy, effort) = (config.sections.permissions.policy, config.sections.model.effort);
        Settings { policy, effort, ..Settings::new(&manifest.name, manifest.default_mode()) }
    });
    let clients = Arc::new(AttachedClients::default());
    let status = status_reporter(hub.clone(), Arc::clone(&clients), Arc::clone(models));
    let (models, roster, known) = (Arc::clone(models), Arc::clone(&agents), Arc::clone(models));
    let workspaces = build_workspaces(config, &stored.files);
    Services {
        sessions: Sessions::new(hub.clone(), workspaces.clone(), Arc::clone(&default_settings), audit.clone()),
        audit,
        telemetry: stored.telemetry,
        artifacts: stored.artifacts,
        shared_state: SharedState::new(Arc::clone(hub.store())),
        hub,
        nodes: Arc::default(),
        clients,
        workspaces,
        schedule_meta: protocols::goose::sessions::goose_scheduled_session_meta,
        files: stored.files,
        max_line_bytes: config.sections.limits.line.len(),
        reminder_delay: config.sections.permissions.reminder_delay(),
        grants: stored.grants,
        protected: stored.protected,
        trust: stored.trust,
        extensions: stored.extensions,
        recipes: stored.recipes,
        schedules: stored.schedules,
        apps: stored.apps,
        agent_catalog: stored.agent_catalog,
        remote_commands: config.sections.server.allow_remote_commands,
        agents,
        default_settings,
        tools,
        reply_grace: config.sections.server.reply_grace.0,
        models,
        catalog: Arc::new(move |folder| {
            // Looks at the settings: an agent that was just added is listed.
            let policy = policy();
            build_catalog(native_agent, &known, &roster, folder, policy)
        }),
        status: Arc::new(status),
        control: Arc::new(move |control| forward_control(controls.clone(), control).boxed()),
    }
}

/// Principals are those who have a token; whoever had one and is asked about by name is found as well.
fn build_audit(live: &Arc<LiveConfig>, hub: &Hub, shared: Option<SharedCredentials>) -> Audit {
    let (settings, paths) = (Arc::clone(live), live.started().paths.clone());
    let keep = move || settings.current().sections.audit.keep.0;
    let principals = move || {
        let tokens = gander_services::token::list_tokens(&paths).unwrap_or_default();
        let everywhere = shared.iter().flat_map(SharedCredentials::list_tokens);
        let named = tokens.into_iter().chain(everywhere).map(|token| Principal::named(token.name));
        std::iter::once(Principal::owner()).chain(named).collect()
    };
    Audit::new(Arc::clone(hub.store()), Arc::new(keep), Arc::new(principals))
}

/// What sessions can be set to. Our models and efforts mean nothing where our own agent is left out.
fn build_catalog(
    native: NativeAgent,
    models: &Models,
    agents: &Agents,
    folder: &str,
    policy: Policy,
) -> Arc<SessionCatalog> {
    let (roster, agent_models) = (agents.roster_in_folder(folder), agents.agent_models());
    let catalog = match native {
        NativeAgent::Included => models.session_catalog(roster, agent_models, policy),
        NativeAgent::LeftOut => {
            SessionCatalog { roster, agent_models, policy: Some(policy), ..SessionCatalog::default() }
        }
    };
    Arc::new(SessionCatalog { agent_options: agents.agent_options(), ..catalog })
}

async fn forward_control(controls: mpsc::Sender<ControlRequest>, control: Control) -> Result<Value, String> {
    let (reply, answer) = oneshot::channel();
    let gone = |_| "this server takes no orders".to_owned();
    controls.send((control, reply)).await.map_err(|_| gone(()))?;
    answer.await.map_err(|_| gone(()))?
}

fn status_reporter(hub: Hub, clients: Arc<AttachedClients>, models: Arc<Models>) -> impl Fn() -> Value {
    move || {
        let stats = hub.store().stats();
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "pid": std::process::id(),
            "sessions": { "active": hub.active_sessions(), "attached": clients.total_attached() },
            "idle_sessions": hub.cache_stats(),
            "model": models.known_default(),
            "store": {
                "commits": stats.commits,
                "syncs": stats.barriers,
                "rows": stats.rows,
                "entries": stats.entries,
                "deltas": stats.deltas,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;

    use gander_tools::protected::OnChange;

    use super::*;
    use crate::config::{Environment, Flags};

    #[tokio::test]
    async fn tools_of_old_and_new_settings_share_what_they_know_of_protected_files() {
        let root = tempfile::tempdir().unwrap();
        let (file, work) = (root.path().join("gander.toml"), root.path().join("work"));
        fs::create_dir_all(work.join(".vscode")).unwrap();
        fs::create_dir_all(root.path().join("data")).unwrap();
        fs::write(work.join(".vscode/tasks.json"), "{}\n").unwrap();
        fs::write(&file, "[agent]\nmax_turns = 7\n").unwrap();
        let flags = Flags { config: Some(file.clone()), data: Some(root.path().join("data")), values: Vec::new() };
        let config = Config::load(&flags, &Environment::default()).unwrap();
        let sandbox = Sandbox::default();
        let protected = ProtectedFiles::with_store(config.paths.protected_files_folder());
        let settings = build_run_settings(&LiveConfig::new(config), sandbox, protected);
        let old = settings().toolbox;
        let running = old.protected_files().watch_command(std::slice::from_ref(&work)).await.unwrap();
        fs::write(&file, "[agent]\nmax_turns = 8\n").unwrap();
        let new = settings().toolbox;
        assert!(!Arc::ptr_eq(&old, &new), "the settings changed");
        let task = work.join(".vscode/tasks.json");
        fs::write(&task, "{\"approved\":1}\n").unwrap();
        new.protected_files().accept_change(task.clone()).await.unwrap();
        let blamed = running.finish_command(OnChange::SetAside).await.unwrap();
        assert!(blamed.is_none(), "a change that a person agreed to in another session");
        assert_eq!(fs::read_to_string(task).unwrap(), "{\"approved\":1}\n");
    }
}
