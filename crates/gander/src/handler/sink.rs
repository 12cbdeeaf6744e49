//! What a handler answers with: each call is an update that every client of the session sees.

use std::fmt;
use std::sync::Arc;

use gander_domain::{
    Delta, DeltaKind, MessageId, Part, Plan, ProviderPayload, Question, QuestionKind, Reply, Report, Usage,
};
use gander_store::clock::SystemIds;
use serde_json::Value;

use super::form::new_form_question;
use super::journal::Step;
use super::run_channel::RunChannel;
use super::{Artifact, Form, FormAnswer, NewToolCall, UpdateError};

/// Where a handler sends its updates. Cheap to clone; clones may be used from several tasks.
///
/// An update is in the log before any client sees it. A slow store slows the handler down, nothing is dropped.
///
/// ```
/// use gander::testing::Harness;
/// use gander::{Agent, AgentInfo, Artifact, PromptRequest, PromptResult, StopReason, UpdateSink};
///
/// async fn report(_request: PromptRequest, sink: UpdateSink) -> PromptResult {
///     sink.thought("It should be short.").await?;
///     sink.text("Here ").await?;
///     sink.text("it is.").await?;
///     sink.artifact(Artifact::text("report.md", "text/markdown", "# Report\n")).await?;
///     sink.title("A short report").await?;
///     Ok(StopReason::EndTurn)
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let harness = Harness::start(Agent::new(AgentInfo::new("reporter", "1.0.0")).on_prompt(report)).await?;
/// let turn = harness.new_session().await?.prompt("go").await?;
/// assert_eq!((turn.thoughts.as_str(), turn.text.as_str()), ("It should be short.", "Here it is."));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct UpdateSink {
    pub(super) run: Arc<RunChannel>,
}

impl UpdateSink {
    /// Says something: the agent's open message grows by this text.
    pub async fn text(&self, text: impl Into<String>) -> Result<(), UpdateError> {
        self.send_delta(DeltaKind::Text, text.into()).await
    }

    /// The same in several pieces that are told at once, for those that come faster than they can be sent one by one.
    pub async fn texts(&self, pieces: impl IntoIterator<Item = String>) -> Result<(), UpdateError> {
        let deltas = pieces.into_iter().map(|text| Delta { growth: DeltaKind::Text, text }).collect();
        self.run.send_report(Report::Deltas(deltas)).await
    }

    /// Thinks aloud: clients show it apart from what is said, or not at all.
    pub async fn thought(&self, text: impl Into<String>) -> Result<(), UpdateError> {
        self.send_delta(DeltaKind::Thought, text.into()).await
    }

    /// Says something that does not grow, such as an image or a resource. It ends the open message.
    pub async fn part(&self, part: Part) -> Result<(), UpdateError> {
        self.end_message_with(vec![part]).await
    }

    /// Ends the open message: what is said next is another one. The end of a turn does this by itself.
    pub async fn end_message(&self) -> Result<(), UpdateError> {
        self.end_message_with(Vec::new()).await
    }

    /// Ends the open message with these parts, which do not grow.
    pub async fn end_message_with(&self, parts: Vec<Part>) -> Result<(), UpdateError> {
        self.run.send_report(Report::MessageDone { tail: parts, native: None, interrupted: false }).await
    }

    /// Says a whole message: what was open ends before it, what comes after it is another one.
    pub async fn message(&self, parts: impl Into<Vec<Part>>) -> Result<(), UpdateError> {
        self.send_whole_message(parts.into(), None).await
    }

    /// The same with something that one protocol alone understands, by the protocol's name.
    #[doc(hidden)]
    pub async fn message_for_protocol(
        &self,
        parts: Vec<Part>,
        protocol: &str,
        items: Value,
    ) -> Result<(), UpdateError> {
        self.send_whole_message(parts, Some(ProviderPayload { wire: protocol.to_owned(), items })).await
    }

    /// A call of this tool, to be described and then started or asked for.
    pub fn tool_call(&self, name: impl Into<String>) -> NewToolCall {
        NewToolCall::new(Arc::clone(&self.run), name.into())
    }

    /// Shows the plan, whole each time.
    pub async fn plan(&self, plan: Plan) -> Result<(), UpdateError> {
        self.run.send_report(Report::PlanSet(plan)).await
    }

    /// Has a person fill in a form, and waits for the answer, which may come from any client.
    pub async fn ask(&self, form: Form) -> Result<FormAnswer, UpdateError> {
        self.ask_question(form.into_question(self.run.question_origin())).await
    }

    /// Has a person open a page, such as one to log in, and waits until somebody says that it is done.
    pub async fn ask_to_visit(
        &self,
        title: impl Into<String>,
        url: impl Into<String>,
    ) -> Result<FormAnswer, UpdateError> {
        let visit = QuestionKind::Visit { url: url.into() };
        self.ask_question(new_form_question(title.into(), visit, self.run.question_origin())).await
    }

    async fn ask_question(&self, question: Question) -> Result<FormAnswer, UpdateError> {
        let reply = match self.run.next_step() {
            None => self.run.ask_and_wait(question.id, Report::Asked(question)).await?,
            Some(Step::Question { reply: Some(reply), .. }) => reply,
            Some(Step::Question { reply: None, .. }) => self.run.park_here().await,
            Some(Step::Tool(_)) => return Err(UpdateError::Diverged),
        };
        match reply {
            Reply::Filled { content } => Ok(FormAnswer::Accepted(content)),
            Reply::Chosen { .. } | Reply::Rejected { .. } | Reply::Declined => Ok(FormAnswer::Declined),
            Reply::Cancelled => Err(UpdateError::Cancelled),
            Reply::Interrupted | Reply::Superseded => Err(UpdateError::Ended),
        }
    }

    /// Saves something under a name. It is stored when this returns.
    pub async fn artifact(&self, artifact: Artifact) -> Result<(), UpdateError> {
        self.run.save_artifact(artifact).await
    }

    /// Tells what a model call used.
    pub async fn usage(&self, usage: Usage) -> Result<(), UpdateError> {
        self.run.send_report(Report::UsageAdded(usage)).await
    }

    /// Gives the session a title, unless it has one.
    pub async fn title(&self, title: impl Into<String>) -> Result<(), UpdateError> {
        self.run.send_report(Report::Titled(title.into())).await
    }

    /// True once somebody has cancelled the run.
    pub fn is_cancelled(&self) -> bool {
        self.run.cancel_token().is_cancelled()
    }

    async fn send_whole_message(&self, tail: Vec<Part>, native: Option<ProviderPayload>) -> Result<(), UpdateError> {
        self.run.send_report(Report::MessageStarted { message: MessageId::make(&mut SystemIds) }).await?;
        self.run.send_report(Report::MessageDone { tail, native, interrupted: false }).await
    }

    async fn send_delta(&self, growth: DeltaKind, text: String) -> Result<(), UpdateError> {
        self.run.send_report(Report::Deltas(vec![Delta { growth, text }])).await
    }
}

impl fmt::Debug for UpdateSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpdateSink").field("cancelled", &self.is_cancelled()).finish_non_exhaustive()
    }
}
