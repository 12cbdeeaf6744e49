//! What calls of a tool do, as far as the permission rules tell tools apart.

/// What every call of a tool does. The tool itself says so: a name alone is never trusted, for MCP servers choose theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolEffect {
    /// Reads the files that the call's locations name.
    Read,
    /// Changes nothing but what the loop itself keeps, such as a plan, or starts something that asks for itself.
    Internal,
    /// Changes what the server stores for its owner, in versions.
    StoreWrite,
    /// Changes the one file that the call's locations name.
    FileWrite,
    /// Runs the shell line in the argument `command`.
    Exec,
    /// Fetches the address in the argument `url`.
    Network,
    /// Anything else: a person is asked about each call.
    Unknown,
}

impl ToolEffect {
    /// True if the title of a call is made by us of its arguments, and therefore says all that a person must know.
    pub(crate) fn has_own_title(self) -> bool {
        match self {
            Self::Read | Self::FileWrite | Self::Exec | Self::Network => true,
            Self::Internal | Self::StoreWrite | Self::Unknown => false,
        }
    }
}
