//! A loopback server that answers each request with prepared bytes.
#![allow(clippy::unwrap_used, dead_code)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

pub struct Server {
    pub url: String,
    state: Arc<State>,
    hung_up: mpsc::Receiver<()>,
}

#[derive(Default)]
struct State {
    answers: Mutex<Vec<Answer>>,
    requests: Mutex<Vec<String>>,
    connections: AtomicUsize,
}

/// The bytes of one answer, and whether the connection then stays open without a word.
#[derive(Clone)]
pub struct Answer {
    bytes: Vec<u8>,
    then: Then,
}

#[derive(Clone, Copy, PartialEq)]
enum Then {
    ServeOn,
    Close,
    Hang,
}

impl Answer {
    /// These bytes, then the end of the connection.
    pub fn raw(text: &str) -> Self {
        Self { bytes: text.as_bytes().to_vec(), then: Then::Close }
    }
}

/// A stream of events in one chunk, and a connection that serves on.
pub fn ok(events: &str) -> Answer {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let bytes = format!("{head}{:x}\r\n{events}\r\n0\r\n\r\n", events.len());
    Answer { bytes: bytes.into_bytes(), then: Then::ServeOn }
}

/// A refusal.
pub fn status(line: &str, headers: &str, body: &str) -> Answer {
    let bytes = format!("HTTP/1.1 {line}\r\n{headers}content-length: {}\r\n\r\n{body}", body.len());
    Answer { bytes: bytes.into_bytes(), then: Then::ServeOn }
}

/// The answer without its end, and then nothing.
pub fn hanging(answer: Answer) -> Answer {
    let bytes = answer.bytes.strip_suffix(b"0\r\n\r\n").unwrap_or(&answer.bytes).to_vec();
    Answer { bytes, then: Then::Hang }
}

impl Server {
    pub async fn start(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(State { answers: Mutex::new(answers), ..State::default() });
        let (sender, hung_up) = mpsc::channel(16);
        let shared = state.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                shared.connections.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(serve(socket, shared.clone(), sender.clone()));
            }
        });
        Self { url, state, hung_up }
    }

    /// An address where nobody listens.
    pub async fn closed() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    }

    pub fn requests(&self) -> Vec<String> {
        self.state.requests.lock().unwrap().clone()
    }

    pub fn connections(&self) -> usize {
        self.state.connections.load(Ordering::Relaxed)
    }

    /// Waits until a client closes a connection that hangs.
    pub async fn hung_up(&mut self) {
        self.hung_up.recv().await.unwrap();
    }
}

async fn serve(mut socket: TcpStream, state: Arc<State>, hung_up: mpsc::Sender<()>) {
    while let Some(request) = read(&mut socket).await {
        state.requests.lock().unwrap().push(request);
        let answer = {
            let mut answers = state.answers.lock().unwrap();
            if answers.is_empty() { status("404 Not Found", "", "no answer prepared") } else { answers.remove(0) }
        };
        socket.write_all(&answer.bytes).await.unwrap();
        match answer.then {
            Then::ServeOn => {}
            Then::Close => return,
            Then::Hang => {
                // Nothing more is sent: this returns when the client is gone.
                let mut rest = Vec::new();
                socket.read_to_end(&mut rest).await.ok();
                hung_up.send(()).await.ok();
                return;
            }
        }
    }
}

/// One request with its body.
async fn read(socket: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
            if body.len() >= length.unwrap_or(0) {
                return Some(text);
            }
        }
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}
