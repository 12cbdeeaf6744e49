//! Requests whose answers hold a whole session: one at a time for each client, made when the one before was read.
//!
//! Everything else overtakes them: prompts, cancels and answers never wait behind a large answer.

use std::collections::VecDeque;
use std::sync::Arc;

use gander_domain::ServiceError;
use gander_wire::acp::IntentTicket;
use serde_json::Value;
use tokio::task::AbortHandle;

use super::AcpClient;
use super::intents::{FinishedIntent, carry_out_extension_method};
use crate::ClientPeer;

/// So many of them may wait for one client.
const MAX_WAITING: usize = 256;

/// The requests of one client.
#[derive(Default)]
pub(super) struct WholeSessionRequests {
    waiting: VecDeque<WholeSessionRequest>,
    /// The one that is being answered.
    active: Option<AbortHandle>,
}

/// A request whose answer holds a whole session.
pub(super) struct WholeSessionRequest {
    pub(super) ticket: IntentTicket,
    /// Who asked, with the authority of that moment.
    pub(super) peer: ClientPeer,
    pub(super) method: String,
    pub(super) params: Value,
}

/// True if the answer of this method grows with a session.
pub(super) fn is_whole_session_method(method: &str) -> bool {
    match method.strip_prefix("_goose/") {
        Some(name) => name.strip_prefix("unstable/").unwrap_or(name) == "session/export",
        None => matches!(method, "_gander/session/export" | "_gander/session/show" | "_gander/session/inspect"),
    }
}

impl AcpClient {
    /// Remembers a request until its turn comes.
    pub(super) fn queue_whole_session(&mut self, request: WholeSessionRequest) {
        if self.whole_sessions.waiting.len() >= MAX_WAITING {
            let why =
                format!("read the answers to earlier requests for whole sessions first, so many wait: {MAX_WAITING}");
            self.connection.handle_refusal(request.ticket, &ServiceError::Unavailable(why));
            return;
        }
        self.whole_sessions.waiting.push_back(request);
    }

    /// Begins to answer the next one, if none is being answered. To be called when the client has read the last answer.
    pub(super) fn start_whole_session(&mut self) {
        let WholeSessionRequests { waiting, active } = &mut self.whole_sessions;
        if active.as_ref().is_some_and(|task| !task.is_finished()) {
            return;
        }
        let Some(WholeSessionRequest { ticket, peer, method, params }) = waiting.pop_front() else { return };
        let (services, large_responses) = (Arc::clone(&self.services), Arc::clone(&self.large_responses));
        *active = Some(self.work.spawn(async move {
            let permit = large_responses.wait_for_permit().await;
            let result = carry_out_extension_method(services, peer, method, params).await;
            FinishedIntent::Extended { ticket, result, permit }
        }));
    }
}
