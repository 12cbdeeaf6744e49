//! What was said in a session as one list, read from its log while the list is taken.

use std::sync::Arc;

use gander_domain::hidden_entries::HiddenEntries;
use gander_domain::{Entry, Seq, SessionId};
use gander_store::{DeltaForm, Limit, Store, StoreError};
use serde_json::Value;

/// What one look into the log takes.
const READ_LIMIT: Limit = Limit { entries: 256, bytes: 32 * 1024 };

/// What a protocol makes of a log, item by item.
pub trait ListProjection: Send + 'static {
    /// What an entry says, whether or not it was taken back later.
    fn project_entry(&mut self, entry: &Entry) -> Vec<Value>;

    /// What is said after the last entry.
    fn finish(&mut self) -> Vec<Value> {
        Vec::new()
    }
}

/// A list that is made while it is taken.
pub struct LogList<R> {
    store: Arc<dyn Store>,
    session: SessionId,
    projection: R,
    hidden: HiddenEntries,
    position: Seq,
    end: Seq,
    over: bool,
}

impl<R: ListProjection> LogList<R> {
    /// Looks through the log once for what was taken back: that is not said.
    pub async fn open(store: &Arc<dyn Store>, session: SessionId, projection: R) -> Result<Self, StoreError> {
        let (mut hidden, mut end) = (HiddenEntries::default(), Seq::ZERO);
        loop {
            let page = store.read(session, end, READ_LIMIT, DeltaForm::Joined).await?;
            let Some(last) = page.last() else { break };
            end = last.seq;
            page.iter().for_each(|entry| hidden.apply_entry(entry));
        }
        Ok(Self { store: Arc::clone(store), session, projection, hidden, position: Seq::ZERO, end, over: false })
    }

    /// A list of nothing, for a session whose history nobody gets.
    pub fn withheld(store: &Arc<dyn Store>, session: SessionId, projection: R) -> Self {
        let (hidden, position, end) = (HiddenEntries::default(), Seq::ZERO, Seq::ZERO);
        Self { store: Arc::clone(store), session, projection, hidden, position, end, over: true }
    }

    /// Some more of it; nothing once it is over.
    pub async fn next_items(&mut self) -> Result<Option<Vec<Value>>, StoreError> {
        if self.over {
            return Ok(None);
        }
        let page = match self.position < self.end {
            true => self.store.read(self.session, self.position, READ_LIMIT, DeltaForm::Joined).await?,
            false => Vec::new(),
        };
        let Some(last) = page.last() else {
            self.over = true;
            return Ok(Some(self.projection.finish()));
        };
        self.position = last.seq;
        let mut items = Vec::new();
        for entry in page.iter().take_while(|entry| entry.seq <= self.end) {
            let told = self.projection.project_entry(entry);
            if !self.hidden.is_hidden(entry.seq) {
                items.extend(told);
            }
        }
        Ok(Some(items))
    }
}
