//! A reader of Rust that knows comments, quotes and braces, and nothing else.

/// A function with a body.
pub(crate) struct Function {
    pub(crate) name: String,
    /// From `fn` to its last brace.
    pub(crate) lines: usize,
}

/// The text with comments, quoted text and lifetimes blanked, line by line the same.
pub(crate) fn code(text: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < characters.len() {
        let length = skipped(&characters[at..], at.checked_sub(1).map(|before| characters[before]));
        if length == 0 {
            out.push(characters[at]);
            at += 1;
            continue;
        }
        let blank = characters[at..(at + length).min(characters.len())].iter();
        out.extend(blank.map(|character| if *character == '\n' { '\n' } else { ' ' }));
        at += length;
    }
    out
}

/// Every function of blanked code that has a body.
pub(crate) fn functions(code: &str) -> Vec<Function> {
    let starts = code.match_indices("fn ").filter(|(at, _)| {
        let before = code[..*at].chars().next_back();
        before.is_none_or(|before| !before.is_alphanumeric() && before != '_')
    });
    starts.filter_map(|(at, _)| function(&code[at + 3..])).collect()
}

/// True if blanked code has this word by itself.
pub(crate) fn has_word(code: &str, word: &str) -> bool {
    code.split(|letter: char| !letter.is_alphanumeric() && letter != '_').any(|found| found == word)
}

fn function(rest: &str) -> Option<Function> {
    let name: String = rest.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect();
    let open = rest.find('{')?;
    if name.is_empty() || rest[..open].contains(';') {
        return None;
    }
    let mut depth = 0_usize;
    for (at, letter) in rest.char_indices().skip_while(|(at, _)| *at < open) {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(Function { name, lines: rest[..at].matches('\n').count() + 1 });
        }
    }
    None
}

/// How many characters from here on are no code.
fn skipped(rest: &[char], before: Option<char>) -> usize {
    match rest {
        ['/', '/', ..] => until(rest, 2, &['\n']).saturating_sub(1),
        ['/', '*', ..] => until(rest, 2, &['*', '/']),
        ['"', ..] => quoted(rest),
        ['r', '"' | '#', ..] if !before.is_some_and(|before| before.is_alphanumeric() || before == '_') => raw(rest),
        ['\'', '\\', ..] => until(rest, 3, &['\'']),
        ['\'', _, '\'', ..] => 3,
        ['\'', ..] => 1 + rest[1..].iter().take_while(|letter| letter.is_alphanumeric() || **letter == '_').count(),
        _ => 0,
    }
}

fn until(rest: &[char], from: usize, end: &[char]) -> usize {
    let found = (from..rest.len()).find(|at| rest[*at..].starts_with(end));
    found.map_or(rest.len(), |at| at + end.len())
}

fn quoted(rest: &[char]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// `r"…"` or `r#"…"#`; `r#name` is a name.
fn raw(rest: &[char]) -> usize {
    let marks = rest[1..].iter().take_while(|letter| **letter == '#').count();
    if rest.get(1 + marks) != Some(&'"') {
        return 0;
    }
    let end: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', marks)).collect();
    until(rest, 2 + marks, &end)
}
