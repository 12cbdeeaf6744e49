//! Slash commands: which ones a session has, and what a typed one becomes. The same for every protocol.
//!
//! The session carries out its own (`/clear`, `/title`), its agent those that it is sent as they were typed; recipes and
//! prompts of MCP servers are text that takes the place of what was typed.

use gander_domain::caller::Caller;
use gander_domain::{Command, Part, ServiceError, SessionId, SessionView, SlashCommand, SlashCommandKind, TextMark};
use gander_mcp::PromptSpec;
use gander_runtime::hub::Ack;

use crate::Services;
use crate::errors::service_refusal_from_hub;
use crate::recipes::{self, SlashRecipe};

/// All commands of a session; without one, those that every new session has. A name that is there twice means the first.
pub async fn list_slash_commands(
    services: &Services,
    caller: &Caller,
    view: Option<&SessionView>,
) -> Result<Vec<SlashCommand>, ServiceError> {
    let mut commands = list_common_slash_commands(services, caller).await?;
    let agent = async {
        match view {
            Some(view) => services.agents.slash_commands(&view.settings.agent, &view.workspace).await,
            None => services.agents.slash_commands(&services.default_session_settings().agent, "/").await,
        }
    };
    let prompts = async {
        match view {
            Some(view) => services.extensions.prompts(view).await,
            None => Vec::new(),
        }
    };
    let (agent, prompts) = futures::join!(agent, prompts);
    commands.extend(prompts.iter().map(prompt_slash_command).chain(agent));
    remove_repeated_slash_commands(&mut commands);
    Ok(commands)
}

/// The commands that a new session of this agent has, before it has any MCP server.
pub async fn list_agent_slash_commands(
    services: &Services,
    caller: &Caller,
    agent: &str,
) -> Result<Vec<SlashCommand>, ServiceError> {
    let mut commands = list_common_slash_commands(services, caller).await?;
    // A mode has the commands of its agent.
    let settings = services.agents.settings_for_agent(agent, &services.default_session_settings());
    let agent = settings.map_or_else(|| agent.to_owned(), |settings| settings.agent);
    commands.extend(services.agents.slash_commands(&agent, "/").await);
    remove_repeated_slash_commands(&mut commands);
    Ok(commands)
}

/// The same without those that the agent itself carries out: it may be on another machine, and slow to say.
pub async fn list_common_slash_commands(
    services: &Services,
    caller: &Caller,
) -> Result<Vec<SlashCommand>, ServiceError> {
    let mut commands = SlashCommand::of_every_session();
    let recipes = recipes::load_slash_recipes(&services.recipes, &caller.principal).await?;
    commands.extend(recipes.iter().map(SlashRecipe::to_command));
    remove_repeated_slash_commands(&mut commands);
    Ok(commands)
}

fn remove_repeated_slash_commands(commands: &mut Vec<SlashCommand>) {
    let mut seen = std::collections::HashSet::new();
    commands.retain(|command| seen.insert(command.name.clone()));
}

/// All commands of a session of this caller's.
pub async fn list_session_slash_commands(
    services: &Services,
    caller: &Caller,
    session: SessionId,
) -> Result<Vec<SlashCommand>, ServiceError> {
    let view = services.sessions.view(caller, session).await?;
    list_slash_commands(services, caller, Some(&view)).await
}

/// What a person's prompt becomes: the name of a recipe or of a server's prompt becomes what that says. Everything else
/// stays as it was typed.
pub async fn expand_slash_command(
    services: &Services,
    caller: &Caller,
    session: SessionId,
    parts: Vec<Part>,
) -> Result<Vec<Part>, ServiceError> {
    if !begins_with_slash(&parts) {
        return Ok(parts);
    }
    let view = services.sessions.view(caller, session).await?;
    let parts = recipes::expand_slash_recipe(&services.recipes, &caller.principal, &view.workspace, parts).await?;
    let typed = parts.clone();
    let parts = services.extensions.expand_prompt(&view, parts).await.map_err(ServiceError::BadParams)?;
    if parts != typed {
        // It will stand where a person's words stand, and is none of them.
        let mark = TextMark { untrusted: Some("a prompt of an MCP server".to_owned()), private: None };
        let marked = services.hub.execute_command(caller, session, Command::MarkText { mark }, Ack::Committed).await;
        marked.map_err(|error| service_refusal_from_hub(&error))?;
    }
    Ok(parts)
}

/// Refuses the name of a command that the session does not have. What is merely typed need not be one.
pub async fn require_slash_command(
    services: &Services,
    caller: &Caller,
    session: SessionId,
    name: &str,
) -> Result<(), ServiceError> {
    let commands = list_session_slash_commands(services, caller, session).await?;
    match commands.iter().any(|command| command.name == name) {
        true => Ok(()),
        false => Err(ServiceError::UnknownCommand(name[..name.floor_char_boundary(64)].to_owned())),
    }
}

/// True for a prompt that may be a slash command: whoever starts a session with it has the session first.
pub fn begins_with_slash(parts: &[Part]) -> bool {
    matches!(parts.first(), Some(Part::Text { text }) if text.trim_start().starts_with('/'))
}

fn prompt_slash_command(prompt: &PromptSpec) -> SlashCommand {
    let hint = prompt.arguments.iter().map(|argument| argument.name.as_str()).collect::<Vec<_>>().join(" ");
    SlashCommand {
        kind: SlashCommandKind::McpPrompt,
        name: prompt.slash_command_name(),
        description: prompt.description.clone(),
        hint,
    }
}
