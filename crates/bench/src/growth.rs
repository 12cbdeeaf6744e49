//! What one stream, session, message or tool call costs when there are ten times as many.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use gander_testkit::harness::{Server, workspace};
use gander_testkit::upstream::Pace;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::load::{Driver, Lines, Reader, mebibytes, millis};
use crate::report::{Bounds, Report, Row};
use crate::{Bench, mcp_server};

/// Ten times as many may cost so much more each.
const FLAT: Bounds = Bounds::RatioMost(1.2, 1.2);

const SHORT: Pace = Pace { deltas: 1, between_ms: 0, first_ms: 0, size: 8, word: 0 };

/// A model that thinks between its words, so that thousands of streams can be open on two cores.
const SLOW: Pace = Pace { deltas: 20, between_ms: 250, ..SHORT };

/// Sessions of one connection, and calls of one session.
const PER_CONNECTION: usize = 100;

/// How many there are first; then ten times as many.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GrowthScale {
    streams: usize,
    sessions: usize,
    turns: usize,
    calls: usize,
    parked: usize,
}

pub(crate) const WHOLE: GrowthScale =
    GrowthScale { streams: 200, sessions: 10_000, turns: 500, calls: 1_000, parked: 200 };
pub(crate) const QUICK: GrowthScale = GrowthScale { streams: 20, sessions: 500, turns: 50, calls: 50, parked: 20 };

pub(crate) async fn measure(bench: &Bench, report: &mut Report, scale: GrowthScale) -> anyhow::Result<()> {
    streams(bench, report, scale.streams).await.context("streams")?;
    sessions(bench, report, scale.sessions).await.context("sessions")?;
    messages(bench, report, scale.turns).await.context("messages")?;
    tool_calls(bench, report, scale.calls).await.context("tool calls")?;
    parked_runs(bench, report, scale.parked).await.context("parked runs")
}

async fn streams(bench: &Bench, report: &mut Report, few: usize) -> anyhow::Result<()> {
    let mut costs = Vec::new();
    for count in [few, few * 10] {
        let root = tempfile::tempdir()?;
        let server = bench.launch(root.path())?.serve().await?;
        let folder = workspace(root.path())?;
        let mut drivers = Vec::new();
        for _ in 0..count {
            drivers.push(Driver::open(&server.launch, &folder).await?);
        }
        drivers[0].turn(SHORT).await?;
        let (cpu, memory) = (server.process().cpu(), server.process().memory());
        let mut turns = JoinSet::new();
        for mut driver in drivers {
            turns.spawn(async move { driver.turn(SLOW).await });
        }
        while let Some(done) = turns.join_next().await {
            done??;
        }
        costs.push((server.process().cpu() - cpu).as_secs_f64() * 1e6 / (count * SLOW.deltas) as f64);
        let each = kibibytes_each(server.process().peak_memory(), memory, count);
        report.add(Row::new(format!("memory per open stream, {count} at once, peak"), each, "KiB"));
        server.kill().await?;
    }
    report.add(
        Row::new(format!("server CPU per delta, {} streams beside {few}", few * 10), costs[1], "µs")
            .raw(costs[0])
            .bounds(FLAT),
    );
    Ok(())
}

/// What beginning a session and taking a turn cost when so many are in the store.
async fn sessions(bench: &Bench, report: &mut Report, few: usize) -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    let server = bench.launch(root.path())?.serve().await?;
    let folder = workspace(root.path())?;
    let mut driver = Driver::open(&server.launch, &folder).await?;
    driver.turn(SHORT).await?;
    let (before, mut made, mut begun, mut turn) = (server.process().memory(), 0, Vec::new(), Vec::new());
    for place in [few, few * 10] {
        while made + PER_CONNECTION < place {
            Lines::open(&server.launch).await?.new_sessions(&folder, PER_CONNECTION).await?;
            made += PER_CONNECTION;
        }
        let cpu = server.process().cpu();
        Lines::open(&server.launch).await?.new_sessions(&folder, PER_CONNECTION).await?;
        made += PER_CONNECTION;
        begun.push(micros_each(&server, cpu, PER_CONNECTION));
        let cpu = server.process().cpu();
        for _ in 0..PER_CONNECTION {
            driver.turn(SHORT).await?;
        }
        turn.push(micros_each(&server, cpu, PER_CONNECTION));
        let each = kibibytes_each(server.process().memory(), before, made);
        report.add(Row::new(format!("memory per idle session, {place} in the store"), each, "KiB"));
    }
    let many = few * 10;
    let name = |what: &str| format!("server CPU per {what}, {many} sessions in the store beside {few}");
    report.add(Row::new(name("new session"), begun[1], "µs").raw(begun[0]).bounds(FLAT));
    report.add(Row::new(name("turn"), turn[1], "µs").raw(turn[0]).bounds(FLAT));
    server.kill().await?;
    Ok(())
}

