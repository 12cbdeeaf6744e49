//! `gander proxy adk`: an ADK server whose agent is a goosed, against one on loopback.
//!
//! The tests with names in capitals are those that the proxy's plan (adk2goose, section 7.2) asks for.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, non_snake_case)]

mod pinned;
mod shapes;
mod test_server;

use std::time::Duration;

use gander_testkit::goosed::{Goosed, Step, asks, calls, finishes, gives, says};
use reqwest::Method;
use serde_json::{Value, json};

use test_server::{Proxy, errors, functions, text};

#[tokio::test]
async fn TestStartSession() {
    let goose = Goosed::start(Some("hush")).await.unwrap();
    let proxy = Proxy::open(&goose, &[]).await;
    let session = proxy.session("s1").await;
    assert_eq!((&session["id"], &session["appName"]), (&json!("s1"), &json!("any_app")));
    assert_eq!(goose.heard("POST /agent/start"), [json!({"working_dir": "/srv/goose"})]);
}

#[tokio::test]
async fn TestRunSSE_SimpleText() {
    let goose = Goosed::start(Some("hush")).await.unwrap();
    let proxy = Proxy::open(&goose, &[]).await;
    proxy.session("s1").await;
    goose.will_reply(vec![says("he"), says("llo"), finishes(12, 3)]);
    let events = proxy.run_sse("s1", json!([{"text": "hi"}])).await;
    assert_eq!(text(&events), "hello", "{events:?}");
    let used = events.iter().find_map(|event| event.get("usageMetadata").filter(|usage| !usage.is_null())).unwrap();
    assert_eq!((&used["promptTokenCount"], &used["candidatesTokenCount"]), (&json!(12), &json!(3)));
    let said = &goose.heard("POST /reply")[0]["user_message"]["content"];
    assert_eq!(said, &json!([{"type": "text", "text": "hi"}]));
}

#[tokio::test]
async fn TestRunSSE_ToolCall() {
    let goose = Goosed::start(Some("hush")).await.unwrap();
    let proxy = Proxy::open(&goose, &[]).await;
    proxy.session("s1").await;
    let arguments = json!({"command": "ls"});
    goose.will_reply(vec![calls("call_1", "shell", &arguments), gives("call_1", "a.txt"), says("one"), finishes(1, 1)]);
    let events = proxy.run_sse("s1", json!([{"text": "what is here?"}])).await;
    let called = functions(&events, "functionCall");
    assert_eq!((&called[0]["name"], &called[0]["args"]), (&json!("shell"), &arguments), "{events:?}");
    let answered = functions(&events, "functionResponse");
    assert_eq!(answered[0]["id"], called[0]["id"]);
    assert!(answered[0]["response"].to_string().contains("a.txt"), "{answered:?}");
}

#[tokio::test]
async fn TestRunSSE_StreamCancel() {
    let goose = Goosed::start(Some("hush")).await.unwrap();
    let proxy = Proxy::open(&goose, &[]).await;
    proxy.session("s1").await;
    goose.will_reply(vec![says("working"), Step::Hang]);
    let mut stream = proxy.open_stream("s1", json!([{"text": "go"}])).await;
    stream.until("working").await;
    drop(stream);
    goose.is_left(1).await;
}

#[tokio::test]
async fn TestErrorTranslation_429() {
    let goose = Goosed::start(Some("hush")).await.unwrap();
    let proxy = Proxy::open(&goose, &[]).await;
    proxy.session("s1").await;
    goose.will_fail("POST /reply", &[429]);
    assert_eq!(text(&proxy.run_sse("s1", json!([{"text": "first"}])).await), "first");
    goose.will_fail("POST /reply", &[429; 4]);
    let events = proxy.run_sse("s1", json!([{"text": "second"}])).await;
    assert!(errors(&events).contains("Goose rate limit exceeded"), "{events:?}");
    assert_eq!(goose.heard("POST /reply").len(), 6, "one more, then three more");
}

