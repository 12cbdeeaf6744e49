//! What a client saw of a session, with adjacent chunks joined: the form in which live and replay must agree.

use anyhow::ensure;
use serde_json::Value;

/// Everything seen, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transcript {
    /// What the agent said and did.
    pub items: Vec<Item>,
    /// What people said, one text per message.
    pub prompts: Vec<String>,
    prompt_message: Option<String>,
}

/// One message or one tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A message, or the thinking before it.
    Said {
        /// `agent_message_chunk` or `agent_thought_chunk`.
        kind: String,
        /// The message's id.
        message: String,
        /// All of it so far.
        text: String,
    },
    /// A tool call.
    Did {
        /// The call's id.
        call: String,
        /// The last status.
        status: String,
    },
}

impl Transcript {
    /// Folds every update of a session among these messages.
    pub fn of(messages: &[Value], session: &str) -> Self {
        let mut transcript = Self::default();
        let updates = messages.iter().filter(|message| message["params"]["sessionId"] == session);
        updates.for_each(|message| transcript.add(&message["params"]["update"]));
        transcript
    }

    /// Adds one update.
    pub fn add(&mut self, update: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match update["sessionUpdate"].as_str().unwrap_or_default() {
            "user_message_chunk" => self.hear(text(&update["messageId"]), &text(&update["content"]["text"])),
            kind @ ("agent_message_chunk" | "agent_thought_chunk") => {
                self.say(kind, text(&update["messageId"]), &text(&update["content"]["text"]));
            }
            "tool_call" | "tool_call_update" => self.act(text(&update["toolCallId"]), text(&update["status"])),
            _ => {}
        }
    }

    /// Everything the agent said.
    pub fn text(&self) -> String {
        let said = |item: &Item| match item {
            Item::Said { kind, text, .. } if kind == "agent_message_chunk" => Some(text.clone()),
            Item::Said { .. } | Item::Did { .. } => None,
        };
        self.items.iter().filter_map(said).collect()
    }

    /// Demands that all of this is in what came later, at the same place.
    pub fn check_kept_in(&self, later: &Self) -> anyhow::Result<()> {
        ensure!(self.items.len() <= later.items.len(), "items are missing: {:?}", &self.items[later.items.len()..]);
        for (seen, stored) in self.items.iter().zip(&later.items) {
            ensure!(kept(seen, stored), "seen was {seen:?} but stored is {stored:?}");
        }
        Ok(())
    }

    fn hear(&mut self, message: String, text: &str) {
        match self.prompts.last_mut().filter(|_| self.prompt_message.as_ref() == Some(&message)) {
            Some(prompt) => prompt.push_str(text),
            None => self.prompts.push(text.to_owned()),
        }
        self.prompt_message = Some(message);
    }

    fn say(&mut self, voice: &str, id: String, more: &str) {
        match self.items.last_mut() {
            Some(Item::Said { kind, message, text }) if kind == voice && *message == id => text.push_str(more),
            _ => self.items.push(Item::Said { kind: voice.to_owned(), message: id, text: more.to_owned() }),
        }
    }

    fn act(&mut self, id: String, now: String) {
        let known = self.items.iter_mut().find_map(|item| match item {
            Item::Did { call, status } if *call == id => Some(status),
            Item::Did { .. } | Item::Said { .. } => None,
        });
        match known {
            Some(status) if !now.is_empty() => *status = now,
            Some(_) => {}
            None => self.items.push(Item::Did { call: id, status: now }),
        }
    }
}

/// A text may have grown and an open tool call may have ended; nothing else may have changed.
fn kept(seen: &Item, stored: &Item) -> bool {
    match (seen, stored) {
        (Item::Said { kind, message, text }, Item::Said { kind: k, message: m, text: whole }) => {
            kind == k && message == m && whole.starts_with(text.as_str())
        }
        (Item::Did { call, status }, Item::Did { call: c, status: s }) => {
            call == c && (status == s || !matches!(status.as_str(), "completed" | "failed"))
        }
        (Item::Said { .. }, Item::Did { .. }) | (Item::Did { .. }, Item::Said { .. }) => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    fn chunk(message: &str, text: &str) -> Value {
        json!({"sessionUpdate": "agent_message_chunk", "messageId": message, "content": {"type": "text", "text": text}})
    }

    fn transcript(updates: &[Value]) -> Transcript {
        let mut transcript = Transcript::default();
        updates.iter().for_each(|update| transcript.add(update));
        transcript
    }

    #[test]
    fn chunks_of_one_message_join_however_they_were_cut() {
        assert_eq!(transcript(&[chunk("1", "a"), chunk("1", "bc")]), transcript(&[chunk("1", "ab"), chunk("1", "c")]));
    }

    #[test]
    fn what_was_lost_changed_or_moved_shows() {
        let seen = transcript(&[chunk("1", "ab"), chunk("2", "cd")]);
        seen.check_kept_in(&transcript(&[chunk("1", "ab"), chunk("2", "cdef"), chunk("3", "g")])).unwrap();
        for later in [
            transcript(&[chunk("1", "ab")]),
            transcript(&[chunk("1", "ab"), chunk("2", "c")]),
            transcript(&[chunk("1", "ab"), chunk("2", "cx")]),
            transcript(&[chunk("2", "cd"), chunk("1", "ab")]),
        ] {
            assert!(seen.check_kept_in(&later).is_err(), "{later:?}");
        }
    }
}
