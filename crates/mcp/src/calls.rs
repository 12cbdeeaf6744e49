//! Calls under way on one connection: their progress, their silence, their end.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gander_domain::{Part, QuestionOrigin, ToolContent};
use gander_tools::Signal;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, InputRequiredResult,
    ProgressNotificationParam, ProgressToken, ServerResult,
};
use rmcp::service::{PeerRequestOptions, RequestHandle, RoleClient, ServiceError};
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::audience::{Seat, line};
use super::link::Line;

/// How often a server may ask for more before it answers.
const ROUNDS: usize = 10;

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
    seat: Seat,
    signals: mpsc::Sender<Signal>,
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

/// One call of one tool.
pub(super) struct ToolUse {
    /// The session that calls.
    pub seat: Seat,
    pub tool: String,
    pub arguments: Map<String, Value>,
    /// What the tool was when the call was decided on.
    pub definition: String,
    /// Calling it twice does no more than calling it once.
    pub repeatable: bool,
    pub patience: Duration,
    pub signals: mpsc::Sender<Signal>,
    pub cancel: CancellationToken,
}

/// Calls a tool. A server that wants to know more first is answered, and the call goes on.
pub(super) async fn call(line: &Line, wanted: &ToolUse) -> Result<CallToolResult, CallError> {
    let mut params = CallToolRequestParams::new(wanted.tool.clone()).with_arguments(wanted.arguments.clone());
    let _under_way = line.calls.begin();
    for round in 0..ROUNDS {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params.clone()));
        let answer = once(line, wanted, request).await.map_err(|error| after(round, error))?;
        if let ServerResult::CallToolResult(result) = answer {
            return Ok(result);
        }
        let ServerResult::InputRequiredResult(more) = answer else {
            return Err(CallError::Refused("the server answered with something else than a result".to_owned()));
        };
        let InputRequiredResult { input_requests, request_state, .. } = more;
        let answers = tokio::select! {
            biased;
            () = wanted.cancel.cancelled() => return Err(CallError::Cancelled),
            () = line.handler.gone.cancelled() => return Err(CallError::Gone),
            answers = line.handler.answers(&wanted.seat, input_requests.unwrap_or_default()) => answers,
        };
        params.input_responses = (!answers.is_empty()).then_some(answers);
        params.request_state = request_state;
    }
    Err(CallError::Refused(format!("the server asked for more than {ROUNDS} times")))
}

/// A server that asked for more has begun: what was not sent after that is not what did not happen.
fn after(round: usize, error: CallError) -> CallError {
    match error {
        CallError::Unsent if round > 0 => CallError::Gone,
        CallError::Unsent | CallError::Cancelled | CallError::Silent(_) | CallError::Gone | CallError::Refused(_) => {
            error
        }
    }
}

async fn once(line: &Line, wanted: &ToolUse, request: ClientRequest) -> Result<ServerResult, CallError> {
    let sent = line.peer.send_request_with_option(request, PeerRequestOptions::no_options()).await;
    let refused = |error| refused(line.noted(error));
    let unsent =
        |error| if matches!(error, ServiceError::TransportClosed) { CallError::Unsent } else { refused(error) };
    let mut handle = sent.map_err(unsent)?;
    let token = handle.progress_token.clone();
    let _open = line.calls.open(token.clone(), wanted);
    let end = tokio::select! {
        biased;
        () = wanted.cancel.cancelled() => Err(CallError::Cancelled),
        response = &mut handle.rx => return response.map_err(|_| CallError::Gone)?.map_err(refused),
        () = line.calls.silence(&token, wanted.patience) => Err(CallError::Silent(wanted.patience)),
    };
    give_up(handle).await;
    end
}

/// Tells the server that nobody waits any more.
async fn give_up(handle: RequestHandle<RoleClient>) {
    if let Err(error) = handle.cancel(Some("nobody waits for it any more".to_owned())).await {
        tracing::debug!(%error, "a server could not be told of a cancelled call");
    }
}

