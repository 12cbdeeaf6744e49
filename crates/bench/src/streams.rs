//! Streams: time to the first delta, deltas per second alone and with 200 at once, processor time and memory.

use std::time::{Duration, Instant};

use anyhow::ensure;
use gander_testkit::harness::{Server, workspace};
use gander_testkit::upstream::Pace;
use tokio::task::JoinSet;

use crate::load::{Driver, Reader, mebibytes, median, millis};
use crate::report::{Bounds, Report, Row};
use crate::{Bench, truth};

const ONE: Pace = Pace { deltas: 2_000, between_ms: 0, first_ms: 0, size: 8, word: 0 };
const MANY: Pace = Pace { deltas: 500, ..ONE };
const STREAMS: usize = 200;

pub(crate) async fn measure(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    first_delta(bench, report).await?;
    one_stream(bench, report).await?;
    many_streams(bench, report).await
}

async fn first_delta(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    let server = bench.launch(root.path())?.serve().await?;
    let mut driver = Driver::open(&server.launch, &workspace(root.path())?).await?;
    let mut raw = bench.mock.raw().await?;
    let pace = Pace { deltas: 1, ..ONE };
    let (mut through, mut direct) = (Vec::new(), Vec::new());
    for _ in 0..bench.scale.firsts {
        direct.push(millis(raw.turn(pace).await?.first));
        through.push(millis(driver.turn(pace).await?.first));
    }
    let (through, direct) = (median(through), median(direct));
    let sync = 1e3 / report.disk;
    report.add(Row::new("first delta, median", through, "ms").raw(direct));
    report.add(Row::new("added before the first delta", through - direct, "ms").bounds(Bounds::Most(2.0 + sync, 2.0)));
    if let Some(turn) = truth::per_turn(&server, &mut driver, 20).await? {
        report.note(format!(
            "a short turn: {:.2} syncs seen by the kernel, {:.2} counted by the server, in {:.2} commits \
             (a synced commit is one with synchronous=FULL)",
            turn.kernel_syncs, turn.syncs, turn.commits
        ));
    }
    server.kill().await?;
    Ok(())
}

async fn one_stream(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    let server = bench.launch(root.path())?.serve().await?;
    let mut driver = Driver::open(&server.launch, &workspace(root.path())?).await?;
    let mut raw = bench.mock.raw().await?;
    let (mut through, mut direct) = (Vec::new(), Vec::new());
    let before = server.process().cpu();
    for _ in 0..bench.scale.rounds {
        direct.push(rate(1, ONE, raw.turn(ONE).await?.whole));
        through.push(rate(1, ONE, driver.turn(ONE).await?.whole));
    }
    let deltas = bench.scale.rounds * ONE.deltas;
    let cpu = micros_per(server.process().cpu() - before, deltas);
    if checked(report, server, "one stream", deltas).await? {
        let rate = Row::new("deltas/s, 1 stream of 2,000", median(through), "/s").raw(median(direct));
        report.add(rate.bounds(Bounds::RatioLeast(0.25, 0.5)));
        report.add(Row::new("server CPU per delta, 1 stream", cpu, "µs").bounds(Bounds::Most(12.0, 8.0)));
    }
    Ok(())
}

async fn many_streams(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    let server = bench.launch(root.path())?.serve().await?;
    let folder = workspace(root.path())?;
    let (mut drivers, mut raws) = (Vec::new(), Vec::new());
    for _ in 0..STREAMS {
        drivers.push(Driver::open(&server.launch, &folder).await?);
        raws.push(bench.mock.raw().await?);
    }
    let (mut through, mut direct) = (Crowd::default(), Crowd::default());
    let before = server.process().cpu();
    for _ in 0..bench.scale.rounds {
        raws = direct.gather(raws).await?;
        drivers = through.gather(drivers).await?;
    }
    let deltas = bench.scale.rounds * STREAMS * MANY.deltas;
    let cpu = micros_per(server.process().cpu() - before, deltas);
    let peak = mebibytes(server.process().peak_memory());
    if checked(report, server, "200 streams", deltas).await? {
        let rate = Row::new("deltas/s, 200 streams of 500", median(through.rates), "/s").raw(median(direct.rates));
        report.add(rate.bounds(Bounds::RatioLeast(0.2, 0.4)));
        report.add(Row::new("server CPU per delta, 200 streams", cpu, "µs").bounds(Bounds::Most(12.0, 8.0)));
        report.add(Row::new("memory at 200 streams, peak", peak, "MiB").bounds(Bounds::Most(120.0, 120.0)));
        let first =
            Row::new("first delta at 200 streams, median", median(through.firsts), "ms").raw(median(direct.firsts));
        report.add(first.bounds(Bounds::RatioMost(3.0, 3.0)));
    }
    Ok(())
}

/// What many streams at once took.
#[derive(Default)]
struct Crowd {
    rates: Vec<f64>,
    firsts: Vec<f64>,
}

impl Crowd {
    /// Lets all of them take a turn at the same time, and gives them back.
    async fn gather<T: Reader>(&mut self, all: Vec<T>) -> anyhow::Result<Vec<T>> {
        let start = Instant::now();
        let mut turns = JoinSet::new();
        for mut one in all {
            turns.spawn(async move { one.turn(MANY).await.map(|taken| (one, taken)) });
        }
        let mut back = Vec::new();
        while let Some(done) = turns.join_next().await {
            let (one, taken) = done??;
            self.firsts.push(millis(taken.first));
            back.push(one);
        }
        self.rates.push(rate(back.len(), MANY, start.elapsed()));
        Ok(back)
    }
}

/// Ends the server and compares what it stored with what the model sent. If they differ there is no figure.
async fn checked(report: &mut Report, server: Server, what: &str, deltas: usize) -> anyhow::Result<bool> {
    let status = truth::store_status(&server).await?;
    let data = server.launch.data.clone();
    ensure!(server.stop().await?.success(), "the server did not end well");
    let stored = truth::stored(&data).await?;
    let counts = ["commits", "syncs"].map(|name| status[name].as_u64().unwrap_or_default());
    let (rows, found) = (stored.rows, stored.deltas);
    report.note(format!(
        "{what}: {deltas} deltas sent at no pause, {found} found in {rows} rows; {} commits, {} of them synced",
        counts[0], counts[1]
    ));
    Ok(report.same(what, i64::try_from(deltas)?, found))
}

fn rate(streams: usize, pace: Pace, time: Duration) -> f64 {
    (streams * pace.deltas) as f64 / time.as_secs_f64()
}

fn micros_per(time: Duration, count: usize) -> f64 {
    time.as_secs_f64() * 1e6 / count as f64
}
