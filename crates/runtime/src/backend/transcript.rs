//! A conversation as text, for an agent that was not there.

use gander_domain::{Message, Part, Role};

/// What is told at most: the newest.
const TRANSCRIPT_BYTES: usize = 64 * 1024;

/// What was said before, or `None` if nothing was. `why` is the sentence that it begins with: why the agent is told.
pub(super) fn transcript_text<'a>(why: &str, messages: impl DoubleEndedIterator<Item = &'a Message>) -> Option<String> {
    let (mut said, mut length) = (Vec::new(), 0);
    for message in messages.rev() {
        let text = transcript_message_text(message);
        if text.is_empty() {
            continue;
        }
        length += text.len();
        if length > TRANSCRIPT_BYTES {
            said.push("[earlier messages are left out]".to_owned());
            break;
        }
        said.push(text);
    }
    said.reverse();
    (!said.is_empty())
        .then(|| format!("{why} What was said so far:\n\n{}\n\nGo on with the next message.", said.join("\n\n")))
}

fn transcript_message_text(message: &Message) -> String {
    let who = match message.role {
        Role::User => "User",
        Role::Agent => "Agent",
        Role::Tool => "Tool",
    };
    let texts: Vec<String> = message.parts.iter().filter_map(transcript_part_text).collect();
    match texts.is_empty() {
        true => String::new(),
        false => format!("{who}: {}", texts.join("\n")),
    }
}

fn transcript_part_text(part: &Part) -> Option<String> {
    match part {
        Part::Text { text, .. } => Some(text.clone()),
        Part::ToolUse { name, arguments, .. } => Some(format!("[used the tool {name} with {arguments}]")),
        Part::Link { uri, .. } => Some(format!("[{uri}]")),
        Part::Image { .. } => Some("[an image]".to_owned()),
        Part::Audio { .. } => Some("[a recording]".to_owned()),
        Part::Thought { .. } | Part::Resource { .. } | Part::ToolResult { .. } | Part::Unknown(_) => None,
    }
}
