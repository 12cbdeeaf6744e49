//! Slash commands: listed once, and the same through every protocol.

use std::collections::BTreeSet;

use anyhow::{Context, ensure};
use gander_testkit::harness::{Client, Server, script};
use gander_testkit::mcp::command;
use serde_json::{Value, json};

use crate::all_protocols::protocols::{self, TestSession};
use crate::all_protocols::test_server_with;

/// An MCP server with one prompt, `greet`.
fn settings() -> anyhow::Result<String> {
    let (program, args, env) = command("server", "good");
    let (name, value) = env.first().context("no temper")?;
    Ok(format!("[extensions.polite]\ncommand = {program:?}\nargs = {args:?}\nenv = {{ {name} = {value:?} }}\n"))
}

/// A saved recipe that is called `/say`.
pub async fn save_recipe(test_session: &TestSession) -> anyhow::Result<()> {
    let parameter = json!({"key": "what", "input_type": "string", "requirement": "required", "description": "w"});
    let prompt = "[[script:[[{\"text\":\"you said {{ what }}\"}]]]]";
    let recipe = json!({"title": "Say", "description": "says it", "prompt": prompt, "parameters": [parameter], "version": "1.0.0"});
    let saved = test_session.ok(test_session.post("/recipes/save", &json!({ "recipe": recipe }))).await?;
    let named = json!({ "id": saved["id"], "slash_command": "say" });
    let response = test_session.post("/recipes/slash-command", &named).send().await?;
    ensure!(response.status().is_success(), "{}", response.text().await?);
    Ok(())
}

