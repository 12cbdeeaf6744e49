//! Notes, skills, recipes and schedules at the real binary.

use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use anyhow::{Context, ensure};
use gander_testkit::harness::{Background, Launch, binary, eventually, processes_naming, script, workspace};
use gander_testkit::upstream::Upstream;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const GANDER: &str = env!("CARGO_BIN_EXE_gander");

struct TestServer {
    root: tempfile::TempDir,
    work: PathBuf,
    _background: Background,
}

impl TestServer {
    fn open() -> anyhow::Result<Self> {
        let root = tempfile::tempdir()?;
        let work = workspace(root.path())?;
        std::fs::create_dir_all(root.path().join("data"))?;
        let background = Background(root.path().join("data"));
        Ok(Self { root, work, _background: background })
    }

    fn demo(&self) -> Launch {
        Launch::demo(binary(GANDER), self.root.path().join("data"))
    }

    fn write(&self, name: &str, text: &str) -> anyhow::Result<String> {
        let path = self.work.join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/")))?;
        std::fs::write(&path, text)?;
        Ok(path.to_string_lossy().into_owned())
    }

    fn recipe(&self, name: &str, more: Value) -> anyhow::Result<String> {
        let mut recipe = json!({"version": "1.0.0", "title": "T", "description": "d", "prompt": "text"});
        if let (Some(fields), Value::Object(more)) = (recipe.as_object_mut(), more) {
            fields.extend(more);
        }
        self.write(name, &recipe.to_string())
    }

    async fn run(&self, launch: &Launch, arguments: &[&str]) -> anyhow::Result<(bool, String, String)> {
        let output = launch.run(arguments).await?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok((output.status.success(), text(&output.stdout), text(&output.stderr)))
    }
}

#[tokio::test]
async fn what_people_wrote_reaches_the_model() -> anyhow::Result<()> {
    let test_server = TestServer::open()?;
    let upstream = Upstream::start().await?;
    let launch = Launch::openai(binary(GANDER), test_server.root.path().join("data"), &upstream.base_url());
    test_server.write("AGENTS.md", "Notes: say ALPHA. See @docs/more.md")?;
    test_server.write("docs/more.md", "and GAMMA\u{e0041}")?;
    test_server.write(
        ".agents/skills/tidy/SKILL.md",
        "---\nname: tidy\ndescription: how DELTA is tidied\n---\nUse a broom.\n",
    )?;
    let recipe = "title: Greeter\ndescription: greets\ninstructions: Greet {{ who }} as BETA.\n\
        prompt: 'say hello to {{ who }} [[n=2]]'\nsettings: {max_turns: 3}\n\
        parameters: [{key: who, input_type: string, requirement: required, description: whom}]\n";
    let recipe = test_server.write("greet.yaml", recipe)?;
    let work = test_server.work.to_string_lossy().into_owned();
    let (ok, out, err) = test_server
        .run(&launch, &["run", "--cwd", &work, "--recipe", &recipe, "--param", "who=Ada", "and more"])
        .await?;
    ensure!(ok && out.contains('~'), "{out} {err}");
    ensure!(err.contains("hidden characters were taken out"), "{err}");
    let asked = upstream.counts().last.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for word in ["say ALPHA", "and GAMMA\\n", "tidy: how DELTA", "Greet Ada as BETA", "say hello to Ada", "and more"] {
        ensure!(asked.contains(word), "{word} is not in {asked}");
    }
    Ok(())
}

#[tokio::test]
async fn a_result_must_have_its_form() -> anyhow::Result<()> {
    let test_server = TestServer::open()?;
    let steps = [
        json!([{"text": "done"}]),
        json!([{"text": "never said: the turn reminds by itself"}]),
        json!([{"tool": "final_output", "args": {"n": "seven"}}]),
        json!([{"tool": "final_output", "args": {"n": 7}}]),
    ];
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let more = json!({"prompt": script(&steps), "response": {"json_schema": schema}});
    let recipe = test_server.recipe("seven.json", more)?;
    let (ok, out, err) = test_server.run(&test_server.demo(), &["run", "--recipe", &recipe]).await?;
    ensure!(ok && out == "{\n  \"n\": 7\n}\n", "the result alone: {out} {err}");
    let stubborn = [json!([{"text": "done"}])];
    let more = json!({"prompt": script(&stubborn), "response": {"json_schema": schema}});
    let recipe = test_server.recipe("stubborn.json", more)?;
    let (ok, _, err) = test_server.run(&test_server.demo(), &["run", "--recipe", &recipe]).await?;
    ensure!(!ok && err.contains("did not give a result of the form"), "{err}");
    Ok(())
}

