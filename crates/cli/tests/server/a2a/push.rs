//! Push notifications: registered, guarded, delivered in order, and delivered after a kill.

use std::path::Path;
use std::sync::Arc;

use gander_testkit::harness::eventually;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::Mutex;

use crate::a2a::test_server::{TestServer, message};

/// What a receiver was sent: the header's lines in lower case, and the body.
type Received = Arc<Mutex<Vec<(String, Value)>>>;

async fn receiver() -> anyhow::Result<(String, Received)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/hook", listener.local_addr()?);
    let received: Received = Arc::default();
    let kept = Arc::clone(&received);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let kept = Arc::clone(&kept);
            tokio::spawn(async move {
                let mut bytes = Vec::new();
                while let Ok(read) = stream.read_buf(&mut bytes).await {
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    let whole = text.split_once("\r\n\r\n").filter(|(head, body)| {
                        let head = head.to_lowercase();
                        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                        length.and_then(|length| length.parse().ok()) == Some(body.len())
                    });
                    if let Some((head, body)) = whole {
                        kept.lock().await.push((head.to_lowercase(), serde_json::from_str(body).unwrap()));
                        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                        drop(stream.write_all(answer).await);
                        return;
                    }
                    if read == 0 {
                        return;
                    }
                }
            });
        }
    });
    Ok((url, received))
}

/// The names of all files below a folder that hold this text.
fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    let found = entries.flat_map(|entry| match entry.file_type().unwrap() {
        kind if kind.is_dir() => files_with(&entry.path(), text),
        kind if kind.is_file() => {
            let holds = String::from_utf8_lossy(&std::fs::read(entry.path()).unwrap()).contains(text);
            holds.then(|| entry.file_name().into_string().unwrap()).into_iter().collect()
        }
        _ => Vec::new(),
    });
    found.collect()
}