async fn goose_session(test_session: &TestSession) -> anyhow::Result<(String, String)> {
    let session = test_session.ok(test_session.get(&format!("/sessions/{}", test_session.session))).await?;
    Ok((session["name"].to_string(), session["conversation"].to_string()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_protocol_carries_out_the_same_commands() -> anyhow::Result<()> {
    let (_root, _server, test_session) = test_server_with(&settings()?).await?;
    save_recipe(&test_session).await?;
    for protocol in protocols::all() {
        let name = protocol.name();
        protocol.say(&test_session, &script(&[json!([{ "text": "begun" }])])).await.context(name)?;
        protocol.say(&test_session, &format!("/say big {name}")).await.context(name)?;
        protocol.say(&test_session, &format!("/polite:greet {name}")).await.context(name)?;
        protocol.say(&test_session, &format!("/title Called by {name}")).await.context(name)?;
        let (title, said) = goose_session(&test_session).await?;
        ensure!(title == format!("\"Called by {name}\""), "{name}: {title}");
        ensure!(said.contains(&format!("you said big {name}")), "{name}: {said}");
        ensure!(said.contains(&format!("Greet {name} warmly.")), "{name}: {said}");
        protocol.say(&test_session, "/compact").await.context(name)?;
        protocol.say(&test_session, "/clear").await.context(name)?;
        let (title, said) = goose_session(&test_session).await?;
        ensure!(!said.contains("begun") && !said.contains("Greet"), "{name} leaves what was said: {said}");
        ensure!(title.contains(name), "the title stays: {title}");
        ensure!(
            !protocol.history(&test_session).await?.contains("warmly") || name == "a2a",
            "{name} shows what is gone"
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_lists_name_the_same_commands_and_each_is_carried_out() -> anyhow::Result<()> {
    let (_root, server, test_session) = test_server_with(&settings()?).await?;
    save_recipe(&test_session).await?;
    let expected: BTreeSet<&str> = ["clear", "title", "compact", "say", "polite:greet"].into();
    let path = format!("/config/slash_commands?session_id={}", test_session.session);
    let listed = test_session.ok(test_session.get(&path)).await?;
    ensure!(names(&listed["commands"], "command") == expected, "{listed}");
    let listed = test_session.ok(test_session.get("/config/slash_commands?working_dir=/")).await?;
    let everywhere: BTreeSet<&str> = ["clear", "title", "compact", "say"].into();
    ensure!(names(&listed["commands"], "command") == everywhere, "{listed}");
    let mut editor = test_session.editor().await?;
    let offered = |message: &Value| message["params"]["update"]["availableCommands"].clone();
    let whole = |message: &Value| offered(message).to_string().contains("polite:greet");
    let told = match editor.seen.iter().find(|message| whole(message)) {
        Some(told) => told.clone(),
        None => editor.until(whole).await?,
    };
    ensure!(names(&offered(&told), "name") == expected, "{told}");
    let goose =
        editor.call("_goose/unstable/slash-commands/list", json!({ "sessionId": test_session.session })).await?;
    ensure!(names(&goose["availableCommands"], "name") == expected, "{goose}");
    lists_of_agents(&test_session, &everywhere).await?;
    named_commands(&mut editor, &test_session, &server).await
}

/// The protocols without a list of commands have it beside the agent. A card that everybody may read names nobody's recipes.
async fn lists_of_agents(test_session: &TestSession, expected: &BTreeSet<&str>) -> anyhow::Result<()> {
    let agents = test_session.ok(test_session.get("/agents")).await?;
    let agent = test_session.ok(test_session.get("/agents/gander")).await?;
    for manifest in [&agents["agents"][0], &agent] {
        let listed = &manifest["metadata"]["annotations"]["gander"]["commands"];
        ensure!(names(listed, "name") == *expected, "{manifest}");
    }
    let commands = |card: &Value| card["capabilities"]["extensions"][0]["params"]["commands"].clone();
    let extended = test_session.get("/a2a/extendedAgentCard").header("A2A-Version", "1.0");
    let extended = commands(&test_session.ok(extended).await?);
    ensure!(names(&extended, "name") == *expected, "{extended}");
    let public = commands(&test_session.ok(test_session.get("/.well-known/agent-card.json")).await?);
    ensure!(names(&public, "name") == ["clear", "title"].into(), "{public}");
    let info = test_session.ok(test_session.get("/apps/gander/app-info")).await?;
    ensure!(names(&info["commands"], "name") == *expected, "{info}");
    Ok(())
}

fn names<'a>(commands: &'a Value, key: &str) -> BTreeSet<&'a str> {
    commands.as_array().into_iter().flatten().filter_map(|command| command[key].as_str()).collect()
}

/// `command {name, input}` is what would have been typed; one that there is not is refused.
async fn named_commands(editor: &mut Client, test_session: &TestSession, server: &Server) -> anyhow::Result<()> {
    let named = |name: &str, input: &str| {
        let command = json!({ "name": name, "input": input });
        json!({ "sessionId": test_session.session, "prompt": [], "command": command })
    };
    for (name, input) in [("say", "it"), ("polite:greet", "Ann"), ("title", "Named"), ("compact", "")] {
        let ended = editor.call("session/prompt", named(name, input)).await?;
        ensure!(ended["stopReason"] == "end_turn", "{name}: {ended}");
    }
    let (title, _) = goose_session(test_session).await?;
    ensure!(title == "\"Named\"", "{title}");
    let refused = editor.call("session/prompt", named("unknown", "")).await.unwrap_err();
    ensure!(refused.to_string().contains("no such command: unknown"), "{refused}");
    let ended = editor.call("session/prompt", named("clear", "")).await?;
    ensure!(ended["stopReason"] == "end_turn", "{ended}");
    ensure!(!goose_session(test_session).await?.1.contains("warmly"), "the conversation is cleared");
    let mut go = Client::attach(&server.launch.socket(), test_session.folder()).await?;
    let hello = json!({ "protocolVersion": "2025-01-01", "capabilities": {} });
    go.call("initialize", hello).await?;
    let ended = go.call("session/prompt", named("unknown", "")).await?;
    ensure!(
        ended["stopReason"] == "error" && ended["_meta"]["error"]["message"] == "no such command: unknown",
        "{ended}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_session_may_begin_with_a_command() -> anyhow::Result<()> {
    let (_root, _server, test_session) = test_server_with(&settings()?).await?;
    save_recipe(&test_session).await?;
    for text in ["/say hello", "/polite:greet Ann"] {
        let input = [json!({ "role": "user", "parts": [{ "content": text }] })];
        let body = json!({ "agent_name": "gander", "mode": "sync", "input": input });
        let run = test_session.ok(test_session.post("/runs", &body)).await?;
        ensure!(run["status"] == "completed", "{run}");
        let message = json!({ "messageId": format!("m{text}"), "role": "ROLE_USER", "parts": [{ "text": text }] });
        let send = test_session.post("/a2a/message:send", &json!({ "message": message })).header("A2A-Version", "1.0");
        let sent = test_session.ok(send).await?;
        ensure!(sent["task"]["status"]["state"] == "TASK_STATE_COMPLETED", "{sent}");
        let (run, sent) = (run.to_string(), sent.to_string());
        ensure!(
            text.contains("greet") || (run.contains("you said hello") && sent.contains("you said hello")),
            "{run}{sent}"
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_title_is_refused_in_each_protocols_own_way() -> anyhow::Result<()> {
    let (_root, _server, test_session) = test_server_with("").await?;
    let mut editor = test_session.editor().await?;
    let prompt = json!([{ "type": "text", "text": "/title" }]);
    let params = json!({ "sessionId": test_session.session, "prompt": prompt });
    let refused = editor.call("session/prompt", params).await.unwrap_err();
    ensure!(refused.to_string().contains("-32602"), "{refused}");
    for protocol in protocols::all().iter().filter(|protocol| protocol.name() != "acp") {
        let refused = protocol.say(&test_session, "/title").await;
        ensure!(
            format!("{refused:?}").contains("title must have 1 to 200 characters"),
            "{}: {refused:?}",
            protocol.name()
        );
    }
    Ok(())
}
