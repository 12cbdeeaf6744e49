//! From nothing to healthy, and what a server costs that does nothing.

use std::time::Duration;

use gander_testkit::harness::workspace;
use gander_testkit::upstream::Pace;

use crate::Bench;
use crate::load::{Driver, Reader, mebibytes, median, millis};
use crate::report::{Bounds, Report, Row};

pub(crate) async fn measure(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let (mut empty, mut existing) = (Vec::new(), Vec::new());
    for _ in 0..bench.scale.starts {
        let root = tempfile::tempdir()?;
        let launch = bench.launch(root.path())?;
        for times in [&mut empty, &mut existing] {
            let server = launch.serve().await?;
            times.push(millis(server.healthy_after));
            server.stop().await?;
        }
    }
    report.add(
        Row::new("spawn to healthy, empty data directory", median(empty), "ms").bounds(Bounds::Most(150.0, 150.0)),
    );
    report.add(
        Row::new("spawn to healthy, existing data directory", median(existing), "ms").bounds(Bounds::Most(20.0, 20.0)),
    );
    memory(bench, report).await
}

async fn memory(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    let server = bench.launch(root.path())?.serve().await?;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let idle = mebibytes(server.process().memory());
    report.add(Row::new("memory, idle", idle, "MiB").bounds(Bounds::Most(20.0, 20.0)));
    let mut driver = Driver::open(&server.launch, &workspace(root.path())?).await?;
    driver.turn(Pace { deltas: 100, ..Pace::default() }).await?;
    let used = mebibytes(server.process().memory());
    report.add(Row::new("memory after the first turn", used, "MiB").bounds(Bounds::Most(30.0, 30.0)));
    server.kill().await?;
    Ok(())
}
