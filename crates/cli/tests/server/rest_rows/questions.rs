//! Answers that are none: to nothing, of another kind, twice, too late. Rows S11 to S17 and S25.

use anyhow::Context;
use gander_domain::Event;
use gander_testkit::harness::eventually;
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::rest_rows::family::{FAMILIES, Family};
use crate::rest_rows::test_server::{Answer, TestServer};

const ASKING: &str = r#"[[script:[[{"tool":"shell","args":{"command":"echo x >> ran"}}],[{"text":"I see."}]]]]"#;

/// Pairs of answers given at once.
const PAIRS: usize = 25;

async fn asking() -> TestServer {
    TestServer::open().await
}

/// Begins a run that asks, and gives the id under which it is answered.
async fn asked(family: Family, server: &TestServer, session: &str) -> anyhow::Result<String> {
    let prompt = family.says(session, ASKING);
    match family {
        Family::Goose => {
            let body = json!({ "request_id": Uuid::now_v7(), "user_message": prompt["user_message"] });
            server.post(family, &format!("/sessions/{session}/reply"), &body).await.ok();
            let path = format!("/sessions/{session}/events");
            let mut stream = server.request(family, Method::GET, &path).send().await?;
            let mut text = String::new();
            loop {
                let events = text.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok());
                let content = events.map(|event: Value| event["message"]["content"][0].clone());
                if let Some(question) = content.into_iter().find(|content| content["type"] == "actionRequired") {
                    return Ok(question["data"]["id"].as_str().context("no id")?.to_owned());
                }
                text.push_str(std::str::from_utf8(&stream.chunk().await?.context("the stream ended")?)?);
            }
        }
        Family::Adk => {
            let events = server.post(family, "/run", &prompt).await.ok();
            let events = events.as_array().context("no events")?.iter();
            let mut calls = events.map(|event| &event["content"]["parts"][0]["functionCall"]);
            let call = calls.find(|call| call["name"] == "adk_request_confirmation").context("it does not ask")?;
            Ok(call["id"].as_str().context("no id")?.to_owned())
        }
    }
}

/// An answer as the family sends it: what goose calls an action, and ADK a response.
async fn answer(family: Family, server: &TestServer, session: &str, id: &str, said: &Value) -> Answer {
    match family {
        Family::Goose => {
            let body = json!({ "id": id, "sessionId": session, "action": said, "principalType": "Tool" });
            server.post(family, "/action-required/tool-confirmation", &body).await
        }
        Family::Adk => {
            let response = json!({ "id": id, "name": "adk_request_confirmation", "response": said });
            server.post(family, "/run", &family.prompt(session, json!([{ "functionResponse": response }]))).await
        }
    }
}

fn yes(family: Family) -> Value {
    match family {
        Family::Goose => json!("allow_once"),
        Family::Adk => json!({ "confirmed": true }),
    }
}

/// True if an answer counted; one that came too late is refused by goose and begins nothing in ADK.
fn counted(family: Family, answer: &Answer) -> bool {
    match (family, answer.status) {
        (Family::Goose, 200) => true,
        (Family::Goose, 404) => false,
        (Family::Adk, 200) => answer.json() != json!([]),
        _ => panic!("{family:?}: {} {}", answer.status, answer.text),
    }
}

/// How many tools were started in a session.
async fn started(server: &TestServer, session: &str) -> usize {
    let log = server.server.launch.export(session).await.unwrap();
    log.iter().filter(|entry| matches!(entry.event, Event::ToolStarted { .. })).count()
}

