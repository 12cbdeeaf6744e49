//! `gander fence`: the helper that puts a fence around itself and becomes a command.

use gander_tools::sandbox;

use super::flags::FenceOptions;
use crate::commands::Exit;
use crate::output::Output;

pub(super) fn run(options: &FenceOptions, output: Output) -> Exit {
    let failure = match &options.probe {
        Some(hidden) => match sandbox::probe_sandbox(&options.plan, hidden).and_then(|found| output.line(&found)) {
            Ok(()) => return Exit::Done,
            Err(error) => error,
        },
        None if options.supervise => sandbox::supervise_command(&options.command),
        None => sandbox::enter_sandbox_and_exec(&options.plan, &options.command),
    };
    output.failure(&format!("the command cannot be started in its sandbox: {failure}"));
    Exit::Failed
}
