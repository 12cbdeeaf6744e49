//! Questions of live children: each waits for its answer here, or for the end of whoever asked.

use std::task::Poll;

use gander_domain::{Answer, Question, QuestionId, QuestionKind, QuestionOrigin, Reply, SubagentCall};
use tokio::sync::oneshot;

/// Questions of live children that are open.
#[derive(Default)]
pub(super) struct PendingQuestions(Vec<(QuestionId, oneshot::Sender<Reply>)>);

/// A question that names no call.
pub(super) struct NewQuestion {
    pub(super) id: QuestionId,
    pub(super) title: String,
    pub(super) ask: QuestionKind,
    pub(super) origin: QuestionOrigin,
    pub(super) subagent: Option<Box<SubagentCall>>,
}

impl PendingQuestions {
    /// Keeps the asker's place, and gives the question as people see it.
    pub(super) fn add_question(&mut self, question: NewQuestion, reply: oneshot::Sender<Reply>) -> Question {
        let NewQuestion { id, title, ask, origin, subagent } = question;
        self.0.push((id, reply));
        Question {
            id,
            call: None,
            title,
            ask,
            origin,
            fingerprint: None,
            plan: None,
            subagent,
            preview: Vec::new(),
            outward: None,
            meta: None,
        }
    }

    /// Hands an answer to whoever asked; an answer to any other question is none of ours.
    pub(super) fn answer_question(&mut self, question: QuestionId, answer: &Answer) {
        if let Some(place) = self.0.iter().position(|(id, _)| *id == question) {
            let (_, reply) = self.0.swap_remove(place);
            if reply.send(answer.reply.clone()).is_err() {
                tracing::debug!(%question, "an answer came after the end of whoever asked");
            }
        }
    }

    /// The next question whose asker is gone; never, if all of them wait. Nothing is lost if the caller stops waiting.
    pub(super) async fn next_abandoned(&mut self) -> QuestionId {
        std::future::poll_fn(|context| {
            let gone = self.0.iter_mut().position(|(_, reply)| reply.poll_closed(context).is_ready());
            gone.map_or(Poll::Pending, |place| Poll::Ready(self.0.swap_remove(place).0))
        })
        .await
    }
}
