//! The network side: who is let in, what is too much, and what everything else is answered.
#![allow(clippy::unwrap_used)]

mod description;
mod status;

use std::ops::Deref;
use std::sync::Arc;

use axum::routing::on;
use gander_domain::caller::Scope;
use gander_gateway::server::{Gateway, ROUTES, guarded_test_router, router};
use gander_http::settings::OpenProtocol;
use gander_http::{Access, HttpState, Payload, Route, RouteRule, Size, Verb};
use gander_services::token;
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::served::Served;

/// Routes that only tests have, beside the real ones' kinds.
const TEST_ROUTES: &[Route<Arc<HttpState>>] = &[
    Route {
        verb: Verb::Post,
        path: "/echo",
        access: Access::Token(Scope::Prompt),
        payload: Payload::Json(Size::Small),
        serve: |verb| on(verb, |body: String| async move { body }),
    },
    Route {
        verb: Verb::Post,
        path: "/open",
        access: Access::OpenProtocol(OpenProtocol::A2a, Scope::Prompt),
        payload: Payload::Any(Size::Small),
        serve: |verb| on(verb, |body: String| async move { body }),
    },
    Route {
        verb: Verb::Post,
        path: "/open/approve",
        access: Access::OpenProtocol(OpenProtocol::A2a, Scope::Approve),
        payload: Payload::None,
        serve: |verb| on(verb, || async { "" }),
    },
    Route {
        verb: Verb::Post,
        path: "/open/admin",
        access: Access::OpenProtocol(OpenProtocol::A2a, Scope::Admin),
        payload: Payload::None,
        serve: |verb| on(verb, || async { "" }),
    },
    Route {
        verb: Verb::Get,
        path: "/panic",
        access: Access::Public,
        payload: Payload::None,
        serve: |verb| on(verb, panics),
    },
];

fn test_router(gateway: &Gateway) -> axum::Router {
    guarded_test_router(TEST_ROUTES, &gateway.http)
}

async fn panics() -> &'static str {
    panic!("secret detail: /home/somebody")
}

struct Server(Served);

impl Deref for Server {
    type Target = Served;

    fn deref(&self) -> &Served {
        &self.0
    }
}

#[derive(Debug, PartialEq)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Server {
    async fn start(router: fn(&Gateway) -> axum::Router, variables: &[(&str, &str)]) -> Self {
        let root = tempfile::tempdir().unwrap();
        let (config, _) = crate::served::settings(root.path(), variables);
        Self(Served::of(Arc::new(root), config, router).await)
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends these bytes and reads until the server closes.
    async fn raw(&self, request: &[u8]) -> Answer {
        let mut stream = self.connect().await;
        // The server may answer and close before it has read everything.
        let sent = stream.write_all(request).await;
        let mut answer = Vec::new();
        let read = stream.read_to_end(&mut answer).await;
        assert!(!answer.is_empty(), "no answer: {sent:?} {read:?}");
        parse(&String::from_utf8_lossy(&answer))
    }

    async fn send(&self, method: &str, path: &str, headers: &[&str], body: &str) -> Answer {
        let headers: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
        let length = body.len();
        let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
        self.raw(format!("{head}Content-Length: {length}\r\n{headers}\r\n{body}").as_bytes()).await
    }

    fn bearer(&self) -> String {
        format!("Authorization: Bearer {}", self.token)
    }
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    fn code(&self) -> Value {
        self.json()["error"]["code"].clone()
    }
}

fn parse(text: &str) -> Answer {
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head: head.to_owned(), body: body.to_owned() }
}

#[tokio::test]
async fn every_route_but_the_public_ones_needs_a_token_before_its_body_is_read() {
    let all = ROUTES.iter().map(|route| (route.verb, route.path, route.access)).collect::<Vec<_>>();
    let own = TEST_ROUTES.iter().map(|route| (route.verb, route.path, route.access)).collect();
    for (router, routes) in [(router as fn(&Gateway) -> axum::Router, all), (test_router, own)] {
        let server = Server::start(router, &[("GANDER_LIMITS_BAD_TOKENS_PER_MINUTE", "1000")]).await;
        for (verb, path, access) in routes {
            let verb = format!("{verb:?}").to_uppercase();
            let path = path.replace(['{', '}'], "");
            // The body never comes: who waits for it never answers.
            let head = "Host: localhost\r\nContent-Type: application/json\r\nContent-Length: 10\r\nConnection: close";
            match access {
                Access::Token(_) | Access::OpenProtocol(..) => {
                    let answer = server.raw(format!("{verb} {path} HTTP/1.1\r\n{head}\r\n\r\n").as_bytes()).await;
                    assert_eq!((answer.status, answer.json().is_object()), (401, true), "{verb} {path}");
                    assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
                }
                Access::Public => {
                    assert_ne!(server.send(&verb, &path, &[], "").await.status, 401, "{verb} {path}");
                }
            }
        }
    }
}

