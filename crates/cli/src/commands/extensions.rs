//! `gander extensions`: which MCP servers and tools of our own there are, and how they are.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::anyhow;
use clap::Subcommand;
use gander::config::Environment;
use gander_services::extensions::ExtensionEntry;
use serde_json::{Value, json};

use super::client;
use super::extension_trial::{Trial, show, try_added};
use crate::commands::{Context, Exit};
use crate::output::clean;

const IN_ARGUMENTS: &str = "a secret on the command line can be read by every user of this machine";

#[derive(Debug, Subcommand)]
pub(super) enum ExtensionsCommand {
    /// Use an MCP server, or built-in tools by their name, in every session or in one
    #[command(after_help = "\
Examples:
  gander extensions add files -- npx -y @modelcontextprotocol/server-filesystem ~/docs
  gander extensions add tickets --url https://tickets.example/mcp --header-env Authorization=TICKETS_AUTHORIZATION
  gander extensions add search --network --env API_KEY -- search-mcp      API_KEY as it is in this shell
  gander extensions add memory")]
    Add {
        /// A name, which its tools begin with
        name: String,
        /// Its address, if it is no program
        #[arg(long, value_name = "URL", conflicts_with = "command")]
        url: Option<String>,
        /// What every request carries, as \"Name: value\"; for secrets use --header-env
        #[arg(long = "header", value_name = "HEADER")]
        headers: Vec<String>,
        /// What every request carries, taken from an environment variable of this command
        #[arg(long = "header-env", value_name = "NAME=VARIABLE")]
        header_env: Vec<String>,
        /// What its program finds in its environment; without a value as it is in the environment of this command
        #[arg(long = "env", value_name = "NAME[=VALUE]")]
        env: Vec<String>,
        /// Its program may use the network
        #[arg(long)]
        network: bool,
        /// Sessions in the same folders use one
        #[arg(long)]
        shared: bool,
        /// Its program runs outside of the sandbox
        #[arg(long)]
        no_sandbox: bool,
        /// Only in this session
        #[arg(long, value_name = "ID")]
        session: Option<String>,
        /// Do not start it now to see whether it works
        #[arg(long)]
        no_start: bool,
        /// The program and its arguments
        #[arg(last = true)]
        command: Vec<String>,
    },
    /// Show how one is reached, and where its program keeps its files
    Show {
        /// Its name
        name: String,
        /// It belongs to this session
        #[arg(long, value_name = "ID")]
        session: Option<String>,
    },
    /// Use one no longer, in every session or in one
    Remove {
        /// Its name
        name: String,
        /// Only in this session
        #[arg(long, value_name = "ID")]
        session: Option<String>,
    },
    /// Use a known one again in every session
    On {
        /// Its name
        name: String,
    },
    /// Use one in no session, and keep it in mind
    Off {
        /// Its name
        name: String,
    },
    /// Log in at one that wants it, in a browser on this machine
    Login {
        /// Its name
        name: String,
        /// It belongs to this session
        #[arg(long, value_name = "ID")]
        session: Option<String>,
    },
    /// Forget the login at one
    Logout {
        /// Its name
        name: String,
        /// It belongs to this session
        #[arg(long, value_name = "ID")]
        session: Option<String>,
    },
    /// Those of every session, or those of one and how they are
    List {
        /// Those of this session
        #[arg(long, value_name = "ID")]
        session: Option<String>,
        /// One JSON object per line
        #[arg(long)]
        json: bool,
    },
}

pub(super) async fn run(context: Context, command: ExtensionsCommand) -> anyhow::Result<Exit> {
    let cwd = std::env::current_dir()?;
    let (method, params) = request(&command, &Environment::of_process())?;
    let mut connection = client::connect(&context.config, &cwd).await?;
    let answer = connection.call_method(method, &params).await?;
    match &command {
        ExtensionsCommand::Add { name, url, session, no_start: false, command, .. }
            if url.is_some() || !command.is_empty() =>
        {
            let trial = Trial { name, session: session.as_deref(), folder: &cwd };
            return try_added(&context, &mut connection, &trial).await;
        }
        ExtensionsCommand::Show { .. } => return show(&context, &answer),
        ExtensionsCommand::Add { .. }
        | ExtensionsCommand::Remove { .. }
        | ExtensionsCommand::On { .. }
        | ExtensionsCommand::Off { .. }
        | ExtensionsCommand::Login { .. }
        | ExtensionsCommand::Logout { .. }
        | ExtensionsCommand::List { .. } => {}
    }
    if let Some(url) = answer["url"].as_str() {
        context.output.line(&format!("Open this in a browser on this machine:\n{}", clean(url)))?;
        connection.call_method("_gander/extensions/login/wait", &params).await?;
        context.output.line("Logged in.")?;
    }
    let json = matches!(command, ExtensionsCommand::List { json: true, .. });
    for extension in answer["extensions"].as_array().into_iter().flatten() {
        let line = if json { extension.to_string() } else { row(extension) };
        context.output.line(&line)?;
    }
    Ok(Exit::Done)
}

