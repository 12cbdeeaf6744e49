//! `gander extensions`: MCP servers and built-in tools, and the status of each.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::anyhow;
use clap::Subcommand;
use gander::config::Environment;
use gander_services::extensions::ExtensionEntry;
use serde_json::{Value, json};

use super::extension_trial::{Trial, show_tried_extension, try_added_extension};
use super::session_id::resolve_session_id;
use super::{client, shell_completion};
use crate::commands::{Context, Exit};
use crate::output::clean_output_text;
use crate::terminal::list_table::print_list_table;

const IN_ARGUMENTS: &str = "a secret on the command line can be read by every user of this machine";

#[derive(Debug, Subcommand)]
pub(super) enum ExtensionsCommand {
    /// Add an MCP server, or turn on built-in tools, in every session or in one
    #[command(after_help = "\
Examples:
  gander extensions add files -- npx -y @modelcontextprotocol/server-filesystem ~/docs
  gander extensions add tickets --url https://tickets.example/mcp --header-env Authorization=AUTH
  gander extensions add search --network --env API_KEY -- search-mcp
  gander extensions add memory                             built-in tools

The server is started once to see whether it works, and its tools are shown.")]
    Add {
        /// Name; the server's tools are called NAME__TOOL
        #[arg(add = shell_completion::complete_extensions())]
        name: String,
        /// Address of a server that is reached over HTTP
        #[arg(long, value_name = "URL", conflicts_with = "command")]
        url: Option<String>,
        /// Header of every request, as "Name: value"; for secrets use --header-env
        #[arg(long = "header", value_name = "HEADER")]
        headers: Vec<String>,
        /// Header of every request, with its value in an environment variable of this shell
        #[arg(long = "header-env", value_name = "NAME=VARIABLE")]
        header_env: Vec<String>,
        /// Environment variable of the program; without a value it is taken from this shell
        #[arg(long = "env", value_name = "NAME[=VALUE]")]
        env: Vec<String>,
        /// Let the program use the network
        #[arg(long)]
        network: bool,
        /// Use one process for all sessions in the same folders
        #[arg(long)]
        shared: bool,
        /// Run the program outside the sandbox
        #[arg(long)]
        no_sandbox: bool,
        /// Add it to this session only (session ID, or its beginning)
        #[arg(long, value_name = "ID", add = shell_completion::complete_sessions())]
        session: Option<String>,
        /// Do not start it now
        #[arg(long)]
        no_start: bool,
        /// The program and its arguments
        #[arg(last = true)]
        command: Vec<String>,
    },
    /// Show the program or address of an extension, and where it keeps its files
    Show {
        /// Extension name
        #[arg(add = shell_completion::complete_extensions())]
        name: String,
        /// It was added to this session only
        #[arg(long, value_name = "ID", add = shell_completion::complete_sessions())]
        session: Option<String>,
    },
    /// Remove an extension from every session, or from one
    Remove {
        /// Extension name
        #[arg(add = shell_completion::complete_extensions())]
        name: String,
        /// Remove it from this session only
        #[arg(long, value_name = "ID", add = shell_completion::complete_sessions())]
        session: Option<String>,
    },
    /// Enable an extension in every session
    On {
        /// Extension name
        #[arg(add = shell_completion::complete_extensions())]
        name: String,
    },
    /// Disable an extension without removing it
    Off {
        /// Extension name
        #[arg(add = shell_completion::complete_extensions())]
        name: String,
    },
    /// Log in to a server that needs it, in a browser on this machine
    Login {
        /// Extension name
        #[arg(add = shell_completion::complete_extensions())]
        name: String,
        /// It was added to this session only
        #[arg(long, value_name = "ID", add = shell_completion::complete_sessions())]
        session: Option<String>,
    },
    /// Forget the login to a server
    Logout {
        /// Extension name
        #[arg(add = shell_completion::complete_extensions())]
        name: String,
        /// It was added to this session only
        #[arg(long, value_name = "ID", add = shell_completion::complete_sessions())]
        session: Option<String>,
    },
    /// List extensions and their status
    List {
        /// Those of this session, with the state of each server
        #[arg(long, value_name = "ID", add = shell_completion::complete_sessions())]
        session: Option<String>,
        /// One JSON object per line
        #[arg(long)]
        json: bool,
    },
}

impl ExtensionsCommand {
    fn session(&mut self) -> Option<&mut String> {
        match self {
            Self::Add { session, .. }
            | Self::Show { session, .. }
            | Self::Remove { session, .. }
            | Self::Login { session, .. }
            | Self::Logout { session, .. }
            | Self::List { session, .. } => session.as_mut(),
            Self::On { .. } | Self::Off { .. } => None,
        }
    }
}

