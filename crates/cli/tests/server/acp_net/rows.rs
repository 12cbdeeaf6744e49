//! Every row of the table of bad input about HTTP and WebSocket has a test that shows it; and those that had none.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::ensure;
use serde_json::json;

use crate::acp_net::socket::{FIN, Socket, frame};
use crate::acp_net::test_server::TestServer;

const ROWS: &str = include_str!("../../../../../interop/data/bad-inputs.tsv");

/// Which test shows a row, by its name. The checks before a handler are the same for every route.
const SHOWN: [(&str, &str); 29] = [
    ("H02", "wrong_tokens_run_into_a_wall_that_the_right_one_passes"),
    ("H03", "a_token_is_accepted_in_two_headers_and_nowhere_else"),
    ("H05", "headers_are_checked"),
    ("H06", "an_allowed_page_is_echoed_exactly"),
    ("H08", "headers_are_checked"),
    ("H09", "bodies_are_checked_for_type_size_and_pace"),
    ("H11", "a_header_that_never_ends_is_cut_off"),
    ("H12", "bodies_are_checked_for_type_size_and_pace"),
    ("H14", "addresses_and_headers_have_an_end"),
    ("H15", "bodies_are_checked_for_type_size_and_pace"),
    ("H17", "an_expectation_without_a_token_is_not_encouraged"),
    ("H20", "what_is_no_http_is_closed"),
    ("H21", "h21_a_line_break_in_a_header_is_refused"),
    ("H23", "h23_whose_address_it_is_says_the_socket_alone"),
    ("H24", "h24_what_a_client_may_do_says_its_token_alone"),
    ("H26", "h26_streams_of_one_token_have_an_end"),
    ("H27", "H27: the system gives a vanished peer up, see `set_tcp_user_timeout`"),
    ("H29", "pipelined_requests_are_answered_in_order"),
    ("H30", "a_draining_server_takes_no_new_work_but_still_shows"),
    ("W01", "the_handshake_is_checked_and_extensions_are_not_agreed_on"),
    ("W02", "broken_frames_close_with_their_code_and_hurt_nobody_else"),
    ("W04", "broken_frames_close_with_their_code_and_hurt_nobody_else"),
    ("W05", "broken_frames_close_with_their_code_and_hurt_nobody_else"),
    ("W07", "whoever_breaks_the_protocol_is_told_so_and_heard_no_more"),
    ("W08", "time_limits_close_and_a_live_client_is_pinged"),
    ("W10", "whoever_breaks_the_protocol_is_told_so_and_heard_no_more"),
    ("W11", "the_handshake_is_checked_and_extensions_are_not_agreed_on"),
    ("W13", "w13_a_socket_that_dies_in_a_turn_loses_nothing"),
    ("W14", "of_two_answers_over_two_transports_exactly_one_wins"),
];

#[test]
fn every_row_about_the_network_is_claimed_by_a_test_that_exists() {
    let rows = ROWS.lines().map(|row| row.split('\t').collect::<Vec<_>>());
    let rows: BTreeSet<&str> = rows.filter(|row| ["http", "ws"].contains(&row[1])).map(|row| row[0]).collect();
    let claims = BTreeMap::from(SHOWN);
    assert_eq!(claims.keys().copied().collect::<BTreeSet<_>>(), rows);
    let sources = sources();
    for (row, test) in claims {
        let known = test.starts_with(row) || sources.contains(&format!("fn {test}("));
        assert!(known, "{row}: no such test: {test}");
    }
}

#[tokio::test]
async fn h21_a_line_break_in_a_header_is_refused() -> anyhow::Result<()> {
    let server = TestServer::with("GANDER_LOG", "info").await?;
    for name in ["Acp-Session-Id", "Acp-Connection-Id", "Last-Event-ID"] {
        let answer = server.http_client.send("GET", &[(name, "a\rSet-Cookie: b")], b"").await?;
        ensure!(answer.status == 400 && !answer.head.contains("Set-Cookie"), "{name}: {answer:?}");
    }
    Ok(())
}

#[tokio::test]
async fn h23_whose_address_it_is_says_the_socket_alone() -> anyhow::Result<()> {
    let server = TestServer::with("GANDER_LIMITS_BAD_TOKENS_PER_MINUTE", "3").await?;
    let mut wrong = server.http_client.clone();
    wrong.token = "wrong".to_owned();
    let mut statuses = Vec::new();
    for index in 0..5 {
        let claimed = format!("203.0.113.{index}");
        let headers =
            [("X-Forwarded-For", claimed.as_str()), ("X-Real-IP", &claimed), ("Forwarded", "for=198.51.100.1")];
        statuses.push(wrong.send("GET", &headers, b"").await?.status);
    }
    assert_eq!(statuses, [401, 401, 401, 429, 429]);
    Ok(())
}

