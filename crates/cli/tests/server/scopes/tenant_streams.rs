//! What one principal hears of another: connections and streams of events, over HTTP and over WebSockets.

use std::sync::Arc;

use futures::StreamExt as _;
use gander_domain::caller::Scope;
use gander_gateway::server::router;
use gander_testkit::harness::PATIENCE;
use reqwest::Method;
use serde_json::json;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::scopes::belongings::{Belongings, FULL, made_up};
use crate::scopes::rows::USER;
use crate::scopes::tenants::normal;
use crate::scopes::{SETS, TestServer};
use crate::served::Served;

impl TestServer {
    /// Opens a stream of a connection, about this session.
    async fn listen(&self, token: &str, connection: &str, session: &str, seen: Option<&str>) -> reqwest::Response {
        let request = self.client.get(self.url("/acp")).bearer_auth(token).header("accept", "text/event-stream");
        let request = request.header("acp-connection-id", connection).header("acp-session-id", session);
        let request = seen.into_iter().fold(request, |request, seen| request.header("last-event-id", seen));
        self.sent(request).await
    }

    async fn tell(&self, token: &str, connection: &str, message: &serde_json::Value) -> (u16, String) {
        let request = self.client.post(self.url("/acp")).bearer_auth(token).header("acp-connection-id", connection);
        let response = self.sent(request.json(message)).await;
        (response.status().as_u16(), response.text().await.unwrap())
    }

    async fn hang_up(&self, token: &str, connection: &str) -> u16 {
        let request = self.client.delete(self.url("/acp")).bearer_auth(token).header("acp-connection-id", connection);
        self.sent(request).await.status().as_u16()
    }

    async fn is_asked(&self, ann: &Belongings) -> bool {
        let view = self.app.services().hub.session_view(ann.id("session").parse().unwrap()).await.unwrap();
        view.run.is_some_and(|run| run.questions.iter().any(|asked| asked.id.to_string() == ann.id("question")))
    }
}

fn chosen(question: &str) -> serde_json::Value {
    json!({ "jsonrpc": "2.0", "id": question, "result": { "outcome": { "outcome": "selected", "optionId": "allow_once" } } })
}

#[tokio::test]
async fn a_stream_about_anothers_session_stays_silent() {
    let server = TestServer::open().await;
    let (ann, bob) = (server.belongings("ann").await, server.belongings("bob").await);
    let connection = bob.id("connection");
    for seen in ["1.1.0", "1.2.0", "1.2.0.1", "0.0.0", "x", "9.9.9"] {
        let mut told = Vec::new();
        for session in [ann.id("session").to_owned(), made_up(ann.id("session"))] {
            let response = server.listen(&bob.token, connection, &session, Some(seen)).await;
            let (status, text) = (response.status().as_u16(), response.text().await.unwrap());
            assert!(status >= 400, "{seen}: {status} {text}");
            told.push(normal((status, text), &session, &bob));
        }
        assert_eq!(told[0], told[1], "{seen}");
    }
    // A session that is not there may be about to be: both wait, and neither is told anything.
    let mut streams = Vec::new();
    for session in [ann.id("session").to_owned(), made_up(ann.id("session"))] {
        let response = server.listen(&bob.token, connection, &session, None).await;
        assert_eq!(response.status(), 200);
        streams.push(response);
    }
    for question in [ann.id("question").to_owned(), made_up(ann.id("question"))] {
        let (status, text) = server.tell(&bob.token, connection, &chosen(&question)).await;
        assert_eq!((status, text.as_str()), (202, ""), "an answer to nothing has no answer");
    }
    assert!(server.is_asked(&ann).await, "another's answer does not count");
    let answer = json!({ "id": ann.id("question"), "session_id": ann.id("session"), "action": "allow_once" });
    server.ok(&ann.token, "/action-required/tool-confirmation", &answer).await;
    assert_eq!(server.hang_up(&bob.token, connection).await, 202);
    for stream in streams {
        assert_eq!(told_in(stream).await, "", "until the connection ended");
    }
}