fn request(command: &ExtensionsCommand, environment: &Environment) -> anyhow::Result<(&'static str, Value)> {
    Ok(match command {
        ExtensionsCommand::List { session, .. } => ("_gander/extensions/list", json!({ "sessionId": session })),
        ExtensionsCommand::Remove { name, session } => {
            ("_gander/extensions/remove", json!({ "sessionId": session, "name": name }))
        }
        ExtensionsCommand::Show { name, session } => {
            ("_gander/extensions/show", json!({ "sessionId": session, "name": name }))
        }
        ExtensionsCommand::On { name } => ("_gander/extensions/switch", json!({ "name": name, "on": true })),
        ExtensionsCommand::Off { name } => ("_gander/extensions/switch", json!({ "name": name, "on": false })),
        ExtensionsCommand::Login { name, session } => {
            ("_gander/extensions/login", json!({ "sessionId": session, "name": name }))
        }
        ExtensionsCommand::Logout { name, session } => {
            ("_gander/extensions/logout", json!({ "sessionId": session, "name": name }))
        }
        ExtensionsCommand::Add {
            name,
            url,
            headers,
            header_env,
            env,
            network,
            shared,
            no_sandbox,
            session,
            no_start: _,
            command,
        } => {
            let entry = ExtensionEntry {
                command: command.first().map(PathBuf::from),
                args: command.iter().skip(1).cloned().collect(),
                url: url.clone(),
                headers: request_headers(headers, header_env, environment)?,
                env: variables(env, environment)?,
                network: *network,
                shared: *shared,
                sandbox: no_sandbox.then_some(false),
                ..ExtensionEntry::default()
            };
            ("_gander/extensions/add", json!({ "sessionId": session, "name": name, "entry": entry }))
        }
    })
}

/// Headers as they are given, and those whose values are in variables.
fn request_headers(
    given: &[String],
    from: &[String],
    environment: &Environment,
) -> anyhow::Result<BTreeMap<String, String>> {
    let given = given.iter().map(|text| {
        let (name, value) = pair(text, ':')?;
        match is_secret_name(&name) {
            true => Err(anyhow!("{IN_ARGUMENTS}: use --header-env {name}=VARIABLE in place of --header {name}")),
            false => Ok((name, value)),
        }
    });
    let from = from.iter().map(|text| {
        let (name, variable) = pair(text, '=')?;
        Ok((name, variable_of(&variable, environment)?))
    });
    given.chain(from).collect()
}

/// Variables as they are given, or as they are here.
fn variables(given: &[String], environment: &Environment) -> anyhow::Result<BTreeMap<String, String>> {
    let variable = |text: &String| match text.contains('=') {
        true => {
            let (name, value) = pair(text, '=')?;
            match is_secret_name(&name) {
                true => Err(anyhow!("{IN_ARGUMENTS}: set {name} in this shell and say --env {name}")),
                false => Ok((name, value)),
            }
        }
        false => Ok((text.clone(), variable_of(text, environment)?)),
    };
    given.iter().map(variable).collect()
}

fn variable_of(name: &str, environment: &Environment) -> anyhow::Result<String> {
    environment.get(name).map(str::to_owned).ok_or_else(|| anyhow!("this variable is not set: {name}"))
}

fn pair(text: &str, mark: char) -> anyhow::Result<(String, String)> {
    let (name, value) = text.split_once(mark).ok_or_else(|| anyhow!("there is no {mark} in it: {text}"))?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// True if what stands under this name is usually a secret.
fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let words = ["key", "token", "secret", "password", "passwd", "authorization", "cookie", "credential"];
    words.iter().any(|word| name.contains(word))
}

fn row(extension: &Value) -> String {
    let text = |name: &str| clean(extension[name].as_str().unwrap_or_default());
    let state = match (extension["state"].as_str(), extension["reason"].as_str()) {
        (None, _) => String::new(),
        (Some(state), None) => format!("\t{state}"),
        (Some(state), Some(reason)) => format!("\t{state}: {}", clean(reason)),
    };
    let tools = extension["tools"].as_array().map(|tools| format!("\t{} tools", tools.len())).unwrap_or_default();
    format!("{}\t{}{state}{tools}", text("name"), text("place"))
}
