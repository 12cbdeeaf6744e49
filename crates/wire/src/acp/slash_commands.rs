//! Slash commands: what a client can do in a session without asking the model.

use gander_domain::{Command, ResetReason, Seq, SlashCommand};

use super::content::title;
use super::schema::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, ContentBlock, SessionUpdate,
    UnstructuredCommandInput,
};
use crate::jsonrpc::Error;

/// The command that the agent itself carries out.
const COMPACT: &str = "compact";

/// A slash command that can be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slash {
    /// `/clear`: forget the conversation.
    Clear,
    /// `/title text`: call the session so.
    Title(String),
}

/// All commands that every session has, as a client is told of them.
pub(super) fn available() -> SessionUpdate {
    available_with(&[])
}

/// The same and these.
pub(super) fn available_with(offers: &[SlashCommand]) -> SessionUpdate {
    let title = UnstructuredCommandInput::new("the new title");
    let mut commands = vec![
        AvailableCommand::new("clear", "Start over with an empty conversation in the same workspace"),
        AvailableCommand::new("title", "Give this session a title").input(AvailableCommandInput::Unstructured(title)),
        AvailableCommand::new(COMPACT, "Summarise the conversation so far, so that there is room for more"),
    ];
    commands.extend(offers.iter().map(offered));
    SessionUpdate::AvailableCommandsUpdate(AvailableCommandsUpdate::new(commands))
}

/// What a client types to have this command, if it is one for the agent.
pub(super) fn for_agent(name: &str) -> Option<String> {
    let name = name.strip_prefix('/').unwrap_or(name);
    (name == COMPACT).then(|| format!("/{name}"))
}

fn offered(offer: &SlashCommand) -> AvailableCommand {
    let command = AvailableCommand::new(offer.name.clone(), offer.description.clone());
    if offer.hint.is_empty() {
        return command;
    }
    command.input(AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(offer.hint.clone())))
}

/// The command that a client names as such.
pub(super) fn named(name: &str, input: &str) -> Result<Slash, Error> {
    let name = name.strip_prefix('/').unwrap_or(name);
    known(name, input).unwrap_or_else(|| Err(Error::invalid_params(format!("no such command: {name}"))))
}

/// The command that a prompt consists of, if it is one that we know.
pub(super) fn typed(prompt: &[ContentBlock]) -> Result<Option<Slash>, Error> {
    let [ContentBlock::Text(text)] = prompt else { return Ok(None) };
    let Some(line) = text.text.trim().strip_prefix('/') else { return Ok(None) };
    let (name, input) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    known(name, input).transpose()
}

impl Slash {
    /// What it asks of the session.
    pub(super) fn command(self) -> Command {
        match self {
            Self::Clear => Command::Reset { keep_to: Seq::ZERO, replacement: Vec::new(), reason: ResetReason::Cleared },
            Self::Title(title) => Command::SetTitle { title },
        }
    }
}

/// `clear` takes no input: `/clear the table` is for the model.
fn known(name: &str, input: &str) -> Option<Result<Slash, Error>> {
    match name {
        "clear" if input.trim().is_empty() => Some(Ok(Slash::Clear)),
        "title" => Some(title(input).map(Slash::Title)),
        _ => None,
    }
}
