//! Questions that a client was asked, and when it is time to tell its person how to answer them elsewhere.

use std::collections::VecDeque;
use std::time::Duration;

use gander_domain::{QuestionId, SessionId};
use tokio::time::Instant;

/// Questions that may need a reminder. Every one of them waits for the same time, so the first is due first.
#[derive(Debug)]
pub(super) struct Reminders {
    delay: Option<Duration>,
    waiting: VecDeque<(Instant, SessionId, QuestionId)>,
}

impl Reminders {
    /// Reminders after so much time; `None`: never.
    pub(super) fn new(delay: Option<Duration>) -> Self {
        Self { delay, waiting: VecDeque::new() }
    }

    /// This question was asked just now.
    pub(super) fn schedule(&mut self, session: SessionId, question: QuestionId) {
        if let Some(delay) = self.delay {
            self.waiting.push_back((Instant::now() + delay, session, question));
        }
    }

    /// The next question whose time has come. Safe to drop: a question is taken only when it is due.
    pub(super) async fn next_due(&mut self) -> (SessionId, QuestionId) {
        let Some((due, session, question)) = self.waiting.front().copied() else { return std::future::pending().await };
        tokio::time::sleep_until(due).await;
        self.waiting.pop_front();
        (session, question)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use uuid::Uuid;

    use super::*;

    fn question(number: u128) -> (SessionId, QuestionId) {
        (SessionId::new(Uuid::from_u128(1)), QuestionId::new(Uuid::from_u128(number)))
    }

    #[tokio::test(start_paused = true)]
    async fn each_question_is_due_after_its_own_time() {
        let (begin, delay) = (Instant::now(), Duration::from_secs(20));
        let mut reminders = Reminders::new(Some(delay));
        reminders.schedule(question(1).0, question(1).1);
        tokio::time::advance(Duration::from_secs(5)).await;
        reminders.schedule(question(2).0, question(2).1);
        assert!(futures::poll!(pin!(reminders.next_due())).is_pending(), "dropping it loses nothing");
        assert_eq!((reminders.next_due().await, begin.elapsed()), (question(1), delay));
        assert_eq!((reminders.next_due().await, begin.elapsed()), (question(2), delay + Duration::from_secs(5)));
        assert!(futures::poll!(pin!(reminders.next_due())).is_pending());
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_time_nobody_is_reminded() {
        let mut reminders = Reminders::new(None);
        reminders.schedule(question(1).0, question(1).1);
        assert!(reminders.waiting.is_empty());
    }
}
