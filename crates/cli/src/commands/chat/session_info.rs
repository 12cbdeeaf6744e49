//! What is known of the open session beside what is said in it: options, commands, title, usage.

use gander_client::schema::{AvailableCommand, Cost, SessionConfigOption, SessionUpdate};
use serde_json::Value;

use super::session_options::{SessionOption, read_session_option};
use crate::commands::run::ending::ending_cost_text;
use crate::output::clean_output_text;

/// What is known of a session.
#[derive(Debug, Default)]
pub(super) struct SessionInfo {
    pub(super) title: Option<String>,
    /// The folder that it works in, on the server's machine.
    pub(super) workspace: Option<String>,
    pub(super) options: Vec<SessionOption>,
    /// Slash commands that the server knows, each with its description.
    pub(super) commands: Vec<(String, String)>,
    window: Option<(u64, u64)>,
    cost: Option<Cost>,
}

impl SessionInfo {
    /// Takes the options from the answer to a call that opened a session or changed one of them.
    pub(super) fn read_options(&mut self, answer: &Value) {
        let told = serde_json::from_value::<Vec<SessionConfigOption>>(answer["configOptions"].clone());
        if let Ok(told) = told {
            self.set_options(&told);
        }
    }

    /// Remembers what an update says about the session.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the schema's enum is open")]
    pub(super) fn note(&mut self, update: &SessionUpdate) {
        match update {
            SessionUpdate::AvailableCommandsUpdate(told) => {
                let command = |command: &AvailableCommand| {
                    (clean_output_text(&command.name), clean_output_text(&command.description))
                };
                self.commands = told.available_commands.iter().map(command).collect();
            }
            SessionUpdate::ConfigOptionUpdate(told) => self.set_options(&told.config_options),
            SessionUpdate::CurrentModeUpdate(told) => {
                if let Some(mode) = self.options.iter_mut().find(|option| option.id == "mode") {
                    mode.current = told.current_mode_id.0.to_string();
                }
            }
            SessionUpdate::SessionInfoUpdate(told) => {
                self.title = told.title.clone().take().map(|title| clean_output_text(&title)).or(self.title.take());
            }
            SessionUpdate::UsageUpdate(usage) => {
                self.window = Some((usage.used, usage.size));
                self.cost = usage.cost.clone().or(self.cost.take());
            }
            _ => {}
        }
    }

    pub(super) fn option(&self, id: &str) -> Option<&SessionOption> {
        self.options.iter().find(|option| option.id == id)
    }

    /// What the session's model is called.
    pub(super) fn model(&self) -> &str {
        self.option("model").map_or("the model", |model| &model.current)
    }

    /// Mode, model, policy, context and cost in one line.
    pub(super) fn status_text(&self) -> String {
        let options = ["mode", "model", "policy"].into_iter().filter_map(|id| self.option(id));
        let mut parts: Vec<String> = options.map(|option| clean_output_text(&option.current)).collect();
        if let Some((used, size)) = self.window.filter(|(_, size)| *size > 0) {
            parts.push(format!("{}% context", used.saturating_mul(100) / size));
        }
        parts.extend(self.cost.as_ref().map(ending_cost_text));
        parts.join(" · ")
    }

    fn set_options(&mut self, told: &[SessionConfigOption]) {
        self.options = told.iter().filter_map(read_session_option).collect();
    }
}