#[tokio::test]
async fn TestErrorTranslation_500() {
    let goose = Goosed::start(Some("hush")).await.unwrap();
    let proxy = Proxy::open(&goose, &[]).await;
    proxy.session("s1").await;
    goose.will_fail("POST /reply", &[500]);
    let events = proxy.run_sse("s1", json!([{"text": "hi"}])).await;
    assert!(errors(&events).contains("Goose internal error"), "{events:?}");
    assert_eq!(goose.heard("POST /reply").len(), 1, "it is not asked again");
}

#[tokio::test]
async fn TestSessionMapping() {
    let goose = Goosed::start(Some("hush")).await.unwrap();
    let proxy = Proxy::open(&goose, &[]).await;
    for name in ["s1", "s2", "s3"] {
        proxy.session(name).await;
    }
    for name in ["s3", "s1", "s2", "s1"] {
        proxy.run_sse(name, json!([{"text": name}])).await;
    }
    let pairs: Vec<(Value, Value)> = goose
        .heard("POST /reply")
        .into_iter()
        .map(|body| (body["user_message"]["content"][0]["text"].clone(), body["session_id"].clone()))
        .collect();
    let expected = [("s3", "20261116_3"), ("s1", "20261116_1"), ("s2", "20261116_2"), ("s1", "20261116_1")];
    assert_eq!(pairs, expected.map(|(name, session)| (json!(name), json!(session))));
    let (status, listed) = proxy.get("/apps/any_app/users/anna/sessions").await;
    assert_eq!((status, listed.as_array().map(Vec::len)), (200, Some(3)));
}

#[tokio::test]
async fn the_mapping_survives_a_restart_and_ends_with_the_session() {
    let goose = Goosed::start(Some("hush")).await.unwrap();
    let proxy = Proxy::open(&goose, &[]).await;
    proxy.session("s1").await;
    let proxy = proxy.restart(&goose).await;
    assert_eq!(text(&proxy.run_sse("s1", json!([{"text": "again"}])).await), "again");
    assert_eq!(goose.heard("POST /agent/start").len(), 1);
    assert_eq!(goose.heard("POST /agent/resume")[0]["session_id"], "20261116_1");
    let (status, _) = proxy.send(Method::DELETE, "/apps/any_app/users/anna/sessions/s1", None).await;
    assert_eq!(status, 200);
    assert_eq!(goose.heard("POST /agent/stop"), [json!({"session_id": "20261116_1"})]);
}

#[tokio::test]
async fn a_confirmation_ends_the_stream_and_its_answer_goes_on_with_the_run() {
    let goose = Goosed::start(Some("hush")).await.unwrap();
    let proxy = Proxy::open(&goose, &[]).await;
    proxy.session("s1").await;
    let steps = vec![
        calls("c1", "shell", &json!({})),
        asks("c1", "shell"),
        Step::Confirmed,
        gives("c1", "ok"),
        says("done"),
        finishes(1, 1),
    ];
    goose.will_reply(steps);
    let events = proxy.run_sse("s1", json!([{"text": "go"}])).await;
    let wanted = functions(&events, "functionCall");
    let asked =
        wanted.iter().find(|call| call["name"] == "adk_request_confirmation").unwrap_or_else(|| panic!("{events:?}"));
    let answer = json!([{"functionResponse": {
        "id": asked["id"], "name": "adk_request_confirmation", "response": {"confirmed": true}}}]);
    let events = proxy.run_sse("s1", answer).await;
    assert_eq!(text(&events), "done", "{events:?}");
    assert_eq!(goose.heard("POST /action-required/tool-confirmation")[0]["action"], "allow_once");
}

