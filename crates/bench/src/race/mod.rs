//! Everybody in one run: the model read directly, our server and its peers, round by round, so that a busy machine hurts all alike.

mod connection;
mod contender;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use gander_testkit::harness::Process;
use gander_testkit::upstream::Pace;
use tokio::task::JoinSet;

use crate::load::{Reader, Taken, mebibytes, median, millis};
use crate::report::{Bounds, Report, Row};
use crate::{Bench, a2a, acp_rest, adk};
use contender::{Contender, Running};

/// Who takes part. Peers are installed from their registries: see docs/measurements/race.md.
#[derive(Debug, Args)]
pub(crate) struct RaceArguments {
    /// The program goose: `goose serve` takes part.
    #[arg(long, value_name = "PATH")]
    goose: Option<PathBuf>,
    /// A program that speaks ACP on its standard streams, such as `opencode=opencode acp` or `qwen=qwen --experimental-acp`.
    #[arg(long, value_name = "NAME=COMMAND")]
    agent: Vec<String>,
    /// A Python with acp-sdk, uvicorn and fastapi.
    #[arg(long, value_name = "PYTHON")]
    acp_sdk: Option<PathBuf>,
    /// An A2A server: its name, its events beside the parts, and its command with `{port}`.
    #[arg(long, value_name = "NAME=EVENTS=COMMAND")]
    a2a_peer: Vec<String>,
    /// A Python with google-adk.
    #[arg(long, value_name = "PYTHON")]
    adk_peer: Option<PathBuf>,
    /// How often everybody is measured; the median counts.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
}

/// Peers that a whole race has.
const PEERS: [&str; 8] =
    ["goose", "a2a-server-lf", "a2a-sdk", "acp-sdk", "adk api_server", "opencode", "qwen", "codex app-server"];

/// One kind of load.
#[derive(Clone, Copy, Debug)]
struct Scenario {
    name: &'static str,
    streams: usize,
    /// Turns one after the other.
    turns: usize,
    pace: Pace,
    /// Our rate beside the raw one, our CPU time in microseconds per delta, our peak in MiB.
    aims: Aims,
}

#[derive(Clone, Copy, Debug)]
struct Aims {
    rate: f64,
    first: f64,
    cpu: f64,
    peak: f64,
}

const BURST: Pace = Pace { deltas: 2_000, between_ms: 0, first_ms: 0, size: 8, word: 0 };

const SCENARIOS: [Scenario; 5] = [
    Scenario {
        name: "1 stream of 2,000",
        streams: 1,
        turns: 3,
        pace: BURST,
        aims: Aims { rate: 0.8, first: 3.0, cpu: 2.0, peak: 40.0 },
    },
    Scenario {
        name: "50 streams of 2,000",
        streams: 50,
        turns: 1,
        pace: BURST,
        aims: Aims { rate: 0.95, first: 2.0, cpu: 2.0, peak: 40.0 },
    },
    Scenario {
        name: "200 streams of 500",
        streams: 200,
        turns: 1,
        pace: Pace { deltas: 500, ..BURST },
        aims: Aims { rate: 0.9, first: 3.0, cpu: 2.0, peak: 70.0 },
    },
    Scenario {
        name: "200 streams, one delta each 20 ms",
        streams: 200,
        turns: 1,
        pace: Pace { deltas: 200, between_ms: 20, ..BURST },
        aims: Aims { rate: 0.99, first: 3.0, cpu: 15.0, peak: 70.0 },
    },
    Scenario {
        name: "1 stream, one delta each 5 ms, turns of 20",
        streams: 1,
        turns: 20,
        pace: Pace { deltas: 20, between_ms: 5, ..BURST },
        aims: Aims { rate: 0.95, first: 3.0, cpu: 60.0, peak: 40.0 },
    },
];

/// What the rounds of one contender in one scenario gave.
#[derive(Default)]
struct Samples {
    rates: Vec<f64>,
    firsts: Vec<f64>,
    cpu: Vec<f64>,
    peak: Vec<f64>,
}

/// One round.
struct Sample {
    rate: f64,
    first: f64,
    cpu: f64,
    peak: f64,
}

