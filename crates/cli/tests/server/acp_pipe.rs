//! ACP over a pipe in memory, with the real store, the real loop and the scripted model.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;

use gander::app::App;
use gander_domain::Principal;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};

use crate::served::{app, pipe};

struct Editor {
    lines: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
    next: u64,
}

fn connect(app: &Arc<App>) -> Editor {
    let (reader, writer) = pipe::open(app, Principal::owner());
    Editor { lines: BufReader::new(reader).lines(), writer, next: 0 }
}

impl Editor {
    async fn send(&mut self, message: &Value) {
        self.writer.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn read(&mut self) -> Value {
        let line = tokio::time::timeout(std::time::Duration::from_secs(20), self.lines.next_line()).await;
        serde_json::from_str(&line.expect("an answer in time").unwrap().expect("an open connection")).unwrap()
    }

    /// Sends a request and reads on to its answer; gives what came before it.
    async fn ask(&mut self, method: &str, params: Value) -> (Vec<Value>, Value) {
        let id = self.begin(method, params).await;
        self.until(id, "allow_once").await
    }

    async fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params})).await;
        self.next
    }

    async fn until(&mut self, id: u64, choice: &str) -> (Vec<Value>, Value) {
        let mut before = Vec::new();
        loop {
            let message = self.read().await;
            if message["id"] == json!(id) && message.get("method").is_none() {
                return (before, message);
            }
            if let Some(result) = lent(&message) {
                self.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result})).await;
            }
            if message["method"] == "session/request_permission" {
                let outcome = json!({"outcome": {"outcome": "selected", "optionId": choice}});
                self.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": outcome})).await;
            }
            before.push(message);
        }
    }

    async fn initialize(&mut self) {
        self.initialize_lending(json!({})).await;
    }

    async fn initialize_lending(&mut self, abilities: Value) {
        let (_, answer) = self.ask("initialize", json!({"protocolVersion": 1, "clientCapabilities": abilities})).await;
        assert_eq!(answer["result"]["protocolVersion"], 1, "{answer}");
    }

    async fn session(&mut self, cwd: &Path) -> String {
        let (_, answer) = self.ask("session/new", json!({"cwd": cwd, "mcpServers": []})).await;
        answer["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    async fn prompt(&mut self, session: &str, text: &str) -> (Vec<Value>, Value) {
        self.ask("session/prompt", prompt(session, text)).await
    }
}

/// What an editor answers that lends its files and terminals.
fn lent(message: &Value) -> Option<Value> {
    match message["method"].as_str()? {
        "fs/read_text_file" => Some(json!({"content": "not yet saved\n"})),
        "fs/write_text_file" | "terminal/release" | "terminal/kill" => Some(json!({})),
        "terminal/create" => Some(json!({"terminalId": "t1"})),
        "terminal/wait_for_exit" => Some(json!({"exitCode": 0})),
        "terminal/output" => Some(json!({"output": "from the editor's terminal", "truncated": false})),
        _ => None,
    }
}

fn methods(messages: &[Value]) -> Vec<&str> {
    let method = |message: &Value| message["method"].as_str().is_some_and(|method| method != "session/update");
    messages.iter().filter(|message| method(message)).filter_map(|message| message["method"].as_str()).collect()
}

fn prompt(session: &str, text: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]})
}

fn text(updates: &[Value]) -> String {
    let chunks = updates.iter().filter(|update| update["params"]["update"]["sessionUpdate"] == "agent_message_chunk");
    chunks.filter_map(|update| update["params"]["update"]["content"]["text"].as_str()).collect()
}

fn kinds(updates: &[Value]) -> Vec<&str> {
    updates.iter().filter_map(|update| update["params"]["update"]["sessionUpdate"].as_str()).collect()
}

#[tokio::test]
async fn an_editor_prompts_and_a_second_one_sees_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let app = app(folder.path()).await;
    let mut editor = connect(&app);
    editor.initialize().await;
    let session = editor.session(folder.path()).await;
    let script = r#"[[script:[[{"thought":"hm"},{"text":"Hello there, friend","chunks":5}]]]]"#;
    let (updates, answer) = editor.prompt(&session, script).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert_eq!(text(&updates), "Hello there, friend");
    assert!(kinds(&updates).contains(&"agent_thought_chunk"));

    let mut second = connect(&app);
    second.initialize().await;
    let params = json!({"sessionId": session, "cwd": folder.path(), "mcpServers": []});
    let (replayed, loaded) = second.ask("session/load", params).await;
    assert!(loaded.get("result").is_some(), "{loaded}");
    assert_eq!(text(&replayed), "Hello there, friend");
    assert!(kinds(&replayed).contains(&"user_message_chunk"));
}