/// What belongs to the page: `browser` tests it.
#[rustfmt::skip]
const PAGE_ROUTES: [&str; 12] = [
    "/assets/{*path}", "/docs", "/docs/api", "/docs/{*path}", "/favicon.ico", "/favicon.svg", "/frame.html", "/inspector", "/licences", "/manifest.webmanifest", "/sw.js", "/gander/login",
];

#[tokio::test]
async fn the_public_routes_are_these_and_say_little() {
    let public: Vec<&str> =
        ROUTES.iter().filter(|route| route.access == Access::Public).map(|route| route.path).collect();
    // Whoever looks for an agent has no token yet: cards are public, and name the agent's version. So are the public
    // halves of the keys that sign them, and the files of a page that the owner put there.
    let public = public.into_iter().filter(|path| !path.starts_with("/dev-ui"));
    let (cards, public): (Vec<&str>, Vec<&str>) = public.partition(|path| path.contains("/.well-known/"));
    // So is what says where to log in, if there is an identity provider.
    let known = ["card.json", "agent.json", "catalog.json", "jwks.json", "oauth-protected-resource"];
    assert!(cards.iter().all(|path| known.iter().any(|name| path.ends_with(name))), "{cards:?}");
    let (page, public): (Vec<&str>, Vec<&str>) = public.into_iter().partition(|path| PAGE_ROUTES.contains(path));
    // Signing in and out have one path.
    assert_eq!(page, [&PAGE_ROUTES[..], &["/gander/login"]].concat());
    let small = ["/", "/health", "/ping", "/status", "/features", "/acp-rest/ping"];
    assert_eq!(public, [&small[..], &["/resources/{id}", "/acp-rest/resources/{id}"]].concat());
    let server = Server::start(router, &[]).await;
    assert_eq!(server.send("GET", "/health", &[], "").await.json(), json!({ "status": "ok" }));
    assert_eq!(server.send("GET", "/status", &[], "").await.body, "ok");
    assert_eq!(server.send("GET", "/ping", &[], "").await.json(), json!({}));
    for path in public.into_iter().filter(|path| !path.contains("resources")) {
        let answer = server.send("GET", path, &[], "").await;
        assert_eq!(answer.status, 200, "{path}");
        assert!(!answer.body.contains(gander::VERSION) && !answer.body.contains("data"), "{path}");
    }
}

#[tokio::test]
async fn a_token_is_accepted_in_two_headers_and_nowhere_else() {
    let server = Server::start(router, &[]).await;
    let (token, bearer) = (server.token.clone(), server.bearer());
    let secret = format!("X-Secret-Key: {token}");
    for good in [&bearer, &secret, &format!("authorization: bearer {token}")] {
        assert_eq!(server.send("GET", "/gander/status", &[good], "").await.status, 200, "{good}");
    }
    let in_query = server.send("GET", &format!("/gander/status?token={token}"), &[], "").await;
    assert_eq!(in_query.status, 401);
    let wrong = [
        format!("Authorization: Bearer {}", &token[1..]),
        format!("Authorization: Bearer {token}0"),
        format!("Authorization: {token}"),
        "Authorization: Bearer ".to_owned(),
        format!("Cookie: token={token}"),
        format!("{bearer}\r\n{bearer}"),
        format!("{bearer}\r\n{secret}"),
    ];
    for header in &wrong {
        assert_eq!(server.send("GET", "/gander/status", &[header], "").await.status, 401, "{header}");
    }
}

#[tokio::test]
async fn a_token_without_the_scope_is_forbidden() {
    let server = Server::start(test_router, &[]).await;
    let token = token::add_token(&server.config.paths, "reader", &[], None).unwrap();
    let bearer = format!("Authorization: Bearer {}", token.expose_secret());
    let answer = server.send("POST", "/echo", &[&bearer, "Content-Type: application/json"], "{}").await;
    assert_eq!((answer.status, answer.code()), (403, json!("forbidden")));
    token::revoke_token(&server.config.paths, "reader").unwrap();
    let answer = server.send("POST", "/echo", &[&bearer, "Content-Type: application/json"], "{}").await;
    assert_eq!(answer.status, 401);
}

