//! Bodies that are no JSON or no request: rows J and R of `interop/data/bad-inputs.tsv`, over JSON-RPC and HTTP+JSON.

use reqwest::Method;
use serde_json::{Value, json};

use crate::a2a::test_server::{TestServer, message};

async fn rpc(server: &TestServer, body: Vec<u8>) -> anyhow::Result<Value> {
    let request = server.request(Method::POST, "/a2a").header("A2A-Version", "1.0").body(body);
    let response = request.header("content-type", "application/json").send().await?;
    assert_eq!(response.status(), 200);
    Ok(response.json().await?)
}

fn bodies() -> Vec<(&'static str, Vec<u8>)> {
    let invalid = |bytes: &[u8]| [&br#"{"message":""#[..], bytes, &br#""}"#[..]].concat();
    vec![
        ("J01", br#"{"message":"#.to_vec()),
        ("J05", invalid(b"\xff\xfe")),
        ("J05", invalid(b"\xed\xa0\x80")),
        ("J07", br#"{"message":NaN}"#.to_vec()),
        ("J07", br#"{"message":01}"#.to_vec()),
        ("J10", b"\xef\xbb\xbf{}".to_vec()),
        ("the lone surrogate", br#"{"message":"\ud800"}"#.to_vec()),
    ]
}

#[tokio::test]
async fn what_is_no_json_is_told_so_in_each_binding() -> anyhow::Result<()> {
    let server = TestServer::open().await?;
    for (row, body) in bodies() {
        assert_eq!(rpc(&server, body.clone()).await?["error"]["code"], -32700, "{row}");
        let rest = server.request(Method::POST, "/a2a/message:send").header("A2A-Version", "1.0").body(body);
        assert_eq!(rest.send().await?.status(), 400, "{row}");
    }
    assert_eq!(rpc(&server, Vec::new()).await?["error"]["code"], -32700, "J02");
    let foreign = server.request(Method::POST, "/a2a").header("content-type", "application/json; charset=utf-16");
    assert_eq!(foreign.body("{}").send().await?.status(), 415, "J11");
    Ok(())
}

#[tokio::test]
async fn what_is_no_request_is_told_so() -> anyhow::Result<()> {
    let server = TestServer::open().await?;
    let get = json!({ "jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": { "id": "x" } });
    let with = |name: &str, value: Value| {
        let mut request = get.clone();
        request[name] = value;
        request
    };
    let cases = [
        ("R02", json!([]), -32600),
        ("R02", json!([1, 2]), -32600),
        ("R03", with("jsonrpc", json!("1.0")), -32600),
        ("R03", with("jsonrpc", json!(2.0)), -32600),
        ("R05", json!({ "jsonrpc": "2.0", "id": 1 }), -32600),
        ("R06", with("method", json!(42)), -32600),
        ("R06", with("method", json!([])), -32600),
        ("R12", with("id", json!("x".repeat(1 << 20))), -32600),
        ("R15", with("params", json!([1])), -32602),
        ("R15", with("params", json!("x")), -32602),
        ("J08", with("params", json!({ "id": "x", "historyLength": 1e300 })), -32602),
        ("R17", with("more", json!({ "x": 1 })), -32001),
    ];
    for (row, request, code) in cases {
        let answer = rpc(&server, request.to_string().into_bytes()).await?;
        assert_eq!(answer["error"]["code"], code, "{row} {answer}");
    }
    let huge = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{{"pageSize":{}}}}}"#, "9".repeat(30));
    assert_eq!(rpc(&server, huge.into_bytes()).await?["error"]["code"], -32602, "J08");
    let many = (0..200_000).map(|n| format!("\"k{n}\":1")).collect::<Vec<_>>().join(",");
    let many = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{{{many}}}}}"#);
    assert_eq!(rpc(&server, many.into_bytes()).await?["error"]["code"], -32602, "J13");
    let mut nul = message("tck-complete-task-1", "x");
    nul["contextId"] = json!("a\u{0}b");
    assert_eq!(server.code("SendMessage", json!({ "message": nul })).await?, -32602, "J16");
    assert_eq!(server.send("tck-complete-task-2", "x").await?["status"]["state"], "TASK_STATE_COMPLETED");
    Ok(())
}
