//! One owner's connection to an agent: messages in and out around the client machine, without a task of its own.

use std::collections::VecDeque;
use std::sync::Arc;

use gander_wire::acp::AgentClient;
use gander_wire::acp::client::{AgentEvent, CallId};
use serde_json::Value;
use tokio::sync::mpsc::Permit;
use tokio::sync::mpsc::error::SendError;

use crate::{CallError, Link, LinkError};

/// A connection to an agent. Everything that it does happens in [`next_event`](Self::next_event).
#[derive(Debug)]
pub struct AgentConnection {
    /// The client's side, without IO: call it, then ask for what was told next.
    pub client: AgentClient,
    link: Link,
    unsent: VecDeque<Vec<u8>>,
    lost: Option<Arc<LinkError>>,
}

impl AgentConnection {
    /// Over this link. Begin with [`initialize`](Client::initialize).
    pub fn new(link: Link) -> Self {
        Self { client: AgentClient::default(), link, unsent: VecDeque::new(), lost: None }
    }

    /// What the agent told next. Nothing is lost if this is dropped half-way.
    ///
    /// Once the agent is gone every open call is told as failed, and then why it is gone.
    pub async fn next_event(&mut self) -> Result<AgentEvent, Arc<LinkError>> {
        loop {
            if let Some(told) = self.client.poll_event() {
                return Ok(told);
            }
            if let Some(lost) = &self.lost {
                return Err(Arc::clone(lost));
            }
            self.collect_outbox();
            let arrived = tokio::select! {
                permit = self.link.outgoing.reserve(), if !self.unsent.is_empty() => {
                    send_unsent_on_connection(permit, &mut self.unsent);
                    continue;
                }
                arrived = self.link.incoming.recv() => arrived,
            };
            match arrived {
                Some(Ok(message)) => self.client.handle_message(&message),
                Some(Err(error)) => self.mark_gone(error),
                None => self.mark_gone(LinkError::Closed),
            }
        }
    }

    /// Sends what waits and takes nothing in. Never ends: for a `select!`.
    pub(crate) async fn write_pending(&mut self) {
        self.collect_outbox();
        while !self.unsent.is_empty() {
            send_unsent_on_connection(self.link.outgoing.reserve().await, &mut self.unsent);
        }
        std::future::pending().await
    }

    /// Calls a method and waits for its answer; what else is told meanwhile is passed over.
    pub async fn call_method(&mut self, method: &str, params: &Value) -> Result<Value, CallError> {
        let call = self.client.call(method, params);
        let told = self.wait_for_answer(call, |_| {}).await?;
        let AgentEvent::Answered { result, .. } = told else {
            return Err(CallError::Unreadable { method: method.to_owned(), reason: format!("{told:?}") });
        };
        Ok(result)
    }

    /// Waits for the answer to a call; everything else that is told meanwhile goes to `aside`.
    pub async fn wait_for_answer(
        &mut self,
        call: CallId,
        mut aside: impl FnMut(AgentEvent),
    ) -> Result<AgentEvent, CallError> {
        loop {
            let told = self.next_event().await.map_err(CallError::Gone)?;
            if told.call() != Some(call) {
                aside(told);
            } else if let AgentEvent::Failed { error, .. } = told {
                return Err(self.call_error(error));
            } else {
                return Ok(told);
            }
        }
    }

    fn collect_outbox(&mut self) {
        let outbox = self.client.outbox();
        self.unsent.extend(outbox.messages().map(|(_, message)| message.to_vec()));
        outbox.clear();
    }

    /// Why a call failed: refused by the agent, or the agent is gone.
    pub(crate) fn call_error(&self, error: gander_wire::jsonrpc::Error) -> CallError {
        match &self.lost {
            Some(lost) => CallError::Gone(Arc::clone(lost)),
            None => CallError::Refused(error),
        }
    }

    fn mark_gone(&mut self, error: LinkError) {
        self.lost = Some(Arc::new(error));
        self.client.handle_disconnect();
    }
}

fn send_unsent_on_connection(permit: Result<Permit<'_, Vec<u8>>, SendError<()>>, unsent: &mut VecDeque<Vec<u8>>) {
    match (permit, unsent.pop_front()) {
        (Ok(permit), Some(message)) => permit.send(message),
        // Nobody takes it any more; why is on its way in.
        (Err(_), _) | (_, None) => unsent.clear(),
    }
}