pub(super) async fn run(context: Context, mut command: ExtensionsCommand) -> anyhow::Result<Exit> {
    let cwd = std::env::current_dir()?;
    let environment = Environment::of_process();
    // What is wrong with the command line is said before any server is started.
    extension_request(&command, &environment)?;
    let mut connection = client::connect_client(&context.config, &cwd).await?;
    if let Some(given) = command.session() {
        *given = resolve_session_id(&mut connection, given).await?;
    }
    let (method, params) = extension_request(&command, &environment)?;
    let answer = connection.call_method(method, &params).await?;
    match &command {
        ExtensionsCommand::Add { name, url, session, no_start: false, command, .. }
            if url.is_some() || !command.is_empty() =>
        {
            let trial = Trial { name, session: session.as_deref(), folder: &cwd };
            return try_added_extension(&context, &mut connection, &trial).await;
        }
        ExtensionsCommand::Show { .. } => return show_tried_extension(&context, &answer),
        ExtensionsCommand::Login { .. } => {
            let url = clean_output_text(answer["url"].as_str().unwrap_or_default());
            context.output.line(&format!("Open this in a browser on this machine:\n{url}"))?;
            connection.call_method("_gander/extensions/login/wait", &params).await?;
            context.output.line("Logged in.")?;
        }
        ExtensionsCommand::List { json, .. } => list_extensions(&context, &answer, *json)?,
        ExtensionsCommand::Add { name, .. } => context.output.note(&format!("Added {}.", clean_output_text(name))),
        ExtensionsCommand::Remove { name, .. } => context.output.note(&format!("Removed {}.", clean_output_text(name))),
        ExtensionsCommand::On { name } => {
            context.output.note(&format!("{} is on in every session.", clean_output_text(name)));
        }
        ExtensionsCommand::Off { name } => {
            context
                .output
                .note(&format!("{0} is off. To use it again: gander extensions on {0}", clean_output_text(name)));
        }
        ExtensionsCommand::Logout { name, .. } => {
            context.output.note(&format!("Logged out of {}.", clean_output_text(name)))
        }
    }
    Ok(Exit::Done)
}

fn list_extensions(context: &Context, answer: &Value, json: bool) -> anyhow::Result<()> {
    let extensions = answer["extensions"].as_array().cloned().unwrap_or_default();
    if json {
        return Ok(extensions.iter().try_for_each(|extension| context.output.line(&extension.to_string()))?);
    }
    let rows: Vec<Vec<String>> = extensions.iter().map(extension_row).collect();
    print_list_table(context.output, &["NAME", "STATE", "TOOLS", "RUNS"], &rows)?;
    Ok(())
}

fn extension_request(command: &ExtensionsCommand, environment: &Environment) -> anyhow::Result<(&'static str, Value)> {
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
                headers: extension_headers(headers, header_env, environment)?,
                env: extension_variables(env, environment)?,
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
fn extension_headers(
    given: &[String],
    from: &[String],
    environment: &Environment,
) -> anyhow::Result<BTreeMap<String, String>> {
    let given = given.iter().map(|text| {
        let (name, value) = extension_pair(text, ':')?;
        match is_secret_variable_name(&name) {
            true => Err(anyhow!("{IN_ARGUMENTS}: use --header-env {name}=VARIABLE instead of --header {name}")),
            false => Ok((name, value)),
        }
    });
    let from = from.iter().map(|text| {
        let (name, variable) = extension_pair(text, '=')?;
        Ok((name, extension_variable(&variable, environment)?))
    });
    given.chain(from).collect()
}

/// Variables as they are given, or as they are here.
fn extension_variables(given: &[String], environment: &Environment) -> anyhow::Result<BTreeMap<String, String>> {
    let variable = |text: &String| match text.contains('=') {
        true => {
            let (name, value) = extension_pair(text, '=')?;
            match is_secret_variable_name(&name) {
                true => Err(anyhow!("{IN_ARGUMENTS}: set {name} in this shell and use --env {name}")),
                false => Ok((name, value)),
            }
        }
        false => Ok((text.clone(), extension_variable(text, environment)?)),
    };
    given.iter().map(variable).collect()
}

fn extension_variable(name: &str, environment: &Environment) -> anyhow::Result<String> {
    environment.get(name).map(str::to_owned).ok_or_else(|| anyhow!("this environment variable is not set: {name}"))
}

fn extension_pair(text: &str, mark: char) -> anyhow::Result<(String, String)> {
    let (name, value) = text.split_once(mark).ok_or_else(|| anyhow!("not of the form NAME{mark}VALUE: {text}"))?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// True if what stands under this name is usually a secret.
fn is_secret_variable_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let words = ["key", "token", "secret", "password", "passwd", "authorization", "cookie", "credential"];
    words.iter().any(|word| name.contains(word))
}

fn extension_row(extension: &Value) -> Vec<String> {
    let text = |name: &str| extension[name].as_str().unwrap_or_default().to_owned();
    let tools = extension["tools"].as_array().map(|tools| tools.len().to_string()).unwrap_or_default();
    let (state, reason) = (text("state").replace('_', " "), text("reason"));
    let place =
        if text("description").is_empty() { text("place") } else { format!("built in: {}", text("description")) };
    let place = if reason.is_empty() { place } else { format!("{place} ({reason})") };
    vec![text("name"), state, tools, place]
}
