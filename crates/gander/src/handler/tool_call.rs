//! Tool calls of a handler: described, allowed, started, ended.

use std::fmt::{self, Display};
use std::sync::Arc;

use gander_domain::{
    self as domain, Choice, ChoiceKind, Location, QuestionKind, RejectReason, Reply, Report, ToolCallId, ToolContent,
    ToolEnd, ToolGate, ToolKind, ToolResult,
};
use gander_store::clock::SystemIds;
use serde_json::Value;

use super::form::new_form_question;
use super::journal::{RecordedCall, Step};
use super::run_channel::RunChannel;
use super::{ToolFailure, ToolOutput, UpdateError};

/// A tool call before it starts. [`UpdateSink::tool_call`](crate::UpdateSink::tool_call) makes one.
///
/// ```
/// use gander::testing::Harness;
/// use gander::{Agent, AgentInfo, Permission, PromptRequest, PromptResult, StopReason, ToolKind, UpdateSink};
///
/// async fn delete(request: PromptRequest, sink: UpdateSink) -> PromptResult {
///     let call = sink.tool_call("delete_file").kind(ToolKind::Delete).title("Delete notes.txt");
///     match call.input(serde_json::json!({ "path": "notes.txt" })).request_permission().await? {
///         Permission::Allowed(call) => {
///             let output = call.run(async { Ok::<_, std::io::Error>("deleted") }).await??;
///             sink.text(output.text()).await?;
///         }
///         Permission::Rejected { .. } => sink.text("It stays.").await?,
///     }
///     Ok(StopReason::EndTurn)
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let harness = Harness::start(Agent::new(AgentInfo::new("cleaner", "1.0.0")).on_prompt(delete)).await?;
/// let session = harness.new_session().await?;
/// session.reject_permissions();
/// assert_eq!(session.prompt("clean up").await?.text, "It stays.");
/// session.allow_permissions();
/// let turn = session.prompt("clean up").await?;
/// assert_eq!((turn.text.as_str(), turn.tool_calls[0].status.as_str()), ("deleted", "completed"));
/// # Ok(())
/// # }
/// ```
#[must_use = "a tool call does nothing until it is started or asked for"]
pub struct NewToolCall {
    run: Arc<RunChannel>,
    call: domain::ToolCall,
    preview: Vec<ToolContent>,
    offers_always: bool,
}

/// What a person said to a permission request.
#[derive(Debug)]
pub enum Permission {
    /// Yes. The start of the call is in the log: do the work now.
    Allowed(ToolCall),
    /// No, and in the person's own words why, if they gave any. The call has ended as rejected.
    Rejected {
        /// Why, if it was said.
        reason: Option<String>,
    },
}

/// A tool call that has started. One that is dropped without an end is closed as interrupted when the turn ends.
#[must_use = "a tool call that is not ended is closed as interrupted"]
pub struct ToolCall {
    run: Arc<RunChannel>,
    id: ToolCallId,
    recorded: Option<ToolResult>,
    allowed_always: bool,
}

impl NewToolCall {
    pub(super) fn new(run: Arc<RunChannel>, name: String) -> Self {
        let call = domain::ToolCall {
            id: ToolCallId::make(&mut SystemIds),
            title: name.clone(),
            name,
            kind: ToolKind::Other,
            arguments: Value::Object(serde_json::Map::new()),
            locations: Vec::new(),
            idempotent: false,
        };
        Self { run, call, preview: Vec::new(), offers_always: false }
    }

