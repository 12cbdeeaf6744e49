//! `fetch`: pages from loopback by permission, and nothing else that is not public.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use gander_domain::{Part, ToolContent, ToolEnd, ToolResult};
use gander_tools::{Guard, Limits, Resolver, ToolEnv};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::builtin::{Bench, text};

/// Addresses that must never be dialled.
const PRIVATE: [&str; 66] = [
    "http://127.0.0.1/",
    "http://127.0.0.1:8080/",
    "http://127.1/",
    "http://127.255.255.254/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0x7f.1/",
    "http://0177.0.0.1/",
    "http://017700000001/",
    "http://0/",
    "http://0.0.0.0/",
    "http://0.1.2.3/",
    "http://10.0.0.1/",
    "http://10.255.255.255/",
    "http://172.16.0.1/",
    "http://172.31.255.255/",
    "http://192.168.0.1/",
    "http://192.168.1/",
    "http://169.254.169.254/",
    "http://169.254.169.254/latest/meta-data/",
    "http://0xa9fea9fe/",
    "http://2852039166/",
    "http://100.64.0.1/",
    "http://100.127.255.255/",
    "http://192.0.0.1/",
    "http://192.0.2.1/",
    "http://198.18.0.1/",
    "http://198.19.255.255/",
    "http://198.51.100.1/",
    "http://203.0.113.1/",
    "http://224.0.0.1/",
    "http://239.255.255.255/",
    "http://240.0.0.1/",
    "http://255.255.255.255/",
    "http://192.88.99.1/",
    "http://[::1]/",
    "http://[::]/",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::ffff:10.0.0.1]/",
    "http://[::ffff:169.254.169.254]/",
    "http://[::127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[fe80::1]/",
    "http://[fc00::1]/",
    "http://[fd00:ec2::254]/",
    "http://[ff02::1]/",
    "http://[2001:db8::1]/",
    "http://[2002:7f00:1::]/",
    "http://[2001::1]/",
    "http://[100::1]/",
    "http://[fec0::1]/",
    "http://[3fff::1]/",
    "http://①②⑦.⓪.⓪.①/",
    "http://127。0。0。1/",
    "https://127.0.0.1/",
    "http://127.0.0.1./",
    "http://127.0.0.1%2f@example.org/",
    "http://user@example.org/",
    "http://user:pass@example.org/",
    "http://example.org@127.0.0.1/",
    "file:///etc/passwd",
    "gopher://example.org/",
    "ftp://example.org/",
    "data:text/plain,hi",
];

/// Names that only lead inside.
const NAMES: [&str; 8] = [
    "localhost",
    "localhost.",
    "LOCALHOST",
    "metadata.google.internal",
    "mixed.example",
    "mapped.example",
    "none.example",
    "rebinding.example",
];

/// Answers from a list; the rebinding name is public first and private ever after.
#[derive(Default)]
struct Names {
    known: HashMap<&'static str, Vec<IpAddr>>,
    asked: Mutex<Vec<String>>,
    rebound: AtomicUsize,
}

#[async_trait]
impl Resolver for Names {
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        self.asked.lock().unwrap().push(host.to_owned());
        let parse = |text: &str| text.parse::<IpAddr>().unwrap();
        let found = match host {
            "localhost" | "localhost." => vec![parse("127.0.0.1"), parse("::1")],
            "metadata.google.internal" => vec![parse("169.254.169.254")],
            "mixed.example" => vec![parse("93.184.216.34"), parse("10.0.0.1")],
            "mapped.example" => vec![parse("::ffff:192.168.0.1")],
            "rebinding.example" if self.rebound.fetch_add(1, Ordering::SeqCst) > 0 => vec![parse("127.0.0.1")],
            "rebinding.example" => vec![parse("93.184.216.34")],
            other => self.known.get(other).cloned().unwrap_or_default(),
        };
        Ok(found.into_iter().map(|address| SocketAddr::new(address, port)).collect())
    }
}

