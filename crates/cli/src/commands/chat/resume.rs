//! What of a session was shown, so that a connection made anew goes on exactly where the last one broke off.

use std::collections::VecDeque;

use gander_client::schema::{ContentBlock, SessionUpdate, ToolCallStatus};

use crate::commands::run::seen::Seen;

/// Own prompts that are remembered, to be known again in a history.
const MAX_OWN: usize = 16;

/// What of a session is on the screen.
///
/// The server tells a prompt to everybody but its sender, and a new connection is told the whole history. So own prompts
/// are remembered by their text, everything else by its id; what lies before the end of the last turn counts as shown.
#[derive(Debug, Default)]
pub(super) struct ResumeProgress {
    seen: Seen,
    /// The item that was shown last when the last turn ended.
    floor: Option<ItemKey>,
    last: Option<ItemKey>,
    own: VecDeque<String>,
    /// The own prompt of which the server has not said anything yet.
    unconfirmed: Option<String>,
}

/// What a new connection has to show and to send.
#[derive(Debug, PartialEq)]
pub(super) struct Missed {
    pub(super) updates: Vec<SessionUpdate>,
    /// A prompt that never arrived.
    pub(super) unsent: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ItemKey {
    User(String),
    Agent(String),
    Tool(String),
}

impl ResumeProgress {
    /// Remembers an update that is shown.
    pub(super) fn note(&mut self, update: &SessionUpdate) {
        self.seen.note(update);
        if let Some(key) = resumed_item_key(update) {
            if !matches!(key, ItemKey::User(_)) {
                self.unconfirmed = None;
            }
            self.last = Some(key);
        }
    }

    /// An own prompt is sent, and shown already.
    pub(super) fn note_sent(&mut self, text: &str) {
        self.own.push_back(text.to_owned());
        if self.own.len() > MAX_OWN {
            self.own.pop_front();
        }
        self.unconfirmed = Some(text.to_owned());
    }

    /// The own prompt of which the server has not said anything yet.
    pub(super) fn unconfirmed(&self) -> Option<&str> {
        self.unconfirmed.as_deref()
    }

    /// The turn is over: only the next one has to be known in detail.
    pub(super) fn end_turn(&mut self) {
        self.floor = self.last.clone().or(self.floor.take());
        self.seen = Seen::default();
        self.unconfirmed = None;
    }

