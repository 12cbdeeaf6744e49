//! Shell lines, read by a small closed grammar: what it accepts means the same to every shell.
//!
//! ```text
//! line     = pipeline { ( "&&" | "||" | ";" ) pipeline } [ ";" ]
//! pipeline = command { "|" command }
//! command  = word { " " ( word | quiet ) }      the first word is no keyword and no assignment
//! quiet    = "2>&1" | ( ">" | "1>" | "2>" | "&>" | "<" ) [ " " ] "/dev/null"
//! word     = piece { piece }
//! piece    = bare character | "'" … "'" | '"' … '"'   without $ ` ! in double quotes, nor \ before these and " \
//! ```
//! Everything else, from other redirects to comments, makes the line not *plain*. (The usual C grammar of bash was tried
//! and crashed on hostile lines: a model writes these lines, so nothing that could crash reads them.)

use gander_domain::sanitize;
use std::iter::Peekable;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::CharIndices;

use super::secret_and_protected_paths;

/// A line with more commands is not looked through.
const MOST_COMMANDS: usize = 20;

/// A line that may find itself in more directories is not looked through.
const MAX_DIRECTORIES: usize = 64;

/// Words that begin something else than a simple command.
const KEYWORDS: [&str; 18] = [
    "if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for", "in", "select",
    "function", "time", "coproc", "exec",
];

/// A parsed shell line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ShellScript {
    /// Its simple commands. If it is not plain: everything in it that could be one.
    pub(super) commands: Vec<SimpleCommand>,
    /// Why it is not plain.
    pub(super) flaw: Option<&'static str>,
}

/// One simple command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SimpleCommand {
    pub(super) words: Vec<Word>,
    /// True if it reads what the command before it writes.
    pub(super) piped: bool,
}

/// One word as its program gets it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    /// True if the shell puts names of files in its place.
    pub(super) glob: bool,
    /// Where it is in a plain line, in bytes.
    pub(super) span: Range<usize>,
}

/// Redirections that change no file: output is dropped or both outputs become one.
const QUIET: [&str; 11] = [
    "2>&1",
    "2>/dev/null",
    "2> /dev/null",
    ">/dev/null",
    "> /dev/null",
    "1>/dev/null",
    "1> /dev/null",
    "&>/dev/null",
    "&> /dev/null",
    "</dev/null",
    "< /dev/null",
];

impl ShellScript {
    /// Parses a line.
    pub(super) fn parse(line: &str) -> Self {
        match parse_plain_script(line) {
            Ok(commands) => Self { commands, flaw: None },
            Err(flaw) => Self { commands: all_script_words(line), flaw: Some(flaw) },
        }
    }
}

impl SimpleCommand {
    /// The words as one would write them.
    pub(super) fn joined_text(&self) -> String {
        let words: Vec<String> = self.words.iter().map(|word| shell_quoted(&word.text)).collect();
        words.join(" ")
    }

    /// The words.
    pub(super) fn argv(&self) -> Vec<String> {
        self.words.iter().map(|word| word.text.clone()).collect()
    }
}

/// The words of each command, if the line is plain.
pub fn plain_script_words(line: &str) -> Option<Vec<Vec<String>>> {
    parse_plain_script(line).ok().map(|commands| commands.iter().map(SimpleCommand::argv).collect())
}

/// What the words of a line may name as files, seen from a directory. Whoever may look can tell where they lead.
pub fn paths_named_in_script(line: &str, cwd: &Path) -> Vec<PathBuf> {
    let script = ShellScript::parse(line);
    let mut bases = vec![cwd.to_owned()];
    let mut found = Vec::new();
    for command in &script.commands {
        for word in command.words.iter().skip(1).filter(|word| !word.text.starts_with('-')) {
            found.extend(bases.iter().map(|base| base.join(&word.text)));
        }
        match directories_after_script(command, bases) {
            Some(after) => bases = after,
            // Whoever decides about the line does not take it for one that only reads.
            None => break,
        }
    }
    found
}

/// Where one may be after this command, which may have changed the directory; none if that could be anywhere.
pub(super) fn directories_after_script(command: &SimpleCommand, mut bases: Vec<PathBuf>) -> Option<Vec<PathBuf>> {
    if let [program, target] = command.words.as_slice()
        && program.text == "cd"
    {
        let entered: Vec<PathBuf> =
            bases.iter().map(|base| secret_and_protected_paths::normalize_path(&base.join(&target.text))).collect();
        bases.extend(entered);
        bases.sort();
        bases.dedup();
    }
    (bases.len() <= MAX_DIRECTORIES).then_some(bases)
}

/// A word as one would write it: in quotes where it needs them.
pub(super) fn shell_quoted(word: &str) -> String {
    match !word.is_empty() && word.chars().all(|c| is_plain_script_char(c) || is_glob_script_char(c)) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

fn parse_plain_script(line: &str) -> Result<Vec<SimpleCommand>, &'static str> {
    if line.chars().any(|c| c.is_control() || sanitize::is_deceptive_char(c)) {
        return Err("the line holds control or hidden characters");
    }
    let mut reader =
        ScriptParser { line, rest: line.char_indices().peekable(), commands: vec![SimpleCommand::default()] };
    while reader.parse_step()? {}
    reader.finish_parsing()
}

struct ScriptParser<'a> {
    line: &'a str,
    rest: Peekable<CharIndices<'a>>,
    /// The last one is under way.
    commands: Vec<SimpleCommand>,
}

