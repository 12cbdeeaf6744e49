//! The slash commands that a goose elsewhere carries out itself.

use gander_domain::{SlashCommand, SlashCommandKind};
use gander_wire::goose::client::GoosedError;
use serde_json::{Value, json};

use super::{Goosed, Protocol, acp_run};

/// Of more commands the rest is left out.
const MAX_COMMANDS: usize = 256;

/// The longest name and description in bytes: both come from another machine.
const MAX_TEXT: usize = 1_024;

impl Goosed {
    pub(super) async fn fetch_slash_commands(&self) -> Result<Vec<SlashCommand>, GoosedError> {
        let answer = match self.detect_protocol().await? {
            Protocol::Rest => self.http.get("/config/slash_commands").await,
            Protocol::Acp => acp_run::call_acp_run_method(self, "_goose/unstable/slash-commands/list", json!({})).await,
        };
        match answer {
            Ok(answer) => Ok(read_goosed_slash_commands(&answer)),
            // One that has no list has no commands of its own.
            Err(GoosedError::NotFound) => Ok(Vec::new()),
            Err(trouble) => Err(trouble),
        }
    }
}

/// REST lists `commands` with `command` and `help`, ACP `availableCommands` with `name` and `description`.
fn read_goosed_slash_commands(answer: &Value) -> Vec<SlashCommand> {
    let listed = answer["commands"].as_array().or_else(|| answer["availableCommands"].as_array());
    listed.into_iter().flatten().filter_map(read_goosed_slash_command).take(MAX_COMMANDS).collect()
}

fn read_goosed_slash_command(command: &Value) -> Option<SlashCommand> {
    let text = |keys: [&str; 2]| keys.iter().find_map(|key| command[*key].as_str());
    let name = text(["command", "name"])?.trim_start_matches('/');
    let fits =
        !name.is_empty() && name.len() <= MAX_TEXT && !name.contains(|c: char| c.is_whitespace() || c.is_control());
    let help = gander_domain::sanitize::sanitized_line(text(["help", "description"]).unwrap_or_default());
    let help = &help[..help.floor_char_boundary(MAX_TEXT)];
    fits.then(|| SlashCommand::new(SlashCommandKind::Agent, name, help))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_protocols_of_goose_list_commands() {
        let rest = json!({"commands": [{"command": "compact", "help": "Compact", "command_type": "Builtin"}]});
        let acp = json!({"availableCommands": [{"name": "/compact", "description": "Compact"}, {"name": "a b"}]});
        let compact = [SlashCommand::new(SlashCommandKind::Agent, "compact", "Compact")];
        assert_eq!(
            (read_goosed_slash_commands(&rest), read_goosed_slash_commands(&acp)),
            (compact.to_vec(), compact.to_vec())
        );
        assert_eq!(read_goosed_slash_commands(&json!({})), []);
    }
}
