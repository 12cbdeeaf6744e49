//! The built-in tools, and what keeps them in bounds: permission rules, the sandbox, protected files, redaction and the
//! confined file opener.
//!
//! [`Toolbox`] holds the tools of an agent. Adding one: a file in `builtin`, and a line in [`Toolbox::within`].

pub mod arguments;
mod blocking;
pub mod builtin;
mod extension;
pub mod files;
mod group;
mod guard;
mod host;
mod limits;
pub mod output;
pub mod permission;
pub mod process;
pub mod protected;
mod redact;
pub mod sandbox;
mod tool;
mod toolbox;

pub use builtin::fetch::download;
pub use extension::{BuiltIn, BuiltIns, absence};
pub use files::access::FileAccess;
pub use files::workspace::{Located, PathError, Workspace};
pub use group::{DELEGATE, Group, PROPOSE_PLAN};
pub use guard::{Blocked, Guard, Resolver, SystemResolver};
pub use host::{CommandEnd, CommandLine, Exit, Host, HostError, Live, LocalHost, Offers};
pub use limits::Limits;
pub use process::environment::Environment;
pub use redact::Redactor;
pub use tool::{ProtectedChanges, Signal, Sketch, Tool, ToolContext, ToolError};
pub use toolbox::{Surroundings, Toolbox};
