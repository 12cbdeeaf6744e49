//! The streams of a connection over HTTP, request by request.

use anyhow::{Context, bail, ensure};
use gander_testkit::harness::{Transcript, eventually, script};
use gander_testkit::upstream::Pace;
use serde_json::{Value, json};

use crate::acp_net::http::{AcpHttpClient, Answer, EventStream};
use crate::acp_net::test_server::{TestServer, Transport};

const SLEEPERS: usize = 60;

/// What one reader that never reads may cost with its two connections: what waits here and what waits at the system's door.
const MEMORY_PER_SLEEPER: u64 = 384 << 10;

/// Deltas of a long turn.
const LONG_TURN: usize = 1_000;

/// A connection and its own stream.
struct StreamClient {
    http_client: AcpHttpClient,
    connection: String,
    own: EventStream,
    next: u64,
}

impl StreamClient {
    async fn enter(http_client: &AcpHttpClient) -> anyhow::Result<Self> {
        let connection = http_client.connect().await?;
        let own = http_client.events(&[("Acp-Connection-Id", &connection)], usize::MAX).await?;
        ensure!(own.status() == 200, "{}", own.head);
        Ok(Self { http_client: http_client.clone(), connection, own, next: 0 })
    }

    async fn post(&mut self, method: &str, params: Value) -> anyhow::Result<u64> {
        self.next += 1;
        let message = json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
        let posted = self.send(&[], &message).await?;
        ensure!((posted.status, posted.body.as_str()) == (202, ""), "{posted:?}");
        Ok(self.next)
    }

    async fn send(&self, headers: &[(&str, &str)], message: &Value) -> anyhow::Result<Answer> {
        let headers = [headers, &[("Acp-Connection-Id", self.connection.as_str())]].concat();
        self.http_client.post(&headers, message.to_string().as_bytes()).await
    }

    async fn call(&mut self, method: &str, params: Value) -> anyhow::Result<Value> {
        let id = self.post(method, params).await?;
        loop {
            let message = self.own.next().await?.context("the stream ended")?.json();
            if message["id"] == id && message.get("method").is_none() {
                return Ok(message);
            }
        }
    }

    async fn session(&mut self, server: &TestServer) -> anyhow::Result<String> {
        let answer = self.call("session/new", json!({"cwd": server.folder})).await?;
        Ok(answer["result"]["sessionId"].as_str().with_context(|| answer.to_string())?.to_owned())
    }

    async fn stream(&self, session: &str, headers: &[(&str, &str)]) -> anyhow::Result<EventStream> {
        let ids = [("Acp-Connection-Id", self.connection.as_str()), ("Acp-Session-Id", session)];
        self.http_client.events(&[&ids, headers].concat(), usize::MAX).await
    }
}

fn prompt(session: &str, text: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]})
}

/// Reads until a message is what is wanted; gives everything up to it.
async fn until(stream: &mut EventStream, wanted: impl Fn(&Value) -> bool) -> anyhow::Result<Vec<Value>> {
    let mut seen = Vec::new();
    loop {
        let message = stream.next().await?.context("the stream ended")?.json();
        let found = wanted(&message);
        seen.push(message);
        if found {
            return Ok(seen);
        }
    }
}

