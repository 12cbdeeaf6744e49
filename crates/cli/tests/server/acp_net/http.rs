//! A small HTTP client: requests, and streams of events that can be cut at any byte.

use std::net::SocketAddr;

use anyhow::{Context, bail, ensure};
use gander_testkit::harness::PATIENCE;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Where the server is, and the token.
#[derive(Clone, Debug)]
pub(crate) struct AcpHttpClient {
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
    /// What follows the path, such as `?dialect=goosed`.
    pub(crate) query: &'static str,
}

/// An answer with a whole body.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// An event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    pub(crate) data: String,
}

/// An open stream.
pub(crate) struct EventStream {
    stream: TcpStream,
    pub(crate) head: String,
    raw: Vec<u8>,
    body: Vec<u8>,
    /// After so many more bytes the connection is cut.
    budget: usize,
}

impl AcpHttpClient {
    /// Sends a request as it is and reads to the end.
    pub(crate) async fn raw(&self, request: &[u8]) -> anyhow::Result<Answer> {
        let mut stream = TcpStream::connect(self.address).await?;
        // The server may answer and close before it has read everything.
        let sent = stream.write_all(request).await;
        let mut answer = Vec::new();
        let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.context("no end")?;
        ensure!(!answer.is_empty(), "no answer: {sent:?} {read:?}");
        Answer::parse(&String::from_utf8_lossy(&answer))
    }

    /// Sends a request with a token.
    pub(crate) async fn send(&self, method: &str, headers: &[(&str, &str)], body: &[u8]) -> anyhow::Result<Answer> {
        let mut request = self.head(method, headers).into_bytes();
        request.extend_from_slice(format!("Connection: close\r\nContent-Length: {}\r\n\r\n", body.len()).as_bytes());
        request.extend_from_slice(body);
        self.raw(&request).await
    }

    /// Posts a message as JSON.
    pub(crate) async fn post(&self, headers: &[(&str, &str)], body: &[u8]) -> anyhow::Result<Answer> {
        let headers = [headers, &[("Content-Type", "application/json")]].concat();
        self.send("POST", &headers, body).await
    }

    /// Makes a connection and gives its id and the answer.
    pub(crate) async fn connect(&self) -> anyhow::Result<String> {
        let hello = br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;
        let answer = self.post(&[], hello).await?;
        ensure!(answer.status == 200, "{answer:?}");
        Ok(answer.header("acp-connection-id").context("no connection id")?.to_owned())
    }

    /// The same, at another address.
    pub(crate) fn at(&self, query: &'static str) -> Self {
        Self { query, ..self.clone() }
    }

    /// Opens a stream that is cut after so many bytes.
    pub(crate) async fn events(&self, headers: &[(&str, &str)], budget: usize) -> anyhow::Result<EventStream> {
        let headers = [headers, &[("Accept", "text/event-stream")]].concat();
        let mut stream = TcpStream::connect(self.address).await?;
        stream.write_all(format!("{}\r\n", self.head("GET", &headers)).as_bytes()).await?;
        let mut raw = Vec::new();
        let end = loop {
            if let Some(at) = raw.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            ensure!(stream.read_buf(&mut raw).await? > 0, "the server hung up");
        };
        let head = String::from_utf8_lossy(&raw[..end]).into_owned();
        raw.drain(..end);
        raw.truncate(budget);
        let budget = budget - raw.len();
        Ok(EventStream { stream, head, raw, body: Vec::new(), budget })
    }

    pub(crate) fn head(&self, method: &str, headers: &[(&str, &str)]) -> String {
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let Self { address, token, query } = self;
        format!("{method} /acp{query} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n{headers}")
    }
}

impl Answer {
    fn parse(text: &str) -> anyhow::Result<Self> {
        let (head, body) = text.split_once("\r\n\r\n").context("no head")?;
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).context("no status")?;
        Ok(Self { status, head: head.to_owned(), body: body.to_owned() })
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }
}

impl EventStream {
    pub(crate) fn status(&self) -> u16 {
        self.head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }

    /// The next event; `None` if the stream ended or was cut. Comments are no events.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Option<Event>> {
        loop {
            self.dechunk()?;
            if let Some(end) = self.body.windows(2).position(|window| window == b"\n\n") {
                let text: Vec<u8> = self.body.drain(..end + 2).collect();
                match Event::parse(std::str::from_utf8(&text)?)? {
                    Some(event) => return Ok(Some(event)),
                    None => continue,
                }
            }
            if self.budget == 0 {
                return Ok(None);
            }
            let mut piece = vec![0; self.budget.min(4096)];
            let read = tokio::time::timeout(PATIENCE, self.stream.read(&mut piece)).await.context("silence")?;
            let Ok(length @ 1..) = read else { return Ok(None) };
            self.budget -= length;
            self.raw.extend_from_slice(&piece[..length]);
        }
    }

    fn dechunk(&mut self) -> anyhow::Result<()> {
        while let Some(line) = self.raw.windows(2).position(|window| window == b"\r\n") {
            let size = usize::from_str_radix(std::str::from_utf8(&self.raw[..line])?, 16)?;
            if size == 0 {
                self.budget = 0; // the last chunk: the stream has ended
            }
            if self.raw.len() < line + 2 + size + 2 {
                break;
            }
            self.body.extend_from_slice(&self.raw[line + 2..line + 2 + size]);
            self.raw.drain(..line + 2 + size + 2);
        }
        Ok(())
    }
}

impl Event {
    fn parse(text: &str) -> anyhow::Result<Option<Self>> {
        let (mut id, mut data) = (None, None);
        for line in text.trim_end().lines() {
            match line.split_once(':').map(|(name, value)| (name, value.strip_prefix(' ').unwrap_or(value))) {
                Some(("", _)) => {}
                Some(("id", value)) => id = Some(value.to_owned()),
                Some(("data", value)) if data.is_none() => data = Some(value.to_owned()),
                Some(_) | None => bail!("not one event with one line of data: {text:?}"),
            }
        }
        Ok(data.map(|data| Self { id, data }))
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or(Value::Null)
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.into_iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}