/// Everything but what only keeps a stream open.
async fn told_in(stream: reqwest::Response) -> String {
    let text = stream.text().await.unwrap();
    let events = text.split("\n\n").filter(|event| !event.starts_with(':') && !event.starts_with("retry:"));
    events.collect()
}

#[tokio::test]
async fn anothers_connection_looks_made_up_also_after_a_restart() {
    let server = TestServer::open().await;
    let (ann, bob) = (server.belongings("ann").await, server.token("bob", FULL));
    let root = Arc::clone(&server.0.end().await);
    let (config, _) = crate::served::settings(root.path(), &[("GANDER_MODEL", "demo/demo")]);
    let server = TestServer(Served::of(root, config, router).await);
    let (real, fake) = (ann.id("connection"), made_up(ann.id("connection")));
    let ask = json!({ "jsonrpc": "2.0", "id": 7, "method": "session/list", "params": {} });
    for message in [ask.clone(), chosen(ann.id("question"))] {
        let answers = [server.tell(&bob, real, &message).await, server.tell(&bob, &fake, &message).await];
        assert_eq!(answers[0], answers[1]);
        assert_eq!(answers[0].0, 404, "{answers:?}");
    }
    for session in [ann.id("session"), ann.id("connection")] {
        let answers = [
            server.listen(&bob, real, session, Some("1.1.0")).await.status(),
            server.listen(&bob, &fake, session, Some("1.1.0")).await.status(),
            server.listen(&bob, real, session, None).await.status(),
            server.listen(&bob, &fake, session, None).await.status(),
        ];
        assert!(answers.iter().all(|status| *status == 404), "{answers:?}");
    }
    assert_eq!([server.hang_up(&bob, real).await, server.hang_up(&bob, &fake).await], [404, 404]);
    assert_eq!(server.tell(&ann.token, real, &ask).await.0, 202, "it is still there for its owner");
    assert!(server.is_asked(&ann).await);
}

/// What a WebSocket of the Agent Development Kit comes to: a refusal, or what its last frame says.
async fn live(server: &TestServer, token: &str, session: &str, user: &str, said: &serde_json::Value) -> (u16, String) {
    let agent = server.agent();
    let address = format!(
        "ws://{}/run_live?app_name={agent}&user_id={user}&session_id={session}&modalities=TEXT",
        server.address
    );
    let mut request = address.into_client_request().unwrap();
    request.headers_mut().insert("Authorization", format!("Bearer {token}").parse().unwrap());
    let stream = TcpStream::connect(server.address).await.unwrap();
    let (mut socket, _) = match tokio_tungstenite::client_async(request, stream).await {
        Ok(opened) => opened,
        Err(Error::Http(refused)) => {
            return (
                refused.status().as_u16(),
                String::from_utf8_lossy(refused.body().as_deref().unwrap_or_default()).into(),
            );
        }
        Err(other) => panic!("{other}"),
    };
    // It may be closed already.
    futures::SinkExt::send(&mut socket, Message::text(said.to_string())).await.ok();
    tokio::time::timeout(PATIENCE, goodbye(&mut socket)).await.unwrap()
}

async fn goodbye(socket: &mut WebSocketStream<TcpStream>) -> (u16, String) {
    let mut told = String::new();
    loop {
        match socket.next().await {
            Some(Ok(Message::Text(text))) => told.push_str(&text),
            Some(Ok(Message::Close(why))) => {
                let (code, reason) = why.map_or((1005, String::new()), |why| (why.code.into(), why.reason.to_string()));
                return (code, format!("{told}{reason}"));
            }
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Binary(_) | Message::Frame(_))) => {}
            Some(Err(_)) | None => return (0, told),
        }
    }
}

