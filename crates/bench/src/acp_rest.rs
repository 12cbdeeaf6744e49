//! The Agent Communication Protocol: runs in one answer and as streams, beside acp-sdk's own server where there is one.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::Context;

use crate::Bench;
use crate::report::Report;
use crate::service::{self, Much, PARTS, Service, Whose};

/// Events of a stream beside its parts: created, in progress, message created, message completed, completed.
const AROUND: usize = 5;

/// acp-sdk's server slows down with every run and every part.
const LITTLE: Much = Much { runs: 700, parts: 200, streams: 0 };

pub(crate) async fn measure(bench: &Bench, report: &mut Report, reference: Option<&Path>) -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    let launch = bench.launch(root.path())?.with_conformance_agents();
    let server = launch.serve().await?;
    let token = launch.stdout(&["token"]).await?;
    let ours = service(server.address, token.trim(), Whose::Ours);
    let much = Much { runs: bench.scale.acp_rest_runs, parts: PARTS, streams: 10 };
    let figures = ours.figures(server.process(), server.healthy_after, much, report).await?;
    let mut peers = Vec::new();
    if let Some(python) = reference {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/acp-rest/reference.py");
        let command = format!("{} {} {{port}}", python.display(), script.display());
        let theirs = service::beside(&command, LITTLE, report, |address| service(address, "", Whose::Theirs)).await;
        peers.push(("acp-sdk".to_owned(), theirs.context("acp-sdk's server")?));
        report.note("acp-sdk is asked for 700 runs and a stream of 200 parts: it slows down with each");
    }
    service::add(report, "acp-rest", &figures, &peers);
    ours.never_read("acp-rest", server.process(), report).await?;
    server.kill().await?;
    Ok(())
}

fn service(address: SocketAddr, token: &str, whose: Whose) -> Service {
    let body = |agent: &str, mode: &str, text: &str| {
        let input = format!(r#"[{{"role":"user","parts":[{{"content":"{text}","content_type":"text/plain"}}]}}]"#);
        format!(r#"{{"agent_name":"{agent}","mode":"{mode}","input":{input}}}"#)
    };
    Service {
        address,
        whose,
        head: format!("POST /runs HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n"),
        sync: body("echo", "sync", "Hello"),
        done: "\"completed\"",
        stream: body("parts", "stream", "{parts}"),
        around: AROUND,
    }
}
