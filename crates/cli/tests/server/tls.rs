//! TLS with a certificate of our own making: pinned by its fingerprint, the same after a restart.

#![allow(clippy::unwrap_used)]

use gander::app::App;
use gander_gateway::server::router;
use gander_http::{SelfSigned, serve_http_with_tls};
use gander_services::token::Tokens;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn whoever_pins_the_certificate_is_served() {
    rustls::crypto::ring::default_provider().install_default().ok();
    let root = tempfile::tempdir().unwrap();
    let (config, _) = crate::served::settings(root.path(), &[("GANDER_MODEL", "demo/demo")]);
    let tls = SelfSigned::load_or_create(&config.paths).unwrap();
    let app = App::start(config.clone()).await.unwrap();
    let gateway = app.gateway(&config, Tokens::open(&config.paths).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (routes, stop) = (router(&gateway), CancellationToken::new());
    tokio::spawn(serve_http_with_tls(listener, Some(tls.acceptor.clone()), gateway.http.clone(), routes, stop.clone()));
    let certificate = std::fs::read(config.paths.data_directory().join("tls.cert.der")).unwrap();
    let pinned = reqwest::Certificate::from_der(&certificate).unwrap();
    let client = reqwest::Client::builder().no_proxy().tls_certs_only([pinned]).build().unwrap();
    let answer = client.get(format!("https://localhost:{port}/status")).send().await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.text().await.unwrap().as_str()), (200, "ok"));
    // Addresses of ours are as the caller's own.
    let card = client.get(format!("https://localhost:{port}/.well-known/agent-card.json")).send().await.unwrap();
    let card: serde_json::Value = card.json().await.unwrap();
    assert_eq!(card["supportedInterfaces"][0]["url"], format!("https://localhost:{port}/a2a"), "{card}");
    // Somebody who trusts nobody in particular is not.
    let stranger = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
    assert!(stranger.get(format!("https://localhost:{port}/status")).send().await.is_err());
    // Who does not encrypt, or says nothing at all, does not keep others out.
    let plain = reqwest::Client::builder().no_proxy().build().unwrap();
    assert!(plain.get(format!("http://localhost:{port}/status")).send().await.is_err());
    let _silent = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let again = client.get(format!("https://localhost:{port}/status")).send().await.unwrap();
    assert_eq!(again.status().as_u16(), 200);
    stop.cancel();
}

#[test]
fn the_certificate_is_made_once() {
    let root = tempfile::tempdir().unwrap();
    let (config, _) = crate::served::settings(root.path(), &[("GANDER_MODEL", "demo/demo")]);
    let first = SelfSigned::load_or_create(&config.paths).unwrap().fingerprint;
    assert_eq!(SelfSigned::load_or_create(&config.paths).unwrap().fingerprint, first);
    assert_eq!((first.len(), first.matches(':').count()), (95, 31), "{first}");
    let key = std::fs::metadata(config.paths.data_directory().join("tls.key.der")).unwrap();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&key.permissions()) & 0o077, 0);
}
