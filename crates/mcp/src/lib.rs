//! MCP servers: their tools, prompts and resources, for a session, or for several where an entry says so.
//!
//! [`Servers`] is a session's set. Each server is one long-lived connection that starts when it is first wanted,
//! in the background, is started again after a crash, and sleeps when nobody needs it. Its tools are judged and
//! run like the built-in ones; what it says by itself goes to the [`RunListener`]: the run that is under way.
//
// The newest revision of MCP drops sampling, roots and logging; servers of all others go on using them.
#![allow(deprecated)]

mod call_title;
mod call_tool;
mod calls;
mod catalogue;
mod child;
mod connect_failure;
mod connection;
mod content;
mod handler;
mod http;
mod login;
mod login_prompt;
mod names;
mod network_prompt;
mod network_store;
mod outlets;
mod pending_login;
mod pins;
mod pool;
mod prompt_arguments;
mod prompts;
mod resources;
mod retry;
mod sampling;
mod server;
mod server_env;
mod servers;
mod session_handle;
mod session_handles;
mod spec;
mod stderr_tail;
mod trial;
mod write_counter;

pub use catalogue::{PromptArgument, PromptSpec};
pub use login::{Keyring, Login, MemoryOAuthTokenStore, OAuthTokenStore, delete_login_tokens};
pub use network_store::{MemoryNetworkGrantStore, NetworkGrantStore};
pub use pins::{MemoryToolPinStore, ToolPinStore};
pub use pool::{Pool, Sharing};
pub use servers::{ServerState, ServerStatus, Servers, ServersConfig};
pub use session_handle::{ListenGuard, RunListener, ServerEvent};
pub use spec::{Confinement, Reach, Spec, Transport, spec_home_name};
pub use trial::TriedServer;
