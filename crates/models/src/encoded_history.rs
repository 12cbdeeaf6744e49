//! Conversations as they were last written for a model, so that a long one is not written anew each turn.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gander_domain::Message;

use super::encoded_tools::{EncodedPromptCache, EncodedToolsCache};
use super::history::stable_history_prefix_len;

/// A shorter conversation is written faster than looked up.
const MIN_CACHED_MESSAGES: usize = 64;

/// All conversations together take at most about this much, the messages that they hold on to included. There is one
/// of these for each model that is connected.
const MAX_BYTES: usize = 16 << 20;

/// What was written of conversations, the one that was used last at the back.
#[derive(Default)]
pub struct EncodedHistoryCache {
    kept: Mutex<VecDeque<EncodedPrefix>>,
    /// The tools that were offered with them.
    pub(super) tools: EncodedToolsCache,
    /// The system prompts that were before them.
    pub(super) prompts: EncodedPromptCache,
}

/// The beginning of a conversation: nothing that comes later changes how it is written.
#[derive(Default)]
struct EncodedPrefix {
    messages: Vec<Arc<Message>>,
    text: Vec<u8>,
    /// Of text and messages.
    bytes: usize,
}

impl EncodedHistoryCache {
    /// Adds a conversation to an open list of JSON. `write` adds the items of a piece of it, separated by commas.
    pub(super) fn append_conversation(
        &self,
        list: &mut Vec<u8>,
        messages: &[Arc<Message>],
        write: impl Fn(&[Arc<Message>], &mut Vec<u8>),
    ) {
        let seam = stable_history_prefix_len(messages);
        if seam < MIN_CACHED_MESSAGES {
            return append_encoded_items(list, messages, &write);
        }
        let mut kept = self.take_prefix(&messages[..seam]).unwrap_or_default();
        let fresh = &messages[kept.messages.len()..seam];
        let before = kept.text.len();
        append_encoded_items(&mut kept.text, fresh, &write);
        kept.bytes += kept.text.len() - before + fresh.iter().map(|message| message.approximate_bytes()).sum::<usize>();
        kept.messages.extend_from_slice(fresh);
        list.reserve(kept.text.len() + 4_096);
        append_encoded_items(list, &[], &|_, list| list.extend_from_slice(&kept.text));
        append_encoded_items(list, &messages[seam..], &write);
        self.put_prefix(kept);
    }

    /// What was written of this conversation before, if it began the same.
    fn take_prefix(&self, messages: &[Arc<Message>]) -> Option<EncodedPrefix> {
        let mut kept = lock_encoded_history(&self.kept);
        let place = kept.iter().rposition(|kept| kept.is_prefix_of(messages))?;
        kept.remove(place)
    }

    fn put_prefix(&self, conversation: EncodedPrefix) {
        let mut kept = lock_encoded_history(&self.kept);
        kept.push_back(conversation);
        let mut bytes: usize = kept.iter().map(|kept| kept.bytes).sum();
        while bytes > MAX_BYTES {
            let Some(oldest) = kept.pop_front() else { return };
            bytes -= oldest.bytes;
        }
    }
}

impl EncodedPrefix {
    fn is_prefix_of(&self, messages: &[Arc<Message>]) -> bool {
        // A message never changes: what is cut for the model is another value with the same id.
        let same = |(one, other): (&Arc<Message>, &Arc<Message>)| Arc::ptr_eq(one, other) || one.id == other.id;
        self.messages.len() <= messages.len() && self.messages.iter().zip(messages).all(same)
    }
}

/// Adds items to a list, behind a comma if it has some already.
fn append_encoded_items(list: &mut Vec<u8>, messages: &[Arc<Message>], write: &impl Fn(&[Arc<Message>], &mut Vec<u8>)) {
    let empty = matches!(list.last(), None | Some(b'['));
    let before = list.len();
    if !empty {
        list.push(b',');
    }
    let start = list.len();
    write(messages, list);
    if list.len() == start {
        list.truncate(before);
    }
}

/// A panic while the lock was held leaves nothing half done here.
fn lock_encoded_history<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds the items themselves, separated by commas.
pub(super) fn write_encoded_items(list: &mut Vec<u8>, items: impl IntoIterator<Item = impl serde::Serialize>) {
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            list.push(b',');
        }
        serde_json::to_writer(&mut *list, &item).expect("strings and JSON values always serialise");
    }
}
