//! Starts an agent to see whether it answers, and says what it offers.

use std::sync::Arc;

use anyhow::{Context as _, bail};
use gander::config::{AcpSettings, Config, RemoteKind, ServerSettings};
use gander_client::schema::{Implementation, InitializeResponse};
use gander_client::{Agent, CallError, Client, Link};
use gander_runtime::backend::acp::AgentAddress;
use gander_runtime::backend::remote::RemoteHttp;
use serde_json::{Value, json};

use crate::commands::{Context, Exit};
use crate::output::clean_output_text;

/// Where an A2A agent's card is, below its address.
const A2A_CARD: &str = "/.well-known/agent-card.json";

/// What an agent answers that wants a login first.
const AUTH_REQUIRED: i64 = -32000;

/// Starts the agent of this name and says how that went.
pub(super) async fn try_agent(context: &Context, config: &Config, name: &str) -> anyhow::Result<Exit> {
    let Some(agent) = config.agents.iter().find(|agent| agent.name == name) else {
        let names: Vec<&str> = config.agents.iter().map(|agent| agent.name.as_str()).collect();
        bail!("no such agent beside our own: {name} (there are: {})", names.join(", "));
    };
    let settings = match &agent.kind {
        RemoteKind::Acp(settings) => settings,
        RemoteKind::Goosed(remote) => {
            context.output.line(&format!("{name} is a goosed at {}: its first prompt tries it", remote.url))?;
            return Ok(Exit::Done);
        }
        RemoteKind::A2a(settings) => return try_server(context, name, settings, A2A_CARD).await,
        RemoteKind::AcpRest(settings) => return try_server(context, name, settings, "/agents").await,
        RemoteKind::Adk(settings) => return try_server(context, name, settings, "/list-apps").await,
    };
    if let Some(missing) = settings.program.as_ref().and_then(|program| program.find_program().err()) {
        let fix = settings.install.as_deref().map(|fix| format!("\nInstall it: {fix}")).unwrap_or_default();
        context.output.note(&format!("{name} cannot run here: {missing}{fix}"));
        return Ok(Exit::Failed);
    }
    context.output.note(&format!("starting {}", clean_output_text(&settings.place)));
    let (client, process) = connect_tried_agent(settings).await.with_context(|| format!("{name} does not answer"))?;
    context.output.line(&tried_agent_introduction(name, client.initialize_response()))?;
    let exit = open_trial_session(context, name, settings, &client).await;
    client.close_connection();
    if let Some(process) = process {
        process.stop().await;
    }
    exit
}

/// Asks a server for what every server of its kind tells: its card, its agents or its apps.
async fn try_server(context: &Context, name: &str, settings: &ServerSettings, path: &str) -> anyhow::Result<Exit> {
    let url = &settings.endpoint.url;
    let asked = async { RemoteHttp::new(&settings.endpoint, &[])?.get_json(path).await };
    let answer = match asked.await {
        Ok(answer) => answer,
        Err(error) => {
            context.output.note(&clean_output_text(&format!("{name} at {url} {error}")));
            return Ok(Exit::Failed);
        }
    };
    let card_name = answer["name"].as_str().into_iter();
    let agents = answer["agents"].as_array().into_iter().flatten().filter_map(|agent| agent["name"].as_str());
    let apps = answer.as_array().into_iter().flatten().filter_map(Value::as_str);
    let offered: Vec<&str> = card_name.chain(agents).chain(apps).collect();
    context.output.line(&clean_output_text(&format!("{name} answers at {url}: {}", offered.join(", "))))?;
    if let Some(agent) = settings.agent.as_deref().filter(|agent| !offered.contains(agent)) {
        context.output.note(&format!("it does not list {agent}"));
        return Ok(Exit::Failed);
    }
    if settings.agent.is_none() && path != A2A_CARD && offered.len() != 1 {
        context.output.note("say which of them it is: --remote-agent NAME");
        return Ok(Exit::Failed);
    }
    Ok(Exit::Done)
}

async fn connect_tried_agent(settings: &AcpSettings) -> anyhow::Result<(Client, Option<Agent>)> {
    let who = Implementation::new("gander", env!("CARGO_PKG_VERSION"));
    let link = match &settings.address {
        AgentAddress::Program(launch) => {
            let agent =
                Agent::start(launch.clone(), who, Arc::new(())).await.map_err(|error| anyhow::anyhow!("{error}"))?;
            return Ok((agent.running_client()?.clone(), Some(agent)));
        }
        AgentAddress::Http(endpoint) => Link::connect_http(endpoint)?,
        AgentAddress::WebSocket(endpoint) => Link::connect_websocket(endpoint).await?,
    };
    Ok((Client::connect(link, who, Arc::new(())).await?, None))
}

fn tried_agent_introduction(name: &str, agent: &InitializeResponse) -> String {
    let info = json!(agent.agent_info);
    let title = info["name"].as_str().unwrap_or(name);
    let version = info["version"].as_str().unwrap_or("of an unknown version");
    let can = &agent.agent_capabilities;
    let again = match (can.session_capabilities.resume.is_some(), can.load_session) {
        (true, _) => "resumes sessions",
        (false, true) => "loads sessions",
        (false, false) => "forgets its sessions when it ends",
    };
    clean_output_text(&format!("{name}: {title} {version}, {again}"))
}

async fn open_trial_session(
    context: &Context,
    name: &str,
    settings: &AcpSettings,
    client: &Client,
) -> anyhow::Result<Exit> {
    let folder = trial_folder()?;
    let made = match client.new_session(folder.clone()).await {
        Ok(made) => json!(made),
        Err(CallError::Refused(error)) if error.code == AUTH_REQUIRED => {
            let login = settings.login.as_deref().map(|login| format!(": run `{login}`")).unwrap_or_default();
            context.output.note(&format!("{name} needs a login{login}"));
            return Ok(Exit::Failed);
        }
        Err(error) => {
            context.output.note(&format!("{name} opens no session: {error}"));
            return Ok(Exit::Failed);
        }
    };
    std::fs::remove_dir_all(&folder).ok();
    let modes: Vec<&str> = tried_agent_names(&made["modes"]["availableModes"], "id");
    if !modes.is_empty() {
        context.output.line(&clean_output_text(&format!("modes: {}", modes.join(", "))))?;
    }
    let options: Vec<&str> = tried_agent_names(&made["configOptions"], "id");
    if !options.is_empty() {
        context.output.line(&clean_output_text(&format!("options: {}", options.join(", "))))?;
    }
    context.output.line(&format!("{name} works"))?;
    Ok(Exit::Done)
}

/// An empty folder: an agent may look at all that is in its own.
fn trial_folder() -> anyhow::Result<std::path::PathBuf> {
    let folder = std::env::temp_dir().join(format!("gander-agent-{}", uuid::Uuid::now_v7()));
    std::fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}

fn tried_agent_names<'a>(list: &'a Value, key: &str) -> Vec<&'a str> {
    list.as_array().into_iter().flatten().filter_map(|item| item[key].as_str()).collect()
}
