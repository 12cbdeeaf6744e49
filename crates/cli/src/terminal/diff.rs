//! Changes of a text, line by line, as people read them.

use std::time::Duration;

use similar::{ChangeTag, TextDiff};

use crate::output::{Style, Tone, reveal_output_text};

/// Unchanged lines around a change.
const CONTEXT_LINES: usize = 2;

/// How long two texts are compared: what is not compared by then counts as changed.
const DIFF_TIMEOUT: Duration = Duration::from_millis(300);

/// A line of a diff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DiffLine {
    Removed(String),
    Added(String),
    Unchanged(String),
    /// Lines that did not change are left out here.
    Gap,
}

/// What changes, with a few lines around it.
pub(crate) fn diff_lines(old: &str, new: &str) -> Vec<DiffLine> {
    let diff = TextDiff::configure().timeout(DIFF_TIMEOUT).diff_lines(old, new);
    let mut lines = Vec::new();
    for (index, group) in diff.grouped_ops(CONTEXT_LINES).iter().enumerate() {
        if index > 0 {
            lines.push(DiffLine::Gap);
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let text = change.value().trim_end_matches(['\n', '\r']).to_owned();
            lines.push(match change.tag() {
                ChangeTag::Delete => DiffLine::Removed(text),
                ChangeTag::Insert => DiffLine::Added(text),
                ChangeTag::Equal => DiffLine::Unchanged(text),
            });
        }
    }
    lines
}

impl DiffLine {
    /// The line as it is printed. What could deceive the eye is shown.
    pub(crate) fn painted(&self, style: Style) -> String {
        match self {
            Self::Removed(text) => style.paint(Tone::Bad, &format!("- {}", reveal_output_text(text))),
            Self::Added(text) => style.paint(Tone::Good, &format!("+ {}", reveal_output_text(text))),
            Self::Unchanged(text) => style.paint(Tone::Dim, &format!("  {}", reveal_output_text(text))),
            Self::Gap => style.paint(Tone::Dim, "⋮"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_shows_what_changes_and_little_around_it() {
        let old: String = (1..=20).map(|n| format!("line {n}\n")).collect();
        let new = old.replace("line 5\n", "line five\n").replace("line 18\n", "");
        let shown: Vec<String> = diff_lines(&old, &new).iter().map(|line| line.painted(Style::Piped)).collect();
        let expected = [
            "  line 3",
            "  line 4",
            "- line 5",
            "+ line five",
            "  line 6",
            "  line 7",
            "⋮",
            "  line 16",
            "  line 17",
            "- line 18",
            "  line 19",
            "  line 20",
        ];
        assert_eq!(shown, expected);
        assert_eq!(diff_lines("", "a\u{202e}b\n")[0].painted(Style::Plain), "+ a\\u{202e}b");
    }
}
