//! Calls under way on one connection: their progress, their silence, their end.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gander_domain::{Part, QuestionOrigin, ToolContent, ToolEnd};
use gander_tools::ToolEvent;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::session_handle::{SessionHandle, session_handle_line};

/// The calls under way on one connection.
#[derive(Default)]
pub(super) struct Calls {
    open: Mutex<HashMap<ProgressToken, Open>>,
    /// Questions of the server that people think about.
    questions: AtomicUsize,
    /// Calls from before they are sent until their last answer.
    under_way: AtomicUsize,
}

struct Open {
    session: SessionHandle,
    signals: mpsc::Sender<ToolEvent>,
    heard: Instant,
}

/// Why a call has no result.
#[derive(Debug, thiserror::Error)]
pub(super) enum CallError {
    #[error("cancelled")]
    Cancelled,
    #[error("no answer in {} s: it may still have taken effect", .0.as_secs())]
    Silent(Duration),
    #[error("the server stopped while the call ran: it may or may not have taken effect")]
    Gone,
    #[error("the server stopped before the call was sent: it did not take effect")]
    Unsent,
    #[error("{0}")]
    Refused(String),
}

impl CallError {
    /// How a call that ended so is shown.
    pub(super) fn tool_end(&self) -> ToolEnd {
        match self {
            Self::Cancelled => ToolEnd::Cancelled,
            Self::Gone => ToolEnd::Interrupted,
            Self::Silent(_) | Self::Refused(_) | Self::Unsent => ToolEnd::Failed,
        }
    }
}

/// One call of one tool.
pub(super) struct ToolUse {
    /// The session that calls.
    pub session: SessionHandle,
    pub tool: String,
    pub arguments: Map<String, Value>,
    /// What the tool was when the call was decided on.
    pub definition: String,
    /// Calling it twice does no more than calling it once.
    pub repeatable: bool,
    pub patience: Duration,
    pub signals: mpsc::Sender<ToolEvent>,
    pub cancel: CancellationToken,
}

impl Calls {
    /// Shows how far a call is. What belongs to no call is dropped.
    pub(super) fn show_progress(&self, progress: &ProgressNotificationParam) {
        if let Some(open) = self.lock_calls().get_mut(&progress.progress_token) {
            open.heard = Instant::now();
            let part = Part::text(call_progress_text(progress));
            if open.signals.try_send(ToolEvent::Shown(vec![ToolContent::Part { part }])).is_err() {
                tracing::trace!("progress dropped");
            }
        }
    }

    /// While people think about a server's question its calls do not count as silent.
    pub(super) fn open_question(self: &Arc<Self>) -> OpenQuestion {
        self.questions.fetch_add(1, Ordering::SeqCst);
        OpenQuestion(Arc::clone(self))
    }

    /// Who waits when the server asks something now: a call of one of its tools, or nobody in the run.
    pub(super) fn question_origin(&self) -> QuestionOrigin {
        match self.under_way.load(Ordering::SeqCst) {
            0 => QuestionOrigin::NonBlocking,
            _ => QuestionOrigin::Held,
        }
    }

    pub(super) fn begin_call(&self) -> UnderWay<'_> {
        self.under_way.fetch_add(1, Ordering::SeqCst);
        UnderWay(self)
    }

    /// The session whose calls are under way, if it is one alone.
    pub(super) fn sole_calling_session(&self) -> Option<SessionHandle> {
        let open = self.lock_calls();
        let first = open.values().next()?.session.clone();
        open.values().all(|call| call.session.is_same(&first)).then_some(first)
    }

    pub(super) fn open(&self, token: ProgressToken, wanted: &ToolUse) -> OpenCall<'_> {
        let (session, signals) = (wanted.session.clone(), wanted.signals.clone());
        self.lock_calls().insert(token.clone(), Open { session, signals, heard: Instant::now() });
        OpenCall { calls: self, token }
    }

    /// Until nothing was heard of the call for so long.
    pub(super) async fn wait_for_silence(&self, token: &ProgressToken, patience: Duration) {
        loop {
            let heard = self.lock_calls().get(token).map_or_else(Instant::now, |open| open.heard);
            tokio::time::sleep_until(heard + patience).await;
            if self.questions.load(Ordering::SeqCst) > 0 {
                self.lock_calls().entry(token.clone()).and_modify(|open| open.heard = Instant::now());
            } else if self.lock_calls().get(token).is_none_or(|open| open.heard == heard) {
                return;
            }
        }
    }

    fn lock_calls(&self) -> MutexGuard<'_, HashMap<ProgressToken, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that is under way, until it is dropped.
pub(super) struct UnderWay<'a>(&'a Calls);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::SeqCst);
    }
}

pub(super) struct OpenCall<'a> {
    calls: &'a Calls,
    token: ProgressToken,
}

impl Drop for OpenCall<'_> {
    fn drop(&mut self) {
        self.calls.lock_calls().remove(&self.token);
    }
}

/// A question that people think about, until it is dropped.
pub(super) struct OpenQuestion(Arc<Calls>);

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        for open in self.0.lock_calls().values_mut() {
            open.heard = Instant::now();
        }
        self.0.questions.fetch_sub(1, Ordering::SeqCst);
    }
}

fn call_progress_text(progress: &ProgressNotificationParam) -> String {
    let done = progress.progress;
    let count = match progress.total {
        Some(total) if total > 0.0 => format!("{done} of {total}"),
        Some(_) | None => format!("{done}"),
    };
    match &progress.message {
        Some(message) => format!("{} ({count})", session_handle_line(message)),
        None => count,
    }
}