/// What a token opened ends when it is taken back, though nobody asks anything meanwhile.
#[tokio::test]
async fn streams_end_when_their_token_is_revoked() {
    let server = TestServer::open().await;
    let wanted = |slot: &str| matches!(slot, "session" | "connection");
    let (ann, bob) = (server.belongings_for("ann", wanted).await, server.belongings_for("bob", wanted).await);
    let mut streams = Vec::new();
    for (who, name) in [(&bob, "bob"), (&ann, "ann")] {
        let events = format!("/sessions/{}/events", who.id("session"));
        let request = server.client.get(server.url(&events)).bearer_auth(&who.token);
        let stream = server.sent(request.header("accept", "text/event-stream")).await;
        assert_eq!(stream.status(), 200, "{events}");
        streams.push((name, events, stream));
        let stream = server.listen(&who.token, who.id("connection"), who.id("session"), None).await;
        streams.push((name, "/acp".to_owned(), stream));
    }
    let mut request = format!("ws://{}/acp", server.address).into_client_request().unwrap();
    request.headers_mut().insert("Authorization", format!("Bearer {}", bob.token).parse().unwrap());
    let stream = TcpStream::connect(server.address).await.unwrap();
    let (mut socket, _) = tokio_tungstenite::client_async(request, stream).await.unwrap();
    gander_services::token::revoke_token(&server.config.paths, "bob").unwrap();
    tokio::time::timeout(PATIENCE, goodbye(&mut socket)).await.expect("the WebSocket stays open");
    for (name, path, mut stream) in streams {
        let end = async { while let Ok(Some(_)) = stream.chunk().await {} };
        match name {
            "bob" => tokio::time::timeout(PATIENCE, end).await.unwrap_or_else(|_| panic!("{path} stays open")),
            _ => assert!(futures::FutureExt::now_or_never(end).is_none(), "{path} of another token ended"),
        }
    }
}

#[tokio::test]
async fn anothers_live_session_looks_made_up() {
    let server = TestServer::open().await;
    let ann = server.belongings("ann").await;
    let close = json!({ "close": true });
    let own = live(&server, &ann.token, ann.id("talk"), USER, &close).await;
    assert_eq!(own.0, 1000, "{own:?}");
    for (name, scopes) in SETS {
        let bob = server.token("bob", scopes);
        for (session, user) in [(ann.id("talk"), USER), (ann.id("session"), "user"), (ann.id("shelf"), "user")] {
            let real = normal(live(&server, &bob, session, user, &close).await, session, &ann);
            let fake = normal(live(&server, &bob, &made_up(session), user, &close).await, &made_up(session), &ann);
            assert_eq!(real, fake, "{session} as {name}");
            let expected = if scopes.contains(&Scope::Prompt) { 1002 } else { 403 };
            assert_eq!(real.0, expected, "{real:?} as {name}");
        }
    }
}

#[tokio::test]
async fn anothers_question_looks_made_up_in_ones_own_live_session() {
    let server = TestServer::open().await;
    let (ann, bob) = (server.belongings("ann").await, server.belongings("bob").await);
    let answer = |question: &str| {
        let response = json!({ "id": format!("adk-{question}"), "name": "adk_request_confirmation", "response": { "confirmed": true } });
        json!({ "content": { "role": "user", "parts": [{ "functionResponse": response }] } })
    };
    let mut told = Vec::new();
    for question in [ann.id("question").to_owned(), made_up(ann.id("question"))] {
        let answer = live(&server, &bob.token, bob.id("talk"), USER, &answer(&question)).await;
        told.push(normal(answer, &question, &bob));
    }
    assert_eq!(told[0], told[1]);
    assert_ne!(told[0].0, 1000, "{told:?}");
    assert!(server.is_asked(&ann).await);
    let (status, _) = server.ask(Some(&ann.token), &Method::GET, &format!("/runs/{}", ann.id("run")), None).await;
    assert_eq!(status, 200);
}
