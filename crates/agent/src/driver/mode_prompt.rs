//! The system prompt and the tools of a run, made anew whenever its session's mode or policy changes.

use std::sync::Arc;

use gander_domain::{Settings, ToolSpec};

use super::session_tools::{SessionTools, ToolExecutor as _};
use crate::context_files::{ContextFiles, skills};
use crate::modes::ScopedCatalog;
use crate::prompt::{PromptContext, system_prompt};

/// What the system prompt of a run is made of.
pub struct ModePrompt {
    /// The agents and their modes, as they are in the session's folder.
    pub catalog: ScopedCatalog,
    /// The session's tools, whose mode this sets.
    pub tools: Arc<SessionTools>,
    /// The folder that the session works in.
    pub workspace: String,
    /// Its further folders.
    pub folders: Vec<String>,
    /// The day, such as `2026-01-31`.
    pub today: String,
    /// What people wrote for agents.
    pub context_files: ContextFiles,
    /// What the session's recipe says; may be empty.
    pub instructions: String,
}

/// What a mode gives a run.
pub struct ModeSetup {
    /// The system prompt.
    pub system: String,
    /// The tools on offer.
    pub tools: Arc<[ToolSpec]>,
}

impl ModePrompt {
    /// Sets the tools to the mode of these settings, and says what the model is told in it. In this order: the prompt
    /// names only tools that the mode offers.
    pub fn apply_settings(&self, settings: &Settings) -> ModeSetup {
        self.tools.set_mode(self.catalog.modes().selected_mode(settings));
        let tools = self.tools.tools();
        let system = system_prompt(&PromptContext {
            workspace: &self.workspace,
            folders: &self.folders,
            today: &self.today,
            system: &format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            mode: &self.tools.current_mode(),
            policy: self.tools.effective_policy(settings.session_policy()),
            tools: &tools,
            servers: &self.tools.servers.server_instructions(),
            hints: &self.context_files.hints,
            skills: &skills::list_skills(&self.context_files.skills),
            task: &self.instructions,
        });
        ModeSetup { system, tools }
    }
}
