//! What an ACP agent says beyond the words that are known here comes back unchanged: live, from the log, after a kill.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, ensure};
use gander_testkit::harness::{Launch, Server, binary, workspace};
use serde_json::{Value, json};

/// Tells the lines of a file in its folder as its updates, and asks for a permission with the parameters in another one.
const AGENT: &str = r#"#!/bin/sh
while IFS= read -r line; do
  case $line in *'"id":'*) id=${line#*'"id":'}; id=${id%%[,\}]*} ;; *) id= ;; esac
  case $line in
    *'"method":"initialize"'*)
      printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}\n' "$id" ;;
    *'"method":"session/new"'*)
      printf '{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"only"}}\n' "$id" ;;
    *'"method":"session/prompt"'*)
      cat "$PWD/updates"
      if [ -f "$PWD/question" ]; then
        cat "$PWD/question"
        IFS= read -r answer
        printf '%s\n' "$answer" > "$PWD/answer"
      fi
      printf '{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}\n' "$id" ;;
    *) [ -n "$id" ] && printf '{"jsonrpc":"2.0","id":%s,"result":{}}\n' "$id" ;;
  esac
done
"#;

const CALL: &str = "018f0000-0000-7000-8000-0000000000aa";

async fn start(root: &Path) -> anyhow::Result<Server> {
    let (agent, data) = (root.join("agent"), root.join("data"));
    std::fs::write(&agent, AGENT)?;
    std::fs::set_permissions(&agent, std::fs::Permissions::from_mode(0o755))?;
    std::fs::create_dir_all(data.join("config/gander"))?;
    let settings = format!("[agents.behind]\ncommand = {}\n", json!([agent]));
    std::fs::write(data.join("config/gander/gander.toml"), settings)?;
    Launch::demo(binary(env!("CARGO_BIN_EXE_gander")), data).serve().await
}

/// The parameters of the agent's notifications, without its session.
fn told() -> Vec<Value> {
    let text = |text: &str| json!({ "type": "text", "text": text });
    let update = |update: Value| json!({ "update": update });
    vec![
        json!({ "update": { "sessionUpdate": "shiny_thing", "payload": { "list": [1, "x", { "deep": true }] } }, "_meta": { "of": "params" } }),
        update(
            json!({ "sessionUpdate": "agent_thought_chunk", "content": { "type": "text", "text": "hm", "annotations": { "priority": 0.5 } } }),
        ),
        update(json!({ "sessionUpdate": "agent_message_chunk", "content": text("Hel") })),
        update(json!({ "sessionUpdate": "usage_update", "used": 10, "size": 200 })),
        update(json!({ "sessionUpdate": "agent_message_chunk", "content": text("lo"), "_meta": { "token": 7 } })),
        update(
            json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "hologram", "beams": [1, 2] }, "_meta": { "h": 1 } }),
        ),
        update(json!({
            "sessionUpdate": "tool_call", "toolCallId": CALL, "title": "Beam", "kind": "teleport", "name": "beam",
            "rawInput": { "to": "there" }, "_meta": { "vendor": { "parent": "x" } },
        })),
        update(
            json!({ "sessionUpdate": "tool_call_update", "toolCallId": CALL, "status": "in_progress", "_meta": { "step": 1 } }),
        ),
        update(
            json!({ "sessionUpdate": "tool_call_update", "toolCallId": CALL, "title": "Beam up", "_meta": { "step": 2 } }),
        ),
        update(json!({
            "sessionUpdate": "tool_call_update", "toolCallId": CALL, "status": "completed", "rawOutput": { "ok": true },
            "content": [{ "type": "content", "content": text("there") }, { "type": "map", "at": [3, 4] }],
        })),
        update(json!({
            "sessionUpdate": "plan", "_meta": { "p": 1 },
            "entries": [{ "content": "go", "priority": "high", "status": "pending", "_meta": { "e": 1 } }],
        })),
        update(json!({ "sessionUpdate": "session_info_update", "title": "A trip", "_meta": { "s": 1 } })),
    ]
}

