//! What the built-in agent puts away: told as it happens, kept in versions, read back by the agent itself.

use serde_json::{Value, json};

use crate::adk::client::{events, texts};
use crate::adk::test_server::TestServer;

const SESSIONS: &str = "/apps/gander/users/u1/sessions";

/// A run of the built-in agent whose model plays these calls.
fn plays(calls: &Value) -> Value {
    let parts = json!([{ "text": format!("[[script:{calls}]]") }]);
    json!({ "appName": "gander", "userId": "u1", "sessionId": "a", "newMessage": { "parts": parts } })
}

fn saves(text: &str) -> Value {
    json!([
        [{ "tool": "artifact_save", "args": { "name": "report.md", "text": text, "media_type": "text/markdown" } }],
        [{ "text": "put away" }],
    ])
}

#[tokio::test]
async fn a_tool_of_the_built_in_agent_puts_artifacts_away_in_versions() {
    let server = TestServer::open().await;
    server.post(SESSIONS, &json!({ "sessionId": "a" })).await.ok();
    let told = server.post("/run", &plays(&saves("# One"))).await.ok();
    assert_eq!(told[1]["actions"]["artifactDelta"], json!({ "report.md": 0 }), "{told}");
    assert_eq!(told[1]["content"]["parts"][0]["functionResponse"]["name"], "artifact_save");
    let told = events(&server.post("/run_sse", &plays(&saves("# Two"))).await);
    let saved: Vec<&Value> = told.iter().filter(|event| event["actions"]["artifactDelta"]["report.md"] == 1).collect();
    assert!(saved.len() == 1 && saved[0].get("content").is_none(), "told apart from the result: {told:?}");
    let artifact = format!("{SESSIONS}/a/artifacts/report.md");
    assert_eq!(server.get(&artifact).await.ok(), json!({ "text": "# Two" }));
    assert_eq!(server.get(&format!("{artifact}/versions/0")).await.ok(), json!({ "text": "# One" }));
    let known = server.get(&format!("{artifact}/versions/latest/metadata")).await.ok();
    assert_eq!((&known["version"], &known["mimeType"]), (&json!(1), &json!("text/markdown")));
    let run = told[0]["invocationId"].as_str().unwrap().strip_prefix("e-").unwrap().to_owned();
    let seen = server.get(&format!("/runs/{run}/events")).await.ok();
    let seen = seen["events"].as_array().unwrap().iter().find(|event| event["generic"]["kind"] == "artifact");
    assert_eq!(
        seen.unwrap()["generic"]["artifact"]["name"],
        "report.md",
        "the Agent Communication Protocol tells it too"
    );
}

#[tokio::test]
async fn the_agent_reads_back_what_was_put_away_and_takes_no_name_of_others() {
    let server = TestServer::open().await;
    server.post(SESSIONS, &json!({ "sessionId": "a" })).await.ok();
    let brought = json!({ "filename": "data.txt", "artifact": { "text": "from a client" } });
    server.post(&format!("{SESSIONS}/a/artifacts"), &brought).await.ok();
    let told = server
        .post(
            "/run",
            &plays(&json!([
                [{ "tool": "artifact_read", "args": { "name": "data.txt" } },
                 { "tool": "artifact_read", "args": { "name": "none.txt" } },
                 { "tool": "artifact_save", "args": { "name": "user:mine.txt", "text": "x" } },
                 { "tool": "artifact_list", "args": {} }],
                [{ "text": "done" }],
            ])),
        )
        .await
        .ok();
    let results = told[1]["content"]["parts"].as_array().unwrap();
    let said = |index: usize| results[index]["functionResponse"]["response"].to_string();
    assert!(said(0).contains("from a client") && said(1).contains("no such artifact"), "{told}");
    assert!(said(2).contains("choose another") && said(3).contains("data.txt (1 versions)"), "{told}");
    assert_eq!(told[1]["actions"]["artifactDelta"], json!({}));
    assert_eq!(texts(told.as_array().unwrap()), ["done"]);
}

/// What a client brought may be long and hold secrets: the model gets what any tool may say.
#[tokio::test]
async fn what_the_agent_reads_back_is_bounded_and_without_secrets() {
    let server = TestServer::with(&[("GANDER_TOOLS_RESULT", "4 KiB")]).await;
    server.post(SESSIONS, &json!({ "sessionId": "a" })).await.ok();
    let secret = format!("sk-{}", "a1".repeat(16));
    let lines: String = (0..100).map(|line| format!("{line:03} {secret}\n")).collect();
    for number in 0..60 {
        let (filename, artifact) = (format!("{number}-{}.txt", "n".repeat(100)), json!({ "text": "x" }));
        server
            .post(&format!("{SESSIONS}/a/artifacts"), &json!({ "filename": filename, "artifact": artifact }))
            .await
            .ok();
    }
    let brought = json!({ "filename": "data.txt", "artifact": { "text": lines } });
    server.post(&format!("{SESSIONS}/a/artifacts"), &brought).await.ok();
    let calls = json!([
        [{ "tool": "artifact_read", "args": { "name": "data.txt" } },
         { "tool": "artifact_read", "args": { "name": "data.txt", "offset": 98 } },
         { "tool": "artifact_read", "args": { "name": "data.txt", "offset": 100 } },
         { "tool": "artifact_list", "args": {} }],
        [{ "text": "done" }],
    ]);
    let told = server.post("/run", &plays(&calls)).await.ok();
    let results = told[1]["content"]["parts"].as_array().unwrap();
    let said: Vec<String> = results.iter().map(|part| part["functionResponse"]["response"].to_string()).collect();
    assert!(said.iter().all(|said| said.len() < 5000 && !said.contains(&secret)), "{said:?}");
    assert!(said[0].contains("000 [redacted]") && said[0].contains("[lines 1 to 51 of 100; read on with offset 51]"));
    assert!(said[1].contains("099 [redacted]") && said[1].contains("[lines 99 to 100 of 100]"), "{}", said[1]);
    assert!(said[2].contains("this artifact has fewer lines than that: 100"), "{}", said[2]);
    assert!(said[3].contains("[the rest is left out]"), "{}", said[3]);
}
