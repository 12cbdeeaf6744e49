//! Models: one neutral, part-structured stream over every provider's wire.
//!
//! [`connect()`] turns `provider/model` into a [`Model`]; a codec per wire turns a [`Request`]
//! into bytes and bytes into [`ModelEvent`]s without any IO; `http` moves the bytes.

use std::sync::Arc;

use async_trait::async_trait;
use gander_domain::{Delta, Effort, Message, Part, ProviderPayload, ToolSpec};

mod anthropic;
mod catalogue;
mod codec;
mod connect;
mod decoder;
mod demo;
mod detect;
mod encoded_history;
mod encoded_tools;
mod error;
mod failure;
#[cfg(feature = "genai")]
mod genai;
mod history;
mod http;
mod info;
mod keys;
mod openai_chat;
mod openai_responses;
mod profile;
mod response_stream;
mod retry;
mod sse;
mod stream;
mod timeouts;
pub mod wire;

pub use catalogue::{Catalogue, CatalogueError, Engine, Vendor};
pub use connect::{ConnectError, Lookup, connect, connect_with};
pub use demo::Demo;
pub use detect::{DetectedModel, Probe, detect_model, probes_to_try};
pub use encoded_history::EncodedHistoryCache;
pub use error::ModelError;
pub use http::{Auth, Endpoint, HttpModel};
pub use info::{ModelInfo, Price, Tokens};
pub use keys::{Keys, PROVIDER_VARIABLES};
pub use retry::Retry;
pub use stream::ModelStream;
pub use timeouts::{Limits, Timeouts};

/// Something that answers a conversation.
#[async_trait]
pub trait Model: Send + Sync {
    /// What it is and can do.
    fn info(&self) -> &ModelInfo;

    /// Starts one call. Failures before the first event were already retried where that helps.
    async fn stream(&self, request: Request) -> Result<ModelStream, ModelError>;
}

/// One call of a model.
#[derive(Clone, Debug)]
pub struct Request {
    /// The system prompt; may be empty.
    pub system: String,
    /// The conversation, in neutral form. Results of tools are found wherever they stand.
    pub messages: Vec<Arc<Message>>,
    /// The tools on offer.
    pub tools: Arc<[ToolSpec]>,
    /// How hard to think; absent: the model's default.
    pub effort: Option<Effort>,
    /// How freely to choose words, from 0; absent: the model's default.
    pub temperature: Option<f32>,
    /// At most so many tokens of output; absent: the model's own limit.
    pub max_output: Option<u32>,
    /// Further fields for the provider. Those that the wire sets itself stay as it sets them.
    pub params: serde_json::Map<String, serde_json::Value>,
}

/// Something a model said.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelEvent {
    /// Text or thought grew.
    Delta(Delta),
    /// A tool call began. Indices count from 0 without gaps.
    ToolStarted {
        /// Which call of this answer.
        index: u32,
        /// The tool's name.
        name: String,
    },
    /// The arguments of a call grew. Joined they are JSON once [`ModelEvent::Done`] came, unless it says
    /// [`ModelStop::MaxTokens`].
    ToolArguments {
        /// Which call of this answer.
        index: u32,
        /// By how much.
        text: String,
    },
    /// A part that came in one piece, such as an image.
    Part(Part),
    /// The answer is whole. Always the last event.
    Done(Finish),
}

/// How an answer ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Finish {
    pub stop: ModelStop,
    /// What it used.
    pub usage: Tokens,
    /// The provider's own form, to be kept in the message.
    pub native: Option<ProviderPayload>,
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelStop {
    /// It had nothing more to say.
    EndTurn,
    /// It wants tools.
    ToolUse,
    /// It ran out of room.
    MaxTokens,
    /// It, or its provider, refused.
    Refusal,
    /// It said what it was told to stop at.
    StopSequence,
}
