//! Programs that only read, each with the closed set of options that keeps it so.

mod filters;
mod git;
mod git_table;
mod table;

use std::path::{Path, PathBuf};

use self::table::{Content, Format, Letters, Listed, Names, Nothing, One, PROGRAMS, Pattern, Program, Text};
use super::reads::{NamedPath, Reads};
use super::script::{Simple, Word};
use super::{Place, is_secret, sensitive_paths};

/// In a format they make git ask a program for a signature.
const SIGNATURES: [&str; 2] = ["%G", "signature"];

/// Fine if the command only reads, and only inside the workspace, wherever of these it runs; else why not.
pub(super) fn looks(command: &Simple, bases: &[PathBuf], place: &Place, reads: &mut Reads) -> Result<(), String> {
    let mut sight = Sight { bases, place, reads };
    let (program, words) = command.words.split_first().ok_or("a command is empty")?;
    if program.glob {
        return Err("the name of a program is a pattern".into());
    }
    match (program.text.as_str(), words) {
        ("cd", [target]) if !target.glob && !target.text.starts_with('-') => sight.path(target),
        ("command", [flag, name]) if flag.text == "-v" && !name.glob && !name.text.starts_with('-') => Ok(()),
        ("echo" | "true" | "false" | ":", words) => words.iter().try_for_each(fixed),
        ("printf", [format, ..]) if !format.text.starts_with('-') => words.iter().try_for_each(fixed),
        ("test", words) => sight.test(words),
        ("find", words) => sight.find(words),
        ("sed", words) => sight.sed(words),
        ("awk", words) => sight.awk(words),
        ("git", words) => sight.git(words),
        (name, words) => match PROGRAMS.iter().find(|program| program.name == name) {
            Some(program) => sight.program(program, words).map(drop),
            Option::None => Err(format!("not known to only look: {name}")),
        },
    }
}

/// The names of the programs of which some form only reads, commands of git as `git log`.
pub fn read_only_programs() -> Vec<String> {
    let own = ["echo", "printf", "test", "find", "sed", "awk"].into_iter();
    let git = git_table::GIT.iter().map(|command| format!("git {}", command.name));
    own.chain(PROGRAMS.iter().map(|program| program.name)).map(str::to_owned).chain(git).collect()
}

/// Where a command looks from and may look, and what it was found to read.
struct Sight<'a> {
    bases: &'a [PathBuf],
    place: &'a Place,
    reads: &'a mut Reads,
}

/// The words of a command, told apart.
struct Parsed<'a> {
    options: Vec<&'a str>,
    /// `-` is one of them: it stands where a file could.
    operands: Vec<&'a Word>,
    /// How many of the operands stand before `--`.
    before_dashes: usize,
}