/// Answers each request by its path, one connection each, and notes the paths.
async fn serve(pages: Vec<(&'static str, String)>) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (asked, seen) = (Arc::new(Mutex::new(vec![])), Arc::new(pages));
    let noted = asked.clone();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let (pages, noted) = (seen.clone(), noted.clone());
            tokio::spawn(async move {
                let mut request = vec![0; 4096];
                let count = socket.read(&mut request).await.unwrap();
                let request = String::from_utf8_lossy(&request[..count]).into_owned();
                let path = request.split_whitespace().nth(1).unwrap_or_default().to_owned();
                let page = pages.iter().find(|(name, _)| *name == path).map(|(_, page)| page.clone());
                noted.lock().unwrap().push(path);
                let page = page.unwrap_or_else(|| {
                    "HTTP/1.1 404 Not Found\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\nnone".into()
                });
                // A reader that has enough hangs up.
                drop(socket.write_all(page.replace("PORT", &port.to_string()).as_bytes()).await);
            });
        }
    });
    (port, asked)
}

fn page(kind: &str, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n{body}")
}

fn moved(to: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
}

fn bench(guard: Guard, limits: Limits) -> Bench {
    // Only the first test to come here installs it.
    drop(rustls::crypto::ring::default_provider().install_default());
    Bench::with(limits, ToolEnv { guard, ..ToolEnv::default() })
}

fn open(port: u16) -> Guard {
    Guard::new([format!("127.0.0.1:{port}"), format!("peer.example:{port}")])
}

#[tokio::test]
async fn nothing_private_is_fetched() {
    let names = Arc::new(Names::default());
    let bench = bench(Guard::default().with_resolver(names.clone()), Limits::default());
    for url in PRIVATE {
        let told = bench.refused("fetch", json!({"url": url})).await;
        let known = ["blocked address", "only http", "addresses with a user name", "not an address"];
        assert!(known.iter().any(|start| told.starts_with(start)), "{url}: {told}");
    }
    assert_eq!(*names.asked.lock().unwrap(), [""; 0], "literal addresses are not looked up");
    names.rebound.store(1, Ordering::SeqCst);
    for name in NAMES {
        let told = bench.refused("fetch", json!({"url": format!("http://{name}/")})).await;
        assert!(told.starts_with("blocked address") || told.starts_with("host is not found"), "{name}: {told}");
    }
}

/// The address that was checked is the one that is dialled: there is no second look-up to lie to.
#[tokio::test]
async fn a_name_is_looked_up_once_and_that_address_is_dialled() {
    let (port, asked) = serve(vec![("/", page("text/plain", "hello"))]).await;
    let names = Arc::new(Names {
        known: HashMap::from([("peer.example", vec!["127.0.0.1".parse().unwrap()])]),
        ..Names::default()
    });
    let bench = bench(open(port).with_resolver(names.clone()), Limits::default());
    assert_eq!(bench.done("fetch", json!({"url": format!("http://peer.example:{port}/")})).await, "hello");
    assert_eq!(
        (names.asked.lock().unwrap().clone(), asked.lock().unwrap().clone()),
        (vec!["peer.example".to_owned()], vec!["/".to_owned()])
    );
    let other = bench.refused("fetch", json!({"url": "http://peer.example:1/"})).await;
    assert_eq!(other, "blocked address, it is not a public one: peer.example");
}

