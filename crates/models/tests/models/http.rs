//! Models behind a real socket: retries, time-outs, refusals, cancel.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use gander_domain::{DeltaKind, Message, MessageId, Role};
use gander_models::{
    Catalogue, Limits, Model, ModelError, ModelEvent, ModelStop, Request, Retry, Timeouts, connect_with,
};
use uuid::Uuid;

use crate::server::{Answer, Server, hanging, ok, status};

const KEY: &str = "sk-very-secret";
const TEXT: &str = include_str!("streams/chat_text.sse");

fn request() -> Request {
    let message = Message::text(MessageId::new(Uuid::nil()), Role::User, "hi");
    Request {
        system: String::new(),
        messages: vec![Arc::new(message)],
        tools: Arc::new([]),
        effort: None,
        temperature: None,
        max_output: None,
        params: serde_json::Map::new(),
    }
}

fn patience() -> Timeouts {
    let limits = Limits {
        header: Duration::from_millis(200),
        idle: Duration::from_millis(200),
        silence: Duration::from_millis(200),
        bytes: 10_000,
        ..Limits::default()
    };
    Timeouts { limits, retry: Retry { attempts: 3, base: Duration::from_millis(1), longest: Duration::from_secs(5) } }
}

/// An OpenAI-compatible model at this server.
fn model(server: &Server) -> Arc<dyn Model> {
    named("openai/gpt-4o", &[("OPENAI_BASE_URL", format!("{}/v1", server.url)), ("OPENAI_API_KEY", KEY.into())])
}

fn named(name: &str, variables: &[(&str, String)]) -> Arc<dyn Model> {
    rustls::crypto::ring::default_provider().install_default().ok();
    let lookup = |key: &str| variables.iter().find(|(name, _)| *name == key).map(|(_, value)| value.clone());
    connect_with(&Catalogue::built_in(), name, &lookup, patience()).unwrap()
}

async fn answer(model: &dyn Model) -> (String, Option<ModelStop>, Option<ModelError>) {
    let mut stream = match model.stream(request()).await {
        Ok(stream) => stream,
        Err(error) => return (String::new(), None, Some(error)),
    };
    let (mut text, mut stop) = (String::new(), None);
    while let Some(batch) = stream.next_batch().await {
        let events = match batch {
            Ok(events) => events,
            Err(error) => return (text, stop, Some(error)),
        };
        for event in events {
            match event {
                ModelEvent::Delta(delta) if delta.growth == DeltaKind::Text => text += &delta.text,
                ModelEvent::Done(finish) => stop = Some(finish.stop),
                ModelEvent::Delta(_)
                | ModelEvent::ToolStarted { .. }
                | ModelEvent::ToolArguments { .. }
                | ModelEvent::Part(_) => {}
            }
        }
    }
    (text, stop, None)
}

fn hello() -> (String, Option<ModelStop>, Option<ModelError>) {
    ("Hello".into(), Some(ModelStop::EndTurn), None)
}

