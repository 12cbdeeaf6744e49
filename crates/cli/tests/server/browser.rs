//! A browser at the real server: the page, one-use tickets, cookies that count for the page alone, and how they end.
#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;

use futures::{SinkExt as _, StreamExt as _};
use gander_testkit::harness::PATIENCE;
use reqwest::{Client, Method, Response};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::binary::{Running, TestDirectory};

const PORT: &str = "127.0.0.1:0";

fn served(test_directory: &TestDirectory) -> (Running, SocketAddr) {
    let mut serve = test_directory.start(&["serve", "--listen", PORT]);
    let line = serve.wait_for("listening on http://");
    let address = line.trim().rsplit_once("http://").unwrap().1.parse().unwrap();
    (serve, address)
}

/// The link that `gander open` prints where there is no browser, as its address and its ticket.
fn link(test_directory: &TestDirectory) -> (String, String) {
    let printed = test_directory.ok(&["open"]);
    let (base, ticket) = printed.trim().split_once("/#ticket=").unwrap();
    (base.to_owned(), ticket.to_owned())
}

/// A request as a page at `origin` makes it.
async fn request(
    address: SocketAddr,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<Value>,
) -> Response {
    // Whoever comes second finds the same provider installed.
    drop(rustls::crypto::ring::default_provider().install_default());
    let mut request = Client::new().request(method, format!("http://{address}{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    match body {
        Some(body) => request.json(&body).send().await.unwrap(),
        None => request.send().await.unwrap(),
    }
}

/// What a browser has after it signed in.
#[derive(Debug, PartialEq)]
struct SignedIn {
    /// As it was set, with its attributes.
    cookie: String,
    page_key: String,
}

impl SignedIn {
    fn pair(&self) -> &str {
        self.cookie.split(';').next().unwrap()
    }

    /// What a page sends beside its origin.
    fn headers(&self) -> [(&str, &str); 2] {
        [("cookie", self.pair()), ("x-gander-page-key", &self.page_key)]
    }
}

/// Trades a ticket for a cookie and a page key, as the page does.
async fn sign_in(address: SocketAddr, ticket: &str) -> Result<SignedIn, u16> {
    let (own, body) = (format!("http://{address}"), json!({ "ticket": ticket }));
    let answer = request(address, Method::POST, "/gander/login", &[("origin", &own)], Some(body)).await;
    match answer.status().as_u16() {
        200 => {
            let cookie = answer.headers()["set-cookie"].to_str().unwrap().to_owned();
            let body: Value = answer.json().await.unwrap();
            Ok(SignedIn { cookie, page_key: body["pageKey"].as_str().unwrap().to_owned() })
        }
        status => Err(status),
    }
}

/// Opens a WebSocket as a page does, which can set no headers but these.
async fn socket(
    address: SocketAddr,
    query: &str,
    headers: &[(&str, &str)],
) -> Result<(WebSocketStream<TcpStream>, Option<String>), u16> {
    let mut request = http::Request::builder()
        .uri(format!("ws://{address}/acp{query}"))
        .header("Host", address.to_string())
        .header("Origin", format!("http://{address}"))
        .header("Connection", "Upgrade")
        .header("Upgrade", "websocket")
        .header("Sec-WebSocket-Version", "13")
        .header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let stream = TcpStream::connect(address).await.unwrap();
    match client_async(request.body(()).unwrap(), stream).await {
        Ok((mut stream, response)) => {
            let initialize =
                json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": 1 } });
            stream.send(Message::text(initialize.to_string())).await.unwrap();
            let answer = stream.next().await.unwrap().unwrap().into_text().unwrap();
            assert!(answer.contains("agentCapabilities"), "{answer}");
            let chosen = response.headers().get("sec-websocket-protocol").map(|name| name.to_str().unwrap().to_owned());
            Ok((stream, chosen))
        }
        Err(tungstenite::Error::Http(response)) => Err(response.status().as_u16()),
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_loads_nothing_from_elsewhere_and_runs_nothing_inline() {
    let test_directory = TestDirectory::new();
    let (_serve, address) = served(&test_directory);
    let page = request(address, Method::GET, "/", &[], None).await;
    assert_eq!(page.status(), 200);
    let policy = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
    for part in ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(page.headers()["referrer-policy"], "no-referrer");
    let text = page.text().await.unwrap();
    assert!(text.to_lowercase().starts_with("<!doctype html>"), "{text}");
    let scripts: Vec<&str> = text.split("<script").skip(1).map(|rest| rest.split('>').next().unwrap()).collect();
    // The small page names its files from the root, the built one from where it is.
    let own = |script: &&str| script.contains("src=\"/") || script.contains("src=\"./");
    assert!(!scripts.is_empty() && scripts.iter().all(own), "{scripts:?}");
    for name in ["href=\"/", "src=\"/", "href=\"./", "src=\"./"] {
        for path in text.split(name).skip(1).map(|rest| rest.split('"').next().unwrap()) {
            let file = request(address, Method::GET, &format!("/{path}"), &[], None).await;
            assert_eq!((file.status().as_u16(), path), (200, path));
        }
    }
    // What an agent made is shown in a file of its own, whose scripts run and reach nothing. The small page has none.
    let frame = request(address, Method::GET, "/frame.html", &[], None).await;
    if frame.status() == 200 {
        let policy = frame.headers()["content-security-policy"].to_str().unwrap();
        assert!(policy.contains("default-src 'none'") && policy.ends_with("sandbox allow-scripts"), "{policy}");
        assert!(!policy.contains("connect-src") && !policy.contains("'self'; script"), "{policy}");
    }
    assert_eq!(request(address, Method::GET, "/assets/../token", &[], None).await.status(), 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ticket_lets_a_browser_in_once_and_its_cookie_counts_for_the_page_alone() {
    let test_directory = TestDirectory::new();
    let (serve, address) = served(&test_directory);
    let (base, ticket) = link(&test_directory);
    assert_eq!(base, format!("http://{address}"));
    let token = test_directory.ok(&["token"]).trim().to_owned();
    assert!(!ticket.contains(&token[7..]) && ticket.len() > 40);
    let signed_in = sign_in(address, &ticket).await.unwrap();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(signed_in.cookie.contains(part), "{}", signed_in.cookie);
    }
    assert_eq!(sign_in(address, &ticket).await, Err(401), "a ticket is good once");
    let status = async |headers: &[(&str, &str)]| {
        let all = [&signed_in.headers(), headers].concat();
        request(address, Method::GET, "/gander/status", &all, None).await.status().as_u16()
    };
    assert_eq!(status(&[("sec-fetch-site", "same-origin")]).await, 200);
    assert_eq!(status(&[("origin", &base)]).await, 200);
    assert_eq!(status(&[]).await, 401, "a program that took the cookie");
    assert_eq!(status(&[("sec-fetch-site", "same-site")]).await, 401, "a page on another port");
    assert_eq!(status(&[("sec-fetch-site", "cross-site")]).await, 401);
    assert_eq!(status(&[("sec-fetch-site", "none")]).await, 401, "a link that was clicked");
    let taken = [("cookie", signed_in.pair()), ("sec-fetch-site", "same-origin")];
    let stolen = request(address, Method::GET, "/gander/status", &taken, None).await.status();
    assert_eq!(stolen, 401, "a program on another port of this host, which sees the cookie but not the page's key");
    assert_eq!(socket(address, "", &taken).await.err(), Some(401));
    let offered = format!("acp, gander.page.{}", signed_in.page_key);
    let own = [("cookie", signed_in.pair()), ("sec-websocket-protocol", offered.as_str())];
    let (mut stream, chosen) = socket(address, "", &own).await.unwrap();
    assert_eq!(chosen.as_deref(), Some("acp"));
    assert_eq!(test_directory.ok(&["open", "--revoke"]).trim(), "signed out: 1 browser");
    assert_eq!(status(&[("sec-fetch-site", "same-origin")]).await, 401);
    let end = async { while let Some(Ok(_)) = stream.next().await {} };
    tokio::time::timeout(PATIENCE, end).await.expect("what the browser had open ends");
    let next = sign_in(address, &link(&test_directory).1).await.unwrap();
    let own = [&next.headers()[..], &[("origin", base.as_str())]].concat();
    assert_eq!(request(address, Method::DELETE, "/gander/login", &own, None).await.status(), 204);
    assert_eq!(request(address, Method::GET, "/gander/status", &own, None).await.status(), 401, "it signed out");
    serve.terminate();
    let log = serve.wait().err;
    assert!(!log.contains(&ticket), "a ticket was logged");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cookie_has_the_scopes_of_the_token_behind_its_ticket_and_outlives_the_server() {
    let test_directory = TestDirectory::new();
    let (serve, address) = served(&test_directory);
    let token = test_directory.ok(&["token", "add", "phone", "--scopes", "prompt"]).trim().to_owned();
    let bearer = format!("Bearer {token}");
    let made = request(address, Method::POST, "/gander/tickets", &[("authorization", &bearer)], None).await;
    assert_eq!(made.status(), 200);
    let made: Value = made.json().await.unwrap();
    assert_eq!(made["expiresInSeconds"], 30);
    let ticket = made["ticket"].as_str().unwrap();
    assert_eq!(made["url"], format!("http://{address}/#ticket={ticket}"));
    let signed_in = sign_in(address, ticket).await.unwrap();
    let own = format!("http://{address}");
    let headers = [&signed_in.headers()[..], &[("origin", own.as_str())]].concat();
    let status: Value = request(address, Method::GET, "/gander/status", &headers, None).await.json().await.unwrap();
    assert_eq!((&status["principal"], &status["scopes"]), (&json!("phone"), &json!(["read", "prompt"])));
    let phone = [("authorization", bearer.as_str())];
    let refused = request(address, Method::POST, "/gander/tickets", &phone, Some(json!({ "phone": true }))).await;
    assert_eq!(refused.status(), 400, "a phone's ticket never crosses a network in the clear");
    serve.terminate();
    serve.wait();
    let mut serve = test_directory.start(&["serve", "--listen", &address.to_string()]);
    serve.wait_for("listening on");
    assert_eq!(request(address, Method::GET, "/gander/status", &headers, None).await.status(), 200);
    test_directory.ok(&["token", "revoke", "phone"]);
    assert_eq!(request(address, Method::GET, "/gander/status", &headers, None).await.status(), 401);
    serve.terminate();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_attaches_over_acp_with_a_ticket_in_the_address_or_as_a_subprotocol() {
    let test_directory = TestDirectory::new();
    let (serve, address) = served(&test_directory);
    let ticket = link(&test_directory).1;
    let query = format!("?ticket={ticket}");
    let (_open, chosen) = socket(address, &query, &[]).await.unwrap();
    assert_eq!(chosen, None);
    assert_eq!(socket(address, &query, &[]).await.err(), Some(401), "it was used");
    let offered = format!("acp, gander.ticket.{}", link(&test_directory).1);
    let (_open, chosen) = socket(address, "", &[("sec-websocket-protocol", &offered)]).await.unwrap();
    assert_eq!(chosen.as_deref(), Some("acp"));
    let unused = format!("/gander/status?ticket={}", link(&test_directory).1);
    assert_eq!(request(address, Method::GET, &unused, &[], None).await.status(), 401, "only streams take a ticket");
    assert_eq!(socket(address, "?ticket=ticket_0", &[]).await.err(), Some(401));
    serve.terminate();
}

#[test]
fn open_starts_a_server_where_none_runs_and_hands_the_link_to_the_browser() {
    let mut test_directory = TestDirectory::new();
    test_directory.variables.push(("GANDER_SERVER_LISTEN", PORT.to_owned()));
    let seen = test_directory.root.path().join("seen");
    let browser = test_directory.root.path().join("browser");
    std::fs::write(&browser, format!("#!/bin/sh\nprintf %s \"$1\" > {}\n", seen.display())).unwrap();
    std::fs::set_permissions(&browser, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    test_directory.variables.push(("BROWSER", browser.to_str().unwrap().to_owned()));
    let printed = test_directory.ok(&["open"]);
    let url = std::fs::read_to_string(&seen).unwrap();
    let (base, ticket) = url.split_once("/#ticket=").unwrap();
    assert_eq!(printed.trim(), format!("opened {base} in the browser"));
    assert!(!printed.contains(ticket));
    assert_eq!(test_directory.listening_ports(test_directory.server_pid()), 1);
    let again = test_directory.ok(&["open", "--print"]);
    assert!(again.starts_with(&format!("{base}/#ticket=")), "the same listener: {again}");
    test_directory.stop_server();
}

#[test]
fn a_phone_gets_a_code_and_the_fingerprint_over_tls() {
    let test_directory = TestDirectory::new();
    let opened = test_directory.run(&["open", "--phone", "--listen", PORT]);
    assert_eq!(opened.code, 0, "{opened:?}");
    assert!(opened.out.starts_with("https://127.0.0.1:"), "{}", opened.out);
    assert!(opened.err.contains('█') && opened.err.contains("within 5 minutes"), "{}", opened.err);
    let fingerprint = opened.err.lines().find(|line| line.trim().len() >= 64 && line.contains(':'));
    assert!(fingerprint.is_some(), "{}", opened.err);
    test_directory.stop_server();
}
