//! Sessions at rest: a bounded cache of machines whose log need not be read again for their next turn.

use std::collections::VecDeque;

use gander_domain::{Context, Session, SessionId, SessionView};

use crate::log::Epoch;

/// Messages kept in all contexts together: what is not kept is read again when it is needed.
const MOST_MESSAGES: usize = 64 * 1_024;

/// A session without a task.
pub(super) struct Warm {
    pub(super) session: Session,
    pub(super) epoch: Epoch,
    pub(super) context: Option<Context>,
}

impl Warm {
    pub(super) fn new(session: Session, epoch: Epoch, context: Option<Context>) -> Self {
        Self { session, epoch, context }
    }

    fn messages(&self) -> usize {
        self.context.as_ref().map_or(0, |context| context.messages.len())
    }

    fn id(&self) -> SessionId {
        self.session.view().session
    }
}

/// The sessions that rested last, newest at the back.
pub(super) struct Rest {
    warm: VecDeque<Warm>,
    limit: usize,
    /// In all contexts.
    messages: usize,
}

impl Rest {
    pub(super) fn new(limit: usize) -> Self {
        Self { warm: VecDeque::new(), limit, messages: 0 }
    }

    pub(super) fn put(&mut self, warm: Warm) {
        self.take(warm.id());
        self.messages += warm.messages();
        self.warm.push_back(warm);
        while self.warm.len() > self.limit || self.messages > MOST_MESSAGES {
            let Some(coldest) = self.warm.pop_front() else { return };
            self.messages -= coldest.messages();
        }
    }

    pub(super) fn take(&mut self, session: SessionId) -> Option<Warm> {
        let index = self.warm.iter().rposition(|warm| warm.id() == session)?;
        let warm = self.warm.remove(index)?;
        self.messages -= warm.messages();
        Some(warm)
    }

    pub(super) fn view(&self, session: SessionId) -> Option<SessionView> {
        self.warm.iter().find(|warm| warm.id() == session).map(|warm| warm.session.view().clone())
    }
}
