//! `?dialect=goosed`: runs and events as the unified server branch of goose spelt them.

use gander_testkit::conformance::ConformanceRecorder;
use serde_json::{Value, json};

use crate::acp_rest::test_server::{TestServer, new};

/// Thinks, uses a tool, says something.
const SCRIPT: &str = r#"[[script:[[{"thought":"hm"},{"tool":"list","args":{"path":"."}}],[{"text":"done"}]]]]"#;

#[tokio::test]
async fn runs_and_events_are_spelt_as_the_branch_spelt_them() {
    let server = TestServer::open().await;
    let run = server.post("/runs?dialect=goosed", &new("gander", SCRIPT, "sync")).await.ok();
    let parts = parts(&run);
    let thought = parts.iter().find(|part| part["metadata"]["thinking"] == true).unwrap();
    assert_eq!((&thought["content"], &thought["content_type"]), (&json!("hm"), &json!("text/plain")), "{thought}");
    for kind in ["tool_request", "tool_response"] {
        let is_kind = |part: &&Value| part["content"].as_str().is_some_and(|content| content.contains(kind));
        let tool = parts.iter().find(is_kind).unwrap_or_else(|| panic!("{kind}: {run}"));
        assert_eq!(
            (&tool["content_type"], &tool["metadata"]["tool_name"]),
            (&json!("application/json"), &json!("list"))
        );
    }
    // The same run for everybody else.
    let plain = server.get(&TestServer::path(&run, "")).await.ok();
    assert!(plain.to_string().contains("\"message\":\"hm\"") && !plain.to_string().contains("tool_request"), "{plain}");
    let events = server.get(&TestServer::path(&run, "/events?dialect=goosed")).await.ok();
    assert!(
        events.to_string().contains("\"in_progress\"") && !events.to_string().contains("\"in-progress\""),
        "{events}"
    );
    assert!(events.to_string().contains("run.in-progress"), "the event keeps its name: {events}");
}

#[tokio::test]
async fn an_error_is_an_event_of_its_own() {
    let server = TestServer::open().await;
    let failing = r#"[[script:[{"error":"bad_request"}]]]"#;
    let run = server.post("/runs?dialect=goosed", &new("gander", failing, "sync")).await.ok();
    assert_eq!(run["status"], "failed", "{run}");
    let types = async |query: &str| {
        let events = server.get(&TestServer::path(&run, &format!("/events{query}"))).await.ok();
        let types = events["events"].as_array().unwrap().iter().map(|event| event["type"].as_str().unwrap().to_owned());
        types.collect::<Vec<_>>()
    };
    assert!(types("?dialect=goosed").await.ends_with(&["error".to_owned(), "run.failed".to_owned()]));
    assert!(!types("").await.contains(&"error".to_owned()));
    let mut recorder = ConformanceRecorder::for_protocol("acp_rest");
    recorder.lists("event of the dialect goosed", ["error"]);
    recorder.shows("event of the dialect goosed", "error", "HTTP");
}

#[tokio::test]
async fn an_unknown_dialect_is_refused_with_the_list() {
    let server = TestServer::open().await;
    let refused = server.post("/runs?dialect=latin", &new("gander", "hi", "sync")).await;
    assert_eq!(refused.status, 422);
    assert!(refused.text.contains("standard, goosed"), "{}", refused.text);
}

fn parts(run: &Value) -> Vec<Value> {
    let messages = run["output"].as_array().unwrap().iter();
    messages.flat_map(|message| message["parts"].as_array().unwrap().clone()).collect()
}
