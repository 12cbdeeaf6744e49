//! Many sessions, long sessions, and many short runs at once.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::ensure;
use gander_testkit::harness::{Launch, Process, Server, workspace};
use gander_testkit::upstream::Pace;
use serde_json::json;
use tokio::task::JoinSet;

use crate::Bench;
use crate::load::{Driver, Lines, Reader, mebibytes, median, millis};
use crate::report::{Bounds, Report, Row};

const SHORT: Pace = Pace { deltas: 1, between_ms: 0, first_ms: 0, size: 8, word: 0 };

/// Clients that run short turns at once.
const RUNNERS: usize = 64;

/// How many turns around a place tell what a turn costs there.
const WINDOW: usize = 100;

/// Sessions that nobody prompts.
pub(crate) async fn idle(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    let server = bench.launch(root.path())?.serve().await?;
    let folder = workspace(root.path())?;
    let count = bench.scale.idle_sessions;
    Driver::open(&server.launch, &folder).await?.turn(SHORT).await?;
    let before = server.process().memory();
    let mut connections = Vec::new();
    for _ in 0..10 {
        let mut lines = Lines::open(&server.launch).await?;
        for _ in 0..count / 1_000 {
            lines.new_sessions(&folder, 100).await?;
        }
        connections.push(lines);
    }
    let each = |memory: u64| memory.saturating_sub(before) as f64 / 1024.0 / count as f64;
    let attached = each(server.process().memory());
    drop(connections);
    let server = again(server).await?;
    let left = mebibytes(server.process().memory());
    report.add(Row::new(format!("memory per idle session, {count} open in clients"), attached, "KiB"));
    report.add(Row::new(format!("memory of a server that starts with {count} sessions"), left, "MiB"));
    server.kill().await?;
    Ok(())
}

/// The n-th turn as n grows, then the whole session loaded by another client.
pub(crate) async fn long(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    let server = bench.launch(root.path())?.serve().await?;
    let folder = workspace(root.path())?;
    let mut driver = Driver::open(&server.launch, &folder).await?;
    let mut raw = bench.mock.raw().await?;
    let turns = bench.scale.turns;
    let (mut done, mut own) = (0, Vec::new());
    for place in [WINDOW, turns / 2, turns] {
        while done + WINDOW < place {
            driver.turn(SHORT).await?;
            done += 1;
        }
        let (ours, theirs) = (server.process(), Process(std::process::id()));
        let (mut times, mut direct, before) = (Vec::new(), Vec::new(), theirs.cpu());
        for turn in done..place {
            direct.push(millis(raw.turn_after(turn, SHORT).await?.whole));
        }
        let (asked, before) = (each(theirs.cpu() - before), ours.cpu());
        while done < place {
            times.push(millis(driver.turn(SHORT).await?.whole));
            done += 1;
        }
        let cpu = each(ours.cpu() - before);
        own.push(cpu - asked);
        report.add(Row::new(format!("turn {place} of a session, median"), median(times), "ms").raw(median(direct)));
        report.add(Row::new(format!("turn {place} of a session, server CPU"), cpu, "ms").raw(asked));
    }
    // What is left once the history was sent, which whoever asks the model must do. Flat, within what ticks can tell.
    let row = Row::new(format!("own cost of turn {turns} beside turn {WINDOW}"), own[own.len() - 1], "ms").raw(own[0]);
    report.add(row.bounds(Bounds::RatioMost(2.0, 1.25)));
    let messages = turns * 2;
    let loaded = load(&server.launch, &driver.session, &folder).await?;
    report.add(Row::new(format!("load of a session with {messages} messages"), loaded, "ms"));
    let server = again(server).await?;
    let loaded = load(&server.launch, &driver.session, &folder).await?;
    report.add(Row::new(format!("the same after a restart, {messages} messages"), loaded, "ms"));
    server.kill().await?;
    Ok(())
}

/// Milliseconds per turn of a window.
fn each(time: Duration) -> f64 {
    millis(time) / WINDOW as f64
}

async fn load(launch: &Launch, session: &str, folder: &Path) -> anyhow::Result<f64> {
    let mut lines = Lines::open(launch).await?;
    let params = json!({"sessionId": session, "cwd": folder, "mcpServers": []});
    let start = Instant::now();
    lines.call("session/load", &params).await?;
    Ok(millis(start.elapsed()))
}

/// Prompts that are answered when their whole run is safe on disk.
pub(crate) async fn runs(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    let server = bench.launch(root.path())?.serve().await?;
    let folder = workspace(root.path())?;
    let mut drivers = Vec::new();
    for _ in 0..RUNNERS {
        drivers.push(Driver::open(&server.launch, &folder).await?);
    }
    let each = bench.scale.sync_runs / RUNNERS;
    let (start, cpu) = (Instant::now(), server.process().cpu());
    let mut runners = JoinSet::new();
    for mut driver in drivers {
        runners.spawn(async move {
            for _ in 0..each {
                driver.turn(SHORT).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = runners.join_next().await {
        done??;
    }
    let count = (each * RUNNERS) as f64;
    let rate = count / start.elapsed().as_secs_f64();
    let cpu = (server.process().cpu() - cpu).as_secs_f64() * 1e6 / count;
    // What must be reached is reached by runs that ask no model: see the part `acp-rest`.
    report.add(Row::new("turns/s through the model, 64 clients", rate, "/s"));
    report.add(Row::new("server CPU per turn through the model, 64 clients", cpu, "µs"));
    server.kill().await?;
    Ok(())
}

/// Ends the server in good order and starts it again.
async fn again(server: Server) -> anyhow::Result<Server> {
    let launch = server.launch.clone();
    ensure!(server.stop().await?.success(), "the server did not end well");
    launch.serve().await
}
