//! MCP servers that an editor brings along, over the real binary.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use gander_testkit::harness::{Agent, Background, Launch, binary, data, eventually, script, workspace};
use gander_testkit::mcp::{PEER, command};
use serde_json::{Value, json};

const GANDER: &str = env!("CARGO_BIN_EXE_gander");

#[tokio::test]
async fn its_tools_are_asked_about_and_used() -> anyhow::Result<()> {
    let server = TestServer::open()?;
    let mut agent = server.editor().await?;
    let session = server.session(&mut agent, &[scripted("good")]).await?;
    let calls = [
        json!([{"tool": "script__echo", "args": {"text": "it works"}}]),
        json!([{"tool": "script__ask", "args": {}}]),
        json!([{"text": "Done."}]),
    ];
    let id = agent.client.prompt(&session, &script(&calls)).await?;
    let question = agent.client.asked("session/request_permission").await?;
    assert_eq!(question["params"]["toolCall"]["title"], r#"script: echo {"text":"it works"}"#);
    agent.client.choose(&question, "allow_once").await?;
    let question = agent.client.asked("session/request_permission").await?;
    agent.client.choose(&question, "allow_once").await?;
    let form = agent.client.asked("elicitation/create").await?;
    assert_eq!(form["params"]["message"], "script asks: How old?");
    agent.client.respond(&form["id"], json!({"action": "accept", "content": {"age": 42}})).await?;
    assert_eq!(agent.client.answer_to(id).await?["stopReason"], "end_turn");
    let seen = shown(&agent, &session);
    ensure!(
        seen.contains("it works") && seen.contains(r#"{\"action\":\"accept\",\"content\":{\"age\":42}}"#),
        "{seen}"
    );
    ensure!(!seen.contains("hush-hush-hush"), "a secret is shown: {seen}");
    Ok(())
}

#[tokio::test]
async fn closing_the_session_ends_them_and_all_they_started() -> anyhow::Result<()> {
    let mut server = TestServer::open()?;
    // Inside of bubblewrap processes have numbers of their own, which say nothing here.
    server.launch = server.launch.with("GANDER_SANDBOX_BUBBLEWRAP", "false");
    let mut agent = server.editor().await?;
    let session = server.session(&mut agent, &[scripted("good")]).await?;
    let calls = [json!([{"tool": "script__spawn", "args": {}}]), json!([{"text": "Done."}])];
    let id = agent.client.prompt(&session, &script(&calls)).await?;
    let question = agent.client.asked("session/request_permission").await?;
    agent.client.choose(&question, "allow_once").await?;
    agent.client.answer_to(id).await?;
    let seen = agent.client.seen.iter().rev().find_map(spawned).context("it says what it started")?;
    ensure!(alive(seen), "it runs");
    agent.client.call("session/close", json!({"sessionId": session})).await?;
    eventually("the grandchild ends", || async { !alive(seen) }).await
}

#[tokio::test]
async fn one_that_fails_is_named_and_the_session_works() -> anyhow::Result<()> {
    let server = TestServer::open()?;
    let mut agent = server.editor().await?;
    let absent = json!({"name": "absent", "command": "/no/such/program", "args": [], "env": []});
    let session = server.session(&mut agent, &[absent, scripted("dies")]).await?;
    assert_eq!(agent.client.turn(&session, &script(&[json!([{"text": "Hello."}])])).await?, "end_turn");
    let expected = [
        ("absent", "failed", "it could not be started: /no/such/program: No such file or directory (os error 2)"),
        ("script", "failed", "it exited during startup: no such database"),
    ]
    .map(|(name, state, reason)| [name, state, reason].map(str::to_owned));
    // They are tried again now and then: a list may show that instead.
    let started = Instant::now();
    loop {
        let listed = agent.client.call("_gander/extensions/list", json!({"sessionId": session})).await?;
        let rows = rows(&listed);
        if rows == expected {
            return Ok(());
        }
        ensure!(started.elapsed() < Duration::from_secs(60), "{rows:?}");
    }
}

#[tokio::test]
async fn one_that_was_added_survives_a_restart_and_its_secrets_lie_apart() -> anyhow::Result<()> {
    let server = TestServer::open()?;
    let mut agent = server.launch.editor(&["--standalone"]).await?;
    let session = server.session(&mut agent, &[]).await?;
    let named = json!({"sessionId": session, "name": "script", "entry": entry("good")});
    agent.client.call("_gander/extensions/add", named).await?;
    server.is_ready(&mut agent, &session).await?;
    agent.leave().await?;
    let mut agent = server.launch.editor(&["--standalone"]).await?;
    agent.client.load(&session, &server.folder).await?;
    server.is_ready(&mut agent, &session).await?;
    let removed = json!({"sessionId": session, "name": "script"});
    agent.client.call("_gander/extensions/remove", removed.clone()).await?;
    assert_eq!(server.listed(&mut agent, Some(&session)).await?, Vec::<[String; 3]>::new());
    ensure!(agent.client.call("_gander/extensions/remove", removed).await.is_err(), "it is gone already");
    agent.leave().await?;
    for file in std::fs::read_dir(&server.launch.data)? {
        let path = file?.path();
        let held = path.is_file() && String::from_utf8_lossy(&std::fs::read(&path)?).contains("hush-hush-hush");
        ensure!(!held, "a secret is left in {}", path.display());
    }
    Ok(())
}

/// Somebody on this machine who can be reached over the network; until it is dropped.
fn peer() -> anyhow::Result<(std::net::TcpListener, Value)> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?.to_string();
    Ok((listener, json!(address)))
}

#[tokio::test]
async fn one_that_does_not_start_without_the_network_gets_it_from_a_person_for_good() -> anyhow::Result<()> {
    let mut server = TestServer::open()?;
    let why = "the one question is about the network, not about the command that waits for it";
    server.launch = server.launch.with_policy_auto(why);
    let (_listener, address) = peer()?;
    let mut wanted = scripted("online");
    wanted["env"].as_array_mut().context("a list")?.push(json!({"name": PEER, "value": address}));
    let mut agent = server.launch.editor(&["--standalone"]).await?;
    let session = server.session(&mut agent, &[wanted.clone()]).await?;
    let waits = json!([{"tool": "shell", "args": {"command": "while [ ! -e go ]; do sleep 0.05; done"}}]);
    let id = agent.client.prompt(&session, &script(&[waits, json!([{"text": "Done."}])])).await?;
    let question = agent.client.asked("session/request_permission").await?;
    let title = question["params"]["toolCall"]["title"].as_str().context("a title")?.to_owned();
    ensure!(title.starts_with("script (") && title.contains("does not start without the network"), "{title}");
    agent.client.choose(&question, "allow_always").await?;
    server.is_ready(&mut agent, &session).await?;
    std::fs::write(server.folder.join("go"), "")?;
    agent.client.answer_to(id).await?;
    agent.leave().await?;
    let mut agent = server.launch.editor(&["--standalone"]).await?;
    let session = server.session(&mut agent, &[wanted]).await?;
    server.is_ready(&mut agent, &session).await
}

#[tokio::test]
async fn a_call_that_missed_the_network_is_made_again_with_it_after_a_yes() -> anyhow::Result<()> {
    let server = TestServer::open()?;
    let (_listener, address) = peer()?;
    let mut wanted = scripted("good");
    wanted["env"].as_array_mut().context("a list")?.push(json!({"name": PEER, "value": address}));
    let mut agent = server.editor().await?;
    let calls = [json!([{"tool": "script__reach", "args": {}}]), json!([{"text": "Done."}])];
    for (answers, expected) in [
        (&["allow_once", "reject_once"][..], "its program has no network in the sandbox"),
        (&["allow_once", "allow_always"][..], "reached it"),
        (&["allow_once"][..], "reached it"),
    ] {
        let session = server.session(&mut agent, &[wanted.clone()]).await?;
        let id = agent.client.prompt(&session, &script(&calls)).await?;
        for answer in answers {
            let question = agent.client.asked("session/request_permission").await?;
            agent.client.choose(&question, answer).await?;
        }
        assert_eq!(agent.client.answer_to(id).await?["stopReason"], "end_turn");
        let seen = shown(&agent, &session);
        ensure!(seen.contains(expected), "{answers:?}: {seen}");
    }
    Ok(())
}

/// A program that may write to the workspace could plant what the person's own tools run.
#[tokio::test]
async fn what_its_program_plants_is_set_aside_until_a_person_agrees() -> anyhow::Result<()> {
    let server = TestServer::open()?;
    let planted = server.folder.join(".envrc");
    let mut agent = server.editor().await?;
    let args = json!({"path": planted, "text": "touch /tmp/owned"});
    let calls = [json!([{"tool": "script__write_file", "args": args}]), json!([{"text": "Done."}])];
    for (answer, is_there, told) in [("reject_once", false, "was undone"), ("allow_once", true, "a person allowed")] {
        let session = server.session(&mut agent, &[scripted("writer")]).await?;
        let id = agent.client.prompt(&session, &script(&calls)).await?;
        let question = agent.client.asked("session/request_permission").await?;
        agent.client.choose(&question, "allow_once").await?;
        let question = agent.client.asked("session/request_permission").await?;
        let title = question["params"]["toolCall"]["title"].as_str().context("a title")?.to_owned();
        ensure!(title.starts_with("The server's program changed files") && title.contains(".envrc"), "{title}");
        ensure!(!planted.exists(), "it is there while somebody is asked");
        agent.client.choose(&question, answer).await?;
        assert_eq!(agent.client.answer_to(id).await?["stopReason"], "end_turn");
        ensure!(planted.exists() == is_there, "{answer}");
        ensure!(shown(&agent, &session).contains(told), "{answer}: {}", shown(&agent, &session));
    }
    Ok(())
}

/// Its program goes on running after its call: what it plants then is found before the next call of any tool.
#[tokio::test]
async fn what_its_program_plants_between_two_calls_is_set_aside_before_the_next() -> anyhow::Result<()> {
    let server = TestServer::open()?;
    let (planted, signal) = (server.folder.join(".envrc"), server.folder.join("file-0"));
    let mut agent = server.editor().await?;
    let later = json!({"path": planted, "text": "touch /tmp/owned", "when": signal});
    let write = |index: u32| json!([{"tool": "write", "args": {"path": format!("file-{index}"), "content": "x"}}]);
    // It plants as soon as the first file is there: one of the next calls finds it.
    let calls =
        [json!([{"tool": "script__write_later", "args": later}])].into_iter().chain((0..MANY_WRITES).map(write));
    let calls: Vec<Value> = calls.chain([json!([{"text": "Done."}])]).collect();
    let session = server.session(&mut agent, &[scripted("writer")]).await?;
    // Nobody is asked about plain files, so that the turn is never parked after the call to the server.
    let chosen = json!({"sessionId": session, "configId": "policy", "value": "auto_edit"});
    agent.client.call("session/set_config_option", chosen).await?;
    let id = agent.client.prompt(&session, &script(&calls)).await?;
    let question = agent.client.asked("session/request_permission").await?;
    agent.client.choose(&question, "allow_once").await?;
    let question = agent.client.asked("session/request_permission").await?;
    let title = question["params"]["toolCall"]["title"].as_str().context("a title")?.to_owned();
    ensure!(title.starts_with("A server's program changed files") && title.contains(".envrc"), "{title}");
    ensure!(!planted.exists(), "it is there while somebody is asked");
    agent.client.choose(&question, "reject_once").await?;
    assert_eq!(agent.client.answer_to(id).await?["stopReason"], "end_turn");
    let last = server.folder.join(format!("file-{}", MANY_WRITES - 1));
    ensure!(!planted.exists() && last.exists(), "the calls run all the same");
    Ok(())
}

/// Calls within which a program that waits for the first is certain to have done what it waits to do.
const MANY_WRITES: u32 = 60;

/// Between two turns the change may be the person's own: it stays until somebody says no.
#[tokio::test]
async fn what_changed_between_two_turns_stays_until_somebody_says_no() -> anyhow::Result<()> {
    let server = TestServer::open()?;
    let planted = server.folder.join(".envrc");
    let mut agent = server.editor().await?;
    let call = |text: &str| [json!([{"tool": "script__echo", "args": {"text": text}}]), json!([{"text": "Done."}])];
    let session = server.session(&mut agent, &[scripted("writer")]).await?;
    for (turn, answer, is_there) in [(1, None, false), (2, Some("allow_once"), true), (3, Some("reject_once"), true)] {
        if answer.is_some() {
            std::fs::write(&planted, format!("export TURN={turn}"))?;
        }
        let id = agent.client.prompt(&session, &script(&call(&format!("turn {turn}")))).await?;
        let question = agent.client.asked("session/request_permission").await?;
        agent.client.choose(&question, "allow_once").await?;
        if let Some(answer) = answer {
            let question = agent.client.asked("session/request_permission").await?;
            let title = question["params"]["toolCall"]["title"].as_str().context("a title")?.to_owned();
            ensure!(title.starts_with("Since the last call") && title.contains(".envrc"), "{title}");
            ensure!(std::fs::read_to_string(&planted)?.contains(&turn.to_string()), "it was undone unasked");
            agent.client.choose(&question, answer).await?;
        }
        assert_eq!(agent.client.answer_to(id).await?["stopReason"], "end_turn");
        assert_eq!(planted.exists(), is_there);
    }
    ensure!(std::fs::read_to_string(&planted)?.contains('2'), "a no brings back what was there before");
    Ok(())
}

#[tokio::test]
async fn a_projects_own_are_off_until_its_folder_is_trusted_and_when_they_change() -> anyhow::Result<()> {
    let server = TestServer::open()?;
    let mut agent = server.launch.editor(&["--standalone"]).await?;
    let file = server.folder.join(".gander/extensions.toml");
    std::fs::create_dir_all(file.parent().context("it lies in a folder")?)?;
    let written = toml::to_string(&json!({"script": entry("good")}))?;
    std::fs::write(&file, &written)?;
    let session = server.session(&mut agent, &[]).await?;
    agent.client.turn(&session, &script(&[json!([{"text": "Hello."}])])).await?;
    let log = agent.client.call("_gander/session/export", json!({"sessionId": session})).await?.to_string();
    ensure!(log.contains("they are off until you trust it"), "nobody is told: {log}");
    assert_eq!(server.listed(&mut agent, Some(&session)).await?, Vec::<[String; 3]>::new());
    agent.client.call("_gander/trust/add", json!({"folder": server.folder})).await?;
    let session = server.session(&mut agent, &[]).await?;
    server.is_ready(&mut agent, &session).await?;
    std::fs::write(&file, written.replace("good", "dies"))?;
    let session = server.session(&mut agent, &[]).await?;
    assert_eq!(server.listed(&mut agent, Some(&session)).await?, Vec::<[String; 3]>::new());
    Ok(())
}

#[tokio::test]
async fn tools_of_our_own_are_switched_while_the_server_runs_and_stay_so() -> anyhow::Result<()> {
    let server = TestServer::open()?;
    let mut agent = server.launch.editor(&["--standalone"]).await?;
    let session = server.session(&mut agent, &[]).await?;
    let states = async |agent: &mut Agent, session: Option<&str>| -> anyhow::Result<Value> {
        let listed = agent.client.call("_gander/extensions/list", json!({"sessionId": session})).await?;
        let rows = listed["extensions"].as_array().context("a list")?.clone();
        Ok(rows
            .into_iter()
            .map(|row| (row["name"].as_str().unwrap_or_default().to_owned(), row["state"].clone()))
            .collect())
    };
    let usual = json!({"developer": "on", "todo": "on", "skills": "on", "apps": "on", "summon": "on", "memory": "off"});
    assert_eq!(states(&mut agent, None).await?, usual);
    agent.client.call("_gander/extensions/add", json!({"name": "memory"})).await?;
    agent.client.call("_gander/extensions/remove", json!({"sessionId": session, "name": "developer"})).await?;
    agent.client.call("_gander/extensions/switch", json!({"name": "skills", "on": false})).await?;
    let changed =
        json!({"developer": "off", "todo": "on", "skills": "off", "apps": "on", "summon": "on", "memory": "on"});
    assert_eq!(states(&mut agent, Some(&session)).await?, changed);
    let calls = [json!([{"tool": "shell", "args": {"command": "touch made"}}]), json!([{"text": "Done."}])];
    assert_eq!(agent.client.turn(&session, &script(&calls)).await?, "end_turn");
    ensure!(shown(&agent, &session).contains("no such tool here"), "a tool that is off was used");
    ensure!(!server.folder.join("made").exists(), "it ran");
    let refused = agent.client.call("_gander/extensions/add", json!({"name": "extensionmanager"})).await;
    ensure!(format!("{refused:?}").contains("gander extensions"), "{refused:?}");
    agent.leave().await?;
    let mut agent = server.launch.editor(&["--standalone"]).await?;
    agent.client.load(&session, &server.folder).await?;
    assert_eq!(states(&mut agent, Some(&session)).await?, changed);
    agent.client.call("_gander/extensions/add", json!({"sessionId": session, "name": "developer"})).await?;
    assert_eq!(states(&mut agent, Some(&session)).await?["developer"], "on");
    Ok(())
}

/// Name, state and reason of each server.
fn rows(listed: &Value) -> Vec<[String; 3]> {
    let rows = listed["extensions"].as_array().into_iter().flatten().filter(|row| row["place"] != "built in");
    rows.map(|row| ["name", "state", "reason"].map(|field| row[field].as_str().unwrap_or_default().to_owned()))
        .collect()
}

struct TestServer {
    launch: Launch,
    folder: PathBuf,
    _background: Background,
    _root: tempfile::TempDir,
}

impl TestServer {
    fn open() -> anyhow::Result<Self> {
        let root = tempfile::tempdir()?;
        let launch = Launch::demo(binary(GANDER), data(root.path())?);
        let folder = workspace(root.path())?;
        Ok(Self { launch, folder, _background: Background(root.path().to_owned()), _root: root })
    }

    /// An editor that fills in forms.
    async fn editor(&self) -> anyhow::Result<Agent> {
        let mut agent = self.launch.acp(&[])?;
        let capabilities = json!({"elicitation": {"form": {}}});
        let told =
            agent.client.call("initialize", json!({"protocolVersion": 1, "clientCapabilities": capabilities})).await?;
        assert_eq!(told["agentCapabilities"]["mcpCapabilities"], json!({"http": true, "sse": false, "acp": false}));
        Ok(agent)
    }

    async fn listed(&self, agent: &mut Agent, session: Option<&str>) -> anyhow::Result<Vec<[String; 3]>> {
        Ok(rows(&agent.client.call("_gander/extensions/list", json!({"sessionId": session})).await?))
    }

    /// Until the scripted server works.
    async fn is_ready(&self, agent: &mut Agent, session: &str) -> anyhow::Result<()> {
        let expected = ["script", "ready", ""].map(str::to_owned);
        let started = Instant::now();
        loop {
            let rows = self.listed(agent, Some(session)).await?;
            if rows == [expected.clone()] {
                return Ok(());
            }
            ensure!(started.elapsed() < Duration::from_secs(60), "{rows:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn session(&self, agent: &mut Agent, servers: &[Value]) -> anyhow::Result<String> {
        let made = agent.client.call("session/new", json!({"cwd": self.folder, "mcpServers": servers})).await?;
        Ok(made["sessionId"].as_str().context("no session id")?.to_owned())
    }
}

fn scripted(temper: &str) -> Value {
    let (program, args, mut env) = command("server", temper);
    env.push(("SECRET".to_owned(), "hush-hush-hush".to_owned()));
    let env: Vec<Value> = env.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
    json!({"name": "script", "command": program, "args": args, "env": env})
}

/// The scripted server, as people write it down.
fn entry(temper: &str) -> Value {
    let (program, args, mut env) = command("server", temper);
    env.push(("SECRET".to_owned(), "hush-hush-hush".to_owned()));
    let env: serde_json::Map<String, Value> = env.into_iter().map(|(name, value)| (name, json!(value))).collect();
    json!({"command": program, "args": args, "env": env})
}

fn shown(agent: &Agent, session: &str) -> String {
    let updates = agent.client.seen.iter().filter(|message| message["params"]["sessionId"] == session);
    updates.map(|message| message.to_string()).collect::<Vec<_>>().join("\n")
}

/// The process number that a finished call shows.
fn spawned(message: &Value) -> Option<u32> {
    let update = &message["params"]["update"];
    let done = update["sessionUpdate"] == "tool_call_update" && update["status"] == "completed";
    done.then(|| update["content"][0]["content"]["text"].as_str()?.parse().ok()).flatten()
}

fn alive(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}
