//! What an agent says in words of this protocol that no event holds: kept in the log beside what it means, told again to
//! clients that speak the protocol, as it came.

use gander_domain::Event;
use serde_json::{Map, Value, json};

use super::projection::{ChunkSpeaker, RawUpdate, SessionUpdateOut};

/// Under this key the words stand in the meta of an entry or a question, and this is the protocol's name in the log.
pub const AGENT_WORDS: &str = "acp";

/// What of `said` is not in `shown`; fields of objects one by one, lists as a whole.
pub fn unsaid_agent_words(said: &Value, shown: &Value) -> Option<Value> {
    match (said, shown) {
        (Value::Null, _) => None,
        (Value::Object(said), Value::Object(shown)) => {
            let missing = said.iter().filter_map(|(key, value)| {
                let unsaid = unsaid_agent_words(value, shown.get(key).unwrap_or(&Value::Null))?;
                Some((key.clone(), unsaid))
            });
            let missing: Map<String, Value> = missing.collect();
            (!missing.is_empty()).then_some(Value::Object(missing))
        }
        (said, shown) => (said != shown).then(|| said.clone()),
    }
}

/// Puts words over what is shown: the inverse of [`unsaid_agent_words`].
pub fn merge_agent_words(shown: &mut Value, words: &Value) {
    match (shown, words) {
        (Value::Object(shown), Value::Object(words)) => {
            for (key, value) in words {
                merge_agent_words(shown.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (shown, words) => *shown = words.clone(),
    }
}

/// The updates of an entry, the last one with what the agent said besides.
pub(super) fn with_agent_words<'a>(
    mut updates: Vec<SessionUpdateOut<'a>>,
    event: &Event,
    meta: &Value,
) -> Vec<SessionUpdateOut<'a>> {
    let words = &meta[AGENT_WORDS];
    if !words["update"].is_object() {
        return updates;
    }
    let mut update = match (updates.pop(), event) {
        (Some(SessionUpdateOut::Text(chunk)), _) => {
            let kind = match chunk.voice {
                ChunkSpeaker::User => "user_message_chunk",
                ChunkSpeaker::Agent => "agent_message_chunk",
                ChunkSpeaker::Thought => "agent_thought_chunk",
            };
            let content = json!({ "type": "text", "text": chunk.text });
            json!({ "sessionUpdate": kind, "content": content, "messageId": chunk.message })
        }
        (Some(SessionUpdateOut::Other(update)), _) => json!(update),
        // Content of a kind that nobody here knows: the words are all of it.
        (None, Event::MessageDone { message }) => json!({ "messageId": message.id }),
        (shown, _) => {
            updates.extend(shown);
            return updates;
        }
    };
    merge_agent_words(&mut update, &words["update"]);
    updates.push(raw_agent_update(update, words));
    updates
}

/// An update of a kind for which there is no event.
pub(super) fn opaque_update(protocol: &str, body: &Value) -> Option<SessionUpdateOut<'static>> {
    let known = protocol == AGENT_WORDS && body["update"].is_object();
    known.then(|| raw_agent_update(body["update"].clone(), body))
}

fn raw_agent_update(update: Value, words: &Value) -> SessionUpdateOut<'static> {
    SessionUpdateOut::Raw(Box::new(RawUpdate { update, meta: words.get("_meta").cloned() }))
}

/// True for what tells of the conversation, whatever else is said with it.
pub(super) fn is_raw_conversation(raw: &RawUpdate) -> bool {
    let kind = raw.update["sessionUpdate"].as_str().unwrap_or_default();
    kind.ends_with("_message_chunk") || kind == "agent_thought_chunk" || kind.starts_with("tool_call")
}

/// True for what only clients that offer to show compactions are told.
pub(super) fn is_raw_compaction(raw: &RawUpdate) -> bool {
    raw.update["sessionUpdate"].as_str().is_some_and(|kind| kind.starts_with("compaction_"))
}
