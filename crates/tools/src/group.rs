//! Tool groups: what a mode's file calls the tools that belong together.

/// The tool that hands work to sub-agents. The native loop brings it along, so it has no file here.
pub const DELEGATE: &str = "delegate";

/// The tool that proposes a plan for approval, brought along by the native loop too.
pub const PROPOSE_PLAN: &str = "propose_plan";

/// Tools that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Everything there is, but for proposing plans and making apps.
    All,
    /// Looking at files.
    Look,
    /// Changing files.
    Edit,
    /// Running commands.
    Run,
    /// The web.
    Web,
    /// Keeping a plan.
    Plan,
    /// Proposing a plan for approval.
    Propose,
    /// Handing work to sub-agents.
    Delegate,
    /// Apps.
    Apps,
    /// What is put away for whoever asked.
    Artifacts,
    /// Recipes.
    Recipes,
    /// Skills.
    Skills,
    /// Tools of MCP servers.
    Mcp,
}

impl Group {
    /// Every group with its name in files.
    pub const NAMES: [(&'static str, Self); 13] = [
        ("all", Self::All),
        ("look", Self::Look),
        ("edit", Self::Edit),
        ("run", Self::Run),
        ("web", Self::Web),
        ("plan", Self::Plan),
        ("propose", Self::Propose),
        ("delegate", Self::Delegate),
        ("apps", Self::Apps),
        ("artifacts", Self::Artifacts),
        ("recipes", Self::Recipes),
        ("skills", Self::Skills),
        ("mcp", Self::Mcp),
    ];

    /// The group of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, group)| *group)
    }

    /// True if this tool is in it.
    pub fn holds(self, tool: &str) -> bool {
        match self {
            Self::All => tool != PROPOSE_PLAN && !Self::Apps.holds(tool),
            Self::Look => ["read", "list", "grep"].contains(&tool),
            Self::Edit => ["write", "edit"].contains(&tool),
            Self::Run => tool == "shell",
            Self::Web => tool == "fetch",
            Self::Plan => tool == "plan",
            Self::Propose => tool == PROPOSE_PLAN,
            Self::Delegate => tool == DELEGATE,
            Self::Apps => tool.starts_with("app_"),
            Self::Artifacts => tool.starts_with("artifact_"),
            Self::Recipes => tool.starts_with("recipe_"),
            Self::Skills => tool == "skill" || tool.starts_with("skill_"),
            Self::Mcp => tool.contains("__"),
        }
    }

    /// True if its tools change nothing but what they keep themselves.
    pub fn only_looks(self) -> bool {
        match self {
            Self::Look | Self::Web | Self::Plan | Self::Propose | Self::Recipes | Self::Skills => true,
            Self::All | Self::Edit | Self::Run | Self::Delegate | Self::Apps | Self::Artifacts | Self::Mcp => false,
        }
    }
}
