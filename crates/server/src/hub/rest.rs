//! Sessions at rest: a bounded cache of machines whose log need not be read again for their next turn.

use std::collections::{BTreeMap, HashMap};

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

/// The sessions that rested last.
pub(super) struct Rest {
    /// Each with the number of its coming.
    warm: HashMap<SessionId, (u64, Warm)>,
    /// Who came when, the coldest first.
    order: BTreeMap<u64, SessionId>,
    came: u64,
    limit: usize,
    /// In all contexts.
    messages: usize,
}

impl Rest {
    pub(super) fn new(limit: usize) -> Self {
        Self { warm: HashMap::new(), order: BTreeMap::new(), came: 0, limit, messages: 0 }
    }

    pub(super) fn put(&mut self, warm: Warm) {
        let id = warm.id();
        self.take(id);
        self.came += 1;
        self.messages += warm.messages();
        self.order.insert(self.came, id);
        self.warm.insert(id, (self.came, warm));
        while self.warm.len() > self.limit || self.messages > MOST_MESSAGES {
            let Some(coldest) = self.order.first_key_value().map(|(_, id)| *id) else { return };
            self.take(coldest);
        }
    }

    pub(super) fn take(&mut self, session: SessionId) -> Option<Warm> {
        let (came, warm) = self.warm.remove(&session)?;
        self.order.remove(&came);
        self.messages -= warm.messages();
        Some(warm)
    }

    pub(super) fn view(&self, session: SessionId) -> Option<SessionView> {
        self.warm.get(&session).map(|(_, warm)| warm.session.view().clone())
    }
}