pub(crate) async fn measure(bench: &Bench, report: &mut Report, arguments: &RaceArguments) -> anyhow::Result<()> {
    let contenders = contenders(arguments)?;
    describe_machine(report, "before");
    note_versions(report, arguments).await;
    starts(bench, report, &contenders, arguments.rounds).await?;
    for scenario in &SCENARIOS {
        race_scenario(bench, report, &contenders, scenario, arguments.rounds).await.context(scenario.name)?;
    }
    a2a::measure(bench, report, &arguments.a2a_peer).await.context("a2a")?;
    acp_rest::measure(bench, report, arguments.acp_sdk.as_deref()).await.context("acp-rest")?;
    adk::measure(bench, report, arguments.adk_peer.as_deref()).await.context("adk")?;
    name_missing(report, arguments);
    describe_machine(report, "after");
    Ok(())
}

fn contenders(arguments: &RaceArguments) -> anyhow::Result<Vec<Contender>> {
    let mut all = vec![Contender::Ours];
    all.extend(arguments.goose.clone().map(Contender::Goose));
    for agent in &arguments.agent {
        let (name, command) = agent.split_once('=').with_context(|| format!("not NAME=COMMAND: {agent}"))?;
        all.push(Contender::Program { name: name.to_owned(), command: command.to_owned() });
    }
    Ok(all)
}

/// From the start of the process to its first answer, and what it holds then.
async fn starts(bench: &Bench, report: &mut Report, contenders: &[Contender], rounds: usize) -> anyhow::Result<()> {
    let mut times: BTreeMap<&str, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
    for _ in 0..rounds + 2 {
        for contender in contenders.iter().filter(|contender| contender.takes_many()) {
            let running = contender.start(bench).await?;
            let (start, idle) = times.entry(contender.name()).or_default();
            start.extend(running.start_time().map(millis));
            // Before anybody has connected.
            tokio::time::sleep(Duration::from_millis(600)).await;
            idle.extend(running.process().map(|process| mebibytes(process.memory())));
            running.end().await?;
        }
    }
    for (name, (start, idle)) in times {
        let ours = name == Contender::Ours.name();
        let (start, idle) = (
            Row::new(format!("{name}: spawn to listening"), median(start), "ms"),
            Row::new(format!("{name}: memory, idle"), median(idle), "MiB"),
        );
        report.add(if ours { start.bounds(Bounds::Most(20.0, 8.0)) } else { start });
        report.add(if ours { idle.bounds(Bounds::Most(21.0, 14.0)) } else { idle });
    }
    Ok(())
}

async fn race_scenario(
    bench: &Bench,
    report: &mut Report,
    contenders: &[Contender],
    scenario: &Scenario,
    rounds: usize,
) -> anyhow::Result<()> {
    let (mut raw, mut all): (Samples, BTreeMap<&str, Samples>) = Default::default();
    for _ in 0..rounds {
        raw.push(race_raw(bench, scenario).await.context("raw")?);
        for contender in contenders.iter().filter(|contender| scenario.streams == 1 || contender.takes_many()) {
            match race_contender(bench, contender, scenario).await {
                Ok(sample) => all.entry(contender.name()).or_default().push(sample),
                Err(error) if contender.name() != Contender::Ours.name() => {
                    report.note(format!("{}, {}: {error:#}", contender.name(), scenario.name));
                }
                Err(error) => return Err(error.context(contender.name().to_owned())),
            }
        }
    }
    let (rate, first) = (median(raw.rates), median(raw.firsts));
    for (name, samples) in all {
        add_rows(report, (name, scenario), samples, (rate, first));
    }
    Ok(())
}

fn add_rows(report: &mut Report, (name, scenario): (&str, &Scenario), samples: Samples, raw: (f64, f64)) {
    let aims = (name == Contender::Ours.name()).then_some(scenario.aims);
    let row = |what: &str, values, unit| Row::new(format!("{name}, {}: {what}", scenario.name), median(values), unit);
    let bounded = |row: Row, bounds: Option<Bounds>| bounds.map_or(row.clone(), |bounds| row.bounds(bounds));
    let rate = row("deltas/s", samples.rates, "/s").raw(raw.0);
    report.add(bounded(rate, aims.map(|aims| Bounds::RatioLeast(aims.rate / 2.0, aims.rate))));
    let first = row("first delta", samples.firsts, "ms").raw(raw.1);
    report.add(bounded(first, aims.map(|aims| Bounds::RatioMost(aims.first * 4.0, aims.first))));
    let cpu = row("server CPU per delta", samples.cpu, "µs");
    report.add(bounded(cpu, aims.map(|aims| Bounds::Most(aims.cpu * 3.0, aims.cpu))));
    let peak = row("peak memory", samples.peak, "MiB");
    report.add(bounded(peak, aims.map(|aims| Bounds::Most(aims.peak * 2.0, aims.peak))));
}

