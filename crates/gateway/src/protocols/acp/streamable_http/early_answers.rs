//! Answers that arrive before the connection itself knows the question again.
//!
//! A stream that is opened tells the messages that were kept for it at once, while the connection goes through the log
//! anew. So a client can read a question, and answer it, sooner than the connection knows that it was asked. Such an
//! answer waits: dropped, it would leave the turn waiting for somebody who has answered.

use gander_domain::caller::Caller;
use gander_domain::{Seq, SessionId};
use gander_wire::jsonrpc::RequestId;
use tokio::sync::oneshot;

use super::connection_actor::ConnectionActor;
use super::{PostOutcome, PostedMessage};

/// Answers that may wait for a connection at once: a client has few open questions.
const MAX_EARLY_ANSWERS: usize = 16;

/// An answer to a question that the connection is about to go through.
pub(super) struct EarlyAnswer {
    /// Whose authority counts, however many others post meanwhile.
    caller: Caller,
    post: PostedMessage,
    reply: oneshot::Sender<PostOutcome>,
    session: SessionId,
    /// From here on the connection knows every question that the client can have read.
    until: Seq,
}

impl ConnectionActor {
    pub(super) async fn handle_post(&mut self, post: PostedMessage, reply: oneshot::Sender<PostOutcome>) {
        let early = match &post.answers {
            Some(answered) => self.restore_question(answered).await,
            None => None,
        };
        match early {
            None => self.carry_out_post(post, reply).await,
            Some(_) if self.early_answers.len() >= MAX_EARLY_ANSWERS => drop(reply.send(PostOutcome::Unavailable)),
            Some((session, until)) => {
                let caller = self.client.peer.caller.clone();
                self.early_answers.push(EarlyAnswer { caller, post, reply, session, until });
            }
        }
    }

    /// Carries out the answers whose questions are known by now, or never will be.
    pub(super) async fn handle_early_answers(&mut self) {
        let Self { client, early_answers, .. } = self;
        let due: Vec<_> = early_answers
            .extract_if(.., |early| {
                let answered: Option<&RequestId> = early.post.answers.as_ref();
                let known = answered.is_some_and(|id| client.connection.session_of_question(id).is_some());
                let view = client.connection.view(early.session);
                known
                    || !client.connection.is_attached(early.session)
                    || view.is_some_and(|view| view.head >= early.until)
            })
            .collect();
        for EarlyAnswer { caller, post, reply, .. } in due {
            self.client.peer.caller = caller;
            self.carry_out_post(post, reply).await;
        }
    }
}