/// What a session of so many messages costs to load, each of them.
async fn messages(bench: &Bench, report: &mut Report, few: usize) -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    let server = bench.launch(root.path())?.serve().await?;
    let folder = workspace(root.path())?;
    let mut driver = Driver::open(&server.launch, &folder).await?;
    let (mut taken, mut loads) = (0, Vec::new());
    for place in [few, few * 10] {
        while taken < place {
            driver.turn(SHORT).await?;
            taken += 1;
        }
        let mut lines = Lines::open(&server.launch).await?;
        let (start, cpu) = (std::time::Instant::now(), server.process().cpu());
        let params = json!({"sessionId": driver.session, "cwd": folder, "mcpServers": []});
        lines.call("session/load", &params).await?;
        let took = start.elapsed();
        loads.push(micros_each(&server, cpu, place * 2));
        report.add(Row::new(format!("load of a session with {} messages", place * 2), millis(took), "ms"));
    }
    let name = format!("server CPU per message loaded, {} messages beside {}", few * 20, few * 2);
    report.add(Row::new(name, loads[1], "µs").raw(loads[0]).bounds(FLAT));
    server.kill().await?;
    Ok(())
}

/// Calls of a tool of an MCP server, in sessions of equal length.
async fn tool_calls(bench: &Bench, report: &mut Report, few: usize) -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    let launch = bench.launch(root.path())?.with_policy_auto("calls are counted, not questions");
    let server = launch.serve().await?;
    let folder = workspace(root.path())?;
    let (mut made, mut costs) = (0, Vec::new());
    for place in [few, few * 10] {
        let window = few.min(PER_CONNECTION);
        while made + window < place {
            made += call_tool(&server, &folder, PER_CONNECTION.min(place - window - made)).await?;
        }
        let cpu = server.process().cpu();
        made += call_tool(&server, &folder, window).await?;
        costs.push(micros_each(&server, cpu, window));
    }
    let name = format!("server CPU per turn with an MCP tool call, the {}th beside the {few}th", few * 10);
    report.add(Row::new(name, costs[1], "µs").raw(costs[0]).bounds(FLAT));
    report.add(Row::new(
        format!("memory after {} MCP tool calls", few * 10),
        mebibytes(server.process().memory()),
        "MiB",
    ));
    server.kill().await?;
    Ok(())
}

/// Takes so many turns in a new session, each of which calls the tool once.
async fn call_tool(server: &Server, folder: &Path, count: usize) -> anyhow::Result<usize> {
    let mut lines = Lines::open(&server.launch).await?;
    let own = std::env::current_exe()?;
    let mcp = json!({"name": "bench", "command": own, "args": [mcp_server::FLAG], "env": []});
    let opened = lines.call("session/new", &json!({"cwd": folder, "mcpServers": [mcp]})).await?;
    for _ in 0..count {
        let text = format!("[[call=bench__{}|{{}}]]{}", mcp_server::TOOL, SHORT.marker());
        let prompt = [json!({"type": "text", "text": text})];
        let done = lines.call("session/prompt", &json!({"sessionId": opened["sessionId"], "prompt": prompt})).await?;
        ensure!(done["stopReason"] == "end_turn", "a turn ended otherwise: {done}");
    }
    Ok(count)
}

/// Runs that wait for a person: they own no task and no back-end.
async fn parked_runs(bench: &Bench, report: &mut Report, few: usize) -> anyhow::Result<()> {
    for count in [few, few * 10] {
        let root = tempfile::tempdir()?;
        let server = bench.launch(root.path())?.serve().await?;
        let folder = workspace(root.path())?;
        Driver::open(&server.launch, &folder).await?.turn(SHORT).await?;
        let before = server.process().memory();
        let mut open = Vec::new();
        for _ in 0..count.div_ceil(PER_CONNECTION) {
            let mut lines = Lines::open(&server.launch).await?;
            for _ in 0..PER_CONNECTION.min(count) {
                park_run(&mut lines, &folder).await?;
            }
            open.push(lines);
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        let each = kibibytes_each(server.process().memory(), before, count);
        report.add(Row::new(format!("memory per run that waits for a person, {count} of them"), each, "KiB"));
        server.kill().await?;
    }
    Ok(())
}

async fn park_run(lines: &mut Lines, folder: &Path) -> anyhow::Result<()> {
    let session = lines.new_session(folder).await?;
    let prompt = [json!({"type": "text", "text": r#"[[call=shell|{"command":"touch made.txt"}]]"#})];
    lines.send("session/prompt", &json!({"sessionId": session, "prompt": prompt})).await?;
    loop {
        let message: Value = serde_json::from_str(&lines.line().await?)?;
        ensure!(message.get("error").is_none(), "refused: {message}");
        if message["method"] == "session/request_permission" {
            return Ok(());
        }
    }
}

fn micros_each(server: &Server, before: Duration, count: usize) -> f64 {
    (server.process().cpu() - before).as_secs_f64() * 1e6 / count as f64
}

fn kibibytes_each(now: u64, before: u64, count: usize) -> f64 {
    now.saturating_sub(before) as f64 / 1024.0 / count as f64
}
