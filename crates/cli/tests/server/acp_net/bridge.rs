//! The testkit's client over WebSocket and HTTP: lines on one side, frames or requests on the other.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use anyhow::{Context, ensure};
use gander_testkit::harness::Client;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, WriteHalf, duplex, split};
use tokio::sync::mpsc;

use crate::acp_net::http::AcpHttpClient;
use crate::acp_net::socket::{Frame, Socket};

const BUFFER: usize = 256 * 1024;

/// A client over a WebSocket.
pub(crate) async fn over_socket(http_client: &AcpHttpClient) -> anyhow::Result<Client> {
    let (ours, theirs) = duplex(BUFFER);
    let mut socket = Socket::open(http_client).await?;
    let (reader, mut writer) = split(theirs);
    tokio::spawn(async move {
        let mut lines = BufReader::new(reader).lines();
        loop {
            tokio::select! {
                line = lines.next_line() => match line {
                    Ok(Some(line)) => {
                        if socket.write(&crate::acp_net::socket::frame(crate::acp_net::socket::FIN | 1, line.as_bytes())).await.is_err() {
                            return;
                        }
                    }
                    Ok(None) | Err(_) => return,
                },
                frame = socket.frame() => match frame {
                    Ok(Frame::Text(text)) => {
                        if writer.write_all(format!("{text}\n").as_bytes()).await.is_err() {
                            return;
                        }
                    }
                    Ok(Frame::Pong(_)) => {}
                    Ok(Frame::Close(_) | Frame::End) | Err(_) => return,
                },
            }
        }
    });
    let (reader, writer) = split(ours);
    Ok(Client::over(reader, writer).by("WebSocket"))
}

/// A client over streamable HTTP: it opens the streams that it needs, as the SDKs do.
pub(crate) fn over_http(http_client: &AcpHttpClient) -> Client {
    let (ours, theirs) = duplex(BUFFER);
    tokio::spawn(carry(http_client.clone(), theirs));
    let (reader, writer) = split(ours);
    Client::over(reader, writer).by("HTTP")
}

struct Streams {
    http_client: AcpHttpClient,
    connection: String,
    opened: Mutex<HashSet<String>>,
    events: mpsc::Sender<Value>,
}

async fn carry(http_client: AcpHttpClient, theirs: DuplexStream) -> anyhow::Result<()> {
    let (reader, mut writer) = split(theirs);
    let mut lines = BufReader::new(reader).lines();
    let first = lines.next_line().await?.context("no first line")?;
    let answer = http_client.post(&[], first.as_bytes()).await?;
    ensure!(answer.status == 200, "{answer:?}");
    write(&mut writer, &answer.body).await?;
    let connection = answer.header("acp-connection-id").context("no id")?.to_owned();
    let (events, mut heard) = mpsc::channel(1024);
    let streams = Arc::new(Streams { http_client, connection, opened: Mutex::default(), events });
    Arc::clone(&streams).open(None).await?;
    let speaks = Arc::clone(&streams);
    let speaking = async move {
        while let Some(line) = lines.next_line().await? {
            speaks.say(&line).await?;
        }
        anyhow::Ok(())
    };
    let hearing = async move {
        while let Some(message) = heard.recv().await {
            if let Some(session) = message["result"]["sessionId"].as_str() {
                Arc::clone(&streams).open(Some(session.to_owned())).await?;
            }
            write(&mut writer, &message.to_string()).await?;
        }
        anyhow::Ok(())
    };
    tokio::select! {
        spoken = speaking => spoken,
        heard = hearing => heard,
    }
}

impl Streams {
    /// Opens a stream once.
    async fn open(self: Arc<Self>, session: Option<String>) -> anyhow::Result<()> {
        let fresh = self.opened.lock().is_ok_and(|mut opened| opened.insert(session.clone().unwrap_or_default()));
        if !fresh {
            return Ok(());
        }
        let mut headers = vec![("Acp-Connection-Id", self.connection.as_str())];
        headers.extend(session.as_deref().map(|session| ("Acp-Session-Id", session)));
        let mut stream = self.http_client.events(&headers, usize::MAX).await?;
        ensure!(stream.status() == 200, "{}", stream.head);
        let events = self.events.clone();
        tokio::spawn(async move {
            while let Ok(Some(event)) = stream.next().await {
                if events.send(event.json()).await.is_err() {
                    return;
                }
            }
        });
        Ok(())
    }

    async fn say(self: &Arc<Self>, line: &str) -> anyhow::Result<()> {
        let message: Value = serde_json::from_str(line)?;
        let session = message["params"]["sessionId"].as_str();
        if let Some(session) = session {
            Arc::clone(self).open(Some(session.to_owned())).await?;
        }
        let mut headers = vec![("Acp-Connection-Id", self.connection.as_str())];
        headers.extend(session.map(|session| ("Acp-Session-Id", session)));
        let answer = self.http_client.post(&headers, line.as_bytes()).await?;
        ensure!((answer.status, answer.body.as_str()) == (202, ""), "{line}: {answer:?}");
        Ok(())
    }
}

async fn write(writer: &mut WriteHalf<DuplexStream>, line: &str) -> std::io::Result<()> {
    writer.write_all(format!("{line}\n").as_bytes()).await
}
