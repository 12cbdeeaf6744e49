//! Views of sessions that nobody works in, as they were read from the log: a page asks for one several times in a row.

use std::collections::VecDeque;

use gander_domain::{Seq, SessionId, SessionView};

/// So many views are kept, and so many bytes of them, about.
const MAX_VIEWS: usize = 64;
const MAX_BYTES: usize = 4 << 20;

/// The views that were read last, the oldest first. One counts only while its log ends where it did.
#[derive(Debug, Default)]
pub(super) struct ViewCache {
    views: VecDeque<(usize, SessionView)>,
    bytes: usize,
}

impl ViewCache {
    /// The view of a session whose log ends here.
    pub(super) fn find(&self, session: SessionId, head: Seq) -> Option<SessionView> {
        let found = self.views.iter().find(|(_, view)| view.session == session && view.head == head);
        found.map(|(_, view)| view.clone())
    }

    pub(super) fn put(&mut self, view: SessionView) {
        if let Some(index) = self.views.iter().position(|(_, known)| known.session == view.session) {
            self.remove(index);
        }
        let bytes = view.approximate_bytes();
        if bytes > MAX_BYTES {
            return;
        }
        self.bytes += bytes;
        self.views.push_back((bytes, view));
        while self.views.len() > MAX_VIEWS || self.bytes > MAX_BYTES {
            self.remove(0);
        }
    }

    fn remove(&mut self, index: usize) {
        if let Some((bytes, _)) = self.views.remove(index) {
            self.bytes -= bytes;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use gander_domain::{Entry, Event, Principal, Settings, Timestamp};

    use super::*;

    fn view(session: usize, head: u64) -> SessionView {
        let event = Event::SessionCreated {
            session: format!("00000000-0000-7000-8000-{session:012}").parse().unwrap(),
            owner: Principal::owner(),
            workspace: "/w".into(),
            folders: Vec::new(),
            settings: Settings::new("gander", "assistant"),
            parent: None,
            inherited: Box::default(),
        };
        let created = Entry { seq: Seq(head), at: Timestamp::from_micros(1), run: None, event, meta: None };
        SessionView::from_created(&created).unwrap()
    }

    #[test]
    fn a_view_counts_while_its_log_ends_where_it_did_and_old_ones_go() {
        let mut cache = ViewCache::default();
        let first = view(1, 3);
        cache.put(first.clone());
        assert_eq!(cache.find(first.session, Seq(3)), Some(first.clone()));
        assert_eq!(cache.find(first.session, Seq(4)), None);
        cache.put(view(1, 4));
        assert_eq!((cache.find(first.session, Seq(3)), cache.views.len()), (None, 1));
        (2..2 + MAX_VIEWS).for_each(|session| cache.put(view(session, 1)));
        assert_eq!((cache.find(first.session, Seq(4)), cache.views.len()), (None, MAX_VIEWS));
        assert_eq!(cache.bytes, cache.views.iter().map(|(bytes, _)| bytes).sum::<usize>());
    }
}
