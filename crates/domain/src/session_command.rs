//! Prompts that are commands to the session itself: it carries them out in a run of their own, without its agent.

use crate::command::MAX_TITLE_CHARS;
use crate::{CommandError, Part};

/// A prompt that the session carries out itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionCommand {
    /// `/clear`: forget the conversation.
    Clear,
    /// `/title text`: call the session so.
    Title(String),
}

impl SessionCommand {
    /// The command that a prompt consists of, if it is one. `/clear` takes no input: `/clear the table` is for the agent.
    pub fn in_prompt(parts: &[Part]) -> Result<Option<Self>, CommandError> {
        let [Part::Text { text }] = parts else { return Ok(None) };
        let Some(line) = text.trim().strip_prefix('/') else { return Ok(None) };
        let (name, input) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match name {
            "clear" if input.trim().is_empty() => Ok(Some(Self::Clear)),
            "title" => check_session_command_title(input).map(|title| Some(Self::Title(title))),
            _ => Ok(None),
        }
    }
}

/// A title as people write it, or why it is none.
pub fn check_session_command_title(text: &str) -> Result<String, CommandError> {
    let title = text.trim();
    if title.is_empty() || title.chars().count() > MAX_TITLE_CHARS || title.chars().any(char::is_control) {
        return Err(CommandError::BadTitle);
    }
    Ok(title.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_prompt_is_a_command() {
        let read = |text: &str| SessionCommand::in_prompt(&[Part::text(text)]);
        assert_eq!(read(" /clear "), Ok(Some(SessionCommand::Clear)));
        assert_eq!(read("/title New one "), Ok(Some(SessionCommand::Title("New one".to_owned()))));
        for other in ["/clear the table", "what is /clear?", "/", "/compact", "clear"] {
            assert_eq!(read(other), Ok(None), "{other}");
        }
        assert_eq!((read("/title"), read("/title a\nb")), (Err(CommandError::BadTitle), Err(CommandError::BadTitle)));
        assert_eq!(SessionCommand::in_prompt(&[Part::text("/clear"), Part::text("x")]), Ok(None));
    }
}
