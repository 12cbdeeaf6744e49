//! The routes of the goosed that tests talk to, as strict about input as 1.35 was.

use std::io;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::{Heard, Shared, Step, finishes, says};
use crate::upstream::{HEAD, Request, framed, whole};

/// Between two signs of life.
const PING: Duration = Duration::from_millis(20);

/// Answers one request.
pub(super) async fn answer(stream: &mut TcpStream, request: &Request, shared: &Shared) -> io::Result<()> {
    let body: Value = serde_json::from_str(&request.body).unwrap_or_default();
    let route: String = request.line.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    let (wanted, fault) = {
        let mut state = shared.lock();
        state.heard.push(Heard { route: route.clone(), body: body.clone() });
        (state.key.clone(), state.faults.get_mut(&route).and_then(std::collections::VecDeque::pop_front))
    };
    shared.changed.notify_waiters();
    if route != "GET /status" && wanted.is_some() && secret(request) != wanted {
        return whole(stream, 401, "").await;
    }
    if let Some(status) = fault {
        return whole(stream, status, r#"{"message":"told to fail"}"#).await;
    }
    if route == "POST /reply" {
        return reply(stream, &body, shared).await;
    }
    let (status, value) = ordinary(&route, &body, shared);
    whole(stream, status, &value.map_or_else(String::new, |value| value.to_string())).await
}

fn secret(request: &Request) -> Option<String> {
    let mut fields = request.head.lines().filter_map(|line| line.split_once(':'));
    let value = fields.find(|(name, _)| name.eq_ignore_ascii_case("x-secret-key"))?.1;
    Some(value.trim().to_owned())
}

fn ordinary(route: &str, body: &Value, shared: &Shared) -> (u16, Option<Value>) {
    let named = |body: &Value| {
        let id = body["session_id"].as_str().or_else(|| body["sessionId"].as_str()).unwrap_or_default();
        shared.lock().sessions.iter().find(|(known, _)| known == id).map(|(id, folder)| session(id, folder))
    };
    let known = |answer: Option<Value>| match named(body) {
        Some(_) => (200, answer),
        None => (404, Some(json!({"message": "Session not found"}))),
    };
    match route {
        "GET /status" => (200, Some(json!("ok"))),
        "POST /agent/start" => (200, Some(start(body, shared))),
        "POST /agent/resume" => match named(body) {
            Some(session) => (200, Some(json!({"session": session, "extension_results": []}))),
            None => (404, Some(json!({"message": "Session not found"}))),
        },
        "POST /agent/stop" | "POST /agent/update_provider" | "POST /agent/update_session" => known(None),
        "POST /action-required/tool-confirmation" | "POST /confirm" => {
            shared.change(|state| state.confirmed += 1);
            known(Some(json!({})))
        }
        "POST /agent/read_resource" => {
            let uri = &body["uri"];
            if uri.as_str().is_some_and(|uri| uri.ends_with(".png")) {
                return known(Some(json!({"uri": uri, "mimeType": "image/png", "blob": "aGk="})));
            }
            known(Some(json!({"uri": uri, "mimeType": "text/plain", "text": format!("resource {}", body["uri"])})))
        }
        "GET /sessions" => {
            let sessions: Vec<Value> = shared.lock().sessions.iter().map(|(id, folder)| session(id, folder)).collect();
            (200, Some(json!({"sessions": sessions})))
        }
        tools if tools.starts_with("GET /agent/tools?session_id=") => {
            let parameters = json!(["command"]);
            (
                200,
                Some(json!([{"name": "developer__shell", "description": "Runs a command", "parameters": parameters}])),
            )
        }
        _ => match route.strip_prefix("GET /sessions/").and_then(|rest| rest.strip_suffix("/export")) {
            Some(id) => export(id, shared),
            None => (404, None),
        },
    }
}

fn export(id: &str, shared: &Shared) -> (u16, Option<Value>) {
    let state = shared.lock();
    match state.sessions.iter().find(|(known, _)| known == id) {
        Some((id, folder)) => {
            let mut file = session(id, folder);
            if id.starts_with("own_") {
                let says = |role: &str, text: &str| json!({"role": role, "content": [{"type": "text", "text": text}]});
                file["conversation"] =
                    json!([says("user", "what is it?"), says("assistant", "a session of goose's own")]);
            }
            (200, Some(Value::String(file.to_string())))
        }
        None => (404, Some(json!({"message": "Session not found"}))),
    }
}

fn start(body: &Value, shared: &Shared) -> Value {
    let folder = body["working_dir"].as_str().unwrap_or_default().to_owned();
    let mut state = shared.lock();
    let started = state.heard.iter().filter(|heard| heard.route == "POST /agent/start").count();
    let id = format!("20261116_{started}");
    state.sessions.push((id.clone(), folder.clone()));
    session(&id, &folder)
}

fn session(id: &str, folder: &str) -> Value {
    json!({
        "id": id, "working_dir": folder, "name": "New Chat", "user_set_name": false, "session_type": "user",
        "created_at": "2026-11-16T00:00:00Z", "updated_at": "2026-11-16T00:00:00Z", "extension_data": {},
        "message_count": 0, "conversation": [], "provider_name": "openai", "goose_mode": "auto",
    })
}

/// Plays what was asked for, with a sign of life first.
async fn reply(stream: &mut TcpStream, body: &Value, shared: &Shared) -> io::Result<()> {
    let message = &body["user_message"];
    let complete = message["created"].is_i64()
        && message["content"].is_array()
        && message["metadata"]["userVisible"].is_boolean()
        && message["metadata"]["agentVisible"].is_boolean();
    if !complete {
        return whole(stream, 422, "Failed to deserialize the JSON body into the target type").await;
    }
    stream.write_all(HEAD.as_bytes()).await?;
    event(stream, &json!({"type": "Ping"})).await?;
    let first = &message["content"][0];
    if first["data"]["actionType"] == "elicitationResponse" {
        shared.change(|state| state.elicited += 1);
        return stream.write_all(b"0\r\n\r\n").await;
    }
    let session = body["session_id"].as_str().unwrap_or_default();
    if !shared.lock().sessions.iter().any(|(known, _)| known == session) {
        event(stream, &json!({"type": "Error", "error": "Failed to read session: Session not found"})).await?;
        return stream.write_all(b"0\r\n\r\n").await;
    }
    let echo = || vec![says(first["text"].as_str().unwrap_or("nothing")), finishes(12, 3)];
    let steps = shared.lock().replies.pop_front().unwrap_or_else(echo);
    let played = play(stream, steps, shared).await;
    if played.is_err() {
        shared.change(|state| state.left += 1);
    }
    played
}

async fn play(stream: &mut TcpStream, steps: Vec<Step>, shared: &Shared) -> io::Result<()> {
    let (confirmed, elicited) = {
        let state = shared.lock();
        (state.confirmed, state.elicited)
    };
    for step in steps {
        match step {
            Step::Event(value) => event(stream, &value).await?,
            Step::Confirmed => alive(stream, || shared.lock().confirmed > confirmed).await?,
            Step::Elicited => alive(stream, || shared.lock().elicited > elicited).await?,
            Step::Alive(time) => {
                let began = std::time::Instant::now();
                alive(stream, || began.elapsed() >= time).await?;
            }
            Step::Cut => return Err(io::ErrorKind::ConnectionAborted.into()),
            Step::Hang => alive(stream, || false).await?,
        }
    }
    stream.write_all(b"0\r\n\r\n").await
}

/// Gives signs of life until something holds, or the client has left.
async fn alive(stream: &mut TcpStream, holds: impl Fn() -> bool) -> io::Result<()> {
    while !holds() {
        event(stream, &json!({"type": "Ping"})).await?;
        tokio::time::sleep(PING).await;
    }
    Ok(())
}

async fn event(stream: &mut TcpStream, value: &Value) -> io::Result<()> {
    stream.write_all(framed(&format!("data: {value}\n\n")).as_bytes()).await
}
