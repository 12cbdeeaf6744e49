//! A node whose clock jumps: order is by the log, leases are by the database's clock.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use gander_testkit::call_record::CallRecord;
use gander_testkit::harness::Launch;
use gander_testkit::skip::skipped;

use crate::faults::{check_all, check_stream, fault_count, start_streams};
use crate::test_cluster::{TestCluster, replay, schema_for};

/// How far it jumps, from the true time.
const JUMPS: [&str; 6] = ["+3600", "-3600", "+10", "-10", "+0", "+86400"];

/// More than any of the clocks of a machine differ: a jump shows in what the node writes.
const FAR: Duration = Duration::from_secs(1800);

/// Debian keeps it out of the way.
fn library() -> Option<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib").ok()?.flatten().map(|folder| folder.path().join("faketime"));
    folders.map(|folder| folder.join("libfaketimeMT.so.1")).find(|path| path.exists())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_clock_jumps_keeps_its_sessions() -> anyhow::Result<()> {
    let Some(url) = schema_for("a_node_whose_clock_jumps_keeps_its_sessions") else { return Ok(()) };
    let Some(library) = library() else {
        skipped("cluster::a_node_whose_clock_jumps_keeps_its_sessions", "libfaketime is not installed");
        return Ok(());
    };
    let folder = tempfile::tempdir()?;
    let clock = folder.path().join("clock");
    std::fs::write(&clock, "+0")?;
    let set_up = |node: usize, launch: Launch| {
        let launch = launch.with_policy_auto("a ledger of calls that nobody has to allow");
        if node > 0 {
            return launch;
        }
        // The clock that only goes forward is not a machine's to set: it is not touched.
        launch
            .with("LD_PRELOAD", &library.display().to_string())
            .with("FAKETIME_TIMESTAMP_FILE", &clock.display().to_string())
            .with("FAKETIME_NO_CACHE", "1")
            .with("FAKETIME_DONT_FAKE_MONOTONIC", "1")
    };
    let cluster = TestCluster::start_with(url, 3, set_up).await?;
    let ledger = CallRecord::in_folder(&cluster.folder);
    let (mut sessions, mut entries) = (0, 0);
    for round in 0..fault_count(3) {
        let jump = JUMPS[(round % JUMPS.len() as u64) as usize];
        let streams = start_streams(&cluster, &ledger, 40, 0, round).await?;
        std::fs::write(&clock, jump)?;
        cluster.all_runs_end().await.with_context(|| format!("round {round}, {jump}"))?;
        for (stream, word) in streams.into_iter().zip(round * 4 + 1..) {
            let session = stream.session.clone();
            let said = replay(&cluster, 1, &session).await?.text();
            let whole: String = (0..40).map(|index| format!("~{word}:{index} ")).collect();
            ensure!(said == whole, "{jump} s: the run was interrupted: {said}");
            entries += check_stream(&cluster, 0, stream).await.with_context(|| format!("round {round}, {jump}"))?;
            sessions += 1;
        }
        std::fs::write(&clock, "+0")?;
    }
    let far = FAR.as_micros();
    let jumped = "SELECT count(*) FROM run WHERE abs(ended_at - EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)";
    ensure!(cluster.count(&format!("{jumped} > {far}")).await? > 0, "no clock jumped");
    check_all(&cluster, &ledger, sessions, entries).await
}
