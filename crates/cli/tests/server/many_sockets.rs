//! Default limits never refuse what a person's own machine does, and hold for everybody else.
#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;

use futures::{SinkExt as _, StreamExt as _, future};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::binary::TestDirectory;

/// Three times what another machine may have.
const SOCKETS: usize = 300;

/// Opens a WebSocket and says hello; the status if it is refused.
async fn open(
    address: SocketAddr,
    token: &str,
    headers: &[(&'static str, &str)],
) -> Result<WebSocketStream<TcpStream>, u16> {
    let mut request = format!("ws://{address}/acp").into_client_request().unwrap();
    request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    let stream = TcpStream::connect(address).await.unwrap();
    let mut socket = match client_async(request, stream).await {
        Ok((socket, _)) => socket,
        Err(Error::Http(response)) => return Err(response.status().as_u16()),
        Err(error) => panic!("{error}"),
    };
    let answer = call(&mut socket, 1, "initialize", json!({ "protocolVersion": 1 })).await;
    assert!(answer["result"]["agentCapabilities"].is_object(), "{answer}");
    Ok(socket)
}

async fn call(socket: &mut WebSocketStream<TcpStream>, id: u64, method: &str, params: Value) -> Value {
    let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    socket.send(Message::text(request.to_string())).await.unwrap();
    loop {
        let text = socket.next().await.unwrap().unwrap().into_text().unwrap();
        let message: Value = serde_json::from_str(&text).unwrap();
        if message["id"] == id {
            return message;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn three_hundred_websockets_of_one_token_on_this_machine_are_all_served() {
    let test_directory = TestDirectory::new();
    let mut serve = test_directory.start(&["serve", "--listen", "127.0.0.1:0"]);
    let line = serve.wait_for("listening on http://");
    let address: SocketAddr = line.trim().rsplit_once("http://").unwrap().1.parse().unwrap();
    let token = test_directory.ok(&["token"]).trim().to_owned();
    let opened = future::join_all((0..SOCKETS).map(|_| open(address, &token, &[]))).await;
    let mut sockets: Vec<_> = opened.into_iter().map(|opened| opened.expect("none is refused")).collect();
    assert_eq!(sockets.len(), SOCKETS);
    // All of them are open at once, and each is served.
    let answers = future::join_all(sockets.iter_mut().map(|socket| call(socket, 2, "session/list", json!({})))).await;
    assert!(answers.iter().all(|answer| answer["result"]["sessions"].is_array()), "{:?}", answers.last());
    // Through a proxy the same token is somebody elsewhere: there the strict limit holds.
    let forwarded = [("x-forwarded-for", "203.0.113.7")];
    let elsewhere = future::join_all((0..120).map(|_| open(address, &token, &forwarded))).await;
    let refused: Vec<u16> = elsewhere.iter().filter_map(|opened| opened.as_ref().err().copied()).collect();
    assert_eq!(refused, [429; 20]);
    serve.terminate();
}
