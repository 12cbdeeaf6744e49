//! What the outer layer refuses, in the words of each protocol; and requests that two readers could read in two ways.
#![allow(clippy::unwrap_used)]

use gander_services::token;
use gander_testkit::conformance::ConformanceRecorder;
use reqwest::Method;
use secrecy::ExposeSecret;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::served::Served;
use crate::served::answer::Answer;

/// One protocol: where something is posted, a neighbour that is not there, a method that is not, and its words.
struct Protocol {
    name: &'static str,
    post: &'static str,
    nowhere: &'static str,
    wrong_method: (Method, &'static str),
    /// The status of a body that is no good JSON.
    bad_json: u16,
    is_spoken: fn(u16, &Value) -> bool,
}

const PROTOCOLS: [Protocol; 6] = [
    Protocol {
        name: "ACP-REST",
        post: "/runs",
        nowhere: "/runs/1/2/3",
        wrong_method: (Method::PATCH, "/runs"),
        bad_json: 422,
        is_spoken: |status, body| {
            let code = match status {
                404 => "not_found",
                429 | 500.. => "server_error",
                _ => "invalid_input",
            };
            body["code"] == code && body["message"].is_string() && body["data"]["reason"].is_string()
        },
    },
    Protocol {
        name: "A2A, JSON-RPC",
        post: "/a2a",
        nowhere: "",
        wrong_method: (Method::PATCH, ""),
        bad_json: 200,
        is_spoken: |_, body| {
            let error = &body["error"];
            body["jsonrpc"] == "2.0" && body["id"].is_null() && error["code"].is_i64() && error["data"].is_array()
        },
    },
    Protocol {
        name: "A2A, HTTP+JSON",
        post: "/a2a/message:send",
        nowhere: "/a2a/gander/1/2/3/4/5/6/7/8",
        wrong_method: (Method::PATCH, "/a2a/message:send"),
        bad_json: 400,
        is_spoken: |status, body| {
            let (error, details) = (&body["error"], &body["error"]["details"]);
            error["code"] == status && error["status"].is_string() && details[0]["reason"].is_string()
        },
    },
    Protocol {
        name: "ADK",
        post: "/run",
        nowhere: "/apps/a/b/c/d",
        wrong_method: (Method::PATCH, "/run"),
        bad_json: 422,
        is_spoken: |_, body| !body["detail"].is_null() && body["error"].is_string(),
    },
    Protocol {
        name: "goose",
        post: "/agent/start",
        nowhere: "/agent/nothing",
        wrong_method: (Method::PATCH, "/agent/start"),
        bad_json: 400,
        is_spoken: |_, body| body["message"].is_string(),
    },
    Protocol {
        name: "ACP",
        post: "/acp",
        nowhere: "/acp/nothing",
        wrong_method: (Method::PATCH, "/acp"),
        bad_json: 400,
        is_spoken: |_, body| body["jsonrpc"] == "2.0" && body["id"].is_null() && body["error"]["code"].is_i64(),
    },
];

/// What is asked, and how.
struct OuterRequest<'a> {
    token: &'a str,
    method: Method,
    path: &'a str,
    headers: &'a [(&'a str, &'a str)],
    body: Vec<u8>,
}

async fn ask(server: &Served, asked: OuterRequest<'_>) -> Answer {
    let request = server.client.request(asked.method, server.url(asked.path)).body(asked.body);
    let named = asked.headers.iter().any(|(name, _)| *name == "content-type");
    let request = if named { request } else { request.header("content-type", "application/json") };
    let request = asked.headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let request = if asked.token.is_empty() { request } else { request.bearer_auth(asked.token) };
    Answer::of(request.send().await.unwrap()).await
}

async fn post(server: &Served, token: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    ask(server, OuterRequest { token, method: Method::POST, path, headers, body: body.as_bytes().to_vec() }).await
}

