//! ACP clients that ask for whole sessions and read nothing: each costs next to nothing, and delays nothing else.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use futures::{SinkExt as _, StreamExt as _};
use gander_testkit::harness::eventually;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use crate::readers::TestServer;

/// Answers that one client asks for and does not read.
const UNREAD: u64 = 40;

/// The same where nothing is made before it can be read, so that many more cost no time.
const UNREAD_OVER_HTTP: u64 = 120;

/// How many of those are read in the end.
const READ_OVER_HTTP: u64 = 8;

/// Clients that each ask for one.
const CLIENTS: u64 = 24;

/// What a whole session comes to at least.
const WHOLE: usize = 1_000_000;

const EXPORT: &str = "_goose/unstable/session/export";

type Socket = WebSocketStream<TcpStream>;

impl TestServer {
    /// A session that comes to a megabyte.
    async fn long_session(&self) -> String {
        let run = self.run(1_000, 1_000).await;
        self.get(&run).await["session_id"].as_str().unwrap().to_owned()
    }

    async fn acp_socket(&self) -> Socket {
        let mut request = format!("ws://{}/acp", self.server.address).into_client_request().unwrap();
        let token = format!("Bearer {}", self.token).parse().unwrap();
        request.headers_mut().insert("authorization", token);
        let stream = TcpStream::connect(self.server.address).await.unwrap();
        let (mut socket, _) = tokio_tungstenite::client_async(request, stream).await.unwrap();
        send(&mut socket, 1, "initialize", json!({ "protocolVersion": 1, "clientCapabilities": {} })).await;
        answer_to(&mut socket, 1).await;
        socket
    }

    /// The session has been answered so often.
    async fn is_answered(&self, session: &str) {
        let path = format!("/sessions/{session}");
        let answered = || async { self.get(&path).await["message_count"].as_u64() >= Some(2) };
        eventually("a prompt is answered past unread answers", answered).await.unwrap();
    }
}

async fn send(socket: &mut Socket, id: u64, method: &str, params: Value) {
    let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    socket.send(Message::text(message.to_string())).await.unwrap();
}

/// Reads on to the answer of a request.
async fn answer_to(socket: &mut Socket, id: u64) -> Value {
    loop {
        let Message::Text(text) = socket.next().await.expect("it hung up").unwrap() else { continue };
        let message: Value = serde_json::from_str(&text).unwrap();
        if message["id"] == id && message.get("method").is_none() {
            return message;
        }
    }
}

