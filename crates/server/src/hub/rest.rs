//! Sessions at rest: a bounded cache of machines whose log need not be read again for their next turn.

use std::collections::VecDeque;

use gander_domain::{Context, Session, SessionId, SessionView};

use crate::log::Epoch;

/// A context with more messages than this is not kept: it is read again when it is needed.
const LARGEST_CONTEXT: usize = 4_096;

/// A session without a task.
pub(super) struct Warm {
    pub(super) session: Session,
    pub(super) epoch: Epoch,
    pub(super) context: Option<Context>,
}

impl Warm {
    pub(super) fn new(session: Session, epoch: Epoch, context: Option<Context>) -> Self {
        let context = context.filter(|context| context.messages.len() <= LARGEST_CONTEXT);
        Self { session, epoch, context }
    }

    fn id(&self) -> SessionId {
        self.session.view().session
    }
}

/// The sessions that rested last, newest at the back.
pub(super) struct Rest {
    warm: VecDeque<Warm>,
    limit: usize,
}

impl Rest {
    pub(super) fn new(limit: usize) -> Self {
        Self { warm: VecDeque::new(), limit }
    }

    pub(super) fn put(&mut self, warm: Warm) {
        self.take(warm.id());
        if self.warm.len() == self.limit {
            self.warm.pop_front();
        }
        self.warm.push_back(warm);
    }

    pub(super) fn take(&mut self, session: SessionId) -> Option<Warm> {
        let index = self.warm.iter().position(|warm| warm.id() == session)?;
        self.warm.remove(index)
    }

    pub(super) fn view(&self, session: SessionId) -> Option<SessionView> {
        self.warm.iter().find(|warm| warm.id() == session).map(|warm| warm.session.view().clone())
    }
}
