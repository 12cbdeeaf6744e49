//! An ACP program behind the server beside the same program spoken to directly: added time, and processor time per update.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use gander_testkit::harness::{Client, workspace};
use serde_json::json;
use tokio::process::Command;

use crate::Bench;
use crate::report::{Bounds, Report, Row};

/// Updates of a turn that come as fast as the program writes them.
const BURST: usize = 5_000;
/// Updates of a turn with a pause before each, as a model has them.
const PACED: usize = 100;

/// Answers a prompt of two numbers with so many updates, and a pause of so many seconds before each.
const AGENT: &str = r#"#!/bin/sh
while IFS= read -r line; do
  case $line in *'"id":'*) id=${line#*'"id":'}; id=${id%%[,\}]*} ;; *) id= ;; esac
  case $line in
    *'"method":"initialize"'*)
      printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}\n' "$id" ;;
    *'"method":"session/new"'*)
      printf '{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"only"}}\n' "$id" ;;
    *'"method":"session/prompt"'*)
      count=${line#*updates:}; pause=${count#*pause:}; count=${count%%;*}; pause=${pause%%;*}
      while [ "$count" -gt 0 ]; do
        [ "$pause" = 0 ] || sleep "$pause"
        printf '%s\n' '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"only","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"some word "}}}}'
        count=$((count - 1))
      done
      printf '{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}\n' "$id" ;;
    *) [ -n "$id" ] && printf '{"jsonrpc":"2.0","id":%s,"result":{}}\n' "$id" ;;
  esac
done
"#;

pub(crate) async fn measure(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    let (agent, folder) = (root.path().join("agent"), workspace(root.path())?);
    std::fs::write(&agent, AGENT)?;
    std::fs::set_permissions(&agent, std::fs::Permissions::from_mode(0o755))?;
    let launch = bench.launch(root.path())?;
    let settings = launch.data.join("config/gander");
    std::fs::create_dir_all(&settings)?;
    std::fs::write(settings.join("gander.toml"), format!("[agents.behind]\ncommand = {}\n", json!([agent])))?;
    let server = launch.serve().await?;
    let mut through = server.client().await?;
    let params = json!({ "cwd": folder, "mcpServers": [], "_meta": { "agent": "behind" } });
    let made = through.call("session/new", params).await?;
    let session = made["sessionId"].as_str().context("no session")?.to_owned();
    let (_child, mut direct) = start_direct(&agent, &folder).await?;

    turn(&mut direct, "only", 10, "0").await?;
    turn(&mut through, &session, 10, "0").await?;
    let (mut paced, mut bursts, mut cpu) = (Vec::new(), Vec::new(), Duration::ZERO);
    for _ in 0..bench.scale.rounds {
        // One after the other in the same run: whatever else the machine does, it does to both.
        paced.push((
            turn(&mut direct, "only", PACED, "0.01").await?,
            turn(&mut through, &session, PACED, "0.01").await?,
        ));
        let alone = turn(&mut direct, "only", BURST, "0").await?;
        let before = server.process().cpu();
        bursts.push((alone, turn(&mut through, &session, BURST, "0").await?));
        cpu += server.process().cpu().saturating_sub(before);
    }
    let updates = (bench.scale.rounds * BURST) as f64;
    let (direct_paced, through_paced) = medians(&paced);
    let (direct_burst, through_burst) = medians(&bursts);
    let name = format!("ACP program behind the server, a turn of {PACED} updates with 10 ms before each");
    report.add(Row::new(name, through_paced * 1e3, "ms").raw(direct_paced * 1e3).bounds(Bounds::RatioMost(1.5, 1.1)));
    let name = format!("the same, {BURST} updates at once");
    report.add(Row::new(name, through_burst * 1e3, "ms").raw(direct_burst * 1e3));
    let name = "the same, server CPU per update";
    report.add(Row::new(name, cpu.as_secs_f64() * 1e6 / updates, "µs").bounds(Bounds::Most(20.0, 5.0)));
    server.kill().await?;
    Ok(())
}

/// The program with nothing in between.
async fn start_direct(agent: &Path, folder: &Path) -> anyhow::Result<(tokio::process::Child, Client)> {
    let mut command = Command::new(agent);
    command.current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn()?;
    let (stdout, stdin) = (child.stdout.take().context("no stdout")?, child.stdin.take().context("no stdin")?);
    let mut client = Client::over(stdout, stdin);
    client.initialize().await?;
    client.call("session/new", json!({ "cwd": folder, "mcpServers": [] })).await?;
    Ok((child, client))
}

/// How long a turn of so many updates takes.
async fn turn(client: &mut Client, session: &str, updates: usize, pause: &str) -> anyhow::Result<f64> {
    client.seen.clear();
    let started = Instant::now();
    let reason = client.turn(session, &format!("updates:{updates};pause:{pause};")).await?;
    let took = started.elapsed().as_secs_f64();
    ensure!(reason == "end_turn", "{reason}");
    let texts = client.seen.iter().filter_map(|message| message["params"]["update"]["content"]["text"].as_str());
    let length: usize = texts.filter(|text| text.contains("some word")).map(str::len).sum();
    ensure!(length == updates * "some word ".len(), "{length} bytes of text for {updates} updates");
    Ok(took)
}

fn medians(pairs: &[(f64, f64)]) -> (f64, f64) {
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    (median(pairs.iter().map(|pair| pair.0).collect()), median(pairs.iter().map(|pair| pair.1).collect()))
}
