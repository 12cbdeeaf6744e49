//! What is checked before a family sees anything: tokens, sizes, pace, numbers. Rows H.

use gander_testkit::harness::eventually;
use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::rest_rows::family::{FAMILIES, Family, SESSIONS};
use crate::rest_rows::test_server::{Answer, TestServer};

/// Prints so slowly that nobody waits for its end.
const ENDLESS: &str = r#"[[script:[[{"text":"~","repeat":100000,"delay_ms":5}]]]]"#;

#[tokio::test]
async fn h02_h03_h17_only_the_whole_token_in_its_header_opens() {
    let server = TestServer::with(&[("GANDER_LIMITS_BAD_TOKENS_PER_MINUTE", "1000")]).await;
    for family in FAMILIES {
        let token = server.token.as_str();
        let good = family.credential(token);
        let mut wrong: Vec<String> = [&token[1..], &token[..token.len() - 1], &format!("{token}0"), ""]
            .map(|token| family.credential(token))
            .to_vec();
        wrong.extend([format!("{good}\r\n{good}"), "X-Nothing: at all".to_owned()]);
        for path in [family.list().to_owned(), format!("{}?token={token}&secret_key={token}", family.list())] {
            for header in &wrong {
                let head = server.head(&format!("GET {path}"), &[header]);
                assert_eq!(server.raw(format!("{head}\r\n").as_bytes()).await.0, 401, "{family:?} {header}");
            }
        }
        // The body never comes: who waits for it, or asks for it, answers otherwise.
        let expecting = ["Content-Length: 2", "Expect: 100-continue", &family.credential("wrong")];
        let head = server.head(&format!("POST {}", family.stream()), &expecting);
        let (status, text) = server.raw(format!("{head}\r\n").as_bytes()).await;
        assert_eq!((status, text.contains("100 Continue")), (401, false), "{family:?} H17");
        let head = server.head(&format!("GET {}", family.list()), &[&good]);
        assert_eq!(server.raw(format!("{head}\r\n").as_bytes()).await.0, 200, "{family:?}");
    }
}

#[tokio::test]
async fn h05_h06_pages_of_strangers_are_refused() {
    let server = TestServer::open().await;
    let origins =
        ["https://evil.example", "null", "http://localhost.evil.example", "http://127.0.0.1:1", "http://[::1]:1"];
    for family in FAMILIES {
        for (method, path) in
            [(Method::GET, family.list()), (Method::POST, family.stream()), (Method::OPTIONS, family.stream())]
        {
            for origin in origins {
                let request = server.request(family, method.clone(), path).header("origin", origin);
                let answer = Answer::to(request.header("access-control-request-method", "POST")).await;
                assert_eq!(answer.status, 403, "{family:?} {method} {path} {origin}");
                assert!(!answer.headers.contains_key("access-control-allow-origin"), "{family:?} {origin}");
            }
        }
    }
}

#[tokio::test]
async fn h08_a_stream_is_no_picture() {
    let server = TestServer::open().await;
    for family in FAMILIES {
        let session = family.begin(&server).await;
        let request = server.request(family, Method::POST, family.stream()).header("accept", "image/png");
        let answer = Answer::to(request.json(&family.says(&session, "x"))).await;
        assert_eq!(answer.status, 406, "{family:?}");
        assert_eq!(family.history(&server, &session).await, json!([]), "{family:?}: nothing was begun");
    }
}