#[tokio::test]
async fn an_open_protocol_needs_no_token_but_takes_no_wrong_one() {
    for (open, approve, expected) in [
        ("['adk']", "true", [401, 401, 401, 401]),
        ("['adk', 'a2a']", "false", [200, 403, 403, 401]),
        ("['adk', 'a2a']", "true", [200, 200, 403, 401]),
    ] {
        let settings = [("GANDER_SERVER_OPEN", open), ("GANDER_SERVER_OPEN_APPROVE", approve)];
        let server = Server::start(test_router, &settings).await;
        let send = async |path: &str, header: &[&str], body: &str| server.send("POST", path, header, body).await.status;
        let wrong = send("/open", &["Authorization: Bearer wrong"], "x").await;
        let (open, approve) = (send("/open", &[], "x").await, send("/open/approve", &[], "").await);
        let statuses = [open, approve, send("/open/admin", &[], "").await, wrong];
        assert_eq!(statuses, expected, "{settings:?}");
        assert_eq!(server.send("POST", "/open/admin", &[&server.bearer()], "").await.status, 200);
        assert_eq!(server.send("POST", "/open", &["Origin: https://evil.example"], "x").await.status, 403);
    }
}

#[tokio::test]
async fn wrong_tokens_run_into_a_wall_that_the_right_one_passes() {
    let server = Server::start(router, &[]).await;
    for _ in 0..20 {
        assert_eq!(server.send("GET", "/gander/status", &["X-Secret-Key: wrong"], "").await.status, 401);
    }
    let answer = server.send("GET", "/gander/status", &["X-Secret-Key: wrong"], "").await;
    assert_eq!((answer.status, answer.header("retry-after")), (429, Some("60")));
    assert_eq!(server.send("GET", "/gander/status", &[&server.bearer()], "").await.status, 200);
}

#[tokio::test]
async fn requests_are_rationed_per_token() {
    let variables = [("GANDER_LIMITS_LOCAL_REQUEST_BURST", "2"), ("GANDER_LIMITS_LOCAL_REQUESTS_PER_SECOND", "0")];
    let server = Server::start(router, &variables).await;
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(server.send("GET", "/gander/status", &[&server.bearer()], "").await.status);
    }
    assert_eq!(statuses, [200, 200, 429]);
    assert_eq!(server.send("GET", "/health", &[], "").await.status, 200);
}

#[tokio::test]
async fn strangers_are_refused_on_every_route_and_told_nothing() {
    let server = Server::start(router, &[("GANDER_SERVER_ALLOWED_ORIGINS", "['https://app.example']")]).await;
    let origins = ["null", "https://evil.example", "http://localhost.evil.example", "http://127.0.0.1:1", "file://"];
    for path in ROUTES.iter().map(|route| route.path).chain(["/nowhere"]) {
        for origin in origins {
            let foreign = format!("Origin: {origin}");
            for (method, more) in [("GET", ""), ("OPTIONS", "Access-Control-Request-Method: GET")] {
                let mut headers = vec![foreign.as_str()];
                headers.extend(Some(more).filter(|more| !more.is_empty()));
                let answer = server.send(method, path, &headers, "").await;
                assert_eq!((answer.status, answer.json().is_object()), (403, true), "{method} {path} {origin}");
                assert_eq!(answer.header("access-control-allow-origin"), None);
            }
        }
        let request = format!("GET {path} HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n");
        let answer = server.raw(request.as_bytes()).await;
        assert_eq!((answer.status, answer.json().is_object()), (403, true), "{path}");
        let answer = server.raw(format!("GET {path} HTTP/1.1\r\nConnection: close\r\n\r\n").as_bytes()).await;
        assert_eq!(answer.status, 400, "{path}");
    }
}

#[tokio::test]
async fn an_allowed_page_is_echoed_exactly() {
    let server = Server::start(router, &[("GANDER_SERVER_ALLOWED_ORIGINS", "['https://app.example']")]).await;
    for origin in ["https://app.example", "http://localhost"] {
        let header = format!("Origin: {origin}");
        let asked = ["Access-Control-Request-Method: POST", "Access-Control-Request-Headers: authorization"];
        let answer = server.send("OPTIONS", "/gander/status", &[&header, asked[0], asked[1]], "").await;
        assert_eq!(answer.status, 204);
        assert_eq!(answer.header("access-control-allow-origin"), Some(origin));
        assert_eq!(answer.header("access-control-allow-methods"), Some("POST"));
        assert_eq!(answer.header("access-control-allow-headers"), Some("authorization"));
        assert_eq!(answer.header("access-control-allow-credentials"), None);
        assert_eq!(answer.header("vary"), Some("Origin"));
        let answer = server.send("GET", "/health", &[&header], "").await;
        assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, Some(origin)));
        assert_eq!(server.send("GET", "/gander/status", &[&header], "").await.status, 401);
    }
}

