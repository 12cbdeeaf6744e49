//! What servers say and ask by themselves.

use std::sync::Arc;

use gander_domain::{ChoiceKind, Notice, QuestionKind, QuestionOrigin, Reply, Severity, Usage};
use gander_mcp::{MemoryToolPinStore, ServerEvent};
use serde_json::{Value, json};

use crate::test_server::{TestServer, spec};

#[tokio::test]
async fn a_form_is_filled_in_by_a_person() {
    let mut server = TestServer::good().await;
    let call = server.described("script__ask", json!({}));
    let (signals, _heard) = tokio::sync::mpsc::channel(8);
    let answer = async {
        let ServerEvent::Asked { title, ask, origin, reply, .. } = server.events.recv().await.unwrap() else {
            panic!("a question")
        };
        assert_eq!((title.as_str(), origin), ("script asks: How old?", QuestionOrigin::Held));
        let schema = json!({"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]});
        assert_eq!(ask, QuestionKind::Form { schema });
        reply.send(Reply::Filled { content: json!({"age": 42}) }).unwrap();
    };
    let (result, ()) = tokio::join!(server.servers.call_tool(&call, signals, Default::default()), answer);
    let said: Value = serde_json::from_str(&crate::test_server::text(&result.unwrap())).unwrap();
    assert_eq!(said, json!({"action": "accept", "content": {"age": 42}}));
}

#[tokio::test]
async fn with_nobody_there_a_form_is_cancelled() {
    let server = TestServer::good().await;
    let TestServer { servers, events, _attendance: attendance, .. } = server;
    drop((events, attendance));
    let call = servers.describe_call(gander_domain::ToolCallId::new(uuid::Uuid::nil()), "script__ask", &json!({}));
    let (signals, _heard) = tokio::sync::mpsc::channel(8);
    let result = servers.call_tool(&call.unwrap().unwrap(), signals, Default::default()).await.unwrap();
    assert_eq!(crate::test_server::text(&result), r#"{"action":"cancel"}"#);
}

#[tokio::test]
async fn a_model_is_asked_only_after_a_person_said_yes() {
    for (kind, expected) in [(ChoiceKind::AllowOnce, "Polly"), (ChoiceKind::RejectOnce, "the user said no")] {
        let mut server = TestServer::good().await;
        let call = server.described("script__sample", json!({}));
        let (signals, _heard) = tokio::sync::mpsc::channel(8);
        let answer = async {
            let ServerEvent::Asked { title, reply, .. } = server.events.recv().await.unwrap() else {
                panic!("a question")
            };
            assert_eq!(title, "script wants to ask the model: Say a word");
            reply.send(Reply::Chosen { choice: "x".into(), kind }).unwrap();
        };
        let (result, ()) = tokio::join!(server.servers.call_tool(&call, signals, Default::default()), answer);
        let said = crate::test_server::text(&result.unwrap());
        assert!(said.contains(expected), "{said}");
        if kind == ChoiceKind::AllowOnce {
            let ServerEvent::Spent(usage) = server.said().await else { panic!("it was paid for") };
            assert_eq!((usage.input, usage.output), (3, 1));
            assert_ne!(usage, Usage::default());
        }
    }
}

#[tokio::test]
async fn the_sessions_folders_are_its_roots() {
    let server = TestServer::good().await;
    let said: Value = serde_json::from_str(&server.text("script__roots", json!({})).await).unwrap();
    let folder = format!("file://{}", server.folder.path().display());
    assert_eq!(said, json!({"roots": [{"uri": folder}]}));
}

#[tokio::test]
async fn complaints_reach_people() {
    let mut server = TestServer::good().await;
    server.text("script__complain", json!({})).await;
    let ServerEvent::Notice(notice) = server.said().await else { panic!("a notice") };
    let title = "script says: disk is nearly full".to_owned();
    assert_eq!(notice, Notice { severity: Severity::Error, title, detail: None });
}

#[tokio::test]
async fn new_tools_are_there_at_once() {
    let mut server = TestServer::good().await;
    server.text("script__grow", json!({})).await;
    server.tools_changed().await;
    assert_eq!(server.text("script__grown", json!({})).await, "here");
}

#[tokio::test]
async fn a_changed_tool_is_off_until_a_person_approves() {
    let pins = Arc::new(MemoryToolPinStore::default());
    let mut server = TestServer::pinned(vec![spec("script", "good")], pins).await;
    assert!(server.tools().contains(&"script__echo".to_owned()));
    server.text("script__mutate", json!({})).await;
    server.tools_changed().await;
    assert!(!server.tools().contains(&"script__echo".to_owned()));
    assert_eq!(server.servers.server_statuses()[0].changed, ["echo"]);
    server.servers.ask_pending_reviews();
    let ServerEvent::Asked { title, origin, reply, .. } = server.said().await else { panic!("a question") };
    assert_eq!(origin, QuestionOrigin::NonBlocking, "the run goes on without it");
    assert!(title.starts_with("script changed its tool echo since it was first used."), "{title}");
    reply.send(Reply::Chosen { choice: "allow_always".into(), kind: ChoiceKind::AllowAlways }).unwrap();
    server.tools_changed().await;
    assert_eq!(server.text("script__echo", json!({"text": "again"})).await, "again");
}

#[tokio::test]
async fn a_prompt_is_a_command() {
    use gander_domain::Part;
    let server = TestServer::good().await;
    assert_eq!(server.servers.prompt_specs()[0].slash_command_name(), "script:greet");
    let said = |text: &str| server.servers.expand_prompt(vec![Part::text(text)]);
    assert_eq!(said("/script:greet Ada").await, Ok(vec![Part::text("Greet Ada warmly.")]));
    assert_eq!(said("/script:greet").await, Err("the prompt script:greet wants to know: who".to_owned()));
    assert_eq!(said("/unknown thing").await, Ok(vec![Part::text("/unknown thing")]));
}

#[tokio::test]
async fn resources_are_listed_and_read() {
    let server = TestServer::good().await;
    let listed = server.text("list_resources", json!({})).await;
    assert_eq!(listed, "server\turi\tname\tdescription\nscript\tnote://one\tone\t");
    let (read, _) = server.call("read_resource", json!({"server": "script", "uri": "note://one"})).await;
    let text = Some("the first note".to_owned());
    let part = gander_domain::Part::Resource { uri: "note://one".to_owned(), mime: None, text, blob: None };
    assert_eq!(read.content, [gander_domain::ToolContent::Part { part }]);
    assert_eq!(server.text("read_resource", json!({"server": "nobody", "uri": "x"})).await, "no such server: nobody");
}
