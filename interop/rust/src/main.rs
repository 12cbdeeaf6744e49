//! Drives gander with the official Rust SDK of the Agent Client Protocol: versions 1 and 2, each over stdio, HTTP and WebSocket.

mod test_server;
mod v1;
mod v2;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use test_server::{TestServer, Transport};

/// What a case may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a case ends with.
pub type Verdict = Result<(), agent_client_protocol::Error>;

/// One case: it drives the test_server over a transport.
pub type Case = for<'a> fn(&'a TestServer, Transport) -> Pin<Box<dyn Future<Output = Verdict> + 'a>>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let gander = std::env::args().nth(1).ok_or("usage: gander-interop-rust PATH-OF-GANDER")?;
    let test_server = TestServer::open(gander).await?;
    for transport in [Transport::Stdio, Transport::Http, Transport::WebSocket] {
        for (version, cases) in [("v1", v1::CASES), ("v2", v2::CASES)] {
            for (name, case) in cases {
                let verdict = match tokio::time::timeout(PATIENCE, case(&test_server, transport)).await {
                    Ok(Ok(())) => "pass".to_owned(),
                    Ok(Err(error)) => format!("{error:?}"),
                    Err(_) => "took too long".to_owned(),
                };
                let name = format!("{}_{version}_{name}", transport.name());
                match verdict.as_str() {
                    "pass" => println!("pass {name}"),
                    reason => println!("fail {name} {}", reason.replace('\n', " ")),
                }
            }
        }
    }
    test_server.close().await;
    Ok(())
}

/// Turns what must hold into a verdict.
pub fn demand(holds: bool, what: impl std::fmt::Debug) -> Verdict {
    match holds {
        true => Ok(()),
        false => Err(agent_client_protocol::Error::internal_error().data(format!("{what:?}"))),
    }
}
