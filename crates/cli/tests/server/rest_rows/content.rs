//! Pictures, links and names of files that are not what they seem. Rows C.

use serde_json::{Value, json};

use crate::rest_rows::family::{FAMILIES, Family, SESSIONS};
use crate::rest_rows::test_server::TestServer;

/// The smallest picture.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
const ZIP: &str = "UEsDBBQAAAAIAA==";
/// `<html><script>` and `<svg onload=x>`.
const HTML: &str = "PGh0bWw+PHNjcmlwdD4=";
const SVG: &str = "PHN2ZyBvbmxvYWQ9eD4=";

fn picture(family: Family, data: &str) -> Value {
    match family {
        Family::Goose => json!({ "type": "image", "data": data, "mimeType": "image/png" }),
        Family::Adk => json!({ "inlineData": { "data": data, "mimeType": "image/png" } }),
    }
}

#[tokio::test]
async fn c02_c03_a_picture_is_one() {
    let server = TestServer::open().await;
    for family in FAMILIES {
        let session = family.begin(&server).await;
        let (spaced, over) = (PNG.replace("AAAA", "AA AA"), format!("{PNG}="));
        let mut cases = vec![
            ("C02", spaced.as_str()),
            ("C02", "%%"),
            ("C02", "A"),
            ("C02", &PNG[..PNG.len() - 3]),
            ("C02", &PNG[..PNG.len() - 1]),
            ("C02", over.as_str()),
            ("C03", ZIP),
            ("C03", HTML),
            ("C03", SVG),
            ("C03", ""),
        ];
        cases.extend((family == Family::Goose).then_some(("C02", "_-8=")));
        for (row, data) in cases {
            let body = family.prompt(&session, json!([picture(family, data)]));
            let answer = server.post(family, family.stream(), &body).await;
            assert_eq!(answer.status, 422, "{family:?} {row} {data}: {}", answer.text);
        }
        assert_eq!(family.history(&server, &session).await, json!([]), "{family:?}");
        let whole = server.post(family, family.stream(), &family.prompt(&session, json!([picture(family, PNG)]))).await;
        assert_eq!(whole.status, 200, "{family:?}: {}", whole.text);
        assert!(family.history(&server, &session).await.to_string().contains(PNG), "{family:?}");
    }
}

/// Clients in python write the alphabet of addresses, those in Go the other one; none says how large something is.
#[tokio::test]
async fn c02_clients_of_adk_write_either_alphabet_and_claim_no_size() {
    let (server, family) = (TestServer::open().await, Family::Adk);
    let session = family.begin(&server).await;
    let send = async |data: Value| {
        server.post(family, "/run", &family.prompt(&session, json!([{ "inlineData": data }]))).await
    };
    let bytes = |data: &str| json!({ "data": data, "mimeType": "application/octet-stream" });
    for data in ["_-8=", "_-8", "/+8=", "/+8"] {
        assert_eq!(send(bytes(data)).await.status, 200, "{data}");
    }
    let before = family.history(&server, &session).await;
    for data in ["_-8==", "_-8===", "_ -8=", "_-8=\n", "_-=8", "_-8=AAAA"] {
        assert_eq!(send(bytes(data)).await.status, 422, "{data:?}");
    }
    for key in ["size", "sizeBytes", "size_bytes"] {
        let mut claims = bytes("_-8=");
        claims[key] = json!(4_294_967_296_u64);
        let refused = send(claims).await;
        assert_eq!((refused.status, refused.text.contains(key)), (422, true), "{}", refused.text);
    }
    assert_eq!(family.history(&server, &session).await, before);
}

#[tokio::test]
async fn c05_a_link_is_never_followed() {
    let server = TestServer::open().await;
    let secret = std::path::Path::new(&server.work()).join("secret.txt");
    std::fs::write(&secret, "nobody-may-read-this").unwrap();
    let file = format!("file://{}", secret.display());
    for family in FAMILIES {
        let session = family.begin(&server).await;
        let send = async |link: &str| {
            let part = match family {
                Family::Goose => json!({ "type": "resource_link", "uri": link, "name": "x" }),
                Family::Adk => json!({ "fileData": { "fileUri": link, "mimeType": "text/plain" } }),
            };
            server.post(family, family.stream(), &family.prompt(&session, json!([part]))).await
        };
        let stated = if family == Family::Goose { 422 } else { 200 };
        for link in [file.as_str(), "file:///etc/passwd", "FILE:/etc/passwd", "data:text/plain,x", "gopher://a.b/x"] {
            let answer = send(link).await;
            assert_eq!(answer.status, stated, "{family:?} {link}: {}", answer.text);
            assert!(!answer.text.contains("nobody-may-read-this") && !answer.text.contains("root:"), "{family:?}");
        }
        assert_eq!(send("https://example.org/x").await.status, 200, "{family:?}");
        let kept = format!("{:?}", server.server.launch.export(&session).await.unwrap());
        assert_eq!(kept.contains("gopher://a.b/x"), family == Family::Adk, "{family:?}");
        assert!(!kept.contains("nobody-may-read-this") && !kept.contains("root:"), "{family:?}: {kept}");
    }
}

