//! The options of a program that only reads.

use super::program_option_refused;
use super::program_table::{Letters, ReadOnlyProgram};

/// The value of an option.
pub(super) enum OptionValue<'a> {
    /// There is none.
    None,
    /// It is part of the word.
    Here(&'a str),
    /// It is the next word.
    Next,
}

impl ReadOnlyProgram {
    pub(super) fn parse_option<'w>(&self, text: &'w str) -> Result<OptionValue<'w>, String> {
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
    pub(super) fn takes_file_value(&self, option: &str) -> bool {
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
    pub(super) fn is_pattern_option(&self, option: &str) -> bool {
        match option.strip_prefix("--") {
            Some(long) => ["files", "type-list"].contains(&long) || long.starts_with("regexp"),
            Option::None => option.chars().find(|letter| self.valued.contains(*letter)) == Some('e'),
        }
    }

    /// True if a search of it goes into hidden folders too. `rg` alone leaves them out, unless it is told what to search.
    pub(super) fn searches_hidden(&self, options: &[&str]) -> bool {
        let told = |option: &&str| match option.strip_prefix("--") {
            Some(long) => ["hidden", "glob", "iglob"].iter().any(|name| long.starts_with(name)),
            Option::None => option.contains(['u', '.', 'g']),
        };
        self.name != "rg" || options.iter().any(told)
    }

    /// True if it reads everything below the folders that it is given.
    pub(super) fn is_recursive(&self, options: &[&str]) -> bool {
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
