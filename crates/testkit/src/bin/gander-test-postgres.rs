//! A PostgreSQL server in a folder of its own, until ctrl-c: prints its URL, leaves nothing behind.

use std::io::Write as _;

use gander_testkit::postgres::{DiskSync, PostgresServer};

fn main() -> anyhow::Result<()> {
    let server = PostgresServer::start(DiskSync::On)?;
    let mut out = std::io::stdout();
    writeln!(out, "{}", server.url())?;
    writeln!(out, "for tests: export GANDER_TEST_POSTGRES='{}'", server.url())?;
    out.flush()?;
    // Its guard ends the server when this process is ended.
    loop {
        std::thread::park();
    }
}
