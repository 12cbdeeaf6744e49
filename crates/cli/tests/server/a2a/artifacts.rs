//! What the built-in agent puts away, as an artifact of its task: a file, or the address of one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use serde_json::{Value, json};

use crate::a2a::test_server::{BINDINGS, Binding, TestServer};

/// More than a log tells.
const LARGE: usize = 100_000;

fn script() -> String {
    let save = |name: &str, text: &str| json!({ "tool": "artifact_save", "args": { "name": name, "text": text } });
    let calls = json!([
        [save("report.md", "# One")],
        [save("report.md", "# Two")],
        [save("large.md", &"x".repeat(LARGE))],
        [{ "text": "put away" }]
    ]);
    format!("[[script:{calls}]]")
}

fn made<'a>(task: &'a Value, name: &str) -> &'a Value {
    let artifacts: Vec<&Value> =
        task["artifacts"].as_array().unwrap().iter().filter(|made| made["name"] == name).collect();
    assert_eq!(artifacts.len(), 1, "{task}");
    &artifacts[0]["parts"][0]
}

#[tokio::test]
async fn what_is_put_away_is_an_artifact_in_every_binding() -> anyhow::Result<()> {
    let server = TestServer::with(&[("GANDER_A2A_AGENT", "gander")]).await?;
    for binding in BINDINGS {
        let task = server.send_by(binding, &format!("m-{binding:?}"), &script()).await?;
        let (data, address) = match binding {
            Binding::Rpc | Binding::Rest => ("/raw", "/url"),
            Binding::OldRpc => ("/file/bytes", "/file/uri"),
            Binding::OldRest => ("/file/fileWithBytes", "/file/fileWithUri"),
        };
        let raw = made(&task, "report.md").pointer(data).and_then(Value::as_str);
        // A new version takes the place of the one before.
        assert_eq!(STANDARD.decode(raw.expect("bytes"))?, b"# Two", "{binding:?}: {task}");
        let url = made(&task, "large.md").pointer(address).and_then(Value::as_str).expect("an address");
        let path = url.strip_prefix(&server.url("")).expect("an address of this server");
        let file = server.request(Method::GET, path).send().await?;
        assert_eq!((file.status().as_u16(), file.text().await?.len()), (200, LARGE), "{binding:?}: {url}");
        assert_eq!(server.client.get(url).send().await?.status(), 401, "not without a token");
    }
    Ok(())
}

#[tokio::test]
async fn a_wrong_question_for_a_file_is_told_so() -> anyhow::Result<()> {
    let server = TestServer::with(&[("GANDER_A2A_AGENT", "gander")]).await?;
    let task = server.send("m-1", &script()).await?;
    let context = task["contextId"].as_str().unwrap();
    for (path, status) in [
        (format!("/a2a/.artifacts/{context}?name=none&version=0"), 404),
        (format!("/a2a/.artifacts/{context}?name=report.md"), 400),
        ("/a2a/.artifacts/nobody?name=report.md&version=0".to_owned(), 400),
        (format!("/a2a/.artifacts/{}?name=report.md&version=0", uuid::Uuid::nil()), 404),
    ] {
        let response = server.request(Method::GET, &path).send().await?;
        assert_eq!(response.status(), status, "{path}");
        let body: Value = response.json().await?;
        assert!(body["error"]["message"].as_str().is_some_and(|said| said.contains("artifact")), "{path}: {body}");
    }
    Ok(())
}
