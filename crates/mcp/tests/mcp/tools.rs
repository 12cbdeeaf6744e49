//! Tools of a server: offered, described, called, cancelled.

use std::time::Duration;

use gander_domain::{Part, ToolCall, ToolCallId, ToolContent, ToolEnd, ToolKind, ToolResult};
use gander_tools::ToolEvent;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::test_server::{TestServer, spec, text};

#[tokio::test]
async fn they_are_offered_under_the_servers_name() {
    let server = TestServer::with(vec![spec("my script", "good"), spec("my script", "good")]).await;
    let tools = server.tools();
    assert_eq!((tools.len(), tools[0].as_str(), tools[20].as_str()), (42, "my_script__echo", "my_script_2__echo"));
    let echo = &server.servers.listed_tools()[0].spec;
    assert_eq!(echo.description, "Says it again\n(A tool of the MCP server my_script.)");
    assert_eq!(*echo.schema, json!({"type": "object", "properties": {}}));
    let told = server.servers.server_instructions();
    assert_eq!(told[0], ("my_script".to_owned(), "Call echo first.".to_owned()));
}

#[tokio::test]
async fn a_call_shows_what_will_run_and_no_hint_of_a_server_opens_a_door() {
    let server = TestServer::good().await;
    let arguments = json!({"text": "a\u{202e}b"});
    let expected = ToolCall {
        id: ToolCallId::new(Uuid::from_u128(1)),
        name: "script__echo".into(),
        title: r#"script: echo {"text":"a⟨U+202E⟩b"}"#.into(),
        kind: ToolKind::Other,
        arguments: arguments.clone(),
        locations: vec![],
        idempotent: false,
    };
    assert_eq!(server.described("script__echo", arguments), expected);
    let id = ToolCallId::new(Uuid::from_u128(1));
    assert!(server.servers.describe_call(id, "echo", &json!({})).is_none());
    assert!(server.servers.describe_call(id, "script__echo", &json!("text")).unwrap().is_err());
}

#[tokio::test]
async fn results_come_whole() {
    let server = TestServer::good().await;
    assert_eq!(server.call("script__echo", json!({"text": "hi"})).await.0, ToolResult::text(ToolEnd::Completed, "hi"));
    let part = Part::Image { mime: "image/png".into(), data: "AAAA".into(), uri: None };
    let picture = ToolResult {
        end: ToolEnd::Completed,
        content: vec![ToolContent::Part { part }],
        raw: Some(json!({"width": 1})),
    };
    assert_eq!(server.call("script__picture", json!({})).await.0, picture);
    assert_eq!(server.text("script__secret", json!({})).await, "[redacted]");
}

#[tokio::test]
async fn progress_is_shown_while_it_runs() {
    let server = TestServer::good().await;
    let (result, shown) = server.call("script__slow", json!({})).await;
    let step = |step: u32| {
        let part = Part::text(format!("working ({step} of 3)"));
        ToolEvent::Shown(vec![ToolContent::Part { part }])
    };
    assert_eq!((text(&result).as_str(), shown), ("done", vec![step(1), step(2), step(3)]));
}

#[tokio::test]
async fn a_cancelled_call_is_cancelled_at_the_server_too() {
    let server = TestServer::good().await;
    let call = server.described("script__hang", json!({}));
    let (signals, mut heard) = mpsc::channel(8);
    let cancel = CancellationToken::new();
    let stop = async {
        heard.recv().await.expect("it shows that it hangs");
        cancel.cancel();
    };
    let (result, ()) = tokio::join!(server.servers.call_tool(&call, signals, cancel.clone()), stop);
    assert_eq!(result.unwrap(), ToolResult::text(ToolEnd::Cancelled, "cancelled"));
    assert_eq!(server.text("script__cancelled", json!({})).await, "1");
}

#[tokio::test]
async fn a_silent_call_is_given_up() {
    let patient = spec("script", "good");
    let hasty = gander_mcp::Spec { patience: Duration::from_millis(200), ..patient };
    let server = TestServer::with(vec![hasty]).await;
    let (result, _) = server.call("script__hang", json!({})).await;
    assert_eq!(result, ToolResult::text(ToolEnd::Failed, "no answer in 0 s: it may still have taken effect"));
    assert_eq!(server.text("script__cancelled", json!({})).await, "1");
}
