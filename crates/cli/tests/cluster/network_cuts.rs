//! Nodes in network namespaces of their own, with one wire to the database and one to the model. They cannot reach each
//! other at all: everything that they do together goes through the database.

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, ensure};
use gander_domain::Event;
use gander_testkit::call_record::CallRecord;
use gander_testkit::harness::{Launch, eventually};
use gander_testkit::postgres::{DiskSync, PostgresServer, make_schema};
use gander_testkit::skip::skipped;
use gander_testkit::upstream::{Pace, Upstream};

use crate::checks;
use crate::faults::{check_all, check_stream, fault_count, start_streams};
use crate::test_cluster::{LEASE, TestCluster, schema_for};

const NODES: usize = 3;

/// How many tests of this process have laid wires.
static LAID: AtomicU32 = AtomicU32::new(0);

/// Namespaces and their wires, gone when dropped.
struct Wires {
    /// Of one test in one process alone, so that no two meet.
    number: u32,
}

/// What a wire leads to.
#[derive(Clone, Copy)]
enum Wire {
    Store,
    Model,
}

impl Wire {
    fn letter(self) -> char {
        match self {
            Self::Store => 's',
            Self::Model => 'm',
        }
    }

    fn network(self) -> u8 {
        match self {
            Self::Store => 1,
            Self::Model => 2,
        }
    }
}

impl Wires {
    /// Lays them; nothing if this machine does not allow it.
    fn lay(test: &str) -> anyhow::Result<Option<Self>> {
        // The database whose wires are cut must run.
        drop(schema_for(test));
        let wires = Self { number: std::process::id() * 2 + LAID.fetch_add(1, Ordering::Relaxed) };
        if ip(&["netns", "add", &wires.space(0)]).is_err() {
            skipped(&format!("cluster::{test}"), "network namespaces need root and iproute2");
            return Ok(None);
        }
        for node in 0..NODES {
            if node > 0 {
                ip(&["netns", "add", &wires.space(node)])?;
            }
            ip(&["-n", &wires.space(node), "link", "set", "lo", "up"])?;
            wires.lay_wire(Wire::Store, node)?;
            wires.lay_wire(Wire::Model, node)?;
        }
        Ok(Some(wires))
    }

    /// Our end has the address that every node asks, which a route leads to.
    fn lay_wire(&self, wire: Wire, node: usize) -> anyhow::Result<()> {
        let (ours, theirs, space) = (self.end(wire, node), format!("w{}", wire.letter()), self.space(node));
        let address = |host: u8| format!("{}/30", self.address(wire, node as u8 * 4 + host));
        ip(&["link", "add", &ours, "type", "veth", "peer", "name", &theirs, "netns", &space])?;
        ip(&["addr", "add", &address(1), "dev", &ours])?;
        if node == 0 {
            ip(&["addr", "add", &format!("{}/32", self.host(wire)), "dev", &ours])?;
        }
        ip(&["link", "set", &ours, "up"])?;
        ip(&["-n", &space, "addr", "add", &address(2), "dev", &theirs])?;
        ip(&["-n", &space, "link", "set", &theirs, "up"])?;
        let gateway = self.address(wire, node as u8 * 4 + 1).to_string();
        ip(&["-n", &space, "route", "add", &self.host(wire).to_string(), "via", &gateway])
    }

    /// Takes a wire away or puts it back: nothing arrives, and nobody is told.
    fn set(&self, wire: Wire, node: usize, state: &str) -> anyhow::Result<()> {
        ip(&["link", "set", &self.end(wire, node), state])
    }

    /// Where the database or the model is.
    fn host(&self, wire: Wire) -> Ipv4Addr {
        self.address(wire, 250)
    }

    fn address(&self, wire: Wire, host: u8) -> Ipv4Addr {
        let [.., high, low] = self.number.to_be_bytes();
        Ipv4Addr::new(10, high | 0x80, low, 0x40 * wire.network() + host % 0x40)
    }

    fn space(&self, node: usize) -> String {
        format!("gander-{}-{node}", self.number)
    }

    /// At most 15 characters.
    fn end(&self, wire: Wire, node: usize) -> String {
        format!("g{}{}{node}", self.number, wire.letter())
    }

    /// A launch in a node's namespace.
    fn put(&self, node: usize, launch: Launch) -> Launch {
        let within = ["ip", "netns", "exec"].into_iter().map(str::to_owned).chain([self.space(node)]).collect();
        Launch { within, ..launch }
    }
}

