//! `gander extensions`: which MCP servers there are, and how they are.

use serde_json::{Value, json};

use super::options::ExtensionsCommand;
use super::{Context, Exit, client};
use crate::output::clean;

pub(super) async fn run(context: Context, command: ExtensionsCommand) -> anyhow::Result<Exit> {
    let ExtensionsCommand::List { session, json } = command;
    let cwd = std::env::current_dir()?;
    let mut connection = client::connect(&context.config, &cwd).await?;
    let answer = connection.call("_gander/extensions/list", &json!({ "sessionId": session })).await?;
    for extension in answer["extensions"].as_array().into_iter().flatten() {
        let line = if json { extension.to_string() } else { row(extension) };
        context.output.line(&line)?;
    }
    Ok(Exit::Done)
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
