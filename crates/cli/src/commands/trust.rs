//! `gander trust`: the folders whose own settings count.

use serde_json::json;

use super::client;
use super::flags::TrustOptions;
use crate::commands::{Context, Exit};
use crate::output::clean_output_text;

pub(super) async fn run(context: Context, options: TrustOptions) -> anyhow::Result<Exit> {
    let cwd = std::env::current_dir()?;
    let folder = cwd.join(options.folder.unwrap_or_default());
    let mut connection = client::connect_client(&context.config, &cwd).await?;
    if options.list {
        let answer = connection.call_method("_gander/trust/list", &json!({})).await?;
        for trusted in answer["folders"].as_array().into_iter().flatten() {
            context.output.line(&clean_output_text(trusted["folder"].as_str().unwrap_or_default()))?;
        }
        return Ok(Exit::Done);
    }
    let method = if options.revoke { "_gander/trust/revoke" } else { "_gander/trust/add" };
    let answer = connection.call_method(method, &json!({ "folder": folder })).await?;
    if let Some(folder) = answer["folder"].as_str() {
        context.output.line(&format!("trusted: {}", clean_output_text(folder)))?;
    }
    Ok(Exit::Done)
}
