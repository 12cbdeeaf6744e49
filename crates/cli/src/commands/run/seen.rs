//! What of a turn was shown already, so that a connection made anew goes on where the last one broke off.

use std::collections::{HashMap, HashSet};

use gander_client::schema::{ContentBlock, ContentChunk, SessionUpdate, ToolCallStatus};

/// What of the messages and tool calls of a session was shown.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Bytes of each message, thoughts apart.
    texts: HashMap<(String, Voice), usize>,
    called: HashSet<String>,
    ended: HashSet<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Voice {
    Agent,
    Thought,
}

impl Seen {
    /// Remembers what is shown as it happens.
    pub(crate) fn note(&mut self, update: &SessionUpdate) {
        if let Some((key, text)) = seen_text_chunk(update) {
            *self.texts.entry(key).or_default() += text.len();
        } else if let SessionUpdate::ToolCall(call) = update {
            self.called.insert(call.tool_call_id.0.to_string());
        } else if let SessionUpdate::ToolCallUpdate(change) = update
            && matches!(change.fields.status, Some(ToolCallStatus::Completed | ToolCallStatus::Failed))
        {
            self.ended.insert(change.tool_call_id.0.to_string());
        }
    }

    /// What of a history that is told again was not shown yet, and counts as shown from now on.
    pub(crate) fn take_unseen(&mut self, history: Vec<SessionUpdate>) -> Vec<SessionUpdate> {
        let mut told: HashMap<(String, Voice), usize> = HashMap::new();
        let mut unseen = Vec::new();
        for mut update in history {
            let fresh = match seen_text_chunk(&update).map(|(key, text)| (key, text.len())) {
                Some((key, length)) => {
                    let before = told.get(&key).copied().unwrap_or(0);
                    told.insert(key.clone(), before + length);
                    let shown = self.texts.entry(key).or_default();
                    let known = shown.saturating_sub(before).min(length);
                    *shown = (*shown).max(before + length);
                    known < length && cut_seen_text(&mut update, known)
                }
                None => self.is_unseen(&update),
            };
            if fresh {
                unseen.push(update);
            }
        }
        unseen
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the schema's enum is open")]
    fn is_unseen(&mut self, update: &SessionUpdate) -> bool {
        match update {
            SessionUpdate::ToolCall(call) => self.called.insert(call.tool_call_id.0.to_string()),
            SessionUpdate::ToolCallUpdate(change) => {
                let id = change.tool_call_id.0.to_string();
                match change.fields.status {
                    Some(ToolCallStatus::Completed | ToolCallStatus::Failed) => self.ended.insert(id),
                    Some(_) | None => !self.ended.contains(&id),
                }
            }
            _ => true,
        }
    }
}

/// The turn under way, or the last one: from what the person said last.
pub(crate) fn last_turn_seen(mut history: Vec<SessionUpdate>) -> Vec<SessionUpdate> {
    let is_user = |update: &SessionUpdate| matches!(update, SessionUpdate::UserMessageChunk(_));
    let Some(last) = history.iter().rposition(is_user) else { return history };
    let earlier = history[..last].iter().rev().take_while(|update| is_user(update)).count();
    history.split_off(last - earlier)
}

/// What the person said last.
#[expect(clippy::wildcard_enum_match_arm, reason = "the schema's enum is open")]
pub(crate) fn last_prompt_seen(history: &[SessionUpdate]) -> String {
    let chunks = history.iter().filter_map(|update| match update {
        SessionUpdate::UserMessageChunk(ContentChunk { content: ContentBlock::Text(text), .. }) => Some(&*text.text),
        _ => None,
    });
    chunks.collect::<Vec<_>>().concat()
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the schema's enum is open")]
fn seen_text_chunk(update: &SessionUpdate) -> Option<((String, Voice), &str)> {
    let (chunk, voice) = match update {
        SessionUpdate::AgentMessageChunk(chunk) => (chunk, Voice::Agent),
        SessionUpdate::AgentThoughtChunk(chunk) => (chunk, Voice::Thought),
        _ => return None,
    };
    let ContentBlock::Text(text) = &chunk.content else { return None };
    Some(((chunk.message_id.as_ref()?.to_string(), voice), &text.text))
}

/// Leaves out the bytes that were shown. They are the first ones: a message only grows.
fn cut_seen_text(update: &mut SessionUpdate, shown: usize) -> bool {
    if let SessionUpdate::AgentMessageChunk(chunk) | SessionUpdate::AgentThoughtChunk(chunk) = update
        && let ContentBlock::Text(text) = &mut chunk.content
    {
        let start = text.text.floor_char_boundary(shown);
        text.text.drain(..start);
    }
    true
}

#[cfg(test)]
mod tests {
    use gander_client::schema::{MessageId, ToolCall};

    use super::*;

    fn said(message: &str, text: &str) -> SessionUpdate {
        SessionUpdate::AgentMessageChunk(ContentChunk::new(text.into()).message_id(MessageId::new(message)))
    }

    fn asked(text: &str) -> SessionUpdate {
        SessionUpdate::UserMessageChunk(ContentChunk::new(text.into()))
    }

    #[test]
    fn what_was_shown_is_not_shown_again() {
        let mut seen = Seen::default();
        for update in [said("1", "one "), said("1", "tw"), SessionUpdate::ToolCall(ToolCall::new("t", "x"))] {
            seen.note(&update);
        }
        let told = vec![said("1", "one two"), SessionUpdate::ToolCall(ToolCall::new("t", "x")), said("2", "three")];
        assert_eq!(seen.take_unseen(told.clone()), [said("1", "o"), said("2", "three")]);
        assert_eq!(seen.take_unseen(told), []);
    }

    #[test]
    fn the_last_turn_begins_with_what_the_person_said() {
        let history = vec![asked("a"), said("1", "b"), asked("c"), asked("d"), said("2", "e")];
        let turn = last_turn_seen(history);
        assert_eq!((turn.len(), last_prompt_seen(&turn).as_str()), (3, "cd"));
    }
}
