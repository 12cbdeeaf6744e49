//! Does what the conformance kits of A2A ask for, by the beginning of a message's id or text.

use std::time::Duration;

use async_trait::async_trait;
use gander_domain::{
    Delta, DeltaKind, MessageId, Outcome, Part, ProviderPayload, Question, QuestionId, QuestionKind, QuestionOrigin,
    Report, StopReason,
};
use gander_runtime::backend::handler::{Handler, Stop, Turn};
use gander_store::clock::SystemIds;
use serde_json::{Value, json};

/// How long a task takes that is to be watched: longer than a kit waits for a stream to begin.
const LONG_TASK: Duration = Duration::from_secs(4);

/// The kit says more after an answer that begins so.
const HISTORY_PREFIX: &str = "TCK history message";

/// Nobody needs more pieces.
const MAX_PARTS: usize = 100_000;

/// Does what the conformance kits of A2A ask for.
pub(crate) struct TckAgent;

#[async_trait]
impl Handler for TckAgent {
    async fn handle(&self, turn: &mut Turn) -> Result<(), Stop> {
        let behaviour = requested_tck_behaviour(turn);
        match behaviour.as_str() {
            "artifact-text" => send_tck_artifact(turn, vec![Part::text("Generated text content")]).await,
            "artifact-file" | "stream-artifact-file" => send_tck_artifact(turn, vec![tck_file_part()]).await,
            "artifact-file-url" => send_tck_artifact(turn, vec![tck_link_part()]).await,
            "artifact-data" => send_tck_artifact(turn, vec![tck_data_part()]).await,
            "multi-artifact" => {
                send_tck_artifact(turn, vec![Part::text("first")]).await?;
                send_tck_artifact(turn, vec![Part::text("second")]).await
            }
            "message-response" => send_tck_message_as(turn, "message", "Direct message response").await,
            "input-required" => {
                let mut heard = ask_tck_form(turn, "What else?", tck_text_form()).await?;
                while heard.starts_with(HISTORY_PREFIX) {
                    heard = ask_tck_form(turn, "What else?", tck_text_form()).await?;
                }
                send_tck_message_as(turn, "status", &format!("Heard: {heard}")).await
            }
            "multi-turn" => {
                while ask_tck_form(turn, "What else?", tck_text_form()).await? != "done" {}
                send_tck_message_as(turn, "status", "Done").await
            }
            "auth-required" => {
                let question =
                    tck_question("Log in first", QuestionKind::Visit { url: "https://example.com/login".to_owned() });
                turn.ask_question(question).await?;
                send_tck_message_as(turn, "status", "Thank you").await
            }
            "reject-task" => {
                turn.send_report(Report::Ended(Outcome::Completed { stop: StopReason::Refusal })).await?;
                Err(Stop::Gone)
            }
            "fail-task" | "failed-task" | "task-failure" => {
                Err(Stop::Failed("tck".to_owned(), "failed as asked".to_owned()))
            }
            "long-running" => {
                turn.pause_for(LONG_TASK).await;
                send_tck_artifact(turn, vec![Part::text("It took long")]).await
            }
            "cancel" | "resubscribe" => {
                turn.pause_for(LONG_TASK).await;
                send_tck_message_as(turn, "status", "Hello from TCK").await
            }
            "stream-002" => Ok(()),
            "parts" => stream_tck_parts(turn).await,
            "stream-chunked" | "stream-artifact-chunked" => stream_tck_chunks(turn, &["chunk-1 ", "chunk-2"]).await,
            other if other.starts_with("stream") => stream_tck_chunks(turn, &["Stream hello ", "from TCK"]).await,
            _ => send_tck_message_as(turn, "status", "Hello from TCK").await,
        }
    }
}

/// What is asked for: the longest known word that the message's id or text begins with.
fn requested_tck_behaviour(turn: &Turn) -> String {
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
    let meta = turn.view.run.as_ref().and_then(|run| run.meta.as_ref());
    let id = meta.and_then(|meta| meta.get("a2a")?.get("messageId")?.as_str()).unwrap_or_default().to_owned();
    let text = tck_prompt_text(turn);
    let found = [id.as_str(), text].into_iter().find_map(|said| {
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

/// A form that asks for one text.
fn tck_text_form() -> Value {
    json!({ "type": "object", "properties": { "text": { "type": "string" } } })
}

/// A whole message: an artifact.
async fn send_tck_artifact(turn: &Turn, parts: Vec<Part>) -> Result<(), Stop> {
    turn.send_message(parts).await
}

/// A whole message that is shown as something else than an artifact.
async fn send_tck_message_as(turn: &Turn, face: &str, text: &str) -> Result<(), Stop> {
    turn.send_report(Report::MessageStarted { message: MessageId::make(&mut SystemIds) }).await?;
    let native = Some(ProviderPayload { wire: "a2a".to_owned(), items: json!({ "as": face }) });
    turn.send_report(Report::MessageDone { tail: vec![Part::text(text)], native, interrupted: false }).await
}

async fn stream_tck_chunks(turn: &Turn, pieces: &[&str]) -> Result<(), Stop> {
    turn.send_report(Report::MessageStarted { message: MessageId::make(&mut SystemIds) }).await?;
    for piece in pieces {
        turn.send_report(Report::Deltas(vec![Delta { growth: DeltaKind::Text, text: (*piece).to_owned() }])).await?;
    }
    turn.finish_message(Vec::new()).await
}

/// `parts 2000`: so many pieces of one message, as fast as they are taken.
async fn stream_tck_parts(turn: &Turn) -> Result<(), Stop> {
    let text = tck_prompt_text(turn);
    let count: usize = text.trim_start_matches("parts ").trim().parse().unwrap_or(1);
    let pieces: Vec<Delta> = (0..count.min(MAX_PARTS))
        .map(|index| Delta { growth: DeltaKind::Text, text: format!("tok{index} ") })
        .collect();
    turn.send_report(Report::MessageStarted { message: MessageId::make(&mut SystemIds) }).await?;
    for batch in pieces.chunks(128) {
        turn.send_report(Report::Deltas(batch.to_vec())).await?;
    }
    turn.finish_message(Vec::new()).await
}

fn tck_prompt_text(turn: &Turn) -> &str {
    let texts =
        turn.prompt_parts().iter().find_map(|part| if let Part::Text { text } = part { Some(text) } else { None });
    texts.map_or("", String::as_str)
}

async fn ask_tck_form(turn: &mut Turn, title: &str, schema: Value) -> Result<String, Stop> {
    let reply = turn.ask_question(tck_question(title, QuestionKind::Form { schema })).await?;
    Ok(match reply {
        gander_domain::Reply::Filled { content } => content["text"].as_str().unwrap_or_default().to_owned(),
        gander_domain::Reply::Chosen { .. }
        | gander_domain::Reply::Rejected { .. }
        | gander_domain::Reply::Declined
        | gander_domain::Reply::Cancelled
        | gander_domain::Reply::Interrupted
        | gander_domain::Reply::Superseded => String::new(),
    })
}

fn tck_question(title: &str, ask: QuestionKind) -> Question {
    let id = QuestionId::make(&mut SystemIds);
    Question {
        id,
        call: None,
        title: title.to_owned(),
        ask,
        origin: QuestionOrigin::Parked,
        fingerprint: None,
        plan: None,
        subagent: None,
        preview: Vec::new(),
        outward: None,
    }
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
