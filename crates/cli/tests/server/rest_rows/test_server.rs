//! A server with the demo model, asked over HTTP as its clients do and byte by byte.

use gander_testkit::harness::{Launch, PATIENCE, Server, binary, data, workspace};
use reqwest::header::HeaderMap;
use reqwest::{Client, Method, RequestBuilder};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::rest_rows::family::Family;

pub struct TestServer {
    pub server: Server,
    pub token: String,
    client: Client,
    root: tempfile::TempDir,
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
}

impl TestServer {
    pub async fn open() -> Self {
        Self::with(&[]).await
    }

    pub async fn with(variables: &[(&str, &str)]) -> Self {
        let root = tempfile::tempdir().unwrap();
        let mut launch = Launch::demo(binary(env!("CARGO_BIN_EXE_gander")), data(root.path()).unwrap());
        for (name, value) in variables {
            launch = launch.with(name, value);
        }
        let server = launch.serve().await.unwrap();
        let token = launch.stdout(&["token"]).await.unwrap().trim().to_owned();
        rustls::crypto::ring::default_provider().install_default().ok();
        let client = Client::builder().no_proxy().timeout(PATIENCE).build().unwrap();
        Self { server, token, client, root }
    }

    /// A folder to work in.
    pub fn work(&self) -> String {
        workspace(self.root.path()).unwrap().to_str().unwrap().to_owned()
    }

    pub fn request(&self, family: Family, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("http://{}{path}", self.server.address));
        let credential = family.credential(&self.token);
        let (name, value) = credential.split_once(": ").unwrap();
        request.header(name, value)
    }

    pub async fn get(&self, family: Family, path: &str) -> Answer {
        Answer::to(self.request(family, Method::GET, path)).await
    }

    pub async fn post(&self, family: Family, path: &str, body: &Value) -> Answer {
        Answer::to(self.request(family, Method::POST, path).json(body)).await
    }

    /// A body of any bytes that claims to be JSON.
    pub async fn post_bytes(&self, family: Family, path: &str, body: Vec<u8>) -> Answer {
        let request = self.request(family, Method::POST, path).header("content-type", "application/json");
        Answer::to(request.body(body)).await
    }

    /// Sends these bytes and reads until the server closes: status and everything after it.
    pub async fn raw(&self, request: &[u8]) -> (u16, String) {
        let mut stream = TcpStream::connect(self.server.address).await.unwrap();
        // The server may answer and close before it has read everything.
        let sent = stream.write_all(request).await;
        self.rest(stream, &format!("{sent:?}")).await
    }

    /// What a connection says until it is closed.
    pub async fn rest(&self, mut stream: TcpStream, note: &str) -> (u16, String) {
        let mut answer = Vec::new();
        let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("it is left open");
        let text = String::from_utf8_lossy(&answer).into_owned();
        let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
        (status.unwrap_or_else(|| panic!("no answer: {note} {read:?} {text}")), text)
    }

    /// The lines before a body of JSON, without the empty one.
    pub fn head(&self, line: &str, more: &[&str]) -> String {
        let mut head = format!("{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
        head.push_str("Content-Type: application/json\r\n");
        more.iter().for_each(|header| head.push_str(&format!("{header}\r\n")));
        head
    }
}

impl Answer {
    pub async fn to(request: RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Self { status, headers, text: response.text().await.unwrap_or_default() }
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("no JSON: {} {}", self.status, self.text))
    }

    /// The body of a request that went well.
    pub fn ok(&self) -> Value {
        assert!(self.status < 300, "{} {}", self.status, self.text);
        self.json()
    }
}