    /// One line for people; the tool's name if it is not given.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.call.title = title.into();
        self
    }

    /// What sort of thing it does: clients choose an icon by it.
    pub fn kind(mut self, kind: ToolKind) -> Self {
        self.call.kind = kind;
        self
    }

    /// Its arguments.
    pub fn input(mut self, arguments: impl Into<Value>) -> Self {
        self.call.arguments = arguments.into();
        self
    }

    /// A file that it touches, by its absolute path: editors follow along.
    pub fn location(mut self, path: impl Into<String>) -> Self {
        self.call.locations.push(Location::file(path));
        self
    }

    /// What an approval would do, such as the change of a file: shown with the permission request.
    pub fn preview(mut self, content: impl Into<ToolOutput>) -> Self {
        self.preview.extend(content.into().content);
        self
    }

    /// Doing it twice is the same as doing it once: a durable handler that was killed in the middle does it again.
    pub fn idempotent(mut self) -> Self {
        self.call.idempotent = true;
        self
    }

    /// Offers "always" with the permission request. [`ToolCall::is_allowed_always`] tells whether it was chosen; to
    /// remember that is up to the handler.
    pub fn offer_always(mut self) -> Self {
        self.offers_always = true;
        self
    }

    /// Starts it without asking. Its start is in the log when this returns.
    pub async fn start(self) -> Result<ToolCall, UpdateError> {
        match self.recorded_call()? {
            Some(recorded) => self.go_on(*recorded).await,
            None => {
                let (id, report) = (self.call.id, Report::ToolWanted { call: self.call, gate: ToolGate::Open });
                self.run.start_and_wait(id, report).await?;
                Ok(ToolCall { run: self.run, id, recorded: None, allowed_always: false })
            }
        }
    }

    /// Starts it, does the work and tells how it ended: see [`ToolCall::run`].
    pub async fn run<T, E>(
        self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<Result<ToolOutput, ToolFailure>, UpdateError>
    where
        T: Into<ToolOutput>,
        E: Display,
    {
        self.start().await?.run(work).await
    }

    /// Asks a person, and waits for the answer, which may come from any client.
    pub async fn request_permission(self) -> Result<Permission, UpdateError> {
        let (reply, recorded) = match self.recorded_call()? {
            Some(recorded) => match recorded.reply.clone() {
                Some(reply) => (reply, Some(recorded)),
                None => self.run.park_here().await,
            },
            None => (self.ask_permission().await?, None),
        };
        if reply.is_allowed() {
            let allowed_always = matches!(reply, Reply::Chosen { kind: ChoiceKind::AllowAlways, .. });
            let call = match recorded {
                Some(recorded) => self.go_on(*recorded).await?,
                None => self.start_allowed().await?,
            };
            return Ok(Permission::Allowed(ToolCall { allowed_always, ..call }));
        }
        match reply {
            Reply::Cancelled => Err(UpdateError::Cancelled),
            Reply::Interrupted | Reply::Superseded => Err(UpdateError::Ended),
            reply @ (Reply::Chosen { .. } | Reply::Filled { .. } | Reply::Rejected { .. } | Reply::Declined) => {
                self.end_rejected(recorded.as_deref(), &reply).await
            }
        }
    }

    async fn ask_permission(&self) -> Result<Reply, UpdateError> {
        let mut choices = vec![tool_call_choice("allow_once", "Allow", ChoiceKind::AllowOnce)];
        if self.offers_always {
            choices.push(tool_call_choice("allow_always", "Always allow", ChoiceKind::AllowAlways));
        }
        choices.push(tool_call_choice("reject_once", "Reject", ChoiceKind::RejectOnce));
        let kind = QuestionKind::Choose { choices };
        let mut question = new_form_question(self.call.title.clone(), kind, self.run.question_origin());
        question.preview.clone_from(&self.preview);
        let (id, call) = (question.id, self.call.clone());
        self.run.ask_and_wait(id, Report::ToolWanted { call, gate: ToolGate::Ask(question) }).await
    }

    async fn start_allowed(&self) -> Result<ToolCall, UpdateError> {
        let id = self.call.id;
        self.run.start_and_wait(id, Report::ToolReady { call: id }).await?;
        Ok(ToolCall { run: Arc::clone(&self.run), id, recorded: None, allowed_always: false })
    }

    async fn end_rejected(&self, recorded: Option<&RecordedCall>, reply: &Reply) -> Result<Permission, UpdateError> {
        let reason = tool_call_rejection(reply);
        let call = recorded.map_or(self.call.id, |recorded| recorded.call.id);
        if recorded.is_none_or(|recorded| recorded.result.is_none()) {
            let text = reason.clone().unwrap_or_else(|| "rejected".to_owned());
            let result = ToolResult::text(ToolEnd::Rejected, text);
            self.run.send_report(Report::ToolDone { call, result }).await?;
        }
        Ok(Permission::Rejected { reason })
    }

    /// The call that a durable handler made here before. Another one than this is a mistake in the handler.
    fn recorded_call(&self) -> Result<Option<Box<RecordedCall>>, UpdateError> {
        match self.run.next_step() {
            None => Ok(None),
            Some(Step::Tool(recorded)) if is_same_tool_call(&recorded.call, &self.call) => Ok(Some(recorded)),
            Some(Step::Tool(_) | Step::Question { .. }) => Err(UpdateError::Diverged),
        }
    }

    /// From where a recorded call is: over, at work when the process died, or allowed and not started.
    async fn go_on(&self, recorded: RecordedCall) -> Result<ToolCall, UpdateError> {
        let id = recorded.call.id;
        if !recorded.started && recorded.result.is_none() {
            self.run.start_and_wait(id, Report::ToolReady { call: id }).await?;
        }
        Ok(ToolCall { run: Arc::clone(&self.run), id, recorded: recorded.result, allowed_always: false })
    }
}

