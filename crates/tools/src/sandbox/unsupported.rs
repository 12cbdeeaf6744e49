//! The helper on systems that have none of this: it fences nothing, and says so.

use std::ffi::OsString;
use std::io;
use std::path::Path;

/// Never becomes the command.
pub fn enter_sandbox_and_exec(_plan: &str, _command: &[OsString]) -> io::Error {
    io::Error::other("there is no sandbox on this system")
}

/// Never starts it.
pub fn supervise_command(_command: &[OsString]) -> io::Error {
    io::Error::other("there is no sandbox on this system")
}

/// Never holds.
pub fn probe_sandbox(_plan: &str, _hidden: &Path) -> io::Result<String> {
    Err(io::Error::other("there is no sandbox on this system"))
}
