//! A file to which tool calls append their own word, so that a call that ran twice shows.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The file, and the words it may hold.
#[derive(Clone, Debug)]
pub struct CallRecord {
    path: PathBuf,
}

impl CallRecord {
    /// A ledger in this folder.
    pub fn in_folder(folder: &Path) -> Self {
        Self { path: folder.join("ledger.txt") }
    }

    /// A prompt marker whose tool call writes this word and then takes a moment.
    pub fn call(&self, word: &str) -> String {
        format!(r#"[[call=shell|{{"command":"echo {word} >> {}; sleep 0.03"}}]]"#, self.path.display())
    }

    /// How often each word was written.
    pub fn counts(&self) -> BTreeMap<String, usize> {
        let text = std::fs::read_to_string(&self.path).unwrap_or_default();
        let mut counts = BTreeMap::new();
        for word in text.split_whitespace() {
            *counts.entry(word.to_owned()).or_default() += 1;
        }
        counts
    }
}
