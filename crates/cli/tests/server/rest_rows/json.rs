//! Bodies that are no JSON, or JSON of a kind that nobody means: rows J.

use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::rest_rows::family::{FAMILIES, Family, SESSIONS};
use crate::rest_rows::test_server::TestServer;

/// A prompt whose text is this JSON.
fn said(family: Family, session: &str, text: &str) -> Vec<u8> {
    family.says(session, "TEXT").to_string().replace("\"TEXT\"", text).into_bytes()
}

/// A prompt with this number where goose has a whole one, and ADK none.
fn counted(family: Family, session: &str, number: &str) -> Vec<u8> {
    match family {
        Family::Goose => {
            let body = family.says(session, "x").to_string();
            body.replace("\"created\":1", &format!("\"created\":{number}")).into_bytes()
        }
        Family::Adk => said(family, session, number),
    }
}

/// A body with these bytes inside of the session's name.
fn named(family: Family, bytes: &[u8]) -> Vec<u8> {
    let body = family.says("NAME", "x").to_string();
    let (before, after) = body.split_once("NAME").unwrap();
    [before.as_bytes(), bytes, after.as_bytes()].concat()
}

#[tokio::test]
async fn what_is_no_json_is_refused() {
    let server = TestServer::open().await;
    for family in FAMILIES {
        let session = family.begin(&server).await;
        let whole = family.says(&session, "x").to_string();
        let number = |number: &str| ("J07", said(family, &session, number));
        let mut cases: Vec<(&str, Vec<u8>)> = vec![
            ("J01", whole.as_bytes()[..whole.len() / 2].to_vec()),
            ("J02", Vec::new()),
            ("J05", named(family, b"\xff\xfe")),
            ("J05", named(family, b"\xc0\x80")),
            ("J05", named(family, b"\xed\xa0\x80")),
            ("J10", [b"\xef\xbb\xbf", whole.as_bytes()].concat()),
            ("a lone surrogate", said(family, &session, r#""\ud800""#)),
        ];
        cases.extend(["NaN", "Infinity", "01", "+1", ".5", "0x1"].map(number));
        for (row, body) in cases {
            let answer = server.post_bytes(family, family.stream(), body).await;
            assert_eq!(answer.status, family.no_json(), "{family:?} {row}: {}", answer.text);
            assert!(answer.json().is_object(), "{family:?} {row}");
        }
        assert_eq!(
            family.history(&server, &session).await.as_array().unwrap().len(),
            0,
            "{family:?}: nothing was kept"
        );
        family.works(&server).await;
    }
}

#[tokio::test]
async fn json_that_nobody_means_is_refused() {
    let server = TestServer::open().await;
    for family in FAMILIES {
        let session = family.begin(&server).await;
        let members = (0..200_000).map(|n| format!("\"k{n}\":1")).collect::<Vec<_>>().join(",");
        let quoted = |text: &str| named(family, text.as_bytes());
        let cases: Vec<(&str, Vec<u8>)> = vec![
            ("J08", counted(family, &session, "99999999999999999999")),
            ("J08", counted(family, &session, "1e400")),
            ("J13", format!("{{{members}}}").into_bytes()),
            ("J16 in a text", said(family, &session, r#""a\u0000b""#)),
            ("J16 in an id", quoted(r"a\u0000b")),
        ];
        for (row, body) in cases {
            let answer = server.post_bytes(family, family.stream(), body).await;
            assert_eq!(answer.status, 422, "{family:?} {row}: {}", answer.text);
        }
        let digits = server.post_bytes(family, family.stream(), said(family, &session, &"9".repeat(1 << 20))).await;
        assert!([422, family.no_json()].contains(&digits.status), "{family:?} J17: {}", digits.status);
        assert_eq!(
            family.history(&server, &session).await.as_array().unwrap().len(),
            0,
            "{family:?}: nothing was kept"
        );
        family.works(&server).await;
    }
    for path in ["/apps/gander/users/u%00/sessions", "/apps/gander/users/u1/sessions/s%00"] {
        let answer = server.post(Family::Adk, path, &serde_json::Value::Null).await;
        assert!([404, 422].contains(&answer.status), "J16 {path}: {}", answer.status);
    }
    let state = serde_json::json!({ "state": { "a": "\0" } });
    assert_eq!(server.post(Family::Adk, SESSIONS, &state).await.status, 422, "J16 in a value");
}

#[tokio::test]
async fn white_space_is_white_space_and_another_charset_is_not_guessed() {
    let server = TestServer::open().await;
    for family in FAMILIES {
        let session = family.begin(&server).await;
        let split = family.says(&session, "x").to_string().replace(':', ":\n").into_bytes();
        assert_eq!(server.post_bytes(family, family.stream(), split).await.status, 200, "{family:?} J04");
        for charset in ["utf-16", "UTF-16LE", "latin1"] {
            let request = server.request(family, reqwest::Method::POST, family.stream());
            let request = request.header("content-type", format!("application/json; charset={charset}"));
            let wide = "{}".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
            assert_eq!(request.body(wide).send().await.unwrap().status(), 415, "{family:?} J11 {charset}");
        }
    }
}

#[tokio::test]
async fn j14_j17_a_body_without_end_is_cut_off_and_costs_no_memory() {
    let server = TestServer::with(&[("GANDER_LIMITS_PROMPT_BODY", "2 MiB")]).await;
    for family in FAMILIES {
        let session = family.begin(&server).await;
        for (row, text) in [("J17", "9".repeat(10 << 20)), ("J17", format!("\"{}\"", r"\u0041".repeat(5_000_000)))] {
            let body = String::from_utf8(said(family, &session, &text)).unwrap();
            let length = format!("Content-Length: {}", body.len());
            let head = server.head(&format!("POST {}", family.stream()), &[&family.credential(&server.token), &length]);
            assert_eq!(server.raw(format!("{head}\r\n{body}").as_bytes()).await.0, 413, "{family:?} {row}");
        }
        let before = server.server.process().memory();
        let mut stream = TcpStream::connect(server.server.address).await.unwrap();
        let credential = family.credential(&server.token);
        let head = server.head(&format!("POST {}", family.stream()), &[&credential, "Transfer-Encoding: chunked"]);
        stream.write_all(format!("{head}\r\n").as_bytes()).await.unwrap();
        let chunk = format!("100000\r\n{}\r\n", "x".repeat(1 << 20));
        for _ in 0..100 {
            let sent = tokio::time::timeout(Duration::from_secs(5), stream.write_all(chunk.as_bytes())).await;
            if !matches!(sent, Ok(Ok(()))) {
                break; // it reads no more
            }
        }
        let (status, _) = server.rest(stream, "J14").await;
        assert_eq!(status, 413, "{family:?} J14");
        let grown = server.server.process().peak_memory().saturating_sub(before);
        assert!(grown < 48 << 20, "{family:?} J14: 100 MiB of input cost {} MiB", grown >> 20);
        family.works(&server).await;
    }
}
