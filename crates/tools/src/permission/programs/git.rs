//! git: what only reads, and the form in which it starts no program that a repository names.

use super::super::reads::{LineEdit, RepositoryUse};
use super::super::script::{Word, shell_quoted};
use super::super::secret_and_protected_paths::secret_path_pathspecs;
use super::git_table::GIT_COMMANDS;
use super::program_table::ReadOnlyProgram;
use super::{ParsedWords, ReadCheck};

/// Options that a command is run with, whatever else it is given. A repository's settings could otherwise name programs
/// that compare or convert files, and submodules would be looked at without what holds for the repository itself.
const SAFE_OPTIONS: [(&str, &str); 6] = [
    ("diff", " --no-ext-diff --no-textconv --ignore-submodules=dirty"),
    ("log", " --no-ext-diff --no-textconv --no-show-signature"),
    ("show", " --no-ext-diff --no-textconv --no-show-signature"),
    ("status", " --ignore-submodules=dirty"),
    ("blame", " --no-textconv"),
    ("grep", " --no-textconv --no-recurse-submodules"),
];

/// Options of `git cat-file` that show no content.
const CAT_FILE_FACTS: [&str; 3] = ["-t", "-s", "-e"];

impl ReadCheck<'_> {
    pub(super) fn check_git(&mut self, words: &[Word]) -> Result<(), String> {
        let words = match words {
            [first, rest @ ..] if first.text == "--no-pager" => rest,
            words => words,
        };
        let name = match words {
            [only] if only.text == "--version" || only.text == "version" => return Ok(()),
            [name, ..] => name,
            [] => return Err("git without a command".into()),
        };
        match words {
            [first, second] if (first.text == "stash" || first.text == "worktree") && second.text == "list" => {
                self.note_repository_use(&name.text, false);
                Ok(())
            }
            [_, rest @ ..] => {
                let program = GIT_COMMANDS.iter().find(|program| program.name == name.text);
                let program = program.ok_or_else(|| format!("not known to only look: git {}", name.text))?;
                let parsed = self.check_program(program, rest)?;
                self.check_objects(program, &parsed)?;
                self.note_repository_use(&name.text, git_shows_content(&name.text, &parsed));
                self.exclude_secrets(&name.text, &parsed, rest.last().unwrap_or(name))?;
                let options = SAFE_OPTIONS.iter().find(|(command, _)| *command == name.text);
                let at = name.span.end;
                self.reads.edits.extend(options.map(|(_, text)| LineEdit { span: at..at, text: (*text).to_owned() }));
                Ok(())
            }
            [] => Err("git without a command".into()),
        }
    }

    fn note_repository_use(&mut self, command: &str, shows_content: bool) {
        let needed = command == "diff";
        let uses = self.bases.iter().map(|base| RepositoryUse { from: base.clone(), needed, shows_content });
        self.reads.repositories.extend(uses);
    }

    /// What looks for a text in every file tells what secret files hold, word for word, even where it only counts or
    /// names them: they are left out. That cannot be done for a file that is followed through its names.
    fn exclude_secrets(&mut self, command: &str, parsed: &ParsedWords<'_>, last: &Word) -> Result<(), String> {
        let searches = command == "grep" || (command == "log" && has_short_git_option(parsed, "SG"));
        if command == "log" && has_short_git_option(parsed, "L") {
            return Err("it shows lines of a file under all its former names".into());
        }
        if !searches {
            return Ok(());
        }
        if parsed.options.contains(&"--follow") {
            return Err("it searches a file under all its former names".into());
        }
        let at = last.span.end;
        let patterns: String = secret_path_pathspecs().map(|pattern| format!(" '{pattern}'")).collect();
        self.reads.edits.push(LineEdit { span: at..at, text: patterns });
        Ok(())
    }

    /// A number may stand for the content of any file of the history: it is taken for a commit, or the line asks.
    fn check_objects(&mut self, program: &ReadOnlyProgram, parsed: &ParsedWords<'_>) -> Result<(), String> {
        let command = program.name;
        let given = parsed.options.iter().any(|option| program.is_pattern_option(option));
        let pattern = usize::from(command == "grep" && !given);
        for word in parsed.operands[..parsed.before_dashes].iter().skip(pattern) {
            let text = word.text.as_str();
            if text.contains("^{") {
                return Err(format!("it names an object of any kind: {text}"));
            }
            let number = text.split("..").any(|side| is_git_object_number(side.trim_matches(['.', '^'])));
            let only_facts =
                !parsed.options.is_empty() && parsed.options.iter().all(|option| CAT_FILE_FACTS.contains(option));
            match command {
                // Names inside of a folder of a commit are not told apart as they are in the commit itself.
                "grep" | "diff" if text.contains(':') => {
                    return Err(format!("it looks into a folder of a commit: {text}"));
                }
                "cat-file" if number && !only_facts => {
                    return Err(format!("it may show the content of any file: {text}"));
                }
                "show" | "diff" | "grep" if number => {
                    let text = shell_quoted(&git_commit_range(text));
                    self.reads.edits.push(LineEdit { span: word.span.clone(), text });
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Options by which commands that compare show something else than content; beside one that asks for content they do
/// not count.
const NO_CONTENT_OPTIONS: [&str; 10] = [
    "--stat",
    "--shortstat",
    "--numstat",
    "--summary",
    "--name-only",
    "--name-status",
    "--no-patch",
    "--raw",
    "--quiet",
    "-s",
];

/// True if it shows content of files that it was not told by name.
fn git_shows_content(command: &str, parsed: &ParsedWords<'_>) -> bool {
    let name = |option: &str| option.split('=').next().unwrap_or_default().to_owned();
    let has = |names: &[&str]| parsed.options.iter().any(|option| names.contains(&name(option).as_str()));
    let asked = has(&["--patch", "--unified", "--function-context", "--word-diff", "--check"])
        || has_short_git_option(parsed, "puUW");
    match command {
        "log" => asked,
        "diff" | "show" => asked || !has(&NO_CONTENT_OPTIONS),
        _ => false,
    }
}

/// Options of one letter that take all that follows as their value.
const VALUED_LETTERS: &str = "nUSGL";

/// True if one of these letters is among the options of one letter.
fn has_short_git_option(parsed: &ParsedWords<'_>, letters: &str) -> bool {
    let short = parsed.options.iter().filter(|option| !option.starts_with("--"));
    short.into_iter().any(|option| {
        let end = option.find(|letter| VALUED_LETTERS.contains(letter)).map_or(option.len(), |at| at + 1);
        option[..end].contains(|letter| letters.contains(letter))
    })
}

/// `abc1234` and `abc1234..def5678`, each side as a commit.
fn git_commit_range(text: &str) -> String {
    let separator = if text.contains("...") { "..." } else { ".." };
    let side = |side: &str| match is_git_object_number(side.trim_start_matches('^')) {
        true => format!("{side}^{{commit}}"),
        false => side.to_owned(),
    };
    text.split(separator).map(side).collect::<Vec<_>>().join(separator)
}

fn is_git_object_number(text: &str) -> bool {
    text.len() >= 4 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
