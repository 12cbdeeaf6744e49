//! The `gander` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    gander_server::cli::main()
}
