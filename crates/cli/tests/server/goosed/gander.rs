//! Another server of our own kind as the goose behind an agent, over goose's REST and over ACP.

use std::sync::Arc;
use std::time::Duration;

use gander::app::App;
use gander_client::CertificatePin;
use gander_domain::caller::Caller;
use gander_domain::{ChoiceKind, Event, Outcome, Part, StopReason, ToolEnd};
use gander_gateway::server::router;
use gander_http::{SelfSigned, serve_http_with_tls};
use gander_runtime::backend::goosed::{GoosedRemote, Protocol};
use gander_services::token::{self, Tokens};
use gander_store::MemoryStore;
use gander_testkit::goosed;
use secrecy::ExposeSecret as _;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::test_server::{TestServer, hub_of, outcome, said};
use crate::served;

const BOTH: [Protocol; 2] = [Protocol::Rest, Protocol::Acp];

struct Other {
    url: String,
    token: String,
    work: String,
    /// Its certificate, if it shows one.
    pin: Option<CertificatePin>,
    _stop: DropGuard,
    _root: tempfile::TempDir,
}

/// How it is spoken to.
#[derive(Clone, Copy, PartialEq)]
enum Line {
    Plain,
    /// With a certificate that it made itself.
    SelfSigned,
}

async fn other() -> Other {
    other_over(Line::Plain).await
}

async fn other_over(line: Line) -> Other {
    rustls::crypto::ring::default_provider().install_default().ok();
    let root = tempfile::tempdir().unwrap();
    let work = root.path().join("work");
    std::fs::create_dir_all(&work).unwrap();
    let (config, _) = served::settings(root.path(), &[("GANDER_MODEL", "demo/demo")]);
    let token = token::owner_token(&config.paths).unwrap().expose_secret().to_owned();
    let app = App::start(config.clone()).await.unwrap();
    let gateway = app.gateway(&config, Tokens::open(&config.paths).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let tls = (line == Line::SelfSigned).then(|| SelfSigned::load_or_create(&config.paths).unwrap());
    let pin = tls.as_ref().map(|tls| tls.fingerprint.parse().unwrap());
    let url = format!("{}://{address}", if tls.is_some() { "https" } else { "http" });
    let (stop, routes) = (CancellationToken::new(), router(&gateway));
    tokio::spawn(serve_http_with_tls(
        listener,
        tls.map(|tls| tls.acceptor),
        gateway.http.clone(),
        routes,
        stop.clone(),
    ));
    Other { url, token, work: work.to_str().unwrap().to_owned(), pin, _stop: stop.drop_guard(), _root: root }
}

/// A server whose goose is that other server.
async fn server(other: &Other, protocol: Option<Protocol>) -> TestServer {
    let mut remote = GoosedRemote::new(&other.url);
    remote.key = Some(other.token.clone().into());
    remote.folder = Some(other.work.clone());
    remote.timeout = Duration::from_secs(30);
    remote.protocol = protocol;
    remote.pin = other.pin;
    let store = Arc::new(MemoryStore::new());
    let hub = hub_of(remote, Arc::clone(&store) as _);
    TestServer { goose: goosed::Goosed::start(None).await.unwrap(), store, hub }
}

const DONE: Outcome = Outcome::Completed { stop: StopReason::EndTurn };

#[tokio::test]
async fn words_and_history_go_both_ways() {
    for protocol in BOTH.map(Some).into_iter().chain([None]) {
        let other = other().await;
        let server = server(&other, protocol).await;
        let session = server.session(1).await;
        let events = server.run(session, 1, r#"[[script:[[{"text":"hello"}]]]]"#).await;
        assert_eq!((said(&events), outcome(&events)), (vec!["hello".to_owned()], &DONE), "{protocol:?}");
        let events = server.run(session, 2, r#"[[script:[[{"text":"again"}]]]]"#).await;
        assert_eq!(said(&events), ["again"], "{protocol:?}");
        server.hub.delete_session(&Caller::local_owner(), session).await.unwrap();
    }
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_taken_by_its_fingerprint_alone() {
    for protocol in BOTH.map(Some).into_iter().chain([None]) {
        let mut other = other_over(Line::SelfSigned).await;
        let ran = async |other: &Other| {
            let server = server(other, protocol).await;
            let session = server.session(1).await;
            server.run(session, 1, r#"[[script:[[{"text":"hello"}]]]]"#).await
        };
        let events = ran(&other).await;
        assert_eq!((said(&events), outcome(&events)), (vec!["hello".to_owned()], &DONE), "{protocol:?}");
        let (own, strange) = (other.pin.unwrap(), CertificatePin::of_certificate(b"another"));
        other.pin = Some(strange);
        let Outcome::Failed { message, .. } = outcome(&ran(&other).await).clone() else { panic!("{protocol:?}") };
        assert!(
            message.contains(&own.to_string()) && message.contains(&strange.to_string()),
            "{protocol:?}: {message}"
        );
        other.pin = None;
        assert!(matches!(outcome(&ran(&other).await), Outcome::Failed { .. }), "{protocol:?}: nobody vouches for it");
    }
}

#[tokio::test]
async fn a_tool_over_there_asks_here() {
    for protocol in BOTH {
        for (kind, end, exists) in
            [(ChoiceKind::AllowOnce, ToolEnd::Completed, true), (ChoiceKind::RejectOnce, ToolEnd::Failed, false)]
        {
            let other = other().await;
            let server = server(&other, Some(protocol)).await;
            let session = server.session(1).await;
            let script = r#"[[script:[[{"tool":"shell","args":{"command":"touch made"}}],[{"text":"then"}]]]]"#;
            let run = server.prompt(session, 1, vec![Part::text(script)], None).await;
            server.until(session, run, |event| matches!(event, Event::QuestionAsked { .. })).await;
            server.answer(session, kind).await;
            let events = server.until(session, run, |event| matches!(event, Event::RunEnded { .. })).await;
            assert_eq!(outcome(&events), &DONE, "{protocol:?} {kind:?}");
            let ends: Vec<ToolEnd> = events
                .iter()
                .filter_map(|event| match event {
                    Event::ToolDone { result, .. } => Some(result.end),
                    _ => None,
                })
                .collect();
            assert_eq!(ends, [end], "{protocol:?} {kind:?}");
            let made = std::path::Path::new(&other.work).join("made").exists();
            assert_eq!(made, exists, "{protocol:?} {kind:?}");
        }
    }
}

#[tokio::test]
async fn a_wrong_key_is_said_as_such_whatever_is_spoken() {
    for protocol in BOTH {
        let mut other = other().await;
        other.token = "wrong".to_owned();
        let server = server(&other, Some(protocol)).await;
        let session = server.session(1).await;
        let events = server.run(session, 1, "hi").await;
        assert_eq!(outcome(&events), &Outcome::failed("unauthorized", "Goose authentication failed"), "{protocol:?}");
    }
}
