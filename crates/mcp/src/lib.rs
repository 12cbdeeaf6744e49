//! MCP servers: their tools, prompts and resources, for a session, or for several where an entry says so.
//!
//! [`Servers`] is a session's set. Each server is one long-lived connection that starts when it is first wanted,
//! in the background, is started again after a crash, and sleeps when nobody needs it. Its tools are judged and
//! run like the built-in ones; what it says by itself goes to the [`Audience`]: the run that is under way.
//
// The newest revision of MCP drops sampling, roots and logging; servers of all others go on using them.
#![allow(deprecated)]

mod again;
mod audience;
mod calls;
mod catalogue;
mod child;
mod content;
mod handler;
mod http;
mod invite;
mod link;
mod login;
mod names;
mod network;
mod pins;
mod pool;
mod prompts;
mod resources;
mod sampling;
mod seats;
mod server;
mod servers;
mod spec;
mod tally;

pub use audience::{Attendance, Audience, News};
pub use catalogue::{PromptArgument, PromptSpec};
pub use login::{Keyring, Login, Pocket, Purse, logout};
pub use network::{NetworkBook, Networks};
pub use pins::{PinBook, Pins};
pub use pool::{Pool, Sharing};
pub use servers::{Circumstances, Condition, Servers, Standing};
pub use spec::{Confinement, Reach, Spec, Transport};
