//! `gander grants`: what was allowed with "always".

use serde_json::{Value, json};

use super::client;
use super::options::GrantsCommand;
use crate::commands::{Context, Exit};
use crate::output::clean;

pub(super) async fn run(context: Context, command: GrantsCommand) -> anyhow::Result<Exit> {
    let cwd = std::env::current_dir()?;
    let mut connection = client::connect(&context.config, &cwd).await?;
    match command {
        GrantsCommand::List { json } => {
            let answer = connection.call_method("_gander/grants/list", &json!({})).await?;
            for grant in answer["grants"].as_array().into_iter().flatten() {
                let line = if json { grant.to_string() } else { row(grant) };
                context.output.line(&line)?;
            }
        }
        GrantsCommand::Revoke { id } => {
            connection.call_method("_gander/grants/revoke", &json!({ "id": id })).await?;
        }
    }
    Ok(Exit::Done)
}

/// Its id first, then every other field that is there.
fn row(grant: &Value) -> String {
    let text = |value: &Value| clean(&value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    let rest = grant.as_object().into_iter().flatten().filter(|(name, _)| *name != "id").map(|(_, value)| text(value));
    std::iter::once(text(&grant["id"])).chain(rest).collect::<Vec<_>>().join("\t")
}
