//! Rows of the table of bad inputs that no other test shows at the Agent Communication Protocol and at A2A, and the whole
//! table: each cell is shown by a test that exists.

use std::path::Path;

use gander_domain::caller::Scope;
use gander_services::token;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use crate::semantics::test_server::{TestServer, VERSION, a2a, goose, text};
use crate::served::answer::new;

const ROWS: &str = include_str!("../../../../../interop/data/bad-inputs.tsv");

/// JSON-RPC's code and HTTP+JSON's status of one `SendMessage`.
async fn sent(server: &TestServer, params: &Value) -> (i64, u16) {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params }).to_string();
    raw(server, body, params.to_string()).await
}

async fn raw(server: &TestServer, rpc: String, rest: String) -> (i64, u16) {
    let post = async |path: &str, body: String| {
        let request = server.client.post(server.url(path)).bearer_auth(&server.token).header(VERSION.0, VERSION.1);
        request.header("content-type", "application/json").body(body).send().await.unwrap()
    };
    let rpc: Value = post("/a2a/gander", rpc).await.json().await.unwrap();
    let rest = post("/a2a/gander/message:send", rest).await;
    (rpc["error"]["code"].as_i64().unwrap_or(0), rest.status().as_u16())
}

fn with(part: Value) -> Value {
    json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": [part] } })
}

#[tokio::test]
async fn json_that_nobody_means_is_refused_over_a2a() {
    let server = TestServer::open().await;
    let many: serde_json::Map<String, Value> = (0..200_000).map(|n| (format!("k{n}"), json!(1))).collect();
    let mut huge = with(json!({ "text": "x" }));
    huge["configuration"] = json!({ "historyLength": 99_999_999_999_999_999_999_f64 });
    let nul = |name: &str| {
        let mut params = with(json!({ "text": "x" }));
        params["message"][name] = json!("a\u{0}b");
        params
    };
    let cases = [("J08", huge), ("J13", Value::Object(many)), ("J16", nul("messageId")), ("J16", nul("contextId"))];
    for (row, params) in cases {
        assert_eq!(sent(&server, &params).await, (-32602, 400), "{row}");
    }
    let digits =
        with(json!({ "text": 1 })).to_string().replace("\"text\":1", &format!("\"text\":{}", "1".repeat(1 << 20)));
    let rpc = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{digits}}}"#);
    let (code, status) = raw(&server, rpc, digits).await;
    assert!([-32700, -32602].contains(&code) && status == 400, "J17: {code} {status}");
    let split = with(json!({ "text": "x" })).to_string().replace("\"parts\":", "\"parts\":\n");
    let rpc = format!("{{\"jsonrpc\":\"2.0\",\n\"id\":1,\"method\":\"SendMessage\",\"params\":{split}}}");
    assert_eq!(raw(&server, rpc, split).await, (0, 200), "J04: white space is white space");
}

#[tokio::test]
async fn j14_a_body_without_end_is_cut_off() {
    let server = TestServer::with(&[("GANDER_LIMITS_PROMPT_BODY", "64 KiB")]).await;
    let long = "x".repeat(70 << 10);
    let cases = [
        ("/runs", new("echo", &long, "sync")),
        ("/a2a/gander/message:send", json!({ "message": a2a("m", &long) })),
        ("/a2a/gander", json!([long])),
    ];
    for (path, body) in cases {
        assert_eq!(server.post_with(path, &body, &[VERSION]).await.status, 413, "{path}");
    }
}

#[tokio::test]
async fn c03_a_picture_is_one_at_every_protocol() {
    let server = TestServer::open().await;
    for data in ["UEsDBBQAAAAIAA==", "PGh0bWw+PHNjcmlwdD4=", "PHN2ZyBvbmxvYWQ9eD4="] {
        let raw = with(json!({ "raw": data, "mediaType": "image/png" }));
        assert_eq!(sent(&server, &raw).await, (-32005, 400), "A2A {data}");
        let mut body = new("gander", "", "sync");
        body["input"][0]["parts"] =
            json!([{ "content_type": "image/png", "content_encoding": "base64", "content": data }]);
        assert_eq!(server.post("/runs", &body).await.error(), (422, "invalid_input".to_owned()), "ACP-REST {data}");
    }
}

