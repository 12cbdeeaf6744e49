//! `gander grants`: what was allowed with "always".

use clap::Subcommand;
use serde_json::{Value, json};

use super::{client, shell_completion};
use crate::commands::{Context, Exit};
use crate::terminal::list_table::{print_list_table, table_local_time};

#[derive(Debug, Subcommand)]
pub(super) enum GrantsCommand {
    /// List what was allowed with "always", per folder
    List {
        /// One JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Revoke one; it is asked about again from now on
    Revoke {
        /// Its ID, from the list
        #[arg(add = shell_completion::complete_grants())]
        id: u64,
    },
}

pub(super) async fn run(context: Context, command: GrantsCommand) -> anyhow::Result<Exit> {
    let cwd = std::env::current_dir()?;
    let mut connection = client::connect_client(&context.config, &cwd).await?;
    match command {
        GrantsCommand::List { json } => {
            let answer = connection.call_method("_gander/grants/list", &json!({})).await?;
            let grants = answer["grants"].as_array().cloned().unwrap_or_default();
            if json {
                grants.iter().try_for_each(|grant| context.output.line(&grant.to_string()))?;
            } else if grants.is_empty() {
                context.output.note("Nothing is always allowed or always refused.");
            } else {
                let rows: Vec<Vec<String>> = grants.iter().map(grant_row).collect();
                print_list_table(context.output, &["ID", "SINCE", "ANSWER", "IN FOLDER", "WHAT"], &rows)?;
                context.output.note("\nTo revoke one: gander grants revoke ID");
            }
        }
        GrantsCommand::Revoke { id } => {
            connection.call_method("_gander/grants/revoke", &json!({ "id": id })).await?;
        }
    }
    Ok(Exit::Done)
}

/// What was said, where it counts, and what it covers in full.
fn grant_row(grant: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let answer = if grant["grant"]["stand"] == "deny" { "never" } else { "always" };
    let since = table_local_time(grant["at"].as_i64().unwrap_or_default());
    vec![grant["id"].to_string(), since, answer.to_owned(), text(&grant["grant"]["workspace"]), text(&grant["text"])]
}
