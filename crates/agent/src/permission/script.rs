//! Shell lines, parsed with a real grammar and kept only where nothing in them can surprise.
//!
//! A line is *plain* if it consists of simple commands of literal words, joined by `|`, `&&`, `||` and `;`.
//! Every byte of it must belong to a word, an operator or a blank.

use std::path::{Path, PathBuf};

use tree_sitter::{Node, Parser};

use super::{paths, show};

/// A line with more commands is not looked through.
const MOST_COMMANDS: usize = 20;

/// Nesting that no honest line has.
const DEEPEST: usize = 64;

/// A parsed shell line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Script {
    /// Its simple commands. If it is not plain: all that could be found anywhere in it.
    pub(super) commands: Vec<Simple>,
    /// Why it is not plain.
    pub(super) flaw: Option<&'static str>,
}

/// One simple command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Simple {
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
}

impl Script {
    /// Parses a line.
    pub(super) fn parse(line: &str) -> Self {
        let tree = parser().parse(line, None).expect("a parser with a language and without a time limit parses");
        let root = tree.root_node();
        match plain(line, root) {
            Ok(commands) => Self { commands, flaw: None },
            Err(flaw) => Self { commands: everywhere(line, root), flaw: Some(flaw) },
        }
    }
}

impl Simple {
    /// The words as one would write them.
    pub(super) fn text(&self) -> String {
        let words: Vec<String> = self.words.iter().map(|word| quoted(&word.text)).collect();
        words.join(" ")
    }

    /// The words.
    pub(super) fn argv(&self) -> Vec<String> {
        self.words.iter().map(|word| word.text.clone()).collect()
    }
}

/// What the words of a line may name as files, seen from a directory. Whoever may look can tell where they lead.
pub fn named_paths(line: &str, cwd: &Path) -> Vec<PathBuf> {
    let script = Script::parse(line);
    let mut bases = vec![cwd.to_owned()];
    let mut found = Vec::new();
    for command in &script.commands {
        for word in command.words.iter().skip(1).filter(|word| !word.text.starts_with('-')) {
            found.extend(bases.iter().map(|base| base.join(&word.text)));
        }
        bases.extend(changed(command, &bases));
    }
    found
}

/// Where one may be after this command, if it changes the directory.
pub(super) fn changed(command: &Simple, bases: &[PathBuf]) -> Vec<PathBuf> {
    match command.words.as_slice() {
        [program, target] if program.text == "cd" && bases.len() < MOST_COMMANDS => {
            bases.iter().map(|base| paths::normal(&base.join(&target.text))).collect()
        }
        _ => vec![],
    }
}

/// A word as one would write it: in quotes where it needs them.
pub(super) fn quoted(word: &str) -> String {
    let bare = |c: char| c.is_alphanumeric() || "_./:=,@%+^-~*?".contains(c);
    match !word.is_empty() && word.chars().all(bare) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

fn parser() -> Parser {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).expect("the grammar fits the library");
    parser
}

/// The commands of a plain line, or why it is not one.
fn plain(line: &str, root: Node<'_>) -> Result<Vec<Simple>, &'static str> {
    if line.chars().any(|c| c.is_control() || show::is_odd(c)) {
        return Err("the line holds control or hidden characters");
    }
    if root.has_error() {
        return Err("the line does not parse");
    }
    let mut reader = Reader { line, at: 0, piped: false, commands: Vec::new() };
    reader.statements(root, 0)?;
    reader.skip_blanks(line.len())?;
    match reader.commands.len() {
        0 => Err("the line holds no command"),
        1..=MOST_COMMANDS => Ok(reader.commands),
        _ => Err("the line holds too many commands"),
    }
}

struct Reader<'a> {
    line: &'a str,
    at: usize,
    piped: bool,
    commands: Vec<Simple>,
}