#[tokio::test]
async fn c02_bytes_are_base64_at_every_protocol() {
    let server = TestServer::open().await;
    for data in ["AA AA", "%%", "A", "AAA==", "AAAA="] {
        let raw = with(json!({ "raw": data, "mediaType": "image/png" }));
        assert_eq!(sent(&server, &raw).await, (-32602, 400), "A2A {data}");
        let mut body = new("gander", "", "sync");
        body["input"][0]["parts"] =
            json!([{ "content_type": "image/png", "content_encoding": "base64", "content": data }]);
        assert_eq!(server.post("/runs", &body).await.error(), (422, "invalid_input".to_owned()), "ACP-REST {data}");
    }
}

#[tokio::test]
async fn c05_a_prompt_points_to_the_web_alone() {
    let server = TestServer::open().await;
    for link in ["file:///etc/passwd", "data:text/plain,x", "gopher://example.org/", "FILE:///x", "/etc/passwd", ""] {
        let mut body = new("echo", "", "sync");
        body["input"][0]["parts"] = json!([{ "content_type": "text/plain", "content_url": link }]);
        let refused = server.post("/runs", &body).await;
        assert_eq!(refused.error(), (422, "invalid_input".to_owned()), "ACP-REST {link}: {}", refused.text);
        assert_eq!(sent(&server, &with(json!({ "url": link }))).await, (-32602, 400), "A2A {link}");
    }
    let mut body = new("echo", "", "sync");
    body["input"][0]["parts"] = json!([{ "content_type": "text/plain", "content_url": "https://example.org/a" }]);
    server.post("/runs", &body).await.ok();
}

#[tokio::test]
async fn r17_members_that_nobody_knows_are_ignored() {
    let server = TestServer::open().await;
    let mut run = new("echo", "x", "sync");
    run["bogus"] = json!({ "a": [1] });
    run["input"][0]["bogus"] = json!(1);
    server.post("/runs", &run).await.ok();
    let session = server.goose_session().await;
    let mut said = goose("x");
    said["bogus"] = json!(1);
    let body = json!({ "session_id": session, "user_message": said, "bogus": 1 });
    assert_eq!(server.goose("/reply", &body).await.status, 200);
    server.post("/apps/gander/users/u1/sessions", &json!({ "sessionId": "s", "bogus": 1 })).await.ok();
    let said = json!({ "role": "user", "parts": [{ "text": "x" }] });
    let body = json!({ "appName": "gander", "userId": "u1", "sessionId": "s", "newMessage": said, "bogus": 1 });
    server.post("/run", &body).await.ok();
    let mut params = with(json!({ "text": "x" }));
    (params["bogus"], params["message"]["bogus"]) = (json!(1), json!(1));
    assert_eq!(sent(&server, &params).await, (0, 200));
}

#[tokio::test]
async fn requests_of_a2a_have_a_method_and_an_id() {
    let server = TestServer::open().await;
    let post = async |body: Value| server.post_with("/a2a/gander", &body, &[VERSION]).await;
    let unheard = post(json!({ "jsonrpc": "2.0", "method": "no/such" })).await;
    assert_eq!((unheard.status, unheard.text.as_str()), (200, ""), "R08");
    let unknown = post(json!({ "jsonrpc": "2.0", "id": 1, "method": "$/x" })).await;
    assert_eq!(unknown.json()["error"]["code"], -32601, "R09");
    let nobody = post(json!({ "jsonrpc": "2.0", "id": null, "method": "ListTasks" })).await;
    assert_eq!((nobody.status, &nobody.json()["error"]["code"]), (200, &json!(-32600)), "R11");
    for _ in 0..2 {
        let again = post(json!({ "jsonrpc": "2.0", "id": 7, "method": "ListTasks" })).await;
        assert_eq!(again.json()["result"]["totalSize"], 0, "R14");
    }
}