fn write_updates(folder: &Path, told: &[Value]) -> anyhow::Result<()> {
    let lines = told.iter().map(|params| {
        let mut params = params.clone();
        params["sessionId"] = json!("only");
        format!("{}\n", json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }))
    });
    Ok(std::fs::write(folder.join("updates"), lines.collect::<String>())?)
}

/// What a client was told, without what is ours to choose: sessions and ids of messages.
fn shown(messages: &[Value]) -> Vec<Value> {
    let updates = messages.iter().filter(|message| message["method"] == "session/update");
    let bare = updates.map(|message| {
        let mut params = message["params"].clone();
        params.as_object_mut().map(|params| params.remove("sessionId"));
        params["update"].as_object_mut().map(|update| update.remove("messageId"));
        params
    });
    bare.collect()
}

/// The text of all pieces of messages that are told of one kind, in order.
fn spoken(shown: &[Value], kind: &str) -> String {
    let pieces = shown.iter().filter(|params| params["update"]["sessionUpdate"] == kind);
    pieces.filter_map(|params| params["update"]["content"]["text"].as_str()).collect()
}

/// Fails unless everything that was told is shown, in this order.
fn check_shown(shown: &[Value], told: &[Value], when: &str) -> anyhow::Result<()> {
    let mut rest = shown.iter();
    for params in told {
        let mut params = params.clone();
        let update = &mut params["update"];
        let kind = update["sessionUpdate"].clone();
        if kind == "session_info_update" {
            // The title is told by itself.
            update.as_object_mut().map(|update| update.remove("title"));
        }
        ensure!(rest.any(|shown| contains(shown, &params)), "{when}: {params} is not in {shown:#?}");
    }
    Ok(())
}

/// True if a value has everything that another one has; lists are equal.
fn contains(value: &Value, wanted: &Value) -> bool {
    match (value, wanted) {
        (Value::Object(value), Value::Object(wanted)) => {
            wanted.iter().all(|(key, wanted)| value.get(key).is_some_and(|value| contains(value, wanted)))
        }
        (value, wanted) => value == wanted,
    }
}