#[tokio::test]
async fn a_tool_asks_once_and_runs_on_a_yes() {
    let folder = tempfile::tempdir().unwrap();
    let app = app(folder.path()).await;
    let mut editor = connect(&app);
    editor.initialize().await;
    let session = editor.session(folder.path()).await;
    let script = r#"[[script:[[{"tool":"shell","args":{"command":"echo x >> ran.txt"}}],[{"text":"done"}]]]]"#;
    let (updates, answer) = editor.prompt(&session, script).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer} {updates:?}");
    assert_eq!(updates.iter().filter(|update| update["method"] == "session/request_permission").count(), 1);
    assert_eq!(std::fs::read_to_string(folder.path().join("ran.txt")).unwrap(), "x\n");
    let script = script.replace("ran.txt", "never.txt");
    let id = editor.begin("session/prompt", prompt(&session, &script)).await;
    let (_, answer) = editor.until(id, "reject_once").await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert!(!folder.path().join("never.txt").exists());
}

#[tokio::test]
async fn a_cancel_right_behind_its_prompt_is_not_lost() {
    let folder = tempfile::tempdir().unwrap();
    let app = app(folder.path()).await;
    let mut editor = connect(&app);
    editor.initialize().await;
    let session = editor.session(folder.path()).await;
    let script = r#"[[script:[[{"text":"never ending","chunks":4000,"delay_ms":50,"repeat":100}]]]]"#;
    let id = editor.begin("session/prompt", prompt(&session, script)).await;
    let cancel = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}});
    editor.send(&cancel).await;
    let (_, answer) = editor.until(id, "").await;
    assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer}");
}

#[tokio::test]
async fn a_run_goes_on_without_its_client() {
    let folder = tempfile::tempdir().unwrap();
    let app = app(folder.path()).await;
    let mut editor = connect(&app);
    editor.initialize().await;
    let session = editor.session(folder.path()).await;
    let script = r#"[[script:[[{"text":"one two three","chunks":13,"delay_ms":10}]]]]"#;
    editor.begin("session/prompt", prompt(&session, script)).await;
    while editor.read().await["params"]["update"]["sessionUpdate"] != "agent_message_chunk" {}
    drop(editor);
    let mut second = connect(&app);
    second.initialize().await;
    let params = json!({"sessionId": session, "cwd": folder.path(), "mcpServers": []});
    let (mut seen, _) = second.ask("session/load", params).await;
    while text(&seen) != "one two three" {
        seen.push(second.read().await);
    }
}

#[tokio::test]
async fn the_demo_asks_where_it_says_that_it_will() {
    let folder = tempfile::tempdir().unwrap();
    let app = app(folder.path()).await;
    let mut editor = connect(&app);
    editor.initialize().await;
    let session = editor.session(folder.path()).await;
    for (word, questions) in [("tools", 0), ("plan", 0), ("ask", 1), ("edit", 2)] {
        let (updates, answer) = editor.prompt(&session, word).await;
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{word}: {answer}");
        let asked = updates.iter().filter(|update| update["method"] == "session/request_permission").count();
        assert_eq!(asked, questions, "{word}");
    }
    assert_eq!(std::fs::read_to_string(folder.path().join("gander-hello.txt")).unwrap(), "hello from gander\n");
}

#[tokio::test]
async fn an_editor_lends_its_files_and_terminals_and_only_what_it_offers() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.txt"), "on the disk\n").unwrap();
    let app = app(folder.path()).await;
    let script = r#"[[script:[[{"tool":"read","args":{"path":"a.txt"}}],[{"tool":"write","args":{"path":"a.txt","content":"new\n"}}],[{"tool":"shell","args":{"command":"touch made-by-shell"}}],[{"text":"done"}]]]]"#;

    let mut lender = connect(&app);
    let all = json!({"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true});
    lender.initialize_lending(all).await;
    let session = lender.session(folder.path()).await;
    let (seen, answer) = lender.prompt(&session, script).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer} {seen:?}");
    let seen_text = Value::from(seen.clone()).to_string();
    assert!(seen_text.contains("not yet saved") && seen_text.contains("from the editor's terminal"), "{seen_text}");
    assert!(methods(&seen).contains(&"fs/write_text_file") && methods(&seen).contains(&"terminal/create"));
    assert_eq!(std::fs::read_to_string(folder.path().join("a.txt")).unwrap(), "on the disk\n", "the editor writes");
    assert!(!folder.path().join("made-by-shell").exists(), "the editor runs it");

    let mut reader = connect(&app);
    reader.initialize_lending(json!({"fs": {"readTextFile": true, "writeTextFile": false}})).await;
    let session = reader.session(folder.path()).await;
    let (seen, answer) = reader.prompt(&session, script).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    let lent: Vec<&str> = methods(&seen).into_iter().filter(|method| !method.starts_with("session/")).collect();
    assert!(lent.iter().all(|method| *method == "fs/read_text_file"), "{lent:?}");
    assert_eq!(std::fs::read_to_string(folder.path().join("a.txt")).unwrap(), "new\n");
    assert!(folder.path().join("made-by-shell").exists());
}