fn is_whole(answer: &Value) -> bool {
    answer["result"].to_string().len() > WHOLE
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unread_exports_over_a_websocket_cost_little_delay_no_prompt_and_come_whole() {
    let test_server = TestServer::open().await;
    let long = test_server.long_session().await;
    let mut warm = test_server.acp_socket().await;
    send(&mut warm, 2, EXPORT, json!({ "sessionId": long })).await;
    assert!(is_whole(&answer_to(&mut warm, 2).await));
    let new = json!({ "cwd": test_server.root.path().parent().unwrap(), "mcpServers": [] });
    let mut socket = test_server.acp_socket().await;
    send(&mut socket, 2, "session/new", new).await;
    let session = answer_to(&mut socket, 2).await["result"]["sessionId"].as_str().unwrap().to_owned();
    let before = test_server.server.process().memory();
    for id in 0..UNREAD {
        send(&mut socket, 100 + id, EXPORT, json!({ "sessionId": long })).await;
    }
    let prompt = json!([{ "type": "text", "text": "hello" }]);
    send(&mut socket, 3, "session/prompt", json!({ "sessionId": session, "prompt": prompt })).await;
    test_server.is_answered(&session).await;
    test_server.cost("unread exports on one WebSocket", before, UNREAD).await;
    for id in 0..UNREAD {
        assert!(is_whole(&answer_to(&mut socket, 100 + id).await), "answer {id} is cut");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_websockets_with_one_unread_export_each_cost_little() {
    let test_server = TestServer::open().await;
    let long = test_server.long_session().await;
    let mut sockets = Vec::new();
    for _ in 0..CLIENTS {
        sockets.push(test_server.acp_socket().await);
    }
    let before = test_server.server.process().memory();
    for socket in &mut sockets {
        send(socket, 2, EXPORT, json!({ "sessionId": long })).await;
    }
    let mut last = test_server.acp_socket().await;
    send(&mut last, 2, EXPORT, json!({ "sessionId": long })).await;
    assert!(is_whole(&answer_to(&mut last, 2).await), "those who read wait for those who do not");
    test_server.cost("WebSockets with an unread export", before, CLIENTS).await;
    for mut socket in sockets {
        assert!(is_whole(&answer_to(&mut socket, 2).await));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unread_exports_over_the_unix_socket_cost_little_and_come_whole() {
    let test_server = TestServer::open().await;
    let long = test_server.long_session().await;
    let mut client = test_server.server.client().await.unwrap();
    client.call(EXPORT, json!({ "sessionId": long })).await.unwrap();
    client.seen.clear();
    let before = test_server.server.process().memory();
    let mut asked = Vec::new();
    for _ in 0..UNREAD {
        asked.push(client.request("_gander/session/export", json!({ "sessionId": long })).await.unwrap());
    }
    // Another client is served, and so all of them were read.
    drop(test_server.server.client().await.unwrap());
    test_server.cost("unread exports on one Unix socket", before, UNREAD).await;
    for id in asked {
        assert!(client.answer_to(id).await.unwrap().to_string().len() > WHOLE);
        client.seen.clear();
    }
}

/// A connection over HTTP, and its own stream that nobody reads yet.
struct HttpClient<'a> {
    test_server: &'a TestServer,
    connection: String,
}

impl<'a> HttpClient<'a> {
    async fn open(test_server: &'a TestServer) -> Self {
        let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": 1 } });
        let request = test_server.client.post(test_server.url("/acp")).bearer_auth(&test_server.token).json(&hello);
        let response = request.send().await.unwrap();
        let connection = response.headers()["acp-connection-id"].to_str().unwrap().to_owned();
        Self { test_server, connection }
    }

    async fn post(&self, id: u64, method: &str, params: Value) {
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let request = self.test_server.client.post(self.test_server.url("/acp")).bearer_auth(&self.test_server.token);
        let request = request.header("acp-connection-id", &self.connection).json(&message);
        assert_eq!(request.send().await.unwrap().status(), 202);
    }

    /// Opens the stream and reads nothing but that it is there.
    async fn silent_stream(&self) -> TcpStream {
        let mut stream = TcpStream::connect(self.test_server.server.address).await.unwrap();
        let head = format!(
            "GET /acp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nAcp-Connection-Id: {}\r\nAuthorization: Bearer {}\r\n\r\n",
            self.connection, self.test_server.token
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        assert!(stream.peek(&mut [0]).await.unwrap() > 0);
        stream
    }

    /// Reads the stream from this number on until so many answers came; gives their ids.
    async fn read_answers(&self, after: u64, count: usize) -> Vec<u64> {
        let request = self.test_server.client.get(self.test_server.url("/acp")).bearer_auth(&self.test_server.token);
        let request = request.header("acp-connection-id", &self.connection).header("accept", "text/event-stream");
        let mut response = request.header("last-event-id", after.to_string()).send().await.unwrap();
        assert_eq!(response.status(), 200);
        let (mut answered, mut line) = (Vec::new(), Vec::new());
        while answered.len() < count {
            for byte in response.chunk().await.unwrap().expect("the stream ended") {
                if byte != b'\n' {
                    line.push(byte);
                    continue;
                }
                if let Some(data) = line.strip_prefix(b"data: ") {
                    let message: Value = serde_json::from_slice(data).unwrap();
                    assert!(is_whole(&message), "an answer is cut");
                    answered.push(message["id"].as_u64().unwrap());
                }
                line.clear();
            }
        }
        answered
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unread_exports_over_http_cost_little_with_and_without_a_silent_stream_and_come_whole() {
    let test_server = TestServer::open().await;
    let long = test_server.long_session().await;
    let warm = HttpClient::open(&test_server).await;
    warm.post(2, EXPORT, json!({ "sessionId": long })).await;
    assert_eq!(warm.read_answers(0, 1).await, [2]);
    let before = test_server.server.process().memory();
    let client = HttpClient::open(&test_server).await;
    let stream = client.silent_stream().await;
    for id in 0..UNREAD_OVER_HTTP {
        client.post(100 + id, EXPORT, json!({ "sessionId": long })).await;
    }
    test_server.cost("unread exports on one stream of HTTP", before, UNREAD_OVER_HTTP).await;
    drop(stream);
    let wanted: Vec<u64> = (100..100 + READ_OVER_HTTP).collect();
    assert_eq!(client.read_answers(0, wanted.len()).await[..wanted.len()], wanted);
    // Again, to readers that do not read: they come from the journal.
    let before = test_server.server.process().memory();
    let mut streams = Vec::new();
    for _ in 0..8 {
        let again = HttpClient::open(&test_server).await;
        again.post(2, EXPORT, json!({ "sessionId": long })).await;
        streams.push(again.silent_stream().await);
    }
    let stream = client.silent_stream().await;
    test_server.cost("streams of HTTP with kept answers", before, UNREAD).await;
    drop((stream, streams));
}
