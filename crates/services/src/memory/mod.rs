//! What agents were asked to remember: facts of no session, one log per principal, each for everywhere or for one project.

mod tools;

use std::sync::Arc;

use gander_domain::Principal;
use gander_domain::sanitize;
use gander_store::{FactEntry, FactLog, FactState, Store, StoreError};
use serde::{Deserialize, Serialize};

pub use tools::{listed_memory_tools, memory_tools};

/// Logs of memories begin like this.
const SCOPE: &str = "memory/";

/// So much does one principal keep.
const MAX_MEMORIES: usize = 1_000;

/// Bytes of one memory.
const MAX_TEXT_BYTES: usize = 8 << 10;

/// Letters of a category or a tag.
const MAX_NAME_CHARS: usize = 64;

/// Tags of one memory.
const MAX_TAGS: usize = 16;

/// How much of them a run is told unasked.
const MAX_PROMPT_BYTES: usize = 8 << 10;

/// Where a memory counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryScope {
    /// In every session.
    Everywhere,
    /// In sessions of this folder.
    Project(String),
}

/// One memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Where it counts.
    pub place: MemoryScope,
    /// What it is about.
    pub category: String,
    /// What it says.
    pub text: String,
    /// Words to find it by.
    #[serde(default)]
    pub tags: Vec<String>,
}

/// Why nothing was remembered or forgotten, in words for the model.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// A category or tag that is none.
    #[error("a category or tag has 1 to {MAX_NAME_CHARS} letters on one line: {0}")]
    BadName(String),
    /// Nothing to remember, or too much of it.
    #[error("a memory has 1 to {MAX_TEXT_BYTES} bytes and at most {MAX_TAGS} tags")]
    BadText,
    /// There are too many already.
    #[error("there are {MAX_MEMORIES} memories already: remove some first")]
    Full,
    /// Nothing is kept there.
    #[error("nothing is remembered there: {0}")]
    Missing(String),
    /// It is not clear which one is meant.
    #[error("this text is in {0} memories: give all of the one you mean")]
    Ambiguous(usize),
    /// The store says no.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Everybody's memories.
#[derive(Clone)]
pub struct Memories {
    store: Arc<dyn Store>,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum MemoryFact {
    Remembered(Memory),
    Forgotten(Memory),
}

/// One principal's memories, the oldest first.
#[derive(Default)]
struct KeptMemories(Vec<Memory>);

impl FactState for KeptMemories {
    type Fact = MemoryFact;

    fn apply(&mut self, fact: MemoryFact, _: FactEntry) {
        match fact {
            MemoryFact::Remembered(memory) if self.0.contains(&memory) => {}
            MemoryFact::Remembered(memory) => self.0.push(memory),
            MemoryFact::Forgotten(memory) => self.0.retain(|known| *known != memory),
        }
    }

    fn facts(&self) -> Vec<MemoryFact> {
        self.0.iter().cloned().map(MemoryFact::Remembered).collect()
    }

    fn approximate_fact_count(&self) -> usize {
        self.0.len()
    }
}

impl Memories {
    /// Those in this store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// What somebody's agents remember, the oldest first.
    pub async fn list(&self, principal: &Principal) -> Result<Vec<Memory>, StoreError> {
        Ok(self.fact_log(principal).read_folded().await?.state.0)
    }

    /// Remembers one more; the same one twice is one.
    pub async fn remember(&self, principal: &Principal, memory: Memory) -> Result<(), MemoryError> {
        let memory = check_memory(memory)?;
        let log = self.fact_log(principal);
        let KeptMemories(kept) = log.fold_all().await?;
        match kept.contains(&memory) {
            true => Ok(()),
            false if kept.len() >= MAX_MEMORIES => Err(MemoryError::Full),
            false => Ok(log.append_fact(&MemoryFact::Remembered(memory)).await.map(drop)?),
        }
    }

    /// Forgets a category of a place, or all of them; how many memories that were.
    pub async fn forget_category(
        &self,
        principal: &Principal,
        place: &MemoryScope,
        category: &str,
    ) -> Result<usize, MemoryError> {
        let kept = self.list(principal).await?;
        let gone: Vec<Memory> = kept.into_iter().filter(|memory| memory.is_in_category(place, category)).collect();
        if gone.is_empty() {
            return Err(MemoryError::Missing(category.to_owned()));
        }
        let count = gone.len();
        self.remove_all(principal, gone).await?;
        Ok(count)
    }

