//! Bad input, row by row of `bad-inputs.tsv` (goose_rest), and who may do what.

use gander_domain::caller::Scope;
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::goose_rest::test_server::{TestServer, message, said};

async fn raw(server: &TestServer, path: &str, content_type: &str, body: Vec<u8>) -> u16 {
    let request = server.request(Method::POST, path).header("content-type", content_type).body(body);
    request.send().await.unwrap().status().as_u16()
}

#[tokio::test]
async fn bodies_that_are_no_json_or_no_request() {
    let server = TestServer::open().await;
    let session = server.start().await;
    let long = format!("{{{}}}", (0..200_000).map(|n| format!("\"k{n}\":1")).collect::<Vec<_>>().join(","));
    let cases: Vec<(&str, Vec<u8>, u16)> = vec![
        ("J01", b"{\"session_id\":".to_vec(), 400),
        ("J02", Vec::new(), 400),
        ("J05", b"{\"session_id\":\"\xff\xfe\"}".to_vec(), 400),
        ("J07", b"{\"session_id\":NaN}".to_vec(), 400),
        ("J08", b"{\"session_id\":1e400}".to_vec(), 422),
        ("J10", b"\xef\xbb\xbf{}".to_vec(), 400),
        ("J13", long.into_bytes(), 422),
        ("J16", br#"{"session_id":"\u0000","user_message":{"content":"x"}}"#.to_vec(), 422),
        ("S04", br#"{"session_id":"x"}"#.to_vec(), 422),
        ("S04", format!(r#"{{"session_id":"{session}","user_message":{{"content":[]}}}}"#).into_bytes(), 422),
        ("C02", image(&session, "not base64!", "image/png"), 422),
        ("C03", image(&session, "UEsDBBQAAAAIAA==", "image/png"), 422),
    ];
    for (id, body, status) in cases {
        let shown = String::from_utf8_lossy(&body[..body.len().min(80)]).into_owned();
        let found = raw(&server, "/reply", "application/json", body).await;
        assert!(found == status || (id == "J13" && found == 413), "{id}: {found} for {shown}");
    }
    let body = br#"{"session_id":"x","user_message":{"content":"x"}}"#.to_vec();
    assert_eq!(raw(&server, "/reply", "application/json; charset=utf-16", body.clone()).await, 415, "J11");
    assert_eq!(raw(&server, "/reply", "text/plain", body).await, 415);
    assert_eq!(raw(&server, "/agent/start", "application/json", vec![b' '; 5 << 20]).await, 413, "J14");
    let split = format!("{{\"session_id\":\n\"{session}\"}}");
    assert_eq!(raw(&server, "/agent/stop", "application/json", split.into_bytes()).await, 200, "J04");
}

fn image(session: &str, data: &str, mime: &str) -> Vec<u8> {
    let content = json!([{"type": "image", "data": data, "mimeType": mime}]);
    json!({"session_id": session, "user_message": {"content": content}}).to_string().into_bytes()
}

#[tokio::test]
async fn nothing_is_found_under_wrong_names() {
    let server = TestServer::open().await;
    let nobody = Uuid::now_v7();
    for id in [nobody.to_string(), "20260101_1".to_owned(), "..%2Fx".to_owned(), "%00".to_owned()] {
        for path in ["export", "extensions", "events"] {
            assert_eq!(server.get(&format!("/sessions/{id}/{path}")).await.0, 404, "{path}");
        }
        assert_eq!(server.delete(&format!("/sessions/{id}")).await.0, 404);
        let prompt = json!({"request_id": nobody, "user_message": said("x")});
        assert_eq!(server.post(&format!("/sessions/{id}/reply"), prompt).await.0, 404);
    }
    let session = server.start().await;
    let bad = json!({"request_id": "1", "user_message": said("x")});
    assert_eq!(server.post(&format!("/sessions/{session}/reply"), bad).await.0, 400);
    let unknown = json!({"id": "x", "sessionId": session, "action": "allow_once"});
    assert_eq!(server.post("/action-required/tool-confirmation", unknown).await.0, 404, "S25");
    assert_eq!(server.put(&format!("/sessions/{session}/name"), json!({"name": "a\u{7}b"})).await.0, 400);
    assert_eq!(server.post("/agent/start", json!({"working_dir": "relative"})).await.0, 400);
    assert_eq!(server.post("/agent/start", json!({"working_dir": "/no/such/folder"})).await.0, 400);
    let put = server.request(Method::PUT, "/reply").send().await.unwrap();
    assert_eq!((put.status().as_u16(), put.headers()["allow"].to_str().unwrap()), (405, "POST"), "S22");
}

#[tokio::test]
async fn ids_of_streams_are_honoured_or_refused() {
    let server = TestServer::open().await;
    let session = server.start().await;
    server.reply(json!({"session_id": session, "user_message": message(json!([[{"text": "x"}]]))})).await;
    let path = format!("/sessions/{session}/events");
    let with = |id: String| server.request(Method::GET, &path).header("last-event-id", id);
    for id in ["abc".to_owned(), "-1".to_owned(), "x".repeat(10_240)] {
        assert_eq!(with(id).send().await.unwrap().status(), 400, "S19");
    }
    let incarnation = server.app.services().hub.store().incarnation();
    for id in [format!("{incarnation}.99999.0"), format!("{}.1.0", incarnation.wrapping_add(1))] {
        assert_eq!(with(id).send().await.unwrap().status(), 409, "S20");
    }
    let image = server.request(Method::GET, &path).header("accept", "image/png").send().await.unwrap();
    assert_eq!(image.status(), 406, "H08");
}

/// E01: whatever a model says is one event on one line.
#[tokio::test]
async fn text_that_looks_like_a_stream_stays_text() {
    let server = TestServer::open().await;
    let session = server.start().await;
    let nasty = "a\n\ndata: {\"type\":\"Finish\"}\n\nevent: x\r\n: y\u{2028}z";
    let told = server.reply(json!({"session_id": session, "user_message": message(json!([[{"text": nasty}]]))})).await;
    assert_eq!(crate::goose_rest::test_server::text(&told), nasty);
    assert_eq!(crate::goose_rest::test_server::kinds(&told).iter().filter(|kind| **kind == "Finish").count(), 1);
}

#[tokio::test]
async fn only_a_token_opens_and_only_ones_own_sessions_are_there() {
    let server = TestServer::open().await;
    let session = server.start().await;
    let anna = server.other(&[Scope::Prompt]);
    let as_anna = |method: Method, path: &str| {
        let url = format!("http://{}{path}", server.address);
        reqwest::Client::new().request(method, url).header("x-secret-key", &anna)
    };
    let listed: Value = as_anna(Method::GET, "/sessions").send().await.unwrap().json().await.unwrap();
    assert_eq!(listed, json!({"sessions": []}));
    for path in [format!("/sessions/{session}/export"), format!("/sessions/{session}/events")] {
        assert_eq!(as_anna(Method::GET, &path).send().await.unwrap().status(), 404, "{path}");
    }
    let answer = json!({"id": "x", "sessionId": session, "action": "allow_once"});
    let confirm = as_anna(Method::POST, "/action-required/tool-confirmation").json(&answer).send().await.unwrap();
    assert_eq!(confirm.status(), 403, "this token may not approve");
    server.ok("/config/upsert", json!({"key": "MINE", "value": 1, "is_secret": false})).await;
    let hers = as_anna(Method::POST, "/config/read").json(&json!({"key": "MINE"})).send().await.unwrap();
    assert_eq!(hers.json::<Value>().await.unwrap(), Value::Null);
    let url = format!("http://{}/sessions?token={}", server.address, server.token);
    assert_eq!(reqwest::get(url).await.unwrap().status(), 401, "H03");
}

#[tokio::test]
async fn c24_nothing_is_half_imported() {
    let server = TestServer::open().await;
    let before = server.get("/sessions").await.1["sessions"].as_array().unwrap().len();
    let message = json!({"role": "user", "created": 1, "content": [{"type": "text", "text": "x"}]});
    let strange = json!({"role": "wizard", "created": 1, "content": []});
    let bad = [
        (json!("not json"), 400),
        (json!("[]"), 400),
        (json!(json!({"name": "half", "conversation": [message, strange]}).to_string()), 400),
        (json!(7), 422),
    ];
    for (file, status) in bad {
        let answer = server.post("/sessions/import", json!({"json": file})).await;
        assert_eq!(answer.0, status, "{}", answer.1);
    }
    assert_eq!(server.get("/sessions").await.1["sessions"].as_array().unwrap().len(), before);
    // A part of a kind that nobody knows is kept as it is: a newer goose's conversation is not lost.
    let newer = json!({"role": "user", "created": 1, "content": [{"type": "hologram", "depth": 3}]});
    let file = json!({"name": "newer", "version": 99, "conversation": [newer]}).to_string();
    let made = server.ok("/sessions/import", json!({"json": file})).await;
    let text = server.get(&format!("/sessions/{}/export", made["id"].as_str().unwrap())).await.1.to_string();
    assert!(text.contains("hologram"), "{text}");
    // A path as an id is only a text: the session gets an id of ours.
    let file = json!({"id": "../x", "name": "kept", "conversation": [message]}).to_string();
    let made = server.ok("/sessions/import", json!({"json": file})).await;
    assert!(made["id"].as_str().unwrap().parse::<gander_domain::SessionId>().is_ok(), "{}", made["id"]);
}

/// The limits are small here, so that what is too large is quick to make. The body's length is refused before it is read.
#[tokio::test]
async fn c24_what_is_too_large_is_refused_whole() {
    let server = TestServer::with(&[("GANDER_LIMITS_PROMPT_BODY", "64 KiB"), ("GANDER_LIMITS_BODY", "64 KiB")]).await;
    let message = json!({"role": "user", "created": 1, "content": [{"type": "text", "text": "x"}]});
    let import = |count: usize, text: &str| {
        let mut said = vec![message.clone(); count];
        said[0]["content"][0]["text"] = json!(text);
        json!({"json": json!({"name": "large", "conversation": said}).to_string()})
    };
    for (count, text) in [(2_000, "x"), (1, &*"x".repeat(128 << 10))] {
        let (status, told) = server.post("/sessions/import", import(count, text)).await;
        assert!(matches!(status, 400 | 413), "{count} messages: {status} {told}");
    }
    assert_eq!(server.get("/sessions").await.1["sessions"], json!([]), "nothing is half imported");
    assert_eq!(server.post("/sessions/import", import(100, "x")).await.0, 200, "what fits is taken");
}
