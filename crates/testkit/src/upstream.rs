//! A model on loopback that speaks chat completions over HTTP and does what a marker in the prompt says.
//!
//! The last marker of a request counts:
//! - `[[n=2000,d=0,f=0,s=8]]`: 2,000 deltas of 8 bytes, 0 ms before the first and 0 ms between; every delta carries one `~`.
//! - `[[n=3,w=7]]`: the deltas `~7:0 `, `~7:1 ` and `~7:2 `, so that each says whose it is and which.
//! - `[[call=shell|{"command":"true"}]]`: the first answer is this tool call, the one after its result is the text.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// How a streamed answer is paced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// How many deltas.
    pub deltas: usize,
    /// Milliseconds between two of them.
    pub between_ms: u64,
    /// Milliseconds before the first.
    pub first_ms: u64,
    /// Bytes of each.
    pub size: usize,
    /// If not 0, each delta says this number and its own.
    pub word: u64,
}

/// A running model; it stops when dropped.
#[derive(Debug)]
pub struct Upstream {
    address: SocketAddr,
    counts: Arc<Counts>,
    task: JoinHandle<()>,
}

/// What was asked of the model and what it sent.
#[derive(Debug, Default)]
pub struct Counts {
    /// Completions asked for.
    pub requests: AtomicU64,
    /// Deltas written.
    pub deltas: AtomicU64,
    /// The body of the last request for a completion.
    pub last: Mutex<String>,
}

impl Default for Pace {
    fn default() -> Self {
        Self { deltas: 3, between_ms: 0, first_ms: 0, size: 8, word: 0 }
    }
}

impl Pace {
    /// The marker that asks for this pace.
    pub fn marker(&self) -> String {
        let Self { deltas, between_ms, first_ms, size, word } = self;
        format!("[[n={deltas},d={between_ms},f={first_ms},s={size},w={word}]]")
    }

    /// The text of one delta.
    pub fn delta(&self, index: usize) -> String {
        match self.word {
            0 => format!("~{}", "x".repeat(self.size - 1)),
            word => format!("~{word}:{index} "),
        }
    }

    /// The pace that the last marker of a request asks for.
    pub fn of(request: &str) -> Self {
        let mut pace = Self::default();
        for (key, value) in marker(request, "[[n=").into_iter().flat_map(|(_, text)| pairs(text)) {
            match key {
                "[[n" => pace.deltas = value,
                "d" => pace.between_ms = value as u64,
                "f" => pace.first_ms = value as u64,
                "s" => pace.size = value.max(1),
                "w" => pace.word = value as u64,
                _ => {}
            }
        }
        pace
    }
}

impl Upstream {
    /// Starts one on a free port.
    pub async fn start() -> io::Result<Self> {
        Self::start_at(Ipv4Addr::LOCALHOST).await
    }

