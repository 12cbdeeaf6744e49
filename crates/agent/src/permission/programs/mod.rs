//! Programs that only look, each with the closed set of options that keeps it so.

mod table;

use std::path::{Path, PathBuf};

use self::table::{
    Content, FIND_FLAGS, FIND_VALUED, Format, GIT, Names, Nothing, One, PROGRAMS, Pattern, Program, Text,
};
use super::script::{Simple, Word};
use super::{Place, is_secret, paths};

/// In a format it makes git ask a program for a signature.
const SIGNATURE: &str = "%G";

/// Fine if the command only looks, and only inside the workspace, wherever of these it runs; else why not.
pub(super) fn looks(command: &Simple, bases: &[PathBuf], place: &Place) -> Result<(), String> {
    let sight = Sight { bases, place };
    let (program, words) = command.words.split_first().ok_or("a command is empty")?;
    if program.glob {
        return Err("the name of a program is a pattern".into());
    }
    match (program.text.as_str(), words) {
        ("cd", [target]) if !target.glob && !target.text.starts_with('-') => sight.path(target),
        ("command", [flag, name]) if flag.text == "-v" && !name.glob && !name.text.starts_with('-') => Ok(()),
        ("echo" | "true" | "false" | ":", words) => words.iter().try_for_each(|word| sight.fixed(word)),
        ("find", words) => sight.find(words),
        ("sed", words) => sight.sed(words),
        ("git", words) => sight.git(words),
        (name, words) => match PROGRAMS.iter().find(|program| program.name == name) {
            Some(program) => sight.program(program, words),
            Option::None => Err(format!("not known to only look: {name}")),
        },
    }
}

/// Where a command looks from and may look.
struct Sight<'a> {
    bases: &'a [PathBuf],
    place: &'a Place,
}

impl Sight<'_> {
    fn git(&self, words: &[Word]) -> Result<(), String> {
        let words = match words {
            [first, rest @ ..] if first.text == "--no-pager" => rest,
            words => words,
        };
        match words {
            [only] if only.text == "--version" => Ok(()),
            [first, second] if (first.text == "stash" || first.text == "worktree") && second.text == "list" => Ok(()),
            [name, rest @ ..] => match GIT.iter().find(|program| program.name == name.text) {
                Some(program) => self.program(program, rest),
                Option::None => Err(format!("not known to only look: git {}", name.text)),
            },
            [] => Err("git without a command".into()),
        }
    }

    fn find(&self, words: &[Word]) -> Result<(), String> {
        let is_test = |word: &Word| word.text.starts_with('-') || ["!", "(", ")"].contains(&word.text.as_str());
        let tests = words.iter().position(is_test).unwrap_or(words.len());
        words[..tests].iter().try_for_each(|word| self.fixed(word).and_then(|()| self.path(word)))?;
        let mut tests = words[tests..].iter();
        while let Some(test) = tests.next() {
            self.fixed(test)?;
            match test.text.as_str() {
                flag if FIND_FLAGS.contains(&flag) => {}
                valued if FIND_VALUED.contains(&valued) => {
                    self.fixed(tests.next().ok_or("an option lacks its value")?)?
                }
                other => return Err(option_refused("find", other)),
            }
        }
        Ok(())
    }

    /// Only `sed -n 1,20p files`: everything else of it can write or run.
    fn sed(&self, words: &[Word]) -> Result<(), String> {
        let address = |text: &str| text == "$" || (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()));
        let print = |script: &str| {
            script.strip_suffix('p').is_some_and(|range| match range.split_once(',') {
                Some((from, to)) => address(from) && address(to),
                Option::None => address(range),
            })
        };
        match words {
            [quiet, script, files @ ..] if quiet.text == "-n" && !script.glob && print(&script.text) => {
                files.iter().try_for_each(|file| match file.text.starts_with('-') {
                    true => Err(option_refused("sed", &file.text)),
                    false => self.content(file),
                })
            }
            _ => Err("sed can write and run: only `sed -n 1,20p` is known to look".into()),
        }
    }

    fn program(&self, program: &Program, words: &[Word]) -> Result<(), String> {
        let mut words = words.iter();
        let mut operands = Vec::new();
        let mut pattern_given = false;
        while let Some(word) = words.next() {
            match word.text.as_str() {
                "--" => operands.extend(words.by_ref()),
                "-" => {}
                text if text.starts_with('-') => {
                    self.fixed(word)?;
                    pattern_given |= gives_pattern(text);
                    if let Value::Next = program.option(text)? {
                        let value = words.next().ok_or("an option lacks its value")?;
                        self.fixed(value)?;
                        if value.text.contains(SIGNATURE) {
                            return Err(option_refused(program.name, &value.text));
                        }
                        if !is_pattern_option(text) {
                            self.path(value)?;
                        }
                    }
                }
                _ => operands.push(word),
            }
        }
        self.operands(program, pattern_given, &operands)
    }

    fn operands(&self, program: &Program, pattern_given: bool, operands: &[&Word]) -> Result<(), String> {
        match program.operands {
            Nothing if operands.is_empty() => Ok(()),
            Nothing => Err(format!("{} takes no words here", program.name)),
            Text => operands.iter().try_for_each(|word| self.fixed(word)),
            Content => operands.iter().try_for_each(|word| self.content(word)),
            Names => operands.iter().try_for_each(|word| self.path(word)),
            Pattern => {
                let (pattern, files) = operands.split_at(usize::from(!pattern_given).min(operands.len()));
                pattern.iter().try_for_each(|word| self.fixed(word))?;
                files.iter().try_for_each(|word| self.content(word))
            }
            One if operands.len() <= 1 => operands.iter().try_for_each(|word| self.content(word)),
            One => Err(format!("{} would write to its second file", program.name)),
            Format => match operands.iter().all(|word| word.text.starts_with('+') && !word.glob) {
                true => Ok(()),
                false => Err(format!("{} would change something", program.name)),
            },
        }
    }

    /// No pattern: the shell puts nothing in its place.
    fn fixed(&self, word: &Word) -> Result<(), String> {
        match word.glob {
            true => Err(format!("a pattern stands where none is expected: {}", word.text)),
            false => Ok(()),
        }
    }

    /// A file whose content is shown. A pattern must end in a harmless ending, or it could stand for a secret,
    /// and begin with a letter, or it could stand for an option.
    fn content(&self, word: &Word) -> Result<(), String> {
        let ending = word.text.rsplit(['*', '?']).next().unwrap_or_default();
        let harmless = ending.starts_with('.') && ending.len() > 1 && !is_secret(Path::new(&format!("x{ending}")));
        match word.glob && (!harmless || word.text.starts_with(['*', '?'])) {
            true => Err(format!("a pattern could stand for anything: {}", word.text)),
            false => self.path(word),
        }
    }

    /// Something inside the workspace, wherever the command runs.
    fn path(&self, word: &Word) -> Result<(), String> {
        let text = word.text.as_str();
        let hidden_pattern =
            word.glob && text.split('/').any(|name| name.starts_with('.') && name.contains(['*', '?']));
        if hidden_pattern || text.starts_with('~') || text.split('/').any(|name| name == "..") {
            return Err(format!("it may look elsewhere: {text}"));
        }
        let found = self.bases.iter().map(|base| paths::normal(&base.join(text)));
        for path in found {
            if !self.place.holds(&path) || ["/proc", "/sys", "/dev"].iter().any(|kernel| path.starts_with(kernel)) {
                return Err(format!("it looks outside the workspace: {text}"));
            }
            // `HEAD:.env` names a file too.
            let versioned = text.rsplit(':').next().unwrap_or_default();
            if is_secret(self.place.inner(&path)) || is_secret(Path::new(versioned)) {
                return Err(format!("it looks at a file that may hold secrets: {text}"));
            }
        }
        Ok(())
    }
}

