//! Bad input about tasks, row by row of `interop/data/bad-inputs.tsv`: the stated answer over JSON-RPC and HTTP+JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gander_testkit::harness::{eventually, script};
use reqwest::Method;
use serde_json::{Value, json};

use crate::a2a::test_server::{Binding, TestServer, message};

const ROWS: &str = include_str!("../../../../../interop/data/bad-inputs.tsv");

/// Which test shows a row.
const SHOWN: [(&str, &str); 20] = [
    ("S01", "s01_and_s10_what_is_not_there_is_not_found"),
    ("S02", "S02: about the other protocol"),
    ("S04", "messages_that_are_none"),
    ("S05", "messages_that_are_none"),
    ("S07", "S07: about the other protocol"),
    ("S08", "S08: about the other protocol"),
    ("S10", "s01_and_s10_what_is_not_there_is_not_found"),
    ("S11", "s11_a_task_that_waits_for_its_turn_takes_no_message"),
    ("S13", "s13_of_two_answers_one_counts"),
    ("S14", "s14_and_s25_only_what_was_asked_is_answered"),
    ("S16", "a_running_task_is_cancelled_once"),
    ("S17", "s17_a_cancelled_question_takes_no_answer"),
    ("S19", "s19_and_s20_a_place_is_known_or_refused"),
    ("S20", "s19_and_s20_a_place_is_known_or_refused"),
    ("S22", "s22_a_path_has_its_methods_and_says_which"),
    ("S23", "s23_a_client_that_hangs_up_stops_nothing"),
    ("S25", "s14_and_s25_only_what_was_asked_is_answered"),
    ("S26", "each_error_has_its_code_in_json_rpc_and_its_status_in_rest"),
    ("S28", "s28_metadata_is_data_and_has_an_end"),
    ("S29", "messages_that_are_none"),
];

#[test]
fn every_row_about_tasks_is_claimed_by_a_test_that_exists() {
    let rows = ROWS.lines().map(|row| row.split('\t').collect::<Vec<_>>());
    let rows: BTreeSet<&str> = rows.filter(|row| ["run", "a2a"].contains(&row[1])).map(|row| row[0]).collect();
    let claims = BTreeMap::from(SHOWN);
    assert_eq!(claims.keys().copied().collect::<BTreeSet<_>>(), rows);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/a2a");
    let files = std::fs::read_dir(folder).unwrap().map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
    let sources: String = files.collect();
    for (row, test) in claims {
        assert!(test.starts_with(row) || sources.contains(&format!("fn {test}(")), "{row}: no such test: {test}");
    }
}

/// The code over JSON-RPC and the status over HTTP+JSON of one send.
async fn sent(server: &TestServer, params: &Value) -> anyhow::Result<(i64, u16)> {
    let rest = server.post(Binding::Rest, "message:send", params).await?.status().as_u16();
    Ok((server.code("SendMessage", params.clone()).await?, rest))
}

fn about(task: &Value, id: &str, text: &str) -> Value {
    let mut said = message(id, text);
    said["taskId"] = task["id"].clone();
    json!({ "message": said })
}

#[tokio::test]
async fn s01_and_s10_what_is_not_there_is_not_found() -> anyhow::Result<()> {
    let server = TestServer::open().await?;
    let tenant = json!({ "tenant": "nobody", "message": message("m", "x") });
    assert_eq!(server.code("SendMessage", tenant).await?, -32602);
    let elsewhere = server.request(Method::POST, "/a2a/nobody/message:send").header("A2A-Version", "1.0");
    assert_eq!(elsewhere.json(&json!({ "message": message("m", "x") })).send().await?.status(), 404);
    let nothing = json!({ "id": "0198c0de-0000-7000-8000-000000000009" });
    assert_eq!(sent(&server, &about(&nothing, "m", "x")).await?, (-32001, 404));
    Ok(())
}

