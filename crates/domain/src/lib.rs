//! The vocabulary of gander and the session machine.
//!
//! A session is an append-only log of [`Entry`]s. The [`Session`] machine is its only writer;
//! [`SessionView`] is the one fold over it. Nothing here does IO, reads a clock or makes an id
//! by itself: time and ids are arguments.

pub mod agent;
pub mod artifact;
pub mod authorize;
pub mod backend;
pub mod caller;
pub mod catalog;
pub mod command;
pub mod context;
pub mod event;
pub mod id;
pub mod message;
pub mod question;
pub mod roster;
pub mod routing;
pub mod service_error;
pub mod session;
pub mod show;
mod size;
pub mod spoken;
pub mod state;
pub mod tool;
pub mod view;

pub use agent::{
    AgentLink, AgentManifest, Budget, Capability, Effort, LinkKind, Mode, Policy, Settings, SettingsPatch,
};
pub use artifact::ArtifactContent;
pub use backend::{Gate, Order, Report};
pub use catalog::{ModelChoice, SessionCatalog, SlashCommand};
pub use command::{Accepted, Command, CommandError, IfBusy};
pub use context::{Asked, Context};
pub use event::{
    Entry, Event, Notice, Outcome, Plan, PlanItem, PlanStatus, Priority, ResetReason, RunOrigin, Seq, Severity,
    StopReason, Usage,
};
pub use id::{Ids, MessageId, Principal, QuestionId, RunId, SessionId, Timestamp, ToolCallId};
pub use message::{Delta, Growth, Message, Native, Part, Role};
pub use question::{Answer, Ask, Choice, ChoiceKind, Proposal, Question, QuestionOrigin, Reply};
pub use roster::{Roster, Way};
pub use routing::{Route, Routing};
pub use service_error::ServiceError;
pub use session::{Birth, Effect, Now, Recovery, Session, When};
pub use spoken::Spoken;
pub use state::{STATE_LIMIT, State, StateScope};
pub use tool::{Location, ToolCall, ToolContent, ToolEnd, ToolKind, ToolResult, ToolSpec};
pub use view::{Activity, SessionView};