#[tokio::test]
async fn l07_a_second_prompt_waits_its_turn_or_is_refused_where_goose_refuses_it() {
    let server = TestServer::open().await;
    let slow = crate::semantics::test_server::asking_then_slow();
    let first = server.prompt(&slow).await;
    let (run, session) = (text(&first["run_id"]), text(&first["session_id"]));
    let mut answer = crate::semantics::test_server::resume("allow_once");
    answer["mode"] = json!("async");
    assert_eq!(server.post(&format!("/runs/{run}"), &answer).await.status, 202);
    let body = json!({ "request_id": "0198c0de-0000-7000-8000-00000000000c", "user_message": goose("x") });
    let refused = server.goose(&format!("/sessions/{session}/reply"), &body).await;
    assert_eq!(refused.status, 400, "goose: {}", refused.text);
    let mut queued = new("gander", "x", "async");
    queued["session_id"] = json!(session);
    assert_eq!(server.post("/runs", &queued).await.ok()["status"], "created", "ACP-REST");
    let mut said = a2a("m-1", "x");
    said["contextId"] = json!(session);
    assert_eq!(server.send(said).await.unwrap()["status"]["state"], "TASK_STATE_SUBMITTED", "A2A");
    assert_eq!(server.post(&format!("/runs/{run}/cancel"), &Value::Null).await.status, 202);
}

#[tokio::test]
async fn l11_l13_a_folder_and_a_mode_are_known_or_refused() {
    let server = TestServer::open().await;
    let file = server.work().join("file");
    std::fs::write(&file, "x").unwrap();
    let long = format!("/{}", "x".repeat(5_000));
    for folder in ["relative", "/no/such/folder", file.to_str().unwrap(), &long] {
        let refused = server.goose("/agent/start", &json!({ "working_dir": folder })).await;
        assert_eq!(refused.status, 400, "{folder:.20}: {}", refused.text);
    }
    let session = server.goose_session().await;
    let refused = server.goose("/agent/update_session", &json!({ "session_id": session, "goose_mode": "x" })).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
}

#[tokio::test]
async fn l16_l17_what_is_cancelled_or_of_another_principal_takes_no_answer() {
    let server = TestServer::open().await;
    let run = server.prompt(&crate::semantics::test_server::asking()).await;
    let (id, session) = (text(&run["run_id"]), text(&run["session_id"]));
    let other = token::add_token(&server.config.paths, "other", &[Scope::Prompt, Scope::Approve], None).unwrap();
    let as_other = async |path: &str, body: Value| {
        let request = server.client.post(server.url(path)).bearer_auth(other.expose_secret());
        let request = request.header(VERSION.0, VERSION.1).header("content-type", "application/json");
        let response = request.body(body.to_string()).send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    };
    let detail = text(&run["await_request"]["message"]["parts"][1]["content"]);
    let question = text(&serde_json::from_str::<Value>(&detail).unwrap()["question"]);
    let confirm = json!({ "id": question, "sessionId": session, "action": "allow_once" });
    let response = json!({ "id": format!("adk-{question}"), "name": "x", "response": { "confirmed": true } });
    let said = json!({ "role": "user", "parts": [{ "functionResponse": response }] });
    let adk = json!({ "appName": "gander", "userId": "user", "sessionId": session, "newMessage": said });
    let send = json!({ "message": crate::semantics::test_server::to_task(&id, "m", "allow_once") });
    for (path, body) in [
        (format!("/runs/{id}"), crate::semantics::test_server::resume("allow_once")),
        ("/action-required/tool-confirmation".to_owned(), confirm.clone()),
        ("/run".to_owned(), adk.clone()),
        ("/a2a/gander/message:send".to_owned(), send.clone()),
    ] {
        let (status, text) = as_other(&path, body).await;
        assert_eq!(status, 404, "L17 {path}: {text}");
    }
    assert_eq!(server.get(&format!("/runs/{id}")).await.ok()["status"], "awaiting");
    assert_eq!(server.post(&format!("/runs/{id}/cancel"), &Value::Null).await.status, 202);
    server.task(&id, "TASK_STATE_CANCELED").await;
    assert_eq!(
        server.post(&format!("/runs/{id}"), &crate::semantics::test_server::resume("allow_once")).await.status,
        403,
        "L16 ACP-REST"
    );
    assert_eq!(server.goose("/action-required/tool-confirmation", &confirm).await.status, 404, "L16 goose");
    assert_eq!(server.post("/run", &adk).await.ok(), json!([]), "L16 ADK");
    assert_eq!(sent(&server, &send).await, (-32004, 400), "L16 A2A");
}

