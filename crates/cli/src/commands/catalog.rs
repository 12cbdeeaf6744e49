//! `gander models`, `gander modes` and `gander agents`: what a session can be set to.

use serde_json::{Value, json};

use super::client;
use crate::commands::{Context, Exit};
use crate::terminal::list_table::print_list_table;

pub(super) async fn run_models(context: Context, json: bool) -> anyhow::Result<Exit> {
    let catalog = fetch_catalog(&context).await?;
    if json {
        return print_catalog_json(&context, &catalog["models"]);
    }
    let row =
        |model: &Value| vec![if model["default"] == true { "*" } else { "" }.to_owned(), catalog_text(&model["id"])];
    print_list_table(context.output, &["", "MODEL"], &catalog_rows(&catalog["models"], row))?;
    let reason = catalog["defaultModelReason"].as_str().unwrap_or_default();
    context.output.note(&format!("\n* used by default: {reason}"));
    context.output.note("Others: gander run --model provider/model. To add a provider: gander setup");
    Ok(Exit::Done)
}

pub(super) async fn run_modes(context: Context, json: bool) -> anyhow::Result<Exit> {
    let catalog = fetch_catalog(&context).await?;
    if json {
        return print_catalog_json(&context, &catalog["modes"]);
    }
    let row =
        |mode: &Value| ["name", "agent", "category", "description"].map(|field| catalog_text(&mode[field])).to_vec();
    print_list_table(
        context.output,
        &["MODE", "AGENT", "CATEGORY", "DESCRIPTION"],
        &catalog_rows(&catalog["modes"], row),
    )?;
    context.output.note("\nUse one: gander run --mode NAME \"…\"");
    Ok(Exit::Done)
}

pub(super) async fn list_catalog_agents(context: Context, json: bool) -> anyhow::Result<Exit> {
    let catalog = fetch_catalog(&context).await?;
    if json {
        return print_catalog_json(&context, &catalog["agents"]);
    }
    let row = |agent: &Value| {
        vec![catalog_text(&agent["name"]), agent["modes"].to_string(), catalog_text(&agent["description"])]
    };
    print_list_table(context.output, &["AGENT", "MODES", "DESCRIPTION"], &catalog_rows(&catalog["agents"], row))?;
    for agent in catalog["agents"].as_array().into_iter().flatten().filter(|agent| agent["problem"].is_object()) {
        let (name, reason) = (catalog_text(&agent["name"]), catalog_text(&agent["problem"]["reason"]));
        context.output.note(&format!("\n{name} cannot run here: {reason}"));
        if let Some(fix) = agent["problem"]["fix"].as_str() {
            context.output.note(&format!("Install it: {fix}"));
        }
    }
    context.output.note("\nUse one: gander run --agent NAME \"…\"");
    Ok(Exit::Done)
}

/// What sessions of this folder can be set to.
pub(super) async fn fetch_catalog(context: &Context) -> anyhow::Result<Value> {
    let here = std::env::current_dir()?;
    let mut connection = client::connect_client(&context.config, &here).await?;
    Ok(connection.call_method("_gander/catalog", &json!({ "cwd": here })).await?)
}

fn catalog_rows(list: &Value, row: impl Fn(&Value) -> Vec<String>) -> Vec<Vec<String>> {
    list.as_array().into_iter().flatten().map(row).collect()
}

fn catalog_text(value: &Value) -> String {
    value.as_str().unwrap_or_default().replace('\n', " ")
}

fn print_catalog_json(context: &Context, list: &Value) -> anyhow::Result<Exit> {
    for item in list.as_array().into_iter().flatten() {
        context.output.line(&item.to_string())?;
    }
    Ok(Exit::Done)
}