fn is_over((_, body): &(String, Value)) -> bool {
    body["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
}

#[tokio::test]
async fn updates_are_sent_in_order_with_the_receivers_credentials() -> anyhow::Result<()> {
    let server = TestServer::with(&[("GANDER_A2A_PUSH_ALLOW", "[\"127.0.0.1\"]")]).await?;
    let (url, received) = receiver().await?;
    let config = json!({ "id": "c", "url": url, "token": "tok",
        "authentication": { "scheme": "Bearer", "credentials": "secret" } });
    let params = json!({ "message": message("tck-stream-001", "x"),
        "configuration": { "taskPushNotificationConfig": config } });
    let task = server.call("SendMessage", params).await?["task"].take();
    eventually("the last notification", async || received.lock().await.iter().any(is_over)).await?;
    let all = received.lock().await;
    let kinds: Vec<&String> = all.iter().map(|(_, body)| body.as_object().unwrap().keys().next().unwrap()).collect();
    assert_eq!((kinds[0].as_str(), kinds.last().unwrap().as_str()), ("task", "statusUpdate"));
    assert!(kinds.contains(&&"artifactUpdate".to_owned()), "{kinds:?}");
    let mut ids: Vec<&str> = Vec::new();
    for (head, _) in all.iter() {
        assert!(head.contains("authorization: bearer secret") && head.contains("x-a2a-notification-token: tok"));
        ids.push(head.lines().find_map(|line| line.strip_prefix("idempotency-key: ")).unwrap());
    }
    ids.dedup();
    assert_eq!(ids.len(), all.len());
    let listed = server.call("ListTaskPushNotificationConfigs", json!({ "taskId": task["id"] })).await?;
    assert_eq!(listed["configs"][0]["id"], "c");
    Ok(())
}

#[tokio::test]
async fn configs_are_made_looked_at_and_removed_and_survive_a_kill() -> anyhow::Result<()> {
    let server = TestServer::with(&[("GANDER_A2A_PUSH_ALLOW", "[\"127.0.0.1\"]")]).await?;
    let (url, received) = receiver().await?;
    let task = server.send("tck-input-required-1", "x").await?["id"].take();
    let made = server.call("CreateTaskPushNotificationConfig", json!({ "taskId": task, "url": url })).await?;
    let id = made["id"].as_str().unwrap().to_owned();
    let secret = json!({ "taskId": task, "id": "s", "url": url, "token": "hush-token-1",
        "authentication": { "scheme": "Bearer", "credentials": "hush-credentials-2" } });
    let secret = server.call("CreateTaskPushNotificationConfig", secret).await?;
    let server = server.restart().await?;
    let found = server.call("GetTaskPushNotificationConfig", json!({ "taskId": task, "id": "s" })).await?;
    assert_eq!(found, secret);
    assert_eq!(files_with(server.root(), "hush-"), ["secrets.json"], "only the vault has them");
    server.call("DeleteTaskPushNotificationConfig", json!({ "taskId": task, "id": "s" })).await?;
    assert_eq!(files_with(server.root(), "hush-"), Vec::<String>::new());
    let found = server.call("GetTaskPushNotificationConfig", json!({ "taskId": task, "id": id })).await?;
    assert_eq!(found, made);
    let mut answer = message("m-2", "blue");
    answer["taskId"] = task.clone();
    server.call("SendMessage", json!({ "message": answer })).await?;
    eventually("the last notification", async || received.lock().await.iter().any(is_over)).await?;
    server.call("DeleteTaskPushNotificationConfig", json!({ "taskId": task, "id": id })).await?;
    assert_eq!(server.code("GetTaskPushNotificationConfig", json!({ "taskId": task, "id": id })).await?, -32001);
    Ok(())
}

#[tokio::test]
async fn an_address_with_a_line_break_and_more_receivers_than_there_is_room_for_are_refused() -> anyhow::Result<()> {
    let server = TestServer::with(&[("GANDER_A2A_PUSH_ALLOW", "[\"127.0.0.1\"]")]).await?;
    let mut tasks = Vec::new();
    for n in 0..17 {
        tasks.push(server.send(&format!("tck-input-required-{n}"), "x").await?["id"].take());
    }
    for url in [
        "http://127.0.0.1:9/a\nb",
        "http://127.0.0.1:9/\r\nx: y",
        "http://127.0.0.1:9/\u{202e}a",
        "http://127.0.0.1:9/a b",
    ] {
        let config = json!({ "taskId": tasks[0], "url": url });
        assert_eq!(server.code("CreateTaskPushNotificationConfig", config).await?, -32602, "{url:?}");
    }
    for (member, value) in [
        ("token", json!("a\r\nx: y")),
        ("authentication", json!({ "scheme": "Bearer", "credentials": "a\nb" })),
        ("authentication", json!({ "scheme": "Bear\0er", "credentials": "a" })),
    ] {
        let mut config = json!({ "taskId": tasks[0], "url": "http://127.0.0.1:9/" });
        config[member] = value;
        assert_eq!(server.code("CreateTaskPushNotificationConfig", config.clone()).await?, -32602, "{config}");
    }
    let config = |n: usize| json!({ "taskId": tasks[n / 16], "id": format!("c{n}"), "url": "http://127.0.0.1:9/" });
    for n in 0..256 {
        server.call("CreateTaskPushNotificationConfig", config(n)).await?;
    }
    assert_eq!(server.code("CreateTaskPushNotificationConfig", config(256)).await?, -32603);
    server.call("CreateTaskPushNotificationConfig", config(3)).await?; // one that is there is replaced
    server.call("DeleteTaskPushNotificationConfig", json!({ "taskId": tasks[0], "id": "c3" })).await?;
    server.call("CreateTaskPushNotificationConfig", config(256)).await?;
    Ok(())
}

#[tokio::test]
async fn nothing_is_sent_into_private_networks() -> anyhow::Result<()> {
    let server = TestServer::open().await?;
    let task = server.send("tck-input-required-1", "x").await?["id"].take();
    for url in [
        "http://127.0.0.1:9/hook",
        "http://localhost./hook",
        "http://169.254.169.254/latest",
        "http://[::ffff:127.0.0.1]/hook",
        "http://0x7f.1/hook",
        "http://2130706433/hook",
        "http://user@example.com/hook",
        "file:///etc/passwd",
        "nonsense",
    ] {
        let params = json!({ "taskId": task, "url": url });
        assert_eq!(server.code("CreateTaskPushNotificationConfig", params).await?, -32602, "{url}");
    }
    Ok(())
}
