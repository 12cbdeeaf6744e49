//! Rosetta vectors: one scenario's log, and beside it what each protocol makes of it.
//!
//! `vectors/<scenario>/log.jsonl` is the input, one entry per line; every other file is expected output.
//! `UPDATE=1` rewrites the expected files, except where `CI` is set.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use gander_domain::Entry;

/// One scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The name of its folder.
    pub name: String,
    /// Its log.
    pub log: Vec<Entry>,
    folder: PathBuf,
}

/// Every scenario below this folder, by name.
pub fn scenarios(root: &Path) -> anyhow::Result<Vec<Scenario>> {
    let mut folders = Vec::new();
    for entry in fs::read_dir(root).with_context(|| root.display().to_string())? {
        folders.push(entry?.path());
    }
    folders.sort();
    ensure!(!folders.is_empty(), "no scenarios in {}", root.display());
    folders.into_iter().filter(|folder| folder.is_dir()).map(Scenario::read).collect()
}

impl Scenario {
    /// Compares what a protocol made of the log with its expected file.
    pub fn check(&self, file: &str, lines: &[String]) -> anyhow::Result<()> {
        let path = self.folder.join(file);
        let found: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let expected = fs::read_to_string(&path).unwrap_or_default();
        if found == expected && path.exists() {
            return Ok(());
        }
        if std::env::var_os("UPDATE").is_some_and(|update| update == "1") {
            ensure!(std::env::var_os("CI").is_none(), "UPDATE=1 is refused under CI");
            return fs::write(&path, found).with_context(|| path.display().to_string());
        }
        bail!("{}: {}\nUPDATE=1 rewrites it", path.display(), first_difference(&expected, &found))
    }

    fn read(folder: PathBuf) -> anyhow::Result<Self> {
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let path = folder.join("log.jsonl");
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let mut log = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let place = || format!("{}:{}", path.display(), number + 1);
            let entry: Entry = serde_json::from_str(line).with_context(place)?;
            ensure!(serde_json::to_string(&entry)? == line, "{}: does not survive a round trip", place());
            log.push(entry);
        }
        Ok(Self { name, log, folder })
    }
}

fn first_difference(expected: &str, found: &str) -> String {
    let (mut expected, mut found) = (expected.lines(), found.lines());
    for number in 1.. {
        let (expected, found) = (expected.next(), found.next());
        if expected != found || expected.is_none() {
            let show = |line: Option<&str>| line.unwrap_or("(nothing)").to_owned();
            return format!("line {number}\n expected {}\n found    {}", show(expected), show(found));
        }
    }
    String::new()
}
