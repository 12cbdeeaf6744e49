//! The vocabulary of gander and the session machine.
//!
//! A session is an append-only log of [`Entry`]s. The [`Session`] machine is its only writer;
//! [`SessionView`] is the one fold over it. Nothing here does IO, reads a clock or makes an id
//! by itself: time and ids are arguments.

pub mod active_run;
pub mod agent;
pub mod agent_option;
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
pub mod principal;
pub mod provenance;
pub mod question;
pub mod roster;
pub mod routing;
pub mod sanitize;
pub mod service_error;
pub mod session;
pub mod session_command;
pub mod settings;
mod size;
pub mod slash_command;
pub mod state;
pub mod text_mark;
pub mod timestamp;
pub mod tool;
pub mod trace;
pub mod view;

pub use agent::{AgentLink, AgentManifest, Capability, LinkKind, LoadSession, Mode, ModeCategory};
pub use agent_option::{AgentOption, OptionChoice};
pub use artifact::ArtifactContent;
pub use backend::{Order, Report, ToolGate};
pub use catalog::{AgentModels, ModelChoice, SessionCatalog};
pub use command::{Accepted, Command, CommandError, IfBusy};
pub use content::{DeltaKind, Part, ToolContent, ToolEnd, ToolResult};
pub use context::{AskedQuestion, Context};
pub use event::{Entry, Event, Notice, Outcome, ResetReason, RunOrigin, Seq, Severity, StopReason, Usage};
pub use id::{IdGenerator, MessageId, QuestionId, RunId, SessionId, ToolCallId};
pub use logged_message::LoggedMessage;
pub use message::{Delta, Message, ProviderPayload, Role};
pub use plan::{Plan, PlanItem, PlanStatus, Priority};
pub use principal::Principal;
pub use provenance::Provenance;
pub use question::{
    Answer, Choice, ChoiceKind, PlanProposal, Question, QuestionKind, QuestionOrigin, RejectReason, Reply, SubagentCall,
};
pub use roster::{AgentMode, Roster};
pub use routing::{Route, Routing};
pub use service_error::ServiceError;
pub use session::{Effect, MachineContext, OrderTiming, Recovery, Session, SessionInit};
pub use session_command::SessionCommand;
pub use settings::{Budget, Effort, ModelParams, Policy, SessionPolicy, Settings, SettingsPatch};
pub use slash_command::{SlashCommand, SlashCommandKind};
pub use state::{MAX_STATE_BYTES, State, StateScope};
pub use text_mark::{OutwardCall, TextMark};
pub use timestamp::Timestamp;
pub use tool::{Location, ToolCall, ToolKind, ToolSpec};
pub use view::{Activity, SessionView};
