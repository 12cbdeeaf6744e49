//! The agents that acp-sdk's own tests ask for, one handler each.

use std::time::Duration;

use async_trait::async_trait;
use gander_domain::message::plain_text;
use gander_domain::{
    Part, Question, QuestionId, QuestionKind, QuestionOrigin, Reply, Report, ToolCall, ToolCallId, ToolEnd, ToolGate,
    ToolKind, ToolResult,
};
use gander_runtime::backend::handler::{Handler, Stop, Turn};
use gander_store::clock::SystemIds;
use serde_json::{Value, json};

/// A picture of one dot.
const DOT: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

pub(crate) struct Echo;
pub(crate) struct SlowEcho;
pub(crate) struct HistoryEcho;
pub(crate) struct History;
pub(crate) struct Awaiter;
pub(crate) struct Approve;
pub(crate) struct Failer;
pub(crate) struct Crash;
pub(crate) struct Sessioner;
pub(crate) struct MimeTypes;
pub(crate) struct Picture;
pub(crate) struct Artifacts;
pub(crate) struct Words;
pub(crate) struct Slow;
pub(crate) struct Rich;

#[async_trait]
impl Handler for Echo {
    async fn handle(&self, turn: &mut Turn) -> Result<(), Stop> {
        turn.send_message(turn.prompt_parts().to_vec()).await
    }
}

#[async_trait]
impl Handler for SlowEcho {
    async fn handle(&self, turn: &mut Turn) -> Result<(), Stop> {
        turn.pause_for(Duration::from_secs(1)).await;
        turn.send_message(turn.prompt_parts().to_vec()).await
    }
}

#[async_trait]
impl Handler for HistoryEcho {
    async fn handle(&self, turn: &mut Turn) -> Result<(), Stop> {
        for message in turn.earlier_messages() {
            turn.send_message(message.parts.clone()).await?;
        }
        turn.send_message(turn.prompt_parts().to_vec()).await
    }
}

#[async_trait]
impl Handler for History {
    async fn handle(&self, turn: &mut Turn) -> Result<(), Stop> {
        turn.send_message(vec![Part::text(format!("history={}", turn.earlier_messages().len()))]).await
    }
}

#[async_trait]
impl Handler for Awaiter {
    async fn handle(&self, turn: &mut Turn) -> Result<(), Stop> {
        turn.ask_question(acp_rest_free_form_question("")).await?;
        turn.send_message(vec![Part::text("empty")]).await
    }
}

#[async_trait]
impl Handler for Approve {
    async fn handle(&self, turn: &mut Turn) -> Result<(), Stop> {
        let said = match turn.ask_question(acp_rest_free_form_question("May I?")).await? {
            Reply::Filled { content } => content["text"].as_str().map_or_else(|| content.to_string(), str::to_owned),
            Reply::Chosen { choice, .. } => choice,
            Reply::Rejected { .. } | Reply::Declined | Reply::Cancelled | Reply::Interrupted | Reply::Superseded => {
                "no".to_owned()
            }
        };
        turn.send_text(format!("you said: {said}")).await?;
        turn.finish_message(Vec::new()).await
    }
}

#[async_trait]
impl Handler for Failer {
    async fn handle(&self, _turn: &mut Turn) -> Result<(), Stop> {
        Err(Stop::Failed("invalid_input".to_owned(), "this is no question for me".to_owned()))
    }
}

#[async_trait]
impl Handler for Crash {
    async fn handle(&self, _turn: &mut Turn) -> Result<(), Stop> {
        Err(Stop::Gone)
    }
}

#[async_trait]
impl Handler for Sessioner {
    async fn handle(&self, turn: &mut Turn) -> Result<(), Stop> {
        turn.send_message(vec![Part::text(turn.view.session.to_string())]).await
    }
}

