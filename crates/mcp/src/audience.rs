//! Who hears what a server says by itself: the run that is under way, if there is one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gander_domain::sanitize;
use gander_domain::{Notice, QuestionKind, QuestionOrigin, Reply, Severity, Usage};
use gander_models::Model;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::server::Outage;

/// How much of a server's words stands in one line.
const LINE: usize = 400;

/// A run that listens.
#[derive(Clone)]
pub struct Audience {
    /// Where it listens. Bounded: notices are dropped rather than waited for.
    pub news: mpsc::Sender<News>,
    /// Who answers when a server wants a model.
    pub model: Arc<dyn Model>,
}

/// Something that a server says by itself.
#[derive(Debug)]
pub enum News {
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
        /// Where the answer goes.
        reply: oneshot::Sender<Reply>,
    },
    /// A model call on a server's behalf was paid for.
    Spent(Usage),
}

/// Keeps a run's place as audience until it is dropped.
#[must_use]
pub struct Attendance {
    seat: Seat,
    number: u64,
}

/// A session's one place for an audience.
#[derive(Clone, Default)]
pub(super) struct Seat(Arc<Mutex<Taken>>);

#[derive(Default)]
struct Taken {
    number: u64,
    audience: Option<Audience>,
    /// The outages that its people were told of, by server: when each began.
    told: HashMap<String, Instant>,
}

impl Seat {
    /// From now on this run listens.
    pub(super) fn take(&self, audience: Audience) -> Attendance {
        let mut taken = self.lock();
        taken.number += 1;
        taken.audience = Some(audience);
        Attendance { seat: self.clone(), number: taken.number }
    }

    /// True if both are one session's.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(super) fn audience(&self) -> Option<Audience> {
        self.lock().audience.clone()
    }

    /// Tells whoever is there, if they keep up.
    pub(super) fn tell(&self, news: News) {
        let Some(audience) = self.audience() else { return };
        if let Err(error) = audience.news.try_send(news) {
            tracing::debug!(%error, "news of a server were not heard");
        }
    }

    pub(super) fn notice(&self, severity: Severity, title: &str, detail: Option<String>) {
        self.tell(News::Notice(Notice { severity, title: line(title), detail }));
    }

    /// Says that a server does not work, unless that was said in this session since it began.
    pub(super) fn tell_outage(&self, server: &str, outage: &Outage) {
        let fresh = {
            let mut taken = self.lock();
            let fresh = taken.audience.is_some() && taken.told.get(server) != Some(&outage.since);
            if fresh {
                taken.told.insert(server.to_owned(), outage.since);
            }
            fresh
        };
        if fresh {
            self.notice(Severity::Warning, &format!("{server} is not running: {}", outage.reason), None);
        }
    }

    /// Asks a person; with nobody there the answer is `Cancelled`.
    pub(super) async fn ask(&self, title: &str, ask: QuestionKind, origin: QuestionOrigin) -> Reply {
        let Some(audience) = self.audience() else { return Reply::Cancelled };
        let (reply, answer) = oneshot::channel();
        if audience.news.send(News::Asked { title: line(title), ask, origin, reply }).await.is_err() {
            return Reply::Cancelled;
        }
        answer.await.unwrap_or(Reply::Cancelled)
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Attendance {
    fn drop(&mut self) {
        let mut taken = self.seat.lock();
        if taken.number == self.number {
            taken.audience = None;
        }
    }
}

/// A server's words in one line in which nothing hides.
pub(super) fn line(text: &str) -> String {
    let shown = sanitize::visible_line(text);
    match shown.char_indices().nth(LINE) {
        Some((end, _)) => format!("{}…", &shown[..end]),
        None => shown,
    }
}