/// What a stored session points to is data: it comes in and goes out as it is.
#[tokio::test]
async fn c05_links_of_an_imported_session_are_kept() {
    let (server, family) = (TestServer::open().await, Family::Goose);
    let link = json!({ "type": "resource_link", "uri": "file:///etc/passwd", "name": "x" });
    let message = json!({ "role": "user", "created": 1, "content": [link], "metadata": {} });
    let file = json!({ "name": "old", "working_dir": server.work(), "conversation": [message] }).to_string();
    let session = server.post(family, "/sessions/import", &json!({ "json": file })).await.ok();
    let history = family.history(&server, session["id"].as_str().unwrap()).await;
    assert_eq!(history[0]["content"][0], link);
}

/// Every file below a folder; what the sandbox tries out comes and goes.
fn files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.ends_with("temporary") {
            continue;
        }
        if path.is_dir() && !path.is_symlink() { all.extend(files(&path)) } else { all.push(path) }
    }
    all.sort();
    all
}

#[tokio::test]
async fn c08_a_name_makes_no_file() {
    let server = TestServer::open().await;
    let session = Family::Adk.begin(&server).await;
    let path = format!("{SESSIONS}/{session}/artifacts");
    let before = files(&server.server.launch.data);
    let save = async |name: &str| {
        server.post(Family::Adk, &path, &json!({ "filename": name, "artifact": { "text": name } })).await
    };
    let long = "x".repeat(300);
    let outside = ["../x", "/abs", "", ".", "..", "a/../b", "a//b", "user:../x", "a\\b", "a\u{2215}b"];
    let nowhere = [long.as_str(), "a\0b", "a\u{7}b", "CON", "com1.txt", "a/nul", "a.", "cafe\u{301}"];
    for name in outside.into_iter().chain(nowhere) {
        let answer = save(name).await;
        assert_eq!(answer.status, 400, "{name:?}: {}", answer.text);
        assert!(answer.json()["detail"].is_string() && answer.json()["error"].is_string(), "{}", answer.text);
    }
    assert_eq!(server.get(Family::Adk, &path).await.ok(), json!([]), "nothing was kept");
    let names = [".env", "a b.txt", "caf\u{e9}", "console", "dir/sub/pic.png", "user:shared/note.txt"];
    for name in names {
        assert_eq!(save(name).await.status, 200, "{name:?}");
    }
    let listed = server.get(Family::Adk, &path).await.ok();
    let mut listed: Vec<&str> = listed.as_array().unwrap().iter().filter_map(Value::as_str).collect();
    listed.sort_unstable();
    assert_eq!(listed, names);
    assert_eq!(files(&server.server.launch.data), before, "no file was made");
    // goose keeps pages by the name that they give themselves.
    for name in ["../x", "", ".", "a/../b", "CON/../x", "CON", "a.", &long, "a\u{7}b"] {
        let html = format!(
            "<html><head><script type=\"application/ld+json\">{}</script></head><body>x</body></html>",
            json!({ "@context": "https://goose.ai/schema", "@type": "GooseApp", "name": name })
        );
        let answer = server.post(Family::Goose, "/agent/import_app", &json!({ "html": html })).await;
        assert!([201, 400].contains(&answer.status), "{name:?}: {} {}", answer.status, answer.text);
    }
    assert_eq!(files(&server.server.launch.data), before, "no file was made");
}

#[tokio::test]
async fn c09_no_file_of_the_server_is_read() {
    let server = TestServer::open().await;
    let outside = ["/etc/passwd", "/proc/self/environ", "..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/etc/passwd"];
    for name in outside {
        for path in [
            format!("/dev-ui/{name}"),
            format!("{SESSIONS}/x/artifacts/{name}"),
            format!("/agent/export_app/{}", name.replace('/', "%2f")),
        ] {
            let answer = server.get(Family::Adk, &path).await;
            assert_eq!(answer.status, 404, "{path}: {}", answer.text);
            assert!(!answer.text.contains("root:") && !answer.text.contains("GANDER_"), "{path}");
        }
    }
    let session = Family::Goose.begin(&server).await;
    for uri in ["file:///etc/passwd", "/proc/self/environ", "file:///dev/zero"] {
        let body = json!({ "session_id": session, "uri": uri, "extension_name": "developer" });
        let answer = server.post(Family::Goose, "/agent/read_resource", &body).await;
        assert!((400..500).contains(&answer.status), "{uri}: {} {}", answer.status, answer.text);
        assert!(!answer.text.contains("root:") && !answer.text.contains("GANDER_"), "{uri}");
    }
}
