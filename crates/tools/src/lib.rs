//! The built-in tools, and what keeps them in bounds: permission rules, the sandbox, protected files, redaction and the
//! confined file opener.
//!
//! [`Toolbox`] holds the tools of an agent. Adding one: a file in `builtin`, and a line in [`Toolbox::with_env`].

pub mod arguments;
mod blocking;
mod built_in_extension;
pub mod builtin;
mod environment;
pub mod files;
mod group;
mod guard;
mod host;
mod known_values;
mod limits;
mod local_host;
pub mod output;
pub mod permission;
pub mod process;
pub mod protected;
mod public_address;
mod redact;
pub mod sandbox;
mod tool;
mod tool_effect;
mod tool_event;
mod toolbox;

pub use built_in_extension::{BuiltIn, BuiltIns, extension_absence_reason};
pub use builtin::fetch::download_page;
pub use environment::Environment;
pub use files::access::FileAccess;
pub use files::located::Located;
pub use files::workspace::{PathError, Workspace};
pub use group::{DELEGATE, Group, PROPOSE_PLAN};
pub use guard::{Blocked, Guard, Resolver, SystemResolver};
pub use host::{CommandEnd, CommandLine, Exit, Host, HostError, Live, Offers};
pub use limits::Limits;
pub use local_host::LocalHost;
pub use redact::Redactor;
pub use tool::{ListedTool, ProtectedChanges, Tool, ToolContext, ToolError, ToolPreview};
pub use tool_effect::ToolEffect;
pub use tool_event::ToolEvent;
pub use toolbox::{SharedToolState, ToolEnv, Toolbox};
