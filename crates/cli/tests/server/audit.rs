//! The audit trail tells who asked, what was shown, who answered from where, what ran and how it ended; it outlives a
//! deleted session without its content.

use anyhow::{Context as _, ensure};
use gander_testkit::harness::{Client, Launch, PATIENCE, data, eventually, script, workspace};
use serde_json::{Value, json};

const GANDER: &str = env!("CARGO_BIN_EXE_gander");

/// One action: its tool and arguments, what is answered if it asks, and what the trail must say.
struct Action {
    tool: &'static str,
    arguments: Value,
    answer: Option<&'static str>,
    decision: &'static str,
    exit_code: Option<i64>,
}

/// A reproducible mix of reads, commands that are allowed or rejected, and files that are written or not.
fn action(number: u64) -> Action {
    let drawn = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407) >> 33;
    let (yes, no) = (Some("allow_once"), Some("reject_once"));
    let code = i64::try_from(drawn % 7).unwrap_or_default();
    let command = json!({"command": format!("exit {code} # {number}")});
    let file = json!({"path": format!("file-{number}.txt"), "content": "text"});
    let action = |tool, arguments, answer: Option<&'static str>, exit_code| {
        let decision = answer.unwrap_or("unasked");
        Action { tool, arguments, answer, decision, exit_code }
    };
    match drawn % 5 {
        0 => action("read", json!({"path": "a.txt"}), None, None),
        1 => action("shell", command, yes, Some(code)),
        2 => action("shell", command, no, None),
        3 => action("write", file, yes, None),
        _ => action("write", file, no, None),
    }
}

async fn perform(client: &mut Client, session: &str, actions: &[Action]) -> anyhow::Result<()> {
    let calls = actions.iter().map(|action| json!([{"tool": action.tool, "args": action.arguments}]));
    let steps: Vec<Value> = calls.chain([json!([{"text": "done"}])]).collect();
    let id = client.prompt(session, &script(&steps)).await?;
    for kind in actions.iter().filter_map(|action| action.answer) {
        let request = client.asked("session/request_permission").await?;
        client.choose(&request, kind).await?;
    }
    client.answer_to(id).await?;
    Ok(())
}

async fn records(launch: &Launch, more: &[&str]) -> anyhow::Result<Vec<Value>> {
    let text = launch.stdout(&[&["audit", "--json"], more].concat()).await?;
    text.lines().map(|line| serde_json::from_str(line).context(line.to_owned())).collect()
}

#[tokio::test]
async fn a_hundred_random_actions_are_reconstructed_and_outlive_their_session_without_content() -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    let launch = Launch::demo(GANDER, data(root.path())?);
    let folder = workspace(root.path())?;
    std::fs::write(folder.join("a.txt"), "text")?;
    let server = launch.serve().await?;
    let mut client = server.client().await?;
    let session = client.new_session(&folder).await?;
    let actions: Vec<Action> = (0..100).map(action).collect();
    for some in actions.chunks(10) {
        perform(&mut client, &session, some).await?;
    }
    let told = records(&launch, &["--session", &session]).await?;
    ensure!(told.len() == 100, "{} records", told.len());
    for (record, action) in told.iter().zip(&actions) {
        let decision = &record["decision"];
        let decided = decision["choice"].as_str().or(decision["type"].as_str());
        ensure!(record["tool"] == action.tool && record["arguments"] == action.arguments, "{record}");
        ensure!(record["asked_by"] == "owner" && record["protocol"] == "acp", "{record}");
        ensure!(decided == Some(action.decision), "{record}");
        ensure!(record["exit_code"].as_i64() == action.exit_code, "{record}");
        ensure!(record["started_at"].is_i64() == (action.answer != Some("reject_once")), "{record}");
        if action.answer.is_some() {
            ensure!(record["answered_by"] == "owner" && record["answered_from"] == "acp", "{record}");
            ensure!(record["shown"].as_str().is_some_and(|shown| shown.contains("[Allow]")), "{record}");
        }
    }
    ensure!(records(&launch, &["--principal", "nobody"]).await?.is_empty());
    client.call("session/delete", json!({"sessionId": session})).await?;
    let left = records(&launch, &["--session", &session]).await?;
    ensure!(left.len() == 100, "{} records are left", left.len());
    for (record, before) in left.iter().zip(&told) {
        ensure!(
            ["tool", "hash", "at", "exit_code", "asked_by", "end"].iter().all(|name| record[*name] == before[*name])
        );
        ensure!(record["arguments"].is_null() && record["title"].is_null() && record["shown"].is_null(), "{record}");
        ensure!(record["deleted_by"] == "owner", "{record}");
    }
    Ok(())
}

