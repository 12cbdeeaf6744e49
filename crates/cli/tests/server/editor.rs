//! `gander acp` as an editor drives it: a whole conversation on stdio, with nothing but JSON-RPC on stdout.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::ensure;
use gander_testkit::harness::{Agent, Background, Launch, Transcript, binary, eventually, script, workspace};
use gander_testkit::skip::skipped;
use serde_json::{Value, json};

const GANDER: &str = env!("CARGO_BIN_EXE_gander");

/// How long a cancelled turn may take to end, and a process whose stdin is closed.
const AT_ONCE: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_turn_shows_thoughts_text_tools_diffs_and_a_plan() -> anyhow::Result<()> {
    let server = TestServer::open()?;
    std::fs::write(server.folder.join("a.txt"), "one\ntwo\n")?;
    let mut agent = server.launch.editor(&[]).await?;
    let session = agent.client.new_session(&server.folder).await?;
    let steps = [json!({"text": "look", "status": "in_progress"}), json!({"text": "edit", "status": "pending"})];
    let calls = [
        json!([{"thought": "hmm"}, {"text": "I plan.", "chunks": 3}, {"tool": "plan", "args": {"items": steps}}]),
        json!([{"tool": "edit", "args": {"path": "a.txt", "old": "two", "new": "three"}}]),
        json!([{"text": "Done."}]),
    ];
    let id = agent.client.prompt(&session, &script(&calls)).await?;
    let question = agent.client.asked("session/request_permission").await?;
    assert_eq!(kinds(&question), ["allow_once", "allow_always", "allow_always", "reject_once", "reject_always"]);
    agent.client.choose(&question, "allow_once").await?;
    assert_eq!(agent.client.answer_to(id).await?["stopReason"], "end_turn");
    assert_eq!(std::fs::read_to_string(server.folder.join("a.txt"))?, "one\nthree\n");
    let updates = server.updates(&agent, &session)?;
    let entry = |text: &str, status: &str| json!({"content": text, "priority": "medium", "status": status});
    let plan = find(&updates, "plan");
    assert_eq!(plan["entries"], json!([entry("look", "in_progress"), entry("edit", "pending")]));
    assert_eq!(text(&updates, "agent_thought_chunk"), "hmm");
    assert_eq!(text(&updates, "agent_message_chunk"), "I plan.Done.");
    let diff = diffs(&updates).pop().expect("the edit shows a diff");
    assert_eq!((&diff["oldText"], &diff["newText"]), (&json!("one\ntwo\n"), &json!("one\nthree\n")));
    assert_eq!(diff["path"], json!(server.folder.join("a.txt")));
    server.leave(agent).await
}

/// The command fails as one does that has no network, and only the first time.
#[tokio::test]
async fn who_misses_the_network_is_run_again_with_it_if_somebody_says_yes() -> anyhow::Result<()> {
    let server = TestServer::open()?;
    if !server.launch.stdout(&["doctor"]).await?.contains("limits per command") {
        skipped("sandbox::layers", "no layer is in force");
        return Ok(());
    }
    let mut agent = server.launch.editor(&[]).await?;
    let session = agent.client.new_session(&server.folder).await?;
    let command = "echo x >> tries; test $(wc -l < tries) = 2 || { echo Could not resolve host; exit 6; }; echo went";
    let shell = json!([{"tool": "shell", "args": {"command": command}}]);
    for (choice, tries, end) in [("reject_once", "x\n", "failed"), ("allow_once", "x\nx\n", "completed")] {
        std::fs::remove_file(server.folder.join("tries")).ok();
        let id = agent.client.prompt(&session, &script(&[shell.clone(), json!([{"results": true}])])).await?;
        let question = agent.client.asked("session/request_permission").await?;
        agent.client.choose(&question, "allow_once").await?;
        let question = agent.client.asked("session/request_permission").await?;
        let title = question["params"]["toolCall"]["title"].as_str().unwrap_or_default();
        ensure!(title.contains("Retry with network?") && title.contains("echo went"), "{question}");
        agent.client.choose(&question, choice).await?;
        assert_eq!(agent.client.answer_to(id).await?["stopReason"], "end_turn");
        assert_eq!(std::fs::read_to_string(server.folder.join("tries"))?, tries);
        let updates = server.updates(&agent, &session)?;
        assert_eq!(find_last(&updates, "tool_call_update")["status"], end);
    }
    server.leave(agent).await
}

