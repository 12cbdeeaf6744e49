//! Tool groups: what a mode's file calls the tools that belong together.

/// The tool that hands work to sub-agents. The native loop brings it along, so it has no file here.
pub const DELEGATE: &str = "delegate";

/// The tool that proposes a plan for approval, brought along by the native loop too.
pub const PROPOSE_PLAN: &str = "propose_plan";

/// Tools that belong together. A tool is in one group; [`Group::All`] is for modes only.
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
    /// What agents were asked to remember. No file names it: it comes with [`Group::Mcp`].
    Memory,
    /// Resources of MCP servers. No file names it: it comes with [`Group::All`] alone.
    Resources,
}

impl Group {
    /// Every group that files can name.
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

    /// The group that a mode's file names so.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, group)| *group)
    }

    /// True if a mode that names this group offers tools of that one.
    pub fn includes(self, group: Self) -> bool {
        match self {
            // Both change how a mode works: it has to name them.
            Self::All => !matches!(group, Self::Propose | Self::Apps),
            // goose's users know memory as one of the extensions.
            Self::Mcp => matches!(group, Self::Mcp | Self::Memory),
            Self::Look
            | Self::Edit
            | Self::Run
            | Self::Web
            | Self::Plan
            | Self::Propose
            | Self::Delegate
            | Self::Apps
            | Self::Artifacts
            | Self::Recipes
            | Self::Skills
            | Self::Memory
            | Self::Resources => self == group,
        }
    }

    /// True if its tools change nothing but what they keep themselves.
    pub fn only_reads(self) -> bool {
        match self {
            Self::Look | Self::Web | Self::Plan | Self::Propose | Self::Recipes | Self::Skills => true,
            Self::All
            | Self::Edit
            | Self::Run
            | Self::Delegate
            | Self::Apps
            | Self::Artifacts
            | Self::Mcp
            | Self::Memory
            | Self::Resources => false,
        }
    }
}
