//! A harness for tests of an agent: the whole server in the test's own process, without sockets.
//!
//! [`Harness::new_session`] talks to the agent as an editor does, [`Harness::request`] as HTTP clients of every other
//! protocol do. Data lies in a temporary folder.
//!
//! ```
//! use gander::testing::Harness;
//! use gander::{Agent, AgentInfo, Form, FormAnswer, PromptRequest, PromptResult, StopReason, UpdateSink};
//!
//! async fn greet(_request: PromptRequest, sink: UpdateSink) -> PromptResult {
//!     match sink.ask(Form::new("Who are you?").text("name", "Your name")).await? {
//!         FormAnswer::Declined => sink.text("Hello, stranger").await?,
//!         answer => sink.text(format!("Hello, {}", answer.text("name").unwrap_or("you"))).await?,
//!     }
//!     Ok(StopReason::EndTurn)
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let harness = Harness::start(Agent::new(AgentInfo::new("greeter", "1.0.0")).on_prompt(greet)).await?;
//! let session = harness.new_session().await?;
//! assert_eq!(session.prompt("hi").await?.text, "Hello, stranger");
//! session.fill_forms(serde_json::json!({ "name": "Ada" }));
//! assert_eq!(session.prompt("hi").await?.text, "Hello, Ada");
//!
//! // The same agent over A2A.
//! let (status, card) = harness.get("/.well-known/agent-card.json").await?;
//! assert_eq!((status.as_u16(), card["name"].as_str()), (200, Some("greeter")));
//! # Ok(())
//! # }
//! ```

mod harness;
mod test_client;
mod test_session;
mod test_turn;

use gander_client::CallError;

pub use self::harness::Harness;
pub use self::test_session::TestSession;
pub use self::test_turn::{TestToolCall, TestTurn};

/// Why a test cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum TestError {
    /// The server does not start.
    #[error("the server does not start: {0}")]
    Start(String),
    /// The agent refused or failed.
    #[error(transparent)]
    Call(#[from] CallError),
    /// A response that cannot be read.
    #[error("the response cannot be read: {0}")]
    Response(String),
}