fn expect(protocol: &Protocol, status: u16, answer: &Answer) {
    let what = format!("{} {status}: {} {}", protocol.name, answer.status, answer.text);
    assert_eq!(answer.status, status, "{what}");
    assert!((protocol.is_spoken)(status, &answer.json()), "{what}");
    assert_eq!(answer.headers["content-type"], "application/json", "{what}");
    let later = [429, 503].contains(&status);
    assert_eq!(answer.headers.contains_key("retry-after"), later, "{what}");
}

#[tokio::test]
async fn every_refusal_is_said_in_the_words_of_the_protocol_that_was_called() {
    let server = Served::with(&[], &[("GANDER_LIMITS_PROMPT_BODY", "1 KiB"), ("GANDER_LIMITS_BODY", "1 KiB")]).await;
    let reader = token::add_token(&server.config.paths, "reader", &[], None).unwrap();
    let (owner, reader) = (server.token.as_str(), reader.expose_secret());
    let deep = format!("{{\"x\":{}{}}}", "[".repeat(200), "]".repeat(200));
    for protocol in &PROTOCOLS {
        let path = protocol.post;
        let unauthorized = post(&server, "", path, &[], "{}").await;
        expect(protocol, 401, &unauthorized);
        assert!(unauthorized.headers.contains_key("www-authenticate"));
        // A2A lets whoever may read come in, and each of its methods asks for its own scope.
        if !protocol.name.starts_with("A2A") {
            expect(protocol, 403, &post(&server, reader, path, &[], "{}").await);
        }
        expect(protocol, 403, &post(&server, owner, path, &[("origin", "https://evil.example")], "{}").await);
        expect(protocol, 413, &post(&server, owner, path, &[], &"x".repeat(2_000)).await);
        for foreign in [("content-encoding", "gzip"), ("content-type", "application/json; charset=utf-16")] {
            expect(protocol, 415, &post(&server, owner, path, &[foreign], "{}").await);
        }
        for bad in [r#"{"a":{"b":1,"b":2}}"#, &deep] {
            expect(protocol, protocol.bad_json, &post(&server, owner, path, &[], bad).await);
        }
        let get = |method, path| OuterRequest { token: owner, method, path, headers: &[], body: Vec::new() };
        if !protocol.nowhere.is_empty() {
            expect(protocol, 404, &ask(&server, get(Method::GET, protocol.nowhere)).await);
            let (method, path) = protocol.wrong_method.clone();
            let answer = ask(&server, get(method, path)).await;
            expect(protocol, 405, &answer);
            assert!(answer.headers.contains_key("allow"), "{}", protocol.name);
        }
    }
    server.gateway.drain();
    for protocol in &PROTOCOLS {
        expect(protocol, 503, &post(&server, owner, protocol.post, &[], "{}").await);
    }
}

#[tokio::test]
async fn too_many_requests_are_said_in_the_words_of_the_protocol_that_was_called() {
    let few = [("GANDER_LIMITS_LOCAL_REQUESTS_PER_SECOND", "1"), ("GANDER_LIMITS_LOCAL_REQUEST_BURST", "1")];
    let server = Served::with(&[], &few).await;
    post(&server, &server.token, "/gander/nothing", &[], "").await;
    while server.get("/gander/status").await.status != 429 {}
    for protocol in &PROTOCOLS {
        let mut answer = post(&server, &server.token, protocol.post, &[], "{}").await;
        while answer.status != 429 {
            answer = post(&server, &server.token, protocol.post, &[], "{}").await;
        }
        expect(protocol, 429, &answer);
    }
    ConformanceRecorder::for_protocol("acp_rest").shows("error", "server_error", "429");
}

