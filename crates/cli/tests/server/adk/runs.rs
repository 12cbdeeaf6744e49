//! Runs: confirmations from question to answer, queues, streams, what other protocols see.

use futures::future::join_all;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use crate::adk::client::{SESSIONS, answers, asked, begin, events, says, texts};
use crate::adk::test_server::TestServer;

#[tokio::test]
async fn a_confirmation_goes_on_in_the_same_invocation_once() {
    let server = TestServer::open().await;
    begin(&server, "c").await;
    let first = server.post("/run", &says("c", "confirm")).await.ok();
    let first = first.as_array().unwrap();
    let (id, invocation) = (asked(first), &first[0]["invocationId"]);
    let yes = answers("c", &id, json!({ "confirmed": true }));
    let second = server.post("/run", &yes).await.ok();
    assert_eq!(second[0]["content"]["parts"][0]["functionResponse"]["response"], json!({ "deleted": "/data/a.txt" }));
    assert!(second.as_array().unwrap().iter().all(|event| event["invocationId"] == *invocation));
    assert_eq!(server.post("/run", &yes).await.ok(), json!([]));
    assert!(events(&server.post("/run_sse", &yes).await).is_empty());
    let session = server.get(&format!("{SESSIONS}/c")).await.ok();
    let calls = session["events"].to_string().matches(r#""deleted":"#).count();
    assert_eq!(calls, 1, "{session}");
}

#[tokio::test]
async fn words_in_place_of_an_answer_begin_a_new_run() {
    let server = TestServer::open().await;
    begin(&server, "c").await;
    let first = server.post("/run", &says("c", "confirm")).await.ok();
    let id = asked(first.as_array().unwrap());
    let second = server.post("/run", &says("c", "hello")).await.ok();
    assert_eq!(texts(second.as_array().unwrap()), ["Hello, world!"]);
    assert_eq!(server.post("/run", &answers("c", &id, json!({ "confirmed": true }))).await.ok(), json!([]));
}

#[tokio::test]
async fn ten_runs_at_once_on_one_session_give_ten_answers_in_order() {
    let server = TestServer::open().await;
    begin(&server, "ten").await;
    let prompts: Vec<Value> = (1..=10).map(|number| says("ten", &format!("many {number}"))).collect();
    let all = join_all(prompts.iter().map(|prompt| server.post("/run", prompt))).await;
    for (number, answer) in all.iter().enumerate() {
        let words = texts(answer.ok().as_array().unwrap());
        assert_eq!(words[0].split_whitespace().count(), number + 1, "{words:?}");
    }
    let session = server.get(&format!("{SESSIONS}/ten")).await.ok();
    let stored = session["events"].as_array().unwrap();
    assert_eq!(stored.len(), 20);
    for pair in stored.chunks(2) {
        assert_eq!((&pair[0]["author"], &pair[1]["author"]), (&json!("user"), &json!("wire")));
        assert_eq!(pair[0]["invocationId"], pair[1]["invocationId"]);
        let asked = pair[0]["content"]["parts"][0]["text"].as_str().unwrap();
        let said = pair[1]["content"]["parts"][0]["text"].as_str().unwrap();
        assert_eq!(asked, format!("many {}", said.split_whitespace().count()));
    }
}

#[tokio::test]
async fn pieces_that_come_together_are_joined_and_share_an_id_with_the_whole() {
    let server = TestServer::open().await;
    begin(&server, "m").await;
    let mut request = says("m", "many 500");
    request["streaming"] = json!(true);
    let told = events(&server.post("/run_sse", &request).await);
    let (pieces, whole): (Vec<_>, Vec<_>) = told.iter().cloned().partition(|event| event["partial"] == true);
    assert!(pieces.len() < 250, "{} pieces", pieces.len());
    assert_eq!(whole.len(), 1);
    assert_eq!(texts(&pieces).concat(), texts(&whole)[0]);
    assert!(told.iter().all(|event| event["id"] == whole[0]["id"]));
}

#[tokio::test]
async fn the_path_form_and_the_prefix_are_served_too() {
    let server = TestServer::open().await;
    begin(&server, "p").await;
    for (path, body) in [
        (format!("{SESSIONS}/p/run"), json!({ "message": "hello" })),
        (format!("{SESSIONS}/p/run"), json!({ "new_message": { "parts": [{ "text": "hello" }] } })),
        (format!("/api{SESSIONS}/p/run"), json!({ "newMessage": { "parts": [{ "text": "hello" }] } })),
        ("/api/run".to_owned(), says("p", "hello")),
    ] {
        let told = server.post(&path, &body).await.ok();
        assert_eq!(texts(told.as_array().unwrap()), ["Hello, world!"], "{path}");
    }
    let told = events(&server.post(&format!("{SESSIONS}/p/run_sse"), &json!({ "message": "hello" })).await);
    assert_eq!(texts(&told), ["Hello, world!"]);
}

#[tokio::test]
async fn sessions_of_other_protocols_are_seen_and_the_other_way_round() {
    let server = TestServer::open().await;
    let run = server.run("wire", "hello").await;
    let id = run["session_id"].as_str().unwrap();
    let path = "/apps/wire/users/user/sessions";
    let seen = server.get(&format!("{path}/{id}")).await.ok();
    assert_eq!(texts(seen["events"].as_array().unwrap()), ["hello", "Hello, world!"]);
    assert_eq!(server.get(path).await.ok()[0]["id"], id);
    assert_eq!(server.get(&format!("{SESSIONS}/{id}")).await.status, 404);
    begin(&server, "mine").await;
    let told = server.post("/run", &says("mine", "hello")).await.ok();
    let run = told[0]["invocationId"].as_str().unwrap().strip_prefix("e-").unwrap().to_owned();
    let found = server.get(&format!("/runs/{run}")).await.ok();
    assert_eq!(found["status"], "completed");
    assert_eq!(crate::adk::test_server::said(&found), ["Hello, world!"]);
}

#[tokio::test]
async fn a_page_reads_what_happened_as_traces() {
    let server = TestServer::open().await;
    let session = server.post(SESSIONS, &json!({})).await.ok();
    let id = session["id"].as_str().unwrap();
    let told = server.post("/run", &says(id, "tool")).await.ok();
    let traces = "/dev/apps/wire/debug/trace";
    let spans = server.get(&format!("{traces}/session/{id}")).await.ok();
    let spans = spans.as_array().unwrap();
    let names: Vec<&str> = spans.iter().map(|span| span["name"].as_str().unwrap()).collect();
    let call = "generate_content scripted-1";
    assert_eq!(names, [call, "execute_tool get_weather", call, "invoke_agent wire"]);
    let (inner, run) = spans.split_at(3);
    for (span, event) in inner.iter().zip(told.as_array().unwrap()) {
        assert_eq!((&span["parent_span_id"], &span["trace_id"]), (&run[0]["span_id"], &run[0]["trace_id"]));
        assert_eq!(span["attributes"]["gcp.vertex.agent.event_id"], event["id"], "{span}");
        assert!(span["start_time"].as_i64() <= span["end_time"].as_i64() && span["start_time"].is_i64(), "{span}");
        let known = server.get(&format!("{traces}/{}", event["id"].as_str().unwrap())).await.ok();
        assert_eq!((&known["span_id"], &known["gen_ai.conversation.id"]), (&span["span_id"], &json!(id)));
    }
    assert_eq!(run[0]["attributes"]["gcp.vertex.agent.invocation_id"], told[0]["invocationId"]);
    let said = &spans[0]["logs"][0]["attributes"]["gen_ai.output.messages"][0]["parts"];
    assert_eq!((&said[0]["content"], &said[1]["name"]), (&json!("I will look. "), &json!("get_weather")));
    assert!(spans[0]["attributes"]["gen_ai.usage.output_tokens"].is_u64());
    assert_eq!(server.get(&format!("{traces}/session/nobody")).await.ok(), json!([]));
    assert_eq!(server.get(&format!("{traces}/nope")).await.status, 404);
    let anna = gander_services::token::add_token(&server.config.paths, "anna", &[], None).unwrap();
    let url = server.url(&format!("{traces}/session/{id}"));
    let seen = reqwest::Client::new().get(url).bearer_auth(anna.expose_secret()).send().await.unwrap();
    assert_eq!(seen.json::<Value>().await.unwrap(), json!([]), "somebody else sees none of it");
}

#[tokio::test]
async fn lists_are_paged_when_asked() {
    let server = TestServer::open().await;
    for name in ["a", "b", "c"] {
        begin(&server, name).await;
    }
    let names = |list: Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|session| session["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(server.get(SESSIONS).await.ok()), ["a", "b", "c"]);
    assert_eq!(names(server.get(&format!("{SESSIONS}?limit=2")).await.ok()), ["a", "b"]);
    assert_eq!(names(server.get(&format!("{SESSIONS}?limit=2&page=2")).await.ok()), ["c"]);
    assert_eq!(names(server.get(&format!("{SESSIONS}?offset=1&limit=1&order=desc")).await.ok()), ["b"]);
}

#[tokio::test]
async fn a_client_that_leaves_ends_the_run_only_where_that_is_set() {
    for (on_leave, end) in [("cancel", "INVOCATION_ABORTED"), ("continue", "tick49 ")] {
        let server = TestServer::with(&[("GANDER_ADK_ON_LEAVE", on_leave)]).await;
        begin(&server, "l").await;
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let mut request = says("l", "slow");
        request["streaming"] = json!(true);
        let sent = client.post(server.url("/run_sse")).bearer_auth(&server.token).body(request.to_string());
        let mut stream = sent.send().await.unwrap();
        assert!(stream.chunk().await.unwrap().is_some());
        drop((stream, client));
        let until_told = async {
            while !server.get(&format!("{SESSIONS}/l")).await.ok()["events"].to_string().contains(end) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(120), until_told).await.unwrap();
    }
}