/// Where the tests of a class of rows are, by column. Each of these names every row that it shows.
const SHOWN: [(&[&str], &[&str], &[&str]); 12] = [
    (ACP, &["json", "jsonrpc", "acp", "content"], &["wire/tests/data/bad-inputs.tsv", "cli/tests/server/bad_input"]),
    (&["acp_http", "acp_ws"], &["json", "jsonrpc", "acp"], &["cli/tests/server/acp_net"]),
    (&["acp_http"], &["run"], &["cli/tests/server/acp_net"]),
    (&["acp_ws"], &["ws"], &["cli/tests/server/acp_net"]),
    (&["acp_rest"], &["json", "run"], &["cli/tests/server/acp_rest"]),
    (&["a2a"], &["json", "jsonrpc", "run", "a2a"], &["cli/tests/server/a2a"]),
    (&["goose_rest", "adk_rest"], &["json", "run", "content", "path"], &["cli/tests/server/rest_rows"]),
    (REST, &["json", "jsonrpc", "acp", "content"], &["cli/tests/server/semantics"]),
    // What is checked before there is a protocol, or after it: once for all.
    (ALL, &["http"], &["cli/tests/server/acp_net", "cli/tests/server/rest_rows"]),
    (ALL, &["http2"], &["cli/tests/server/http2.rs"]),
    (ALL, &["sse-out"], &["cli/tests/server/rest_rows"]),
    // What the agent does is the same whoever asked it.
    (ALL, &["ssrf", "path", "shell", "tool", "mcp", "llm", "secret", "import"], &["cli/tests/server/bad_input"]),
];

const ACP: &[&str] = &["acp_stdio", "acp_http", "acp_ws"];
const REST: &[&str] = &["acp_rest", "goose_rest", "adk_rest", "a2a"];
const ALL: &[&str] = &["acp_stdio", "acp_http", "acp_ws", "acp_rest", "goose_rest", "adk_rest", "a2a"];

#[test]
fn every_cell_of_the_table_has_tests_that_name_its_row() {
    let mut lines = ROWS.lines().map(|row| row.split('\t').collect::<Vec<_>>());
    let head = lines.next().unwrap();
    let mut missing = Vec::new();
    for row in lines {
        for (column, cell) in head[3..10].iter().zip(&row[3..10]) {
            let mut places =
                SHOWN.iter().filter(|(columns, classes, _)| columns.contains(column) && classes.contains(&row[1]));
            let shown = places.any(|(_, _, places)| places.iter().any(|place| names(place, row[0])));
            if *cell != "-" && !shown {
                missing.push(format!("{} {column}", row[0]));
            }
        }
    }
    assert_eq!(missing, Vec::<String>::new());
}

/// True if a test's source, or one of a folder of them, names the row.
fn names(place: &str, row: &str) -> bool {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(place);
    let files = std::fs::read_dir(&place).into_iter().flatten().map(|file| file.unwrap().path());
    let text: String = files.chain([place.clone()]).filter_map(|file| std::fs::read_to_string(file).ok()).collect();
    text.contains(row) || text.contains(&format!("{}_", row.to_lowercase()))
}
