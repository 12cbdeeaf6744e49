//! A server at an address that wants to know who calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gander_domain::ToolEnd;
use gander_mcp::{Reach, ServerState, Spec, Transport};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::test_server::{TestServer, text};

/// A server that lets everybody in while it is open.
struct Web {
    url: String,
    open: Arc<AtomicBool>,
}

impl Web {
    async fn serve(open: bool) -> Self {
        drop(rustls::crypto::ring::default_provider().install_default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let open = Arc::new(AtomicBool::new(open));
        let door = Arc::clone(&open);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, door.load(Ordering::SeqCst)));
            }
        });
        Self { url, open }
    }

    fn spec(&self, headers: &[(&str, &str)]) -> Spec {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let transport = Transport::Http { url: self.url.clone(), headers, reach: Reach::Anywhere, client_id: None };
        Spec::new("web".to_owned(), transport)
    }
}

async fn answer(stream: TcpStream, open: bool) {
    let mut stream = BufReader::new(stream);
    let (mut first, mut length) = (String::new(), 0);
    stream.read_line(&mut first).await.unwrap();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    let (status, body) = said(&first, &serde_json::from_slice(&body).unwrap_or_default(), open);
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\nwww-authenticate: Bearer\r\n"
    );
    let page = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
    drop(stream.write_all(page.as_bytes()).await);
}

fn said(first: &str, message: &Value, open: bool) -> (&'static str, String) {
    if !first.starts_with("POST /mcp ") {
        return ("405 Method Not Allowed", String::new());
    }
    if !open {
        return ("401 Unauthorized", String::new());
    }
    let tool = json!({"name": "echo", "inputSchema": {"type": "object"}});
    let result = match message["method"].as_str() {
        Some("initialize") => json!({"protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}}, "serverInfo": {"name": "web", "version": "1"}}),
        Some("tools/list") => json!({"tools": [tool]}),
        Some("tools/call") => json!({"content": [{"type": "text", "text": "hi"}]}),
        Some(_) | None => return ("202 Accepted", String::new()),
    };
    ("200 OK", json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string())
}

#[tokio::test]
async fn a_given_authorization_that_is_refused_is_no_login_to_come() {
    let web = Web::serve(false).await;
    let server = TestServer::with(vec![web.spec(&[("Authorization", "Bearer hush-hush-hush")])]).await;
    let refused = ServerState::Failed("the given authorization was refused".to_owned());
    assert_eq!(server.servers.server_statuses()[0].state, refused);
    let server = TestServer::with(vec![web.spec(&[])]).await;
    assert_eq!(server.servers.server_statuses()[0].state, ServerState::Locked);
}

#[tokio::test]
async fn an_authorization_that_ends_while_it_works_is_noticed() {
    let web = Web::serve(true).await;
    let server = TestServer::with(vec![web.spec(&[])]).await;
    assert_eq!(server.text("web__echo", json!({})).await, "hi");
    web.open.store(false, Ordering::SeqCst);
    let (result, _) = server.call("web__echo", json!({})).await;
    assert_eq!(result.end, ToolEnd::Failed, "{}", text(&result));
    let locked = async {
        while server.servers.server_statuses()[0].state != ServerState::Locked {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), locked).await.expect("it wants a login");
    web.open.store(true, Ordering::SeqCst);
    server.servers.resume_after_login(&web.spec(&[]));
    server.servers.wait_until_settled().await;
    assert_eq!(server.text("web__echo", json!({})).await, "hi");
}
