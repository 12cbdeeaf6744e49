//! What the helper is told, and what it finds.

use serde::{Deserialize, Serialize};

use super::policy::SandboxPolicy;

/// What surrounds the helper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Around {
    /// Bubblewrap.
    Bubblewrap,
    /// Nothing: the kernel's fences stand alone.
    Nothing,
}

/// What root was turned into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Root {
    /// It was not root, or bubblewrap saw to it.
    Nobody,
    /// Root of a namespace of its own, which is nothing outside of it.
    Namespace,
    /// Still root by name, without any of its powers.
    Bare,
}

/// What the helper is told.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Plan {
    pub policy: SandboxPolicy,
    pub around: Around,
}

/// What the helper found out about itself, inside of the policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Found {
    /// The version of Landlock in force; 0: none.
    pub landlock: u32,
    pub root: Root,
    /// True if something hidden was not seen.
    pub hides: bool,
    /// True if the network was not there.
    pub closes: bool,
}
