//! A collector for OpenTelemetry on loopback: keeps what it is sent over HTTP as JSON.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A running collector; it stops when dropped.
#[derive(Debug)]
pub struct Collector {
    address: SocketAddr,
    received: Arc<Mutex<Vec<ReceivedExport>>>,
    task: JoinHandle<()>,
}

/// One request.
#[derive(Clone, Debug)]
pub struct ReceivedExport {
    /// Request line and headers.
    pub head: String,
    pub body: Value,
}

impl Collector {
    /// One that takes everything.
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let (address, received) = (listener.local_addr()?, Arc::new(Mutex::default()));
        let task = tokio::spawn(accept(listener, Arc::clone(&received)));
        Ok(Self { address, received, task })
    }

    /// Its base address.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Everything that came, in order.
    pub fn exports(&self) -> Vec<ReceivedExport> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Every span that came, each with the `service.instance.id` of who sent it as `instance`.
    pub fn spans(&self) -> Vec<Value> {
        self.items("resourceSpans", "scopeSpans", "spans")
    }

    /// Every log record that came.
    pub fn log_records(&self) -> Vec<Value> {
        self.items("resourceLogs", "scopeLogs", "logRecords")
    }

    fn items(&self, resources: &str, scopes: &str, items: &str) -> Vec<Value> {
        let list = |value: &Value, name: &str| value[name].as_array().cloned().unwrap_or_default();
        let exports = self.exports();
        let resources = exports.iter().flat_map(|export| list(&export.body, resources));
        let scoped = resources.flat_map(|resource| {
            let instance = attribute(&resource["resource"], "service.instance.id");
            list(&resource, scopes).into_iter().map(move |scope| (instance.clone(), scope))
        });
        let each = scoped.flat_map(|(instance, scope)| {
            list(&scope, items).into_iter().map(move |mut item| {
                item["instance"] = instance.clone();
                item
            })
        });
        each.collect()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The value of an attribute; null if there is none.
pub fn attribute(of: &Value, key: &str) -> Value {
    let attributes = of["attributes"].as_array().into_iter().flatten();
    let value = attributes.filter(|known| known["key"] == key).find_map(|known| known["value"].as_object());
    value.and_then(|value| value.values().next().cloned()).unwrap_or_default()
}

async fn accept(listener: TcpListener, received: Arc<Mutex<Vec<ReceivedExport>>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let received = Arc::clone(&received);
        tokio::spawn(async move { drop(serve(stream, &received).await) });
    }
}

/// Requests of one connection, until it ends.
async fn serve(mut stream: TcpStream, received: &Mutex<Vec<ReceivedExport>>) -> io::Result<()> {
    let mut bytes = Vec::new();
    loop {
        let head = loop {
            if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            read_more(&mut stream, &mut bytes).await?;
        };
        let text = String::from_utf8_lossy(&bytes[..head]).to_lowercase();
        let length = text.split_once("content-length: ").and_then(|(_, rest)| rest.lines().next()?.trim().parse().ok());
        let end = head + length.unwrap_or(0_usize);
        while bytes.len() < end {
            read_more(&mut stream, &mut bytes).await?;
        }
        let body = serde_json::from_slice(&bytes[head..end])?;
        received.lock().unwrap_or_else(PoisonError::into_inner).push(ReceivedExport { head: text, body });
        bytes.drain(..end);
        let answer = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
        stream.write_all(answer).await?;
    }
}

async fn read_more(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> io::Result<()> {
    match stream.read_buf(bytes).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}
