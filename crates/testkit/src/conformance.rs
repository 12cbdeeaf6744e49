//! What the tests show of each protocol, written down while they run: `docs/conformance.md` is made from it.
//!
//! One test of a protocol lists what the protocol consists of, from its schema or SDK ([`ConformanceRecorder::lists`]). Others
//! show items on the wire ([`ConformanceRecorder::shows`]), or that an item is refused honestly ([`ConformanceRecorder::refuses`]).
//! Nothing is written unless `GANDER_CONFORMANCE` names a folder, as `scripts/conformance` and the build machine do.

pub mod acp;
mod table;

use std::collections::HashSet;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use table::{Table, Verdict};

/// The folder that results are written to.
const FOLDER: &str = "GANDER_CONFORMANCE";

/// One thing that one test says about one item of a protocol.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Record {
    /// Such as `acp`.
    pub protocol: String,
    /// Such as `method`.
    pub group: String,
    /// Such as `session/new`.
    pub item: String,
    /// What of it.
    pub said: Said,
    /// The test that says so.
    pub test: String,
}

/// What a test says about an item.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    /// The protocol has it.
    Listed,
    /// It works, seen this way, such as `stdio`.
    Shown(String),
    /// It is refused as the protocol wants, for this reason.
    Refused(String),
}

/// What one test sees of one protocol.
#[derive(Clone, Debug)]
pub struct ConformanceRecorder {
    protocol: &'static str,
    test: String,
    file: Option<PathBuf>,
    written: HashSet<Record>,
}

impl ConformanceRecorder {
    /// Of this protocol, in the test that runs on this thread.
    pub fn for_protocol(protocol: &'static str) -> Self {
        let (program, thread) = (program(), std::thread::current());
        let test = match thread.name() {
            Some("main") | None => program.clone(),
            Some(name) if name.starts_with("tokio") => program.clone(),
            // Modules tell which test it is; the binary that holds them is how cargo links it.
            Some(name) if name.contains("::") => name.to_owned(),
            Some(name) => format!("{program}::{name}"),
        };
        let folder = std::env::var_os(FOLDER).filter(|folder| !folder.is_empty());
        let file = folder.map(|folder| PathBuf::from(folder).join(format!("{program}-{}.jsonl", std::process::id())));
        Self { protocol, test, file, written: HashSet::new() }
    }

    /// The protocol consists of these items, among others.
    pub fn lists<S: AsRef<str>>(&mut self, group: &str, items: impl IntoIterator<Item = S>) {
        items.into_iter().for_each(|item| self.write(group, item.as_ref(), Said::Listed));
    }

    /// It works. What the protocol does not list is not counted.
    pub fn shows(&mut self, group: &str, item: &str, how: &str) {
        self.write(group, item, Said::Shown(how.to_owned()));
    }

    /// It is refused, in the way that the protocol wants, because of this.
    pub fn refuses(&mut self, group: &str, item: &str, reason: &str) {
        self.write(group, item, Said::Refused(reason.to_owned()));
    }

    /// Each fact once; a result that cannot be written is missing from the table, and that fails there.
    fn write(&mut self, group: &str, item: &str, said: Said) {
        let Some(file) = &self.file else { return };
        let (protocol, test) = (self.protocol.to_owned(), self.test.clone());
        let record = Record { protocol, group: group.to_owned(), item: item.to_owned(), said, test };
        if self.written.contains(&record) {
            return;
        }
        let appended: io::Result<()> = OpenOptions::new().create(true).append(true).open(file).and_then(|mut file| {
            let line = serde_json::to_string(&record)?;
            file.write_all(format!("{line}\n").as_bytes())
        });
        if appended.is_ok() {
            self.written.insert(record);
        }
    }
}

/// The name of this test binary, without cargo's hash.
fn program() -> String {
    let path = std::env::current_exe().unwrap_or_default();
    let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    name.rsplit_once('-').map_or(name.clone(), |(name, _)| name.to_owned())
}
