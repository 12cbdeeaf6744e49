//! Google's Agent Development Kit over REST: what a start, a run and an event cost, beside `adk api_server`.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use gander_testkit::harness::Process;

use crate::Bench;
use crate::load::{mebibytes, millis};
use crate::report::{Bounds, Report, Row};
use crate::service::{self, PARTS, Service, Whose};

/// Runs of one session: the history that each of them reads stays short.
const OF_A_SESSION: usize = 5;

/// Beside the original: no more than it costs, and a twentieth of that is aimed at.
const BESIDE: Bounds = Bounds::RatioMost(1.0, 0.05);

/// How much is asked of a server.
#[derive(Clone, Copy, Debug)]
struct Much {
    runs: usize,
    streams: usize,
}

/// What one server costs; processor time is its own.
#[derive(Clone, Copy, Debug, Default)]
struct Costs {
    start: Duration,
    start_cpu: Duration,
    idle: f64,
    /// Milliseconds of processor time.
    run: f64,
    event: f64,
}

/// A figure's name, its unit, and how it is got.
type Column = (&'static str, &'static str, fn(&Costs) -> f64);

const COLUMNS: [Column; 5] = [
    ("spawn to listening", "ms", |costs| millis(costs.start)),
    ("processor time of a start", "ms", |costs| millis(costs.start_cpu)),
    ("memory, idle", "MiB", |costs| costs.idle),
    ("processor time of one /run", "ms", |costs| costs.run),
    ("processor time of one event of /run_sse", "ms", |costs| costs.event),
];

/// `python` is one that has google-adk.
pub(crate) async fn measure(bench: &Bench, report: &mut Report, python: Option<&Path>) -> anyhow::Result<()> {
    let ours = ours(bench, report).await?;
    let theirs = match python {
        Some(python) => Some(theirs(bench, python, report).await.context("adk api_server")?),
        None => None,
    };
    for (what, unit, pick) in COLUMNS {
        let row = Row::new(format!("adk: {what}"), pick(&ours), unit);
        report.add(match &theirs {
            Some(theirs) => row.raw(pick(theirs)).bounds(BESIDE),
            None => row,
        });
    }
    report.note(format!(
        "adk: an agent in the server's own process; {OF_A_SESSION} runs in each session; no pieces joined, so that \
         each is one event; `adk api_server` keeps everything in memory"
    ));
    Ok(())
}

async fn ours(bench: &Bench, report: &mut Report) -> anyhow::Result<Costs> {
    let root = tempfile::tempdir()?;
    let launch = bench
        .launch(root.path())?
        .with_conformance_agents()
        .with("GANDER_SERVER_OPEN", "[\"adk\"]")
        .with("GANDER_ADK_JOIN", "0s");
    let (mut start, mut start_cpu) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..bench.scale.starts {
        let server = launch.serve().await?;
        start += server.healthy_after;
        start_cpu += server.process().cpu();
        server.stop().await?;
    }
    let starts = u32::try_from(bench.scale.starts)?;
    let begun = Costs { start: start / starts, start_cpu: start_cpu / starts, ..Costs::default() };
    let server = launch.serve().await?;
    let much = Much { runs: bench.scale.turns, streams: bench.scale.rounds };
    let costs = costs(begun, server.address, server.process(), Whose::Ours, much, report).await?;
    server.kill().await?;
    Ok(costs)
}

async fn theirs(bench: &Bench, python: &Path, report: &mut Report) -> anyhow::Result<Costs> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/adk/reference/serve.py");
    let command = format!("{} {} {{port}}", python.display(), script.display());
    let (mut child, address, start) = service::start(&command).await?;
    let process = Process(child.id().context("it is gone")?);
    let begun = Costs { start, start_cpu: process.cpu(), ..Costs::default() };
    let much = Much { runs: (bench.scale.turns / 10).min(200), streams: 1 };
    let costs = costs(begun, address, process, Whose::Theirs, much, report).await?;
    child.kill().await?;
    Ok(costs)
}

async fn costs(
    begun: Costs,
    address: SocketAddr,
    process: Process,
    whose: Whose,
    much: Much,
    report: &mut Report,
) -> anyhow::Result<Costs> {
    tokio::time::sleep(Duration::from_millis(500)).await;
    let idle = mebibytes(process.memory());
    let asked = Asked { address, whose };
    asked.runs("warm", OF_A_SESSION).await?; // whatever is only loaded with the first run
    let sessions = much.runs.div_ceil(OF_A_SESSION);
    for number in 0..sessions {
        asked.session(&format!("r{number}")).await?;
    }
    let before = process.cpu();
    for number in 0..sessions {
        asked.at(&format!("r{number}"), "/run", "hello").rate(1, OF_A_SESSION).await?;
    }
    let run = millis(process.cpu() - before) / (sessions * OF_A_SESSION) as f64;
    let event = asked.events(process, much.streams, report).await?;
    Ok(Costs { idle, run, event, ..begun })
}

/// A server and whose it is.
#[derive(Clone, Copy, Debug)]
struct Asked {
    address: SocketAddr,
    whose: Whose,
}

impl Asked {
    /// Prompts to one session, under this path.
    fn at(self, session: &str, path: &str, text: &str) -> Service {
        let Self { address, whose } = self;
        let message = format!(r#"{{"role":"user","parts":[{{"text":"{text}"}}]}}"#);
        let place = format!(r#""appName":"wire","userId":"u","sessionId":"{session}""#);
        let body = |streaming: bool| format!(r#"{{{place},"newMessage":{message},"streaming":{streaming}}}"#);
        let head = format!("POST {path} HTTP/1.1\r\nhost: {address}\r\n");
        Service { address, whose, head, sync: body(false), done: "world!", stream: body(true), around: 1 }
    }

    async fn session(self, name: &str) -> anyhow::Result<()> {
        let mut made = self.at(name, "/apps/wire/users/u/sessions", "");
        (made.sync, made.done) = (format!(r#"{{"sessionId":"{name}"}}"#), "\"id\"");
        made.rate(1, 1).await.map(drop)
    }

    async fn runs(self, session: &str, runs: usize) -> anyhow::Result<()> {
        self.session(session).await?;
        self.at(session, "/run", "hello").rate(1, runs).await.map(drop)
    }

    /// Milliseconds of processor time for one event, if every one came.
    async fn events(self, process: Process, streams: usize, report: &mut Report) -> anyhow::Result<f64> {
        let (mut found, before) = (0, process.cpu());
        for number in 0..streams {
            let name = format!("s{number}");
            self.session(&name).await?;
            found += self.at(&name, "/run_sse", "many {parts}").read_stream(PARTS).await?;
        }
        let spent = millis(process.cpu() - before);
        let expected = streams * (PARTS + 1);
        match self.whose {
            Whose::Ours => drop(report.same("adk: events of streams", expected as i64, found as i64)),
            Whose::Theirs if found != expected => report.note(format!("adk: {found} of {expected} events of the peer")),
            Whose::Theirs => {}
        }
        Ok(spent / found.max(1) as f64)
    }
}