fn answers(id: u64) -> impl Fn(&Value) -> bool {
    move |message| message["id"] == id && message.get("method").is_none()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_have_one_reader_and_say_what_they_are() -> anyhow::Result<()> {
    let server = TestServer::paced().await?;
    let mut stream_client = StreamClient::enter(&server.http_client).await?;
    let own = &stream_client.own;
    let told = ["content-type", "cache-control", "x-accel-buffering"].map(|name| own.header(name));
    assert_eq!(told, [Some("text/event-stream; charset=utf-8"), Some("no-cache, no-transform"), Some("no")]);
    let session = stream_client.session(&server).await?;
    let mut first = stream_client.stream(&session, &[]).await?;
    assert_eq!((first.status(), first.header("acp-session-id")), (200, Some(session.as_str())));
    let second = stream_client.stream(&session, &[]).await?;
    assert_eq!(second.status(), 409, "{}", second.head);
    let id = stream_client.post("session/prompt", prompt(&session, &Pace::default().marker())).await?;
    let seen = until(&mut first, answers(id)).await?;
    assert_eq!(seen.last().map(|last| &last["result"]["stopReason"]), Some(&json!("end_turn")));
    drop(first);
    for (last, status) in
        [("abc", 400), ("-1", 400), ("1.2", 400), ("99.1.0", 409), ("1.99999.0", 409), ("1.2.0.9999", 409)]
    {
        let stream = stream_client.stream(&session, &[("Last-Event-ID", last)]).await?;
        assert_eq!(stream.status(), status, "{last}: {}", stream.head);
    }
    let deleted = server.http_client.send("DELETE", &[("Acp-Connection-Id", &stream_client.connection)], b"").await?;
    assert_eq!(deleted.status, 202);
    assert_eq!(stream_client.own.next().await?, None);
    assert_eq!(
        stream_client.send(&[], &json!({"jsonrpc": "2.0", "id": 1, "method": "session/list"})).await?.status,
        404
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_session_stream_answers_come_on_the_connection_stream_and_nothing_is_lost() -> anyhow::Result<()> {
    let server = TestServer::paced().await?;
    let mut stream_client = StreamClient::enter(&server.http_client).await?;
    let session = stream_client.session(&server).await?;
    let pace = Pace { deltas: 20, word: 5, ..Pace::default() };
    let whole: String = (0..20).map(|index| pace.delta(index)).collect();
    let ended = stream_client.call("session/prompt", prompt(&session, &pace.marker())).await?;
    assert_eq!(ended["result"]["stopReason"], "end_turn");
    let mut stream = stream_client.stream(&session, &[]).await?;
    let id = stream_client.post("session/set_mode", json!({"sessionId": session, "modeId": "no such mode"})).await?;
    let seen = until(&mut stream, answers(id)).await?;
    assert_eq!(seen.last().map(|last| &last["error"]["code"]), Some(&json!(-32602)));
    assert_eq!(Transcript::of(&seen, &session).text(), whole);
    assert_eq!(seen.iter().filter(|message| message["result"]["stopReason"].is_string()).count(), 0, "answered twice");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_restart_answers_questions_and_prompts_find_their_connection() -> anyhow::Result<()> {
    let server = TestServer::asking().await?;
    let mut stream_client = StreamClient::enter(&server.http_client).await?;
    let session = stream_client.session(&server).await?;
    let mut stream = stream_client.stream(&session, &[]).await?;
    let call = json!([{"tool": "shell", "args": {"command": "echo x >> ran.txt"}}]);
    let id =
        stream_client.post("session/prompt", prompt(&session, &script(&[call, json!([{"text": "done"}])]))).await?;
    let mut last = String::new();
    let asked = loop {
        let event = stream.next().await?.context("the stream ended")?;
        last = event.id.clone().unwrap_or(last);
        if event.json()["method"] == "session/request_permission" {
            break event.json();
        }
    };
    let server = server.restart().await?;
    stream_client.http_client = server.http_client.clone();
    // The answer is understood before any stream is open again.
    let outcome = json!({"outcome": {"outcome": "selected", "optionId": asked["params"]["options"][0]["optionId"]}});
    let answered = stream_client.send(&[], &json!({"jsonrpc": "2.0", "id": asked["id"], "result": outcome})).await?;
    assert_eq!(answered.status, 202, "{answered:?}");
    let mut stream = stream_client.stream(&session, &[("Last-Event-ID", &last)]).await?;
    assert_eq!(stream.status(), 200, "{}", stream.head);
    let seen = until(&mut stream, answers(id)).await?;
    assert_eq!(seen.last().map(|last| &last["result"]["stopReason"]), Some(&json!("end_turn")));
    assert_eq!(Transcript::of(&seen, &session).text(), "done");
    assert_eq!(std::fs::read_to_string(server.folder.join("ran.txt"))?, "x\n");
    // The connection's own stream: what came before the restart is still there, from any place.
    let own = [("Acp-Connection-Id", stream_client.connection.as_str())];
    let mut whole = server.http_client.events(&[&own[..], &[("Last-Event-ID", "0")]].concat(), usize::MAX).await?;
    let first = whole.next().await?.context("nothing kept")?;
    assert_eq!((first.id.as_deref(), &first.json()["result"]["sessionId"]), (Some("1"), &json!(session)));
    let beyond = server.http_client.events(&[&own[..], &[("Last-Event-ID", "999")]].concat(), usize::MAX).await?;
    assert_eq!(beyond.status(), 409);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_load_that_is_cut_goes_on_and_is_answered_once() -> anyhow::Result<()> {
    let server = TestServer::paced().await?;
    let mut author = server.client(Transport::Unix).await?;
    let session = author.new_session(&server.folder).await?;
    for word in 1..=3 {
        author.turn(&session, &Pace { deltas: 500, word, ..Pace::default() }.marker()).await?;
    }
    let expected = whole(&server, &session).await?;
    for budget in [1, 400, 2_000, 9_000] {
        let mut stream_client = StreamClient::enter(&server.http_client).await?;
        let ids = [("Acp-Connection-Id", stream_client.connection.clone()), ("Acp-Session-Id", session.clone())];
        let ids = ids.each_ref().map(|(name, value)| (*name, value.as_str()));
        let mut stream = server.http_client.events(&ids, budget).await?;
        let id = stream_client.post("session/load", json!({"sessionId": session, "cwd": server.folder})).await?;
        let (mut seen, mut last) = (Vec::new(), None);
        let text = expected.text();
        while Transcript::of(&seen, &session).text() != text {
            match stream.next().await? {
                Some(event) => {
                    ensure!(!answers(id)(&event.json()), "answered before the end of the history");
                    seen.push(event.json());
                    last = event.id.or(last);
                }
                None => {
                    drop(stream);
                    let header = last.as_deref().map(|last| ("Last-Event-ID", last));
                    // Without an id the stream is taken until the server has noticed that its reader is gone.
                    stream = loop {
                        let again =
                            server.http_client.events(&[&ids[..], header.as_slice()].concat(), usize::MAX).await?;
                        match again.status() {
                            200 => break again,
                            409 if header.is_none() => tokio::task::yield_now().await,
                            other => bail!("{other}: {}", again.head),
                        }
                    };
                }
            }
        }
        ensure!(Transcript::of(&seen, &session) == expected, "budget {budget}: something else was told");
        // A load that ends while nobody reads the session's stream is answered on the connection's own.
        tokio::select! {
            answered = until(&mut stream, answers(id)) => drop(answered?),
            answered = until(&mut stream_client.own, answers(id)) => drop(answered?),
        }
    }
    Ok(())
}

/// More than the system holds between two ends of a connection, so that the load is certainly under way.
const LONG: Pace = Pace { deltas: 2_000, size: 4_000, between_ms: 0, first_ms: 0, word: 0 };

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_load_under_way_when_the_server_is_killed_goes_on_in_the_next_and_is_answered_once() -> anyhow::Result<()> {
    let mut server = TestServer::paced().await?;
    let mut author = server.client(Transport::Unix).await?;
    let session = author.new_session(&server.folder).await?;
    author.turn(&session, &LONG.marker()).await?;
    let expected = whole(&server, &session).await?;
    for budget in [0, 500_000] {
        let mut stream_client = StreamClient::enter(&server.http_client).await?;
        let (connection, named) = (stream_client.connection.clone(), session.clone());
        let ids = [("Acp-Connection-Id", connection.as_str()), ("Acp-Session-Id", named.as_str())];
        let mut stream = server.http_client.events(&ids, budget).await?;
        let id = stream_client.post("session/load", json!({"sessionId": session, "cwd": server.folder})).await?;
        let mut seen = Vec::new();
        let mut last = None;
        while let Some(event) = stream.next().await? {
            ensure!(!answers(id)(&event.json()), "answered before the end of the history");
            seen.push(event.json());
            last = event.id.or(last);
        }
        server = server.restart().await?;
        let header = last.as_deref().map(|last| ("Last-Event-ID", last));
        let mut stream = server.http_client.events(&[&ids[..], header.as_slice()].concat(), usize::MAX).await?;
        assert_eq!(stream.status(), 200, "{}", stream.head);
        seen.extend(until(&mut stream, answers(id)).await.with_context(|| format!("budget {budget}"))?);
        ensure!(Transcript::of(&seen, &session) == expected, "budget {budget}: something else was told");
        // The stream goes on as it would have.
        stream_client.http_client = server.http_client.clone();
        let next =
            stream_client.post("session/set_mode", json!({"sessionId": session, "modeId": "no such mode"})).await?;
        let after = until(&mut stream, answers(next)).await?;
        ensure!(!after.iter().any(answers(id)), "answered twice");
    }
    Ok(())
}

/// What somebody is told who loads a session.
async fn whole(server: &TestServer, session: &str) -> anyhow::Result<Transcript> {
    let mut loader = server.client(Transport::Unix).await?;
    loader.load(session, &server.folder).await?;
    Ok(Transcript::of(&loader.seen, session))
}

/// What a turn costs by itself is paid before the first sleeper comes, so all that is counted is theirs. On a busy
/// machine the turns take longer than a reader that reads nothing is waited for by default.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_never_reads_changes_nothing() -> anyhow::Result<()> {
    let server = TestServer::paced_with(&[("GANDER_LIMITS_STALLED_READER", "1h")]).await?;
    let mut stream_client = StreamClient::enter(&server.http_client).await?;
    let session = stream_client.session(&server).await?;
    let mut stream = stream_client.stream(&session, &[]).await?;
    for _ in 0..2 {
        long_turn(&mut stream_client, &mut stream, &session).await?;
    }
    let before = server.server.process().memory();
    let mut sleepers = Vec::new();
    for _ in 0..SLEEPERS {
        let mut sleeper = StreamClient::enter(&server.http_client).await?;
        sleeper.call("session/resume", json!({"sessionId": session, "cwd": server.folder})).await?;
        sleepers.push((sleeper.stream(&session, &[]).await?, sleeper));
    }
    for _ in 0..2 {
        long_turn(&mut stream_client, &mut stream, &session).await?;
    }
    // What a turn needs while it lasts differs from turn to turn by more than all sleepers cost, and is given back.
    let allowed = before + SLEEPERS as u64 * MEMORY_PER_SLEEPER;
    eventually("sleepers cost little", || async { server.server.process().memory() < allowed }).await?;
    // A sleeper that wakes up has missed nothing.
    let (mut late, _visitor) = sleepers.pop().context("no sleeper")?;
    let mut deltas = 0;
    while deltas < 2 * LONG_TURN {
        let message = late.next().await?.context("the stream ended")?.json();
        let text = message["params"]["update"]["content"]["text"].as_str().unwrap_or_default();
        let agent = message["params"]["update"]["sessionUpdate"] == "agent_message_chunk";
        deltas += if agent { text.matches('~').count() } else { 0 };
    }
    Ok(())
}

/// A turn of a megabyte, of which nothing may be missing.
async fn long_turn(stream_client: &mut StreamClient, stream: &mut EventStream, session: &str) -> anyhow::Result<()> {
    let pace = Pace { deltas: LONG_TURN, size: 1_000, ..Pace::default() };
    let id = stream_client.post("session/prompt", prompt(session, &pace.marker())).await?;
    let seen = until(stream, answers(id)).await?;
    ensure!(Transcript::of(&seen, session).text().matches('~').count() == LONG_TURN, "deltas are missing");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn text_that_looks_like_events_stays_one_event() -> anyhow::Result<()> {
    let server = TestServer::asking().await?;
    let mut stream_client = StreamClient::enter(&server.http_client).await?;
    let session = stream_client.session(&server).await?;
    let mut stream = stream_client.stream(&session, &[]).await?;
    let text = "\n\ndata: {\"x\":1}\r\n\u{2028}event: x\n:\nid: 9\u{0}";
    let id = stream_client.post("session/prompt", prompt(&session, &script(&[json!([{"text": text}])]))).await?;
    let seen = until(&mut stream, answers(id)).await?;
    assert_eq!(Transcript::of(&seen, &session).text(), text);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http_2_without_tls_works_too() -> anyhow::Result<()> {
    let server = TestServer::paced().await?;
    rustls::crypto::ring::default_provider().install_default().ok();
    let client = reqwest::Client::builder().http2_prior_knowledge().no_proxy().build()?;
    let url = format!("http://{}/acp", server.http_client.address);
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;
    let post = client.post(&url).bearer_auth(&server.http_client.token).header("content-type", "application/json");
    let made = post.body(hello).send().await?;
    assert_eq!((made.status().as_u16(), made.version()), (200, reqwest::Version::HTTP_2));
    let id = made.headers()["acp-connection-id"].to_str()?.to_owned();
    let get = client.get(&url).bearer_auth(&server.http_client.token).header("acp-connection-id", &id);
    let mut own = get.header("accept", "text/event-stream").send().await?;
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"session/list"}"#;
    let post = client.post(&url).bearer_auth(&server.http_client.token).header("content-type", "application/json");
    let posted = post.header("acp-connection-id", &id).body(list).send().await?;
    assert_eq!(posted.status().as_u16(), 202);
    let chunk = own.chunk().await?.context("the stream ended")?;
    ensure!(chunk.starts_with(b"id: 1\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":"), "{chunk:?}");
    Ok(())
}

/// Requests that in a row would outlast the longest watch, if each of them waited two seconds for it.
const REQUESTS_DURING_A_WATCH: usize = 14;

#[tokio::test]
async fn a_watch_that_waits_holds_up_no_other_request() -> anyhow::Result<()> {
    let server = TestServer::asking().await?;
    let mut client = StreamClient::enter(&server.http_client).await?;
    let now = client.call("_gander/sessions/watch", json!({})).await?["result"].clone();
    let watch = client.post("_gander/sessions/watch", json!({"after": now["cursor"]})).await?;
    let mut last = 0;
    for _ in 0..REQUESTS_DURING_A_WATCH {
        last = client.post("session/list", json!({})).await?;
    }
    let seen = until(&mut client.own, |message| message["id"] == last).await?;
    let told: Vec<_> = seen.iter().filter_map(|message| message["id"].as_u64()).collect();
    assert!(!told.contains(&watch), "the watch ended before requests that came after it: {told:?}");
    assert_eq!(told.len(), REQUESTS_DURING_A_WATCH, "{seen:?}");
    // It is answered when there is something to tell.
    client.post("session/new", json!({"cwd": server.folder})).await?;
    until(&mut client.own, |message| message["id"] == watch).await?;
    Ok(())
}
