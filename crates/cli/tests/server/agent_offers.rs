//! What an ACP agent offers shows as ours: modes, models, config options and slash commands, and choosing them reaches it.

use std::os::unix::fs::PermissionsExt as _;

use anyhow::{Context as _, ensure};
use gander_testkit::harness::{Client, Launch, Transcript, binary};
use serde_json::{Value, json};

/// Offers two modes, two models, two options of its own and a command, and says which of them it was told.
const AGENT: &str = r#"#!/bin/sh
mode=ask
model=small
style=brief
web=off
say() {
  printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"only","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%s"}}}}\n' "$1"
}
while IFS= read -r line; do
  case $line in *'"id":'*) id=${line#*'"id":'}; id=${id%%[,\}]*} ;; *) id= ;; esac
  case $line in
    *'"method":"initialize"'*)
      printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}\n' "$id" ;;
    *'"method":"session/new"'*)
      printf '{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"only","modes":{"currentModeId":"ask","availableModes":[{"id":"ask","name":"Ask"},{"id":"acceptEdits","name":"Accept edits"}]},"configOptions":[{"id":"llm","name":"Model","category":"model","type":"select","currentValue":"small","options":[{"value":"small","name":"Small"},{"value":"large","name":"Large"}]},{"id":"style","name":"Style","description":"How it writes","category":"_style","type":"select","currentValue":"brief","options":[{"value":"brief","name":"Brief"},{"value":"long","name":"Long"}]},{"id":"web","name":"Web","type":"boolean","currentValue":false}]}}\n' "$id"
      printf '%s\n' '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"only","update":{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"review","description":"Reviews a change","input":{"hint":"which"}}]}}}' ;;
    *'"method":"session/set_mode"'*)
      mode=${line#*'"modeId":"'}; mode=${mode%%'"'*}
      printf '{"jsonrpc":"2.0","id":%s,"result":{}}\n' "$id" ;;
    *'"method":"session/set_config_option"'*)
      value=${line#*'"value":'}; value=${value%%[,\}]*}; value=${value#'"'}; value=${value%'"'}
      case $line in
        *'"configId":"llm"'*) model=$value ;;
        *'"configId":"style"'*) style=$value ;;
        *'"configId":"web"'*'"type":"boolean"'*) web=$value ;;
      esac
      printf '{"jsonrpc":"2.0","id":%s,"result":{"configOptions":[]}}\n' "$id" ;;
    *'"method":"session/prompt"'*)
      say "mode=$mode model=$model style=$style web=$web;"
      case $line in *'/review it'*) say "reviewing;" ;; esac
      printf '{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}\n' "$id" ;;
    *) [ -n "$id" ] && printf '{"jsonrpc":"2.0","id":%s,"result":{}}\n' "$id" ;;
  esac
done
"#;

fn choices(options: &Value, id: &str) -> Vec<String> {
    let mut all = options["configOptions"].as_array().into_iter().flatten();
    let option = all.find(|option| option["id"] == id).cloned().unwrap_or_default();
    let values = option["options"].as_array().into_iter().flatten();
    values.filter_map(|choice| choice["value"].as_str().map(str::to_owned)).collect()
}

/// What the agent says to a prompt.
async fn said(editor: &mut Client, session: &str, text: &str) -> anyhow::Result<String> {
    editor.seen.clear();
    ensure!(editor.turn(session, text).await? == "end_turn", "no turn");
    Ok(Transcript::of(&editor.seen, session).text())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn modes_models_options_and_commands_of_an_agent_are_listed_and_chosen() -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    let (agent, data) = (root.path().join("agent"), root.path().join("data"));
    std::fs::write(&agent, AGENT)?;
    std::fs::set_permissions(&agent, std::fs::Permissions::from_mode(0o755))?;
    std::fs::create_dir_all(data.join("config/gander"))?;
    let settings = format!("[agents.behind]\ncommand = {}\n", json!([agent]));
    std::fs::write(data.join("config/gander/gander.toml"), settings)?;
    let server = Launch::demo(binary(env!("CARGO_BIN_EXE_gander")), data).serve().await?;
    let folder = gander_testkit::harness::workspace(root.path())?;
    let mut editor = server.client().await?;
    let new = json!({ "cwd": folder, "mcpServers": [], "_meta": { "agent": "behind" } });
    let first = editor.call("session/new", new.clone()).await?;
    let first = first["sessionId"].as_str().context("no session")?.to_owned();
    ensure!(
        said(&mut editor, &first, "hello").await?.contains("mode=ask model=small style=brief web=off;"),
        "not as it begins"
    );

    // From its first turn on it is known what it offers.
    editor.seen.clear();
    let opened = editor.call("session/new", new).await?;
    let session = opened["sessionId"].as_str().context("no session")?.to_owned();
    assert_eq!(choices(&opened, "mode"), ["default", "ask", "accept-edits"]);
    assert_eq!(choices(&opened, "model"), ["small", "large"]);
    let offered = |message: &Value| message["params"]["update"]["availableCommands"].to_string().contains("\"review\"");
    if !editor.seen.iter().any(offered) {
        editor.until(offered).await?;
    }
    editor.call("session/set_mode", json!({ "sessionId": session, "modeId": "accept-edits" })).await?;
    let set = json!({ "sessionId": session, "configId": "model", "value": "large" });
    editor.call("session/set_config_option", set).await?;
    assert_eq!(choices(&opened, "style"), ["brief", "long"]);
    assert_eq!(choices(&opened, "web"), ["true", "false"]);
    for (option, value) in [("style", "long"), ("web", "true")] {
        let set = json!({ "sessionId": session, "configId": option, "value": value });
        let answer = editor.call("session/set_config_option", set).await?;
        let mut options = answer["configOptions"].as_array().into_iter().flatten();
        let shown = options.find(|shown| shown["id"] == option).context("the option is not shown")?;
        assert_eq!(shown["currentValue"], value);
    }
    let wrong = json!({ "sessionId": session, "configId": "style", "value": "purple" });
    let refused = editor.call("session/set_config_option", wrong).await.map_err(|error| error.to_string());
    ensure!(refused.as_ref().is_err_and(|error| error.contains("brief, long")), "{refused:?}");
    let text = said(&mut editor, &session, "/review it").await?;
    ensure!(text.contains("mode=acceptEdits model=large style=long web=true;"), "{text}");
    ensure!(text.contains("reviewing;"), "{text}");
    editor.call("session/set_mode", json!({ "sessionId": session, "modeId": "default" })).await?;
    let text = said(&mut editor, &session, "again").await?;
    ensure!(text.contains("mode=ask model=large style=long web=true;"), "{text}");
    Ok(())
}
