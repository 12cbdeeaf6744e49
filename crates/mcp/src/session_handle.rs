//! Who hears what a server says by itself: the run that is under way, if there is one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gander_domain::sanitize;
use gander_domain::{Notice, QuestionKind, QuestionOrigin, Reply, Severity, SubagentCall, Usage};
use gander_models::Model;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// How much of a server's words stands in one line.
const MAX_LINE_CHARS: usize = 400;

/// A run that listens.
#[derive(Clone)]
pub struct RunListener {
    /// Where it listens. Bounded: notices are dropped rather than waited for.
    pub events: mpsc::Sender<ServerEvent>,
    /// Who answers when a server wants a model.
    pub model: Arc<dyn Model>,
}

/// Something that a server says by itself.
#[derive(Debug)]
pub enum ServerEvent {
    /// The tools on offer changed.
    Tools,
    /// Worth telling a person.
    Notice(Notice),
    /// A person is asked. Whoever waits is gone when the other end is closed.
    Asked {
        /// One line for people.
        title: String,
        /// What is asked.
        ask: QuestionKind,
        /// Who waits for it: a call that is under way, or nobody in the run.
        origin: QuestionOrigin,
        /// What a sub-agent wants to do, if one asks.
        subagent: Option<Box<SubagentCall>>,
        /// Where the answer goes.
        reply: oneshot::Sender<Reply>,
    },
    /// A model call on a server's behalf was paid for.
    Spent(Usage),
}

/// Keeps a run's place as listener until it is dropped.
#[must_use]
pub struct ListenGuard {
    session: SessionHandle,
    number: u64,
}

/// A session's one place for an listener.
#[derive(Clone, Default)]
pub(super) struct SessionHandle(Arc<Mutex<SessionState>>);

#[derive(Default)]
struct SessionState {
    number: u64,
    listener: Option<RunListener>,
    /// The outages that its people were told of, by server: when each began.
    told: HashMap<String, Instant>,
}

/// A server that does not work, from its first failure until it is ready again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outage {
    /// When it began: tells it from the one before.
    pub since: Instant,
    /// Why, as of the last try.
    pub reason: String,
    /// The last of what its program complained about then.
    pub stderr: String,
}

impl SessionHandle {
    /// From now on this run listens.
    pub(super) fn attach_listener(&self, listener: RunListener) -> ListenGuard {
        let mut taken = self.lock_state();
        taken.number += 1;
        taken.listener = Some(listener);
        ListenGuard { session: self.clone(), number: taken.number }
    }

    /// True if both are one session's.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(super) fn current_listener(&self) -> Option<RunListener> {
        self.lock_state().listener.clone()
    }

    /// Tells whoever is there, if they keep up.
    pub(super) fn send_event(&self, events: ServerEvent) {
        let Some(listener) = self.current_listener() else { return };
        if let Err(error) = listener.events.try_send(events) {
            tracing::debug!(%error, "events of a server were not heard");
        }
    }

    pub(super) fn send_notice(&self, severity: Severity, title: &str, detail: Option<String>) {
        self.send_event(ServerEvent::Notice(Notice { severity, title: session_handle_line(title), detail }));
    }

    /// Says that a server does not work, unless that was said in this session since it began.
    pub(super) fn send_outage(&self, server: &str, outage: &Outage) {
        let fresh = {
            let mut taken = self.lock_state();
            let fresh = taken.listener.is_some() && taken.told.get(server) != Some(&outage.since);
            if fresh {
                taken.told.insert(server.to_owned(), outage.since);
            }
            fresh
        };
        if fresh {
            self.send_notice(Severity::Warning, &format!("{server} is not running: {}", outage.reason), None);
        }
    }

    /// Asks a person; with nobody there the answer is `Cancelled`.
    pub(super) async fn ask_person(&self, title: &str, ask: QuestionKind, origin: QuestionOrigin) -> Reply {
        self.ask_for_subagent(title, ask, origin, None).await
    }

    /// The same for a sub-agent, with what it wants to do.
    pub(super) async fn ask_for_subagent(
        &self,
        title: &str,
        ask: QuestionKind,
        origin: QuestionOrigin,
        subagent: Option<Box<SubagentCall>>,
    ) -> Reply {
        let Some(listener) = self.current_listener() else { return Reply::Cancelled };
        let (reply, answer) = oneshot::channel();
        let asked = ServerEvent::Asked { title: session_handle_line(title), ask, origin, subagent, reply };
        if listener.events.send(asked).await.is_err() {
            return Reply::Cancelled;
        }
        answer.await.unwrap_or(Reply::Cancelled)
    }

    fn lock_state(&self) -> MutexGuard<'_, SessionState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ListenGuard {
    fn drop(&mut self) {
        let mut taken = self.session.lock_state();
        if taken.number == self.number {
            taken.listener = None;
        }
    }
}

/// A server's words in one line in which nothing hides.
pub(super) fn session_handle_line(text: &str) -> String {
    let shown = sanitize::sanitized_line(text);
    match shown.char_indices().nth(MAX_LINE_CHARS) {
        Some((end, _)) => format!("{}…", &shown[..end]),
        None => shown,
    }
}
