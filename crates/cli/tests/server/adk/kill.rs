//! The real binary, killed between a confirmation's question and its answer: the answer still goes on with the run.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::adk::client::{SESSIONS, answers, asked, says, texts};
use crate::binary::{Running, TestDirectory};

fn post(address: &str, path: &str, body: &Value) -> Value {
    let (status, body) = send(address, None, "POST", path, body);
    assert_eq!(status, 200, "{body}");
    body
}

fn send(address: &str, token: Option<&str>, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let mut stream = TcpStream::connect(address).unwrap();
    let body = body.to_string();
    let bearer = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    let head = format!("{method} {path} HTTP/1.0\r\nHost: {address}\r\n{bearer}Content-Length: {}\r\n\r\n", body.len());
    write!(stream, "{head}{body}").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or_else(|_| panic!("no JSON: {text}")))
}

/// Without a token: the door is open to this machine.
fn serve(test_directory: &TestDirectory) -> (Running, String) {
    let mut running =
        test_directory.start_conformance(&["serve", "--listen", "127.0.0.1:0", "--open", "adk", "--open-approve"]);
    let line = running.wait_for("listening on http://");
    let address = line.rsplit("http://").next().unwrap().trim().to_owned();
    (running, address)
}

#[test]
fn an_answer_after_a_kill_goes_on_with_the_run() {
    let test_directory = TestDirectory::new();
    let (mut running, address) = serve(&test_directory);
    post(&address, SESSIONS, &json!({ "sessionId": "k", "state": { "a": 1, "user:b": 2 } }));
    let first = post(&address, "/run", &says("k", "confirm"));
    let first = first.as_array().unwrap();
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    let (mut running, address) = serve(&test_directory);
    let second = post(&address, "/run", &answers("k", &asked(first), json!({ "confirmed": true })));
    let second = second.as_array().unwrap();
    assert!(second.iter().all(|event| event["invocationId"] == first[0]["invocationId"]), "{second:?}");
    assert_eq!(texts(second), ["Tool delete_file said: {'deleted': '/data/a.txt'}"]);
    running.child.kill().unwrap();
    running.child.wait().unwrap();
}

#[test]
fn a_token_of_one_user_sees_no_other() {
    let test_directory = TestDirectory::new();
    let ann = test_directory.ok(&["token", "add", "ann", "--scopes", "read,prompt", "--adk-user", "ann"]);
    let ann = Some(ann.lines().last().unwrap().trim());
    let (mut running, address) = serve(&test_directory);
    let own = "/apps/wire/users/ann/sessions";
    let id = json!({ "sessionId": "s" });
    assert_eq!(send(&address, ann, "POST", own, &id).0, 200);
    assert_eq!(send(&address, ann, "POST", SESSIONS, &id).0, 404);
    post(&address, SESSIONS, &id);
    assert_eq!(send(&address, ann, "GET", &format!("{SESSIONS}/s"), &json!({})).0, 404);
    assert_eq!(send(&address, ann, "GET", SESSIONS, &json!({})), (200, json!([])));
    assert_eq!(send(&address, ann, "GET", own, &json!({})).1.as_array().unwrap().len(), 1);
    assert_eq!(send(&address, None, "GET", own, &json!({})), (200, json!([])), "the owner is another principal");
    assert_eq!(send(&address, ann, "POST", "/run", &says("s", "hello")).0, 404);
    running.child.kill().unwrap();
    running.child.wait().unwrap();
}
