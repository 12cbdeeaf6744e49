//! The prompt that a handler answers, and the session it belongs to.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gander_domain::message::plain_text;
use gander_domain::{Message, Part, Policy, Principal, RunId, SessionId, SessionView, SlashCommand};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

/// One prompt.
///
/// ```
/// use gander::testing::Harness;
/// use gander::{Agent, AgentInfo, Capabilities, PromptRequest, PromptResult, StopReason, UpdateSink};
///
/// async fn count(request: PromptRequest, sink: UpdateSink) -> PromptResult {
///     let (images, earlier) = (request.images().count(), request.history().len());
///     sink.text(format!("{} parts, {images} images, {earlier} earlier messages", request.parts().len())).await?;
///     Ok(StopReason::EndTurn)
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let agent = Agent::new(AgentInfo::new("counter", "1.0.0")).capabilities(Capabilities::new().image()).on_prompt(count);
/// let harness = Harness::start(agent).await?;
/// let session = harness.new_session().await?;
/// assert_eq!(session.prompt("hello").await?.text, "1 parts, 0 images, 0 earlier messages");
/// assert_eq!(session.prompt("again").await?.text, "1 parts, 0 images, 2 earlier messages");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct PromptRequest {
    pub(super) run: RunId,
    pub(super) session: SessionInfo,
    pub(super) parts: Vec<Part>,
    pub(super) command: Option<CommandInput>,
    pub(super) history: Vec<Arc<Message>>,
    pub(super) meta: Option<Value>,
    pub(super) cancel: CancellationToken,
}

/// A slash command that a person typed, such as `/search rust`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandInput {
    /// One of the names that the agent offers.
    pub name: String,
    /// What was typed after it.
    pub input: String,
}

/// An image or a sound in a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Media<'a> {
    /// Its media type, such as `image/png`.
    pub mime: &'a str,
    /// Its bytes in base64.
    pub data: &'a str,
}

/// The session that a prompt belongs to.
#[derive(Clone, Debug)]
pub struct SessionInfo {
    /// Its id, the same at every protocol.
    pub id: SessionId,
    /// Who it belongs to: `owner`, or the name of a token.
    pub owner: Principal,
    /// The folder it works in, an absolute path.
    pub workspace: String,
    /// Further folders it may use.
    pub folders: Vec<String>,
    /// The mode it is in, one of those that the agent offers.
    pub mode: String,
    /// What may be done without asking. A handler that calls tools decides by it when to ask.
    pub policy: Policy,
    /// Its title, if it has one.
    pub title: Option<String>,
    /// What the client said of it when it began: `metadata`, or `_meta` of `session/new` in ACP.
    pub metadata: Map<String, Value>,
}

impl PromptRequest {
    /// The text of the prompt, without its other parts.
    pub fn text(&self) -> String {
        plain_text(&self.parts)
    }

    /// Everything in the prompt, in order: text, images, audio, resources and links to resources.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The images in the prompt. There are none unless the agent has the capability.
    pub fn images(&self) -> impl Iterator<Item = Media<'_>> {
        self.parts.iter().filter_map(|part| match part {
            Part::Image { mime, data, .. } => Some(Media { mime, data }),
            Part::Text { .. }
            | Part::Thought { .. }
            | Part::Audio { .. }
            | Part::Link { .. }
            | Part::Resource { .. }
            | Part::ToolUse { .. }
            | Part::ToolResult { .. }
            | Part::Unknown(_) => None,
        })
    }

    /// The sounds in the prompt. There are none unless the agent has the capability.
    pub fn audio(&self) -> impl Iterator<Item = Media<'_>> {
        self.parts.iter().filter_map(|part| match part {
            Part::Audio { mime, data } => Some(Media { mime, data }),
            Part::Text { .. }
            | Part::Thought { .. }
            | Part::Image { .. }
            | Part::Link { .. }
            | Part::Resource { .. }
            | Part::ToolUse { .. }
            | Part::ToolResult { .. }
            | Part::Unknown(_) => None,
        })
    }

    /// The slash command that the prompt is, if it is one that the agent offers.
    pub fn command(&self) -> Option<&CommandInput> {
        self.command.as_ref()
    }

    /// What was said in the session before this prompt, by anybody.
    pub fn history(&self) -> &[Arc<Message>] {
        &self.history
    }

    /// The session it belongs to.
    pub fn session(&self) -> &SessionInfo {
        &self.session
    }

    /// What the client's protocol says of the prompt beside its parts, by the name of the protocol: its id of the message,
    /// and what the client added.
    pub fn metadata(&self) -> Option<&Value> {
        self.meta.as_ref()
    }

    /// The run that this prompt began.
    pub fn run_id(&self) -> RunId {
        self.run
    }

    /// Cancelled when somebody cancels the run. The handler has some seconds to tidy up; then it is dropped.
    pub fn cancel_token(&self) -> &CancellationToken {
        &self.cancel
    }
}

impl Media<'_> {
    /// Its bytes. What came in was checked: the error cannot occur for parts of a prompt.
    pub fn decode(&self) -> Result<Vec<u8>, base64::DecodeError> {
        STANDARD.decode(self.data)
    }
}

impl CommandInput {
    /// The command that a prompt begins with, if it is one of these.
    pub(super) fn in_prompt(parts: &[Part], commands: &[SlashCommand]) -> Option<Self> {
        let Some(Part::Text { text }) = parts.first() else { return None };
        let line = text.trim().strip_prefix('/')?;
        let (name, input) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let known = commands.iter().any(|command| command.name == name);
        known.then(|| Self { name: name.to_owned(), input: input.trim().to_owned() })
    }
}

impl SessionInfo {
    pub(super) fn new(view: &SessionView, meta: Option<&Value>) -> Self {
        Self {
            id: view.session,
            owner: view.owner.clone(),
            workspace: view.workspace.clone(),
            folders: view.folders.clone(),
            mode: view.settings.mode.clone(),
            policy: view.settings.policy,
            title: view.title.clone(),
            metadata: prompt_metadata_in(meta),
        }
    }
}

/// What a client said of a session, wherever its protocol keeps that.
fn prompt_metadata_in(meta: Option<&Value>) -> Map<String, Value> {
    let objects = ["/acp/_meta", "/acp/metadata"].iter().filter_map(|place| meta?.pointer(place)?.as_object());
    objects.flatten().map(|(name, value)| (name.clone(), value.clone())).collect()
}