#[tokio::test]
async fn unknown_paths_and_methods_are_json_errors() {
    let server = Server::start(router, &[]).await;
    let answer = server.send("GET", "/nowhere", &[], "").await;
    assert_eq!((answer.status, answer.code()), (404, json!("not_found")));
    let answer = server.send("DELETE", "/health", &[], "").await;
    assert_eq!((answer.status, answer.code()), (405, json!("method_not_allowed")));
    assert_eq!(answer.header("allow"), Some("GET,HEAD"));
    assert!(answer.body.contains("allowed: GET"), "{}", answer.body);
}

#[tokio::test]
async fn bodies_are_checked_for_type_size_and_pace() {
    let variables = [("GANDER_LIMITS_BODY", "1 KiB"), ("GANDER_LIMITS_BODY_TIME", "100ms")];
    let server = Server::start(test_router, &variables).await;
    let (bearer, json_type) = (server.bearer(), "Content-Type: application/json; charset=utf-8");
    assert_eq!(server.send("POST", "/echo", &[&bearer, json_type], "{}").await.body, "{}");
    for wrong in ["Content-Type: text/plain", "Content-Type: application/jsonx", "X: no type"] {
        let answer = server.send("POST", "/echo", &[&bearer, wrong], "{}").await;
        assert_eq!((answer.status, answer.code()), (415, json!("unsupported_media_type")), "{wrong}");
    }
    let large = "x".repeat(1025);
    let answer = server.send("POST", "/echo", &[&bearer, json_type], &large).await;
    assert_eq!((answer.status, answer.code()), (413, json!("body_too_large")));
    let head = format!("POST /echo HTTP/1.1\r\nHost: localhost\r\n{bearer}\r\n{json_type}\r\n");
    let chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\n401\r\n{large}\r\n0\r\n\r\n");
    let answer = server.raw(chunked.as_bytes()).await;
    assert_eq!(
        (answer.status, answer.code(), answer.header("connection")),
        (413, json!("body_too_large"), Some("close"))
    );
    let answer = server.raw(format!("{head}Content-Length: 10\r\n\r\n123").as_bytes()).await;
    assert_eq!((answer.status, answer.code()), (408, json!("body_timeout")));
}

#[tokio::test]
async fn an_expectation_without_a_token_is_not_encouraged() {
    let server = Server::start(test_router, &[]).await;
    let head = "POST /echo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json";
    let answer = server.raw(format!("{head}\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n").as_bytes()).await;
    assert_eq!(answer.status, 401);
}

#[tokio::test]
async fn addresses_and_headers_have_an_end() {
    let server = Server::start(router, &[]).await;
    for length in [9 * 1024, 70 * 1024] {
        let answer = server.send("GET", &format!("/{}", "x".repeat(length)), &[], "").await;
        assert_eq!(answer.status, 414, "{length}");
    }
    let large = format!("X-Large: {}", "x".repeat(33 * 1024));
    assert_eq!(server.send("GET", "/health", &[&large], "").await.status, 431);
    assert_eq!(server.send("GET", "/health", &["X-Small: 1"; 101], "").await.status, 431);
}

#[tokio::test]
async fn a_header_that_never_ends_is_cut_off() {
    let server = Server::start(router, &[("GANDER_LIMITS_HEADER_TIME", "100ms")]).await;
    // Nothing at all, half a line, half of the HTTP/2 greeting, half a header after a whole request.
    let after_one = "GET /ping HTTP/1.1\r\nHost: localhost\r\n\r\nGET /ping HTT";
    for start in ["", "GET /he", "PRI * HTTP/2", "GET / HTTP/1.1\r\nHost: local", after_one] {
        let mut stream = server.connect().await;
        stream.write_all(start.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let end = tokio::time::timeout(std::time::Duration::from_secs(20), stream.read_to_end(&mut answer)).await;
        assert!(end.is_ok(), "left open after: {start:?}");
    }
    assert_eq!(server.send("GET", "/health", &[], "").await.status, 200);
}

#[tokio::test]
async fn what_is_no_http_is_closed() {
    let server = Server::start(router, &[]).await;
    for noise in [&b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..], b"SSH-2.0-OpenSSH_9\r\n\r\n", b"GET /\r\n\r\n"]
    {
        let mut stream = server.connect().await;
        stream.write_all(noise).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 400"), "{noise:?}");
    }
    assert_eq!(server.send("GET", "/health", &[], "").await.status, 200);
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let server = Server::start(router, &[]).await;
    let one = "GET /ping HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let last = "GET /status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let answer = server.raw(format!("{}{last}", one.repeat(1000)).as_bytes()).await;
    assert_eq!(answer.body.matches("HTTP/1.1 200 OK").count(), 1000);
    assert!(answer.body.ends_with("ok"));
}

