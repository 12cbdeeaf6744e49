//! Rules: what the owner decided beforehand, per tool and argument pattern.

use gander_domain::ToolCall;
use serde::{Deserialize, Serialize};

use super::decide_effect::CallEffect;
use super::{WorkspaceFolders, glob};

/// One decision made beforehand. In the config: `{ tool = "shell", pattern = "cargo test*", action = "allow" }`.
///
/// `*` stands for anything. What a pattern is compared with depends on the tool: each simple command of a shell
/// line, the path of a file (from the workspace's root, or absolute), the URL or the host of a fetch, the
/// arguments of any other tool as JSON with sorted keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Which tool, by name.
    pub tool: String,
    /// Which of its calls; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// What happens to them.
    pub action: Action,
    /// With `allow`: also while private data and text from outside are both in the agent's context. No other rule or
    /// grant lets a call that reaches out run unasked then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub even_untrusted: bool,
}

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// It runs unasked.
    Allow,
    /// A person decides.
    Ask,
    /// It never runs.
    Deny,
}

impl Rule {
    /// True if the rule has something to say about this call.
    ///
    /// A shell line is forbidden or asked for by any of its commands; which of them it allows, the line decides.
    pub(super) fn applies_to(&self, call: &ToolCall, effect: &CallEffect, folders: &WorkspaceFolders) -> bool {
        let subjects = || effect.rule_subjects(call, folders);
        glob::matches_glob_pattern(&self.tool, &call.name)
            && self
                .pattern
                .as_deref()
                .is_none_or(|pattern| subjects().iter().any(|text| glob::matches_glob_pattern(pattern, text)))
    }

    /// True if the rule's pattern fits this text.
    pub(super) fn matches_text(&self, text: &str) -> bool {
        self.pattern.as_deref().is_none_or(|pattern| glob::matches_glob_pattern(pattern, text))
    }

    /// True if the rule names one thing alone.
    pub(super) fn is_exact(&self) -> bool {
        self.pattern.as_deref().is_some_and(glob::is_exact_glob)
    }

    /// True if the rule is about all calls of its tool.
    pub(super) fn covers_whole_tool(&self) -> bool {
        self.pattern.as_deref().is_none_or(|pattern| pattern == "*")
    }
}
