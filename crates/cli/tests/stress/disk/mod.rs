//! A disk that fails or is full, a power cut, a clock that jumps, at the real binary: what was acknowledged is there.
//!
//! A small library stands between the server and the system (`shim.c`), so that the n-th sync really fails and what was
//! not synced is really gone. `GANDER_FAULTS=200` breaks more often.
#![allow(clippy::print_stderr)]

mod busy;
mod test_server;

use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};
use gander_testkit::harness::{Transcript, eventually, script};
use serde_json::json;
use tokio::task::JoinSet;

use test_server::{Acknowledged, TestServer, health, number, turn, work};

const CLIENTS: usize = 3;

/// P14: of a failed sync nobody knows what it left, so nothing is acknowledged after it, and the log is not written again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_sync_that_failed_nothing_is_acknowledged_and_nothing_acknowledged_is_lost() -> anyhow::Result<()> {
    let faults = number("GANDER_FAULTS", 12);
    let mut turns = 0;
    for fault in 1..=faults {
        let test_server = TestServer::open()?;
        let server = test_server.shimmed().serve().await?;
        let mut late = server.client().await?;
        let mut clients = JoinSet::new();
        test_server.arm(&format!("sync {fault}"))?;
        for index in 0..CLIENTS {
            let client = server.client().await?;
            clients.spawn(work(client, test_server.folder.clone(), format!("f{fault}-c{index}")));
        }
        let acknowledged: Vec<Acknowledged> = clients.join_all().await.into_iter().flatten().collect();
        // Later syncs would succeed; a disk that failed once is not trusted for it.
        for _ in 0..3 {
            let refused = turn(&mut late, &test_server.folder, "too late").await;
            ensure!(refused.is_err(), "acknowledged after a failed sync, fault {fault}: {refused:?}");
        }
        ensure!(health(&server).await? == 503, "green after a failed sync, fault {fault}");
        server.kill().await?;
        let server = test_server.plain().serve().await?;
        test_server.check(&test_server.plain(), &acknowledged).await.with_context(|| format!("fault {fault}"))?;
        turn(&mut server.client().await?, &test_server.folder, "as new").await?;
        turns += acknowledged.len();
    }
    eprintln!("{faults} failed syncs, {turns} acknowledged turns, all found");
    Ok(())
}

/// P14, P19: a full disk is told and health is red; when there is room again the server goes on by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_told_and_the_server_goes_on_when_there_is_room() -> anyhow::Result<()> {
    let test_server = TestServer::open()?;
    let server = test_server.shimmed().serve().await?;
    let mut client = server.client().await?;
    let mut acknowledged = vec![turn(&mut client, &test_server.folder, "before").await?];
    for round in 0..3 {
        test_server.arm("full")?;
        let refused = turn(&mut client, &test_server.folder, "no room").await;
        ensure!(refused.is_err(), "acknowledged on a full disk: {refused:?}");
        ensure!(health(&server).await? == 503, "green on a full disk");
        let mut reader = server.client().await?;
        reader.load(&acknowledged[0].session, &test_server.folder).await.context("what is stored can be read")?;
        ensure!(Transcript::of(&reader.seen, &acknowledged[0].session).text() == "before", "it is what it was");
        test_server.disarm()?;
        eventually("health is green again", || async { health(&server).await.is_ok_and(|status| status == 200) })
            .await?;
        acknowledged.push(turn(&mut client, &test_server.folder, &format!("room {round}")).await?);
    }
    test_server.check(&test_server.plain(), &acknowledged).await?;
    server.kill().await?;
    let _server = test_server.plain().serve().await?;
    test_server.check(&test_server.plain(), &acknowledged).await
}

/// P1: what was not synced is gone, what was acknowledged is not. Each cut is made on what the last one left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_power_cut_takes_nothing_that_was_acknowledged() -> anyhow::Result<()> {
    let cuts = number("GANDER_FAULTS", 12);
    let test_server = TestServer::open()?;
    let durable = test_server.root.path().join("durable");
    let mut all = Vec::new();
    for cut in 0..cuts {
        recreate(&durable)?;
        copy_log(&test_server.data, &durable)?;
        let server = test_server.shimmed().with("SHIM_DURABLE", &durable.display().to_string()).serve().await?;
        let mut clients = JoinSet::new();
        for index in 0..CLIENTS {
            let client = server.client().await?;
            clients.spawn(work(client, test_server.folder.clone(), format!("p{cut}-c{index}")));
        }
        // Some work is done at other moments than others.
        let mut recorder = server.client().await?;
        for round in 0..=cut % 4 {
            all.push(turn(&mut recorder, &test_server.folder, &format!("p{cut}-w{round}")).await?);
        }
        server.kill().await?;
        all.extend(clients.join_all().await.into_iter().flatten());
        remove_log(&test_server.data)?;
        copy_log(&durable, &test_server.data)?;
    }
    let _server = test_server.plain().serve().await?;
    test_server.check(&test_server.plain(), &all).await?;
    eprintln!("{cuts} power cuts, {} acknowledged turns, all found", all.len());
    Ok(())
}

/// P16: the order of entries comes from their numbers, and no time of day decides what happens.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_jumps_by_an_hour_changes_nothing() -> anyhow::Result<()> {
    let test_server = TestServer::open()?;
    let launch = test_server.shimmed().with("SHIM_CLOCK", "20");
    let server = launch.serve().await?;
    let mut all = Vec::new();
    let (mut client, mut other) = (server.client().await?, server.client().await?);
    for round in 0..10 {
        all.push(turn(&mut client, &test_server.folder, &format!("round {round}")).await?);
    }
    let session = client.new_session(&test_server.folder).await?;
    other.load(&session, &test_server.folder).await?;
    let text = script(&[json!([{"text": "~0123456789", "repeat": 100, "delay_ms": 3}])]);
    ensure!(client.turn(&session, &text).await? == "end_turn", "the long turn ends");
    let seen = Transcript::of(&client.seen, &session);
    ensure!(seen.text().matches('~').count() == 100, "nothing is missing");
    while Transcript::of(&other.seen, &session).items != seen.items {
        other.receive().await?.context("another client lost the stream")?;
    }
    server.kill().await?;
    let server = launch.serve().await?;
    test_server.check(&launch, &all).await?;
    let mut reader = server.client().await?;
    reader.load(&session, &test_server.folder).await?;
    ensure!(Transcript::of(&reader.seen, &session).items == seen.items, "replay is what was seen");
    Ok(())
}

fn recreate(folder: &Path) -> anyhow::Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    Ok(fs::create_dir(folder)?)
}

fn copy_log(from: &Path, to: &Path) -> anyhow::Result<()> {
    for name in ["log.db", "log.db-wal"] {
        if from.join(name).exists() {
            fs::copy(from.join(name), to.join(name))?;
        }
    }
    Ok(())
}

fn remove_log(data: &Path) -> anyhow::Result<()> {
    for name in ["log.db", "log.db-wal", "log.db-shm"] {
        if data.join(name).exists() {
            fs::remove_file(data.join(name))?;
        }
    }
    Ok(())
}
