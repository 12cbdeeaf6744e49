//! Bodies that are no JSON, or JSON of a kind that nobody means: rows J of `interop/data/bad-inputs.tsv`.

use crate::acp_rest::test_server::{TestServer, new, said};

#[tokio::test]
async fn what_is_no_json_is_unreadable_and_the_next_run_works() {
    let server = TestServer::open().await;
    let text =
        |text: &str| format!(r#"{{"agent_name":"echo","input":[{{"parts":[{{"content":{text}}}]}}]}}"#).into_bytes();
    let many = (0..200_000).map(|n| format!("\"k{n}\":1")).collect::<Vec<_>>().join(",");
    let invalid = |bytes: &[u8]| [&br#"{"agent_name":""#[..], bytes, &br#"","input":[]}"#[..]].concat();
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("J01", br#"{"agent_name":"echo","input":"#.to_vec()),
        ("J02", Vec::new()),
        ("J05", invalid(b"\xff\xfe")),
        ("J05", invalid(b"\xc0\x80")),
        ("J05", invalid(b"\xed\xa0\x80")),
        ("J07", text("NaN")),
        ("J07", text("01")),
        ("J08", br#"{"agent_name":"echo","input":[],"mode":1e400}"#.to_vec()),
        ("J10", [&b"\xef\xbb\xbf"[..], new("echo", "x", "sync").to_string().as_bytes()].concat()),
        ("J13", format!("{{{many}}}").into_bytes()),
        ("J16", br#"{"agent_name":"a\u0000","input":[{"parts":[{"content":"x"}]}]}"#.to_vec()),
        ("J17", text(&"1".repeat(1 << 20))),
        ("the lone surrogate that hangs the reference", text(r#""\ud800""#)),
    ];
    for (row, body) in cases {
        let answer = server.post_bytes("/runs", "application/json", body).await;
        assert_eq!(answer.error(), (422, "invalid_input".to_owned()), "{row}");
    }
    let body = new("echo", "x", "sync").to_string().into_bytes();
    let foreign = server.post_bytes("/runs", "application/json; charset=utf-16", body).await;
    assert_eq!(foreign.error(), (415, "invalid_input".to_owned()), "J11");
    let split = "{\"agent_name\":\n\"echo\",\"input\":[{\"parts\":[{\"content\":\"x\"}]}]}".as_bytes().to_vec();
    assert_eq!(said(&server.post_bytes("/runs", "application/json", split).await.ok()), ["x"], "J04");
}