#[tokio::test]
async fn redirects_are_followed_and_checked_again() {
    let pages = vec![
        ("/ok", moved("/end")),
        ("/end", page("text/plain", "arrived")),
        ("/metadata", moved("http://169.254.169.254/latest/")),
        ("/loopback", moved("http://127.0.0.1:1/")),
        ("/v6", moved("http://[::ffff:127.0.0.1]:PORT/end")),
        ("/name", moved("http://localhost:PORT/end")),
        ("/file", moved("file:///etc/passwd")),
        ("/user", moved("http://a:b@127.0.0.1:PORT/end")),
        ("/loop", moved("/loop")),
        ("/bad", moved("http://[")),
    ];
    let (port, asked) = serve(pages).await;
    let bench = bench(open(port).with_resolver(Arc::new(Names::default())), Limits::default());
    let at = |path: &str| json!({"url": format!("http://127.0.0.1:{port}{path}")});
    assert_eq!(bench.done("fetch", at("/ok")).await, "arrived");
    let cases = [
        ("/metadata", "blocked address, it is not a public one: 169.254.169.254"),
        ("/loopback", "blocked address, it is not a public one: 127.0.0.1"),
        ("/v6", "blocked address, it is not a public one: [::ffff:7f00:1]"),
        ("/name", "blocked address, it is not a public one: localhost"),
        ("/file", "only http and https addresses are fetched: file"),
        ("/user", "addresses with a user name are not fetched: 127.0.0.1"),
        ("/loop", "redirected more than 5 times"),
        ("/bad", "redirected to something that is no address"),
    ];
    for (path, told) in cases {
        assert_eq!(bench.refused("fetch", at(path)).await, told, "{path}");
    }
    let ends = asked.lock().unwrap().iter().filter(|path| *path == "/end").count();
    assert_eq!(ends, 1, "only the good redirect arrived");
}

#[tokio::test]
async fn pages_become_text() {
    let pages = vec![
        (
            "/html",
            page("text/html; charset=utf-8", "<html><body><h1>Hi</h1><script>x</script><p>there</p></body></html>"),
        ),
        ("/json", page("application/json", "{\"a\": \"<b>\"}")),
        ("/zip", page("application/zip", "PK")),
        ("/png", page("image/png", "pixels")),
        ("/long", page("text/plain", &"x".repeat(10_000))),
        ("/key", page("text/plain", "ghp_1234567890abcdefghijklmnopqrstuvwxyz")),
    ];
    let (port, _) = serve(pages).await;
    let bench = bench(open(port), Limits { page: 5_000, ..Limits::default() });
    let url = |path: &str| format!("http://127.0.0.1:{port}{path}");
    assert_eq!(bench.done("fetch", json!({"url": url("/html")})).await, "# Hi\n\nthere");
    assert_eq!(bench.done("fetch", json!({"url": url("/json")})).await, "{\"a\": \"<b>\"}");
    assert_eq!(
        bench.done("fetch", json!({"url": url("/long")})).await,
        format!("{}\n[the rest is left out]", "x".repeat(5_000))
    );
    assert_eq!(bench.done("fetch", json!({"url": url("/key")})).await, "[redacted]");
    assert_eq!(
        bench.refused("fetch", json!({"url": url("/zip")})).await,
        "content is neither text nor a picture: application/zip"
    );
    assert_eq!(bench.refused("fetch", json!({"url": url("/nowhere")})).await, "[status 404 Not Found]\nnone");
    let part = Part::Image { mime: "image/png".into(), data: "cGl4ZWxz".into(), uri: Some(url("/png")) };
    let raw = Some(json!({"url": url("/png"), "status": 200, "content_type": "image/png"}));
    let expected = ToolResult { end: ToolEnd::Completed, content: vec![ToolContent::Part { part }], raw };
    assert_eq!(bench.call("fetch", json!({"url": url("/png")})).await, expected);
}

#[tokio::test]
async fn a_silent_server_is_left_and_a_cancel_is_obeyed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let url = json!({"url": format!("http://127.0.0.1:{port}/")});
    let slow = bench(open(port), Limits { fetch: Duration::from_millis(50), ..Limits::default() });
    assert_eq!(slow.refused("fetch", url.clone()).await, "no answer in time: 0 s");
    let patient = bench(open(port), Limits::default());
    let cancel = patient.context.cancel.clone();
    let meddle = async {
        drop(listener.accept().await.unwrap());
        let held = listener.accept().await.unwrap();
        cancel.cancel();
        held
    };
    let (result, _held) = tokio::join!(patient.call("fetch", url), meddle);
    assert_eq!((result.end, text(&result).as_str()), (ToolEnd::Cancelled, "cancelled"));
}