async fn race_raw(bench: &Bench, scenario: &Scenario) -> anyhow::Result<Sample> {
    let mut readers = Vec::new();
    for _ in 0..scenario.streams {
        readers.push(bench.mock.raw().await?);
    }
    let (rate, first) = take_turns(readers, scenario).await?;
    Ok(Sample { rate, first, cpu: 0.0, peak: 0.0 })
}

async fn race_contender(bench: &Bench, contender: &Contender, scenario: &Scenario) -> anyhow::Result<Sample> {
    let running = contender.start(bench).await?;
    let (mut readers, mut served) = (Vec::new(), Process(0));
    for _ in 0..scenario.streams {
        let (connection, process) = running.connect().await?;
        readers.push(connection);
        served = process;
    }
    // Whatever is loaded by a first turn is not what is measured.
    readers[0].turn(Pace { deltas: 5, ..BURST }).await?;
    let before = served.cpu();
    let (rate, first) = take_turns(readers, scenario).await?;
    let deltas = scenario.streams * scenario.turns * scenario.pace.deltas;
    let cpu = (served.cpu() - before).as_secs_f64() * 1e6 / deltas as f64;
    let peak = mebibytes(served.peak_memory());
    running.end().await?;
    Ok(Sample { rate, first, cpu, peak })
}

/// Lets all readers take their turns at once: deltas per second, and the median time to the first one in milliseconds.
async fn take_turns<R: Reader>(readers: Vec<R>, scenario: &Scenario) -> anyhow::Result<(f64, f64)> {
    let (start, turns, pace) = (Instant::now(), scenario.turns, scenario.pace);
    let mut work = JoinSet::new();
    for mut reader in readers {
        work.spawn(async move {
            let mut firsts = Vec::new();
            for _ in 0..turns {
                let Taken { first, .. } = reader.turn(pace).await?;
                firsts.push(millis(first));
            }
            anyhow::Ok(firsts)
        });
    }
    let mut firsts = Vec::new();
    while let Some(done) = work.join_next().await {
        firsts.extend(done??);
    }
    let deltas = (scenario.streams * turns * pace.deltas) as f64;
    Ok((deltas / start.elapsed().as_secs_f64(), median(firsts)))
}

impl Samples {
    fn push(&mut self, sample: Sample) {
        self.rates.push(sample.rate);
        self.firsts.push(sample.first);
        self.cpu.push(sample.cpu);
        self.peak.push(sample.peak);
    }
}

/// Who is not here is named: a table without a peer must not look as if there were none.
fn name_missing(report: &mut Report, arguments: &RaceArguments) {
    let has_agent = |name: &str| arguments.agent.iter().any(|agent| agent.starts_with(&format!("{name}=")));
    let has_a2a = |name: &str| arguments.a2a_peer.iter().any(|peer| peer.starts_with(&format!("{name}=")));
    for peer in PEERS {
        let here = match peer {
            "goose" => arguments.goose.is_some(),
            "acp-sdk" => arguments.acp_sdk.is_some(),
            "adk api_server" => arguments.adk_peer.is_some(),
            "codex app-server" => {
                report.note("not measured: codex app-server, which asks its model by the Responses API alone; the model of this benchmark does not speak it");
                true
            }
            other => has_agent(other) || has_a2a(other),
        };
        if !here {
            report.note(format!("not measured: {peer}, because it was not given"));
        }
    }
}

async fn note_versions(report: &mut Report, arguments: &RaceArguments) {
    let programs = arguments.goose.iter().map(|path| ("goose", path.display().to_string()));
    let agents = arguments.agent.iter().filter_map(|agent| agent.split_once('='));
    let agents = agents.filter_map(|(name, command)| Some((name, command.split_whitespace().next()?.to_owned())));
    for (name, program) in programs.chain(agents) {
        let output = tokio::process::Command::new(&program).arg("--version").output().await;
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
        report.note(format!("{name}: {}", if text.is_empty() { "version unknown" } else { &text }));
    }
}

/// Processor, memory and load of this machine, as far as it tells.
fn describe_machine(report: &mut Report, when: &str) {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
    };
    let (processor, memory) = (field(&read("/proc/cpuinfo"), "model name"), field(&read("/proc/meminfo"), "MemTotal"));
    report.note(format!("{when}: load {}, {processor}, {memory}", read("/proc/loadavg").trim()));
}

impl Running {
    /// The process of a server; a program is started for each client.
    fn process(&self) -> Option<Process> {
        match self {
            Self::Ours { server, .. } => Some(server.process()),
            Self::Goose { child, .. } => child.id().map(Process),
            Self::Program { .. } => None,
        }
    }
}
