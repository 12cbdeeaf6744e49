//! Tools and system prompts as they were last written for a model: most requests have the same ones as those before them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use gander_domain::ToolSpec;
use serde::Serialize;
use serde_json::value::RawValue;

/// So many lists are kept: modes and sessions with servers of their own have different ones.
const MAX_LISTS: usize = 8;

/// What requests of a conversation have in common, as JSON.
#[derive(Clone, Copy)]
pub struct FixedParts<'a> {
    /// A string; may be an empty one.
    pub(super) system: &'a RawValue,
    /// A list in the provider's own form.
    pub(super) tools: Option<&'a RawValue>,
}

/// Lists of tools as JSON, the one that was used last at the back.
#[derive(Default)]
pub struct EncodedToolsCache {
    lists: Mutex<VecDeque<EncodedTools>>,
}

struct EncodedTools {
    tools: Arc<[ToolSpec]>,
    text: Arc<RawValue>,
}

impl EncodedToolsCache {
    /// The list as JSON; `None` if there are no tools. `encode` writes one that is not known yet.
    pub(super) fn encoded_list(
        &self,
        tools: &Arc<[ToolSpec]>,
        encode: impl FnOnce(&[ToolSpec]) -> Box<RawValue>,
    ) -> Option<Arc<RawValue>> {
        if tools.is_empty() {
            return None;
        }
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        // A list is made anew for each run, of schemas that runs share: comparing them is comparing pointers.
        let known = lists.iter().rposition(|list| Arc::ptr_eq(&list.tools, tools) || list.tools[..] == tools[..]);
        let list = match known.and_then(|place| lists.remove(place)) {
            Some(list) => list,
            None => EncodedTools { tools: Arc::clone(tools), text: encode(tools).into() },
        };
        let text = Arc::clone(&list.text);
        if lists.len() >= MAX_LISTS {
            lists.pop_front();
        }
        lists.push_back(list);
        Some(text)
    }
}

/// So many system prompts are kept: each folder that sessions work in has its own.
const MAX_PROMPTS: usize = 8;

/// A longer one is written anew, so that little memory is held.
const MAX_PROMPT_BYTES: usize = 64 << 10;

/// System prompts as JSON, the one that was used last at the back.
#[derive(Default)]
pub struct EncodedPromptCache {
    prompts: Mutex<VecDeque<(String, Arc<RawValue>)>>,
}

impl EncodedPromptCache {
    /// The prompt as a JSON string.
    pub(super) fn encoded_prompt(&self, system: &str) -> Arc<RawValue> {
        let encode = || Arc::from(serde_json::value::to_raw_value(system).expect("a string always serialises"));
        if system.len() > MAX_PROMPT_BYTES {
            return encode();
        }
        let mut prompts = self.prompts.lock().unwrap_or_else(PoisonError::into_inner);
        let known = prompts.iter().rposition(|(prompt, _)| prompt == system);
        let prompt = match known.and_then(|place| prompts.remove(place)) {
            Some(prompt) => prompt,
            None => (system.to_owned(), encode()),
        };
        let text = Arc::clone(&prompt.1);
        if prompts.len() >= MAX_PROMPTS {
            prompts.pop_front();
        }
        prompts.push_back(prompt);
        text
    }
}

/// Tools in a provider's own form as JSON.
pub(super) fn encode_tools<T: Serialize>(tools: Vec<T>) -> Box<RawValue> {
    serde_json::value::to_raw_value(&tools).expect("strings and JSON values always serialise")
}