#[tokio::test]
async fn h24_what_a_client_may_do_says_its_token_alone() -> anyhow::Result<()> {
    let server = TestServer::with("GANDER_LOG", "info").await?;
    let mut owner = server.client(crate::acp_net::test_server::Transport::Unix).await?;
    let session = owner.new_session(&server.folder).await?;
    let mut other = server.http_client.clone();
    let added = server.server.launch.stdout(&["token", "add", "other", "--scopes", "prompt"]).await?;
    other.token = added.split_whitespace().last().unwrap_or_default().to_owned();
    let connection = other.connect().await?;
    let close = json!({"jsonrpc": "2.0", "id": 1, "method": "session/close", "params": {"sessionId": session}});
    let claims = [("X-Gander-Scopes", "admin"), ("X-User-Id", "owner"), ("Acp-Connection-Id", connection.as_str())];
    let named = [&claims[..], &[("Acp-Session-Id", session.as_str())]].concat();
    assert_eq!(other.post(&named, close.to_string().as_bytes()).await?.status, 404);
    Ok(())
}

#[tokio::test]
async fn h26_streams_of_one_token_have_an_end() -> anyhow::Result<()> {
    let server = TestServer::with("GANDER_LIMITS_LOCAL_STREAMS", "2").await?;
    let connection = server.http_client.connect().await?;
    let ids = [("Acp-Connection-Id", connection.as_str())];
    let first = server.http_client.events(&ids, usize::MAX).await?;
    let second = Socket::open(&server.http_client).await?;
    let third = server.http_client.events(&ids, usize::MAX).await?;
    let fourth = Socket::ask(&server.http_client, &[]).await?;
    let statuses = [first.status(), third.status()];
    assert_eq!((statuses, fourth.head.split(' ').nth(1)), ([200, 429], Some("429")));
    drop(second);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w13_a_socket_that_dies_in_a_turn_loses_nothing() -> anyhow::Result<()> {
    let server = TestServer::paced().await?;
    let pace = gander_testkit::upstream::Pace { deltas: 100, between_ms: 5, word: 1, ..Default::default() };
    let mut socket = Socket::open(&server.http_client).await?;
    socket.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}})).await?;
    socket.message().await?;
    socket.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": server.folder}})).await?;
    let session = socket.message().await?["result"]["sessionId"].as_str().unwrap_or_default().to_owned();
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": pace.marker()}]});
    socket.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": params})).await?;
    while socket.message().await?["params"]["update"]["sessionUpdate"] != "agent_message_chunk" {}
    socket.write(&frame(FIN | 1, b"{")).await?;
    drop(socket); // in the middle of everything
    let mut again = server.client(crate::acp_net::test_server::Transport::Socket).await?;
    again.load(&session, &server.folder).await?;
    let whole: String = (0..100).map(|index| pace.delta(index)).collect();
    while !gander_testkit::harness::Transcript::of(&again.seen, &session).text().ends_with(&whole) {
        ensure!(again.receive().await?.is_some(), "hung up");
    }
    Ok(())
}

#[tokio::test]
async fn c20_a_client_on_the_network_starts_no_program() -> anyhow::Result<()> {
    let server = TestServer::with("GANDER_LOG", "info").await?;
    let made = server.folder.join("made");
    let program = json!({"name": "evil", "command": "/bin/touch", "args": [made], "env": []});
    let mut client = server.client(crate::acp_net::test_server::Transport::Socket).await?;
    let refused = client.call("session/new", json!({"cwd": server.folder, "mcpServers": [program]})).await;
    let refused = refused.err().map(|error| error.to_string()).unwrap_or_default();
    ensure!(refused.contains("-32602") && refused.contains("allow_remote_commands"), "{refused}");
    let session = client.new_session(&server.folder).await?;
    let added =
        json!({"sessionId": session, "config": {"type": "stdio", "name": "evil", "cmd": "/bin/touch", "args": [made]}});
    let refused = client.call("_goose/unstable/session/extensions/add", added).await;
    let refused = refused.err().map(|error| error.to_string()).unwrap_or_default();
    ensure!(refused.contains("allow_remote_commands"), "{refused}");
    ensure!(!made.exists(), "a program was started");
    Ok(())
}

/// The text of every test of the server.
fn sources() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let places = ["tests/server/http", "tests/server/acp_net", "../http/src/websocket"];
    let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    let mut text = String::new();
    for place in places.map(|place| root.join(place)) {
        text.push_str(&read(&place));
        for file in std::fs::read_dir(&place).into_iter().flatten().flatten() {
            text.push_str(&read(&file.path()));
        }
    }
    text
}