#[tokio::test]
async fn messages_that_are_none() -> anyhow::Result<()> {
    let server = TestServer::open().await?;
    let parts = |parts: Value| json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": parts } });
    let cases = [
        ("S04", parts(json!([]))),
        ("S04", json!({ "message": { "messageId": "m", "role": "ROLE_USER" } })),
        ("S05", parts(json!([{ "text": "x", "url": "http://example.com" }]))),
        ("S05", parts(json!([{ "raw": "not base64!" }]))),
        ("S05", parts(json!([{}]))),
    ];
    for (row, params) in cases {
        assert_eq!(sent(&server, &params).await?, (-32602, 400), "{row} {params}");
    }
    for time in ["yesterday", "99999-01-01T00:00:00Z", "2026-01-01T00:00:00"] {
        assert_eq!(server.code("ListTasks", json!({ "statusTimestampAfter": time })).await?, -32602, "S29 {time}");
    }
    assert_eq!(server.send("tck-complete-task", "x").await?["status"]["state"], "TASK_STATE_COMPLETED");
    Ok(())
}

#[tokio::test]
async fn s11_a_task_that_waits_for_its_turn_takes_no_message() -> anyhow::Result<()> {
    let server = TestServer::open().await?;
    let first = server.start("tck-long-running-1", "x").await?;
    let mut next = message("tck-complete-task-2", "x");
    next["contextId"] = first["contextId"].clone();
    let params = json!({ "message": next, "configuration": { "returnImmediately": true } });
    let queued = server.call("SendMessage", params).await?["task"].take();
    assert_eq!(queued["status"]["state"], "TASK_STATE_SUBMITTED");
    assert_eq!(sent(&server, &about(&queued, "m", "x")).await?, (-32004, 400));
    server.call("CancelTask", json!({ "id": first["id"] })).await?;
    Ok(())
}

#[tokio::test]
async fn s13_of_two_answers_one_counts() -> anyhow::Result<()> {
    let server = TestServer::open().await?;
    for n in 0..20 {
        let task = server.send(&format!("tck-input-required-{n}"), "x").await?;
        let [one, two] = ["one", "two"].map(|said| about(&task, said, said));
        let (one, two) = tokio::join!(server.rpc("SendMessage", one), server.rpc("SendMessage", two));
        let codes = [one?, two?].map(|answer| answer["error"]["code"].as_i64());
        // Whoever comes while the task runs again has not answered but said something more, if it does not say which question.
        let counted = codes.iter().filter(|code| code.is_none()).count();
        assert!(counted >= 1 && codes.iter().flatten().all(|code| *code == -32004), "{codes:?}");
        let heard = server.call("GetTask", json!({ "id": task["id"] })).await?;
        let text = heard["status"]["message"]["parts"][0]["text"].as_str().unwrap();
        assert!(["Heard: one", "Heard: two"].contains(&text), "{text}");
        assert!(counted == 2 || (text == "Heard: one") == codes[0].is_none(), "{codes:?} {text}");
    }
    Ok(())
}

