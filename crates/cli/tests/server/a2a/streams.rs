//! Streams: in every binding, for several subscribers, from any event on, and across a kill.

use reqwest::Method;
use serde_json::{Value, json};

use crate::a2a::test_server::{BINDINGS, Binding, TestServer, events, message, said};

fn kinds(events: &[(Option<String>, Value)]) -> Vec<String> {
    let kind = |(_, event): &(Option<String>, Value)| {
        let event = event.get("result").unwrap_or(event);
        event["kind"].as_str().map_or_else(|| event.as_object().unwrap().keys().next().unwrap().clone(), str::to_owned)
    };
    events.iter().map(kind).collect()
}

#[tokio::test]
async fn every_binding_tells_a_task_from_its_beginning_to_its_end() -> anyhow::Result<()> {
    let server = TestServer::open().await?;
    for binding in BINDINGS {
        let body = said(binding, &format!("tck-stream-001-{binding:?}"), "go");
        let told = events(server.post(binding, "message:stream", &body).await?).await?;
        let expected = match binding {
            Binding::OldRpc => {
                ["task", "status-update", "artifact-update", "artifact-update", "artifact-update", "status-update"]
            }
            Binding::Rpc | Binding::Rest | Binding::OldRest => {
                ["task", "statusUpdate", "artifactUpdate", "artifactUpdate", "artifactUpdate", "statusUpdate"]
            }
        };
        assert_eq!(kinds(&told), expected, "{binding:?}");
        assert!(told.iter().all(|(id, _)| id.is_some()));
    }
    Ok(())
}

#[tokio::test]
async fn an_agent_that_answers_with_a_message_shows_no_task() -> anyhow::Result<()> {
    let server = TestServer::open().await?;
    let body = json!({ "message": message("tck-message-response-1", "go") });
    let told = events(server.post(Binding::Rest, "message:stream", &body).await?).await?;
    assert_eq!(kinds(&told), ["message"]);
    Ok(())
}

#[tokio::test]
async fn subscribers_see_the_same_and_a_finished_task_has_none() -> anyhow::Result<()> {
    let server = TestServer::open().await?;
    let task = server.start("tck-long-running-1", "x").await?;
    let id = task["id"].as_str().unwrap().to_owned();
    let path = format!("/a2a/tasks/{id}:subscribe");
    let open = |method| server.request(method, &path).header("A2A-Version", "1.0").send();
    let (get, post) = (open(Method::GET).await?, open(Method::POST).await?);
    let (mut first, mut second) = (events(get).await?, events(post).await?);
    assert_eq!(kinds(&first).first().map(String::as_str), Some("task"));
    assert_eq!(first.last().unwrap().1["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED");
    // the snapshot is taken a little earlier or later, everything after it is the same
    let ids = |events: &mut Vec<(Option<String>, Value)>| events.drain(1..).collect::<Vec<_>>();
    assert_eq!(ids(&mut first), ids(&mut second));
    assert_eq!(server.code("SubscribeToTask", json!({ "id": id })).await?, -32004);
    Ok(())
}

#[tokio::test]
async fn a_stream_goes_on_after_any_event_also_of_a_task_that_is_over() -> anyhow::Result<()> {
    let server = TestServer::open().await?;
    let body = json!({ "message": message("tck-stream-chunked-1", "go") });
    let whole = events(server.post(Binding::Rest, "message:stream", &body).await?).await?;
    let task = whole[0].1["task"]["id"].as_str().unwrap().to_owned();
    let server = server.restart().await?;
    for (cut, (id, _)) in whole.iter().enumerate().take(whole.len() - 1) {
        let request = server.request(Method::GET, &format!("/a2a/tasks/{task}:subscribe"));
        let request = request.header("A2A-Version", "1.0").header("Last-Event-ID", id.as_deref().unwrap());
        assert_eq!(events(request.send().await?).await?, whole[cut + 1..], "{id:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_task_that_asks_survives_a_kill_and_is_watched_to_its_end() -> anyhow::Result<()> {
    let server = TestServer::open().await?;
    let body = json!({ "message": message("tck-input-required-1", "go") });
    let told = events(server.post(Binding::Rest, "message:stream", &body).await?).await?;
    let last = &told.last().unwrap().1["statusUpdate"];
    assert_eq!(last["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    let task = last["taskId"].as_str().unwrap().to_owned();
    let server = server.restart().await?;
    let watching = server.request(Method::GET, &format!("/a2a/tasks/{task}:subscribe")).header("A2A-Version", "1.0");
    let watching = watching.send().await?;
    let mut answer = message("m-2", "blue");
    answer["taskId"] = json!(task);
    let done = server.call("SendMessage", json!({ "message": answer })).await?;
    assert_eq!(done["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    let seen = events(watching).await?;
    assert_eq!(seen[0].1["task"]["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    assert_eq!(seen.last().unwrap().1["statusUpdate"]["status"], done["task"]["status"]);
    Ok(())
}

#[tokio::test]
async fn whoever_activates_the_extension_sees_what_tools_do() -> anyhow::Result<()> {
    let server = TestServer::with(&[("GANDER_A2A_AGENT", "gander")]).await?;
    let shell = json!([{ "tool": "shell", "args": { "command": "echo hi" } }]);
    let script = gander_testkit::harness::script(&[shell, json!([{ "text": "done" }])]);
    let body = json!({ "message": message("m-1", &script) });
    for (extension, expected) in [("", false), ("urn:gander:a2a:activity:v1", true)] {
        let request = server.request(Method::POST, "/a2a/message:stream").header("A2A-Version", "1.0");
        let response = request.header("A2A-Extensions", extension).json(&body).send().await?;
        assert_eq!(response.headers().contains_key("a2a-extensions"), expected);
        let text = response.text().await?;
        assert_eq!(text.contains("tool_done"), expected, "{text}");
        assert!(text.contains("TASK_STATE_COMPLETED"), "{text}");
    }
    Ok(())
}
