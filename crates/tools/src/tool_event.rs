//! What a running tool tells while it runs.

use gander_domain::{ArtifactContent, Plan, TextMark, ToolContent, Usage};

/// What a running tool tells meanwhile.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolEvent {
    /// What the tool shows now, whole.
    Shown(Vec<ToolContent>),
    /// The plan is now this.
    Plan(Plan),
    /// Something was put away under a name.
    Saved {
        /// Its name.
        name: String,
        /// Its version, from 0.
        version: u64,
        /// Its media type, if known.
        mime: Option<String>,
        /// What it is, unless it is large.
        content: Option<ArtifactContent>,
    },
    /// Where text in its result comes from.
    Marked(TextMark),
    /// A sub-agent paid for a model call.
    Spent(Usage),
}
