//! One owner's connection to an agent: messages in and out around the client machine, without a task of its own.

use std::collections::VecDeque;
use std::sync::Arc;

use gander_wire::acp::Client;
use gander_wire::acp::client::{CallId, Told};
use serde_json::Value;
use tokio::sync::mpsc::Permit;
use tokio::sync::mpsc::error::SendError;

use crate::{CallError, Link, LinkError};

/// A connection to an agent. Everything that it does happens in [`next`](Self::next).
#[derive(Debug)]
pub struct Connection {
    /// The client's side, without IO: call it, then ask for what was told next.
    pub client: Client,
    link: Link,
    unsent: VecDeque<Vec<u8>>,
    lost: Option<Arc<LinkError>>,
}

impl Connection {
    /// Over this link. Begin with [`initialize`](Client::initialize).
    pub fn new(link: Link) -> Self {
        Self { client: Client::default(), link, unsent: VecDeque::new(), lost: None }
    }

    /// What the agent told next. Nothing is lost if this is dropped half-way.
    ///
    /// Once the agent is gone every open call is told as failed, and then why it is gone.
    pub async fn next(&mut self) -> Result<Told, Arc<LinkError>> {
        loop {
            if let Some(told) = self.client.poll() {
                return Ok(told);
            }
            if let Some(lost) = &self.lost {
                return Err(Arc::clone(lost));
            }
            self.collect();
            let arrived = tokio::select! {
                permit = self.link.outgoing.reserve(), if !self.unsent.is_empty() => {
                    send(permit, &mut self.unsent);
                    continue;
                }
                arrived = self.link.incoming.recv() => arrived,
            };
            match arrived {
                Some(Ok(message)) => self.client.receive(&message),
                Some(Err(error)) => self.lose(error),
                None => self.lose(LinkError::Closed),
            }
        }
    }

    /// Sends what waits and takes nothing in. Never ends: for a `select!`.
    pub(crate) async fn write(&mut self) {
        self.collect();
        while !self.unsent.is_empty() {
            send(self.link.outgoing.reserve().await, &mut self.unsent);
        }
        std::future::pending().await
    }

    /// Calls a method and waits for its answer; what else is told meanwhile is passed over.
    pub async fn call(&mut self, method: &str, params: &Value) -> Result<Value, CallError> {
        let call = self.client.call(method, params);
        let told = self.wait(call, |_| {}).await?;
        let Told::Answered { result, .. } = told else {
            return Err(CallError::Unreadable { method: method.to_owned(), reason: format!("{told:?}") });
        };
        Ok(result)
    }

    /// Waits for the answer to a call; everything else that is told meanwhile goes to `aside`.
    pub async fn wait(&mut self, call: CallId, mut aside: impl FnMut(Told)) -> Result<Told, CallError> {
        loop {
            let told = self.next().await.map_err(CallError::Gone)?;
            if told.call() != Some(call) {
                aside(told);
            } else if let Told::Failed { error, .. } = told {
                return Err(self.failure(error));
            } else {
                return Ok(told);
            }
        }
    }

    fn collect(&mut self) {
        let outbox = self.client.outbox();
        self.unsent.extend(outbox.messages().map(|(_, message)| message.to_vec()));
        outbox.clear();
    }

    /// Why a call failed: refused by the agent, or the agent is gone.
    pub(crate) fn failure(&self, error: gander_wire::jsonrpc::Error) -> CallError {
        match &self.lost {
            Some(lost) => CallError::Gone(Arc::clone(lost)),
            None => CallError::Refused(error),
        }
    }

    fn lose(&mut self, error: LinkError) {
        self.lost = Some(Arc::new(error));
        self.client.disconnected();
    }
}

fn send(permit: Result<Permit<'_, Vec<u8>>, SendError<()>>, unsent: &mut VecDeque<Vec<u8>>) {
    match (permit, unsent.pop_front()) {
        (Ok(permit), Some(message)) => permit.send(message),
        // Nobody takes it any more; why is on its way in.
        (Err(_), _) | (_, None) => unsent.clear(),
    }
}
