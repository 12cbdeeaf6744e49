//! The smallest agent: it says what it hears. `cargo run --example echo -- serve`, or `-- acp` as an editor starts it.

use gander::{Agent, AgentInfo, PromptRequest, PromptResult, ServeError, StopReason, UpdateSink};

async fn answer(request: PromptRequest, sink: UpdateSink) -> PromptResult {
    sink.text(format!("You said: {}", request.text())).await?;
    Ok(StopReason::EndTurn)
}

pub fn agent() -> Agent {
    let info = AgentInfo::new("echo", "1.0.0").title("Echo").description("Says what it hears");
    Agent::new(info).on_prompt(answer)
}

#[tokio::main]
async fn main() -> Result<(), ServeError> {
    agent().serve().await
}
