//! A WebSocket client of the Agent Client Protocol, with a token of its own.

use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use gander_testkit::harness::PATIENCE;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::scopes::TestServer;

pub struct Socket {
    stream: WebSocketStream<TcpStream>,
    next: u64,
    /// What came unasked while answers were waited for.
    pub heard: Vec<Value>,
}

impl TestServer {
    /// A client that has introduced itself, or the status of the refusal.
    pub async fn socket(&self, token: &str) -> Result<Socket, u16> {
        self.introduced_socket(token, json!({ "protocolVersion": 1, "clientCapabilities": {} })).await
    }

    /// The same with a name.
    pub async fn named_socket(&self, token: &str, title: &str) -> Result<Socket, u16> {
        let info = json!({ "name": "test", "title": title, "version": "1" });
        let params = json!({ "protocolVersion": 1, "clientInfo": info, "clientCapabilities": {} });
        self.introduced_socket(token, params).await
    }

    async fn introduced_socket(&self, token: &str, initialize: Value) -> Result<Socket, u16> {
        let request = http::Request::builder()
            .uri(format!("ws://{}/acp", self.address))
            .header("Host", self.address.to_string())
            .header("Connection", "Upgrade")
            .header("Upgrade", "websocket")
            .header("Sec-WebSocket-Version", "13")
            .header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
            .header("Authorization", format!("Bearer {token}"))
            .body(())
            .unwrap();
        let stream = TcpStream::connect(self.address).await.unwrap();
        match client_async(request, stream).await {
            Ok((stream, _)) => {
                let mut socket = Socket { stream, next: 0, heard: Vec::new() };
                socket.call("initialize", initialize).await;
                Ok(socket)
            }
            Err(tungstenite::Error::Http(response)) => Err(response.status().as_u16()),
            Err(error) => panic!("{error}"),
        }
    }
}

impl Socket {
    pub async fn send(&mut self, message: &Value) {
        self.stream.send(Message::text(message.to_string())).await.unwrap();
    }

    /// The whole answer to a request.
    pub async fn call(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        loop {
            let message = self.message().await.unwrap_or_else(|| panic!("no answer to {method}"));
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
            self.heard.push(message);
        }
    }

    /// The next message; none if there is no more.
    pub async fn message(&mut self) -> Option<Value> {
        self.message_within(PATIENCE).await
    }

    pub async fn message_within(&mut self, time: Duration) -> Option<Value> {
        tokio::time::timeout(time, self.next_message()).await.ok()?
    }

    /// Pings go on however long nothing is said.
    async fn next_message(&mut self) -> Option<Value> {
        loop {
            match self.stream.next().await? {
                Ok(Message::Text(text)) => return Some(serde_json::from_str(&text).unwrap()),
                Ok(Message::Ping(_) | Message::Pong(_) | Message::Binary(_) | Message::Frame(_)) => {}
                Ok(Message::Close(_)) | Err(_) => return None,
            }
        }
    }
}
