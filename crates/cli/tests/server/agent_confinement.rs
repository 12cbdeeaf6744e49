//! What other agents are lent: keys that no tool shows, and for those that are set so a sandbox around their process.

use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use anyhow::{Context as _, ensure};
use gander_domain::Event;
use gander_testkit::harness::{Client, Launch, Transcript, binary, data, script, workspace};
use gander_testkit::skip::skipped;
use serde_json::json;

/// Tries to write in the session's folder and in another one, by itself, in a terminal of ours and by a file of ours, and
/// says what came of it.
const AGENT: &str = r#"#!/bin/sh
try() { if echo x > "$1" 2>/dev/null; then echo written; else echo denied; fi; }
ask() { printf '{"jsonrpc":"2.0","id":"%s","method":"%s","params":{"sessionId":"only",%s}}\n' "$1" "$1" "$2" >&3; IFS= read -r got; }
in_terminal() {
  ask terminal/create "\"command\":\"sh\",\"args\":[\"-c\",\"echo x > '$1'\"]"
  terminal=${got#*'"terminalId":"'}; terminal="\"terminalId\":\"${terminal%%\"*}\""
  ask terminal/wait_for_exit "$terminal"
  if [ -e "$1" ]; then echo written; else echo denied; fi
}
by_file() { ask fs/write_text_file "\"path\":\"$PWD/$1\",\"content\":\"x\""; case $got in *'"result"'*) echo written ;; *) echo denied ;; esac; }
exec 3>&1
while IFS= read -r line; do
  case $line in *'"id":'*) id=${line#*'"id":'}; id=${id%%[,\}]*} ;; *) id= ;; esac
  case $line in
    *'"method":"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1}}\n' "$id" ;;
    *'"method":"session/new"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"only"}}\n' "$id" ;;
    *'"method":"session/prompt"'*)
      printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"only","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"inside=%s outside=%s lent=%s terminal=%s,%s file=%s hook=%s"}}}}\n' "$(try inside)" "$(try "$OUTSIDE/file")" "$(try "$LENT/file")" \
        "$(in_terminal "$PWD/at-terminal")" "$(in_terminal "$OUTSIDE/at-terminal")" "$(by_file text)" "$(by_file .git/hooks/post-checkout)"
      printf '{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}\n' "$id" ;;
    *) [ -n "$id" ] && printf '{"jsonrpc":"2.0","id":%s,"result":{}}\n' "$id" ;;
  esac
done
"#;

fn write_settings(data: &Path, settings: &str) -> anyhow::Result<()> {
    std::fs::create_dir_all(data.join("config/gander"))?;
    let file =
        std::fs::File::options().create_new(true).write(true).mode(0o600).open(data.join("config/gander/gander.toml"));
    Ok(std::io::Write::write_all(&mut file?, settings.as_bytes())?)
}

async fn session_of_agent(editor: &mut Client, folder: &Path, agent: &str) -> anyhow::Result<String> {
    let params = json!({ "cwd": folder, "mcpServers": [], "_meta": { "agent": agent } });
    let made = editor.call("session/new", params).await?;
    Ok(made["sessionId"].as_str().context("no session")?.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_of_agents_in_settings_and_variables_are_masked_in_tool_output() -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    let (data, folder) = (data(root.path())?, workspace(root.path())?);
    let settings = "[agents.one]\nkind = \"a2a\"\nurl = \"http://127.0.0.1:9\"\nsecret_key = \"key-in-the-settings-file\"\n\
        [agents.two]\nkind = \"adk\"\nurl = \"http://127.0.0.1:9\"\nsecret_key_variable = \"TWO_KEY\"\n\
        [agents.three]\ncommand = [\"three\"]\nenv = { THREE_TOKEN = \"token-of-a-program\" }\n";
    write_settings(&data, settings)?;
    let secrets = ["key-in-the-settings-file", "key-in-a-variable", "token-of-a-program"];
    std::fs::write(folder.join("note.txt"), format!("before {} after", secrets.join(" ")))?;
    let launch = Launch::demo(binary(env!("CARGO_BIN_EXE_gander")), data).with("TWO_KEY", secrets[1]);
    let server = launch.serve().await?;
    let mut editor = server.client().await?;
    let session = editor.new_session(&folder).await?;
    let read = script(&[json!([{ "tool": "read", "args": { "path": "note.txt" } }]), json!([{ "text": "read" }])]);
    ensure!(editor.turn(&session, &read).await? == "end_turn", "no turn");
    let log = launch.export(&session).await?;
    let result = log.iter().find_map(|entry| {
        let Event::ToolDone { result, .. } = &entry.event else { return None };
        serde_json::to_string(result).ok()
    });
    let result = result.context("no result")?;
    ensure!(result.contains("before ") && result.contains(" after"), "{result}");
    ensure!(secrets.iter().all(|secret| !result.contains(secret)), "{result}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_in_the_sandbox_writes_the_sessions_folder_and_what_it_is_lent() -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    let (data, folder) = (data(root.path())?, workspace(root.path())?);
    let [agent, outside, lent] = ["agent", "outside", "lent"].map(|name| root.path().join(name));
    std::fs::write(&agent, AGENT)?;
    std::fs::set_permissions(&agent, std::fs::Permissions::from_mode(0o755))?;
    std::fs::create_dir_all(&outside)?;
    std::fs::create_dir_all(folder.join(".git/hooks"))?;
    std::fs::create_dir_all(&lent)?;
    let entry = format!("command = {}\nenv = {{ OUTSIDE = {outside:?}, LENT = {lent:?} }}\n", json!([agent]));
    let settings =
        format!("[agents.free]\n{entry}[agents.confined]\n{entry}sandbox = true\nsandbox_writable = [{lent:?}]\n");
    write_settings(&data, &settings)?;
    let server = Launch::demo(binary(env!("CARGO_BIN_EXE_gander")), data).serve().await?;
    let mut editor = server.client().await?;
    let free = session_of_agent(&mut editor, &folder, "free").await?;
    ensure!(editor.turn(&free, "try").await? == "end_turn", "no turn");
    // What fails in the sandbox must succeed outside of it, else it shows nothing.
    assert_eq!(
        Transcript::of(&editor.seen, &free).text(),
        "inside=written outside=written lent=written terminal=written,written file=written hook=written"
    );
    for made in ["at-terminal", ".git/hooks/post-checkout"] {
        std::fs::remove_file(folder.join(made))?;
    }
    std::fs::remove_file(outside.join("at-terminal"))?;
    let confined = session_of_agent(&mut editor, &folder, "confined").await?;
    match editor.turn(&confined, "try").await {
        Ok(reason) => ensure!(reason == "end_turn", "{reason}"),
        Err(error) if error.to_string().contains("there is none") => {
            skipped("agent_confinement::sandbox", "no layer is in force");
            return Ok(());
        }
        Err(error) => return Err(error),
    }
    let said = Transcript::of(&editor.seen, &confined).text();
    assert_eq!(said, "inside=written outside=denied lent=written terminal=written,denied file=written hook=denied");
    Ok(())
}