#[tokio::test]
async fn checks_ask_and_make_it_go_on() -> anyhow::Result<()> {
    let test_server = TestServer::open()?;
    let work = test_server.work.to_string_lossy().into_owned();
    let steps = [
        json!([{"text": "done"}]),
        json!([{"text": "a check"}]),
        json!([{"tool": "shell", "args": {"command": "touch made.txt"}}]),
        json!([{"text": "now it is"}]),
    ];
    let retry = json!({"max_retries": 1, "checks": [{"type": "shell", "command": "test -f made.txt"}]});
    let recipe = test_server.recipe("make.json", json!({"prompt": script(&steps), "retry": retry}))?;
    let (ok, out, err) =
        test_server.run(&test_server.demo(), &["run", "--policy", "auto", "--cwd", &work, "--recipe", &recipe]).await?;
    ensure!(ok && out.contains("now it is") && test_server.work.join("made.txt").exists(), "{out} {err}");

    let retry = json!({"max_retries": 1, "checks": [{"type": "shell", "command": "test -f never.txt"}],
        "on_failure": "touch failed.txt"});
    let recipe =
        test_server.recipe("never.json", json!({"prompt": script(&[json!([{"text": "done"}])]), "retry": retry}))?;
    let (ok, _, err) =
        test_server.run(&test_server.demo(), &["run", "--policy", "auto", "--cwd", &work, "--recipe", &recipe]).await?;
    ensure!(!ok && err.contains("check still failing after 1 retries: test -f never.txt"), "{err}");
    ensure!(test_server.work.join("failed.txt").exists(), "{err}");

    let retry = json!({"max_retries": 1, "checks": [{"type": "shell", "command": "touch asked.txt"}]});
    let recipe =
        test_server.recipe("asks.json", json!({"prompt": script(&[json!([{"text": "done"}])]), "retry": retry}))?;
    let (ok, _, err) = test_server.run(&test_server.demo(), &["run", "--cwd", &work, "--recipe", &recipe]).await?;
    ensure!(!ok && err.contains("a check was not allowed to run: touch asked.txt"), "{err}");
    ensure!(!test_server.work.join("asked.txt").exists(), "it ran unasked");
    Ok(())
}

#[tokio::test]
async fn a_recipe_has_another_carried_out() -> anyhow::Result<()> {
    let test_server = TestServer::open()?;
    let parameters = json!([
        {"key": "place", "input_type": "string", "requirement": "required", "description": "where"},
        {"key": "kind", "input_type": "string", "requirement": "required", "description": "what"},
    ]);
    let prompt = "[[script:[[{\"text\":\"{{ kind }} in {{ place }}\"}]]]]";
    test_server.recipe("parts/weather.json", json!({"prompt": prompt, "parameters": parameters}))?;
    let subs = json!([
        {"name": "weather", "path": "{{ recipe_dir }}/parts/weather.json", "values": {"kind": "sun"}},
        {"name": "lost", "path": "parts/lost.json"},
    ]);
    let steps =
        [json!([{"tool": "recipe_weather", "args": {"place": "Bern"}}, {"tool": "recipe_weather", "args": {}}])];
    let recipe = test_server.recipe("trip.json", json!({"prompt": script(&steps), "sub_recipes": subs}))?;
    let (ok, out, err) = test_server.run(&test_server.demo(), &["run", "--recipe", &recipe]).await?;
    ensure!(ok && out.contains("sun in Bern") && out.contains("missing required parameter"), "{out} {err}");
    ensure!(err.contains("a sub-recipe was left out") && err.contains("lost"), "{err}");
    Ok(())
}