/// Where an option's value is.
enum Value {
    /// There is none, or it is part of the word.
    Here,
    /// It is the next word.
    Next,
}

impl Program {
    fn option(&self, text: &str) -> Result<Value, String> {
        let known = match text.strip_prefix("--") {
            Some(_) => self.long_option(text),
            Option::None => self.short_options(&text[1..]),
        };
        known.ok_or_else(|| option_refused(self.name, text))
    }

    fn long_option(&self, text: &str) -> Option<Value> {
        let (name, value) = text.split_once('=').map_or((text, Option::None), |(name, value)| (name, Some(value)));
        let form = self.long.iter().find(|form| form.trim_end_matches(['=', '?']) == name)?;
        match (form.as_bytes().last(), value) {
            (_, Some(value)) if value.contains(SIGNATURE) => Option::None,
            (Some(b'='), Option::None) => Some(Value::Next),
            (Some(b'=' | b'?'), _) | (_, Option::None) => Some(Value::Here),
            (_, Some(_)) => Option::None,
        }
    }

    fn short_options(&self, letters: &str) -> Option<Value> {
        // `head -20`, `git log -3`, `diff -3` differ: only those with a count know digits.
        if letters.bytes().all(|byte| byte.is_ascii_digit())
            && (self.valued.contains('n') || self.flags.contains(letters))
        {
            return Some(Value::Here);
        }
        for (at, letter) in letters.char_indices() {
            match letter {
                flag if self.flags.contains(flag) => {}
                valued if self.valued.contains(valued) => {
                    return Some(if at + valued.len_utf8() == letters.len() { Value::Next } else { Value::Here });
                }
                _ => return Option::None,
            }
        }
        Some(Value::Here)
    }
}

/// With it no operand is a pattern any more. Too often true is only too strict.
fn gives_pattern(option: &str) -> bool {
    match option.strip_prefix("--") {
        Some(long) => ["files", "type-list"].contains(&long) || long.starts_with("regexp"),
        Option::None => option.contains('e'),
    }
}

/// Its value is a pattern, not a file.
fn is_pattern_option(option: &str) -> bool {
    option == "--regexp" || (!option.starts_with("--") && option.ends_with('e'))
}

fn option_refused(program: &str, option: &str) -> String {
    format!("not known to only look: {program} {option}")
}
