//! Bad input over HTTP and WebSocket, row by row: the stated answer, and the next request works.

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use crate::acp_net::http::{AcpHttpClient, EventStream};
use crate::acp_net::socket::{FIN, Frame, Socket, frame};
use crate::acp_net::test_server::TestServer;

const NONE: &str = "0199aaaa-0000-7000-8000-000000000000";

type Headers<'a> = Vec<(&'a str, &'a str)>;

/// One input and what it is answered with.
struct Case {
    row: &'static str,
    /// `SESSION` and `FOLDER` stand for the real ones.
    input: Vec<u8>,
    http: Http,
    socket: Ws,
}

/// What comes back over HTTP.
#[derive(Clone, Copy, Debug)]
enum Http {
    /// This status, and this JSON-RPC error in the body.
    Refused(u16, Option<i64>),
    /// 202, then an answer with this error; 0 is a result.
    Later(i64),
    /// 202, and nothing.
    Silent,
}

/// What comes back over a WebSocket.
#[derive(Clone, Copy, Debug)]
enum Ws {
    Answer(i64),
    Closed(u16),
    Silent,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_row_gets_its_answer_over_http() -> anyhow::Result<()> {
    let server = TestServer::asking().await?;
    let mut failures = Vec::new();
    for case in cases() {
        if let Err(error) = over_http(&server, &case).await {
            failures.push(format!("{}: {error:#}", case.row));
        }
    }
    ensure!(failures.is_empty(), "{} cases failed:\n{}", failures.len(), failures.join("\n"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_row_gets_its_answer_over_websocket() -> anyhow::Result<()> {
    let server = TestServer::asking().await?;
    let mut failures = Vec::new();
    for case in cases() {
        if let Err(error) = over_socket(&server, &case).await {
            failures.push(format!("{}: {error:#}", case.row));
        }
    }
    ensure!(failures.is_empty(), "{} cases failed:\n{}", failures.len(), failures.join("\n"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn headers_are_checked() -> anyhow::Result<()> {
    let server = TestServer::asking().await?;
    let http_client = &server.http_client;
    let id = http_client.connect().await?;
    let connection = ("Acp-Connection-Id", id.as_str());
    let (json, list) = (("Content-Type", "application/json"), br#"{"jsonrpc":"2.0","id":1,"method":"session/list"}"#);
    let about = format!(r#"{{"jsonrpc":"2.0","id":2,"method":"session/close","params":{{"sessionId":"{id}"}}}}"#);
    let utf16 = ("Content-Type", "application/json; charset=utf-16");
    let cases: Vec<(&str, Headers<'_>, &[u8], u16)> = vec![
        ("POST", vec![json], list, 400),                                       // L01, L19
        ("POST", vec![json, ("Acp-Connection-Id", NONE)], list, 404),          // L19
        ("POST", vec![json, ("Acp-Connection-Id", "none")], list, 404),        // L19
        ("POST", vec![json, connection, ("Acp-Session-Id", NONE)], list, 404), // L05
        ("POST", vec![json, connection, ("Acp-Session-Id", NONE)], about.as_bytes(), 400), // L20
        ("POST", vec![connection, ("Content-Type", "text/plain")], list, 415), // H07
        ("POST", vec![connection, utf16], list, 415),                          // J11
        ("POST", vec![json, connection, ("Origin", "https://evil.example")], list, 403), // H05
        ("GET", vec![connection, ("Accept", "image/png")], b"", 406),          // H08
        ("GET", vec![("Accept", "text/event-stream")], b"", 400),
        ("GET", vec![("Acp-Connection-Id", NONE), ("Accept", "text/event-stream")], b"", 404),
        ("GET", vec![connection, ("Last-Event-ID", "abc")], b"", 400), // S19
        ("GET", vec![connection, ("Last-Event-ID", "77")], b"", 409),  // S20
        ("GET", vec![connection, ("Acp-Session-Id", "not a session")], b"", 404),
        ("DELETE", vec![("Acp-Connection-Id", NONE)], b"", 404),
        ("DELETE", vec![], b"", 400),
        ("PUT", vec![connection], b"", 405), // S22
    ];
    for (method, headers, body, status) in cases {
        let answer = http_client.send(method, &headers, body).await?;
        ensure!(answer.status == status, "{method} {headers:?}: {answer:?}");
    }
    let mut waiting = Vec::new();
    for number in 0..17 {
        let session = format!("0199aaaa-0000-7000-8000-0000000000{number:02}");
        waiting.push(http_client.events(&[connection, ("Acp-Session-Id", &session)], 0).await?);
    }
    let statuses: Vec<u16> = waiting.iter().map(EventStream::status).collect();
    assert_eq!(statuses, [&[200; 16][..], &[404]].concat());
    Ok(())
}

async fn over_http(server: &TestServer, case: &Case) -> anyhow::Result<()> {
    let mut visit = BadRequest::begin(&server.http_client, server).await?;
    let input = visit.filled(&case.input, server);
    let posted = visit.post(&input).await?;
    match case.http {
        Http::Refused(status, code) => {
            ensure!(posted.status == status, "{posted:?}");
            let error = posted.json()["error"]["code"].as_i64();
            ensure!(code.is_none() || error == code, "{posted:?}");
        }
        Http::Later(code) => {
            ensure!(posted.status == 202, "{posted:?}");
            let answer = visit.own.next().await?.context("no answer")?.json();
            ensure!(answer["error"]["code"].as_i64().unwrap_or(0) == code, "{answer}");
        }
        Http::Silent => ensure!(posted.status == 202, "{posted:?}"),
    }
    visit.probe().await
}

/// A connection with a session.
struct BadRequest {
    http_client: AcpHttpClient,
    connection: String,
    session: String,
    own: EventStream,
}

impl BadRequest {
    async fn begin(http_client: &AcpHttpClient, server: &TestServer) -> anyhow::Result<Self> {
        let connection = http_client.connect().await?;
        let own = http_client.events(&[("Acp-Connection-Id", &connection)], usize::MAX).await?;
        let mut visit = Self { http_client: http_client.clone(), connection, session: String::new(), own };
        let new = json!({"jsonrpc": "2.0", "id": "new", "method": "session/new", "params": {"cwd": server.folder}});
        ensure!(visit.post(new.to_string().as_bytes()).await?.status == 202, "no session");
        let made = visit.own.next().await?.context("no answer")?.json();
        visit.session = made["result"]["sessionId"].as_str().with_context(|| made.to_string())?.to_owned();
        Ok(visit)
    }

    async fn post(&self, body: &[u8]) -> anyhow::Result<crate::acp_net::http::Answer> {
        self.http_client.post(&[("Acp-Connection-Id", &self.connection)], body).await
    }

    fn filled(&self, input: &[u8], server: &TestServer) -> Vec<u8> {
        filled(input, &self.session, server)
    }

    /// The next request works, and nothing else was answered meanwhile.
    async fn probe(&mut self) -> anyhow::Result<()> {
        let list = json!({"jsonrpc": "2.0", "id": "probe", "method": "session/list"});
        ensure!(self.post(list.to_string().as_bytes()).await?.status == 202, "the probe");
        let answer = self.own.next().await?.context("no answer to the probe")?.json();
        ensure!(answer["id"] == "probe" && answer["result"].is_object(), "{answer}");
        Ok(())
    }
}

async fn over_socket(server: &TestServer, case: &Case) -> anyhow::Result<()> {
    let mut socket = Socket::open(&server.http_client).await?;
    socket.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}})).await?;
    socket.message().await?;
    socket.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": server.folder}})).await?;
    let session = socket.message().await?["result"]["sessionId"].as_str().context("no session")?.to_owned();
    let input = filled(&case.input, &session, server);
    // A message above the limit is refused while it is still being sent.
    let sent = socket.write(&frame(FIN | 1, &input)).await;
    match case.socket {
        Ws::Answer(code) => {
            let answer = next_answer(&mut socket).await?;
            ensure!(answer["error"]["code"].as_i64().unwrap_or(0) == code, "{answer}");
        }
        Ws::Closed(code) => {
            while let Frame::Text(_) = {
                let next = socket.frame().await?;
                if next == Frame::Close(code) {
                    return Ok(());
                }
                next
            } {}
            anyhow::bail!("not closed with {code}: {sent:?}");
        }
        Ws::Silent => {}
    }
    socket.send(&json!({"jsonrpc": "2.0", "id": "probe", "method": "session/list"})).await?;
    let answer = next_answer(&mut socket).await?;
    ensure!(answer["id"] == "probe" && answer["result"].is_object(), "{answer}");
    Ok(())
}

/// The next answer; updates are passed over.
async fn next_answer(socket: &mut Socket) -> anyhow::Result<Value> {
    loop {
        let message = socket.message().await?;
        if message.get("method").is_none() {
            return Ok(message);
        }
    }
}

fn filled(input: &[u8], session: &str, server: &TestServer) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(input) else { return input.to_vec() };
    text.replace("SESSION", session).replace("FOLDER", &server.folder.display().to_string()).into_bytes()
}

fn case(row: &'static str, input: impl AsRef<[u8]>, http: Http, socket: Ws) -> Case {
    Case { row, input: input.as_ref().to_vec(), http, socket }
}

fn request(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":"r","method":"{method}","params":{params}}}"#)
}

fn cases() -> Vec<Case> {
    let broken = |row, input: &[u8]| case(row, input, Http::Refused(400, Some(-32700)), Ws::Answer(-32700));
    let invalid = |row, input: &str| case(row, input, Http::Refused(400, Some(-32600)), Ws::Answer(-32600));
    let refused = |row, input: &str, code| case(row, input, Http::Later(code), Ws::Answer(code));
    let silent = |row, input: &str| case(row, input, Http::Silent, Ws::Silent);
    let fine = |row, input: &str| case(row, input, Http::Later(0), Ws::Answer(0));
    let utf16: Vec<u8> = request("session/list", "{}").bytes().flat_map(|byte| [byte, 0]).collect();
    let members = (0..50_000).map(|index| format!(r#""m{index}":1"#)).collect::<Vec<_>>().join(",");
    let not_utf8 = |bytes: &[u8]| [br#"{"id":1,"method":""#, bytes, b"\"}"].concat();
    let long = format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"session/list"}}"#, "i".repeat(1 << 20));
    let nowhere = format!(r#"{{"sessionId":"{NONE}","cwd":"FOLDER","prompt":[{{"type":"text","text":"hi"}}]}}"#);
    let mode = r#"{"sessionId":"SESSION","modeId":"no_such_mode"}"#;
    vec![
        broken("J01", br#"{"jsonrpc":"2.0","id":1,"method":"#),
        broken("J02", b""),
        fine("J04", "{\"jsonrpc\":\"2.0\",\"id\":1,\n\"method\":\"session/list\"}"),
        case("J05", not_utf8(b"\xff\xfe"), Http::Refused(400, Some(-32700)), Ws::Closed(1007)),
        case("J05", not_utf8(b"\xed\xa0\x80"), Http::Refused(400, Some(-32700)), Ws::Closed(1007)),
        broken("J07", request("session/list", r#"{"n":NaN}"#).as_bytes()),
        broken("J07", request("session/list", r#"{"n":01}"#).as_bytes()),
        broken("J10", &[b"\xef\xbb\xbf", request("session/list", "{}").as_bytes()].concat()),
        broken("J11", &utf16),
        fine("J13", &request("session/list", &format!("{{{members}}}"))),
        case("J14", vec![b' '; 40 << 20], Http::Refused(413, None), Ws::Closed(1009)),
        refused("J16", &request("session/new", r#"{"cwd":"/tmp\u0000x"}"#), -32602),
        refused("J17", &request("session/new", &format!(r#"{{"cwd":{}}}"#, "9".repeat(1 << 20))), -32602),
        invalid("R02", "[]"),
        invalid("R02", "[1,2]"),
        invalid("R03", r#"{"jsonrpc":"1.0","id":3,"method":"session/list"}"#),
        fine("R03", r#"{"id":3,"method":"session/list"}"#),
        invalid("R05", r#"{"jsonrpc":"2.0","id":4}"#),
        invalid("R06", r#"{"jsonrpc":"2.0","id":5,"method":42}"#),
        silent("R08", r#"{"jsonrpc":"2.0","method":"no/such","params":{}}"#),
        silent("R09", r#"{"jsonrpc":"2.0","method":"$/x","params":{}}"#),
        refused("R09", &request("_ext/x", "{}"), -32601),
        invalid("R11", r#"{"jsonrpc":"2.0","id":null,"method":"session/list"}"#),
        invalid("R12", &long),
        invalid("R12", r#"{"jsonrpc":"2.0","id":99999999999999999999,"method":"session/list"}"#),
        refused("R15", &request("session/list", "[1]"), -32602),
        fine("R17", r#"{"jsonrpc":"2.0","id":"l","method":"session/list","params":{"more":[1]},"x":1}"#),
        silent("R18", r#"{"jsonrpc":"2.0","id":777,"result":{}}"#),
        silent("R21", r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":888}}"#),
        refused("R23", &request("session/update", "{}"), -32601),
        case("R24", "Welcome to bash!", Http::Refused(400, Some(-32700)), Ws::Answer(-32700)),
        refused("L05", &request("session/prompt", &nowhere), -32002),
        refused("L05", &request("session/load", &nowhere), -32002),
        silent("L08", r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"SESSION"}}"#),
        refused("L11", &request("session/new", r#"{"cwd":"relative"}"#), -32602),
        refused(
            "C20",
            &request(
                "session/new",
                r#"{"cwd":"FOLDER","mcpServers":[{"name":"m","command":"/bin/true","args":[],"env":[]}]}"#,
            ),
            -32602,
        ),
        refused("L13", &request("session/set_mode", mode), -32602),
        refused("_gander", &request("_gander/status", "{}"), -32601),
    ]
}