#[async_trait]
impl Handler for MimeTypes {
    async fn handle(&self, turn: &mut Turn) -> Result<(), Stop> {
        let parts = [
            ("text/html", "<h1>HTML Content</h1>"),
            ("application/json", r#"{"key": "value"}"#),
            ("application/javascript", "console.log('Hello');"),
            ("text/css", "body { color: red; }"),
        ];
        turn.send_message(parts.map(|(mime, text)| acp_rest_resource_part("", mime, text)).to_vec()).await
    }
}

#[async_trait]
impl Handler for Picture {
    async fn handle(&self, turn: &mut Turn) -> Result<(), Stop> {
        turn.send_message(vec![acp_rest_one_pixel_image(None), Part::text("This is plain text")]).await
    }
}

#[async_trait]
impl Handler for Artifacts {
    async fn handle(&self, turn: &mut Turn) -> Result<(), Stop> {
        turn.send_text("Processing with artifacts").await?;
        turn.finish_message(vec![
            acp_rest_resource_part("text-result.txt", "text/plain", "This is a text artifact result"),
            acp_rest_resource_part("data.json", "application/json", r#"{"results": [1, 2, 3], "status": "complete"}"#),
            acp_rest_one_pixel_image(Some("image.png")),
        ])
        .await
    }
}

#[async_trait]
impl Handler for Words {
    async fn handle(&self, turn: &mut Turn) -> Result<(), Stop> {
        let count: u32 = plain_text(turn.prompt_parts()).trim().parse().unwrap_or(3);
        for number in 0..count {
            turn.send_text(format!("word{number} ")).await?;
        }
        turn.finish_message(Vec::new()).await
    }
}

#[async_trait]
impl Handler for Slow {
    async fn handle(&self, turn: &mut Turn) -> Result<(), Stop> {
        for number in 0..3_000 {
            turn.send_text(format!("tick{number} ")).await?;
            turn.pause_for(Duration::from_millis(200)).await;
        }
        turn.finish_message(Vec::new()).await
    }
}

#[async_trait]
impl Handler for Rich {
    async fn handle(&self, turn: &mut Turn) -> Result<(), Stop> {
        turn.send_thought("thinking about it").await?;
        turn.finish_message(Vec::new()).await?;
        let call = ToolCall {
            id: ToolCallId::make(&mut SystemIds),
            name: "calc".to_owned(),
            title: "Calculate".to_owned(),
            kind: ToolKind::Other,
            arguments: json!({ "x": 1 }),
            locations: Vec::new(),
            idempotent: true,
        };
        let (id, result) =
            (call.id, ToolResult { raw: Some(json!({ "y": 2 })), ..ToolResult::text(ToolEnd::Completed, "2") });
        turn.send_report(Report::ToolWanted { call, gate: ToolGate::External }).await?;
        turn.send_report(Report::ToolDone { call: id, result }).await?;
        turn.send_text("Snow is white.").await?;
        let link = Part::Link {
            uri: "https://example.com/doc.pdf".to_owned(),
            name: String::new(),
            mime: Some("application/pdf".to_owned()),
            more: None,
        };
        turn.finish_message(vec![
            acp_rest_resource_part("result.json", "application/json", r#"{"a":1}"#),
            acp_rest_one_pixel_image(Some("dot.png")),
            link,
        ])
        .await
    }
}

/// A question that takes any message for an answer.
fn acp_rest_free_form_question(title: &str) -> Question {
    Question {
        id: QuestionId::make(&mut SystemIds),
        call: None,
        title: title.to_owned(),
        ask: QuestionKind::Form { schema: Value::Object(serde_json::Map::new()) },
        origin: QuestionOrigin::Parked,
        fingerprint: None,
        plan: None,
        subagent: None,
        preview: Vec::new(),
        outward: None,
    }
}

fn acp_rest_resource_part(name: &str, mime: &str, text: &str) -> Part {
    Part::Resource { uri: name.to_owned(), mime: Some(mime.to_owned()), text: Some(text.to_owned()), blob: None }
}

fn acp_rest_one_pixel_image(name: Option<&str>) -> Part {
    Part::Image { mime: "image/png".to_owned(), data: DOT.to_owned(), uri: name.map(str::to_owned) }
}
