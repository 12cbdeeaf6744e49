//! Slash commands: what a client can do in a session without asking the model.

use gander_domain::{Command, ResetReason, Seq, SlashCommand};

use super::content::check_title;
use super::schema::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, ContentBlock, SessionUpdate,
    UnstructuredCommandInput,
};
use crate::jsonrpc::Error;

/// The command that the agent itself carries out.
const COMPACT_COMMAND: &str = "compact";

/// A slash command that can be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionCommand {
    /// `/clear`: forget the conversation.
    Clear,
    /// `/title text`: call the session so.
    Title(String),
}

/// All commands that every session has, as a client is told of them.
pub(super) fn available_commands() -> SessionUpdate {
    available_commands_with(&[])
}

/// The same and these.
pub(super) fn available_commands_with(offers: &[SlashCommand]) -> SessionUpdate {
    let title = UnstructuredCommandInput::new("the new title");
    let mut commands = vec![
        AvailableCommand::new("clear", "Start over with an empty conversation in the same workspace"),
        AvailableCommand::new("title", "Give this session a title").input(AvailableCommandInput::Unstructured(title)),
        AvailableCommand::new(COMPACT_COMMAND, "Summarise the conversation so far, so that there is room for more"),
    ];
    commands.extend(offers.iter().map(available_command));
    SessionUpdate::AvailableCommandsUpdate(AvailableCommandsUpdate::new(commands))
}

/// What a client types to have this command, if it is one for the agent.
pub(super) fn agent_command_text(name: &str) -> Option<String> {
    let name = name.strip_prefix('/').unwrap_or(name);
    (name == COMPACT_COMMAND).then(|| format!("/{name}"))
}

fn available_command(offer: &SlashCommand) -> AvailableCommand {
    let command = AvailableCommand::new(offer.name.clone(), offer.description.clone());
    if offer.hint.is_empty() {
        return command;
    }
    command.input(AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(offer.hint.clone())))
}

/// The command that a client names as such.
pub(super) fn parse_named_command(name: &str, input: &str) -> Result<SessionCommand, Error> {
    let name = name.strip_prefix('/').unwrap_or(name);
    parse_known_command(name, input).unwrap_or_else(|| Err(Error::invalid_params(format!("no such command: {name}"))))
}

/// The command that a prompt consists of, if it is one that we know.
pub(super) fn parse_typed_command(prompt: &[ContentBlock]) -> Result<Option<SessionCommand>, Error> {
    let [ContentBlock::Text(text)] = prompt else { return Ok(None) };
    let Some(line) = text.text.trim().strip_prefix('/') else { return Ok(None) };
    let (name, input) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    parse_known_command(name, input).transpose()
}

impl SessionCommand {
    /// What it asks of the session.
    pub(super) fn into_command(self) -> Command {
        match self {
            Self::Clear => Command::Reset { keep_to: Seq::ZERO, replacement: Vec::new(), reason: ResetReason::Cleared },
            Self::Title(title) => Command::SetTitle { title },
        }
    }
}

/// `clear` takes no input: `/clear the table` is for the model.
fn parse_known_command(name: &str, input: &str) -> Option<Result<SessionCommand, Error>> {
    match name {
        "clear" if input.trim().is_empty() => Some(Ok(SessionCommand::Clear)),
        "title" => Some(check_title(input).map(SessionCommand::Title)),
        _ => None,
    }
}