#[tokio::test]
async fn a_compatible_server_is_asked_as_one() {
    let server = Server::start(vec![ok(TEXT)]).await;
    assert_eq!(answer(model(&server).as_ref()).await, hello());
    let asked = server.requests().remove(0);
    assert!(asked.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{asked}");
    assert!(asked.contains("authorization: Bearer sk-very-secret\r\n"), "{asked}");
    assert!(asked.ends_with(
        r#"{"model":"gpt-4o","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}"#
    ));
}

#[tokio::test]
async fn anthropic_gets_its_headers() {
    let server = Server::start(vec![ok(include_str!("streams/anthropic_tools.sse"))]).await;
    let url = format!("{}/v1", server.url);
    let model = named("anthropic/x", &[("ANTHROPIC_BASE_URL", url), ("ANTHROPIC_API_KEY", KEY.into())]);
    assert_eq!(answer(model.as_ref()).await, ("Let me see\t🪿.".into(), Some(ModelStop::ToolUse), None));
    let asked = server.requests().remove(0);
    assert!(asked.starts_with("POST /v1/messages HTTP/1.1\r\n"), "{asked}");
    assert!(asked.contains("x-api-key: sk-very-secret\r\n") && asked.contains("anthropic-version: 2023-06-01\r\n"));
}

#[tokio::test]
async fn one_connection_serves_many_calls() {
    let server = Server::start(vec![ok(TEXT), ok(TEXT), ok(TEXT)]).await;
    let model = model(&server);
    for _ in 0..3 {
        assert_eq!(answer(model.as_ref()).await, hello());
        // The end of a body is read behind the answer's back.
        tokio::task::yield_now().await;
    }
    assert_eq!((server.requests().len(), server.connections()), (3, 1));
}

#[tokio::test]
async fn trouble_is_tried_again_as_the_provider_asks() {
    let busy = status("429 Too Many Requests", "retry-after: 0\r\n", r#"{"error":{"message":"slow"}}"#);
    let server = Server::start(vec![busy, status("503 X", "", ""), ok(TEXT)]).await;
    assert_eq!(answer(model(&server).as_ref()).await, hello());
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn attempts_have_an_end_and_a_long_wait_is_reported_instead() {
    let server = Server::start((0..5).map(|_| status("500 X", "", "oops")).collect()).await;
    let message = "openai returned HTTP 500: oops".to_owned();
    let error = ModelError::Overloaded { message, retry_after: None };
    assert_eq!(answer(model(&server).as_ref()).await, (String::new(), None, Some(error)));
    assert_eq!(server.requests().len(), 3);

    let server = Server::start(vec![status("429 X", "retry-after: 3600\r\n", "")]).await;
    let message = "rate limited by openai (HTTP 429): no explanation given".to_owned();
    let error = ModelError::RateLimited { message, retry_after: Some(Duration::from_secs(3600)) };
    assert_eq!(answer(model(&server).as_ref()).await, (String::new(), None, Some(error)));
}

#[tokio::test]
async fn an_error_before_the_first_event_is_tried_again_and_one_after_it_is_not() {
    let error = "data: {\"error\":{\"message\":\"Overloaded\",\"code\":503}}\n\n";
    let server = Server::start(vec![ok(error), ok(TEXT)]).await;
    assert_eq!(answer(model(&server).as_ref()).await, hello());

    let broken = TEXT.split_inclusive("\n\n").next().unwrap().to_owned() + error;
    let server = Server::start(vec![ok(&broken), ok(TEXT)]).await;
    let message = "openai had trouble in the middle of its answer: Overloaded".to_owned();
    let error = ModelError::Overloaded { message, retry_after: None };
    assert_eq!(answer(model(&server).as_ref()).await, ("Hel".into(), None, Some(error)));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_refused_key_is_told_without_the_key() {
    let body = format!(r#"{{"error":{{"message":"bad key {KEY}","type":"invalid_request_error"}}}}"#);
    let server = Server::start(vec![status("401 Unauthorized", "", &body)]).await;
    let (_, _, error) = answer(model(&server).as_ref()).await;
    let told = "openai did not accept the key, check OPENAI_API_KEY (HTTP 401): bad key ***";
    assert_eq!(error, Some(ModelError::Unauthorized(told.into())));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn refusals_are_told_apart() {
    let long = r#"{"error":{"code":"context_length_exceeded","message":"too long"}}"#;
    let quota = r#"{"error":{"code":"insufficient_quota","message":"pay"}}"#;
    let moved = status("301 X", "location: https://elsewhere.example/\r\n", "");
    let answers = vec![status("400 X", "", long), status("429 X", "", quota), moved, status("400 X", "", "[{}]")];
    let server = Server::start(answers).await;
    let model = model(&server);
    let mut errors = Vec::new();
    for _ in 0..4 {
        errors.push(answer(model.as_ref()).await.2.unwrap());
    }
    let url = format!("{}/v1/chat/completions", server.url);
    let wanted = [
        ModelError::ContextTooLong(
            "openai says the conversation does not fit into the model's window (HTTP 400): too long".into(),
        ),
        ModelError::NoCredit("openai wants the account to be topped up (HTTP 429): pay".into()),
        ModelError::NotFound(format!(
            "openai points elsewhere, check the base URL, asked {url} (HTTP 301): no explanation given"
        )),
        ModelError::BadRequest("openai did not accept the request (HTTP 400): {}".into()),
    ];
    assert_eq!(errors, wanted);
}

#[tokio::test]
async fn a_web_page_and_a_closed_door_are_named() {
    let page = || Answer::raw("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n<html>\n\n\n");
    let server = Server::start(vec![page(), page(), page()]).await;
    let told = answer(model(&server).as_ref()).await.2.unwrap().to_string();
    assert_eq!(told, "expected a stream of events but got a web page, is the base URL right? it begins: <html>");

    let url = Server::closed().await;
    let model = named("openai/m", &[("OPENAI_BASE_URL", url.clone())]);
    let told = answer(model.as_ref()).await.2.unwrap().to_string();
    assert!(told.starts_with(&format!("cannot reach openai at {url}/chat/completions: no connection: ")), "{told}");
}

#[tokio::test]
async fn silence_has_an_end() {
    let server =
        Server::start(vec![Answer::raw(""), Answer::raw(""), Answer::raw("")].into_iter().map(hanging).collect());
    let error = ModelError::TimedOut("openai did not begin to answer in time, seconds: 0.2".into());
    assert_eq!(answer(model(&server.await).as_ref()).await.2, Some(error));

    let first = TEXT.split_inclusive("\n\n").next().unwrap();
    let server = Server::start(vec![hanging(ok(first))]).await;
    let error = ModelError::Idle("openai began to answer and then fell silent, seconds: 0.2".into());
    assert_eq!(answer(model(&server).as_ref()).await, ("Hel".into(), None, Some(error)));
}

#[tokio::test]
async fn an_endless_answer_has_an_end() {
    let first = TEXT.split_inclusive("\n\n").next().unwrap();
    let server = Server::start(vec![ok(&first.repeat(1000))]).await;
    let error = answer(model(&server).as_ref()).await.2;
    assert_eq!(error, Some(ModelError::BadStream("the answer of openai does not end, bytes allowed: 10000".into())));
}

#[tokio::test]
async fn a_torn_connection_is_told() {
    let first = TEXT.split_inclusive("\n\n").next().unwrap();
    let server =
        Server::start(vec![Answer::raw(&format!("HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n{first}"))]).await;
    let (text, stop, error) = answer(model(&server).as_ref()).await;
    assert_eq!((text.as_str(), stop), ("Hel", None));
    assert!(matches!(error, Some(ModelError::Network(_))), "{error:?}");
}

#[tokio::test]
async fn dropping_the_stream_closes_the_connection_at_once() {
    let first = TEXT.split_inclusive("\n\n").next().unwrap();
    let mut server = Server::start(vec![hanging(ok(first))]).await;
    let mut stream = model(&server).stream(request()).await.unwrap();
    assert!(stream.next_batch().await.unwrap().is_ok());
    drop(stream);
    server.hung_up().await;
}

#[tokio::test]
async fn nothing_shows_the_key() {
    let server = Server::start(vec![]).await;
    let endpoint = gander_models::Endpoint {
        wire: gander_models::wire::Wire::OpenaiChat,
        url: server.url.clone(),
        auth: gander_models::Auth::Bearer,
        key: Some(KEY.into()),
        headers: Vec::new(),
        key_variables: Vec::new(),
    };
    assert!(!format!("{endpoint:?}").contains(KEY));
}