async fn new_session(server: &Server, folder: &Path) -> anyhow::Result<(gander_testkit::harness::Client, String)> {
    let mut editor = server.client().await?;
    let new = json!({ "cwd": folder, "mcpServers": [], "_meta": { "agent": "behind" } });
    let made = editor.call("session/new", new).await?;
    let session = made["sessionId"].as_str().context("no session")?.to_owned();
    Ok((editor, session))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_updates_content_and_meta_survive_live_in_the_log_and_after_a_kill() -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    let server = start(root.path()).await?;
    let folder = workspace(root.path())?;
    let told = told();
    write_updates(&folder, &told)?;
    let (mut editor, session) = new_session(&server, &folder).await?;
    ensure!(editor.turn(&session, "go").await? == "end_turn", "no turn");
    let live = shown(&editor.seen);
    check_shown(&live, &told, "live")?;
    // An update in mid-sentence does not break the sentence.
    let message = |text: &str| {
        let said = |message: &&Value| message["params"]["update"]["content"]["text"] == text;
        editor.seen.iter().find(said).map(|message| message["params"]["update"]["messageId"].clone())
    };
    ensure!(message("Hel").is_some() && message("Hel") == message("lo"), "two messages");

    // Another protocol is told what it knows, and nothing of the rest is in its way.
    let token = server.launch.stdout(&["token"]).await?.trim().to_owned();
    rustls::crypto::ring::default_provider().install_default().ok();
    let client = reqwest::Client::builder().no_proxy().build()?;
    let get = |path: String| client.get(format!("http://{}{path}", server.address)).bearer_auth(&token);
    let adk = get(format!("/apps/behind/users/user/sessions/{session}")).send().await?.error_for_status()?;
    let adk: Value = adk.json().await?;
    let texts = adk["events"].to_string();
    ensure!(texts.contains("Hello") && texts.contains("\"beam\""), "{texts}");
    ensure!(!texts.contains("shiny_thing"), "{texts}");

    let mut second = server.client().await?;
    second.load(&session, &folder).await?;
    let replayed = shown(&second.seen);
    check_shown(&replayed, &told, "replayed")?;
    server.kill().await?;

    let server = start(root.path()).await?;
    let mut third = server.client().await?;
    third.load(&session, &folder).await?;
    let after = shown(&third.seen);
    check_shown(&after, &told, "after a kill")?;
    for kind in ["agent_message_chunk", "agent_thought_chunk"] {
        assert_eq!(spoken(&live, kind), spoken(&after, kind));
    }
    server.stop().await.map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_too_large_is_left_out_and_people_are_told() -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    let server = start(root.path()).await?;
    let folder = workspace(root.path())?;
    let large = "x".repeat(100_000);
    let chunk = json!({ "type": "text", "text": "still here" });
    let told = [
        json!({ "update": { "sessionUpdate": "huge_thing", "payload": large } }),
        json!({ "update": { "sessionUpdate": "agent_message_chunk", "content": chunk, "_meta": { "large": large } } }),
    ];
    write_updates(&folder, &told)?;
    let (mut editor, session) = new_session(&server, &folder).await?;
    ensure!(editor.turn(&session, "go").await? == "end_turn", "no turn");
    let live = shown(&editor.seen);
    assert_eq!(spoken(&live, "agent_message_chunk"), "still here");
    ensure!(live.iter().all(|params| params.to_string().len() < 64 * 1024), "a long line");
    let log = server.launch.export(&session).await?;
    let notices = log.iter().filter_map(|entry| {
        let gander_domain::Event::Noticed { notice } = &entry.event else { return None };
        Some(notice.title.clone())
    });
    let notices: Vec<String> = notices.collect();
    ensure!(notices.len() == 1 && notices[0].contains("huge_thing"), "{notices:?}");
    server.stop().await.map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_permission_keeps_its_preview_and_meta_and_a_reason_reaches_the_agent() -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    let server = start(root.path()).await?;
    let folder = workspace(root.path())?;
    write_updates(&folder, &[])?;
    let diff = json!({ "type": "diff", "path": folder.join("a.txt"), "oldText": "a\n", "newText": "b\n" });
    let params = json!({
        "sessionId": "only", "_meta": { "asks": 1 },
        "toolCall": { "toolCallId": CALL, "title": "Edit", "name": "edit", "kind": "edit", "rawInput": { "path": "a.txt" }, "content": [diff], "_meta": { "call": 1 } },
        "options": [
            { "optionId": "yes", "name": "Yes", "kind": "allow_once" },
            { "optionId": "no", "name": "No", "kind": "reject_once", "_meta": { "key": "n" } },
        ],
    });
    let request = json!({ "jsonrpc": "2.0", "id": "q1", "method": "session/request_permission", "params": params });
    std::fs::write(folder.join("question"), format!("{request}\n"))?;
    let (mut editor, session) = new_session(&server, &folder).await?;
    let prompt = editor.prompt(&session, "go").await?;
    let asked = editor.asked("session/request_permission").await?;
    let mut wanted = params.clone();
    wanted.as_object_mut().map(|wanted| wanted.remove("sessionId"));
    ensure!(contains(&asked["params"], &wanted), "{asked}");
    // A client that comes later is asked the same.
    let mut second = server.client().await?;
    second.load(&session, &folder).await?;
    let is_question = |message: &Value| message["method"] == "session/request_permission";
    if !second.seen.iter().any(is_question) {
        second.until(is_question).await?;
    }
    let again = second.seen.iter().find(|message| is_question(message)).context("not asked")?;
    assert_eq!(again["params"], asked["params"]);
    let no = json!({ "outcome": { "outcome": "selected", "optionId": "no" }, "_meta": { "gander/reason": "not this file" } });
    editor.respond(&asked["id"], no).await?;
    editor.answer_to(prompt).await?;
    let answer: Value = serde_json::from_str(&std::fs::read_to_string(folder.join("answer"))?)?;
    assert_eq!(answer["result"]["outcome"], json!({ "outcome": "selected", "optionId": "no" }));
    assert_eq!(answer["result"]["_meta"]["gander/reason"], "not this file");
    server.stop().await.map(drop)
}
