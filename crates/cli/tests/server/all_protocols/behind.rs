//! The same through every protocol when another agent is behind it: a program, or a server, that speaks ACP or goose's REST.

use std::path::Path;

use gander_testkit::conformance::ConformanceRecorder;
use gander_testkit::harness::{Launch, Server, binary, script};
use serde_json::{Value, json};

use super::protocols::TestSession;
use super::{say_through_each, test_server_with, watch_and_answer};

/// Another gander, as an agent: a program that is started for each session.
fn program(data: &Path) -> String {
    let command = json!([binary(env!("CARGO_BIN_EXE_gander")), "acp", "--standalone"]);
    let environment = format!("{{ GANDER_DATA = {:?}, GANDER_MODEL = \"demo/demo\" }}", data.join("behind"));
    format!("[agents.behind]\ncommand = {command}\nenv = {environment}\n")
}

/// Another gander, as a server at this address.
async fn server_behind(root: &Path) -> anyhow::Result<(Server, String)> {
    let data = root.join("behind");
    std::fs::create_dir_all(&data)?;
    let launch = Launch::demo(binary(env!("CARGO_BIN_EXE_gander")), data);
    let server = launch.serve().await?;
    let token = launch.stdout(&["token"]).await?.trim().to_owned();
    Ok((server, token))
}

/// A server whose sessions this agent serves.
async fn with_agent(settings: &str) -> anyhow::Result<(tempfile::TempDir, Server, TestSession)> {
    let (root, server, mut test_session) = test_server_with(settings).await?;
    test_session.agent = "behind".to_owned();
    Ok((root, server, test_session))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_speaks_acp_is_behind_every_protocol() -> anyhow::Result<()> {
    let behind = tempfile::tempdir()?;
    let (_root, server, test_session) = with_agent(&program(behind.path())).await?;
    watch_and_answer(&server, test_session).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_protocol_goes_on_with_a_program_behind_it() -> anyhow::Result<()> {
    let behind = tempfile::tempdir()?;
    let (_root, _server, test_session) = with_agent(&program(behind.path())).await?;
    say_through_each(test_session).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_speak_acp_or_goose_are_behind_every_protocol() -> anyhow::Result<()> {
    let behind = tempfile::tempdir()?;
    let (other, token) = server_behind(behind.path()).await?;
    let address = other.address;
    let kinds = [
        format!("kind = \"acp\"\nurl = \"http://{address}/acp\""),
        format!("url = \"ws://{address}/acp\""),
        format!("kind = \"goosed\"\nprotocol = \"rest\"\nurl = \"http://{address}\""),
    ];
    for kind in kinds {
        let settings = format!("[agents.behind]\n{kind}\nsecret_key = \"{token}\"\n");
        let (_root, server, test_session) = with_agent(&settings).await?;
        watch_and_answer(&server, test_session).await.map_err(|error| error.context(kind))?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_is_not_installed_says_so() -> anyhow::Result<()> {
    let settings = "[agents.behind]\ncommand = [\"no-such-agent-here\", \"acp\"]\n";
    let (_root, _server, mut test_session) = with_agent(settings).await?;
    test_session.run = test_session.start("hello").await?;
    let error = failure(&test_session).await?;
    assert!(error.contains("behind cannot be started") && error.contains("no-such-agent-here"), "{error}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_crashes_fails_its_run_and_is_started_again() -> anyhow::Result<()> {
    let behind = tempfile::tempdir()?;
    let wrapper = behind.path().join("agent");
    // Ends in the middle of its first turn, the second time it is the agent.
    let gander = binary(env!("CARGO_BIN_EXE_gander"));
    let script_text = format!(
        "#!/bin/sh\nif [ -e {0}/crashed ]; then exec {1} acp --standalone; fi\ntouch {0}/crashed\n{1} acp --standalone | \
         while read -r line; do printf '%s\\n' \"$line\"; case $line in *now-crash*) echo \"out of luck\" >&2; kill -9 $$;; esac; done\n",
        behind.path().display(),
        gander.display()
    );
    std::fs::write(&wrapper, script_text)?;
    std::fs::set_permissions(&wrapper, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    let settings = program(behind.path());
    let settings = settings.replace(&json!([gander, "acp", "--standalone"]).to_string(), &json!([wrapper]).to_string());
    let (_root, server, mut test_session) = with_agent(&settings).await?;
    test_session.run = test_session
        .start(&script(&[json!([{ "text": "now-crash" }, { "text": "later", "delay_ms": 600_000 }])]))
        .await?;
    let error = failure(&test_session).await?;
    assert!(error.contains("behind ended") && error.contains("out of luck"), "{error}");
    ConformanceRecorder::for_protocol("back-ends").shows("ACP program", "crash", "acp_rest");
    test_session.run = test_session.start(&script(&[json!([{ "text": "well again" }])])).await?;
    let run = test_session.settled().await?;
    assert!(run.to_string().contains("well again"), "{run}");
    drop(server);
    Ok(())
}

/// Waits for a run to fail, and says why it did.
async fn failure(test_session: &TestSession) -> anyhow::Result<String> {
    loop {
        let run: Value = test_session.run_object().await?;
        if run["status"] == "failed" {
            return Ok(run["error"].to_string());
        }
        anyhow::ensure!(run["status"] != "completed", "{run}");
        tokio::task::yield_now().await;
    }
}