    /// Forgets the one memory with this text, or with this text in it.
    pub async fn forget_one(
        &self,
        principal: &Principal,
        place: &MemoryScope,
        category: &str,
        text: &str,
    ) -> Result<(), MemoryError> {
        let kept = self.list(principal).await?;
        let of_it =
            kept.into_iter().filter(|memory| memory.is_in_category(place, category) && memory.text.contains(text));
        let mut found: Vec<Memory> = of_it.collect();
        if let Some(exact) = found.iter().position(|memory| memory.text == text) {
            found = vec![found.swap_remove(exact)];
        }
        match (found.pop(), found.len()) {
            (Some(memory), 0) => Ok(self.remove_all(principal, vec![memory]).await?),
            (Some(_), more) => Err(MemoryError::Ambiguous(more + 1)),
            (None, _) => Err(MemoryError::Missing(category.to_owned())),
        }
    }

    /// What is forgotten is gone from the disk too: the log is compacted at once.
    async fn remove_all(&self, principal: &Principal, gone: Vec<Memory>) -> Result<(), StoreError> {
        let log = self.fact_log(principal);
        for memory in gone {
            log.append_fact(&MemoryFact::Forgotten(memory)).await?;
        }
        let mut folded = log.read_folded().await?;
        log.compact_now(&mut folded).await.map(drop)
    }

    fn fact_log(&self, principal: &Principal) -> FactLog<KeptMemories> {
        FactLog::new(Arc::clone(&self.store), format!("{SCOPE}{}", principal.as_str()))
    }

    /// What a run in this folder is told unasked: the newest first, as far as there is room.
    pub async fn prompt_text(&self, principal: &Principal, folder: &str) -> Result<String, StoreError> {
        let mut text = String::new();
        for memory in self.list(principal).await?.iter().rev().filter(|memory| memory.applies_in(folder)) {
            let line = format!("- {}: {}\n", memory.category, memory.text);
            if text.len() + line.len() > MAX_PROMPT_BYTES {
                text.push_str("- (there is more: memory__retrieve_memories)\n");
                break;
            }
            text.push_str(&line);
        }
        Ok(text)
    }
}

impl Memory {
    fn is_in_category(&self, place: &MemoryScope, category: &str) -> bool {
        self.place == *place && (category == tools::ALL || self.category == category)
    }

    fn applies_in(&self, folder: &str) -> bool {
        match &self.place {
            MemoryScope::Everywhere => true,
            MemoryScope::Project(project) => project == folder,
        }
    }
}

/// Memories as a model reads them, by category.
fn memories_text(memories: &[Memory]) -> String {
    let mut categories: Vec<&str> = memories.iter().map(|memory| memory.category.as_str()).collect();
    categories.sort_unstable();
    categories.dedup();
    let mut text = String::new();
    for category in categories {
        text.push_str(&format!("## {category}\n"));
        for memory in memories.iter().filter(|memory| memory.category == category) {
            let tags = if memory.tags.is_empty() { String::new() } else { format!(" [{}]", memory.tags.join(", ")) };
            text.push_str(&format!("- {}{tags}\n", memory.text));
        }
    }
    text
}

/// The same with nothing hidden in it, if it can be kept.
fn check_memory(memory: Memory) -> Result<Memory, MemoryError> {
    let Memory { place, category, text, tags } = memory;
    let name = |name: &String| match name.trim() {
        "" | tools::ALL => Err(MemoryError::BadName(sanitize::sanitized_line(name))),
        trimmed if trimmed.chars().count() > MAX_NAME_CHARS || trimmed.chars().any(char::is_control) => {
            Err(MemoryError::BadName(sanitize::sanitized_line(name)))
        }
        trimmed => Ok(sanitize::strip_hidden_chars(trimmed)),
    };
    let (category, text) = (name(&category)?, sanitize::strip_hidden_chars(text.trim()));
    let tags = tags.iter().map(name).collect::<Result<Vec<String>, _>>()?;
    match text.is_empty() || text.len() > MAX_TEXT_BYTES || tags.len() > MAX_TAGS {
        true => Err(MemoryError::BadText),
        false => Ok(Memory { place, category, text, tags }),
    }
}

#[cfg(test)]
mod tests;
