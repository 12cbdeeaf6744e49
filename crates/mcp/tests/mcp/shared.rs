//! One server for several sessions: one process, events to all of them, questions to the one that called.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gander_domain::{Reply, ToolCall};
use gander_mcp::{MemoryToolPinStore, Pool, ServerEvent, ServersConfig, Sharing, Spec};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::test_server::{TestServer, circumstances, spec, text};

fn shared() -> Spec {
    Spec { shared: true, ..spec("script", "good") }
}

fn sharing(pool: &Pool, owner: &str) -> Sharing {
    Sharing { pool: pool.clone(), owner: owner.to_owned(), linger: Duration::from_millis(300) }
}

async fn session(folder: &Path, pool: &Pool, owner: &str, spec: Spec) -> TestServer {
    let usual = circumstances(folder, Arc::new(MemoryToolPinStore::default()));
    TestServer::within(vec![spec], ServersConfig { sharing: sharing(pool, owner), ..usual }).await
}

async fn pid(server: &TestServer) -> u32 {
    server.text("script__pid", json!({})).await.parse().unwrap()
}

fn alive(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

/// A call to its end, without borrowing the events.
async fn run(server: &TestServer, call: &ToolCall) -> String {
    let (signals, _heard) = mpsc::channel(8);
    text(&server.servers.call_tool(call, signals, CancellationToken::new()).await.unwrap())
}

#[tokio::test]
async fn sessions_of_one_person_in_one_folder_have_one_process_and_others_their_own() {
    let (folder, other, pool) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), Pool::default());
    let one = session(folder.path(), &pool, "ada", shared()).await;
    let two = session(folder.path(), &pool, "ada", shared()).await;
    assert_eq!(pid(&one).await, pid(&two).await);
    let bob = session(folder.path(), &pool, "bob", shared()).await;
    let away = session(other.path(), &pool, "ada", shared()).await;
    let alone = session(folder.path(), &pool, "ada", spec("script", "good")).await;
    let patient = Spec { patience: Duration::from_secs(9), ..shared() };
    let patient = session(folder.path(), &pool, "ada", patient).await;
    let mut all = vec![pid(&one).await];
    for server in [&bob, &away, &alone, &patient] {
        all.push(pid(server).await);
    }
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 5, "nobody else shares it");
}

#[tokio::test]
async fn it_goes_on_for_those_who_stay_and_ends_a_while_after_the_last() {
    let (folder, pool) = (tempfile::tempdir().unwrap(), Pool::default());
    let one = session(folder.path(), &pool, "ada", shared()).await;
    let two = session(folder.path(), &pool, "ada", shared()).await;
    let process = pid(&one).await;
    drop(one);
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(pid(&two).await, process, "the other one still uses it");
    drop(two);
    let three = session(folder.path(), &pool, "ada", shared()).await;
    assert_eq!(pid(&three).await, process, "who comes soon finds it");
    three.servers.set_specs(Vec::new());
    let begun = Instant::now();
    while alive(process) {
        assert!(begun.elapsed() < Duration::from_secs(60), "it is still there");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn news_go_to_all_and_questions_to_the_one_that_called() {
    let (folder, pool) = (tempfile::tempdir().unwrap(), Pool::default());
    let mut one = session(folder.path(), &pool, "ada", shared()).await;
    let mut two = session(folder.path(), &pool, "ada", shared()).await;
    while one.events.try_recv().is_ok() || two.events.try_recv().is_ok() {}
    one.text("script__complain", json!({})).await;
    for server in [&mut one, &mut two] {
        let ServerEvent::Notice(notice) = server.said().await else { panic!("a notice") };
        assert_eq!(notice.title, "script says: disk is nearly full");
    }
    one.text("script__grow", json!({})).await;
    one.tools_changed().await;
    two.tools_changed().await;
    assert!(two.tools().contains(&"script__grown".to_owned()));
    let call = two.described("script__ask", json!({}));
    let (signals, _heard) = mpsc::channel(8);
    let answer = async {
        let ServerEvent::Asked { reply, .. } = two.events.recv().await.unwrap() else { panic!("a question") };
        reply.send(Reply::Filled { content: json!({"age": 7}) }).unwrap();
    };
    let (result, ()) = tokio::join!(two.servers.call_tool(&call, signals, CancellationToken::new()), answer);
    let said: Value = serde_json::from_str(&text(&result.unwrap())).unwrap();
    assert_eq!(said["content"], json!({"age": 7}));
    assert!(one.events.try_recv().is_err(), "the other session hears nothing of it");
}

#[tokio::test]
async fn a_question_that_could_be_either_ones_is_put_to_nobody() {
    let (folder, pool) = (tempfile::tempdir().unwrap(), Pool::default());
    let one = session(folder.path(), &pool, "ada", shared()).await;
    let mut two = session(folder.path(), &pool, "ada", shared()).await;
    let (hang, ask) = (one.described("script__hang", json!({})), two.described("script__ask", json!({})));
    let (signals, mut heard) = mpsc::channel(8);
    let cancel = CancellationToken::new();
    let hanging = one.servers.call_tool(&hang, signals, cancel.clone());
    let asking = async {
        heard.recv().await.expect("the first call is under way");
        let said = run(&two, &ask).await;
        cancel.cancel();
        said
    };
    let (_, said) = tokio::join!(hanging, asking);
    assert_eq!(said, r#"{"action":"cancel"}"#);
    while let Ok(events) = two.events.try_recv() {
        assert!(!matches!(events, ServerEvent::Asked { .. }), "somebody was asked");
    }
}
