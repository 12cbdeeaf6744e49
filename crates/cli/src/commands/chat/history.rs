//! What was typed before: walked with the arrow keys, kept in a file that only its owner reads.

use std::path::PathBuf;

use gander_services::paths::write_private_file;

/// Older ones are forgotten.
const MAX_KEPT: usize = 500;

/// Earlier inputs, the last one last.
#[derive(Debug, Default)]
pub(super) struct InputHistory {
    file: Option<PathBuf>,
    inputs: Vec<String>,
    /// Which one is shown; what was typed before it is in `draft`.
    shown: Option<usize>,
    draft: String,
}

impl InputHistory {
    /// Reads what was kept; a file that cannot be read is none.
    pub(super) fn open(file: PathBuf) -> Self {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let inputs = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        Self { file: Some(file), inputs, ..Self::default() }
    }

    /// Remembers an input, unless it is the last one again.
    pub(super) fn push(&mut self, input: &str) {
        self.shown = None;
        if self.inputs.last().is_some_and(|last| last == input) {
            return;
        }
        self.inputs.push(input.to_owned());
        let first = self.inputs.len().saturating_sub(MAX_KEPT);
        self.inputs.drain(..first);
        let lines = self.inputs.iter().map(|input| format!("{}\n", serde_json::json!(input)));
        if let Some(file) = &self.file
            && let Err(error) = write_private_file(file, lines.collect::<String>().as_bytes())
        {
            tracing::warn!("the history cannot be kept: {error}");
        }
    }

    /// The one before the one that is shown; `current` is what stands there now.
    pub(super) fn previous(&mut self, current: &str) -> Option<&str> {
        let before = match self.shown {
            Some(shown) => shown.checked_sub(1)?,
            None => self.inputs.len().checked_sub(1)?,
        };
        if self.shown.is_none() {
            current.clone_into(&mut self.draft);
        }
        self.shown = Some(before);
        self.inputs.get(before).map(String::as_str)
    }

    /// The one after it; behind the last one stands what was being typed.
    pub(super) fn next(&mut self) -> Option<&str> {
        let after = self.shown? + 1;
        match after < self.inputs.len() {
            true => {
                self.shown = Some(after);
                self.inputs.get(after).map(String::as_str)
            }
            false => {
                self.shown = None;
                Some(&self.draft)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walking_back_keeps_what_was_being_typed() {
        let mut history = InputHistory::default();
        for input in ["one", "two", "two"] {
            history.push(input);
        }
        assert_eq!(history.previous("dra"), Some("two"));
        assert_eq!(history.previous("two"), Some("one"));
        assert_eq!(history.previous("one"), None);
        assert_eq!(history.next(), Some("two"));
        assert_eq!(history.next(), Some("dra"));
        assert_eq!(history.next(), None);
    }
}
