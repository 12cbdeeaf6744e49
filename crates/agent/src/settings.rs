//! What an owner may set about the native agent.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What an owner may set about the native agent. Every field has a default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentSettings {
    /// Model calls in one run before it stops.
    pub max_turns: u32,
    /// How often a failed model call is tried again.
    pub retries: u32,
    /// The first pause before trying again, in milliseconds; each further one is twice as long.
    pub retry_after_ms: u64,
    /// A provider that wants a longer pause than this many seconds ends the run instead.
    pub longest_wait_seconds: u64,
    /// Calls of unknown tools or with wrong arguments, one after another, that end a run.
    pub max_bad_calls: u32,
    /// Tool calls of one run that run at the same time; further ones wait.
    pub parallel_tool_calls: usize,
    /// The share of the window that may fill up before older messages are summarised.
    pub compact_at: f64,
    /// Tokens in the window of a model that does not say.
    pub window: u64,
    /// Tokens a model may write per call; absent: its own limit.
    pub max_output: Option<u32>,
    /// Characters of one tool result that a model is shown; people see all of it.
    pub max_result_chars: usize,
    /// Names of files whose text agents are given: of the person, of the repository, of the workspace.
    pub context_files: Vec<String>,
    /// Whether a request that is several goes to sub-agents, where the session leaves open who answers.
    pub split: bool,
}

impl Default for AgentSettings {
    fn default() -> Self {
        Self {
            max_turns: 100,
            retries: 3,
            retry_after_ms: 1_000,
            longest_wait_seconds: 120,
            max_bad_calls: 5,
            parallel_tool_calls: 8,
            compact_at: 0.8,
            window: 128_000,
            max_output: None,
            max_result_chars: 60_000,
            context_files: crate::context_files::FILES.map(str::to_owned).to_vec(),
            split: true,
        }
    }
}

impl AgentSettings {
    /// Tokens of a window of this size that may be used before it is compacted.
    pub fn context_budget(&self, window: Option<u64>) -> u64 {
        let window = window.unwrap_or(self.window);
        // A share of a window is far inside what an f64 counts exactly.
        (window as f64 * self.compact_at.clamp(0.1, 1.0)) as u64
    }

    pub(crate) fn max_total_wait(&self) -> Duration {
        Duration::from_secs(self.longest_wait_seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_set_has_a_default() {
        let settings: AgentSettings = toml::from_str("max_turns = 7\ncompact_at = 0.5").expect("it is valid");
        assert_eq!(settings, AgentSettings { max_turns: 7, compact_at: 0.5, ..AgentSettings::default() });
        assert_eq!((settings.context_budget(Some(1_000)), settings.context_budget(None)), (500, 64_000));
        assert!(toml::from_str::<AgentSettings>("max_turn = 7").is_err());
    }
}
