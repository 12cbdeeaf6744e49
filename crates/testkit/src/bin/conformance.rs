//! Writes `docs/conformance.md` from the results of a full run, or checks that it says what a run has shown.
//!
//! `conformance RESULTS docs/conformance.md COMMIT` writes, `conformance RESULTS docs/conformance.md` checks.

use std::path::PathBuf;

use anyhow::{Context, ensure};
use gander_testkit::conformance::Table;

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().context("which folder holds the results?")?);
    let document = PathBuf::from(arguments.next().context("which file is the table?")?);
    let table = Table::read(&folder)?;
    let faults = table.faults();
    if let Some(commit) = arguments.next() {
        std::fs::write(&document, table.markdown(&commit))?;
    } else {
        let written = std::fs::read_to_string(&document).with_context(|| document.display().to_string())?;
        let (written, found) = (Table::verdicts(&written), Table::verdicts(&table.markdown("")));
        let new: Vec<_> = found.iter().filter(|row| !written.contains(row)).collect();
        let stale: Vec<_> = written.iter().filter(|row| !found.contains(row)).collect();
        ensure!(new.is_empty() && stale.is_empty(), "run scripts/conformance\nnew {new:#?}\nstale {stale:#?}");
    }
    ensure!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    Ok(())
}
