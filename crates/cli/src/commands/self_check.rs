//! `gander self check`: whether the installed files are whole; `gander --version --verbose`: what they are.

use std::ffi::OsString;
use std::path::Path;

use anyhow::Context as _;
use clap::Subcommand;
use sha2::{Digest as _, Sha256};

use super::{Context, Exit};
use crate::output::Output;

/// Stands between a packaged binary and its hash. The same bytes are in `xtask/src/dist/mod.rs`.
const CHECKSUM_MARK: &[u8; 16] = b"\0gander-sha256:\0";
const HASH_BYTES: usize = 32;

#[derive(Debug, Subcommand)]
pub(super) enum SelfCommand {
    /// Check that the program is as it was packaged, and that what it contains is there
    #[command(after_help = "\
Exit status: 0 whole or built from source, 1 damaged.")]
    Check,
}

/// What the end of a program's file says of the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BinaryState {
    Whole,
    Damaged,
    /// It was not packaged: there is nothing to compare with.
    NotPackaged,
}

/// The commit, which is told where packages are made: a build from source does not ask git.
const PACKAGED_COMMIT: Option<&str> = option_env!("GANDER_COMMIT");

pub(super) async fn run(context: Context, command: SelfCommand) -> anyhow::Result<Exit> {
    let SelfCommand::Check = command;
    let path = std::env::current_exe().context("cannot find the program's own file")?;
    let state = self_check_binary(&path)?;
    let (exit, said) = self_check_verdict(state, PACKAGED_COMMIT);
    context.output.line(&format!("program     {} {said}", path.display()))?;
    for line in self_check_version_lines().await? {
        context.output.line(&line)?;
    }
    Ok(exit)
}

/// A binary that was made for a package and has no checksum has lost its end.
fn self_check_verdict(state: BinaryState, packaged_commit: Option<&str>) -> (Exit, &'static str) {
    match (state, packaged_commit) {
        (BinaryState::Whole, _) => (Exit::Done, "whole: its checksum matches"),
        (BinaryState::Damaged, _) => (Exit::Failed, "DAMAGED: its checksum does not match; install it again"),
        (BinaryState::NotPackaged, Some(_)) => {
            (Exit::Failed, "DAMAGED: its checksum is missing, as if the file was cut short; install it again")
        }
        (BinaryState::NotPackaged, None) => (Exit::Done, "built from source: there is no checksum to compare with"),
    }
}

fn self_check_binary(path: &Path) -> anyhow::Result<BinaryState> {
    let binary = std::fs::read(path).with_context(|| format!("cannot read: {}", path.display()))?;
    Ok(self_check_state(&binary))
}

fn self_check_state(binary: &[u8]) -> BinaryState {
    let Some((marked, hash)) = binary.split_last_chunk::<HASH_BYTES>() else { return BinaryState::NotPackaged };
    match marked.strip_suffix(CHECKSUM_MARK) {
        Some(program) if Sha256::digest(program)[..] == hash[..] => BinaryState::Whole,
        Some(_) => BinaryState::Damaged,
        None => BinaryState::NotPackaged,
    }
}

/// Whether the words ask for the long form of the version: clap prints the short one as soon as it sees `--version`.
pub(super) fn self_check_asks_for_version(words: impl Iterator<Item = OsString>) -> bool {
    let words: Vec<OsString> = words.skip(1).collect();
    words.len() == 2
        && words.iter().any(|word| word == "--version" || word == "-V")
        && words.iter().any(|word| word == "--verbose" || word == "-v")
}

pub(super) async fn print_self_check_version(output: Output) -> anyhow::Result<Exit> {
    output.line(&format!("gander {}", gander::VERSION))?;
    for line in self_check_version_lines().await? {
        output.line(&line)?;
    }
    Ok(Exit::Done)
}

async fn self_check_version_lines() -> anyhow::Result<Vec<String>> {
    let page = if gander_http::page::is_page_built() {
        "the full one"
    } else {
        "the small one (cargo xtask web builds the full one)"
    };
    let features = if cfg!(feature = "genai") { "genai" } else { "none" };
    Ok(vec![
        format!("version     {}", gander::VERSION),
        format!("commit      {}", PACKAGED_COMMIT.unwrap_or("not recorded: built from source")),
        format!("platform    {} {}", std::env::consts::OS, std::env::consts::ARCH),
        format!("features    {features}"),
        format!("SQLite      {}", gander_store::sqlite::library_version()),
        format!("web page    {page}"),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packaged(program: &[u8]) -> Vec<u8> {
        [program, CHECKSUM_MARK, &Sha256::digest(program)[..]].concat()
    }

    #[test]
    fn one_changed_byte_is_noticed() {
        let whole = packaged(b"\x7fELF and so on");
        assert_eq!(self_check_state(&whole), BinaryState::Whole);
        for at in [0, 5, whole.len() - 1] {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            assert_eq!(self_check_state(&damaged), BinaryState::Damaged, "byte {at}");
        }
        assert_eq!(self_check_state(b"\x7fELF"), BinaryState::NotPackaged);
        assert_eq!(self_check_state(&[7; 100]), BinaryState::NotPackaged);
    }

    #[test]
    fn a_packaged_program_that_was_cut_short_is_damaged() {
        let mut cut = packaged(b"\x7fELF and so on");
        cut.truncate(cut.len() - 1);
        let state = self_check_state(&cut);
        assert_eq!(self_check_verdict(state, Some("c0ffee")).0, Exit::Failed);
        assert_eq!(self_check_verdict(state, None).0, Exit::Done);
        assert_eq!(self_check_verdict(BinaryState::Whole, Some("c0ffee")).0, Exit::Done);
    }

    #[test]
    fn the_long_version_is_asked_for_by_two_words() {
        let asks = |line: &str| self_check_asks_for_version(line.split(' ').map(OsString::from));
        assert!(asks("gander --version --verbose") && asks("gander -V -v") && asks("gander --verbose --version"));
        assert!(!asks("gander --version") && !asks("gander run --version") && !asks("gander --verbose"));
    }
}
