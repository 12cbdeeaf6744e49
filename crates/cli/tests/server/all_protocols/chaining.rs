//! gander behind gander: every protocol shows what it shows of the agent itself.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use gander_testkit::harness::{Server, binary, script};
use serde_json::{Value, json};

use super::protocols::{self, TestSession};
use super::test_server_with;

/// What differs between any two sessions, or is about the server that counts it: moments, folders, models and tokens. What is
/// asked is described anew: the title of another agent's call may say anything, its arguments do not.
const OWN_KEYS: &[&str] = &[
    "timestamp",
    "created",
    "created_at",
    "finished_at",
    "completed_at",
    "updated_at",
    "updatedAt",
    "lastUpdateTime",
    "last_modified",
    "cwd",
    "working_dir",
    "workingDir",
    "model",
    "model_config",
    "modelVersion",
    "usage",
    "usageMetadata",
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "accumulated_input_tokens",
    "accumulated_output_tokens",
    "accumulated_total_tokens",
    "accumulated_cost",
    "provider_name",
    "provider",
    "configOptions",
    "modes",
    "await_request",
    "hint",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_behind_another_gander_looks_the_same_in_every_protocol() -> anyhow::Result<()> {
    let behind = tempfile::tempdir()?;
    let line = "GANDER_DATA=\"$1/$$\" exec \"$0\" acp --standalone";
    let command = json!(["/bin/sh", "-c", line, binary(env!("CARGO_BIN_EXE_gander")), behind.path()]);
    let chained = format!("[agents.behind]\ncommand = {command}\nenv = {{ GANDER_MODEL = \"demo/demo\" }}\n");
    let alone = shown_by_every_protocol("gander", "").await.context("alone")?;
    let chained = shown_by_every_protocol("behind", &chained).await.context("chained")?;
    let mut differences = Vec::new();
    for ((protocol, alone), (_, chained)) in alone.iter().zip(&chained) {
        ensure!(!alone.is_empty(), "{protocol} shows nothing");
        let differs = alone.iter().zip(chained).position(|(alone, chained)| alone != chained);
        let at = differs.unwrap_or(alone.len().min(chained.len()));
        let near =
            |lines: &[String]| lines[at.saturating_sub(12).min(lines.len())..(at + 12).min(lines.len())].join("\n");
        if alone != chained {
            differences.push(format!("{protocol} alone:\n{}\nbehind another one:\n{}", near(alone), near(chained)));
        }
    }
    ensure!(differences.is_empty(), "{}", differences.join("\n\n"));
    Ok(())
}

/// Three turns in a session of this agent, as each protocol shows them.
async fn shown_by_every_protocol(agent: &str, settings: &str) -> anyhow::Result<Vec<(&'static str, Vec<String>)>> {
    let (_root, server, mut test_session) = test_server_with(settings).await?;
    test_session.agent = agent.to_owned();
    let mut test_session = test_session.in_new_session(&server).await?;
    let runs = [
        script(&[
            json!([{ "thought": "let me see" }, { "text": "first I look ", "chunks": 3 }, { "tool": "shell", "args": { "command": "echo x >> ran; cat ran" } }]),
            json!([{ "text": "all done", "chunks": 2 }]),
        ]),
        script(&[
            json!([{ "tool": "write", "args": { "path": "ran", "content": "y\n" } }]),
            json!([{ "text": "written" }]),
        ]),
        script(&[json!([{ "text": "a picture" }, { "image": true }])]),
    ];
    let (mut run_ids, mut questions) = (Vec::new(), Vec::new());
    for text in runs {
        test_session.run = test_session.start(&text).await?;
        finish_run(&test_session, &mut questions).await?;
        run_ids.push(test_session.run.clone());
    }
    ensure!(questions.len() == 2, "not asked twice: {questions:?}");
    let mut shown = collect_projections(&server, &test_session, &run_ids).await?;
    let mut names = Names { folder: test_session.folder().display().to_string(), ..Names::default() };
    shown.push(("questions", names.lines(&Value::Array(questions))));
    Ok(shown)
}

/// What every protocol shows of the open question below its title: what an approval would do.
async fn shown_question(test_session: &TestSession) -> anyhow::Result<Value> {
    let mut shown = serde_json::Map::new();
    for protocol in protocols::all() {
        let (text, call) = protocol.question(test_session).await.context(protocol.name())?;
        let preview = text.split_once("\n\n").map_or("", |(_, preview)| preview.trim());
        // An editor reads what is beside the title, see below.
        ensure!(protocol.name() == "acp" || !preview.is_empty(), "{} shows no preview: {text}", protocol.name());
        shown.insert(protocol.name().to_owned(), json!({ "preview": preview, "call": call }));
    }
    let mut editor = test_session.editor().await?;
    let is_question = |message: &Value| message["method"] == "session/request_permission";
    if !editor.seen.iter().any(is_question) {
        editor.until(is_question).await?;
    }
    let asked = editor.seen.iter().find(|message| is_question(message)).context("no question")?;
    let content = &asked["params"]["toolCall"]["content"];
    ensure!(content.as_array().is_some_and(|content| !content.is_empty()), "{asked}");
    shown.insert("content".to_owned(), content.clone());
    let run = test_session.run_object().await?;
    let parts = run["await_request"]["message"]["parts"].as_array().cloned().unwrap_or_default();
    let data = parts.iter().filter_map(|part| serde_json::from_str::<Value>(part["content"].as_str()?).ok());
    shown.insert("data".to_owned(), data.map(|data| data["preview"].clone()).collect());
    Ok(Value::Object(shown))
}

/// Allows what is asked, until the run is over.
async fn finish_run(test_session: &TestSession, questions: &mut Vec<Value>) -> anyhow::Result<()> {
    let acp_rest =
        protocols::all().into_iter().find(|protocol| protocol.name() == "acp_rest").context("no ACP-REST")?;
    let finished = async {
        loop {
            let run = test_session.run_object().await?;
            match run["status"].as_str() {
                Some("completed") => return anyhow::Ok(()),
                Some("awaiting") => {
                    questions.push(shown_question(test_session).await?);
                    acp_rest.answer(test_session).await?;
                }
                Some("failed" | "cancelled") => anyhow::bail!("{run}"),
                _ => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), finished).await.context("the run does not end")?
}

async fn collect_projections(
    server: &Server,
    test_session: &TestSession,
    runs: &[String],
) -> anyhow::Result<Vec<(&'static str, Vec<String>)>> {
    let TestSession { session, agent, .. } = test_session;
    let mut editor = server.client().await?;
    editor.load(session, test_session.folder()).await?;
    let updates = editor.seen.iter().map(|message| message["params"]["update"].clone());
    let is_said = |update: &Value| {
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        // How often a running tool shows what it has printed so far is a matter of time.
        let is_progress = kind == "tool_call_update" && update["status"].is_null();
        (kind.ends_with("_chunk") || kind.starts_with("tool_call") || kind == "plan") && !is_progress
    };
    let mut shown = vec![("acp", Value::Array(updates.filter(is_said).collect()))];
    let (mut acp_rest, mut a2a) = (Vec::new(), Vec::new());
    for run in runs {
        acp_rest.push(test_session.ok(test_session.get(&format!("/runs/{run}"))).await?);
        let task = test_session.get(&format!("/a2a/{agent}/tasks/{run}")).header("A2A-Version", "1.0");
        a2a.push(test_session.ok(task).await?);
    }
    shown.push(("acp_rest", Value::Array(acp_rest)));
    shown.push(("a2a", Value::Array(a2a)));
    let adk = test_session.get(&format!("/apps/{agent}/users/user/sessions/{session}"));
    shown.push(("adk", test_session.ok(adk).await?["events"].take()));
    let goose = test_session.ok(test_session.get(&format!("/sessions/{session}"))).await?;
    shown.push(("goose", goose["conversation"].clone()));
    let mut names = Names { folder: test_session.folder().display().to_string(), ..Names::default() };
    Ok(shown.into_iter().map(|(protocol, value)| (protocol, names.lines(&value))).collect())
}

/// Ids as numbers, in the order in which they are first seen.
#[derive(Default)]
struct Names {
    folder: String,
    ids: HashMap<String, usize>,
}

impl Names {
    /// What is shown, one line each, without what differs between any two sessions.
    fn lines(&mut self, value: &Value) -> Vec<String> {
        self.ids.clear();
        let plain = self.without_ids(value);
        serde_json::to_string_pretty(&plain).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    fn without_ids(&mut self, value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                let shown = fields.iter().filter(|(key, _)| !OWN_KEYS.contains(&key.as_str()));
                shown.map(|(key, value)| (self.plain_text(key), self.without_ids(value))).collect()
            }
            Value::Array(values) => {
                values.iter().filter(|value| !is_terminal(value)).map(|value| self.without_ids(value)).collect()
            }
            Value::String(text) => Value::String(self.plain_text(text)),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    fn plain_text(&mut self, text: &str) -> String {
        // A question as text: what can be answered is the same.
        let text = text.rfind(" [allow_once |").map_or(text, |at| &text[at..]);
        let text = text.replace(&self.folder, "FOLDER").replace("behind", "gander");
        let mut plain = String::new();
        let mut rest = text.as_str();
        while let Some(at) = find_uuid(rest) {
            let (id, known) = (rest[at..at + 36].to_owned(), self.ids.len() + 1);
            let number = *self.ids.entry(id).or_insert(known);
            plain.push_str(&format!("{}#{number}", &rest[..at]));
            rest = &rest[at + 36..];
            // Some ids have the number of an entry behind them.
            let digits = rest.strip_prefix('-').map_or(0, |tail| tail.bytes().take_while(u8::is_ascii_digit).count());
            rest = &rest[if digits > 0 { digits + 1 } else { 0 }..];
        }
        plain + rest
    }
}

/// The agent behind has its commands run in a terminal of the one in front, and shows that beside what was printed.
fn is_terminal(value: &Value) -> bool {
    value["text"].as_str().is_some_and(|text| text.starts_with("{\"type\":\"terminal\""))
}

/// Where the first id is.
fn find_uuid(text: &str) -> Option<usize> {
    let is_uuid = |piece: &[u8]| {
        piece.iter().enumerate().all(|(index, byte)| match index {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
    };
    text.as_bytes().windows(36).position(is_uuid)
}
