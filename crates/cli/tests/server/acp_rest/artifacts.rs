//! What the built-in agent puts away, as clients of this protocol find it: in the run, or behind an address.

use gander_domain::caller::Scope;
use gander_services::token;
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use crate::acp_rest::test_server::TestServer;

/// More than a log tells.
const LARGE: usize = 100_000;

/// A run that puts a small text, a new version of it, and a large one away.
async fn run(server: &TestServer) -> Value {
    let save = |name: &str, text: &str| json!({ "tool": "artifact_save", "args": { "name": name, "text": text, "media_type": "text/markdown" } });
    let large = "x".repeat(LARGE);
    let calls = json!([
        [save("report.md", "# One")],
        [save("report.md", "# Two")],
        [save("big & <b>/large.md", &large)],
        [{ "text": "put away" }]
    ]);
    server.run("gander", &format!("[[script:{calls}]]")).await
}

/// The parts that have a name.
fn named(run: &Value) -> Vec<&Value> {
    let messages = run["output"].as_array().unwrap().iter();
    let parts = messages.flat_map(|message| message["parts"].as_array().unwrap());
    parts.filter(|part| part.get("name").is_some()).collect()
}

#[tokio::test]
async fn what_is_put_away_is_a_part_with_a_name_and_large_content_has_an_address() {
    let server = TestServer::open().await;
    let run = run(&server).await;
    assert_eq!(run["status"], "completed", "{run}");
    let parts = named(&run);
    let small = |text: &str| json!({ "name": "report.md", "content_type": "text/markdown", "content": text, "content_encoding": "plain" });
    assert_eq!((parts[0], parts[1]), (&small("# One"), &small("# Two")));
    assert_eq!((&parts[2]["name"], parts[2].get("content")), (&json!("big & <b>/large.md"), None));
    let address = parts[2]["content_url"].as_str().unwrap();
    let path = address.strip_prefix(&server.url("")).expect("an address of this server").to_owned();
    let file = server.get(&path).await;
    assert_eq!((file.status, file.text.len()), (200, LARGE), "{path}");
    assert_eq!(file.headers["content-type"], "text/markdown");
    assert_eq!(
        (&file.headers["content-disposition"], &file.headers["content-security-policy"]),
        (&"attachment".parse().unwrap(), &"sandbox".parse().unwrap())
    );
    // Whoever reads the run later reads the same.
    assert_eq!(server.get(&TestServer::path(&run, "")).await.ok()["output"], run["output"]);
    // Versions that are told are behind addresses too.
    let one = path.split('?').next().unwrap().to_owned() + "?name=report.md&version=0";
    assert_eq!(server.get(&one).await.text, "# One");
}

#[tokio::test]
async fn a_file_is_for_its_owner_and_a_wrong_question_is_told_what_is_wrong() {
    let server = TestServer::open().await;
    let run = run(&server).await;
    let shelf = format!("/acp-rest/sessions/{}/artifacts", run["session_id"].as_str().unwrap());
    let good = format!("{shelf}?name=report.md&version=1");
    assert_eq!(server.get(&good).await.status, 200);
    let other = token::add_token(&server.config.paths, "other", &[Scope::Prompt], None).unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let strange = client.get(server.url(&good)).bearer_auth(other.expose_secret()).send().await.unwrap();
    assert_eq!(strange.status(), 404);
    assert_eq!(client.get(server.url(&good)).send().await.unwrap().status(), 401);
    for (query, status, code) in [
        ("?name=report.md&version=2", 404, "not_found"),
        ("?name=none&version=0", 404, "not_found"),
        ("?name=..&version=0", 404, "not_found"),
        ("?name=report.md", 422, "invalid_input"),
        ("?version=0", 422, "invalid_input"),
        ("?name=report.md&version=-1", 422, "invalid_input"),
        ("", 422, "invalid_input"),
    ] {
        assert_eq!(server.get(&format!("{shelf}{query}")).await.error(), (status, code.to_owned()), "{query}");
    }
    let nowhere = "/acp-rest/sessions/nobody/artifacts?name=report.md&version=0";
    assert_eq!(server.get(nowhere).await.error().0, 422);
}