/// Waits until this many runs are over.
async fn over(server: &TestServer, session: &str, runs: usize) {
    let ended = async || {
        let log = server.server.launch.export(session).await.unwrap_or_default();
        log.iter().filter(|entry| matches!(entry.event, Event::RunEnded { .. })).count() == runs
    };
    eventually("the run ends", ended).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s13_of_two_answers_at_once_one_counts() -> anyhow::Result<()> {
    let server = asking().await;
    for family in FAMILIES {
        let session = family.begin(&server).await;
        for pair in 1..=PAIRS {
            let (id, yes) = (asked(family, &server, &session).await?, yes(family));
            let one = answer(family, &server, &session, &id, &yes);
            let two = answer(family, &server, &session, &id, &yes);
            let (one, two) = tokio::join!(one, two);
            let both = [counted(family, &one), counted(family, &two)];
            assert!(both[0] != both[1], "{family:?} {both:?}");
            over(&server, &session, pair).await;
        }
        assert_eq!(started(&server, &session).await, PAIRS, "{family:?}");
    }
    Ok(())
}

#[tokio::test]
async fn s14_an_answer_of_another_kind_changes_nothing() -> anyhow::Result<()> {
    let server = asking().await;
    for family in FAMILIES {
        let session = family.begin(&server).await;
        let id = asked(family, &server, &session).await?;
        let other = match family {
            Family::Goose => vec![json!("perhaps"), json!({}), Value::Null, json!(7)],
            Family::Adk => {
                let maybe = json!({ "confirmed": "perhaps" });
                vec![json!({}), Value::Null, maybe, json!([]), json!({ "response": "{}" })]
            }
        };
        for said in other {
            let refused = answer(family, &server, &session, &id, &said).await;
            assert_eq!(refused.status, 400, "{family:?} {said}: {}", refused.text);
            assert_eq!(started(&server, &session).await, 0, "{family:?} {said}");
        }
        assert!(counted(family, &answer(family, &server, &session, &id, &yes(family)).await), "{family:?}: still open");
        over(&server, &session, 1).await;
        assert_eq!(started(&server, &session).await, 1, "{family:?}");
    }
    Ok(())
}

#[tokio::test]
async fn s11_s25_an_answer_to_nothing_is_none_and_one_counts_once() -> anyhow::Result<()> {
    let server = asking().await;
    for family in FAMILIES {
        let session = family.begin(&server).await;
        let id = asked(family, &server, &session).await?;
        let nobody = format!("adk-{}", Uuid::now_v7());
        let stated = match family {
            Family::Goose => 404,
            Family::Adk => 400,
        };
        for unknown in ["x", "", nobody.as_str(), "0198c0de-0000-7000-8000-000000000009"] {
            let refused = answer(family, &server, &session, unknown, &yes(family)).await;
            assert_eq!(refused.status, stated, "{family:?} {unknown}: {}", refused.text);
        }
        assert_eq!(started(&server, &session).await, 0, "{family:?}");
        let elsewhere = family.begin(&server).await;
        let refused = answer(family, &server, &elsewhere, &id, &yes(family)).await;
        assert_eq!(refused.status, stated, "{family:?}: a question of another session: {}", refused.text);
        assert!(counted(family, &answer(family, &server, &session, &id, &yes(family)).await), "{family:?}");
        over(&server, &session, 1).await;
        for _ in 0..2 {
            assert!(!counted(family, &answer(family, &server, &session, &id, &yes(family)).await), "{family:?}");
        }
        assert_eq!(started(&server, &session).await, 1, "{family:?}");
    }
    Ok(())
}

#[tokio::test]
async fn s17_what_was_asked_in_a_cancelled_run_takes_no_answer() -> anyhow::Result<()> {
    let server = asking().await;
    for family in FAMILIES {
        let session = family.begin(&server).await;
        let id = asked(family, &server, &session).await?;
        let log = server.server.launch.export(&session).await?;
        let run = log.iter().find_map(|entry| entry.run).context("no run")?;
        let cancelled = match family {
            Family::Goose => {
                let path = format!("/sessions/{session}/cancel");
                server.post(family, &path, &json!({ "request_id": run })).await.status
            }
            // ADK has no word for it: another door says it.
            Family::Adk => server.post(family, &format!("/runs/{run}/cancel"), &Value::Null).await.status,
        };
        assert!(cancelled < 300, "{family:?}: {cancelled}");
        over(&server, &session, 1).await;
        assert!(!counted(family, &answer(family, &server, &session, &id, &yes(family)).await), "{family:?}");
        assert_eq!(started(&server, &session).await, 0, "{family:?}");
        if family == Family::Adk {
            let history = family.history(&server, &session).await;
            assert!(history.to_string().contains("INVOCATION_ABORTED"), "it ends aborted: {history}");
        }
    }
    Ok(())
}