impl Sight<'_> {
    fn program<'w>(&mut self, program: &Program, words: &'w [Word]) -> Result<Parsed<'w>, String> {
        let parsed = self.parse(program, words)?;
        self.operands(program, &parsed)?;
        Ok(parsed)
    }

    fn parse<'w>(&mut self, program: &Program, words: &'w [Word]) -> Result<Parsed<'w>, String> {
        let mut words = words.iter();
        let mut parsed = Parsed { options: Vec::new(), operands: Vec::new(), before_dashes: usize::MAX };
        while let Some(word) = words.next() {
            match word.text.as_str() {
                "--" => {
                    parsed.before_dashes = parsed.operands.len();
                    parsed.operands.extend(words.by_ref());
                }
                text if text.starts_with('-') && text != "-" => {
                    fixed(word)?;
                    parsed.options.push(text);
                    let value = match program.option(text)? {
                        OptionValue::None => continue,
                        OptionValue::Here(value) => value,
                        OptionValue::Next => {
                            let value = words.next().ok_or("an option lacks its value")?;
                            fixed(value)?;
                            value.text.as_str()
                        }
                    };
                    self.value(program, text, value)?;
                }
                _ => parsed.operands.push(word),
            }
        }
        parsed.before_dashes = parsed.before_dashes.min(parsed.operands.len());
        Ok(parsed)
    }

    /// Values are texts and figures; the few that name a file are looked at as such.
    fn value(&mut self, program: &Program, option: &str, value: &str) -> Result<(), String> {
        if SIGNATURES.iter().any(|signature| value.contains(signature)) {
            return Err(option_refused(program.name, value));
        }
        match program.names_file(option) {
            true => self.path(&Word { text: value.to_owned(), ..Word::default() }),
            false => Ok(()),
        }
    }

    fn operands(&mut self, program: &Program, parsed: &Parsed<'_>) -> Result<(), String> {
        let operands = parsed.operands.as_slice();
        let has = |names: &[&str]| parsed.options.iter().any(|option| names.contains(option));
        match program.operands {
            Nothing if operands.is_empty() => Ok(()),
            Nothing => Err(format!("{} takes no words here", program.name)),
            Listed if operands.is_empty() || has(&["-l", "--list"]) => operands.iter().copied().try_for_each(fixed),
            Listed => Err(format!("{} would make or change something", program.name)),
            Text => operands.iter().copied().try_for_each(fixed),
            Content => self.files(program, parsed, operands),
            Names => operands.iter().try_for_each(|word| self.path(word)),
            Pattern => {
                let given = parsed.options.iter().any(|option| program.gives_pattern(option));
                let (pattern, files) = operands.split_at(usize::from(!given).min(operands.len()));
                pattern.iter().copied().try_for_each(fixed)?;
                self.files(program, parsed, files)
            }
            One if operands.len() <= 1 => operands.iter().try_for_each(|word| self.content(word)),
            One => Err(format!("{} would write to its second file", program.name)),
            Format => match operands.iter().all(|word| word.text.starts_with('+') && !word.glob) {
                true => Ok(()),
                false => Err(format!("{} would change something", program.name)),
            },
        }
    }

    /// Files whose content is shown, or folders that are searched.
    fn files(&mut self, program: &Program, parsed: &Parsed<'_>, files: &[&Word]) -> Result<(), String> {
        if !program.searches(&parsed.options) {
            return files.iter().try_for_each(|word| self.content(word));
        }
        files.iter().try_for_each(|word| self.path(word))?;
        let here = Word::default();
        let here = [&here];
        for word in if files.is_empty() { here.as_slice() } else { files } {
            // Of a pattern, the folder in which it begins.
            let fixed = word.text.split('/').take_while(|name| !(word.glob && name.contains(['*', '?'])));
            let folder = fixed.collect::<Vec<_>>().join("/");
            let folders = self.bases.iter().map(|base| sensitive_paths::normal(&base.join(&folder)));
            let folders: Vec<PathBuf> = folders.collect();
            if program.sees_hidden(&parsed.options) || folder.split('/').any(|name| name.starts_with('.')) {
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
    fn content(&mut self, word: &Word) -> Result<(), String> {
        let ending = word.text.rsplit(['*', '?']).next().unwrap_or_default();
        let harmless = ending.starts_with('.') && ending.len() > 1 && !is_secret(Path::new(&format!("x{ending}")));
        match word.glob && !harmless {
            true => Err(format!("a pattern could stand for anything: {}", word.text)),
            false => self.path(word),
        }
    }

    /// Something inside the workspace, wherever the command runs.
    fn path(&mut self, word: &Word) -> Result<(), String> {
        let text = word.text.as_str();
        let hidden_pattern =
            word.glob && text.split('/').any(|name| name.starts_with('.') && name.contains(['*', '?']));
        if hidden_pattern || text.starts_with('~') || text.split('/').any(|name| name == "..") {
            return Err(format!("it may look elsewhere: {text}"));
        }
        for base in self.bases {
            let path = sensitive_paths::normal(&base.join(text));
            if !self.place.holds(&path) || ["/proc", "/sys", "/dev"].iter().any(|kernel| path.starts_with(kernel)) {
                return Err(format!("it looks outside the workspace: {text}"));
            }
            // `HEAD:.env` names a file too.
            let versioned = text.rsplit(':').next().unwrap_or_default();
            if is_secret(self.place.inner(&path)) || is_secret(Path::new(versioned)) {
                return Err(format!("it looks at a file that may hold secrets: {text}"));
            }
            self.reads.paths.push(NamedPath { path, glob: word.glob });
        }
        Ok(())
    }
}

/// No pattern: the shell puts nothing in its place.
fn fixed(word: &Word) -> Result<(), String> {
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

impl Program {
    fn option<'w>(&self, text: &'w str) -> Result<OptionValue<'w>, String> {
        let known = match text.strip_prefix("--") {
            Some(_) => self.long_option(text),
            Option::None => self.short_options(&text[1..]),
        };
        known.ok_or_else(|| option_refused(self.name, text))
    }

    /// Only whole names: what a shortened one stands for differs between versions.
    fn long_option<'w>(&self, text: &'w str) -> Option<OptionValue<'w>> {
        let (name, value) = text.split_once('=').map_or((text, Option::None), |(name, value)| (name, Some(value)));
        let form = self.long.iter().find(|form| form.trim_end_matches(['=', '?']) == name)?;
        match (form.as_bytes().last(), value) {
            (Some(b'=' | b'?'), Some(value)) => Some(OptionValue::Here(value)),
            (Some(b'='), Option::None) => Some(OptionValue::Next),
            (_, Option::None) => Some(OptionValue::None),
            (_, Some(_)) => Option::None,
        }
    }

    fn short_options<'w>(&self, letters: &'w str) -> Option<OptionValue<'w>> {
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
    fn names_file(&self, option: &str) -> bool {
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
    fn gives_pattern(&self, option: &str) -> bool {
        match option.strip_prefix("--") {
            Some(long) => ["files", "type-list"].contains(&long) || long.starts_with("regexp"),
            Option::None => option.chars().find(|letter| self.valued.contains(*letter)) == Some('e'),
        }
    }

    /// True if a search of it goes into hidden folders too. `rg` alone leaves them out, unless it is told what to search.
    fn sees_hidden(&self, options: &[&str]) -> bool {
        let told = |option: &&str| match option.strip_prefix("--") {
            Some(long) => ["hidden", "glob", "iglob"].iter().any(|name| long.starts_with(name)),
            Option::None => option.contains(['u', '.', 'g']),
        };
        self.name != "rg" || options.iter().any(told)
    }

    /// True if it reads everything below the folders that it is given.
    fn searches(&self, options: &[&str]) -> bool {
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

fn option_refused(program: &str, option: &str) -> String {
    format!("not known to only look: {program} {option}")
}
