//! Programs that only read, each with the closed set of options that keeps it so.

mod filters;
mod git;
mod git_table;
mod program_table;

use std::path::{Path, PathBuf};

use self::program_table::{
    Content, Format, Letters, Listed, Names, Nothing, One, PROGRAMS, Pattern, ReadOnlyProgram, Text,
};
use super::reads::{LineReads, NamedPath};
use super::script::{SimpleCommand, Word};
use super::{WorkspaceFolders, is_secret_path, secret_and_protected_paths};

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

/// Where a command looks from and may look, and what it was found to read.
struct ReadCheck<'a> {
    bases: &'a [PathBuf],
    folders: &'a WorkspaceFolders,
    reads: &'a mut LineReads,
}

/// The words of a command, told apart.
struct ParsedWords<'a> {
    options: Vec<&'a str>,
    /// `-` is one of them: it stands where a file could.
    operands: Vec<&'a Word>,
    /// How many of the operands stand before `--`.
    before_dashes: usize,
}

impl ReadCheck<'_> {
    fn check_program<'w>(&mut self, program: &ReadOnlyProgram, words: &'w [Word]) -> Result<ParsedWords<'w>, String> {
        let parsed = self.parse_words(program, words)?;
        self.check_operands(program, &parsed)?;
        Ok(parsed)
    }

    fn parse_words<'w>(&mut self, program: &ReadOnlyProgram, words: &'w [Word]) -> Result<ParsedWords<'w>, String> {
        let mut words = words.iter();
        let mut parsed = ParsedWords { options: Vec::new(), operands: Vec::new(), before_dashes: usize::MAX };
        while let Some(word) = words.next() {
            match word.text.as_str() {
                "--" => {
                    parsed.before_dashes = parsed.operands.len();
                    parsed.operands.extend(words.by_ref());
                }
                text if text.starts_with('-') && text != "-" => {
                    reject_program_glob(word)?;
                    parsed.options.push(text);
                    let value = match program.parse_option(text)? {
                        OptionValue::None => continue,
                        OptionValue::Here(value) => value,
                        OptionValue::Next => {
                            let value = words.next().ok_or("an option lacks its value")?;
                            reject_program_glob(value)?;
                            value.text.as_str()
                        }
                    };
                    self.check_option_value(program, text, value)?;
                }
                _ => parsed.operands.push(word),
            }
        }
        parsed.before_dashes = parsed.before_dashes.min(parsed.operands.len());
        Ok(parsed)
    }

    /// Values are texts and figures; the few that name a file are looked at as such.
    fn check_option_value(&mut self, program: &ReadOnlyProgram, option: &str, value: &str) -> Result<(), String> {
        if SIGNATURE_FORMATS.iter().any(|signature| value.contains(signature)) {
            return Err(program_option_refused(program.name, value));
        }
        match program.takes_file_value(option) {
            true => self.check_path(&Word { text: value.to_owned(), ..Word::default() }),
            false => Ok(()),
        }
    }

    fn check_operands(&mut self, program: &ReadOnlyProgram, parsed: &ParsedWords<'_>) -> Result<(), String> {
        let operands = parsed.operands.as_slice();
        let has = |names: &[&str]| parsed.options.iter().any(|option| names.contains(option));
        match program.operands {
            Nothing if operands.is_empty() => Ok(()),
            Nothing => Err(format!("{} takes no words here", program.name)),
            Listed if operands.is_empty() || has(&["-l", "--list"]) => {
                operands.iter().copied().try_for_each(reject_program_glob)
            }
            Listed => Err(format!("{} would make or change something", program.name)),
            Text => operands.iter().copied().try_for_each(reject_program_glob),
            Content => self.check_files(program, parsed, operands),
            Names => operands.iter().try_for_each(|word| self.check_path(word)),
            Pattern => {
                let given = parsed.options.iter().any(|option| program.is_pattern_option(option));
                let (pattern, files) = operands.split_at(usize::from(!given).min(operands.len()));
                pattern.iter().copied().try_for_each(reject_program_glob)?;
                self.check_files(program, parsed, files)
            }
            One if operands.len() <= 1 => operands.iter().try_for_each(|word| self.check_content(word)),
            One => Err(format!("{} would write to its second file", program.name)),
            Format => match operands.iter().all(|word| word.text.starts_with('+') && !word.glob) {
                true => Ok(()),
                false => Err(format!("{} would change something", program.name)),
            },
        }
    }

    /// Files whose content is shown, or folders that are searched.
    fn check_files(
        &mut self,
        program: &ReadOnlyProgram,
        parsed: &ParsedWords<'_>,
        files: &[&Word],
    ) -> Result<(), String> {
        if !program.is_recursive(&parsed.options) {
            return files.iter().try_for_each(|word| self.check_content(word));
        }
        files.iter().try_for_each(|word| self.check_path(word))?;
        let here = Word::default();
        let here = [&here];
        for word in if files.is_empty() { here.as_slice() } else { files } {
            // Of a pattern, the folder in which it begins.
            let fixed = word.text.split('/').take_while(|name| !(word.glob && name.contains(['*', '?'])));
            let folder = fixed.collect::<Vec<_>>().join("/");
            let folders = self.bases.iter().map(|base| secret_and_protected_paths::normalize_path(&base.join(&folder)));
            let folders: Vec<PathBuf> = folders.collect();
            if program.searches_hidden(&parsed.options) || folder.split('/').any(|name| name.starts_with('.')) {
                self.reads.searched_hidden.extend(folders.iter().cloned());
            }
            self.reads.searched.extend(folders);
        }
        if program.follows_links {
            self.reads.followed.extend(self.reads.searched.iter().cloned());
        }
        Ok(())
    }

    /// A file whose content is shown. A pattern must end in a harmless ending, or it could stand for a secret. What it
    /// stands for in the folder as it is, is looked at besides.
    fn check_content(&mut self, word: &Word) -> Result<(), String> {
        let ending = word.text.rsplit(['*', '?']).next().unwrap_or_default();
        let harmless = ending.starts_with('.') && ending.len() > 1 && !is_secret_path(Path::new(&format!("x{ending}")));
        match word.glob && !harmless {
            true => Err(format!("a pattern could stand for anything: {}", word.text)),
            false => self.check_path(word),
        }
    }

    /// Something inside the workspace, wherever the command runs.
    fn check_path(&mut self, word: &Word) -> Result<(), String> {
        let text = word.text.as_str();
        let hidden_pattern =
            word.glob && text.split('/').any(|name| name.starts_with('.') && name.contains(['*', '?']));
        if hidden_pattern || text.starts_with('~') || text.split('/').any(|name| name == "..") {
            return Err(format!("it may look elsewhere: {text}"));
        }
        for base in self.bases {
            let path = secret_and_protected_paths::normalize_path(&base.join(text));
            if !self.folders.contains(&path) || ["/proc", "/sys", "/dev"].iter().any(|kernel| path.starts_with(kernel))
            {
                return Err(format!("it looks outside the workspace: {text}"));
            }
            // `HEAD:.env` names a file too.
            let versioned = text.rsplit(':').next().unwrap_or_default();
            if is_secret_path(self.folders.path_from_above(&path)) || is_secret_path(Path::new(versioned)) {
                return Err(format!("it looks at a file that may hold secrets: {text}"));
            }
            self.reads.paths.push(NamedPath { path, glob: word.glob });
        }
        Ok(())
    }
}

