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
pub mod content;
pub mod context;
pub mod event;
pub mod git_patch;
pub mod hidden_entries;
pub mod id;
pub mod logged_message;
pub mod message;
pub mod plan;
pub mod provenance;
pub mod question;
pub mod roster;
pub mod routing;
pub mod sanitize;
pub mod service_error;
pub mod session;
pub mod session_command;
mod size;
pub mod state;
pub mod text_mark;
pub mod tool;
pub mod trace;
pub mod view;

pub use agent::{
    AgentLink, AgentManifest, Budget, Capability, Effort, LinkKind, LoadSession, Mode, ModeCategory, ModelParams,
    Policy, SessionPolicy, Settings, SettingsPatch,
};
pub use artifact::ArtifactContent;
pub use backend::{Order, Report, ToolGate};
pub use catalog::{
    AgentModels, AgentOption, ModelChoice, OptionChoice, SessionCatalog, SlashCommand, SlashCommandKind,
};
pub use command::{Accepted, Command, CommandError, IfBusy};
pub use content::{DeltaKind, Part, ToolContent, ToolEnd, ToolResult};
pub use context::{AskedQuestion, Context};
pub use event::{Entry, Event, Notice, Outcome, ResetReason, RunOrigin, Seq, Severity, StopReason, Usage};
pub use id::{IdGenerator, MessageId, Principal, QuestionId, RunId, SessionId, Timestamp, ToolCallId};
pub use logged_message::LoggedMessage;
pub use message::{Delta, Message, ProviderPayload, Role};
pub use plan::{Plan, PlanItem, PlanStatus, Priority};
pub use provenance::Provenance;
pub use question::{
    Answer, Choice, ChoiceKind, PlanProposal, Question, QuestionKind, QuestionOrigin, RejectReason, Reply, SubagentCall,
};
pub use roster::{AgentMode, Roster};
pub use routing::{Route, Routing};
pub use service_error::ServiceError;
pub use session::{Effect, MachineContext, OrderTiming, Recovery, Session, SessionInit};
pub use session_command::SessionCommand;
pub use state::{MAX_STATE_BYTES, State, StateScope};
pub use text_mark::{OutwardCall, TextMark};
pub use tool::{Location, ToolCall, ToolKind, ToolSpec};
pub use view::{Activity, SessionView};
