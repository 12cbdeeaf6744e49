//! Runs that cannot be: unknown names, wrong places, wrong methods, clients that leave. Rows S.

use gander_testkit::harness::eventually;
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::rest_rows::family::{FAMILIES, Family, SESSIONS};
use crate::rest_rows::test_server::{Answer, TestServer};

/// Says something slowly, and then the last word.
const SLOW: &str = r#"[[script:[[{"text":"~","repeat":40,"delay_ms":10},{"text":"last word"}]]]]"#;

#[tokio::test]
async fn s01_s02_there_is_no_such_agent() {
    let server = TestServer::open().await;
    let session = Family::Adk.begin(&server).await;
    for name in ["nobody", "Chat", "-a", "", "a.b", "../gander", &"a".repeat(64)] {
        for path in ["/run", "/run_sse"] {
            let mut body = Family::Adk.says(&session, "x");
            body["appName"] = json!(name);
            let answer = server.post(Family::Adk, path, &body).await;
            assert_eq!(answer.status, 404, "{path} {name:?}: {}", answer.text);
            assert!(answer.json()["error"].is_string() && answer.json()["detail"].is_string());
        }
        let path = format!("/apps/{}/users/u1/sessions", name.replace('/', "%2f"));
        assert_eq!(server.post(Family::Adk, &path, &Value::Null).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn s04_a_prompt_without_words() {
    let server = TestServer::open().await;
    let session = Family::Goose.begin(&server).await;
    let bodies = [
        json!({ "session_id": session }),
        json!({ "session_id": session, "messages": [] }),
        Family::Goose.prompt(&session, json!([])),
        json!({ "session_id": session, "user_message": { "role": "user" } }),
    ];
    for body in bodies {
        assert_eq!(server.post(Family::Goose, "/reply", &body).await.status, 422, "{body}");
    }
    assert_eq!(Family::Goose.history(&server, &session).await, json!([]));
    // ADK goes on with what was said.
    let session = Family::Adk.begin(&server).await;
    let mut body = Family::Adk.prompt(&session, json!([]));
    assert_eq!(server.post(Family::Adk, "/run", &body).await.status, 200);
    body.as_object_mut().unwrap().remove("newMessage");
    assert_eq!(server.post(Family::Adk, "/run", &body).await.status, 200);
}

#[tokio::test]
async fn s10_there_is_no_such_session() {
    let server = TestServer::open().await;
    for id in [Uuid::now_v7().to_string(), "20260101_1".to_owned(), "nobody".to_owned()] {
        let prompt =
            json!({ "request_id": Uuid::now_v7(), "user_message": Family::Goose.says("", "x")["user_message"] });
        assert_eq!(server.post(Family::Goose, &format!("/sessions/{id}/reply"), &prompt).await.status, 404);
        let cancel = json!({ "request_id": Uuid::now_v7() });
        assert_eq!(server.post(Family::Goose, &format!("/sessions/{id}/cancel"), &cancel).await.status, 404);
        assert_eq!(server.get(Family::Goose, &format!("/sessions/{id}/events")).await.status, 404);
        for path in ["/run", "/run_sse"] {
            assert_eq!(server.post(Family::Adk, path, &Family::Adk.says(&id, "x")).await.status, 404, "{path}");
        }
        assert_eq!(server.get(Family::Adk, &format!("{SESSIONS}/{id}")).await.status, 404);
    }
}

#[tokio::test]
async fn s16_a_cancelled_run_ends_once() {
    let server = TestServer::open().await;
    let session = Family::Goose.begin(&server).await;
    let (run, prompt) = (Uuid::now_v7(), Family::Goose.says(&session, SLOW)["user_message"].take());
    let path = format!("/sessions/{session}/reply");
    server.post(Family::Goose, &path, &json!({ "request_id": run, "user_message": prompt })).await.ok();
    let path = format!("/sessions/{session}/cancel");
    let cancel = async |run: Uuid| server.post(Family::Goose, &path, &json!({ "request_id": run })).await;
    let (first, again) = tokio::join!(cancel(run), cancel(run));
    assert!([first.status, again.status].contains(&200), "{} {}", first.text, again.text);
    let over = async || server.get(Family::Goose, &format!("/runs/{run}")).await.ok()["status"] == "cancelled";
    eventually("it is over", over).await.unwrap();
    for over in [run, Uuid::now_v7()] {
        let refused = cancel(over).await;
        assert_eq!(refused.status, 404, "{}", refused.text);
        assert!(refused.json()["message"].as_str().unwrap().contains(&over.to_string()), "{}", refused.text);
    }
    let log = server.server.launch.export(&session).await.unwrap();
    let ends = log.iter().filter(|entry| matches!(entry.event, gander_domain::Event::RunEnded { .. })).count();
    assert_eq!(ends, 1);
}

#[tokio::test]
async fn s19_s20_a_place_is_known_or_refused() {
    let server = TestServer::open().await;
    for family in FAMILIES {
        let session = family.begin(&server).await;
        let body = family.says(&session, "x");
        server.post(family, family.stream(), &body).await;
        let before = family.history(&server, &session).await;
        let with = |id: &str| {
            match family {
                Family::Goose => server.request(family, Method::GET, &format!("/sessions/{session}/events")),
                // A run is begun, never gone on with: a client that thinks otherwise must not begin another.
                Family::Adk => server.request(family, Method::POST, "/run_sse").json(&body),
            }
            .header("last-event-id", id)
        };
        for id in ["abc", "-1", "1.2.3.4.5", &"1".repeat(10 << 10)] {
            assert_eq!(Answer::to(with(id)).await.status, 400, "{family:?} S19 {}", &id[..id.len().min(12)]);
        }
        let emoji = reqwest::header::HeaderValue::from_bytes("🦢".as_bytes()).unwrap();
        let request = with("x").header("last-event-id", emoji);
        assert_eq!(Answer::to(request).await.status, 400, "{family:?} S19 in UTF-8");
        for id in ["9.1.0", "1.999999.0"] {
            assert_eq!(Answer::to(with(id)).await.status, 409, "{family:?} S20 {id}");
        }
        assert_eq!(family.history(&server, &session).await, before, "{family:?}: nothing was begun");
    }
}

#[tokio::test]
async fn s22_a_path_has_its_methods_and_says_which() {
    let server = TestServer::open().await;
    for family in FAMILIES {
        for method in family.wrong_methods() {
            let answer = Answer::to(server.request(family, method.clone(), family.stream())).await;
            assert_eq!(
                (answer.status, answer.headers["allow"].to_str().unwrap()),
                (405, "POST"),
                "{family:?} {method}"
            );
            assert!(answer.json().is_object(), "{family:?} {method}");
        }
        let nowhere = server.get(family, &format!("{}/a/b/c/d", family.list())).await;
        assert_eq!(nowhere.status, 404, "{family:?}");
        assert!(nowhere.json().is_object(), "{family:?}");
    }
}

#[tokio::test]
async fn s23_a_client_that_hangs_up_stops_nothing() {
    let server = TestServer::open().await;
    for family in FAMILIES {
        let session = family.begin(&server).await;
        let request = server.request(family, Method::POST, family.stream()).json(&family.says(&session, SLOW));
        let mut stream = request.send().await.unwrap();
        assert!(stream.chunk().await.unwrap().is_some());
        drop(stream);
        let said = async || family.history(&server, &session).await.to_string().matches("last word").count() == 2;
        eventually("the last word", said).await.unwrap();
    }
}

#[tokio::test]
async fn s28_metadata_is_data_and_has_an_end() {
    let server = TestServer::with(&[("GANDER_LIMITS_PROMPT_BODY", "64 KiB")]).await;
    let odd = json!({ "__proto__": { "x": 1 }, "constructor": "y", "toString": null });
    for family in FAMILIES {
        let session = family.begin(&server).await;
        let with = |metadata: &Value| {
            let mut body = family.says(&session, "x");
            match family {
                Family::Goose => body["user_message"]["metadata"] = metadata.clone(),
                Family::Adk => body["customMetadata"] = metadata.clone(),
            }
            body
        };
        assert_eq!(server.post(family, family.stream(), &with(&odd)).await.status, 200, "{family:?}");
        let huge = json!({ "x": "y".repeat(70 << 10) });
        assert_eq!(server.post(family, family.stream(), &with(&huge)).await.status, 413, "{family:?}");
        family.works(&server).await;
    }
    let named = json!({ "sessionId": "odd", "state": odd });
    assert_eq!(server.post(Family::Adk, SESSIONS, &named).await.ok()["state"]["__proto__"], odd["__proto__"]);
    let session = server.get(Family::Adk, &format!("{SESSIONS}/odd")).await.ok();
    assert_eq!((&session["state"]["constructor"], &session["state"]["__proto__"]), (&json!("y"), &json!({ "x": 1 })));
}

/// The first second of the year 0, the first one of the year 99999, and what is no time.
const NEVER: [i64; 2] = [-62_167_219_200, 3_093_496_473_600];

#[tokio::test]
async fn s29_times_are_of_this_age() {
    let server = TestServer::open().await;
    let session = Family::Goose.begin(&server).await;
    for time in NEVER.map(Value::from).into_iter().chain([json!("2026-01-01T00:00:00"), json!(1.5)]) {
        let mut body = Family::Goose.says(&session, "x");
        body["user_message"]["created"] = time.clone();
        assert_eq!(server.post(Family::Goose, "/reply", &body).await.status, 422, "{time}");
        let mut body = Family::Goose.says(&session, "x");
        body["override_conversation"] = json!([{ "role": "user", "created": time, "content": "x" }]);
        assert_eq!(server.post(Family::Goose, "/reply", &body).await.status, 422, "{time} in a history");
        let event = json!({ "author": "user", "timestamp": time, "content": { "parts": [{ "text": "x" }] } });
        if time.is_f64() {
            continue; // there a time has a fraction
        }
        let brought = json!({ "events": [event] });
        assert_eq!(server.post(Family::Adk, SESSIONS, &brought).await.status, 422, "{time}");
    }
    assert_eq!(Family::Goose.history(&server, &session).await, json!([]));
}