/// Such a client knows `terminal/create`, `terminal/output` and `terminal/release` alone.
#[tokio::test]
async fn a_terminal_that_cannot_be_waited_for_is_looked_at_until_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    let app = app(folder.path()).await;
    let mut lender = connect(&app);
    lender.initialize_lending(json!({"terminal": true})).await;
    let session = lender.session(folder.path()).await;
    let script = r#"[[script:[[{"tool":"shell","args":{"command":"make"}}],[{"results":true}]]]]"#;
    let id = lender.begin("session/prompt", prompt(&session, script)).await;
    let (mut looks, mut seen) = (0, Vec::new());
    let answer = loop {
        let message = lender.read().await;
        if message["id"] == json!(id) && message.get("method").is_none() {
            break message;
        }
        let answer = match message["method"].as_str() {
            Some("terminal/wait_for_exit" | "terminal/kill") => {
                json!({"error": {"code": -32601, "message": "Method not found"}})
            }
            Some("terminal/output") => {
                looks += 1;
                let exit = (looks >= 3).then(|| json!({"exitCode": 7}));
                json!({"result": {"output": "built so far", "truncated": false, "exitStatus": exit}})
            }
            Some("session/request_permission") => {
                json!({"result": {"outcome": {"outcome": "selected", "optionId": "allow_once"}}})
            }
            Some(_) | None => json!({"result": lent(&message)}),
        };
        if message.get("id").is_some() {
            let mut reply = json!({"jsonrpc": "2.0", "id": message["id"]});
            reply.as_object_mut().unwrap().extend(answer.as_object().unwrap().clone());
            lender.send(&reply).await;
        }
        seen.push(message);
    };
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert!(text(&seen).contains("`shell` failed") && text(&seen).contains("built so far"), "{}", text(&seen));
    assert!(looks >= 3 && methods(&seen).contains(&"terminal/release"), "{:?}", methods(&seen));
}

/// There is no sandbox around it, and its environment is the editor's.
#[tokio::test]
async fn a_line_that_only_reads_asks_before_it_runs_in_a_lent_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let app = app(folder.path()).await;
    let mut lender = connect(&app);
    lender.initialize_lending(json!({"terminal": true})).await;
    let session = lender.session(folder.path()).await;
    let run = |command: &str| {
        format!(r#"[[script:[[{{"tool":"shell","args":{{"command":"{command}"}}}}],[{{"text":"done"}}]]]]"#)
    };
    let cases: [(&str, &str, &[&str]); 4] = [
        ("ls", "reject_once", &["session/request_permission"]),
        ("ls", "allow_always", &["session/request_permission", "terminal/create"]),
        // Exactly this was granted, and nothing else.
        ("ls", "reject_once", &["terminal/create"]),
        ("ls -la", "reject_once", &["session/request_permission"]),
    ];
    for (command, choice, expected) in cases {
        let id = lender.begin("session/prompt", prompt(&session, &run(command))).await;
        let (seen, answer) = lender.until(id, choice).await;
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
        let decisive = |method: &&str| ["session/request_permission", "terminal/create"].contains(method);
        let methods: Vec<&str> = methods(&seen).into_iter().filter(decisive).collect();
        assert_eq!(methods, expected, "{command} {choice}");
    }
}

#[tokio::test]
async fn many_requests_may_be_sent_before_the_first_answer_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let app = app(folder.path()).await;
    let mut editor = connect(&app);
    editor.initialize().await;
    let params = json!({"cwd": folder.path(), "mcpServers": []});
    for _ in 0..300 {
        let sent = editor.begin("session/new", params.clone());
        tokio::time::timeout(std::time::Duration::from_secs(20), sent).await.expect("the server goes on reading");
    }
    let (mut answers, last) = (0, editor.next);
    while answers < 300 {
        let message = editor.read().await;
        answers += u64::from(message["id"].as_u64().is_some_and(|id| id <= last) && message.get("result").is_some());
    }
}

#[tokio::test]
async fn when_the_lending_editor_is_gone_the_servers_disk_is_used_and_the_log_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let app = app(folder.path()).await;
    let mut lender = connect(&app);
    lender.initialize_lending(json!({"terminal": true})).await;
    let session = lender.session(folder.path()).await;
    let script = r#"[[script:[[{"tool":"shell","args":{"command":"touch made-here"}}],[{"text":"done"}]]]]"#;
    lender.begin("session/prompt", prompt(&session, script)).await;
    while lender.read().await["method"] != "session/request_permission" {}
    drop(lender);

    let mut other = connect(&app);
    other.initialize().await;
    let params = json!({"sessionId": session, "cwd": folder.path(), "mcpServers": []});
    let (mut seen, _) = other.ask("session/load", params).await;
    while !text(&seen).contains("done") {
        let message = other.read().await;
        if message["method"] == "session/request_permission" {
            let outcome = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
            other.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": outcome})).await;
        }
        seen.push(message);
    }
    assert!(folder.path().join("made-here").exists());
    let (_, log) = other.ask("_gander/session/export", json!({"sessionId": session})).await;
    let kinds: Vec<&str> = log["result"]["entries"].as_array().unwrap().iter().filter_map(kind).collect();
    assert!(kinds.contains(&"noticed"), "{kinds:?}");
}

fn kind(entry: &Value) -> Option<&str> {
    entry["event"]["kind"].as_str()
}
