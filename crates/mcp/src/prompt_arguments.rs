//! A prompt of a server with arguments by name, as programs ask for one.

use gander_domain::{Part, Role};
use serde_json::{Map, Value};

use super::catalogue::PromptSpec;
use super::prompts::{get_prompt, missing_prompt_argument};
use super::servers::Servers;

impl Servers {
    /// What a prompt says with these arguments, message by message.
    pub async fn get_prompt(
        &self,
        prompt: &PromptSpec,
        arguments: Map<String, Value>,
    ) -> Result<Vec<(Role, Vec<Part>)>, String> {
        if let Some(missing) = missing_prompt_argument(prompt, &arguments) {
            return Err(format!("the prompt {} wants to know: {missing}", prompt.slash_command_name()));
        }
        get_prompt(&self.all_servers(), prompt, arguments, &self.limits).await
    }
}