#[tokio::test]
async fn a_recipe_that_another_uses_keeps_its_form_and_its_checks() -> anyhow::Result<()> {
    let test_server = TestServer::open()?;
    let work = test_server.work.to_string_lossy().into_owned();
    let schema = json!({"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]});
    let steps = [
        json!([{"text": "it is three"}]),
        json!([{"text": "a reminder"}]),
        json!([{"tool": "final_output", "args": {"sum": "three"}}]),
        json!([{"tool": "final_output", "args": {"sum": 3}}]),
        json!([{"text": "a check"}]),
        json!([{"tool": "shell", "args": {"command": "touch made.txt"}}]),
        json!([{"text": "made"}]),
    ];
    let retry = json!({"max_retries": 1, "checks": [{"type": "shell", "command": "test -f made.txt"}]});
    let more = json!({"prompt": script(&steps), "response": {"json_schema": schema}, "retry": retry});
    test_server.recipe("parts/sum.json", more)?;
    let subs = json!([{"name": "sum", "path": "parts/sum.json"}]);
    let steps = [json!([{"tool": "recipe_sum", "args": {}}]), json!([{"results": true}])];
    let recipe = test_server.recipe("uses.json", json!({"prompt": script(&steps), "sub_recipes": subs}))?;
    let (ok, out, err) =
        test_server.run(&test_server.demo(), &["run", "--policy", "auto", "--cwd", &work, "--recipe", &recipe]).await?;
    ensure!(ok && out.contains(r#"{"sum":3}"#), "{out} {err}");
    ensure!(test_server.work.join("made.txt").exists(), "its checks made it go on: {out} {err}");

    let never = json!({"max_retries": 0, "checks": [{"type": "shell", "command": "test -f never.txt"}]});
    test_server.recipe("parts/sum.json", json!({"prompt": script(&[json!([{"text": "done"}])]), "retry": never}))?;
    let (_, out, err) =
        test_server.run(&test_server.demo(), &["run", "--policy", "auto", "--cwd", &work, "--recipe", &recipe]).await?;
    ensure!(out.contains("check still failing") && out.contains("`recipe_sum` failed"), "{out} {err}");
    Ok(())
}

#[tokio::test]
async fn an_extension_of_goose_that_is_not_here_is_named_with_what_to_use_instead() -> anyhow::Result<()> {
    let test_server = TestServer::open()?;
    let extensions = json!([{"type": "builtin", "name": "computercontroller"}, {"type": "platform", "name": "todo"}]);
    let more = json!({"prompt": script(&[json!([{"text": "done"}])]), "extensions": extensions});
    let recipe = test_server.recipe("steers.json", more)?;
    let (ok, out, err) = test_server.run(&test_server.demo(), &["run", "--recipe", &recipe]).await?;
    ensure!(ok && out.contains("done"), "{out} {err}");
    ensure!(err.contains("continuing without it") && err.contains("developer runs commands"), "{err}");
    ensure!(err.contains("computercontroller") && !err.contains("use an MCP server: todo"), "{err}");
    Ok(())
}

#[tokio::test]
async fn a_recipe_that_another_uses_has_its_own_extensions_after_a_yes() -> anyhow::Result<()> {
    let test_server = TestServer::open()?;
    let (program, args, envs) = gander_testkit::mcp::command("server", "good");
    let envs: serde_json::Map<String, Value> = envs.into_iter().map(|(name, value)| (name, json!(value))).collect();
    let extensions = json!([
        {"type": "stdio", "name": "script", "cmd": program, "args": args, "envs": envs},
        {"type": "builtin", "name": "memory"},
    ]);
    let recall = json!({"category": "*", "is_global": true});
    let steps = [
        json!([{"tool": "script__echo", "args": {"text": "from the child"}}]),
        json!([{"tool": "memory__retrieve_memories", "args": recall}]),
        json!([{"results": true}]),
    ];
    test_server.recipe("parts/echo.json", json!({"prompt": script(&steps), "extensions": extensions}))?;
    let subs = json!([{"name": "echo", "path": "parts/echo.json"}]);
    let file = test_server.recipe("uses.json", json!({"sub_recipes": subs}))?;
    let recipe: Value = serde_json::from_str(&std::fs::read_to_string(&file)?)?;
    let launch = test_server.demo();
    let mut editor = launch.editor(&["--standalone"]).await?;
    let calls = [json!([{"tool": "recipe_echo", "args": {}}]), json!([{"results": true}])];
    for (answers, expected) in [
        (&["reject_once"][..], "nobody agreed: script"),
        (&["allow_once", "allow_once", "allow_once"][..], "from the child"),
    ] {
        let session = editor.client.new_session(&test_server.work).await?;
        let follow = json!({"sessionId": session, "recipe": recipe, "folder": test_server.work});
        editor.client.call("_goose/unstable/recipes/apply", follow).await?;
        let id = editor.client.prompt(&session, &script(&calls)).await?;
        for (place, answer) in answers.iter().enumerate() {
            let question = editor.client.asked("session/request_permission").await?;
            let title = question["params"]["toolCall"]["title"].as_str().unwrap_or_default().to_owned();
            ensure!(place > 0 || title.starts_with("The recipe echo starts a program, script: "), "{title}");
            editor.client.choose(&question, answer).await?;
        }
        editor.client.answer_to(id).await?;
        let of_it = editor.client.seen.iter().filter(|message| message["params"]["sessionId"] == session);
        let seen = of_it.map(Value::to_string).collect::<String>();
        ensure!(seen.contains(expected), "{seen}");
        ensure!(seen.contains("nothing is remembered there") == (answers.len() > 1), "{seen}");
    }
    Ok(())
}

/// `script` lends the command a terminal.
#[tokio::test]
async fn a_person_is_asked_for_what_the_recipe_wants_to_hear_from_them() -> anyhow::Result<()> {
    let test_server = TestServer::open()?;
    let parameters = json!([
        {"key": "place", "input_type": "string", "requirement": "user_prompt", "description": "Where to?"},
        {"key": "by", "input_type": "select", "options": ["rail", "road"], "requirement": "user_prompt"},
    ]);
    let prompt = "[[script:[[{\"text\":\"to {{ place }} by {{ by }}\"}]]]]";
    let recipe = test_server.recipe("go.json", json!({"prompt": prompt, "parameters": parameters}))?;
    let (ok, _, err) =
        test_server.run(&test_server.demo(), &["run", "--recipe", &recipe, "--param", "by=rail"]).await?;
    ensure!(!ok && err.contains("the recipe asks for place") && err.contains("--param place="), "{err}");
    let given = ["run", "--recipe", &recipe, "--param", "by=rail", "--param", "place=Bern"];
    ensure!(
        test_server.run(&test_server.demo(), &given).await?.1.contains("to Bern by rail"),
        "what is given is not asked for"
    );

    let plain = test_server.demo().command(["run", "--recipe", &recipe]);
    let words = std::iter::once(plain.as_std().get_program()).chain(plain.as_std().get_args());
    let line: Vec<String> = words.map(|word| format!("'{}'", word.to_string_lossy())).collect();
    let mut child = tokio::process::Command::new("script");
    child.args(["-qec", &line.join(" "), "/dev/null"]).env_clear().env("TERM", "dumb").kill_on_drop(true);
    child.envs(plain.as_std().get_envs().filter_map(|(name, value)| Some((name, value?))));
    child.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = child.spawn().context("script of util-linux lends a terminal")?;
    let (mut typed, mut shown) = (child.stdin.take().context("stdin")?, child.stdout.take().context("stdout")?);
    let mut seen = String::new();
    for (question, answer) in [("Where to? (place)", "\nBern\n"), ("one of rail, road", "air\nroad\n")] {
        until(&mut shown, &mut seen, question).await?;
        typed.write_all(answer.as_bytes()).await?;
    }
    until(&mut shown, &mut seen, "to Bern by road").await
}

/// Reads until this was shown.
async fn until(shown: &mut tokio::process::ChildStdout, seen: &mut String, wanted: &str) -> anyhow::Result<()> {
    let mut bytes = [0; 1024];
    while !seen.contains(wanted) {
        let read = tokio::time::timeout(std::time::Duration::from_secs(60), shown.read(&mut bytes)).await;
        let count = read.with_context(|| format!("{wanted} does not come: {seen}"))??;
        ensure!(count > 0, "{wanted} did not come: {seen}");
        seen.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    Ok(())
}

#[tokio::test]
async fn hostile_recipes_are_refused_with_a_reason() -> anyhow::Result<()> {
    let test_server = TestServer::open()?;
    let parameter = json!([{"key": "f", "input_type": "file", "requirement": "required", "description": "f"}]);
    let text = json!([{"key": "f", "input_type": "string", "requirement": "required", "description": "f"}]);
    let check = json!({"max_retries": 1, "checks": [{"type": "shell", "command": "test -f {{ f }}"}]});
    let program = json!([{"type": "stdio", "name": "evil", "cmd": "touch", "args": ["evil.txt"]}]);
    let cases = [
        ("hidden.json", json!({"instructions": "a\u{e0041}b"}), "x", "no reader sees"),
        ("huge.json", json!({"instructions": "x".repeat(300 << 10)}), "x", "larger than"),
        ("out.json", json!({"sub_recipes": [{"name": "s", "path": "../../x.yaml"}]}), "x", "leads out"),
        (
            "file.json",
            json!({"prompt": "{{ f }}", "parameters": parameter}),
            "../../etc/passwd",
            "outside the workspace",
        ),
        ("env.json", json!({"prompt": "{{ f }}", "parameters": parameter}), ".env", "may hold secrets"),
        (
            "inject.json",
            json!({"prompt": "{{ f }}", "parameters": text, "retry": check}),
            "x; touch evil.txt",
            "cannot stand",
        ),
        (
            "program.json",
            json!({"extensions": program, "parameters": text, "prompt": "{{ f }}"}),
            "x",
            "would start programs",
        ),
    ];
    test_server.write(".env", "KEY=hush")?;
    let work = test_server.work.to_string_lossy().into_owned();
    for (name, more, value, reason) in cases {
        let recipe = test_server.recipe(name, more)?;
        let param = format!("f={value}");
        let (ok, out, err) = test_server
            .run(&test_server.demo(), &["run", "--cwd", &work, "--recipe", &recipe, "--param", &param])
            .await?;
        ensure!(!ok && err.contains(reason), "{name}: {out} {err}");
    }
    ensure!(!test_server.work.join("evil.txt").exists(), "something ran");
    let (ok, out, _) =
        test_server.run(&test_server.demo(), &["recipes", "validate", &format!("{work}/out.json")]).await?;
    ensure!(!ok && out.contains("sub_recipes[0].path"), "{out}");
    Ok(())
}

#[tokio::test]
async fn a_saved_recipe_is_a_slash_command() -> anyhow::Result<()> {
    let test_server = TestServer::open()?;
    let parameters = json!([{"key": "what", "input_type": "string", "requirement": "required", "description": "w"}]);
    let more = json!({"prompt": "[[script:[[{\"text\":\"you said {{ what }}\"}]]]]", "parameters": parameters});
    let recipe = test_server.recipe("say.json", more)?;
    let launch = test_server.demo();
    launch.stdout(&["recipes", "save", &recipe, "--slash", "say"]).await?;
    let listed = launch.stdout(&["recipes", "list"]).await?;
    ensure!(listed.contains("NAME  TITLE") && listed.contains("saved, /say"), "{listed}");
    ensure!(launch.stdout(&["run", "/say big words"]).await?.contains("you said big words"), "it is said");
    let mut agent = launch.editor(&[]).await?;
    let session = agent.client.new_session(&test_server.work).await?;
    let offered = |told: &Value| told["params"]["update"]["availableCommands"].to_string().contains("\"say\"");
    agent.client.until(offered).await?;
    ensure!(agent.client.turn(&session, "/say hello").await? == "end_turn", "it is a prompt");
    launch.stdout(&["recipes", "delete", "t"]).await?;
    ensure!(!launch.stdout(&["recipes", "list"]).await?.contains("/say"), "it is gone");
    Ok(())
}

#[tokio::test]
async fn an_app_is_made_changed_and_carried_away() -> anyhow::Result<()> {
    let test_server = TestServer::open()?;
    let launch = test_server.demo();
    let page = "<html><head><title>Clock</title></head><body>ten</body></html>";
    let edits = json!([{"old": "ten", "new": "eleven"}]);
    let steps = [
        json!([{"tool": "app_create", "args": {"name": "Clock", "description": "tells the time", "html": page}}]),
        json!([{"tool": "app_update", "args": {"name": "Clock", "edits": edits}}]),
        json!([{"tool": "app_create", "args": {"name": "Clock", "html": page}}, {"tool": "app_read", "args": {"name": "None"}}]),
        json!([{"tool": "app_list", "args": {}}]),
    ];
    let out = launch.stdout(&["run", &script(&steps[..1])]).await?;
    ensure!(out.contains("no such tool here"), "the assistant makes no apps: {out}");
    let out = launch.stdout(&["run", "--mode", "app_maker", &script(&steps)]).await?;
    ensure!(out.contains("an app with this name already exists: Clock") && out.contains("no such app: None"), "{out}");
    ensure!(out.contains("- Clock (version 1): tells the time"), "{out}");
    let listed: Value = serde_json::from_str(launch.stdout(&["apps", "list", "--json"]).await?.trim())?;
    ensure!(listed["name"] == "Clock" && listed["version"] == 1, "{listed}");
    let file = test_server.work.join("clock.html").to_string_lossy().into_owned();
    launch.stdout(&["apps", "export", "Clock", "-o", &file]).await?;
    ensure!(std::fs::read_to_string(&file)?.contains("eleven"), "the latest version");
    launch.stdout(&["apps", "delete", "Clock"]).await?;
    ensure!(launch.stdout(&["apps", "list"]).await?.is_empty(), "it is gone");
    ensure!(launch.stdout(&["apps", "import", &file]).await?.trim() == "Clock", "it came back");
    let refused = [json!([{"tool": "app_create", "args": {"name": "../x", "html": "<p>"}}])];
    let out = launch.stdout(&["run", "--mode", "app-maker", &script(&refused)]).await?;
    ensure!(out.contains("an app's name has"), "{out}");
    let out = launch.stdout(&["run", "--mode", "app_maker", "--policy", "read_only", &script(&steps[1..2])]).await?;
    ensure!(out.contains("was not allowed"), "{out}");
    Ok(())
}

#[tokio::test]
async fn a_schedule_outlives_its_server() -> anyhow::Result<()> {
    let test_server = TestServer::open()?;
    let recipe = test_server.recipe("tick.json", json!({}))?;
    let launch = test_server.demo();
    let server = launch.serve().await?;
    let work = test_server.work.to_string_lossy().into_owned();
    let add = ["schedule", "add", "tick", "--cron", "* * * * * *", "--zone", "Europe/Berlin", "--recipe", &recipe];
    launch.stdout(&[&add[..], &["--cwd", &work]].concat()).await?;
    let sessions =
        || async { launch.stdout(&["schedule", "sessions", "tick"]).await.unwrap_or_default().lines().count() };
    eventually("it runs by itself", || async { sessions().await >= 1 }).await?;
    launch.stdout(&["schedule", "pause", "tick"]).await?;
    server.kill().await?;
    let _server = launch.serve().await?;
    let job: Value = serde_json::from_str(launch.stdout(&["schedule", "list", "--json"]).await?.trim())?;
    ensure!(job["paused"] == true && job["zone"] == "Europe/Berlin" && job["last_run"].is_string(), "{job}");
    eventually("what it began is over", || async {
        let job = launch.stdout(&["schedule", "show", "tick"]).await.unwrap_or_default();
        job.contains("state      paused")
    })
    .await?;
    let before = sessions().await;
    let session = launch.stdout(&["schedule", "run", "tick"]).await?;
    eventually("it ran again", || async { sessions().await > before }).await?;
    let log = launch.export(session.trim()).await?;
    ensure!(
        log.iter().any(|entry| serde_json::to_string(entry).is_ok_and(|line| line.contains("\"schedule\""))),
        "{log:?}"
    );
    launch.stdout(&["schedule", "unpause", "tick"]).await?;
    let before = sessions().await;
    eventually("the clock goes on", || async { sessions().await > before }).await?;
    launch.stdout(&["schedule", "remove", "tick"]).await?;
    ensure!(launch.stdout(&["schedule", "list"]).await?.is_empty(), "it is gone");
    Ok(())
}

#[tokio::test]
async fn the_background_server_stays_for_a_schedule() -> anyhow::Result<()> {
    let test_server = TestServer::open()?;
    let recipe = test_server.recipe("year.json", json!({}))?;
    let launch = test_server.demo().with("GANDER_DAEMON_IDLE", "1s");
    launch.stdout(&["schedule", "add", "new-year", "--cron", "0 0 1 1 *", "--recipe", &recipe]).await?;
    let first = processes_naming(&launch.data).first().map(|process| process.0).context("it runs")?;
    tokio::time::sleep(std::time::Duration::from_secs(4)).await;
    ensure!(processes_naming(&launch.data).iter().any(|process| process.0 == first), "it left");
    launch.stdout(&["schedule", "remove", "new-year"]).await?;
    eventually("nobody needs it", || async { processes_naming(&launch.data).is_empty() }).await
}