impl Drop for Wires {
    fn drop(&mut self) {
        for node in 0..NODES {
            ip(&["netns", "del", &self.space(node)]).ok();
        }
    }
}

fn ip(words: &[&str]) -> anyhow::Result<()> {
    let done = Command::new("ip").args(words).output().context("ip does not run")?;
    ensure!(done.status.success(), "ip {words:?}: {}", String::from_utf8_lossy(&done.stderr));
    Ok(())
}

async fn start(wires: &Wires, postgres: &PostgresServer) -> anyhow::Result<TestCluster> {
    let store = wires.host(Wire::Store).to_string();
    postgres.listen_at(&store, &format!("{}/24", wires.address(Wire::Store, 0)))?;
    let url = make_schema(&format!("postgres://gander@{store}/postgres"))?;
    let upstream = Upstream::start_at(wires.host(Wire::Model)).await?;
    let place = |node: usize, launch: Launch| {
        wires.put(node, launch.with_policy_auto("a ledger of calls that nobody has to allow"))
    };
    TestCluster::start_beside(upstream, url, NODES, place).await
}

/// A node that cannot reach the database loses its sessions to the others and finds its way back; the others lose nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_cut_off_from_the_database_is_replaced_and_comes_back() -> anyhow::Result<()> {
    let Some(wires) = Wires::lay("a_node_cut_off_from_the_database_is_replaced_and_comes_back")? else { return Ok(()) };
    let postgres = PostgresServer::start(DiskSync::Off)?;
    let cluster = start(&wires, &postgres).await?;
    let ledger = CallRecord::in_folder(&cluster.folder);
    let (mut sessions, mut entries) = (0, 0);
    for round in 0..fault_count(2) {
        let victim = (round % NODES as u64) as usize;
        let streams = start_streams(&cluster, &ledger, 100, victim, round).await?;
        wires.set(Wire::Store, victim, "down")?;
        // Every other time it is back before anybody takes over.
        tokio::time::sleep(if round % 2 == 0 { LEASE * 2 } else { LEASE / 4 }).await;
        wires.set(Wire::Store, victim, "up")?;
        cluster.all_runs_end().await.with_context(|| format!("round {round}, node {victim}"))?;
        eventually("the node that was cut off serves again", || async { cluster.client(victim).await.is_ok() }).await?;
        for stream in streams {
            sessions += 1;
            entries += check_stream(&cluster, victim, stream).await.with_context(|| format!("round {round}"))?;
        }
    }
    check_all(&cluster, &ledger, sessions, entries).await
}

/// What a node runs has stopped before another one begins: a command that writes down the time shows when.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_cut_off_stops_its_commands_before_others_begin() -> anyhow::Result<()> {
    let name = "a_node_that_is_cut_off_stops_its_commands_before_others_begin";
    let Some(wires) = Wires::lay(name)? else { return Ok(()) };
    let postgres = PostgresServer::start(DiskSync::Off)?;
    let cluster = start(&wires, &postgres).await?;
    let mut owner = cluster.client(0).await?;
    let session = owner.new_session(&cluster.folder).await?;
    let pace = Pace { deltas: 3, between_ms: 0, first_ms: 0, size: 8, word: 6 };
    let call = r#"[[call=shell|{"command":"while sleep 0.05; do date +%s%6N >> beats.txt; done"}]]"#;
    owner.prompt(&session, &format!("{call} {}", pace.marker())).await?;
    let beats = cluster.folder.join("beats.txt");
    eventually("the command runs", || async { last_beat(&beats).is_some() }).await?;
    wires.set(Wire::Store, 0, "down")?;
    cluster.all_runs_end().await?;
    wires.set(Wire::Store, 0, "up")?;
    let entries = cluster.export(1, &session).await?;
    checks::check(&entries)?;
    let done = entries.iter().find(|entry| matches!(entry.event, Event::ToolDone { .. })).context("no end")?;
    let last = last_beat(&beats).context("no beat")?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let gap = Duration::from_micros(done.at.as_micros().unsigned_abs()).checked_sub(last);
    eprintln!("the command ended {gap:?} before another node went on");
    ensure!(gap.is_some_and(|gap| gap > Duration::ZERO), "it ran on until {last:?}, taken over at {:?}", done.at);
    ensure!(now - last > Duration::from_millis(500), "it still runs");
    assert_eq!(cluster.overtaken_writes().await?, 0);
    Ok(())
}

/// When the command last wrote.
fn last_beat(path: &Path) -> Option<Duration> {
    let text = std::fs::read_to_string(path).ok()?;
    text.lines().last()?.trim().parse().ok().map(Duration::from_micros)
}
