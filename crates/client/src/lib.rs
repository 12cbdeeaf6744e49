//! A client of agents that speak the Agent Client Protocol, over stdio, WebSocket or HTTP.
//!
//! Three layers, each usable by itself:
//!
//! - [`Agent`] finds a program, checks its version, starts it, notices when it crashes and starts it again when told to.
//! - [`Client`] calls an agent over any [`Link`] from as many tasks as you like, and answers what the agent asks
//!   with your [`Handler`].
//! - [`AgentConnection`] is the same without a task behind it: one owner polls it for what the agent says.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use gander_client::{Agent, AgentLaunch, ProgramSearch, schema::Implementation};
//!
//! let search = ProgramSearch::by_name("gander").with_path(std::env::var_os("PATH"));
//! let me = Implementation::new("example", "1.0.0");
//! let agent = Agent::start(AgentLaunch::from_search(search).with_argument("acp"), me, Arc::new(())).await?;
//! let session = agent.running_client()?.new_session("/tmp").await?.session_id;
//! let end = agent.running_client()?.prompt(session, vec!["hello".into()]).await?;
//! println!("{:?}", end.stop_reason);
//! agent.stop().await;
//! # Ok(())
//! # }
//! ```

mod agent;
mod agent_launch;
mod client;
mod connection;
mod driver;
mod error;
mod handler;
mod link;
mod net;
mod process;
mod search;
mod version;

pub use agent::{Agent, AgentStatus, StartError};
pub use agent_launch::AgentLaunch;
pub use client::{CALL_TIMEOUT, Client};
pub use connection::AgentConnection;
pub use error::{CallError, LinkError};
pub use gander_wire::acp::client::{AgentEvent, ShownUpdate};
pub use gander_wire::acp::schema;
pub use gander_wire::jsonrpc::{Code, Error};
pub use handler::Handler;
pub use link::Link;
pub use net::{CertificatePin, Endpoint, InvalidPin, fetch_net_text};
pub use process::{ProcessExit, STOP_TIMEOUT};
pub use search::{ProgramSearch, SearchError};
pub use version::{Version, VersionError};
