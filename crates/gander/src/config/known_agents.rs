//! Agents that many people have installed: how each is started, logged in to and installed.

/// An agent that is known by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownAgent {
    /// Its name here, and in `preset`.
    pub name: &'static str,
    /// For people.
    pub title: &'static str,
    /// The program and its arguments.
    pub command: &'static [&'static str],
    /// What logs in to it.
    pub login: &'static str,
    /// What installs it.
    pub install: &'static str,
}

/// Every agent that is known by name.
pub const KNOWN_AGENTS: [KnownAgent; 6] = [
    KnownAgent {
        name: "goose",
        title: "goose",
        command: &["goose", "acp"],
        login: "goose configure",
        install: "follow goose's installation guide",
    },
    KnownAgent {
        name: "opencode",
        title: "OpenCode",
        command: &["opencode", "acp"],
        login: "opencode auth login",
        install: "npm install --global opencode-ai",
    },
    KnownAgent {
        name: "codex",
        title: "Codex",
        command: &["codex-acp"],
        login: "codex login",
        install: "npm install --global @agentclientprotocol/codex-acp",
    },
    KnownAgent {
        name: "claude",
        title: "Claude Code",
        command: &["claude-agent-acp"],
        login: "claude /login",
        install: "npm install --global @agentclientprotocol/claude-agent-acp",
    },
    KnownAgent {
        name: "gemini",
        title: "Gemini",
        command: &["gemini", "--acp"],
        login: "gemini",
        install: "npm install --global @google/gemini-cli",
    },
    KnownAgent {
        name: "qwen",
        title: "Qwen Code",
        command: &["qwen", "--acp"],
        login: "qwen",
        install: "npm install --global @qwen-code/qwen-code",
    },
];

/// The agent of this name.
pub fn find_known_agent(name: &str) -> Option<&'static KnownAgent> {
    KNOWN_AGENTS.iter().find(|known| known.name == name)
}
