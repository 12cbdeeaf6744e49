//! An agent that runs elsewhere, chosen from an editor and from the command line.

use anyhow::{Context, ensure};
use gander_testkit::harness::script;
use serde_json::{Value, json};

use crate::all_protocols::protocols::TestSession;
use crate::all_protocols::slash_commands::save_recipe;
use crate::all_protocols::{test_server, test_server_with};

fn option<'a>(options: &'a Value, id: &str) -> &'a Value {
    let mut all = options.as_array().into_iter().flatten();
    all.find(|option| option["id"] == id).unwrap_or(&Value::Null)
}

async fn sessions(test_session: &TestSession) -> anyhow::Result<usize> {
    let listed = test_session.ok(test_session.get("/sessions")).await?;
    Ok(listed["sessions"].as_array().context("no sessions")?.len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_remote_agent_is_chosen_from_an_editor_and_from_the_command_line() -> anyhow::Result<()> {
    let (_far_root, far, far_session) = test_server().await?;
    save_recipe(&far_session).await?;
    let token = far.launch.stdout(&["token"]).await?.trim().to_owned();
    let (url, folder) = (format!("http://{}", far.address), far_session.folder());
    let settings =
        format!("[agents.far]\nkind = \"goosed\"\nurl = {url:?}\nsecret_key = {token:?}\nworking_dir = {folder:?}\n");
    let (_root, server, test_session) = test_server_with(&settings).await?;
    let mut editor = test_session.editor().await?;
    let new = |agent: &str| json!({"cwd": test_session.folder(), "mcpServers": [], "_meta": {"agent": agent}});
    let before = sessions(&far_session).await?;
    let opened = editor.call("session/new", new("far")).await?;
    ensure!(option(&opened["configOptions"], "agent")["currentValue"] == "far", "{opened}");
    let session = opened["sessionId"].as_str().context("no session")?.to_owned();
    ensure!(editor.turn(&session, &script(&[json!([{"text": "from afar"}])])).await? == "end_turn", "no turn");
    ensure!(sessions(&far_session).await? == before + 1, "the session is not there");
    // Its own commands are listed, and carried out there.
    let offered = |message: &Value| message["params"]["update"]["availableCommands"].to_string().contains("\"say\"");
    if !editor.seen.iter().any(offered) {
        editor.until(offered).await?;
    }
    let (prompt, command) = (json!([]), json!({"name": "say", "input": "it"}));
    let named = json!({"sessionId": session, "prompt": prompt, "command": command});
    ensure!(editor.call("session/prompt", named).await?["stopReason"] == "end_turn", "no turn");
    let said: String =
        editor.seen.iter().filter_map(|told| told["params"]["update"]["content"]["text"].as_str()).collect();
    ensure!(said.contains("from afar") && said.contains("you said it"), "{said}");
    // It can be left for another agent and come back to.
    for agent in ["gander", "far"] {
        let set = json!({"sessionId": session, "configId": "agent", "value": agent});
        let options = editor.call("session/set_config_option", set).await?;
        ensure!(option(&options["configOptions"], "agent")["currentValue"] == agent, "{options}");
    }
    let refused = editor.call("session/new", new("nobody")).await.unwrap_err().to_string();
    ensure!(refused.contains("unknown agent 'nobody', available: gander, coding, far"), "{refused}");
    let said = server.launch.stdout(&["run", "--agent", "far", &script(&[json!([{"text": "by command"}])])]).await?;
    ensure!(said.contains("by command") && sessions(&far_session).await? == before + 2, "{said}");
    let said = server.launch.stdout(&["run", "--agent", "coding", "plan"]).await?;
    ensure!(!said.is_empty() && sessions(&far_session).await? == before + 2, "{said}");
    Ok(())
}
