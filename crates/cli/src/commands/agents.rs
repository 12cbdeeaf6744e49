//! `gander agents`: other agents behind every protocol. Added, tried, removed, chosen.

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use gander::config::{
    AgentsFile, Config, KNOWN_AGENTS, agents_file_path, check_agent, find_known_agent, store_agent_key,
};
use toml::{Table, Value};

use super::agent_registry::read_registry_entry;
use super::agent_trial::try_agent;
use super::catalog;
use crate::commands::{Context, Exit};

#[derive(Debug, Subcommand)]
pub(super) enum AgentsCommand {
    /// List the agents, and why one cannot run here
    List {
        /// One JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Put another agent behind every protocol: a known one by its name, a program, or a server
    #[command(after_help = "\
Examples:
  gander agents add opencode                          one of: goose, opencode, codex, claude, gemini, qwen
  gander agents add mine -- my-agent --acp            a program that speaks ACP over stdin and stdout
  gander agents add far --url wss://agents.example/acp --key-env FAR_KEY
  gander agents add planner --a2a https://agents.example/a2a/planner
  gander agents add echo --acp-rest http://127.0.0.1:8000 --remote-agent echo
  gander agents add app --adk http://127.0.0.1:8000
  gander agents add cline --registry registry.json    as a file of the ACP registry describes it")]
    Add(Box<AddOptions>),
    /// Use one no longer. Its sessions stay, and can go on with another agent
    Remove {
        /// Its name
        name: String,
    },
    /// Start one, see whether it answers, and say what it offers
    Test {
        /// Its name
        name: String,
    },
    /// Show or choose the agent that serves whoever names none
    Default {
        /// Its name; gander is our own
        name: Option<String>,
    },
}

#[derive(Debug, Args)]
pub(super) struct AddOptions {
    /// A name for it. A known agent needs no more
    name: String,
    /// The address of its server: ws://, wss://, http:// or https://
    #[arg(long, value_name = "URL", conflicts_with_all = ["command", "registry"])]
    url: Option<String>,
    /// The address of a server that speaks A2A (1.0 or 0.3), below which its agent card is
    #[arg(long, value_name = "URL", conflicts_with_all = ["url", "command", "registry"])]
    a2a: Option<String>,
    /// The address of a server that speaks ACP-REST
    #[arg(long, value_name = "URL", conflicts_with_all = ["url", "a2a", "command", "registry"])]
    acp_rest: Option<String>,
    /// The address of a server that speaks the REST of Google's ADK
    #[arg(long, value_name = "URL", conflicts_with_all = ["url", "a2a", "acp_rest", "command", "registry"])]
    adk: Option<String>,
    /// The agent's name at a server with several: its name in ACP-REST, the app in ADK
    #[arg(long, value_name = "NAME")]
    remote_agent: Option<String>,
    /// What a server at http:// or https:// speaks: acp, a2a, acp_rest, adk or goosed
    #[arg(long, value_name = "KIND", requires = "url")]
    kind: Option<String>,
    /// The environment variable that holds the server's key
    #[arg(long, value_name = "VARIABLE", conflicts_with = "command")]
    key_env: Option<String>,
    /// Read the server's key from standard input and store it for this server alone to read
    #[arg(long, conflicts_with_all = ["key_env", "command"])]
    key_stdin: bool,
    /// A registry.json of the ACP registry, a file or an address, that describes the agent
    #[arg(long, value_name = "FILE|URL", conflicts_with = "command")]
    registry: Option<String>,
    /// What its program finds in its environment
    #[arg(long = "env", value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// The command that logs in to it, told to whoever needs it
    #[arg(long, value_name = "COMMAND")]
    login: Option<String>,
    /// Do not ask before adding what would be downloaded when it first runs
    #[arg(long)]
    yes: bool,
    /// Do not start it now to see whether it works
    #[arg(long)]
    no_start: bool,
    /// The program and its arguments
    #[arg(last = true)]
    command: Vec<String>,
}

pub(super) async fn run(context: Context, command: Option<AgentsCommand>, json: bool) -> anyhow::Result<Exit> {
    match command {
        None => catalog::list_catalog_agents(context, json).await,
        Some(AgentsCommand::List { json: also_json }) => catalog::list_catalog_agents(context, json || also_json).await,
        Some(AgentsCommand::Add(options)) => add_agent(&context, *options).await,
        Some(AgentsCommand::Remove { name }) => remove_agent(&context, &name),
        Some(AgentsCommand::Test { name }) => test_agent(&context, &name).await,
        Some(AgentsCommand::Default { name: Some(name) }) => set_default_agent(&context, &name).await,
        Some(AgentsCommand::Default { name: None }) => {
            let default = context.config.default_agent.as_deref().unwrap_or("gander");
            context.output.line(default)?;
            Ok(Exit::Done)
        }
    }
}

async fn add_agent(context: &Context, options: AddOptions) -> anyhow::Result<Exit> {
    let (name, no_start) = (options.name.clone(), options.no_start);
    let path = agents_file_path(&context.config.file);
    let mut file = AgentsFile::read(&path)?;
    let entry = new_agent_entry(context, options).await?;
    check_agent(&name, Value::Table(entry.clone())).map_err(anyhow::Error::msg)?;
    if context.config.agents.iter().any(|agent| agent.name == name) && !file.agents.contains_key(&name) {
        bail!("the settings file names this agent already, change it there: {name}");
    }
    let replaced = file.agents.insert(name.clone(), Value::Table(entry)).is_some();
    file.write(&path).with_context(|| format!("cannot write {}", path.display()))?;
    let done = if replaced { "changed" } else { "added" };
    context.output.line(&format!("{done}: {name} (in {})", path.display()))?;
    if no_start {
        return Ok(Exit::Done);
    }
    let config = reload_agents_config(context)?;
    let exit = try_agent(context, &config, &name).await?;
    context
        .output
        .note(&format!("Use it: gander run --agent {name} \"…\", or for everybody: gander agents default {name}"));
    Ok(exit)
}

/// What the options say, as the file has it.
async fn new_agent_entry(context: &Context, options: AddOptions) -> anyhow::Result<Table> {
    let key_name = stored_key_name(context, &options)?.or_else(|| options.key_env.clone());
    let server = server_address(&options);
    let AddOptions { name, remote_agent, registry, env, login, yes, command, .. } = options;
    let text = |value: String| Value::String(value);
    let mut entry = Table::new();
    if let Some(registry) = registry {
        let found = read_registry_entry(&registry, &name).await?;
        if let Some(download) = &found.downloads {
            confirm_agent_download(context, download, yes)?;
        }
        entry = found.entry;
    } else if let Some((url, kind)) = server {
        entry.insert("url".to_owned(), text(url));
        entry.extend(kind.map(|kind| ("kind".to_owned(), text(kind))));
        entry.extend(remote_agent.map(|agent| ("agent".to_owned(), text(agent))));
        entry.extend(key_name.map(|name| ("secret_key_variable".to_owned(), text(name))));
    } else if !command.is_empty() {
        entry.insert("command".to_owned(), Value::Array(command.into_iter().map(text).collect()));
    } else if find_known_agent(&name).is_some() {
        entry.insert("preset".to_owned(), text(name));
    } else {
        let known = KNOWN_AGENTS.map(|known| known.name).join(", ");
        bail!(
            "say how {name} is started (-- PROGRAM …) or reached (--url, --a2a, --acp-rest, --adk); known by name are {known}"
        );
    }
    let mut variables = Table::new();
    for pair in env {
        let (name, value) = pair.split_once('=').with_context(|| format!("--env is NAME=VALUE: {pair}"))?;
        variables.insert(name.to_owned(), text(value.to_owned()));
    }
    if !variables.is_empty() {
        entry.insert("env".to_owned(), Value::Table(variables));
    }
    entry.extend(login.map(|login| ("login".to_owned(), text(login))));
    Ok(entry)
}

/// The address of a server and what it speaks, if the options name one.
fn server_address(options: &AddOptions) -> Option<(String, Option<String>)> {
    let of_kind = |url: &Option<String>, kind: &str| url.clone().map(|url| (url, Some(kind.to_owned())));
    let any = options.url.clone().map(|url| (url, options.kind.clone()));
    any.or_else(|| of_kind(&options.a2a, "a2a"))
        .or_else(|| of_kind(&options.acp_rest, "acp_rest"))
        .or_else(|| of_kind(&options.adk, "adk"))
}

/// Stores the key that stands on standard input, and says under which name.
fn stored_key_name(context: &Context, options: &AddOptions) -> anyhow::Result<Option<String>> {
    if !options.key_stdin {
        return Ok(None);
    }
    let mut key = String::new();
    io::stdin().read_line(&mut key)?;
    let key = key.trim();
    anyhow::ensure!(!key.is_empty(), "there is no key on standard input");
    let name = store_agent_key(&context.config.paths, &options.name, key).context("cannot store the key")?;
    Ok(Some(name))
}

/// Nothing is downloaded without a yes.
fn confirm_agent_download(context: &Context, download: &str, yes: bool) -> anyhow::Result<()> {
    if yes {
        return Ok(());
    }
    if !io::stdin().is_terminal() {
        bail!("`{download}` downloads the agent when it first runs: add --yes if that is what you want");
    }
    context.output.note(&format!("`{download}` downloads the agent when it first runs. Add it? [y/N]"));
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    match ["y", "yes"].contains(&answer.trim().to_lowercase().as_str()) {
        true => Ok(()),
        false => bail!("not added"),
    }
}

fn remove_agent(context: &Context, name: &str) -> anyhow::Result<Exit> {
    let path = agents_file_path(&context.config.file);
    let mut file = AgentsFile::read(&path)?;
    if file.agents.remove(name).is_none() {
        match context.config.agents.iter().any(|agent| agent.name == name) {
            true => bail!("the settings file names this agent, remove it there: {}", context.config.file.display()),
            false => bail!("no such agent was added: {name}{}", added_agent_names(&file)),
        }
    }
    if file.default.as_deref() == Some(name) {
        file.default = None;
    }
    file.write(&path).with_context(|| format!("cannot write {}", path.display()))?;
    context.output.line(&format!("removed: {name}"))?;
    Ok(Exit::Done)
}

fn added_agent_names(file: &AgentsFile) -> String {
    let names: Vec<&str> = file.agents.keys().map(String::as_str).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!(" (added: {})", names.join(", ")),
    }
}

async fn test_agent(context: &Context, name: &str) -> anyhow::Result<Exit> {
    try_agent(context, &context.config, name).await
}

async fn set_default_agent(context: &Context, name: &str) -> anyhow::Result<Exit> {
    let catalog = catalog::fetch_catalog(context).await?;
    let known = catalog["agents"].as_array().into_iter().flatten();
    let names: Vec<&str> = known.filter_map(|agent| agent["name"].as_str()).collect();
    if !names.contains(&name) {
        bail!("no such agent, there are {}: {name}", names.join(", "));
    }
    let path: PathBuf = agents_file_path(&context.config.file);
    let mut file = AgentsFile::read(&path)?;
    let is_ours = names.first() == Some(&name) && name == "gander";
    file.default = (!is_ours).then(|| name.to_owned());
    file.write(&path).with_context(|| format!("cannot write {}", path.display()))?;
    context.output.line(&format!("new sessions are served by {name}"))?;
    Ok(Exit::Done)
}

/// The settings with what was just written.
fn reload_agents_config(context: &Context) -> anyhow::Result<Config> {
    Ok(context.config.reload()?)
}
