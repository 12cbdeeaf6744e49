//! `gander extensions`: which MCP servers and tools of our own there are, and how they are.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::anyhow;
use clap::Subcommand;
use serde_json::{Value, json};

use super::{Context, Exit, client};
use crate::extensions::Entry;
use crate::output::clean;

#[derive(Debug, Subcommand)]
pub(super) enum ExtensionsCommand {
    /// Use an MCP server, or built-in tools by their name, in every session or in one
    #[command(after_help = "\
Examples:
  gander extensions add files -- npx -y @modelcontextprotocol/server-filesystem ~/docs
  gander extensions add tickets --url https://tickets.example/mcp --header \"Authorization: Bearer …\"
  gander extensions add search --network --env API_KEY=… -- search-mcp
  gander extensions add memory")]
    Add {
        /// A name, which its tools begin with
        name: String,
        /// Its address, if it is no program
        #[arg(long, value_name = "URL", conflicts_with = "command")]
        url: Option<String>,
        /// What every request carries, as \"Name: value\"
        #[arg(long = "header", value_name = "HEADER")]
        headers: Vec<String>,
        /// What its program finds in its environment, as NAME=value
        #[arg(long = "env", value_name = "NAME=VALUE")]
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
        /// The program and its arguments
        #[arg(last = true)]
        command: Vec<String>,
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
    let (method, params) = request(&command)?;
    let mut connection = client::connect(&context.config, &cwd).await?;
    let answer = connection.call(method, &params).await?;
    if let Some(url) = answer["url"].as_str() {
        context.output.line(&format!("Open this in a browser on this machine:\n{}", clean(url)))?;
        connection.call("_gander/extensions/login/wait", &params).await?;
        context.output.line("Logged in.")?;
    }
    let json = matches!(command, ExtensionsCommand::List { json: true, .. });
    for extension in answer["extensions"].as_array().into_iter().flatten() {
        let line = if json { extension.to_string() } else { row(extension) };
        context.output.line(&line)?;
    }
    Ok(Exit::Done)
}

fn request(command: &ExtensionsCommand) -> anyhow::Result<(&'static str, Value)> {
    Ok(match command {
        ExtensionsCommand::List { session, .. } => ("_gander/extensions/list", json!({ "sessionId": session })),
        ExtensionsCommand::Remove { name, session } => {
            ("_gander/extensions/remove", json!({ "sessionId": session, "name": name }))
        }
        ExtensionsCommand::On { name } => ("_gander/extensions/switch", json!({ "name": name, "on": true })),
        ExtensionsCommand::Off { name } => ("_gander/extensions/switch", json!({ "name": name, "on": false })),
        ExtensionsCommand::Login { name, session } => {
            ("_gander/extensions/login", json!({ "sessionId": session, "name": name }))
        }
        ExtensionsCommand::Logout { name, session } => {
            ("_gander/extensions/logout", json!({ "sessionId": session, "name": name }))
        }
        ExtensionsCommand::Add { name, url, headers, env, network, shared, no_sandbox, session, command } => {
            let entry = Entry {
                command: command.first().map(PathBuf::from),
                args: command.iter().skip(1).cloned().collect(),
                url: url.clone(),
                headers: pairs(headers, ':')?,
                env: pairs(env, '=')?,
                network: *network,
                shared: *shared,
                sandbox: no_sandbox.then_some(false),
                ..Entry::default()
            };
            ("_gander/extensions/add", json!({ "sessionId": session, "name": name, "entry": entry }))
        }
    })
}

/// Names and values, as they are given on the command line.
fn pairs(texts: &[String], mark: char) -> anyhow::Result<BTreeMap<String, String>> {
    let pair = |text: &String| {
        let (name, value) = text.split_once(mark)?;
        Some((name.trim().to_owned(), value.trim().to_owned()))
    };
    texts.iter().map(|text| pair(text).ok_or_else(|| anyhow!("there is no {mark} in it: {text}"))).collect()
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
