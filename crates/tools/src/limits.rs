//! How much a tool may take in and give out.

use std::time::Duration;

/// How much a tool may take in and give out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one call's arguments.
    pub arguments: usize,
    /// Bytes of a file that a tool takes in.
    pub file: u64,
    /// Bytes of a picture that is handed to the model.
    pub image: u64,
    /// Bytes of text that a tool tells the model.
    pub result: usize,
    /// Bytes of a command's output that are kept, half from its start and half from its end.
    pub output: usize,
    /// Lines that `read` shows unless told otherwise.
    pub lines: u32,
    /// Files that `list` names.
    pub entries: usize,
    /// Lines that `grep` finds unless told otherwise.
    pub matches: usize,
    /// How long a command may take unless told otherwise.
    pub command: Duration,
    /// How long a command may take at most.
    pub longest_command: Duration,
    /// How long a fetch may take, redirects included.
    pub fetch: Duration,
    /// Bytes of a page that are read.
    pub page: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            arguments: 512 << 10,
            file: 16 << 20,
            image: 3_750_000,
            result: 256 << 10,
            output: 64 << 10,
            lines: 2_000,
            entries: 1_000,
            matches: 200,
            command: Duration::from_secs(120),
            longest_command: Duration::from_secs(600),
            fetch: Duration::from_secs(10),
            page: 2 << 20,
        }
    }
}
