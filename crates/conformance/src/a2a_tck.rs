//! Does what the conformance kits of A2A ask for, by the beginning of a message's id or text.

use std::time::Duration;

use gander::{Form, HandlerError, PromptRequest, PromptResult, StopReason, UpdateError, UpdateSink};
use gander_domain::Part;
use serde_json::json;

use crate::acp_rest_agents::pause_unless_cancelled;

/// How long a task takes that is to be watched: longer than a kit waits for a stream to begin.
const LONG_TASK: Duration = Duration::from_secs(4);

/// The kit says more after an answer that begins so.
const HISTORY_PREFIX: &str = "TCK history message";

/// Nobody needs more pieces.
const MAX_PARTS: usize = 100_000;

/// Does what the conformance kits of A2A ask for.
pub(crate) async fn answer_tck(request: PromptRequest, sink: UpdateSink) -> PromptResult {
    match requested_tck_behaviour(&request).as_str() {
        "artifact-text" => sink.message([Part::text("Generated text content")]).await?,
        "artifact-file" | "stream-artifact-file" => sink.message([tck_file_part()]).await?,
        "artifact-file-url" => sink.message([tck_link_part()]).await?,
        "artifact-data" => sink.message([tck_data_part()]).await?,
        "multi-artifact" => {
            sink.message([Part::text("first")]).await?;
            sink.message([Part::text("second")]).await?;
        }
        "message-response" => send_tck_message_as(&sink, "message", "Direct message response").await?,
        "input-required" => {
            let mut heard = ask_tck_form(&sink).await?;
            while heard.starts_with(HISTORY_PREFIX) {
                heard = ask_tck_form(&sink).await?;
            }
            send_tck_message_as(&sink, "status", &format!("Heard: {heard}")).await?;
        }
        "multi-turn" => {
            while ask_tck_form(&sink).await? != "done" {}
            send_tck_message_as(&sink, "status", "Done").await?;
        }
        "auth-required" => {
            sink.ask_to_visit("Log in first", "https://example.com/login").await?;
            send_tck_message_as(&sink, "status", "Thank you").await?;
        }
        "reject-task" => return Ok(StopReason::Refusal),
        "fail-task" | "failed-task" | "task-failure" => return Err(HandlerError::new("tck", "failed as asked")),
        "long-running" => {
            pause_unless_cancelled(&request, LONG_TASK).await?;
            sink.message([Part::text("It took long")]).await?;
        }
        "cancel" | "resubscribe" => {
            pause_unless_cancelled(&request, LONG_TASK).await?;
            send_tck_message_as(&sink, "status", "Hello from TCK").await?;
        }
        "stream-002" => {}
        "parts" => stream_tck_parts(&request, &sink).await?,
        "stream-chunked" | "stream-artifact-chunked" => stream_tck_chunks(&sink, &["chunk-1 ", "chunk-2"]).await?,
        other if other.starts_with("stream") => stream_tck_chunks(&sink, &["Stream hello ", "from TCK"]).await?,
        _ => send_tck_message_as(&sink, "status", "Hello from TCK").await?,
    }
    Ok(StopReason::EndTurn)
}

/// What is asked for: the longest known word that the message's id or text begins with.
fn requested_tck_behaviour(request: &PromptRequest) -> String {
    const BEHAVIOURS: [&str; 25] = [
        "artifact-file-url",
        "artifact-text",
        "artifact-file",
        "artifact-data",
        "multi-artifact",
        "message-response",
        "input-required",
        "multi-turn",
        "auth-required",
        "reject-task",
        "fail-task",
        "failed-task",
        "task-failure",
        "cancel",
        "long-running",
        "stream-002",
        "stream-artifact-chunked",
        "stream-artifact-file",
        "stream-artifact-text",
        "stream-chunked",
        "stream-ordering-001",
        "stream-001",
        "stream-003",
        "stream-basic",
        "complete-task",
    ];
    let id = request.metadata().and_then(|meta| meta.get("a2a")?.get("messageId")?.as_str()).unwrap_or_default();
    let text = tck_prompt_text(request);
    let found = [id, text].into_iter().find_map(|said| {
        if said.starts_with("test-resubscribe-message-id") {
            return Some("resubscribe");
        }
        if said.starts_with("parts ") {
            return Some("parts");
        }
        let rest = said.strip_prefix("tck-")?;
        BEHAVIOURS.into_iter().find(|known| rest.starts_with(known))
    });
    found.unwrap_or("complete-task").to_owned()
}

/// A whole message that is shown as something else than an artifact.
async fn send_tck_message_as(sink: &UpdateSink, face: &str, text: &str) -> Result<(), UpdateError> {
    sink.message_for_protocol(vec![Part::text(text)], "a2a", json!({ "as": face })).await
}

async fn stream_tck_chunks(sink: &UpdateSink, pieces: &[&str]) -> Result<(), UpdateError> {
    for piece in pieces {
        sink.text(*piece).await?;
    }
    sink.end_message().await
}

/// `parts 2000`: so many pieces of one message, as fast as they are taken.
async fn stream_tck_parts(request: &PromptRequest, sink: &UpdateSink) -> Result<(), UpdateError> {
    let text = tck_prompt_text(request);
    let count: usize = text.trim_start_matches("parts ").trim().parse().unwrap_or(1);
    for first in (0..count.min(MAX_PARTS)).step_by(128) {
        let last = count.min(MAX_PARTS).min(first + 128);
        sink.texts((first..last).map(|index| format!("tok{index} "))).await?;
    }
    sink.end_message().await
}

fn tck_prompt_text(request: &PromptRequest) -> &str {
    let texts = request.parts().iter().find_map(|part| if let Part::Text { text } = part { Some(text) } else { None });
    texts.map_or("", String::as_str)
}

async fn ask_tck_form(sink: &UpdateSink) -> Result<String, UpdateError> {
    let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
    let answer = sink.ask(Form::from_schema("What else?", schema)).await?;
    Ok(answer.text("text").unwrap_or_default().to_owned())
}

fn tck_file_part() -> Part {
    let text = Some("Generated file content".to_owned());
    Part::Resource { uri: "output.txt".to_owned(), mime: Some("text/plain".to_owned()), text, blob: None }
}

fn tck_link_part() -> Part {
    let (uri, name) = ("https://example.com/output.txt".to_owned(), "output.txt".to_owned());
    Part::Link { uri, name, mime: Some("text/plain".to_owned()), more: None }
}

fn tck_data_part() -> Part {
    let text = Some(json!({ "key": "value", "count": 42 }).to_string());
    Part::Resource { uri: "a2a:data".to_owned(), mime: Some("application/json".to_owned()), text, blob: None }
}
