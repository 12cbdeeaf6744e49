//! Bad input: the right status, a body with `detail` and `error`, and a server that goes on.

use serde_json::{Value, json};

use crate::adk::client::{SESSIONS, begin, says};
use crate::adk::test_server::TestServer;

async fn refused(server: &TestServer, path: &str, body: &[u8]) -> u16 {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let sent = client.post(server.url(path)).bearer_auth(&server.token).body(body.to_vec()).send().await.unwrap();
    let status = sent.status().as_u16();
    let body: Value = sent.json().await.unwrap();
    assert!(status >= 400 && !body["detail"].is_null() && body["error"].is_string(), "{status} {body}");
    status
}

#[tokio::test]
async fn bodies_that_are_wrong_are_refused() {
    let server = TestServer::open().await;
    begin(&server, "s").await;
    let deep = format!("{}{}", "[".repeat(2_000), "]".repeat(2_000));
    let cases: [(&str, &[u8]); 14] = [
        ("J01 truncated", br#"{"appName":"wire","#),
        ("J02 empty", b""),
        ("J05 not UTF-8", b"{\"appName\":\"\xff\xfe\"}"),
        ("J07 NaN", br#"{"appName":NaN}"#),
        ("J08 number", br#"{"appName":"wire","userId":1e400,"sessionId":"s"}"#),
        ("J10 BOM", b"\xef\xbb\xbf{}"),
        ("J16 NUL", br#"{"appName":"wire","userId":"u1","sessionId":"s","newMessage":{"parts":[{"text":"\u0000"}]}}"#),
        ("deep", deep.as_bytes()),
        ("list", b"[]"),
        ("user is a number", br#"{"appName":"wire","userId":1,"sessionId":"s"}"#),
        ("state is a list", br#"{"appName":"wire","userId":"u1","sessionId":"s","stateDelta":[]}"#),
        ("message is a text", br#"{"appName":"wire","userId":"u1","sessionId":"s","newMessage":"x"}"#),
        ("parts is a text", br#"{"appName":"wire","userId":"u1","sessionId":"s","newMessage":{"parts":"x"}}"#),
        ("no base64", br#"{"appName":"wire","userId":"u1","sessionId":"s","newMessage":{"parts":[{"inlineData":{"data":"%%"}}]}}"#),
    ];
    for (name, body) in cases {
        for path in ["/run", "/run_sse"] {
            assert_eq!(refused(&server, path, body).await, 422, "{name} {path}");
        }
    }
    assert_eq!(server.post("/run", &says("s", "hello")).await.status, 200);
}

#[tokio::test]
async fn names_and_states_that_are_wrong_are_refused() {
    let server = TestServer::open().await;
    begin(&server, "s").await;
    for id in ["a/b", "a\nb", " ", &"x".repeat(300)] {
        let answer = server.post(SESSIONS, &json!({ "sessionId": id })).await;
        assert_eq!(answer.status, 422, "{id}");
    }
    let huge = json!({ "state": { "x": "x".repeat(300_000) } });
    assert_eq!(server.post(SESSIONS, &huge).await.status, 422);
    let artifact = |name: &str| json!({ "filename": name, "artifact": { "text": "x" } });
    for name in ["../x", "a/../../b", ""] {
        assert_eq!(server.post(&format!("{SESSIONS}/s/artifacts"), &artifact(name)).await.status, 400, "{name}");
    }
    for path in ["/dev-ui/../../etc/passwd", "/dev-ui/..%2f..%2fetc%2fpasswd", "/dev-ui/%00", "/dev-ui/nope.js"] {
        assert_eq!(server.get(path).await.status, 404, "{path}");
    }
    let picture = server.get_with(&format!("{SESSIONS}/s"), &[("Accept", "image/png")]).await;
    assert_eq!(picture.status, 200);
    let stream = server.post_with("/run_sse", &says("s", "hello"), &[("Accept", "image/png")]).await;
    assert_eq!(stream.status, 406);
    let foreign = [("Content-Type", "application/json; charset=utf-16")];
    assert_eq!(server.post_with("/run", &says("s", "hello"), &foreign).await.status, 415);
}

#[tokio::test]
async fn what_is_not_done_here_is_refused_in_the_protocols_words() {
    let server = TestServer::open().await;
    let asked = [("x-adk-telemetry-request", "true")];
    let consent = |yes: bool| json!({ "telemetry": yes });
    assert_eq!(server.post("/config/telemetry", &consent(false)).await.status, 403);
    assert_eq!(server.post_with("/config/telemetry", &consent(false), &asked).await.ok(), consent(false));
    assert_eq!(server.post_with("/config/telemetry", &consent(true), &asked).await.status, 501);
    assert_eq!(server.post_with("/config/telemetry", &json!({}), &asked).await.status, 422);
    for path in ["tests/run", "builder/save", "deploy/cloud_run"] {
        let refused = server.post(&format!("/dev/apps/wire/{path}"), &json!({})).await;
        assert_eq!(refused.status, 501, "{path}");
        assert!(refused.json()["detail"].is_string() && refused.json()["error"].is_string(), "{path}");
    }
    assert_eq!(server.post("/agent-identity/finalize", &json!({})).await.status, 501);
    assert_eq!(server.post("/dev/apps/nobody/eval-sets", &json!({})).await.status, 404);
    assert_eq!(server.post("/dev/apps/wire/nonsense", &json!({})).await.status, 404);
}