#[tokio::test]
async fn a_panic_is_an_answer_with_an_id_and_without_details() {
    let server = Server::start(test_router, &[]).await;
    let answer = server.send("GET", "/panic", &[], "").await;
    assert_eq!((answer.status, answer.code()), (500, json!("internal")));
    assert!(answer.json()["error"]["id"].is_string());
    assert!(!answer.body.contains("secret") && !answer.body.contains("/home"), "{}", answer.body);
    assert_eq!(server.send("GET", "/panic", &[], "").await.status, 500);
}

#[tokio::test]
async fn panics_of_tasks_and_threads_are_counted() {
    let server = Server::start(router, &[]).await;
    tokio::spawn(async { panic!("injected") }).await.unwrap_err();
    tokio::task::spawn_blocking(|| panic!("injected")).await.unwrap_err();
    let status = server.send("GET", "/gander/status", &[&server.bearer()], "").await.json();
    assert!(status["panics"].as_u64() >= Some(2), "{status}");
}

#[tokio::test]
async fn a_draining_server_takes_no_new_work_but_still_shows() {
    let server = Server::start(test_router, &[]).await;
    server.gateway.drain();
    let answer = server.send("POST", "/echo", &[&server.bearer(), "Content-Type: application/json"], "{}").await;
    assert_eq!((answer.status, answer.code(), answer.header("retry-after")), (503, json!("draining"), Some("5")));
    let server = Server::start(router, &[]).await;
    server.gateway.drain();
    let answer = server.send("GET", "/health", &[], "").await;
    assert_eq!((answer.status, answer.json()), (503, json!({ "status": "draining" })));
    assert_eq!(server.send("GET", "/gander/status", &[&server.bearer()], "").await.status, 200);
    let is_work = |route: &&RouteRule| route.verb != Verb::Get && route.access != Access::Public;
    for route in ROUTES.iter().filter(is_work) {
        let (verb, path) = (format!("{:?}", route.verb).to_uppercase(), route.path.replace(['{', '}', '*'], ""));
        let answer = server.send(&verb, &path, &[&server.bearer(), "Content-Type: application/json"], "{}").await;
        assert_eq!((answer.status, answer.json().is_object()), (503, true), "{verb} {path}");
    }
}

#[tokio::test]
async fn more_connections_than_places_wait_for_one() {
    let server = Server::start(router, &[("GANDER_LIMITS_CONNECTIONS", "1")]).await;
    let mut first = server.connect().await;
    // Enough turns for a second connection to be served, were there a place for it.
    let ping = async |stream: &mut TcpStream| {
        stream.write_all(b"GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"ok") {
            assert_ne!(stream.read_buf(&mut answer).await.unwrap(), 0);
        }
    };
    ping(&mut first).await;
    let second = server.send("GET", "/ping", &[], "");
    tokio::pin!(second);
    for _ in 0..50 {
        ping(&mut first).await;
        assert!(futures::poll!(second.as_mut()).is_pending());
    }
    drop(first);
    assert_eq!(second.await.status, 200);
}

#[tokio::test]
async fn http2_without_tls_works() {
    let server = Server::start(router, &[]).await;
    let mut stream = server.connect().await;
    // Preface, empty SETTINGS, and HEADERS of GET http://localhost/status, all from the static table but the authority.
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00".to_vec();
    let block = b"\x82\x86\x01\x09localhost\x04\x07/status";
    bytes.extend([0, 0, u8::try_from(block.len()).unwrap(), 1, 5, 0, 0, 0, 1]);
    bytes.extend(block);
    stream.write_all(&bytes).await.unwrap();
    let mut answer = Vec::new();
    while !answer.windows(2).any(|pair| pair == b"ok") {
        assert_ne!(stream.read_buf(&mut answer).await.unwrap(), 0, "closed: {answer:?}");
    }
}