impl Reader<'_> {
    fn statements(&mut self, node: Node<'_>, depth: usize) -> Result<(), &'static str> {
        if depth > DEEPEST {
            return Err("the line is nested too deeply");
        }
        for child in node.children(&mut node.walk()) {
            match child.kind() {
                "list" | "pipeline" => self.statements(child, depth + 1)?,
                "command" => self.command(child)?,
                "|" => self.operator(child, Joint::Pipe)?,
                "&&" | "||" | ";" => self.operator(child, Joint::Next)?,
                other => return Err(flaw(other)),
            }
        }
        Ok(())
    }

    fn operator(&mut self, node: Node<'_>, joint: Joint) -> Result<(), &'static str> {
        self.piped = matches!(joint, Joint::Pipe);
        self.skip_blanks(node.start_byte())?;
        self.at = node.end_byte();
        Ok(())
    }

    fn command(&mut self, node: Node<'_>) -> Result<(), &'static str> {
        let mut words = Vec::new();
        for child in node.children(&mut node.walk()) {
            let child = match (child.kind(), child.child(0)) {
                ("command_name", Some(name)) if words.is_empty() && child.child_count() == 1 => name,
                _ => child,
            };
            self.skip_blanks(child.start_byte())?;
            words.push(word(self.line, child, 0)?);
            self.at = child.end_byte();
        }
        self.commands.push(Simple { words, piped: self.piped });
        Ok(())
    }

    /// Moves on; what lies between must be blank.
    fn skip_blanks(&mut self, to: usize) -> Result<(), &'static str> {
        let gap = self.line.get(self.at..to).ok_or("the line does not parse")?;
        match gap.bytes().all(|byte| byte == b' ') {
            true => Ok(()),
            false => Err("the line holds something that is no command"),
        }
    }
}

enum Joint {
    Pipe,
    Next,
}

/// A literal word. Only letters whose meaning is beyond doubt may stand without quotes.
fn word(line: &str, node: Node<'_>, depth: usize) -> Result<Word, &'static str> {
    let text = &line[node.byte_range()];
    match node.kind() {
        "word" | "number" => bare(text),
        "raw_string" => quote(text, '\''),
        "string" => quote(text, '"'),
        "concatenation" if depth == 0 => {
            let mut joined = Word::default();
            let mut at = node.start_byte();
            for child in node.children(&mut node.walk()) {
                let piece = word(line, child, depth + 1)?;
                if child.start_byte() != at {
                    return Err("the line does not parse");
                }
                at = child.end_byte();
                joined.text.push_str(&piece.text);
                joined.glob |= piece.glob;
            }
            Ok(joined)
        }
        other => Err(flaw(other)),
    }
}

fn bare(text: &str) -> Result<Word, &'static str> {
    let literal = |c: char| c.is_alphanumeric() || "_./:=,@%+^-".contains(c);
    let tilde = |(at, c): (usize, char)| c == '~' && at > 0 && !text[..at].ends_with(['=', ':', '~']);
    let glob = |c: char| c == '*' || c == '?';
    match text.char_indices().all(|(at, c)| literal(c) || glob(c) || tilde((at, c))) {
        true => Ok(Word { text: text.to_owned(), glob: text.contains(glob) }),
        false => Err("a word holds characters with a meaning to the shell"),
    }
}

fn quote(text: &str, mark: char) -> Result<Word, &'static str> {
    let inner = text.strip_prefix(mark).and_then(|text| text.strip_suffix(mark)).ok_or("a quote does not end")?;
    let active = |c: char| c == mark || (mark == '"' && "$`\\!".contains(c));
    match inner.contains(active) {
        true => Err("a quoted word holds an expansion"),
        false => Ok(Word { text: inner.to_owned(), glob: false }),
    }
}

/// Every simple command that can be found, for rules that forbid.
fn everywhere(line: &str, root: Node<'_>) -> Vec<Simple> {
    let mut found = Vec::new();
    let mut cursor = root.walk();
    loop {
        if cursor.node().kind() == "command" {
            found.push(loose(line, cursor.node()));
        }
        if cursor.goto_first_child() || cursor.goto_next_sibling() {
            continue;
        }
        loop {
            if !cursor.goto_parent() {
                return found;
            }
            if cursor.goto_next_sibling() {
                break;
            }
        }
    }
}

fn loose(line: &str, node: Node<'_>) -> Simple {
    let strip = |text: &str| text.chars().filter(|c| !"'\"\\".contains(*c)).collect();
    let mut cursor = node.walk();
    let words = node.children(&mut cursor).map(|child| Word { text: strip(&line[child.byte_range()]), glob: true });
    Simple { words: words.collect(), piped: true }
}

fn flaw(kind: &str) -> &'static str {
    match kind {
        "redirected_statement" | "file_redirect" | "heredoc_redirect" | "herestring_redirect" => "the line redirects",
        "command_substitution" | "process_substitution" => "the line substitutes a command",
        "simple_expansion" | "expansion" | "arithmetic_expansion" | "brace_expression" => "the line expands something",
        "variable_assignment" | "variable_assignments" => "the line sets a variable",
        "&" => "the line runs something in the background",
        "comment" => "the line holds a comment",
        _ => "the line holds more than simple commands",
    }
}