#[tokio::test]
async fn what_a_function_gave_goes_to_goose_under_its_own_id() {
    let goose = Goosed::start(Some("hush")).await.unwrap();
    let proxy = Proxy::open(&goose, &[]).await;
    proxy.session("s1").await;
    goose.will_reply(vec![calls("call_7", "lookup", &json!({})), gives("call_7", "pending"), finishes(1, 1)]);
    let events = proxy.run_sse("s1", json!([{"text": "look it up"}])).await;
    let call = functions(&events, "functionCall").remove(0);
    let answer = json!([{"functionResponse": {"id": call["id"], "name": "lookup", "response": {"found": 42}}}]);
    proxy.run_sse("s1", answer).await;
    let told = &goose.heard("POST /reply")[1]["user_message"]["content"][0];
    assert_eq!((&told["type"], &told["id"]), (&json!("toolResponse"), &json!("call_7")), "{told}");
    assert_eq!(told["toolResult"]["value"]["structuredContent"], json!({"found": 42}));
}

#[tokio::test]
async fn the_run_config_goes_to_the_provider() {
    let goose = Goosed::start(Some("hush")).await.unwrap();
    let proxy = Proxy::open(&goose, &[]).await;
    proxy.session("s1").await;
    let config = json!({"model": "openai/gpt-5", "generationConfig": {"temperature": 0.5}});
    proxy.run_with("s1", json!([{"text": "hi"}]), json!({"runConfig": config})).await;
    let told = json!({
        "session_id": "20261116_1", "provider": "openai", "model": "gpt-5", "request_params": {"temperature": 0.5},
    });
    assert_eq!(goose.heard("POST /agent/update_provider"), [told]);
}

