//! What a prompt handler is given: the [`PromptRequest`] it answers and the [`UpdateSink`] it answers with.
//!
//! A handler is an async function. It is called once per prompt and says by its result how the turn ended:
//!
//! ```
//! use gander::{HandlerError, PromptRequest, PromptResult, StopReason, UpdateSink};
//!
//! async fn answer(request: PromptRequest, sink: UpdateSink) -> PromptResult {
//!     if request.text().trim().is_empty() {
//!         return Err(HandlerError::invalid_input("say something"));
//!     }
//!     sink.thought("I say it back").await?;
//!     sink.text(request.text()).await?;
//!     Ok(StopReason::EndTurn)
//! }
//! ```
//!
//! # Questions, and what happens when the process dies
//!
//! [`UpdateSink::ask`] and [`NewToolCall::request_permission`] wait until somebody answers, from whatever client. The
//! handler stays where it is meanwhile, with its local variables. If the process dies while it waits, the question is
//! closed as interrupted and the run has failed: nobody waits for an answer that cannot come.
//!
//! A handler given to [`Agent::on_durable_prompt`](crate::Agent::on_durable_prompt) outlives the process instead. While it
//! waits for an answer it is not in memory at all; it is then called again **from its beginning**, and also when the server
//! was killed in the middle of it. What it said before is not said twice: up to the last answer or finished tool call,
//! updates are left out, questions give the answer that was given, and [`ToolCall::run`] gives the recorded result without
//! doing the work again. So a durable handler has to ask and call the same things in the same order each time, one after
//! the other; if it does not, its run fails and says so.

mod artifact;
mod error;
mod form;
mod handler_backend;
mod journal;
mod prompt;
mod run_channel;
mod sink;
mod tool_call;
mod tool_output;

pub use artifact::Artifact;
pub use error::{HandlerError, PromptResult, UpdateError};
pub use form::{Form, FormAnswer};
pub(crate) use handler_backend::HandlerBackend;
pub use handler_backend::PromptHandler;
pub use prompt::{CommandInput, Media, PromptRequest, SessionInfo};
pub use sink::UpdateSink;
pub use tool_call::{NewToolCall, Permission, ToolCall};
pub use tool_output::{ToolFailure, ToolOutput};

/// Whether a handler outlives the process that runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandlerDurability {
    /// It is called once. If the process dies, its run has failed.
    InMemory,
    /// It is called again from its beginning after an answer and after a restart.
    Durable,
}