#[tokio::test]
async fn the_route_is_for_administrators_and_knows_the_answering_protocol() -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    let launch = Launch::demo(GANDER, data(root.path())?);
    let server = launch.serve().await?;
    rustls::crypto::ring::default_provider().install_default().ok();
    let token = |text: String| text.split_whitespace().last().unwrap_or_default().to_owned();
    let owner = token(launch.stdout(&["token", "show"]).await?);
    let other = token(launch.stdout(&["token", "add", "visitor", "--scopes", "prompt,approve"]).await?);
    let http = reqwest::Client::new();
    let url = |path: &str| format!("http://{}{path}", server.address);
    let call = script(&[json!([{"tool": "shell", "args": {"command": "exit 3"}}]), json!([{"text": "done"}])]);
    let body =
        json!({"agent_name": "gander", "mode": "sync", "input": [{"role": "user", "parts": [{"content": call}]}]});
    let run: Value = http.post(url("/runs")).bearer_auth(&owner).json(&body).send().await?.json().await?;
    ensure!(run["status"] == "awaiting", "{run}");
    let resume = json!({"run_id": run["run_id"], "mode": "sync", "await_resume": {"type": "message",
        "message": {"role": "user", "parts": [{"content": "allow_once"}]}}});
    let path = format!("/runs/{}", run["run_id"].as_str().unwrap_or_default());
    let done: Value = http.post(url(&path)).bearer_auth(&owner).json(&resume).send().await?.json().await?;
    ensure!(done["status"] == "completed", "{done}");
    let told: Value = http.get(url("/gander/audit")).bearer_auth(&owner).send().await?.json().await?;
    let record = &told["records"][0];
    ensure!(record["exit_code"] == 3 && record["answered_by"] == "owner", "{told}");
    ensure!(record["protocol"] == "acp_rest" && record["answered_from"] == "acp_rest", "{told}");
    let refused = http.get(url("/gander/audit")).bearer_auth(&other).send().await?;
    assert_eq!(refused.status().as_u16(), 403);
    Ok(())
}

/// A line of the exported file, or the JSON behind the header of a syslog message.
fn exported_hash(text: &str) -> anyhow::Result<String> {
    let start = text.find('{').with_context(|| text.to_owned())?;
    let record: Value = serde_json::from_str(&text[start..])?;
    ensure!(record["ended_at"].is_i64() && record["asked_by"] == "owner", "{record}");
    Ok(record["hash"].as_str().context("a hash")?.to_owned())
}

#[tokio::test]
async fn the_trail_goes_to_a_file_and_a_syslog_as_it_grows_and_nothing_twice_after_a_kill() -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    let receiver = tokio::net::UdpSocket::bind("127.0.0.1:0").await?;
    let file = root.path().join("audit.jsonl");
    let launch = Launch::demo(GANDER, data(root.path())?)
        .with("GANDER_AUDIT_FILE", file.to_str().context("a path")?)
        .with("GANDER_AUDIT_SYSLOG", &format!("udp://{}", receiver.local_addr()?));
    let folder = workspace(root.path())?;
    std::fs::write(folder.join("a.txt"), "text")?;
    let (mut received, mut buffer) = (Vec::new(), vec![0; 65_536]);
    for start in [0, 5] {
        let server = launch.serve().await?;
        let mut client = server.client().await?;
        let session = client.new_session(&folder).await?;
        perform(&mut client, &session, &(start..start + 5).map(action).collect::<Vec<_>>()).await?;
        for _ in 0..5 {
            let length = tokio::time::timeout(PATIENCE, receiver.recv(&mut buffer)).await.context("no message")??;
            let text = std::str::from_utf8(&buffer[..length])?;
            ensure!(text.starts_with("<86>1 ") && text.contains(" gander "), "{text}");
            received.push(exported_hash(text)?);
        }
        // The file is written before the syslog is sent to, the note of both after: wait for it, then kill.
        let note = launch.data.join("audit-export.json");
        let is_noted = || std::fs::read_to_string(&note).is_ok_and(|text| text.matches(&session).count() == 10);
        eventually("what was exported is noted", async || is_noted()).await?;
        server.kill().await?;
    }
    let text = std::fs::read_to_string(&file)?;
    let lines = text.lines().map(exported_hash).collect::<anyhow::Result<Vec<_>>>()?;
    assert_eq!((lines.len(), &lines), (10, &received));
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file)?.permissions()) & 0o777, 0o600);
    let wrong = launch.with("GANDER_AUDIT_SYSLOG", "logs.example").run(&["doctor"]).await?;
    ensure!(String::from_utf8_lossy(&wrong.stderr).contains("udp://host:514"), "{wrong:?}");
    Ok(())
}
