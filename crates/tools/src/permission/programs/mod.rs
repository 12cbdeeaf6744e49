//! Programs that only read, each with the closed set of options that keeps it so.

mod find_sed_awk;
mod git;
mod git_table;
mod program_table;
mod read_check;
mod read_only_program;

use std::path::PathBuf;

use self::program_table::PROGRAMS;
use super::WorkspaceFolders;
use super::reads::LineReads;
use super::script::{SimpleCommand, Word};
use read_check::{ParsedWords, ReadCheck};
use read_only_program::OptionValue;

/// In a format they make git ask a program for a signature.
const SIGNATURE_FORMATS: [&str; 2] = ["%G", "signature"];

/// Fine if the command only reads, and only inside the workspace, wherever of these it runs; else why not.
pub(super) fn check_only_reads(
    command: &SimpleCommand,
    bases: &[PathBuf],
    folders: &WorkspaceFolders,
    reads: &mut LineReads,
) -> Result<(), String> {
    let mut check = ReadCheck { bases, folders, reads };
    let (program, words) = command.words.split_first().ok_or("a command is empty")?;
    if program.glob {
        return Err("the name of a program is a pattern".into());
    }
    match (program.text.as_str(), words) {
        ("cd", [target]) if !target.glob && !target.text.starts_with('-') => check.check_path(target),
        ("command", [flag, name]) if flag.text == "-v" && !name.glob && !name.text.starts_with('-') => Ok(()),
        ("echo" | "true" | "false" | ":", words) => words.iter().try_for_each(reject_program_glob),
        ("printf", [format, words @ ..]) => check.check_printf(format, words),
        ("test", words) => check.check_test(words),
        ("find", words) => check.check_find(words),
        ("sed", words) => check.check_sed(words),
        ("awk", words) => check.check_awk(words),
        ("git", words) => check.check_git(words),
        (name, words) => match PROGRAMS.iter().find(|program| program.name == name) {
            Some(program) => check.check_program(program, words).map(drop),
            Option::None => Err(format!("not known to only look: {name}")),
        },
    }
}

/// The names of the programs of which some form only reads, commands of git as `git log`.
pub fn read_only_programs() -> Vec<String> {
    let own = ["echo", "printf", "test", "find", "sed", "awk"].into_iter();
    let git = git_table::GIT_COMMANDS.iter().map(|command| format!("git {}", command.name));
    own.chain(PROGRAMS.iter().map(|program| program.name)).map(str::to_owned).chain(git).collect()
}

/// No pattern: the shell puts nothing in its folders.
fn reject_program_glob(word: &Word) -> Result<(), String> {
    match word.glob {
        true => Err(format!("a pattern stands where none is expected: {}", word.text)),
        false => Ok(()),
    }
}

fn program_option_refused(program: &str, option: &str) -> String {
    format!("not known to only look: {program} {option}")
}
