//! WebSockets frame by frame at the real binary.
#![allow(clippy::print_stderr)]

use anyhow::{Context, ensure};
use gander_testkit::harness::{Transcript, terminate};
use gander_testkit::upstream::Pace;
use serde_json::json;

use crate::acp_net::socket::{FIN, Frame, Socket, frame};
use crate::acp_net::test_server::{TestServer, Transport};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_handshake_is_checked_and_extensions_are_not_agreed_on() -> anyhow::Result<()> {
    let server = TestServer::paced().await?;
    let socket = Socket::open(&server.http_client).await?;
    let head = socket.head.to_ascii_lowercase();
    ensure!(head.contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="), "{head}");
    ensure!(head.contains("acp-connection-id: ") && !head.contains("extensions"), "{head}");
    let cases = [
        (("Sec-WebSocket-Version", "12"), "426"),
        (("Sec-WebSocket-Key", ""), "400"),
        (("Sec-WebSocket-Key", "short"), "400"),
        (("Connection", ""), "400"),
        (("Origin", "https://evil.example"), "403"),
        (("Origin", "null"), "403"),
        (("Authorization", "Bearer wrong"), "401"),
    ];
    for (header, status) in cases {
        let head = Socket::ask(&server.http_client, &[header]).await?.head;
        ensure!(head.split(' ').nth(1) == Some(status), "{header:?}: {head}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn broken_frames_close_with_their_code_and_hurt_nobody_else() -> anyhow::Result<()> {
    let server = TestServer::paced().await?;
    let mut other = server.client(Transport::Socket).await?;
    let big = [&[FIN | 1, 0x80 | 127][..], &(100_u64 << 20).to_be_bytes(), &[0; 4]].concat();
    let cases = [
        (b"\x81\x02{}".to_vec(), 1002),
        (frame(FIN | 0x40 | 1, b"{}"), 1002),
        (frame(FIN | 3, b""), 1002),
        (frame(FIN | 9, &[0; 126]), 1002),
        (frame(FIN | 1, b"\xff\xfe"), 1007),
        ([frame(1, b"\xc3"), frame(FIN, b"(")].concat(), 1007),
        (big, 1009),
        (frame(FIN | 8, &999_u16.to_be_bytes()), 1002),
        (frame(FIN | 8, &1000_u16.to_be_bytes()), 1000),
    ];
    for (bytes, code) in cases {
        let mut socket = Socket::open(&server.http_client).await?;
        socket.write(&bytes).await?;
        assert_eq!(socket.frame().await?, Frame::Close(code));
        assert_eq!(socket.frame().await?, Frame::End);
    }
    let mut socket = Socket::open(&server.http_client).await?;
    socket.write(&[frame(FIN | 2, b"\xff ignored"), frame(FIN | 9, b"hello")].concat()).await?;
    assert_eq!(socket.frame().await?, Frame::Pong(b"hello".to_vec()));
    socket.write(&frame(FIN | 1, b"")).await?;
    assert_eq!(socket.message().await?["error"]["code"], -32700);
    let session = other.new_session(&server.folder).await?;
    ensure!(other.turn(&session, &Pace::default().marker()).await? == "end_turn", "another client was hurt");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stops_says_so_and_a_parked_turn_goes_on_in_the_next_one() -> anyhow::Result<()> {
    let server = TestServer::paced().await?;
    let mut idle = introduced(&server).await?;
    let pace = Pace { deltas: 200, between_ms: 10, word: 1, ..Pace::default() };
    let (mut busy, session) = streaming(&server, &pace).await?;
    terminate(server.server.process())?;
    assert_eq!(idle.frame().await?, Frame::Close(1012));
    let last = loop {
        match busy.frame().await? {
            Frame::Text(text) => ensure!(!text.contains(r#""id":3,"error""#), "a parked turn is no failure: {text}"),
            other @ (Frame::Pong(_) | Frame::Close(_) | Frame::End) => break other,
        }
    };
    assert_eq!(last, Frame::Close(1012));
    let server = server.restart().await?;
    let mut again = server.client(Transport::Socket).await?;
    again.load(&session, &server.folder).await?;
    let whole: String = (0..200).map(|index| pace.delta(index)).collect();
    while !Transcript::of(&again.seen, &session).text().ends_with(&whole) {
        again.receive().await?.context("hung up")?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_that_ends_while_the_server_stops_is_answered_before_the_close() -> anyhow::Result<()> {
    let server = TestServer::paced().await?;
    let pace = Pace { deltas: 30, between_ms: 10, word: 1, ..Pace::default() };
    let (mut busy, _) = streaming(&server, &pace).await?;
    terminate(server.server.process())?;
    let (mut frames, last) = (Vec::new(), pace.delta(29));
    while let Frame::Text(text) = busy.frame().await? {
        frames.push(text);
    }
    // A machine so busy that the turn had to be parked has nothing to answer yet.
    let ended = frames.iter().any(|frame| frame.contains(last.trim()));
    let answered = frames.iter().any(|frame| frame.contains(r#""id":3,"result":{"stopReason":"end_turn""#));
    ensure!(answered || !ended, "the turn ended and its prompt has no answer: {frames:?}");
    Ok(())
}

/// A socket with a turn of this pace whose first delta has arrived, and its session. The prompt's id is 3.
async fn streaming(server: &TestServer, pace: &Pace) -> anyhow::Result<(Socket, String)> {
    let mut socket = introduced(server).await?;
    socket.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": {"cwd": server.folder}})).await?;
    let session = socket.message().await?["result"]["sessionId"].as_str().context("no session")?.to_owned();
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": pace.marker()}]});
    socket.send(&json!({"jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": params})).await?;
    while socket.message().await?["params"]["update"]["sessionUpdate"] != "agent_message_chunk" {}
    Ok((socket, session))
}

async fn introduced(server: &TestServer) -> anyhow::Result<Socket> {
    let mut socket = Socket::open(&server.http_client).await?;
    socket.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}})).await?;
    ensure!(socket.message().await?["result"]["protocolVersion"] == 1, "not initialized");
    Ok(socket)
}

/// `GANDER_SOCKETS=3000` opens more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_sockets_are_small() -> anyhow::Result<()> {
    let wanted = std::env::var("GANDER_SOCKETS").ok().and_then(|sockets| sockets.parse().ok()).unwrap_or(500_usize);
    let server = TestServer::paced().await?;
    let mut sockets = Vec::new();
    let mut before = 0;
    for index in 0..wanted + 50 {
        if index == 50 {
            before = server.server.process().memory();
        }
        sockets.push(introduced(&server).await.with_context(|| format!("socket {index}"))?);
    }
    let each = server.server.process().memory().saturating_sub(before) / wanted as u64;
    eprintln!("{wanted} idle WebSockets, {:.1} KiB each", each as f64 / 1024.0);
    // A debug build; what counts is printed.
    ensure!(each < 64 * 1024, "{each} bytes for an idle WebSocket");
    Ok(())
}