#[tokio::test]
async fn h09_h12_who_sends_too_slowly_is_sent_away() {
    let server = TestServer::with(&[("GANDER_LIMITS_BODY_TIME", "300ms")]).await;
    for family in FAMILIES {
        let credential = family.credential(&server.token);
        let head = server.head(&format!("POST {}", family.stream()), &[&credential, "Content-Length: 1000"]);
        let silent = server.raw(format!("{head}\r\n{{\"x\":").as_bytes()).await.0;
        assert_eq!(silent, 408, "{family:?} H09");
        let mut stream = TcpStream::connect(server.server.address).await.unwrap();
        stream.write_all(format!("{head}\r\n").as_bytes()).await.unwrap();
        let (mut reader, mut writer) = stream.into_split();
        let trickle = async {
            while writer.write_all(b"{").await.is_ok() {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        let mut answer = [0; 12];
        tokio::select! {
            read = reader.read_exact(&mut answer) => drop(read.unwrap()),
            () = trickle => panic!("{family:?} H12: cut off without a word"),
        }
        assert!(answer.ends_with(b"408"), "{family:?} H12: {answer:?}");
        family.works(&server).await;
    }
}

#[tokio::test]
async fn h14_h15_addresses_and_bodies_have_an_end() {
    let server = TestServer::with(&[("GANDER_LIMITS_PROMPT_BODY", "64 KiB"), ("GANDER_LIMITS_BODY", "8 KiB")]).await;
    for family in FAMILIES {
        let credential = family.credential(&server.token);
        let long = server.head(&format!("GET {}/{}", family.list(), "x".repeat(70 << 10)), &[&credential]);
        assert_eq!(server.raw(format!("{long}\r\n").as_bytes()).await.0, 414, "{family:?} H14");
        let small = match family {
            Family::Goose => "POST /agent/start".to_owned(),
            Family::Adk => format!("PATCH {SESSIONS}/s"),
        };
        let large = format!("POST {}", family.stream());
        for (line, most) in [(large, 64 << 10), (small, 8 << 10)] {
            let body = "x".repeat(most + 1);
            let declared = server.head(&line, &[&credential, &format!("Content-Length: {}", body.len())]);
            assert_eq!(server.raw(format!("{declared}\r\n").as_bytes()).await.0, 413, "{family:?} {line}");
            let chunked = server.head(&line, &[&credential, "Transfer-Encoding: chunked"]);
            let chunked = format!("{chunked}\r\n{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
            assert_eq!(server.raw(chunked.as_bytes()).await.0, 413, "{family:?} {line}, in chunks");
        }
        family.works(&server).await;
    }
}

/// A client that writes first and reads then must not find its connection reset.
#[tokio::test]
async fn who_sends_too_much_still_hears_the_answer() {
    let server = TestServer::open().await;
    let large = vec![b'x'; 40 << 20];
    for family in FAMILIES {
        let length = format!("Content-Length: {}", large.len());
        let head = server.head(&format!("POST {}", family.stream()), &[&family.credential(&server.token), &length]);
        let mut stream = TcpStream::connect(server.server.address).await.unwrap();
        stream.write_all(format!("{head}\r\n").as_bytes()).await.unwrap();
        stream.write_all(&large).await.unwrap();
        assert_eq!(server.rest(stream, "after all of it").await.0, 413, "{family:?}");
    }
}

/// A body that comes after its refusal is read, and the next request is answered on the same connection.
#[tokio::test]
async fn a_connection_goes_on_after_a_refusal() {
    let server = TestServer::open().await;
    for path in ["/reply", "/run_sse", "/runs", "/nowhere"] {
        let mut stream = TcpStream::connect(server.server.address).await.unwrap();
        let head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer wrong\r\n");
        stream.write_all(format!("{head}Content-Length: 2\r\n\r\n").as_bytes()).await.unwrap();
        // Long enough for a server that does not wait for the body to have answered.
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        stream.write_all(b"{}").await.unwrap();
        stream.write_all(b"GET /status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.unwrap();
        let (status, text) = server.rest(stream, path).await;
        assert!(status == 401 || status == 404, "{path}: {status}");
        assert!(text.contains("HTTP/1.1 200 OK"), "{path}: {text}");
    }
}

#[tokio::test]
async fn a_prompt_may_be_as_long_as_its_limit_says() {
    let server = TestServer::open().await;
    for family in FAMILIES {
        let session = family.begin(&server).await;
        let answer = server.post(family, family.stream(), &family.says(&session, &"x ".repeat(2 << 20))).await;
        assert_eq!(answer.status, 200, "{family:?}: {}", answer.text);
    }
}

#[tokio::test]
async fn h21_a_line_break_stays_in_no_header() {
    let server = TestServer::open().await;
    for family in FAMILIES {
        let credential = family.credential(&server.token);
        for name in ["Last-Event-ID", "Accept", "Origin"] {
            let split = format!("{name}: a\rSet-Cookie: b");
            let head = server.head(&format!("POST {}", family.stream()), &[&credential, &split, "Content-Length: 2"]);
            let (status, text) = server.raw(format!("{head}\r\n{{}}").as_bytes()).await;
            assert_eq!((status, text.contains("Set-Cookie")), (400, false), "{family:?} {name}");
        }
        // What is part of an address may hold anything, and is given back in bodies alone.
        let path = match family {
            Family::Goose => "/sessions/a%0d%0aSet-Cookie:%20b/export".to_owned(),
            Family::Adk => format!("{SESSIONS}/a%0d%0aSet-Cookie:%20b"),
        };
        let answer = server.get(family, &path).await;
        assert_eq!((answer.status, answer.headers.contains_key("set-cookie")), (404, false), "{family:?}");
    }
}

#[tokio::test]
async fn h23_whose_address_it_is_says_the_socket_alone() {
    for family in FAMILIES {
        let server = TestServer::with(&[("GANDER_LIMITS_BAD_TOKENS_PER_MINUTE", "3")]).await;
        let mut statuses = Vec::new();
        for index in 0..5 {
            let claimed = format!("X-Forwarded-For: 203.0.113.{index}\r\nX-Real-IP: 203.0.113.{index}");
            let head = server.head(&format!("GET {}", family.list()), &[&claimed, &family.credential("wrong")]);
            statuses.push(server.raw(format!("{head}\r\n").as_bytes()).await.0);
        }
        assert_eq!(statuses, [401, 401, 401, 429, 429], "{family:?}");
    }
}

#[tokio::test]
async fn h24_what_a_client_may_do_says_its_token_alone() {
    let server = TestServer::open().await;
    let added =
        server.server.launch.stdout(&["token", "add", "ann", "--scopes", "read,prompt", "--adk-user", "ann"]).await;
    let ann = added.unwrap().split_whitespace().last().unwrap().to_owned();
    for family in FAMILIES {
        let session = family.begin(&server).await;
        let path = match family {
            Family::Goose => format!("/sessions/{session}/export"),
            Family::Adk => format!("{SESSIONS}/{session}"),
        };
        let claims = ["X-Gander-Scopes: admin", "X-User-Id: owner", "X-Forwarded-User: owner"];
        let credential = family.credential(&ann);
        let headers = [&claims[..], &[&credential]].concat();
        let head = server.head(&format!("GET {path}"), &headers);
        assert_eq!(server.raw(format!("{head}\r\n").as_bytes()).await.0, 404, "{family:?}: another's session");
        let mut body = family.says(&session, "x");
        body["user_id"] = json!("owner");
        body["principal"] = json!("owner");
        let body = body.to_string();
        let length = format!("Content-Length: {}", body.len());
        let head = server.head(&format!("POST {}", family.stream()), &[&headers[..], &[&length]].concat());
        let (status, text) = server.raw(format!("{head}\r\n{body}").as_bytes()).await;
        // goosed told this as an event of the stream, see its clients.
        let refused = status == 404 || (family == Family::Goose && text.contains("Session not found"));
        assert!(refused, "{family:?}: {text}");
        assert_eq!(family.history(&server, &session).await, json!([]), "{family:?}: nothing was said");
    }
}

#[tokio::test]
async fn h26_streams_of_one_token_have_an_end() {
    for family in FAMILIES {
        let server = TestServer::with(&[("GANDER_LIMITS_LOCAL_STREAMS", "2")]).await;
        let mut open = Vec::new();
        for _ in 0..2 {
            let session = family.begin(&server).await;
            let request = server.request(family, Method::POST, family.stream()).json(&family.says(&session, ENDLESS));
            let stream = request.send().await.unwrap();
            assert_eq!(stream.status(), 200, "{family:?}");
            open.push(stream);
        }
        let session = family.begin(&server).await;
        let third = server.post(family, family.stream(), &family.says(&session, "x")).await;
        assert_eq!(third.status, 429, "{family:?}: {}", third.text);
        drop(open);
        // Whoever reads all that was said needs a place too.
        let freed = async || server.get(family, &family.told(&session)).await.status == 200;
        eventually("a place is free", freed).await.unwrap();
        assert_eq!(family.history(&server, &session).await, json!([]), "{family:?}: nothing was begun");
        let freed = async || server.post(family, family.stream(), &family.says(&session, "x")).await.status == 200;
        eventually("a place is free again", freed).await.unwrap();
    }
}

#[tokio::test]
async fn h29_pipelined_requests_are_answered_in_order() {
    let server = TestServer::open().await;
    for family in FAMILIES {
        let credential = family.credential(&server.token);
        let get =
            |path: &str, close: &str| format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{close}{credential}\r\n\r\n");
        let pair = get(family.list(), "") + &get(&format!("{}/nobody/x", family.list()), "");
        let all = pair.repeat(100) + &get("/status", "Connection: close\r\n");
        let (_, text) = server.raw(all.as_bytes()).await;
        let lines = text.lines().filter_map(|line| line.split_once("HTTP/1.1 ").map(|(_, status)| &status[..3]));
        let statuses: Vec<&str> = lines.collect();
        let expected: Vec<&str> = ["200", "404"].repeat(100).into_iter().chain(["200"]).collect();
        assert_eq!(statuses, expected, "{family:?}");
    }
}