fn refused(error: ServiceError) -> CallError {
    if ended(&error) {
        return CallError::Gone;
    }
    let ServiceError::McpError(data) = error else { return CallError::Refused(error.to_string()) };
    CallError::Refused(data.message.into_owned())
}

/// A program that dies is met either where we read or where we write.
fn ended(error: &ServiceError) -> bool {
    let unwritten = matches!(error, ServiceError::TransportSend(error) if error.error.is::<std::io::Error>());
    unwritten || matches!(error, ServiceError::TransportClosed)
}

impl Calls {
    /// Shows how far a call is. What belongs to no call is dropped.
    pub(super) fn progress(&self, progress: &ProgressNotificationParam) {
        if let Some(open) = self.lock().get_mut(&progress.progress_token) {
            open.heard = Instant::now();
            let part = Part::text(shown(progress));
            if open.signals.try_send(Signal::Shown(vec![ToolContent::Part { part }])).is_err() {
                tracing::trace!("progress dropped");
            }
        }
    }

    /// While people think about a server's question its calls do not count as silent.
    pub(super) fn question(self: &Arc<Self>) -> OpenQuestion {
        self.questions.fetch_add(1, Ordering::SeqCst);
        OpenQuestion(Arc::clone(self))
    }

    /// Who waits when the server asks something now: a call of one of its tools, or nobody in the run.
    pub(super) fn asker(&self) -> QuestionOrigin {
        match self.under_way.load(Ordering::SeqCst) {
            0 => QuestionOrigin::NonBlocking,
            _ => QuestionOrigin::Held,
        }
    }

    fn begin(&self) -> UnderWay<'_> {
        self.under_way.fetch_add(1, Ordering::SeqCst);
        UnderWay(self)
    }

    /// The session whose calls are under way, if it is one alone.
    pub(super) fn caller(&self) -> Option<Seat> {
        let open = self.lock();
        let first = open.values().next()?.seat.clone();
        open.values().all(|call| call.seat.is(&first)).then_some(first)
    }

    fn open(&self, token: ProgressToken, wanted: &ToolUse) -> OpenCall<'_> {
        let (seat, signals) = (wanted.seat.clone(), wanted.signals.clone());
        self.lock().insert(token.clone(), Open { seat, signals, heard: Instant::now() });
        OpenCall { calls: self, token }
    }

    /// Until nothing was heard of the call for so long.
    async fn silence(&self, token: &ProgressToken, patience: Duration) {
        loop {
            let heard = self.lock().get(token).map_or_else(Instant::now, |open| open.heard);
            tokio::time::sleep_until(heard + patience).await;
            if self.questions.load(Ordering::SeqCst) > 0 {
                self.lock().entry(token.clone()).and_modify(|open| open.heard = Instant::now());
            } else if self.lock().get(token).is_none_or(|open| open.heard == heard) {
                return;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ProgressToken, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that is under way, until it is dropped.
struct UnderWay<'a>(&'a Calls);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::SeqCst);
    }
}

struct OpenCall<'a> {
    calls: &'a Calls,
    token: ProgressToken,
}

impl Drop for OpenCall<'_> {
    fn drop(&mut self) {
        self.calls.lock().remove(&self.token);
    }
}

/// A question that people think about, until it is dropped.
pub(super) struct OpenQuestion(Arc<Calls>);

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        for open in self.0.lock().values_mut() {
            open.heard = Instant::now();
        }
        self.0.questions.fetch_sub(1, Ordering::SeqCst);
    }
}

fn shown(progress: &ProgressNotificationParam) -> String {
    let done = progress.progress;
    let count = match progress.total {
        Some(total) if total > 0.0 => format!("{done} of {total}"),
        Some(_) | None => format!("{done}"),
    };
    match &progress.message {
        Some(message) => format!("{} ({count})", line(message)),
        None => count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_begun_is_not_unsent() {
        assert!(matches!(after(0, CallError::Unsent), CallError::Unsent));
        assert!(matches!(after(1, CallError::Unsent), CallError::Gone));
        assert!(matches!(after(1, CallError::Cancelled), CallError::Cancelled));
    }
}
