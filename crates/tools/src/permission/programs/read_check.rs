//! Does a program only read, called with these words?

use std::path::{Path, PathBuf};

use super::super::reads::{LineReads, NamedPath};
use super::super::script::Word;
use super::super::{WorkspaceFolders, is_secret_path, secret_and_protected_paths};
use super::program_table::{Content, Format, Listed, Names, Nothing, One, Pattern, ReadOnlyProgram, Text};
use super::{OptionValue, SIGNATURE_FORMATS, program_option_refused, reject_program_glob};

/// Where a command looks from and may look, and what it was found to read.
pub(super) struct ReadCheck<'a> {
    pub(super) bases: &'a [PathBuf],
    pub(super) folders: &'a WorkspaceFolders,
    pub(super) reads: &'a mut LineReads,
}

/// The words of a command, told apart.
pub(super) struct ParsedWords<'a> {
    pub(super) options: Vec<&'a str>,
    /// `-` is one of them: it stands where a file could.
    pub(super) operands: Vec<&'a Word>,
    /// How many of the operands stand before `--`.
    pub(super) before_dashes: usize,
}

impl ReadCheck<'_> {
    pub(super) fn check_program<'w>(
        &mut self,
        program: &ReadOnlyProgram,
        words: &'w [Word],
    ) -> Result<ParsedWords<'w>, String> {
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
    pub(super) fn check_content(&mut self, word: &Word) -> Result<(), String> {
        let ending = word.text.rsplit(['*', '?']).next().unwrap_or_default();
        let harmless = ending.starts_with('.') && ending.len() > 1 && !is_secret_path(Path::new(&format!("x{ending}")));
        match word.glob && !harmless {
            true => Err(format!("a pattern could stand for anything: {}", word.text)),
            false => self.check_path(word),
        }
    }

    /// Something inside the workspace, wherever the command runs.
    pub(super) fn check_path(&mut self, word: &Word) -> Result<(), String> {
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