/// No pattern: the shell puts nothing in its folders.
fn reject_program_glob(word: &Word) -> Result<(), String> {
    match word.glob {
        true => Err(format!("a pattern stands where none is expected: {}", word.text)),
        false => Ok(()),
    }
}

/// The value of an option.
enum OptionValue<'a> {
    /// There is none.
    None,
    /// It is part of the word.
    Here(&'a str),
    /// It is the next word.
    Next,
}

impl ReadOnlyProgram {
    fn parse_option<'w>(&self, text: &'w str) -> Result<OptionValue<'w>, String> {
        let known = match text.strip_prefix("--") {
            Some(_) => self.parse_long_option(text),
            Option::None => self.parse_short_options(&text[1..]),
        };
        known.ok_or_else(|| program_option_refused(self.name, text))
    }

    /// Only whole names: what a shortened one stands for differs between versions.
    fn parse_long_option<'w>(&self, text: &'w str) -> Option<OptionValue<'w>> {
        let (name, value) = text.split_once('=').map_or((text, Option::None), |(name, value)| (name, Some(value)));
        let form = self.long.iter().find(|form| form.trim_end_matches(['=', '?']) == name)?;
        match (form.as_bytes().last(), value) {
            (Some(b'=' | b'?'), Some(value)) => Some(OptionValue::Here(value)),
            (Some(b'='), Option::None) => Some(OptionValue::Next),
            (_, Option::None) => Some(OptionValue::None),
            (_, Some(_)) => Option::None,
        }
    }

    fn parse_short_options<'w>(&self, letters: &'w str) -> Option<OptionValue<'w>> {
        // `head -20`, `git log -3`, `diff -3` differ: only those with a count know digits.
        if letters.bytes().all(|byte| byte.is_ascii_digit())
            && (self.valued.contains('n') || self.flags.contains(letters))
        {
            return Some(OptionValue::None);
        }
        for (at, letter) in letters.char_indices() {
            if self.letters == Letters::FirstOnly && at > 0 {
                return Option::None;
            }
            match letter {
                flag if self.flags.contains(flag) => {}
                valued if self.valued.contains(valued) => {
                    let rest = &letters[at + valued.len_utf8()..];
                    let figures = rest.bytes().all(|byte| byte.is_ascii_digit());
                    let as_read = match self.letters {
                        Letters::Joined => true,
                        Letters::ValueApart => rest.is_empty(),
                        Letters::FirstOnly => figures,
                    };
                    if !as_read {
                        return Option::None;
                    }
                    return Some(if rest.is_empty() { OptionValue::Next } else { OptionValue::Here(rest) });
                }
                _ => return Option::None,
            }
        }
        Some(OptionValue::None)
    }

    /// True if the value of this option is a file, as in `git log -L 1,5:file`, or could be taken for one.
    fn takes_file_value(&self, option: &str) -> bool {
        let name = option.split_once('=').map_or(option, |(name, _)| name);
        let text = match name.starts_with("--") {
            true => TEXT_OPTIONS.contains(&name),
            // The first letter that takes a value takes all that follows.
            false => option.chars().find(|letter| self.valued.contains(*letter)).is_some_and(|c| "SGe".contains(c)),
        };
        (self.strict_values && !text) || name.starts_with("--relative-")
    }

    /// True if no operand is a pattern any more. The letter must be read as the program reads it: in `rg -g.env word` the
    /// `e` is part of a value, and `word` is the pattern for everything below the folder, not the only file.
    fn is_pattern_option(&self, option: &str) -> bool {
        match option.strip_prefix("--") {
            Some(long) => ["files", "type-list"].contains(&long) || long.starts_with("regexp"),
            Option::None => option.chars().find(|letter| self.valued.contains(*letter)) == Some('e'),
        }
    }

    /// True if a search of it goes into hidden folders too. `rg` alone leaves them out, unless it is told what to search.
    fn searches_hidden(&self, options: &[&str]) -> bool {
        let told = |option: &&str| match option.strip_prefix("--") {
            Some(long) => ["hidden", "glob", "iglob"].iter().any(|name| long.starts_with(name)),
            Option::None => option.contains(['u', '.', 'g']),
        };
        self.name != "rg" || options.iter().any(told)
    }

    /// True if it reads everything below the folders that it is given.
    fn is_recursive(&self, options: &[&str]) -> bool {
        let letter = |option: &&str| !option.starts_with("--") && option.contains(self.searches_with);
        match self.searches_with {
            "" => false,
            "always" => true,
            _ => options.iter().any(|option| letter(option) || *option == "--recursive"),
        }
    }
}

/// Options of git whose values are texts.
const TEXT_OPTIONS: [&str; 13] = [
    "--format",
    "--pretty",
    "--author",
    "--committer",
    "--grep",
    "--since",
    "--until",
    "--after",
    "--before",
    "--date",
    "--diff-filter",
    "--sort",
    "--match",
];

fn program_option_refused(program: &str, option: &str) -> String {
    format!("not known to only look: {program} {option}")
}
