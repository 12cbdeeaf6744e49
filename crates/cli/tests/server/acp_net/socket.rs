//! A small WebSocket client: text frames, or any bytes at all.

use anyhow::{Context, bail, ensure};
use gander_testkit::harness::PATIENCE;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::acp_net::http::AcpHttpClient;

pub(crate) const FIN: u8 = 0x80;
const MASK: [u8; 4] = [9, 8, 7, 6];

/// An open WebSocket.
pub(crate) struct Socket {
    stream: TcpStream,
    pub(crate) head: String,
    read: Vec<u8>,
}

/// What came.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    Text(String),
    Pong(Vec<u8>),
    Close(u16),
    End,
}

impl Socket {
    /// The handshake; what follows is up to the test.
    pub(crate) async fn open(http_client: &AcpHttpClient) -> anyhow::Result<Self> {
        let socket = Self::ask(http_client, &[]).await?;
        ensure!(socket.head.starts_with("HTTP/1.1 101"), "{}", socket.head);
        Ok(socket)
    }

    /// The handshake with other headers.
    pub(crate) async fn ask(http_client: &AcpHttpClient, headers: &[(&str, &str)]) -> anyhow::Result<Self> {
        let usual = [
            ("Connection", "keep-alive, Upgrade"),
            ("Upgrade", "websocket"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ("Sec-WebSocket-Extensions", "permessage-deflate"),
        ];
        let mut all: Vec<(&str, &str)> =
            usual.into_iter().filter(|(name, _)| headers.iter().all(|h| h.0 != *name)).collect();
        all.extend(headers.iter().filter(|(_, value)| !value.is_empty()));
        let mut stream = TcpStream::connect(http_client.address).await?;
        stream.write_all(format!("{}\r\n", http_client.head("GET", &all)).as_bytes()).await?;
        let mut read = Vec::new();
        let end = loop {
            if let Some(at) = read.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            ensure!(stream.read_buf(&mut read).await? > 0, "the server hung up");
        };
        let head = String::from_utf8_lossy(&read[..end]).into_owned();
        read.drain(..end);
        Ok(Self { stream, head, read })
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes).await
    }

    pub(crate) async fn send(&mut self, message: &Value) -> std::io::Result<()> {
        self.write(&frame(FIN | 1, message.to_string().as_bytes())).await
    }

    /// The next message.
    pub(crate) async fn message(&mut self) -> anyhow::Result<Value> {
        match self.frame().await? {
            Frame::Text(text) => Ok(serde_json::from_str(&text)?),
            other @ (Frame::Pong(_) | Frame::Close(_) | Frame::End) => bail!("no message: {other:?}"),
        }
    }

    /// The next frame, pings answered by nobody.
    pub(crate) async fn frame(&mut self) -> anyhow::Result<Frame> {
        loop {
            if let Some((opcode, payload)) = self.whole()? {
                match opcode {
                    1 => return Ok(Frame::Text(String::from_utf8(payload)?)),
                    8 => return Ok(Frame::Close(payload.first_chunk().map_or(0, |code| u16::from_be_bytes(*code)))),
                    9 => continue,
                    10 => return Ok(Frame::Pong(payload)),
                    other => bail!("opcode {other}"),
                }
            }
            let read = self.stream.read_buf(&mut self.read);
            match tokio::time::timeout(PATIENCE, read).await.context("silence")? {
                Ok(0) | Err(_) => return Ok(Frame::End),
                Ok(_) => {}
            }
        }
    }

    fn whole(&mut self) -> anyhow::Result<Option<(u8, Vec<u8>)>> {
        let Some(([first, second], rest)) = self.read.split_first_chunk::<2>() else { return Ok(None) };
        ensure!(first & 0x70 == 0 && second & 0x80 == 0, "a frame with reserved bits or a mask");
        let (width, length) = match (second, rest.first_chunk::<2>(), rest.first_chunk::<8>()) {
            (126, Some(length), _) => (2, usize::from(u16::from_be_bytes(*length))),
            (127, _, Some(length)) => (8, u64::from_be_bytes(*length) as usize),
            (126 | 127, _, _) => return Ok(None),
            (short, _, _) => (0, usize::from(*short)),
        };
        let (opcode, end) = (first & 0x0f, 2 + width + length);
        if self.read.len() < end {
            return Ok(None);
        }
        let payload = self.read[2 + width..end].to_vec();
        self.read.drain(..end);
        Ok(Some((opcode, payload)))
    }
}

/// A client's frame.
pub(crate) fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    match payload.len() {
        short @ 0..=125 => bytes.push(0x80 | short as u8),
        medium @ 126..=0xffff => {
            bytes.push(0x80 | 126);
            bytes.extend_from_slice(&(medium as u16).to_be_bytes());
        }
        long => {
            bytes.push(0x80 | 127);
            bytes.extend_from_slice(&(long as u64).to_be_bytes());
        }
    }
    bytes.extend_from_slice(&MASK);
    bytes.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    bytes
}