impl ToolCall {
    /// Shows something while it runs; it replaces what was shown before.
    pub async fn progress(&self, output: impl Into<ToolOutput>) -> Result<(), UpdateError> {
        let content = output.into().content;
        self.run.send_report(Report::ToolUpdated { call: self.id, content }).await
    }

    /// It did what was asked.
    pub async fn done(self, output: impl Into<ToolOutput>) -> Result<(), UpdateError> {
        self.end(output.into().into_result(ToolEnd::Completed)).await
    }

    /// It failed.
    pub async fn failed(self, message: impl Into<String>) -> Result<(), UpdateError> {
        self.end(ToolResult::text(ToolEnd::Failed, message)).await
    }

    /// Does the work and tells how it ended. The inner error is what the tool said when it failed.
    ///
    /// In a durable handler that is called again, a call that ended gives its recorded result, and `work` is not done.
    /// `work` is dropped when the run is cancelled.
    pub async fn run<T, E>(
        self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<Result<ToolOutput, ToolFailure>, UpdateError>
    where
        T: Into<ToolOutput>,
        E: Display,
    {
        if let Some(recorded) = self.recorded {
            return Ok(ToolOutput::of_result(recorded));
        }
        let worked = tokio::select! {
            biased;
            () = self.run.cancel_token().cancelled() => return Err(UpdateError::Cancelled),
            worked = work => worked,
        };
        match worked {
            Ok(output) => {
                let output: ToolOutput = output.into();
                self.done(output.clone()).await?;
                Ok(Ok(output))
            }
            Err(error) => {
                let message = error.to_string();
                self.failed(&message).await?;
                Ok(Err(ToolFailure(message)))
            }
        }
    }

    /// How this call ended when a durable handler made it before.
    pub fn recorded(&self) -> Option<&ToolResult> {
        self.recorded.as_ref()
    }

    /// Whether "always" was chosen.
    pub fn is_allowed_always(&self) -> bool {
        self.allowed_always
    }

    async fn end(self, result: ToolResult) -> Result<(), UpdateError> {
        match self.recorded {
            Some(_) => Ok(()),
            None => self.run.send_report(Report::ToolDone { call: self.id, result }).await,
        }
    }
}

impl fmt::Debug for NewToolCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewToolCall").field("call", &self.call).finish_non_exhaustive()
    }
}

impl fmt::Debug for ToolCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolCall").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Ids are made anew each time a handler runs: what is called with what is compared.
fn is_same_tool_call(one: &domain::ToolCall, other: &domain::ToolCall) -> bool {
    one.name == other.name && one.arguments == other.arguments
}

fn tool_call_choice(id: &str, name: &str, kind: ChoiceKind) -> Choice {
    Choice { id: id.to_owned(), name: name.to_owned(), kind }
}

fn tool_call_rejection(reply: &Reply) -> Option<String> {
    match reply {
        Reply::Rejected { reason: RejectReason::Said(text) } => Some(text.clone()),
        Reply::Rejected { reason: RejectReason::Unattended } => Some("nobody could be asked".to_owned()),
        Reply::Chosen { .. }
        | Reply::Filled { .. }
        | Reply::Declined
        | Reply::Cancelled
        | Reply::Interrupted
        | Reply::Superseded => None,
    }
}
