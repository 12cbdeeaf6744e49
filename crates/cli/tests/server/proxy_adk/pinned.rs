//! The real program at both ends: a proxy, and a goose that shows a certificate of its own making.

use std::process::Stdio;

use gander_testkit::harness::{Launch, PATIENCE, binary, data, script, workspace};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdout};

/// A program that runs until it is dropped.
struct Program {
    _child: Child,
    /// Held so that it may print.
    _stdout: BufReader<ChildStdout>,
    said: Vec<String>,
}

impl Program {
    /// Started with these arguments, and ready once it has said this.
    async fn start(launch: &Launch, arguments: &[&str], last: &str) -> Self {
        let mut command = launch.command(arguments.iter().copied());
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut said: Vec<String> = Vec::new();
        while !said.last().is_some_and(|line| line.contains(last)) {
            let mut line = String::new();
            let read = tokio::time::timeout(PATIENCE, stdout.read_line(&mut line)).await.expect("it says nothing");
            assert!(read.unwrap() > 0, "it ended after {said:?}");
            said.push(line.trim_end().to_owned());
        }
        Self { _child: child, _stdout: stdout, said }
    }

    /// What follows this in what it said, up to the next blank.
    fn after(&self, mark: &str) -> String {
        let line = self.said.iter().find_map(|line| line.split_once(mark)).unwrap_or_else(|| panic!("{:?}", self.said));
        line.1.split_whitespace().next().unwrap().to_owned()
    }
}

/// What a proxy that pins this certificate answers to a run.
async fn answer(far: &str, token: &str, work: &str, fingerprint: &str) -> (u16, Value) {
    let root = tempfile::tempdir().unwrap();
    let launch =
        Launch::demo(binary(env!("CARGO_BIN_EXE_gander")), data(root.path()).unwrap()).with("GOOSE_SECRET_KEY", token);
    let arguments = ["proxy", "adk", "--goose", far, "--listen", "127.0.0.1:0", "--working-dir", work];
    let pinned = ["--goose-cert-fingerprint", fingerprint];
    let proxy = Program::start(&launch, &[&arguments[..], &pinned].concat(), "-> goose at").await;
    let address = proxy.after("ADK on ");
    let said = script(&[json!([{ "text": "hello over there" }])]);
    let message = json!({ "role": "user", "parts": [{ "text": said }] });
    let body = json!({ "appName": "a", "userId": "u", "sessionId": "s", "newMessage": message });
    let client = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build().unwrap();
    let response = client.post(format!("{address}/run")).json(&body).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

#[tokio::test]
async fn a_goose_with_a_certificate_of_its_own_is_reached_by_its_fingerprint() {
    rustls::crypto::ring::default_provider().install_default().ok();
    let root = tempfile::tempdir().unwrap();
    let launch = Launch::demo(binary(env!("CARGO_BIN_EXE_gander")), data(root.path()).unwrap());
    let goose =
        Program::start(&launch, &["serve", "--tls-self-signed", "--listen", "127.0.0.1:0"], "listening on").await;
    let (fingerprint, far) = (goose.after("GOOSED_CERT_FINGERPRINT="), goose.after("listening on "));
    assert!(far.starts_with("https://"), "{far}");
    let token = launch.stdout(&["token"]).await.unwrap().trim().to_owned();
    let work = workspace(root.path()).unwrap().to_str().unwrap().to_owned();
    let (status, events) = answer(&far, &token, &work, &fingerprint).await;
    assert_eq!((status, events.to_string().contains("hello over there")), (200, true), "{events}");
    let strange = fingerprint.chars().rev().collect::<String>();
    let (status, refused) = answer(&far, &token, &work, &strange).await;
    let text = refused["error"].as_str().unwrap();
    assert!(status == 503 && text.contains(&fingerprint) && text.contains(&strange), "{status} {refused}");
}