#[tokio::test]
async fn s14_and_s25_only_what_was_asked_is_answered() -> anyhow::Result<()> {
    let server = TestServer::with(&[("GANDER_A2A_AGENT", "gander")]).await?;
    let shell = json!([{ "tool": "shell", "args": { "command": "touch ran" } }]);
    let task = server.send("m-1", &script(&[shell, json!([{ "text": "done" }])])).await?;
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{task}");
    assert_eq!(sent(&server, &about(&task, "m-2", "perhaps")).await?, (-32602, 400));
    let mut other = about(&task, "m-3", "yes");
    other["message"]["metadata"] =
        json!({ "urn:gander:a2a:activity:v1": { "question": "0198c0de-0000-7000-8000-000000000009" } });
    assert_eq!(sent(&server, &other).await?, (-32602, 400));
    let still = server.call("GetTask", json!({ "id": task["id"] })).await?;
    assert_eq!(still["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    let yes = about(&task, "m-4", "yes");
    let done = server.call("SendMessage", yes.clone()).await?["task"].take();
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED", "{done}");
    assert_eq!(server.call("SendMessage", yes).await?["task"]["id"], done["id"]);
    Ok(())
}

#[tokio::test]
async fn s17_a_cancelled_question_takes_no_answer() -> anyhow::Result<()> {
    let server = TestServer::open().await?;
    let task = server.send("tck-input-required-1", "x").await?;
    let cancelled = server.call("CancelTask", json!({ "id": task["id"] })).await?;
    assert_eq!(cancelled["status"]["state"], "TASK_STATE_CANCELED");
    assert_eq!(sent(&server, &about(&task, "m", "too late")).await?, (-32004, 400));
    Ok(())
}

#[tokio::test]
async fn s19_and_s20_a_place_is_known_or_refused() -> anyhow::Result<()> {
    let server = TestServer::open().await?;
    let task = server.send("tck-complete-task-1", "x").await?;
    let path = format!("/a2a/tasks/{}:subscribe", task["id"].as_str().unwrap());
    let long = "1".repeat(10_000);
    for (id, status) in [("abc", 400), ("-1", 400), (&long, 400), ("9.1.0", 409), ("1.999999.0", 409)] {
        let request = server.request(Method::GET, &path).header("A2A-Version", "1.0").header("Last-Event-ID", id);
        assert_eq!(request.send().await?.status(), status, "{}", &id[..id.len().min(12)]);
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SubscribeToTask", "params": { "id": task["id"] } });
        let request = server.request(Method::POST, "/a2a").header("A2A-Version", "1.0").header("Last-Event-ID", id);
        let answer: Value = request.json(&body).send().await?.json().await?;
        assert_eq!(answer["error"]["code"], if status == 400 { -32602 } else { -32004 });
    }
    Ok(())
}

#[tokio::test]
async fn s22_a_path_has_its_methods_and_says_which() -> anyhow::Result<()> {
    let server = TestServer::open().await?;
    for method in [Method::PUT, Method::PATCH, Method::TRACE] {
        let answer = server.request(method.clone(), "/a2a/message:send").send().await?;
        assert_eq!(answer.status(), 405, "{method}");
        assert!(answer.headers()["allow"].to_str()?.contains("POST"));
        assert!(answer.json::<Value>().await?.is_object());
    }
    let nowhere = server.request(Method::GET, "/a2a/tasks/a/b/c/d").header("A2A-Version", "1.0").send().await?;
    assert_eq!(nowhere.status(), 404);
    assert!(nowhere.json::<Value>().await?.is_object());
    Ok(())
}

#[tokio::test]
async fn s23_a_client_that_hangs_up_stops_nothing() -> anyhow::Result<()> {
    let server = TestServer::open().await?;
    for verb in ["message:send", "message:stream"] {
        let mut said = message(&format!("tck-long-running-{verb}"), "x");
        said["contextId"] = json!(verb);
        let body = json!({ "message": said });
        let listed = async || server.call("ListTasks", json!({ "contextId": verb })).await.unwrap_or_default();
        tokio::select! {
            answer = async { server.post(Binding::Rest, verb, &body).await?.text().await.map_err(anyhow::Error::from) } => panic!("too soon: {answer:?}"),
            begun = eventually("the task", async || listed().await["totalSize"] == 1) => begun?,
        }
        let state = async || listed().await["tasks"][0]["status"]["state"] == "TASK_STATE_COMPLETED";
        eventually("its end", state).await?;
    }
    Ok(())
}

#[tokio::test]
async fn s28_metadata_is_data_and_has_an_end() -> anyhow::Result<()> {
    let server = TestServer::with(&[("GANDER_LIMITS_PROMPT_BODY", "64 KiB")]).await?;
    let odd = json!({ "__proto__": { "x": 1 }, "constructor": "y" });
    let mut said = message("tck-complete-task-1", "x");
    said["metadata"] = odd.clone();
    let task = server.call("SendMessage", json!({ "message": said })).await?["task"].take();
    assert_eq!(task["history"][0]["metadata"], odd);
    let mut huge = message("m", "x");
    huge["metadata"] = json!({ "x": "y".repeat(70 << 10) });
    let answer = server.post(Binding::Rest, "message:send", &json!({ "message": huge })).await?;
    assert_eq!(answer.status(), 413);
    Ok(())
}
