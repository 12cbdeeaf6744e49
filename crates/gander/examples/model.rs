//! An agent whose answers come from a language model, through the `genai` crate.
//!
//! `OPENAI_API_KEY=… cargo run -p gander --features model-example --example model -- serve`

use futures::StreamExt as _;
use gander::{Agent, AgentInfo, PromptRequest, PromptResult, Role, StopReason, UpdateSink, Usage, plain_text};
use genai::Client;
use genai::chat::{ChatMessage, ChatOptions, ChatRequest, ChatStreamEvent};

/// The model of `main`: `genai` finds its provider by its name, and the key in that provider's variable.
const MODEL: &str = "gpt-4o-mini";

pub fn agent(client: Client, model: &'static str) -> Agent {
    let info = AgentInfo::new("model", "1.0.0").title("Model").description("Answers with a language model");
    Agent::new(info).on_prompt(move |request, sink| answer(client.clone(), model, request, sink))
}

async fn answer(client: Client, model: &'static str, request: PromptRequest, sink: UpdateSink) -> PromptResult {
    let options = ChatOptions::default().with_capture_usage(true);
    let response = client.exec_chat_stream(model, conversation(&request), Some(&options)).await?;
    let mut stream = response.stream;
    while let Some(event) = stream.next().await {
        match event? {
            ChatStreamEvent::Chunk(chunk) => sink.text(chunk.content).await?,
            ChatStreamEvent::ReasoningChunk(chunk) => sink.thought(chunk.content).await?,
            ChatStreamEvent::End(end) => {
                let used = end.captured_usage.unwrap_or_default();
                let count = |tokens: Option<i32>| tokens.and_then(|tokens| u64::try_from(tokens).ok()).unwrap_or(0);
                let (input, output) = (count(used.prompt_tokens), count(used.completion_tokens));
                sink.usage(Usage { model: model.to_owned(), input, output, ..Usage::default() }).await?;
            }
            _ => {}
        }
    }
    Ok(StopReason::EndTurn)
}

/// What was said before, and the prompt. A sink that fails, as after a cancel, ends the stream: it is dropped.
fn conversation(request: &PromptRequest) -> ChatRequest {
    let earlier = request.history().iter().map(|message| match message.role {
        Role::User => ChatMessage::user(plain_text(&message.parts)),
        Role::Agent | Role::Tool => ChatMessage::assistant(plain_text(&message.parts)),
    });
    ChatRequest::from_system("Answer in one paragraph.")
        .append_messages(earlier)
        .append_message(ChatMessage::user(request.text()))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // `genai` brings TLS without its cryptography: the program chooses that once, before the first client.
    rustls::crypto::ring::default_provider().install_default().ok();
    agent(Client::new()?, MODEL).serve().await?;
    Ok(())
}
