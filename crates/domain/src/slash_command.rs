//! Slash commands as clients are offered them.

/// A command that a person types after a slash in a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlashCommand {
    /// Who carries it out.
    pub kind: SlashCommandKind,
    /// What is typed after the slash.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// What is typed after its name, in words; empty if nothing is.
    pub hint: String,
}

/// Who carries out a slash command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlashCommandKind {
    /// The session itself: see [`SessionCommand`](crate::SessionCommand).
    Session,
    /// The session's agent, which is sent the text as it was typed.
    Agent,
    /// A recipe: its text takes the place of what was typed.
    Recipe,
    /// A prompt of an MCP server, likewise.
    McpPrompt,
}

impl SlashCommand {
    /// A command of this kind without input.
    pub fn new(kind: SlashCommandKind, name: &str, description: &str) -> Self {
        Self { kind, name: name.to_owned(), description: description.to_owned(), hint: String::new() }
    }

    /// Those that every session carries out itself.
    pub fn of_every_session() -> Vec<Self> {
        let session = |name, description| Self::new(SlashCommandKind::Session, name, description);
        vec![
            session("clear", "Start over with an empty conversation in the same workspace"),
            Self { hint: "the new title".to_owned(), ..session("title", "Give this session a title") },
        ]
    }
}