/// Sends bytes as they are and gives the status of what came, once the connection is closed.
async fn raw(server: &Served, request: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(request.replace("TOKEN", &server.token).as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let all = tokio::time::timeout(std::time::Duration::from_secs(5), stream.read_to_end(&mut answer));
    drop(all.await.unwrap_or_else(|_| panic!("it waits: {request}")));
    let answer = String::from_utf8_lossy(&answer).into_owned();
    (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
}

#[tokio::test]
async fn a_request_that_can_be_read_in_two_ways_is_refused_at_once() {
    let server = Served::with(&[], &[]).await;
    let head = "POST /runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer TOKEN\r\n";
    let both = ["Content-Length: 3\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nContent-Length: 3"];
    for lengths in both {
        let smuggled = format!("{head}{lengths}\r\n\r\n0\r\n\r\nGET /ping HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let (status, answer) = raw(&server, &smuggled).await;
        assert_eq!((status, answer.matches("HTTP/1.1 ").count()), (400, 1), "{answer}");
        assert!(answer.contains("\"invalid_input\""), "{answer}");
    }
    let endless = format!("{head}Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n{{");
    let (status, answer) = raw(&server, &endless).await;
    assert!(status == 400 && answer.contains("\"invalid_input\""), "{answer}");
    for coding in ["gzip, chunked", "identity, chunked", "chunked, chunked"] {
        let coded = format!("{head}Transfer-Encoding: {coding}\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n");
        let (status, answer) = raw(&server, &coded).await;
        assert!([400, 501].contains(&status), "{coding}: {answer}");
    }
    for host in ["127.0.0.1:1@evil.example", "localhost@evil.example", "localhost:1:2"] {
        let (status, _) =
            raw(&server, &format!("GET /ping HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")).await;
        assert_eq!(status, 400, "{host}");
    }
    let fine = format!("{head}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n");
    assert_eq!(raw(&server, &fine).await.0, 422);
}

/// Bodies that are right but for a name that stands twice, deep inside too: which of the two is meant?
const TWICE: [(&str, &str, &str); 9] = [
    (
        "ACP-REST",
        "/runs",
        r#"{"agent_name":"gander","input":[{"role":"user","role":"user","parts":[{"content":"x"}]}]}"#,
    ),
    (
        "ACP-REST",
        "/runs",
        r#"{"agent_name":"gander","mode":"sync","input":[{"role":"user","parts":[{"content":"x","metadata":{"a":1,"a":2}}]}]}"#,
    ),
    ("A2A, JSON-RPC", "/a2a", r#"{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{"pageSize":1,"pageSize":2}}"#),
    ("A2A, JSON-RPC", "/a2a", r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","method":"ListTasks","params":{}}"#),
    (
        "A2A, HTTP+JSON",
        "/a2a/message:send",
        r#"{"message":{"messageId":"m","messageId":"n","role":"ROLE_USER","parts":[{"text":"x"}]}}"#,
    ),
    ("ADK", "/apps/gander/users/u/sessions", r#"{"state":{"a":1,"a":2}}"#),
    (
        "goose",
        "/agent/start",
        r#"{"recipe":{"version":"1.0.0","title":"t","title":"u","description":"d","prompt":"p"}}"#,
    ),
    ("goose", "/config/upsert", r#"{"key":"a","key":"b","value":1,"is_secret":false}"#),
    (
        "ACP",
        "/acp",
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"protocolVersion":2}}"#,
    ),
];

#[tokio::test]
async fn a_name_that_stands_twice_is_taken_by_no_protocol() {
    let server = Served::with(&[], &[]).await;
    let mut taken = Vec::new();
    for (name, path, body) in TWICE {
        let protocol = PROTOCOLS.iter().find(|protocol| protocol.name == name).unwrap();
        let answer = post(&server, &server.token, path, &[("a2a-version", "1.0")], body).await;
        match answer.status == protocol.bad_json && answer.text.contains("rror") || answer.text.contains("twice") {
            true => expect(protocol, protocol.bad_json, &answer),
            false => taken.push(format!("{path} {body}: {} {}", answer.status, answer.text)),
        }
    }
    assert!(taken.is_empty(), "{} of them:\n{}", taken.len(), taken.join("\n"));
}
