//! A2A over JSON-RPC: messages answered and streamed, beside other servers whose commands are given.

use std::net::SocketAddr;

use anyhow::Context;

use crate::Bench;
use crate::report::Report;
use crate::service::{self, Much, PARTS, Service, Whose};

/// What a stream tells beside its parts: the task, that it works, that the artifact is whole, that it is over.
const AROUND: usize = 4;

/// Those that keep every task in memory get fewer.
const LITTLE: Much = Much { runs: 2_000, parts: PARTS, streams: 10 };

/// `peers` are `NAME=AROUND=COMMAND`: how many events beside the parts its streams have, and how it is started.
pub(crate) async fn measure(bench: &Bench, report: &mut Report, peers: &[String]) -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    let launch = bench
        .launch(root.path())?
        .with_conformance_agents()
        .with("GANDER_SERVER_OPEN", "[\"a2a\"]")
        .with("GANDER_A2A_AGENT", "tck");
    let server = launch.serve().await?;
    let ours = service(server.address, "/a2a", AROUND, Whose::Ours);
    let much = Much { runs: bench.scale.acp_rest_runs, parts: PARTS, streams: 10 };
    let figures = ours.figures(server.process(), server.healthy_after, much, report).await?;
    let mut measured = Vec::new();
    for peer in peers {
        let mut pieces = peer.splitn(3, '=');
        let mut next = || pieces.next().with_context(|| format!("not NAME=AROUND=COMMAND: {peer}"));
        let (name, around, command) = (next()?, next()?.parse()?, next()?);
        let theirs =
            service::beside(command, LITTLE, report, |address| service(address, "/", around, Whose::Theirs)).await;
        measured.push((name.to_owned(), theirs.with_context(|| name.to_owned())?));
    }
    service::add(report, "A2A", &figures, &measured);
    ours.never_read("A2A", server.process(), report).await?;
    server.kill().await?;
    Ok(())
}

fn service(address: SocketAddr, path: &str, around: usize, whose: Whose) -> Service {
    let body = |method: &str, text: &str| {
        let message = format!(r#"{{"messageId":"b","role":"ROLE_USER","parts":[{{"text":"{text}"}}]}}"#);
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"message":{message}}}}}"#)
    };
    Service {
        address,
        whose,
        head: format!("POST {path} HTTP/1.1\r\nhost: {address}\r\na2a-version: 1.0\r\n"),
        sync: body("SendMessage", "Hello"),
        done: "TASK_STATE_COMPLETED",
        stream: body("SendStreamingMessage", "parts {parts}"),
        around,
    }
}
