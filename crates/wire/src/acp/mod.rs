//! The Agent Client Protocol, version 1, and behind a switch the draft of version 2.
//!
//! [`Connection`] is the agent's side of one client's connection and [`AgentClient`] the client's side of one agent's: both are
//! machines without IO. Everything that can be a plain function is one: [`input`] makes requests into what they ask for,
//! [`translate`] makes log entries into updates, [`content`] and [`config_options`] translate both ways.

mod abilities;
mod acp_options;
mod agent_words;
pub mod client;
pub mod config_options;
mod connection;
pub mod content;
mod dialect;
pub mod error;
mod history;
pub mod host_calls;
mod initialize;
pub(crate) mod inspect;
mod limit_options;
pub mod projection;
mod question;
pub mod requests;
mod slash_commands;
pub mod types;
mod v2;
mod write_update;

pub use abilities::ClientAbilities;
pub use acp_options::{AcpOptions, WhenBusy};
pub use agent_words::{AGENT_WORDS, merge_agent_words, unsaid_agent_words};
pub use client::AgentClient;
pub use connection::{Connection, ReminderForm};
pub use dialect::Dialect;
pub use history::{history_conversation_updates, history_state_updates};
pub use host_calls::{HostAnswer, HostCall, HostCallError, HostCallId};
pub use projection::{RawUpdate, SessionUpdateOut, join_session_updates, project_acp_entry};
pub use question::{REASON_META, UNATTENDED_META};
pub use types::{
    AgentProfile, ArchiveFilter, Intent, IntentTicket, ListFilter, ListedSession, LoginMethod, Presence, SessionParams,
    Withdrawal,
};

/// The wire types of version 1.
pub use agent_client_protocol_schema::v1 as schema;
