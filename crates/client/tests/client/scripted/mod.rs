//! An agent that does what a test says, at the other end of a pipe.
#![allow(dead_code, clippy::unwrap_used)]

use std::sync::Arc;

use gander_client::schema::Implementation;
use gander_client::{Client, Handler, Link};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};

/// The agent's end of a connection.
pub struct Scripted {
    reader: BufReader<Box<dyn AsyncRead + Send + Unpin>>,
    writer: Box<dyn AsyncWrite + Send + Unpin>,
}

/// A client that has introduced itself to a scripted agent.
pub async fn connect(handler: Arc<dyn Handler>) -> (Client, Scripted) {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(theirs);
    let mut agent = Scripted::over(reader, writer);
    let (reader, writer) = tokio::io::split(ours);
    let hello = async {
        let id = agent.request("initialize").await["id"].clone();
        agent.result(&id, json!({ "protocolVersion": 1, "agentInfo": { "name": "scripted", "version": "1" } })).await;
    };
    let who = Implementation::new("test", "0");
    let (client, ()) = tokio::join!(Client::connect(Link::from_line_streams(reader, writer), who, handler), hello);
    (client.unwrap(), agent)
}

impl Scripted {
    pub fn over(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        Self { reader: BufReader::new(Box::new(reader)), writer: Box::new(writer) }
    }

    pub async fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.reader.read_line(&mut line).await.unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// The next message, which must be this.
    pub async fn request(&mut self, method: &str) -> Value {
        let message = self.receive().await;
        assert_eq!(message["method"], method);
        message
    }

    /// Reads until the client has left.
    pub async fn hung_up(&mut self) {
        let mut line = String::new();
        while self.reader.read_line(&mut line).await.unwrap() > 0 {}
    }

    pub async fn send(&mut self, message: &Value) {
        self.write(format!("{message}\n").as_bytes()).await;
    }

    pub async fn result(&mut self, id: &Value, result: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result })).await;
    }

    pub async fn write(&mut self, bytes: &[u8]) {
        self.writer.write_all(bytes).await.unwrap();
    }
}
