//! Every `gander …` command that the docs show must be one that the command line accepts.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use clap::Parser;
use clap::error::ErrorKind;

use super::Cli;

#[test]
fn every_documented_command_is_accepted() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut count = 0;
    let mut wrong = Vec::new();
    for page in documented_pages(&root) {
        let text = std::fs::read_to_string(&page).unwrap();
        let commands = documented_blocks(&text)
            .chain(documented_inline(&text))
            .flat_map(|text| documented_commands(&text))
            .collect::<Vec<_>>();
        count += commands.len();
        wrong.extend(
            commands
                .iter()
                .filter_map(|words| documented_rejection(words))
                .map(|why| format!("{}: {why}", page.display())),
        );
    }
    assert!(count > 100, "only {count} commands were found: does the reader of the docs still work?");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn documented_pages(root: &Path) -> Vec<PathBuf> {
    let mut pages = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.extension().is_some_and(|ending| ending == "md") {
                true => pages.push(path),
                // Decisions and measurements tell of the past.
                false if path.is_dir() && !path.ends_with("decisions") && !path.ends_with("measurements") => {
                    folders.push(path);
                }
                false => {}
            }
        }
    }
    pages
}

/// Lines of fenced shell blocks, with continued lines joined.
fn documented_blocks(text: &str) -> impl Iterator<Item = String> {
    let mut shell = false;
    let mut lines = String::new();
    for line in text.lines() {
        match line.trim_start().strip_prefix("```") {
            Some(info) => shell = info.starts_with("sh"),
            None if shell => lines.push_str(&format!("{line}\n")),
            None => {}
        }
    }
    let joined = lines.replace("\\\n", " ");
    joined.lines().map(str::to_owned).collect::<Vec<_>>().into_iter()
}

/// Inline code that begins with the program's name.
fn documented_inline(text: &str) -> impl Iterator<Item = String> {
    let code = text.split('`').skip(1).step_by(2);
    code.filter(|code| code.starts_with("gander ")).map(str::to_owned).collect::<Vec<_>>().into_iter()
}

/// The words of each call of the program in a line of shell.
fn documented_commands(line: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some(start) = documented_call_start(rest) {
        let words = documented_words(&rest[start..]);
        rest = &rest[start + "gander".len()..];
        found.push(words);
    }
    found
}

/// Where the program is called: at the start, or after what begins another command or sets a variable.
fn documented_call_start(line: &str) -> Option<usize> {
    line.match_indices("gander ").map(|(at, _)| at).find(|at| {
        let before = line[..*at].trim_end();
        let comment = before.contains(" # ") || before.starts_with('#');
        let word = before.rsplit(' ').next().unwrap_or_default();
        let begins = before.is_empty() || before.ends_with(['|', ';', '(']) || before.ends_with("&&");
        !comment && (begins || word.contains('=') && !word.starts_with('-') && !word.contains('$'))
    })
}

/// Words as a shell would split them, up to what ends the command. Optional parts (`[--json]`) are taken as given.
fn documented_words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for character in command.chars() {
        let word = words.last_mut().unwrap();
        match (quote, character) {
            (Some(open), close) if open == close => quote = None,
            (Some(_), other) => word.push(other),
            (None, '"' | '\'') => {
                quote = Some(character);
                word.push('\u{200b}');
            }
            (None, '[' | ']') => {}
            (None, '|' | ';' | ')' | '<' | '>' | '&') => break,
            (None, '#') if word.is_empty() => break,
            (None, ' ') => words.push(String::new()),
            (None, other) => word.push(other),
        }
    }
    // The mark keeps an empty quoted word a word.
    words.retain(|word| !word.is_empty() && word != "…");
    words.iter().map(|word| word.trim_start_matches('\u{200b}').to_owned()).collect()
}

/// Why a command would not be taken. A mention without its arguments (`gander grants`) is not wrong, and neither is a
/// placeholder in place of a value.
fn documented_rejection(words: &[String]) -> Option<String> {
    let error = Cli::try_parse_from(words).err()?;
    use ErrorKind::{ArgumentConflict, InvalidSubcommand, NoEquals, UnknownArgument};
    let wrong = [UnknownArgument, InvalidSubcommand, NoEquals, ArgumentConflict].contains(&error.kind());
    wrong.then(|| format!("{}\n{error}", words.join(" ")))
}