/// The command itself was allowed; what it leaves for programs outside of the sandbox is another question.
#[tokio::test]
async fn what_a_command_plants_is_undone_until_somebody_says_yes() -> anyhow::Result<()> {
    let server = TestServer::open()?;
    if !server.launch.stdout(&["doctor"]).await?.contains("limits per command") {
        skipped("sandbox::layers", "no layer is in force");
        return Ok(());
    }
    std::fs::write(server.folder.join("package.json"), r#"{"dependencies":{"a":"1"}}"#)?;
    let mut agent = server.launch.editor(&[]).await?;
    let session = agent.client.new_session(&server.folder).await?;
    let command = r#"echo 'export PATH=evil' > .envrc; echo '{"dependencies":{"a":"2"}}' > package.json; echo done"#;
    let shell = json!([{"tool": "shell", "args": {"command": command}}]);
    for (choice, kept, told) in [("reject_once", false, "was undone"), ("allow_once", true, "a person allowed")] {
        let id = agent.client.prompt(&session, &script(&[shell.clone(), json!([{"results": true}])])).await?;
        let question = agent.client.asked("session/request_permission").await?;
        agent.client.choose(&question, "allow_once").await?;
        let question = agent.client.asked("session/request_permission").await?;
        let title = question["params"]["toolCall"]["title"].as_str().unwrap_or_default();
        ensure!(title.contains("Keep: .envrc (new: export PATH=evil)"), "{question}");
        ensure!(!server.folder.join(".envrc").exists(), "it is there before anybody said yes");
        agent.client.choose(&question, choice).await?;
        assert_eq!(agent.client.answer_to(id).await?["stopReason"], "end_turn");
        assert_eq!(server.folder.join(".envrc").exists(), kept);
        let updates = server.updates(&agent, &session)?;
        let last = find_last(&updates, "tool_call_update");
        assert_eq!(last["status"], "completed");
        ensure!(last["content"].to_string().contains(told), "the model is told: {last}");
        let diff = diffs(&updates).pop();
        ensure!(diff.is_none(), "a file that may hold secrets is not shown whole");
    }
    assert_eq!(std::fs::read_to_string(server.folder.join("package.json"))?, "{\"dependencies\":{\"a\":\"2\"}}\n");
    server.leave(agent).await
}

#[tokio::test]
async fn a_rejected_tool_does_not_run_and_the_turn_goes_on() -> anyhow::Result<()> {
    let server = TestServer::open()?;
    let mut agent = server.launch.editor(&[]).await?;
    let session = agent.client.new_session(&server.folder).await?;
    let shell = json!([{"tool": "shell", "args": {"command": "touch made"}}]);
    let id = agent.client.prompt(&session, &script(&[shell, json!([{"text": "I see."}])])).await?;
    let question = agent.client.asked("session/request_permission").await?;
    agent.client.choose(&question, "reject_once").await?;
    assert_eq!(agent.client.answer_to(id).await?["stopReason"], "end_turn");
    ensure!(!server.folder.join("made").exists(), "a rejected tool ran");
    let updates = server.updates(&agent, &session)?;
    assert_eq!(find_last(&updates, "tool_call_update")["status"], "failed");
    assert_eq!(text(&updates, "agent_message_chunk"), "I see.");
    server.leave(agent).await
}

#[tokio::test]
async fn cancel_ends_a_stream_a_question_and_a_command_at_once() -> anyhow::Result<()> {
    let server = TestServer::open()?;
    let mut agent = server.launch.editor(&[]).await?;
    let session = agent.client.new_session(&server.folder).await?;
    let stream = json!([{"text": "~", "repeat": 100_000, "delay_ms": 1}]);
    let ask = json!([{"tool": "shell", "args": {"command": "true"}}]);
    let command = json!([{"tool": "shell", "args": {"command": "trap '' TERM; sleep 600"}}]);
    for (call, sign) in [(stream, "agent_message_chunk"), (ask, "tool_call"), (command, "in_progress")] {
        let id = agent.client.prompt(&session, &script(&[call])).await?;
        if sign == "in_progress" {
            let question = agent.client.asked("session/request_permission").await?;
            agent.client.choose(&question, "allow_once").await?;
        }
        agent.client.until(|message| message["params"]["update"].to_string().contains(sign)).await?;
        let started = Instant::now();
        agent.client.notify("session/cancel", json!({"sessionId": session})).await?;
        assert_eq!(agent.client.answer_to(id).await?["stopReason"], "cancelled", "{sign}");
        ensure!(started.elapsed() < AT_ONCE, "{sign} took {:?}", started.elapsed());
    }
    assert_eq!(agent.client.turn(&session, &script(&[json!([{"text": "still here"}])])).await?, "end_turn");
    server.leave(agent).await
}

#[tokio::test]
async fn a_second_editor_sees_the_same_while_the_first_still_streams() -> anyhow::Result<()> {
    let server = TestServer::open()?;
    let mut first = server.launch.editor(&[]).await?;
    let session = first.client.new_session(&server.folder).await?;
    let call = json!([{"thought": "long"}, {"text": "~0123456789", "repeat": 150, "delay_ms": 4}]);
    let id = first.client.prompt(&session, &script(&[call])).await?;
    first.client.update("agent_message_chunk").await?;
    let mut second = server.launch.editor(&[]).await?;
    second.client.load(&session, &server.folder).await?;
    assert_eq!(first.client.answer_to(id).await?["stopReason"], "end_turn");
    let whole = Transcript::of(&first.client.seen, &session);
    assert_eq!(whole.text().matches('~').count(), 150);
    while Transcript::of(&second.client.seen, &session).items != whole.items {
        ensure!(second.client.receive().await?.is_some(), "the second editor lost the stream");
    }
    let mut third = server.launch.editor(&[]).await?;
    third.client.load(&session, &server.folder).await?;
    assert_eq!(Transcript::of(&third.client.seen, &session).items, whole.items);
    for agent in [first, second, third] {
        server.leave(agent).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_turn_outlives_the_editor_that_started_it() -> anyhow::Result<()> {
    let server = TestServer::open()?;
    let mut agent = server.launch.editor(&[]).await?;
    let session = agent.client.new_session(&server.folder).await?;
    let call = json!([{"text": "~", "repeat": 300, "delay_ms": 5}]);
    agent.client.prompt(&session, &script(&[call])).await?;
    agent.client.update("agent_message_chunk").await?;
    server.leave(agent).await?;
    let whole = || async {
        let Ok(mut agent) = server.launch.editor(&[]).await else { return false };
        let loaded = agent.client.load(&session, &server.folder).await.is_ok();
        loaded && Transcript::of(&agent.client.seen, &session).text().len() == 300
    };
    eventually("the turn ends without its editor", whole).await
}

#[tokio::test]
async fn alone_it_starts_no_server_and_ends_with_its_stdin() -> anyhow::Result<()> {
    let server = TestServer::open()?;
    let mut agent = server.launch.editor(&["--standalone"]).await?;
    let session = agent.client.new_session(&server.folder).await?;
    agent.client.prompt(&session, &script(&[json!([{"text": "~", "repeat": 100_000, "delay_ms": 5}])])).await?;
    agent.client.update("agent_message_chunk").await?;
    ensure!(!server.launch.socket().exists(), "there is a socket");
    let others = gander_testkit::harness::processes_naming(&server.launch.data);
    assert_eq!(others, [agent.process()]);
    server.leave(agent).await?;
    let mut next = server.launch.editor(&["--standalone"]).await?;
    next.client.load(&session, &server.folder).await?;
    assert_eq!(Transcript::of(&next.client.seen, &session).prompts.len(), 1);
    server.leave(next).await
}

/// A data directory with the demo model, and a folder to work in.
struct TestServer {
    launch: Launch,
    folder: PathBuf,
    _background: Background,
    _root: tempfile::TempDir,
}

impl TestServer {
    fn open() -> anyhow::Result<Self> {
        let root = tempfile::tempdir()?;
        // Commands see nothing of the data directory, so the workspace lies beside it.
        let data = root.path().join("data");
        std::fs::create_dir(&data)?;
        let launch = Launch::demo(binary(GANDER), &data);
        let folder = workspace(root.path())?;
        Ok(Self { launch, folder, _background: Background(data), _root: root })
    }

    /// Every update so far; each message must be JSON-RPC.
    fn updates(&self, agent: &Agent, session: &str) -> anyhow::Result<Vec<Value>> {
        let seen = &agent.client.seen;
        ensure!(seen.iter().all(|message| message["jsonrpc"] == "2.0"), "not JSON-RPC: {seen:?}");
        let updates = seen.iter().filter(|message| message["params"]["sessionId"] == session);
        Ok(updates.map(|message| message["params"]["update"].clone()).collect())
    }

    /// The editor closes stdin: the process ends well and soon.
    async fn leave(&self, agent: Agent) -> anyhow::Result<()> {
        let (status, took) = agent.leave().await?;
        ensure!(status.success() && took < AT_ONCE, "it ended with {status} after {took:?}");
        Ok(())
    }
}

fn kinds(question: &Value) -> Vec<&str> {
    let options = question["params"]["options"].as_array().map(Vec::as_slice).unwrap_or_default();
    options.iter().filter_map(|option| option["kind"].as_str()).collect()
}

fn find<'a>(updates: &'a [Value], kind: &str) -> &'a Value {
    updates.iter().find(|update| update["sessionUpdate"] == kind).unwrap_or(&Value::Null)
}

fn find_last<'a>(updates: &'a [Value], kind: &str) -> &'a Value {
    updates.iter().rfind(|update| update["sessionUpdate"] == kind).unwrap_or(&Value::Null)
}

fn text(updates: &[Value], kind: &str) -> String {
    let chunks = updates.iter().filter(|update| update["sessionUpdate"] == kind);
    chunks.filter_map(|update| update["content"]["text"].as_str()).collect()
}

fn diffs(updates: &[Value]) -> Vec<Value> {
    let contents = updates.iter().filter_map(|update| update["content"].as_array()).flatten();
    contents.filter(|content| content["type"] == "diff").cloned().collect()
}