    /// Starts one at another address of this machine.
    pub async fn start_at(address: Ipv4Addr) -> io::Result<Self> {
        let listener = TcpListener::bind((address, 0)).await?;
        let address = listener.local_addr()?;
        let counts = Arc::new(Counts::default());
        let task = tokio::spawn(serve(listener, Arc::clone(&counts)));
        Ok(Self { address, counts, task })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What goes into `OPENAI_BASE_URL`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// What was asked and sent so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Answers whoever connects, until the task is aborted.
pub async fn serve(listener: TcpListener, counts: Arc<Counts>) {
    while let Ok((stream, _)) = listener.accept().await {
        if stream.set_nodelay(true).is_ok() {
            tokio::spawn(connection(stream, Arc::clone(&counts)));
        }
    }
}

/// A request: its method and path, and its body.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) line: String,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// A client that goes away in the middle is no error.
async fn connection(mut stream: TcpStream, counts: Arc<Counts>) {
    let mut buffer = Vec::with_capacity(64 * 1024);
    while let Ok(Some(request)) = next_request(&mut stream, &mut buffer).await {
        if answer(&mut stream, &request, &counts).await.is_err() {
            return;
        }
    }
}

pub(crate) async fn next_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<Option<Request>> {
    let head = loop {
        if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    };
    let text = String::from_utf8_lossy(&buffer[..head]).into_owned();
    let end = head + content_length(&text);
    while buffer.len() < end {
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
    let body = String::from_utf8_lossy(&buffer[head..end]).into_owned();
    buffer.drain(..end);
    Ok(Some(Request { line: text.lines().next().unwrap_or_default().to_owned(), head: text, body }))
}

fn content_length(head: &str) -> usize {
    let fields = head.lines().filter_map(|line| line.split_once(':'));
    let mut lengths = fields.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    lengths.next().and_then(|(_, value)| value.trim().parse().ok()).unwrap_or(0)
}

async fn answer(stream: &mut TcpStream, request: &Request, counts: &Counts) -> io::Result<()> {
    if request.line.starts_with("GET") && request.line.contains("/models") {
        return whole(stream, 200, r#"{"object":"list","data":[{"id":"mock","object":"model","owned_by":"mock"}]}"#)
            .await;
    }
    if request.line.starts_with("GET") && request.line.contains("/counts") {
        let (requests, deltas) = (counts.requests.load(Ordering::Relaxed), counts.deltas.load(Ordering::Relaxed));
        return whole(stream, 200, &format!(r#"{{"requests":{requests},"deltas":{deltas}}}"#)).await;
    }
    if !request.line.starts_with("POST") || !request.line.contains("/chat/completions") {
        return whole(stream, 404, r#"{"error":{"message":"not found"}}"#).await;
    }
    let number = counts.requests.fetch_add(1, Ordering::Relaxed);
    counts.last.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&request.body);
    let pace = Pace::of(&request.body);
    if pace.first_ms > 0 {
        tokio::time::sleep(Duration::from_millis(pace.first_ms)).await;
    }
    stream.write_all(HEAD.as_bytes()).await?;
    match tool_call(&request.body) {
        Some((name, arguments)) => call(stream, number, &name, &arguments).await?,
        None => text(stream, pace, counts).await?,
    }
    let usage =
        format!(r#"[],"usage":{{"prompt_tokens":10,"completion_tokens":{0},"total_tokens":{0}}}}}"#, pace.deltas);
    chunk(stream, &format!("{EVENT}{usage}\n\n")).await?;
    chunk(stream, "data: [DONE]\n\n").await?;
    stream.write_all(b"0\r\n\r\n").await
}

pub(crate) const HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const EVENT: &str =
    r#"data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"mock","choices":"#;

async fn text(stream: &mut TcpStream, pace: Pace, counts: &Counts) -> io::Result<()> {
    let frame = |index| framed(&delta(&format!(r#"{{"content":"{}"}}"#, pace.delta(index)), "null"));
    let same = frame(0);
    for index in 0..pace.deltas {
        if index > 0 && pace.between_ms > 0 {
            tokio::time::sleep(Duration::from_millis(pace.between_ms)).await;
        }
        match pace.word {
            0 => stream.write_all(same.as_bytes()).await?,
            _ => stream.write_all(frame(index).as_bytes()).await?,
        }
        counts.deltas.fetch_add(1, Ordering::Relaxed);
        if pace.between_ms == 0 && index % 64 == 63 {
            tokio::task::yield_now().await;
        }
    }
    chunk(stream, &delta("{}", r#""stop""#)).await
}

async fn call(stream: &mut TcpStream, number: u64, name: &str, arguments: &str) -> io::Result<()> {
    let arguments = serde_json::Value::from(arguments);
    let function = format!(r#"{{"name":"{name}","arguments":{arguments}}}"#);
    let calls =
        format!(r#"{{"tool_calls":[{{"index":0,"id":"call_{number}","type":"function","function":{function}}}]}}"#);
    chunk(stream, &delta(&calls, "null")).await?;
    chunk(stream, &delta("{}", r#""tool_calls""#)).await
}

fn delta(delta: &str, finish: &str) -> String {
    format!("{EVENT}[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{finish}}}]}}\n\n")
}

pub(crate) fn framed(event: &str) -> String {
    format!("{:x}\r\n{event}\r\n", event.len())
}

async fn chunk(stream: &mut TcpStream, event: &str) -> io::Result<()> {
    stream.write_all(framed(event).as_bytes()).await
}

pub(crate) async fn whole(stream: &mut TcpStream, status: u16, body: &str) -> io::Result<()> {
    let head =
        format!("HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(format!("{head}{body}").as_bytes()).await
}

/// The last marker that begins so, without its closing brackets, and where it is.
fn marker<'a>(request: &'a str, begin: &str) -> Option<(usize, &'a str)> {
    let at = request.rfind(begin)?;
    let length = request[at..].find("]]")?;
    Some((at, &request[at..at + length]))
}

fn pairs(marker: &str) -> impl Iterator<Item = (&str, usize)> {
    marker
        .split(',')
        .filter_map(|pair| pair.split_once('='))
        .filter_map(|(key, value)| Some((key, value.parse().ok()?)))
}

/// The tool call that the request asks for and has no result of yet.
fn tool_call(request: &str) -> Option<(String, String)> {
    let (at, text) = marker(request, "[[call=")?;
    if request[at..].contains(r#""role":"tool""#) {
        return None;
    }
    // The request is JSON text, so the marker arrives escaped.
    let plain: String = serde_json::from_str(&format!("\"{text}\"")).ok()?;
    let (name, arguments) = plain.strip_prefix("[[call=")?.split_once('|')?;
    Some((name.to_owned(), arguments.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_marker_of_a_request_counts() {
        let slow = Pace { deltas: 7, between_ms: 2, first_ms: 1, size: 4, word: 9 };
        let request = format!("{} then {} and more", Pace::default().marker(), slow.marker());
        assert_eq!(Pace::of(&request), slow);
        assert_eq!(Pace::of("nothing"), Pace::default());
    }

    #[test]
    fn a_tool_is_called_until_its_result_is_there() {
        let prompt = r#"{"messages":[{"role":"user","content":"[[call=shell|{\"command\":\"echo \\\"hi\\\"\"}]]"}"#;
        let expected = ("shell".to_owned(), r#"{"command":"echo \"hi\""}"#.to_owned());
        assert_eq!(tool_call(prompt), Some(expected));
        assert_eq!(tool_call(&format!(r#"{prompt},{{"role":"tool","content":"hi"}}]}}"#)), None);
    }
}
