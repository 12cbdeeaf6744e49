//! Slash commands: how a client is told of them, and how it names one.

use gander_domain::{Part, SessionCommand, SlashCommand, SlashCommandKind};

use super::schema::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, ContentBlock, SessionUpdate,
    UnstructuredCommandInput,
};

/// All commands that a session has before anybody was asked for more, as a client is told of them.
pub(super) fn available_slash_commands() -> SessionUpdate {
    let compact = "Summarise the conversation so far, so that there is room for more";
    let mut commands = SlashCommand::of_every_session();
    commands.push(SlashCommand::new(SlashCommandKind::Agent, "compact", compact));
    available_slash_commands_update(&commands)
}

/// These commands.
pub(super) fn available_slash_commands_update(commands: &[SlashCommand]) -> SessionUpdate {
    let commands = commands.iter().map(available_slash_command).collect();
    SessionUpdate::AvailableCommandsUpdate(AvailableCommandsUpdate::new(commands))
}

/// What a client would have sent that names a command apart from the prompt: the line that is typed, and what the prompt
/// holds beside it. A client may have typed the line there too.
pub(super) fn prompt_for_slash_command(name: &str, input: &str, prompt: Vec<ContentBlock>) -> Vec<ContentBlock> {
    let name = name.strip_prefix('/').unwrap_or(name);
    let line = format!("/{name} {input}").trim_end().to_owned();
    let is_for_session = !matches!(SessionCommand::in_prompt(&[Part::text(line.as_str())]), Ok(None));
    let is_typed =
        |block: &ContentBlock| matches!(block, ContentBlock::Text(text) if text.text.trim().starts_with('/'));
    let beside = prompt.into_iter().filter(|block| !is_for_session && !is_typed(block));
    std::iter::once(line.into()).chain(beside).collect()
}

fn available_slash_command(command: &SlashCommand) -> AvailableCommand {
    let available = AvailableCommand::new(command.name.clone(), command.description.clone());
    if command.hint.is_empty() {
        return available;
    }
    available.input(AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(command.hint.clone())))
}
