//! The real binary, killed in the middle of a run: everything a client saw is still there afterwards.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use crate::acp_rest::test_server::new;
use crate::binary::TestDirectory;

/// Sends a request; gives what follows the header, as it comes.
fn send(address: &str, token: &str, method: &str, path: &str, body: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!("{method} {path} HTTP/1.0\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n");
    write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while reader.read_line(&mut line).unwrap() > 2 {
        line.clear();
    }
    reader
}

fn serve(test_directory: &TestDirectory) -> (crate::binary::Running, String) {
    let mut running = test_directory.start_conformance(&["serve", "--listen", "127.0.0.1:0"]);
    let line = running.wait_for("listening on http://");
    let address = line.rsplit("http://").next().unwrap().trim().to_owned();
    (running, address)
}

#[test]
fn what_a_stream_showed_survives_a_kill() {
    let test_directory = TestDirectory::new().with("GANDER_RECOVERY_ON_RESTART", "fail");
    let token = test_directory.ok(&["token"]).trim().to_owned();
    let (mut running, address) = serve(&test_directory);
    let body = new("slow", "x", "stream").to_string();
    let stream = send(&address, &token, "POST", "/runs", &body);
    let data = stream.lines().map_while(Result::ok).filter_map(|line| line.strip_prefix("data: ").map(str::to_owned));
    let seen: Vec<Value> = data.take(6).map(|line| serde_json::from_str(&line).unwrap()).collect();
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    let (mut running, address) = serve(&test_directory);
    let path = format!("/runs/{}", seen[0]["run"]["run_id"].as_str().unwrap());
    let run = loop {
        let mut text = String::new();
        send(&address, &token, "GET", &path, "").read_to_string(&mut text).unwrap();
        let run: Value = serde_json::from_str(&text).unwrap();
        if run["status"] == "failed" {
            break run;
        }
    };
    assert_eq!(run["error"]["data"]["reason"], "interrupted");
    let mut text = String::new();
    send(&address, &token, "GET", &format!("{path}/events"), "").read_to_string(&mut text).unwrap();
    let events: Value = serde_json::from_str(&text).unwrap();
    let events = events["events"].as_array().unwrap();
    assert_eq!(events[..seen.len()], seen);
    assert_eq!(events.last().unwrap()["type"], "run.failed");
    running.child.kill().unwrap();
    running.child.wait().unwrap();
}
