//! One side of a JSON-RPC connection: what waits for an answer here, what we wait for there.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::message::{self, JsonRpcMessage};
use super::{Code, Error, Malformed, Outbox, Params, RequestId};

const CANCEL_METHOD: &str = "$/cancel_request";

/// One side of a connection. `C` is what the owner wants to find again with the answer to a request of its own.
///
/// The order of calls: [`handle_message`](Self::handle_message) with each whole message; act on what it returns, and answer
/// a request with [`respond_result`](Self::respond_result) or [`respond_error`](Self::respond_error) now or later; then
/// write what `out` holds.
///
/// - A request gets exactly one answer: [`Responder`] cannot be copied and is used up by answering.
/// - What is malformed is told as such: the owner refuses it or lets it pass.
/// - Nothing that arrives can end the connection.
#[derive(Debug)]
pub struct Peer<C> {
    /// What waits to be written.
    pub out: Outbox,
    /// What was dropped without an answer.
    pub counters: Counters,
    in_flight: HashSet<RequestId>,
    asked: HashMap<RequestId, C>,
}

/// The right and the duty to answer one request.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a request that is never answered hangs its caller"]
pub struct Responder {
    id: RequestId,
}

/// What arrived, if it makes sense.
#[derive(Debug)]
pub enum Incoming<'a, C> {
    /// Somebody wants an answer.
    Request { method: Cow<'a, str>, params: Params<'a>, responder: Responder },
    /// Somebody says something.
    Notification { method: Cow<'a, str>, params: Params<'a> },
    /// The caller takes back a request that is not answered yet. It still gets its answer.
    Cancelled(RequestId),
    /// The answer to a request of ours. A malformed one is an error.
    Answer { context: C, result: Result<&'a RawValue, Error> },
    /// It is no message: see [`Peer::respond_malformed`].
    Malformed(Malformed),
}

/// What was dropped without an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages that were answered with an error because they were none.
    pub malformed: u64,
    /// Answers to nothing that we asked.
    pub stray_answers: u64,
    /// Cancellations of nothing that waits here.
    pub stray_cancels: u64,
    /// Notifications that nobody here knows or that cannot be read.
    pub ignored_notifications: u64,
}

impl Responder {
    /// The right to answer a request that came before this process began.
    pub(crate) fn for_past_request(id: RequestId) -> Self {
        Self { id }
    }

    /// The id of the request.
    pub fn id(&self) -> &RequestId {
        &self.id
    }
}

impl<C> Default for Peer<C> {
    fn default() -> Self {
        Self { out: Outbox::default(), counters: Counters::default(), in_flight: HashSet::new(), asked: HashMap::new() }
    }
}

impl<C> Peer<C> {
    /// Takes in one whole message. `None` if there is nothing for the owner to do.
    pub fn handle_message<'a>(&mut self, message: &'a [u8]) -> Option<Incoming<'a, C>> {
        match message::parse_message(message) {
            Ok(JsonRpcMessage::Request { id, method, params }) => self.handle_request(id, method, params),
            Ok(JsonRpcMessage::Notification { method, params }) if method == CANCEL_METHOD => {
                self.handle_cancel(params)
            }
            Ok(JsonRpcMessage::Notification { method, params }) => Some(Incoming::Notification { method, params }),
            Ok(JsonRpcMessage::Response { id, result }) => self.handle_answer(&id, result),
            Ok(JsonRpcMessage::Bare { id }) => self.handle_empty_response(id),
            Ok(JsonRpcMessage::StrayResponse) => {
                self.counters.stray_answers += 1;
                None
            }
            Err(malformed) => Some(Incoming::Malformed(malformed)),
        }
    }

    /// Answers what is no message.
    pub fn respond_malformed(&mut self, malformed: &Malformed) {
        self.counters.malformed += 1;
        self.out.push_error(malformed.id.as_ref(), &malformed.error);
    }

    /// Answers a request.
    pub fn respond_result(&mut self, responder: Responder, result: &impl Serialize) {
        self.in_flight.remove(&responder.id);
        self.out.push_result(&responder.id, result);
    }

    /// Answers a request with an error.
    pub fn respond_error(&mut self, responder: Responder, error: &Error) {
        self.in_flight.remove(&responder.id);
        self.out.push_error(Some(&responder.id), error);
    }

    /// Sends a request. False, and nothing is sent, if one with this id still waits.
    pub fn send_request(&mut self, id: RequestId, method: &str, params: &impl Serialize, context: C) -> bool {
        if self.asked.contains_key(&id) {
            return false;
        }
        self.out.push_request(&id, method, params);
        self.asked.insert(id, context);
        true
    }

    /// Waits for one more answer to a request that was answered with nothing of use.
    pub fn restore_pending(&mut self, id: RequestId, context: C) {
        self.asked.insert(id, context);
    }

    /// What the answer to this request of ours will be about.
    pub fn pending_context(&self, id: &RequestId) -> Option<&C> {
        self.asked.get(id)
    }

    /// Takes back a request of ours: the other side is told, a late answer is dropped.
    pub fn cancel_request(&mut self, id: &RequestId) -> Option<C> {
        let context = self.asked.remove(id)?;
        self.out.push_notification(CANCEL_METHOD, &CancelRequest { request_id: id.clone() });
        Some(context)
    }

    /// Forgets requests of ours without telling anybody: they are about to be sent again.
    pub fn forget_requests(&mut self, which: impl Fn(&C) -> bool) {
        self.asked.retain(|_, context| !which(context));
    }

    /// Everything we still wait for, when no answer can come any more.
    pub fn take_pending(&mut self) -> impl Iterator<Item = C> {
        std::mem::take(&mut self.asked).into_values()
    }

    fn handle_request<'a>(
        &mut self,
        id: RequestId,
        method: Cow<'a, str>,
        params: Params<'a>,
    ) -> Option<Incoming<'a, C>> {
        if self.in_flight.insert(id.clone()) {
            return Some(Incoming::Request { method, params, responder: Responder { id } });
        }
        Some(Incoming::Malformed(Malformed::invalid(Some(id), "a request with this id is not answered yet")))
    }

    fn handle_cancel<'a>(&mut self, params: Params<'a>) -> Option<Incoming<'a, C>> {
        let id = params.parse::<CancelRequest>().ok().map(|cancel| cancel.request_id);
        let known = id.filter(|id| self.in_flight.contains(id));
        if known.is_none() {
            self.counters.stray_cancels += 1;
        }
        known.map(Incoming::Cancelled)
    }

    fn handle_answer<'a>(&mut self, id: &RequestId, result: Result<&'a RawValue, Error>) -> Option<Incoming<'a, C>> {
        let context = self.asked.remove(id);
        if context.is_none() {
            self.counters.stray_answers += 1;
        }
        context.map(|context| Incoming::Answer { context, result })
    }

    fn handle_empty_response<'a>(&mut self, id: RequestId) -> Option<Incoming<'a, C>> {
        if self.asked.contains_key(&id) {
            return self.handle_answer(&id, Err(Error::new(Code::Internal, "peer answered with nothing")));
        }
        Some(Incoming::Malformed(Malformed::invalid(Some(id), "neither method, result nor error")))
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CancelRequest {
    request_id: RequestId,
}
