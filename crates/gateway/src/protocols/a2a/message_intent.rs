//! What a message means to a task: the same once more, an answer, an answer that comes too late, or a prompt.

use std::time::Duration;

use gander_domain::{Command, Entry, Event, IfBusy, Part, Question, RunId, Seq};
use gander_runtime::hub::Ack;
use gander_services::request_hash::RequestHash;
use gander_store::DeltaForm;
use gander_store::clock::SystemIds;
use gander_wire::a2a::{A2aError, A2aErrorKind, A2aMessage, content, question};
use serde_json::Value;

use super::{A2a, A2aCaller, TaskRef, a2a_store_error};

/// Why a message that fits an answered question is refused.
pub(super) const ALREADY_ANSWERED: &str = "the question was answered already; to prompt the running task set \
\"prompt\": true under the extension's key in the message's metadata, task";

/// How long entries that the session has made may take until they are in the log.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(10);

/// A message on its way to a task.
pub(super) struct SentMessage<'a> {
    pub(super) message: &'a A2aMessage,
    pub(super) parts: Vec<Part>,
    pub(super) ack: Ack,
    hash: RequestHash,
}

/// What a task's log says about a message.
pub(super) struct PriorMessages {
    pub(super) sent: MessageSeen,
    /// Questions that held the task up and were answered, oldest first.
    answered: Vec<Question>,
    open: Vec<Question>,
}

/// Whether a message with this id is in the log already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageSeen {
    Not,
    Same,
    Otherwise,
}

impl<'a> SentMessage<'a> {
    pub(super) fn new(message: &'a A2aMessage, parts: Vec<Part>, ack: Ack) -> Self {
        let hash = RequestHash::new(&(&parts, &message.metadata));
        Self { message, parts, ack, hash }
    }

    /// What is kept of it in the log beside its content.
    pub(super) fn log_meta(&self) -> Value {
        self.hash.add_to_meta(Some(content::a2a_message_meta(self.message)))
    }

    /// A prompt to the running task, and to no other run: the task may end or be cancelled before it comes there.
    pub(super) fn steer_command(&self, caller: &A2aCaller, task: RunId) -> Command {
        let (run, parts, meta) = (RunId::make(&mut SystemIds), self.parts.clone(), Some(self.log_meta()));
        Command::Prompt { run, origin: caller.origin(), parts, if_busy: IfBusy::SteerRun(task), meta }
    }

    /// An answer to what the task asks.
    pub(super) fn answer_command(&self, caller: &A2aCaller, question: &Question) -> Result<Command, A2aError> {
        let reply = question::read_a2a_reply(question, self.message)?;
        let meta = Some(Box::new(self.log_meta()));
        Ok(Command::Answer { question: question.id, reply, origin: caller.origin(), meta })
    }

    /// Its id stands for another message.
    pub(super) fn id_reused_error(&self) -> A2aError {
        let id = &self.message.message_id;
        A2aError::invalid_field("message.messageId", format!("was used for another message, choose a new one: {id}"))
    }
}

impl PriorMessages {
    fn scan_entry(&mut self, entry: &Entry, sent: &SentMessage<'_>) {
        let meta = entry.meta.as_deref();
        if meta.and_then(content::a2a_message_id_in_meta) == Some(sent.message.message_id.as_str()) {
            self.sent = if sent.hash.matches_meta(meta) { MessageSeen::Same } else { MessageSeen::Otherwise };
        }
        if let Event::QuestionAsked { question } = &entry.event {
            self.open.push(question.clone());
        }
        if let Event::QuestionAnswered { question, .. } = &entry.event
            && let Some(index) = self.open.iter().position(|open| open.id == *question)
        {
            self.answered.push(self.open.remove(index));
        }
    }

    /// True if a message can only be meant as an answer to a question that was answered: it names such a one, or it
    /// names none, fits the last one and does not say that it is a prompt.
    ///
    /// Whoever answers has seen the question and not what happened since: taking the words for a prompt would hand a
    /// "no" to an agent that goes on with somebody else's "yes".
    pub(super) fn repeats_answer(&self, message: &A2aMessage) -> bool {
        if let Some(named) = question::a2a_question_id_in(message) {
            return self.answered.iter().any(|question| question.id.to_string() == named);
        }
        let last = self.answered.iter().rev().find(|question| !question.is_non_blocking());
        !question::is_a2a_question_marked_as_prompt(message)
            && last.is_some_and(|last| question::read_a2a_reply(last, message).is_ok())
    }
}

impl A2a {
    /// What the task's log up to this place says about a message. A place that the session has reached and the store has
    /// not is waited for: an answer just given would be missed otherwise.
    pub(super) async fn scan_prior_messages(
        &self,
        task_ref: &TaskRef,
        sent: &SentMessage<'_>,
        head: Seq,
    ) -> Result<PriorMessages, A2aError> {
        let mut past = PriorMessages { sent: MessageSeen::Not, answered: Vec::new(), open: Vec::new() };
        let mut follower = self.services.hub.follow_session(task_ref.session, task_ref.after, DeltaForm::Joined);
        let mut at = task_ref.after;
        while at < head {
            let late = |_| A2aError::new(A2aErrorKind::Unavailable, "the store is slow, try again");
            let batch = tokio::time::timeout(COMMIT_TIMEOUT, follower.next_batch()).await.map_err(late)?;
            let Some(batch) = batch.map_err(a2a_store_error)? else { break };
            let from = at;
            // A batch may begin with entries that were given before.
            for entry in batch.iter().skip_while(|entry| entry.seq <= from) {
                at = entry.seq;
                if entry.run == Some(task_ref.run) {
                    past.scan_entry(entry, sent);
                }
            }
        }
        Ok(past)
    }
}