impl ScriptParser<'_> {
    /// Takes a blank, a redirection that changes nothing, an operator or a word. False at the end.
    fn parse_step(&mut self) -> Result<bool, &'static str> {
        let Some(next) = self.peek_char() else { return Ok(false) };
        if let Some(quiet) = self.redirect_to_null() {
            for _ in 0..quiet.len() {
                self.rest.next();
            }
            return Ok(true);
        }
        match next {
            ' ' => {
                self.rest.next();
            }
            '|' | '&' | ';' => self.parse_operator(next)?,
            _ => {
                let word = self.parse_word()?;
                self.last_command().words.push(word);
            }
        }
        Ok(true)
    }

    fn peek_char(&mut self) -> Option<char> {
        self.rest.peek().map(|(_, character)| *character)
    }

    /// Where the next character is.
    fn byte_offset(&mut self) -> usize {
        self.rest.peek().map_or(self.line.len(), |(at, _)| *at)
    }

    /// A redirection that changes nothing, if one is next. It follows a blank, or its digit would belong to a word.
    fn redirect_to_null(&mut self) -> Option<&'static str> {
        let at = self.byte_offset();
        let (before, rest) = self.line.split_at(at);
        let ends = |text: &str| rest[text.len()..].chars().next().is_none_or(|next| " |;".contains(next));
        let next = QUIET.into_iter().find(|text| rest.starts_with(text) && ends(text));
        next.filter(|_| before.ends_with(' ') && !self.last_command().words.is_empty())
    }

    fn parse_operator(&mut self, first: char) -> Result<(), &'static str> {
        self.rest.next();
        let double = self.rest.next_if(|(_, next)| *next == first).is_some();
        let piped = match (first, double) {
            ('|', false) if self.peek_char() != Some('&') => true,
            ('|' | '&', true) | (';', false) => false,
            ('&', false) => return Err("the line runs something in the background"),
            _ => return Err("the line holds an operator that is none"),
        };
        if self.last_command().words.is_empty() {
            return Err("the line does not parse");
        }
        // A last `;` ends the line; after anything else a command must follow.
        let ends = first == ';' && self.rest.clone().all(|(_, next)| next == ' ');
        if !ends {
            self.commands.push(SimpleCommand { words: vec![], piped });
        }
        Ok(())
    }

    fn parse_word(&mut self) -> Result<Word, &'static str> {
        let start = self.byte_offset();
        let mut word = Word::default();
        while let Some(next) = self.peek_char() {
            match next {
                ' ' | '|' | '&' | ';' => break,
                '\'' | '"' => word.text.push_str(&self.parse_quote(next)?),
                '~' if word.text.is_empty() || word.text.ends_with(['=', ':', '~']) => {
                    return Err("the line names a home folder");
                }
                bare if is_plain_script_char(bare) || is_glob_script_char(bare) => {
                    word.glob |= is_glob_script_char(bare);
                    word.text.push(bare);
                    self.rest.next();
                }
                other => return Err(describe_unsafe_script_char(other)),
            }
        }
        word.span = start..self.byte_offset();
        match self.last_command().words.is_empty()
            && (KEYWORDS.contains(&word.text.as_str()) || word.text.contains('='))
        {
            true => Err("the line holds more than simple commands"),
            false => Ok(word),
        }
    }

    fn parse_quote(&mut self, mark: char) -> Result<String, &'static str> {
        self.rest.next();
        let mut inner = String::new();
        while let Some((_, next)) = self.rest.next() {
            match next {
                end if end == mark => return Ok(inner),
                // Before a character without a meaning, a backslash in double quotes is itself.
                '\\' if mark == '"'
                    && self.peek_char().is_some_and(|c| is_plain_script_char(c) || " ()[]{}|*+?<>&;#'".contains(c)) =>
                {
                    inner.push(next);
                }
                active if mark == '"' && "$`\\!".contains(active) => return Err("a quoted word holds an expansion"),
                other => inner.push(other),
            }
        }
        Err("a quote does not end")
    }

    fn last_command(&mut self) -> &mut SimpleCommand {
        self.commands.last_mut().expect("one command is always under way")
    }

    fn finish_parsing(mut self) -> Result<Vec<SimpleCommand>, &'static str> {
        match (self.last_command().words.is_empty(), self.commands.len()) {
            (true, _) => Err("the line does not parse"),
            (false, 1..=MOST_COMMANDS) => Ok(self.commands),
            (false, _) => Err("the line holds too many commands"),
        }
    }
}

/// Characters that mean themselves wherever they stand in a word.
fn is_plain_script_char(character: char) -> bool {
    character.is_alphanumeric() || "_./:=,@%+^-~".contains(character)
}

fn is_glob_script_char(character: char) -> bool {
    character == '*' || character == '?'
}

/// Everything that could be a command somewhere in the line, for rules that forbid: rather too much than too little.
fn all_script_words(line: &str) -> Vec<SimpleCommand> {
    let bare: String = line.replace("\\\n", " ").chars().filter(|c| !"'\"\\".contains(*c)).collect();
    let pieces = bare.split(|c: char| "|&;()`<>{}$!\n\r".contains(c));
    let words = pieces.map(|piece| {
        let words = piece.split_whitespace().skip_while(|word| KEYWORDS.contains(word) || word.contains('='));
        words.map(|word| Word { text: word.to_owned(), glob: true, span: 0..0 }).collect()
    });
    let commands = words.map(|words: Vec<Word>| SimpleCommand { words, piped: true });
    commands.filter(|command| !command.words.is_empty()).collect()
}

fn describe_unsafe_script_char(character: char) -> &'static str {
    match character {
        '<' | '>' => "the line redirects",
        '$' | '`' => "the line expands or substitutes something",
        '\\' => "the line holds a backslash",
        '(' | ')' | '{' | '}' | '[' | ']' | '!' => "the line groups, expands or negates something",
        '#' => "the line holds a comment",
        _ => "a word holds characters with a meaning to the shell",
    }
}
