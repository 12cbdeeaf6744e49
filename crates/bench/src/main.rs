//! Measures the binary as it is installed, with default settings, each figure beside the raw upstream read directly in the same run.

#![allow(clippy::print_stdout, clippy::print_stderr)]

mod a2a;
mod acp;
mod acp_rest;
mod adk;
mod behind;
mod disk;
mod growth;
mod load;
mod mcp_server;
mod mock;
mod race;
mod report;
mod service;
mod sessions;
mod start;
mod streams;
mod truth;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, ensure};
use clap::{Parser, Subcommand};
use gander_testkit::harness::{Launch, data};
use gander_testkit::upstream::{Counts, serve};
use tokio::net::TcpListener;

use mock::Mock;
use report::Report;

/// Prints what gander costs beside reading the model directly.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    part: Option<Part>,
    /// Smaller numbers, for checking that everything still works.
    #[arg(long, global = true)]
    quick: bool,
    /// Only the parts whose name holds this text.
    #[arg(long)]
    only: Option<String>,
    /// Writes FILE.md and FILE.json too.
    #[arg(long, value_name = "FILE", global = true)]
    out: Option<PathBuf>,
    /// The binary to measure; otherwise one is built first as it is installed.
    #[arg(long, global = true)]
    binary: Option<PathBuf>,
    /// A Python with acp-sdk 1.0.3, uvicorn 0.35.0 and fastapi 0.116.1: its server is measured beside ours.
    #[arg(long, value_name = "PYTHON")]
    acp_sdk: Option<PathBuf>,
    /// Another A2A server, measured beside ours: its name, how many events beside the parts its streams have, and the
    /// command that starts it on `{port}`.
    #[arg(long, value_name = "NAME=EVENTS=COMMAND")]
    a2a_peer: Vec<String>,
    /// A Python with google-adk 2.13.0: `adk api_server` is measured beside ours.
    #[arg(long, value_name = "PYTHON")]
    adk_peer: Option<PathBuf>,
    /// Be the model instead: prints its address and answers until killed.
    #[arg(long, hide = true)]
    upstream: bool,
    /// Be an MCP server instead, on the standard streams.
    #[arg(long, hide = true)]
    mcp_server: bool,
}

/// What is measured instead of the usual parts.
#[derive(Debug, Subcommand)]
enum Part {
    /// Our server and its peers, round by round in one run.
    Race(race::RaceArguments),
    /// Whatever there is ten times as many of: what each costs then. Needs `ulimit -n 20000`.
    Growth,
}

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    pub(crate) starts: usize,
    pub(crate) rounds: usize,
    pub(crate) firsts: usize,
    pub(crate) idle_sessions: usize,
    pub(crate) turns: usize,
    pub(crate) sync_runs: usize,
    pub(crate) sockets: usize,
    pub(crate) acp_rest_runs: usize,
}

/// What every part needs.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) binary: PathBuf,
    /// How the binary came to be.
    pub(crate) built: &'static str,
    pub(crate) mock: Mock,
    pub(crate) scale: Scale,
}

impl Bench {
    /// The binary below this directory with default settings and the mock as its model.
    pub(crate) fn launch(&self, root: &Path) -> std::io::Result<Launch> {
        Ok(Launch::openai(&self.binary, data(root)?, &self.mock.base_url()))
    }
}

const WHOLE: Scale = Scale {
    starts: 11,
    rounds: 7,
    firsts: 101,
    idle_sessions: 10_000,
    turns: 5_000,
    sync_runs: 20_000,
    sockets: 3_000,
    acp_rest_runs: 100_000,
};
const QUICK: Scale = Scale {
    starts: 5,
    rounds: 3,
    firsts: 21,
    idle_sessions: 1_000,
    turns: 300,
    sync_runs: 5_000,
    sockets: 500,
    acp_rest_runs: 10_000,
};

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    if arguments.mcp_server {
        return mcp_server::serve();
    }
    // The model gets one thread, so that it is the same for everybody who reads it.
    let threads = if arguments.upstream { 1 } else { 2 };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
    runtime.block_on(async { if arguments.upstream { upstream().await } else { measure(&arguments).await } })
}

async fn upstream() -> anyhow::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    serve(listener, Arc::new(Counts::default())).await;
    Ok(())
}

async fn measure(arguments: &Arguments) -> anyhow::Result<()> {
    let (binary, built) = match &arguments.binary {
        Some(binary) => (binary.clone(), "a binary that was given"),
        None => (installed_binary()?, "built as it is installed"),
    };
    let scale = if arguments.quick { QUICK } else { WHOLE };
    let bench = Bench { binary, built, mock: Mock::start().await?, scale };
    let mut report = Report::new(&bench).await?;
    match &arguments.part {
        Some(Part::Race(race)) => race::measure(&bench, &mut report, race).await.context("race")?,
        Some(Part::Growth) => {
            let scale = if arguments.quick { growth::QUICK } else { growth::WHOLE };
            growth::measure(&bench, &mut report, scale).await.context("growth")?;
        }
        None => measure_parts(&bench, &mut report, arguments).await?,
    }
    println!("{}", report.markdown());
    if let Some(out) = &arguments.out {
        report.write(out)?;
    }
    ensure!(report.faults.is_empty(), "counts differ, so some figures are missing: {:?}", report.faults);
    Ok(())
}

async fn measure_parts(bench: &Bench, report: &mut Report, arguments: &Arguments) -> anyhow::Result<()> {
    let wanted = |name: &str| arguments.only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    if wanted("start") {
        start::measure(bench, report).await.context("start")?;
    }
    if wanted("streams") {
        streams::measure(bench, report).await.context("streams")?;
    }
    if wanted("acp") {
        acp::measure(bench, report).await.context("acp")?;
    }
    if wanted("idle") {
        sessions::idle(bench, report).await.context("idle")?;
    }
    if wanted("long") {
        sessions::long(bench, report).await.context("long")?;
    }
    if wanted("runs") {
        sessions::runs(bench, report).await.context("runs")?;
    }
    if wanted("a2a") {
        a2a::measure(bench, report, &arguments.a2a_peer).await.context("a2a")?;
    }
    if wanted("acp-rest") {
        acp_rest::measure(bench, report, arguments.acp_sdk.as_deref()).await.context("acp-rest")?;
    }
    if wanted("adk") {
        adk::measure(bench, report, arguments.adk_peer.as_deref()).await.context("adk")?;
    }
    if wanted("behind") {
        behind::measure(bench, report).await.context("behind")?;
    }
    Ok(())
}

/// Builds the server as its users install it.
fn installed_binary() -> anyhow::Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = std::process::Command::new(cargo)
        .args(["build", "--profile", "dist", "-p", "gander-cli", "-p", "gander-conformance"])
        .status()?;
    ensure!(status.success(), "the build failed");
    let target = std::env::current_exe()?.ancestors().nth(2).context("no target folder")?.to_owned();
    let binary = target.join("dist").join("gander");
    ensure!(binary.exists(), "no binary at {}", binary.display());
    Ok(binary)
}
