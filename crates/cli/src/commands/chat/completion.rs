//! What is offered while a slash command or a file's name is typed.

use std::ops::Range;

/// At most so many are offered.
const MAX_SUGGESTIONS: usize = 8;

/// The word before the cursor that is completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trigger {
    /// A slash at the very beginning.
    Command { query: String },
    /// An `@` at the beginning of a word.
    File { query: String, range: Range<usize> },
}

/// One thing that can be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Suggestion {
    pub(super) label: String,
    pub(super) detail: String,
    pub(super) insert: String,
}

/// A list of suggestions, one of them chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Completion {
    pub(super) range: Range<usize>,
    pub(super) suggestions: Vec<Suggestion>,
    pub(super) chosen: usize,
}

/// What stands before the cursor, if it is to be completed.
pub(super) fn find_completion_trigger(text: &str, cursor: usize) -> Option<Trigger> {
    let before = &text[..cursor];
    if let Some(query) = before.strip_prefix('/') {
        let word = query.chars().all(|c| c.is_alphanumeric() || "_:.-".contains(c));
        return word.then(|| Trigger::Command { query: query.to_owned() });
    }
    let start = before.rfind(char::is_whitespace).map_or(0, |space| space + 1);
    let word = before.get(start..)?;
    let query = word.strip_prefix('@').filter(|query| !query.contains('@'))?;
    Some(Trigger::File { query: query.to_owned(), range: start..cursor })
}

/// The commands that fit, those that begin with the query first.
pub(super) fn suggest_commands(commands: &[(String, String)], query: &str) -> Vec<Suggestion> {
    let query = query.to_lowercase();
    let mut fitting: Vec<&(String, String)> =
        commands.iter().filter(|(name, _)| name.to_lowercase().contains(&query)).collect();
    fitting.sort_by_key(|(name, _)| !name.to_lowercase().starts_with(&query));
    let suggestion = |(name, detail): &(String, String)| Suggestion {
        label: format!("/{name}"),
        detail: detail.clone(),
        insert: format!("/{name} "),
    };
    fitting.into_iter().take(MAX_SUGGESTIONS).map(suggestion).collect()
}

/// Files as the server lists them. A folder is completed further, a file is done.
pub(super) fn suggest_files(paths: &[String]) -> Vec<Suggestion> {
    let suggestion = |path: &String| Suggestion {
        label: path.clone(),
        detail: String::new(),
        insert: format!("@{path}{}", if path.ends_with('/') { "" } else { " " }),
    };
    paths.iter().take(MAX_SUGGESTIONS).map(suggestion).collect()
}

/// The files that a message mentions, for links beside its text.
pub(super) fn mentioned_files(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let Some(path) = word.strip_prefix('@') else { continue };
        let path = path.trim_end_matches(['.', ',', ';', ':', '!', '?', ')']);
        if !path.is_empty() && !path.contains('@') && !found.iter().any(|known| known == path) {
            found.push(path.to_owned());
        }
    }
    found
}

impl Completion {
    pub(super) fn new(range: Range<usize>, suggestions: Vec<Suggestion>) -> Option<Self> {
        (!suggestions.is_empty()).then_some(Self { range, suggestions, chosen: 0 })
    }

    pub(super) fn next(&mut self) {
        self.chosen = (self.chosen + 1) % self.suggestions.len();
    }

    pub(super) fn previous(&mut self) {
        self.chosen = self.chosen.checked_sub(1).unwrap_or(self.suggestions.len() - 1);
    }

    /// What the chosen one writes.
    pub(super) fn insert(&self) -> &str {
        self.suggestions.get(self.chosen).map_or("", |chosen| &chosen.insert)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slash_begins_a_command_and_an_at_a_file() {
        assert_eq!(find_completion_trigger("/mo", 3), Some(Trigger::Command { query: "mo".into() }));
        assert_eq!(find_completion_trigger("/model x", 8), None);
        assert_eq!(
            find_completion_trigger("see @src/ma", 11),
            Some(Trigger::File { query: "src/ma".into(), range: 4..11 })
        );
        assert_eq!(find_completion_trigger("a@b.example", 11), None);
        assert_eq!(find_completion_trigger("say /mo", 7), None);
    }

    #[test]
    fn what_begins_with_the_query_comes_first() {
        let commands = [("compact", "a"), ("model", "b"), ("mode", "c")].map(|(a, b)| (a.to_owned(), b.to_owned()));
        let labels = |query| suggest_commands(&commands, query).into_iter().map(|one| one.label).collect::<Vec<_>>();
        assert_eq!(labels("mo"), ["/model", "/mode"]);
        assert_eq!(labels("o"), ["/compact", "/model", "/mode"]);
    }

    #[test]
    fn mentions_are_found_once_and_without_punctuation() {
        assert_eq!(mentioned_files("@a.rs, then @b/c and @a.rs. Mail x@y.z"), ["a.rs", "b/c"]);
    }
}
