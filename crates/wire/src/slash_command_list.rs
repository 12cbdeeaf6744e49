//! Slash commands as the protocols without a list of their own show them, beside an agent's description.

use gander_domain::SlashCommand;
use serde_json::{Value, json};

/// Each with its name, what it is for, and what is typed after it.
pub fn slash_command_list(commands: &[SlashCommand]) -> Value {
    let command = |command: &SlashCommand| {
        let SlashCommand { name, description, hint, .. } = command;
        match hint.is_empty() {
            true => json!({ "name": name, "description": description }),
            false => json!({ "name": name, "description": description, "hint": hint }),
        }
    };
    commands.iter().map(command).collect()
}
