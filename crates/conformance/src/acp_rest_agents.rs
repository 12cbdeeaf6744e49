//! The agents that acp-sdk's own tests ask for, one prompt handler each.

use std::time::Duration;

use gander::{
    Form, HandlerError, PromptRequest, PromptResult, StopReason, ToolOutput, UpdateError, UpdateSink, plain_text,
};
use gander_domain::Part;
use serde_json::json;

/// A picture of one dot.
const DOT: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// Says what it was told.
pub(crate) async fn echo_prompt(request: PromptRequest, sink: UpdateSink) -> PromptResult {
    sink.message(request.parts()).await?;
    Ok(StopReason::EndTurn)
}

pub(crate) async fn echo_prompt_slowly(request: PromptRequest, sink: UpdateSink) -> PromptResult {
    pause_unless_cancelled(&request, Duration::from_secs(1)).await?;
    echo_prompt(request, sink).await
}

pub(crate) async fn echo_history(request: PromptRequest, sink: UpdateSink) -> PromptResult {
    for message in request.history() {
        sink.message(message.parts.clone()).await?;
    }
    echo_prompt(request, sink).await
}

pub(crate) async fn count_history(request: PromptRequest, sink: UpdateSink) -> PromptResult {
    sink.message([Part::text(format!("history={}", request.history().len()))]).await?;
    Ok(StopReason::EndTurn)
}

pub(crate) async fn await_any_message(_: PromptRequest, sink: UpdateSink) -> PromptResult {
    sink.ask(acp_rest_free_form("")).await?;
    sink.message([Part::text("empty")]).await?;
    Ok(StopReason::EndTurn)
}

pub(crate) async fn ask_for_approval(_: PromptRequest, sink: UpdateSink) -> PromptResult {
    let answer = sink.ask(acp_rest_free_form("May I?")).await?;
    let said = match (answer.text("text"), answer.fields()) {
        (Some(text), _) => text.to_owned(),
        (None, Some(fields)) => json!(fields).to_string(),
        (None, None) => "no".to_owned(),
    };
    sink.text(format!("you said: {said}")).await?;
    sink.end_message().await?;
    Ok(StopReason::EndTurn)
}

pub(crate) async fn fail_prompt(_: PromptRequest, _: UpdateSink) -> PromptResult {
    Err(HandlerError::invalid_input("this is no question for me"))
}

/// Ends without a word, as a handler does that panics.
pub(crate) async fn crash_in_prompt(_: PromptRequest, _: UpdateSink) -> PromptResult {
    // Unlike `panic!` it prints nothing: it is what this agent is for.
    std::panic::resume_unwind(Box::new("a crash that was asked for"))
}

pub(crate) async fn name_session(request: PromptRequest, sink: UpdateSink) -> PromptResult {
    sink.message([Part::text(request.session().id.to_string())]).await?;
    Ok(StopReason::EndTurn)
}

pub(crate) async fn say_in_mime_types(_: PromptRequest, sink: UpdateSink) -> PromptResult {
    let parts = [
        ("text/html", "<h1>HTML Content</h1>"),
        ("application/json", r#"{"key": "value"}"#),
        ("application/javascript", "console.log('Hello');"),
        ("text/css", "body { color: red; }"),
    ];
    sink.message(parts.map(|(mime, text)| acp_rest_resource_part("", mime, text))).await?;
    Ok(StopReason::EndTurn)
}

pub(crate) async fn show_picture(_: PromptRequest, sink: UpdateSink) -> PromptResult {
    sink.message([acp_rest_one_pixel_image(None), Part::text("This is plain text")]).await?;
    Ok(StopReason::EndTurn)
}

pub(crate) async fn produce_artifacts(_: PromptRequest, sink: UpdateSink) -> PromptResult {
    sink.text("Processing with artifacts").await?;
    sink.end_message_with(vec![
        acp_rest_resource_part("text-result.txt", "text/plain", "This is a text artifact result"),
        acp_rest_resource_part("data.json", "application/json", r#"{"results": [1, 2, 3], "status": "complete"}"#),
        acp_rest_one_pixel_image(Some("image.png")),
    ])
    .await?;
    Ok(StopReason::EndTurn)
}

pub(crate) async fn say_words(request: PromptRequest, sink: UpdateSink) -> PromptResult {
    let count: u32 = plain_text(request.parts()).trim().parse().unwrap_or(3);
    for number in 0..count {
        sink.text(format!("word{number} ")).await?;
    }
    sink.end_message().await?;
    Ok(StopReason::EndTurn)
}

pub(crate) async fn tick_for_minutes(request: PromptRequest, sink: UpdateSink) -> PromptResult {
    for number in 0..3_000 {
        sink.text(format!("tick{number} ")).await?;
        pause_unless_cancelled(&request, Duration::from_millis(200)).await?;
    }
    sink.end_message().await?;
    Ok(StopReason::EndTurn)
}

pub(crate) async fn do_everything(_: PromptRequest, sink: UpdateSink) -> PromptResult {
    sink.thought("thinking about it").await?;
    sink.end_message().await?;
    let call = sink.tool_call("calc").title("Calculate").input(json!({ "x": 1 })).idempotent().start().await?;
    call.done(ToolOutput { raw: Some(json!({ "y": 2 })), ..ToolOutput::from("2") }).await?;
    sink.text("Snow is white.").await?;
    let link = Part::Link {
        uri: "https://example.com/doc.pdf".to_owned(),
        name: String::new(),
        mime: Some("application/pdf".to_owned()),
        more: None,
    };
    sink.end_message_with(vec![
        acp_rest_resource_part("result.json", "application/json", r#"{"a":1}"#),
        acp_rest_one_pixel_image(Some("dot.png")),
        link,
    ])
    .await?;
    Ok(StopReason::EndTurn)
}

/// Waits. A cancelled run does not wait on.
pub(crate) async fn pause_unless_cancelled(request: &PromptRequest, time: Duration) -> Result<(), UpdateError> {
    tokio::select! {
        biased;
        () = request.cancel_token().cancelled() => Err(UpdateError::Cancelled),
        () = tokio::time::sleep(time) => Ok(()),
    }
}

/// A question that takes any message for an answer.
fn acp_rest_free_form(title: &str) -> Form {
    Form::from_schema(title, json!({}))
}

fn acp_rest_resource_part(name: &str, mime: &str, text: &str) -> Part {
    Part::Resource { uri: name.to_owned(), mime: Some(mime.to_owned()), text: Some(text.to_owned()), blob: None }
}

pub(crate) fn acp_rest_one_pixel_image(name: Option<&str>) -> Part {
    Part::Image { mime: "image/png".to_owned(), data: DOT.to_owned(), uri: name.map(str::to_owned) }
}