    /// What of a history that is told again was not shown yet; it counts as shown from now on.
    pub(super) fn take_missed(&mut self, history: Vec<SessionUpdate>) -> Missed {
        let place = |key: &Option<ItemKey>| {
            history.iter().rposition(|update| resumed_item_key(update).is_some_and(|item| Some(item) == *key))
        };
        let floor = place(&self.floor).map_or(0, |floor| floor + 1);
        let shown = place(&self.last).map_or(0, |last| last + 1).max(floor);
        let mut rest = Vec::new();
        for (index, message) in group_resumed_prompts(history).into_iter().filter(|(index, _)| *index >= floor) {
            match message {
                HistoryGroup::Prompt(_, _) if index < shown => {}
                HistoryGroup::Prompt(text, updates) => {
                    if let Some(own) = self.own.iter().position(|own| *own == text) {
                        self.own.remove(own);
                        self.unconfirmed.take_if(|unconfirmed| *unconfirmed == text);
                    } else {
                        rest.extend(updates);
                    }
                }
                // What has no id of its own was shown with what came after it.
                HistoryGroup::Other(update) if index < shown && !has_resumed_progress(&update) => {}
                HistoryGroup::Other(update) => rest.push(*update),
            }
        }
        let updates = self.seen.take_unseen(rest);
        if let Some(key) = updates.iter().rev().find_map(resumed_item_key) {
            self.last = Some(key);
        }
        Missed { updates, unsent: self.unconfirmed.take() }
    }
}

/// A piece of the history: a prompt with the updates that carried its blocks, or anything else.
enum HistoryGroup {
    Prompt(String, Vec<SessionUpdate>),
    Other(Box<SessionUpdate>),
}

/// The blocks of one prompt together, each with the place of its first block.
fn group_resumed_prompts(history: Vec<SessionUpdate>) -> Vec<(usize, HistoryGroup)> {
    let mut groups: Vec<(usize, HistoryGroup)> = Vec::new();
    let mut open = None;
    for (index, update) in history.into_iter().enumerate() {
        let key = resumed_item_key(&update).filter(|key| matches!(key, ItemKey::User(_)));
        let text = resumed_prompt_text(&update).unwrap_or_default().to_owned();
        match (key, groups.last_mut()) {
            (Some(key), Some((_, HistoryGroup::Prompt(whole, updates)))) if open.as_ref() == Some(&key) => {
                whole.push_str(&text);
                updates.push(update);
            }
            (Some(key), _) => {
                open = Some(key);
                groups.push((index, HistoryGroup::Prompt(text, vec![update])));
            }
            (None, _) => {
                open = None;
                groups.push((index, HistoryGroup::Other(Box::new(update))));
            }
        }
    }
    groups
}

/// True for what may have grown since it was shown: texts and tool calls, which [`Seen`] knows in detail.
fn has_resumed_progress(update: &SessionUpdate) -> bool {
    matches!(resumed_item_key(update), Some(ItemKey::Agent(_) | ItemKey::Tool(_)))
        && !matches!(update, SessionUpdate::ToolCallUpdate(change) if !matches!(change.fields.status, Some(ToolCallStatus::Completed | ToolCallStatus::Failed)))
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the schema's enum is open")]
fn resumed_item_key(update: &SessionUpdate) -> Option<ItemKey> {
    let id = |chunk: &gander_client::schema::ContentChunk| chunk.message_id.as_ref().map(ToString::to_string);
    match update {
        SessionUpdate::UserMessageChunk(chunk) => Some(ItemKey::User(id(chunk).unwrap_or_default())),
        SessionUpdate::AgentMessageChunk(chunk) | SessionUpdate::AgentThoughtChunk(chunk) => {
            Some(ItemKey::Agent(id(chunk)?))
        }
        SessionUpdate::ToolCall(call) => Some(ItemKey::Tool(call.tool_call_id.0.to_string())),
        SessionUpdate::ToolCallUpdate(change) => Some(ItemKey::Tool(change.tool_call_id.0.to_string())),
        _ => None,
    }
}

fn resumed_prompt_text(update: &SessionUpdate) -> Option<&str> {
    if let SessionUpdate::UserMessageChunk(chunk) = update
        && let ContentBlock::Text(text) = &chunk.content
    {
        return Some(&text.text);
    }
    None
}

#[cfg(test)]
mod tests {
    use gander_client::schema::{ContentChunk, MessageId, Plan, ToolCall, ToolCallUpdate, ToolCallUpdateFields};

    use super::*;

    fn said(message: &str, text: &str) -> SessionUpdate {
        SessionUpdate::AgentMessageChunk(ContentChunk::new(text.into()).message_id(MessageId::new(message)))
    }

    fn asked(message: &str, text: &str) -> SessionUpdate {
        SessionUpdate::UserMessageChunk(ContentChunk::new(text.into()).message_id(MessageId::new(message)))
    }

    fn tool_done(id: &str) -> SessionUpdate {
        let done = ToolCallUpdateFields::new().status(ToolCallStatus::Completed);
        SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id.to_owned(), done))
    }

    #[test]
    fn nothing_is_lost_and_nothing_is_doubled() {
        let mut shown = ResumeProgress::default();
        shown.note_sent("first");
        shown.note(&said("1", "one"));
        shown.end_turn();
        shown.note_sent("second");
        shown.note(&said("2", "tw"));
        let tool = SessionUpdate::ToolCall(ToolCall::new("t", "x"));
        let plan = SessionUpdate::Plan(Plan::new(Vec::new()));
        let history = vec![
            asked("a", "first"),
            said("1", "one"),
            asked("b", "second"),
            plan.clone(),
            said("2", "two three"),
            tool.clone(),
            tool_done("t"),
            asked("c", "from another client"),
            plan.clone(),
        ];
        let missed = shown.take_missed(history.clone());
        let expected =
            vec![said("2", "o three"), tool, tool_done("t"), asked("c", "from another client"), plan.clone()];
        assert_eq!(missed, Missed { updates: expected, unsent: None });
        assert_eq!(shown.take_missed(history), Missed { updates: vec![plan], unsent: None }, "only what has no id");
    }

    #[test]
    fn a_prompt_that_never_arrived_is_sent_again() {
        let mut shown = ResumeProgress::default();
        shown.note_sent("go on");
        shown.note(&said("1", "one"));
        shown.end_turn();
        shown.note_sent("go on");
        let before = vec![asked("a", "go on"), said("1", "one")];
        assert_eq!(shown.take_missed(before.clone()).unsent.as_deref(), Some("go on"));
        shown.note_sent("go on");
        let mut arrived = before;
        arrived.push(asked("b", "go on"));
        assert_eq!(shown.take_missed(arrived), Missed { updates: Vec::new(), unsent: None });
    }
}