#[tokio::test]
async fn artifacts_are_what_goose_keeps() {
    let goose = Goosed::start(Some("hush")).await.unwrap();
    let proxy = Proxy::open(&goose, &[]).await;
    proxy.session("s1").await;
    let base = "/apps/any_app/users/anna/sessions/s1/artifacts";
    assert_eq!(proxy.get(base).await, (200, json!(["goose-session.json"])));
    let (status, export) = proxy.get(&format!("{base}/goose-session.json")).await;
    assert_eq!(status, 200, "{export}");
    let file: Value = serde_json::from_str(export["text"].as_str().unwrap()).unwrap();
    assert_eq!(file["id"], "20261116_1");
    let (status, resource) = proxy.get(&format!("{base}/resource:apps:ui%3A%2F%2Fclock")).await;
    assert_eq!((status, &resource["text"]), (200, &json!(r#"resource "ui://clock""#)));
    let (status, picture) = proxy.get(&format!("{base}/resource:apps:ui%3A%2F%2Fclock.png")).await;
    assert_eq!((status, &picture["inlineData"]), (200, &json!({"mimeType": "image/png", "data": "aGk="})), "{picture}");
    assert_eq!(proxy.get(&format!("{base}/nothing")).await.0, 404);
}

#[tokio::test]
async fn a_cut_stream_gives_what_came_and_an_error() {
    let goose = Goosed::start(Some("hush")).await.unwrap();
    let proxy = Proxy::open(&goose, &[]).await;
    proxy.session("s1").await;
    goose.will_reply(vec![says("half"), Step::Cut]);
    let events = proxy.run_sse("s1", json!([{"text": "go"}])).await;
    assert!(text(&events).contains("half"), "{events:?}");
    assert!(errors(&events).contains("broke off"), "{events:?}");
}

#[tokio::test]
async fn troubles_of_goose_are_told_apart() {
    let goose = Goosed::start(Some("hush")).await.unwrap();
    let proxy = Proxy::open(&goose, &[("GOOSE_SECRET_KEY", "wrong")]).await;
    let refused = proxy.send(Method::POST, "/run_sse", Some(run_body("s1", "hi"))).await;
    assert_eq!(refused.0, 401, "{}", refused.1);
    assert!(refused.1.to_string().contains("Goose authentication failed"), "{}", refused.1);
    let proxy = Proxy::open(&goose, &[]).await;
    proxy.session("s1").await;
    goose.forget();
    let events = proxy.run_sse("s1", json!([{"text": "hi"}])).await;
    assert!(errors(&events).contains("Goose session not found"), "{events:?}");
    // The stand-in repeats what it hears first: what was said to the session that is gone.
    let answer = text(&proxy.run_sse("s1", json!([{"text": "anew"}])).await);
    assert!(answer.contains("User: hi"), "the mapping was cleared: {answer}");
    let replies = goose.heard("POST /reply");
    let content = replies.last().unwrap()["user_message"]["content"].as_array().unwrap().clone();
    assert_eq!(content.last().unwrap()["text"], "anew", "{content:?}");
    goose.will_fail("POST /reply", &[503]);
    let events = proxy.run_sse("s1", json!([{"text": "hi"}])).await;
    assert!(errors(&events).contains("Goose is unavailable"), "{events:?}");
}

#[tokio::test]
async fn a_key_for_clients_is_asked_for_where_one_is_set() {
    let goose = Goosed::start(Some("hush")).await.unwrap();
    let proxy = Proxy::open(&goose, &[("PROXY_API_KEY", "knock")]).await;
    let list = "/list-apps";
    assert_eq!(proxy.get(list).await.0, 401);
    for (name, value, status) in
        [("x-api-key", "knock", 200), ("authorization", "Bearer knock", 200), ("x-api-key", "wrong", 401)]
    {
        let found = proxy.request(Method::GET, list).header(name, value).send().await.unwrap().status();
        assert_eq!(found.as_u16(), status, "{name}: {value}");
    }
}

#[tokio::test]
async fn signs_of_life_keep_a_slow_turn_alive() {
    let goose = Goosed::start(Some("hush")).await.unwrap();
    let proxy = Proxy::open(&goose, &[("REQUEST_TIMEOUT", "2s")]).await;
    proxy.session("s1").await;
    goose.will_reply(vec![Step::Alive(Duration::from_secs(4)), says("late"), finishes(1, 1)]);
    assert_eq!(text(&proxy.run_sse("s1", json!([{"text": "go"}])).await), "late");
}

fn run_body(session: &str, text: &str) -> Value {
    json!({
        "appName": "any_app", "userId": "anna", "sessionId": session,
        "newMessage": {"role": "user", "parts": [{"text": text}]},
    })
}

#[tokio::test]
async fn a_session_that_goose_does_not_start_is_none() {
    let path = "/apps/any_app/users/anna/sessions/s1";
    let goose = Goosed::start(Some("hush")).await.unwrap();
    let wrong = Proxy::open(&goose, &[("GOOSE_SECRET_KEY", "wrong")]).await;
    let (status, refused) = wrong.send(Method::POST, path, Some(json!({}))).await;
    assert_eq!(status, 401, "{refused}");
    assert!(refused["detail"].as_str().unwrap().contains("Goose authentication failed"), "{refused}");
    let proxy = Proxy::open(&goose, &[]).await;
    goose.will_fail("POST /agent/start", &[503]);
    let (status, refused) = proxy.send(Method::POST, path, Some(json!({}))).await;
    assert_eq!(status, 503, "{refused}");
    assert!(refused["detail"].as_str().unwrap().contains("Goose is unavailable"), "{refused}");
    assert_eq!(proxy.get(path).await.0, 404, "nothing is left of it");
    proxy.session("s1").await;
    let nowhere = Proxy::open(&goose, &[("GOOSE_BASE_URL", "http://127.0.0.1:1")]).await;
    let (status, refused) = nowhere.send(Method::POST, path, Some(json!({}))).await;
    assert_eq!(status, 503, "goose is down: {refused}");
}

#[tokio::test]
async fn a_run_fails_with_the_status_that_says_why() {
    let goose = Goosed::start(Some("hush")).await.unwrap();
    let proxy = Proxy::open(&goose, &[]).await;
    proxy.session("s1").await;
    let run = async || proxy.send(Method::POST, "/run", Some(run_body("s1", "hi"))).await;
    for (statuses, expected, text) in [
        (vec![401], 401, "Goose authentication failed"),
        (vec![429; 4], 429, "Goose rate limit exceeded"),
        (vec![503], 503, "Goose is unavailable"),
        (vec![500], 500, "Goose internal error"),
    ] {
        goose.will_fail("POST /reply", &statuses);
        let (status, answer) = run().await;
        assert_eq!(status, expected, "{answer}");
        assert!(answer["detail"].as_str().unwrap().contains(text), "{answer}");
    }
    goose.forget();
    let (status, answer) = run().await;
    assert_eq!(status, 404, "{answer}");
    assert!(answer["detail"].as_str().unwrap().contains("Goose session not found"), "{answer}");
    assert_eq!(run().await.0, 200, "the next run begins another session");
}

#[tokio::test]
async fn a_recipe_is_passed_on() {
    let goose = Goosed::start(Some("hush")).await.unwrap();
    let proxy = Proxy::open(&goose, &[]).await;
    let recipe = json!({"title": "Greet", "description": "Greets", "prompt": "say hello"});
    let body = json!({"state": {"recipe": recipe}});
    let (status, made) = proxy.send(Method::POST, "/apps/any_app/users/anna/sessions", Some(body)).await;
    assert_eq!(status, 200, "{made}");
    assert_eq!(goose.heard("POST /agent/start"), [json!({"working_dir": "/srv/goose", "recipe": recipe})]);
}

#[tokio::test]
async fn goose_s_own_sessions_are_listed_and_gone_on_with_by_the_user_that_the_setting_names() {
    let goose = Goosed::start(Some("hush")).await.unwrap();
    goose.has_session("own_1");
    let hidden = Proxy::open(&goose, &[]).await;
    assert_eq!(hidden.get("/apps/any_app/users/anna/sessions").await, (200, json!([])), "nobody sees them by default");
    assert_eq!(hidden.get("/apps/any_app/users/anna/sessions/own_1").await.0, 404);

    let proxy = Proxy::open(&goose, &[("GOOSE_SESSIONS_USER", "anna")]).await;
    proxy.session("s1").await;
    let listed = async |user: &str| {
        let (status, listed) = proxy.get(&format!("/apps/any_app/users/{user}/sessions")).await;
        assert_eq!(status, 200, "{listed}");
        listed.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(listed("anna").await, ["s1", "own_1"], "one that stands behind ours is not listed twice");
    assert!(listed("bert").await.is_empty());
    assert_eq!(proxy.get("/apps/any_app/users/bert/sessions/own_1").await.0, 404);
    assert_eq!(proxy.get("/apps/any_app/users/anna/sessions/none").await.0, 404);

    let (status, session) = proxy.get("/apps/any_app/users/anna/sessions/own_1").await;
    assert_eq!(status, 200, "{session}");
    assert!(session["events"].to_string().contains("a session of goose's own"), "{session}");
    assert_eq!(text(&proxy.run_sse("own_1", json!([{"text": "go on"}])).await), "go on");
    assert_eq!(goose.heard("POST /reply")[0]["session_id"], "own_1");
    assert_eq!(listed("anna").await, ["s1", "own_1"]);
}

#[tokio::test]
async fn tools_of_goose_are_declared_once_there_is_a_session() {
    let goose = Goosed::start(Some("hush")).await.unwrap();
    let proxy = Proxy::open(&goose, &[]).await;
    let tools = async || {
        let (status, info) = proxy.get("/apps/any_app/app-info").await;
        assert_eq!(status, 200, "{info}");
        info["agents"]["goose"]["tools"].clone()
    };
    assert_eq!(tools().await, json!([]), "goose lists them for a session alone");
    proxy.session("s1").await;
    let declared = json!([{ "functionDeclarations": [{
        "name": "developer__shell",
        "description": "Runs a command",
        "parametersJsonSchema": { "type": "object", "properties": { "command": {} } },
    }] }]);
    assert_eq!(tools().await, declared);
}
