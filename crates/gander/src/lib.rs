//! A function that answers prompts becomes an agent of every protocol.
//!
//! ```no_run
//! use gander::{Agent, AgentInfo, PromptRequest, PromptResult, ServeError, StopReason, UpdateSink};
//!
//! async fn answer(request: PromptRequest, sink: UpdateSink) -> PromptResult {
//!     sink.text(format!("You said: {}", request.text())).await?;
//!     Ok(StopReason::EndTurn)
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), ServeError> {
//!     Agent::new(AgentInfo::new("echo", env!("CARGO_PKG_VERSION"))).on_prompt(answer).serve().await
//! }
//! ```
//!
//! `echo acp` speaks the Agent Client Protocol on stdin and stdout, for editors. `echo serve` listens for ACP over HTTP and
//! WebSocket, ACP-REST (Agent Communication Protocol), A2A, ADK and goose's REST. Sessions are kept in a log that survives
//! `kill -9`; whoever calls needs a token; every client of a session sees the same.
//!
//! | module | what is in it |
//! |---|---|
//! | [`handler`] | the prompt that a handler gets and the sink it answers with |
//! | [`serve`] | `serve`, `serve_on`, and what the command line of an agent knows |
//! | [`testing`] | a harness for tests, without sockets |
//! | [`app`] | several agents in one server, own routes, own store |
//! | [`config`], [`daemon`], [`backup`], [`sandbox`] | settings and the server of a data directory, as the product uses them |
//!
//! # Coming from the Go acp package
//!
//! | Go | here |
//! |---|---|
//! | `acp.NewServer(info, caps)` | [`Agent::new(info)`](Agent::new)`.`[`capabilities(caps)`](Agent::capabilities) |
//! | `AgentInfo{Name, Version}` | [`AgentInfo::new(name, version)`](AgentInfo::new) |
//! | `AgentCapabilities{LoadSession: false}` | [`Capabilities::without_load_session`]; sessions can be loaded by default |
//! | `PromptCapabilities{Image, Audio}` | [`Capabilities::image`], [`Capabilities::audio`] |
//! | `PromptCapabilities{EmbeddedContext}` | always on: embedded resources arrive as [`Part::Resource`] |
//! | `server.OnPrompt(handler)` | [`Agent::on_prompt`] |
//! | `server.Run(ctx)` | [`Agent::serve_stdio`], [`Agent::serve_on`] for other streams, [`Agent::serve`] for every protocol |
//! | `ctx` of the handler | [`PromptRequest::cancel_token`] |
//! | `PromptRequest.SessionID`, `Session.Metadata` | [`PromptRequest::session`]: [`SessionInfo::id`], [`SessionInfo::metadata`] |
//! | session ids `session-1`, `session-2` | [`Agent::session_ids`] with [`SessionIds::Sequential`] |
//! | `PromptRequest.Prompt`, `PromptPart` | [`PromptRequest::parts`], [`Part`] |
//! | `PromptPart{Type: "text"}` | [`PromptRequest::text`], [`Part::Text`] |
//! | `PromptPart{Type: "image", Data, Mime}` | [`PromptRequest::images`], [`Part::Image`] |
//! | `PromptPart{Type: "audio", Data, Mime}` | [`PromptRequest::audio`], [`Part::Audio`] |
//! | `PromptRequest.Command`, `CommandInput{Name, Input}` | [`PromptRequest::command`], [`CommandInput`]; offered by [`Agent::commands`] |
//! | an unknown command | refused with `-32602` before the handler is called |
//! | `SendMessageChunk(id, "assistant", text)` | [`UpdateSink::text`] |
//! | `SendToolCall(id, {Status: "running"})` | [`UpdateSink::tool_call`] and [`NewToolCall::start`] |
//! | `SendToolCall(id, {Status: "completed"})` | [`ToolCall::done`] |
//! | `SendToolCall(id, {Status: "error"})` | [`ToolCall::failed`] |
//! | update `planUpdate` | [`UpdateSink::plan`] |
//! | `PromptResponse{StopReason: "endTurn"}` | `Ok(`[`StopReason::EndTurn`]`)` |
//! | `PromptResponse{StopReason: "cancelled"}` | nothing to do: a cancelled run ends so, whatever the handler gives back |
//! | `PromptResponse{StopReason: "error"}, err` | `Err(`[`HandlerError`]`)` |
//! | `-32700` parse error, `-32600` invalid request, `-32601` method not found, `-32602` invalid params | sent by the server; a handler does not see such requests |
//! | `-32603` internal error | what ACP clients get of an `Err` of the handler |
//!
//! Clients that speak that package's dialect of ACP (`messageChunk`, `toolCall`, a version as text) are understood too.

#![warn(missing_docs)]

/// The README's program is compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod agent;
pub mod app;
pub mod backup;
mod capabilities;
pub mod config;
pub mod daemon;
pub mod handler;
pub mod sandbox;
pub mod serve;
pub mod testing;

pub use agent::{Agent, AgentInfo, Command, NoHandler};
pub use app::{App, AppBuilder};
pub use axum;
pub use capabilities::Capabilities;
pub use gander_domain::caller::Scope;
pub use gander_domain::message::plain_text;
pub use gander_domain::{
    Message, Mode, ModeCategory, Part, Plan, PlanItem, PlanStatus, Policy, Priority, Role, SessionId, StopReason,
    ToolContent, ToolKind, Usage,
};
pub use gander_gateway::server::RouteAccess;
pub use gander_services::VERSION;
pub use gander_services::sessions::SessionIds;
pub use gander_store as store;
pub use handler::{
    Artifact, CommandInput, Form, FormAnswer, HandlerError, Media, NewToolCall, Permission, PromptRequest,
    PromptResult, SessionInfo, ToolCall, ToolFailure, ToolOutput, UpdateError, UpdateSink,
};
pub use serve::ServeError;
