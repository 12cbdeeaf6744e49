//! A durable agent: it builds, asks, and releases. Killed while it waits for the answer, it goes on when somebody answers.
//!
//! Any prompt is the name of the release.

use std::path::PathBuf;

use gander::{Agent, AgentInfo, Permission, PromptRequest, PromptResult, ServeError, StopReason, ToolKind, UpdateSink};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;

pub fn agent() -> Agent {
    let info = AgentInfo::new("release", "1.0.0").title("Release").description("Builds, asks, and releases");
    Agent::new(info).on_durable_prompt(answer)
}

/// Called again from its beginning after an answer and after a restart: what had ended is not done again.
async fn answer(request: PromptRequest, sink: UpdateSink) -> PromptResult {
    let (name, journal) = (request.text(), PathBuf::from(&request.session().workspace).join("releases.txt"));
    sink.text("Building. ").await?;
    let build = sink.tool_call("build").kind(ToolKind::Execute).input(json!({ "name": name }));
    build.run(note(&journal, format!("built {name}"))).await??;
    let release = sink.tool_call("release").title(format!("Release {name}")).input(json!({ "name": name }));
    match release.request_permission().await? {
        Permission::Allowed(call) => call.run(note(&journal, format!("released {name}"))).await??,
        Permission::Rejected { .. } => return Ok(StopReason::Refusal),
    };
    sink.text(format!("{name} is released.")).await?;
    Ok(StopReason::EndTurn)
}

async fn note(journal: &PathBuf, line: String) -> std::io::Result<String> {
    let mut file = tokio::fs::File::options().create(true).append(true).open(journal).await?;
    file.write_all(format!("{line}\n").as_bytes()).await?;
    file.flush().await?;
    Ok(line)
}

#[tokio::main]
async fn main() -> Result<(), ServeError> {
    agent().serve().await
}
