//! Carries out what the conversation wants, and feeds it with what the server says; connects again when it must.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use gander_client::{AgentConnection, AgentEvent};
use gander_wire::acp::client::{AGENT_GONE, CallId};

use super::conversation::Conversation;
use super::effects::{Call, Effect};
use super::host::ChatHost;
use crate::commands::{Exit, errors};

/// The pause before the second attempt to connect; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(4);

/// What is taken in before the screen is drawn again.
const MAX_BATCH: usize = 512;

/// The connection of a chat.
pub(super) struct ChatDriver {
    host: Arc<ChatHost>,
    link: ChatLink,
    calls: HashMap<CallId, Call>,
    pause: Duration,
}

enum ChatLink {
    Up(Box<AgentConnection>),
    Connecting(Pin<Box<dyn Future<Output = anyhow::Result<AgentConnection>> + Send>>),
}

/// What happened on the connection.
pub(super) enum LinkEvent {
    Connected,
    Unreachable(String),
    Lost,
    Agent(Box<AgentEvent>),
}

impl ChatDriver {
    /// Over a connection that is there already.
    pub(super) fn new(host: ChatHost, connection: AgentConnection) -> Self {
        let link = ChatLink::Up(Box::new(connection));
        Self { host: Arc::new(host), link, calls: HashMap::new(), pause: Duration::ZERO }
    }

    /// The next thing that happens. May be dropped and called again.
    pub(super) async fn next_event(&mut self) -> LinkEvent {
        match &mut self.link {
            ChatLink::Up(connection) => match connection.next_event().await {
                Ok(event) => LinkEvent::Agent(Box::new(event)),
                Err(_) => {
                    self.pause = Duration::ZERO;
                    self.connect_again();
                    LinkEvent::Lost
                }
            },
            ChatLink::Connecting(attempt) => match attempt.await {
                Ok(connection) => {
                    self.link = ChatLink::Up(Box::new(connection));
                    LinkEvent::Connected
                }
                Err(error) => {
                    self.connect_again();
                    LinkEvent::Unreachable(errors::message(&error))
                }
            },
        }
    }

    /// Feeds the conversation with an event, and with everything else that is there already.
    pub(super) fn feed(&mut self, conversation: &mut Conversation, event: LinkEvent) {
        let mut next = Some(event);
        for _ in 0..MAX_BATCH {
            let Some(event) = next.take() else { return };
            match event {
                LinkEvent::Connected => conversation.handle_connected(),
                LinkEvent::Unreachable(reason) => conversation.handle_unreachable(&reason),
                LinkEvent::Lost => {
                    self.calls.clear();
                    conversation.handle_lost();
                }
                LinkEvent::Agent(event) => self.feed_agent_event(conversation, *event),
            }
            next = self.next_event().now_or_never();
        }
        if let Some(LinkEvent::Agent(event)) = next {
            self.feed_agent_event(conversation, *event);
        }
    }

    /// Does what the conversation wants; says so if it is over.
    pub(super) fn carry_out(&mut self, conversation: &mut Conversation) -> Option<Exit> {
        while let Some(effect) = conversation.poll_effect() {
            if let Effect::Leave { exit } = effect {
                return Some(exit);
            }
            // Without a connection there is nobody to tell; what matters is told again on the next one.
            let ChatLink::Up(connection) = &mut self.link else { continue };
            let client = &mut connection.client;
            match effect {
                Effect::Call { call, method, params } => {
                    self.calls.insert(client.call(method, &params), call);
                }
                Effect::Cancel { session } => client.cancel(&session),
                Effect::Respond { responder, response } => client.respond(responder, &response),
                Effect::Decline { permission } => client.decline(permission),
                Effect::Leave { exit } => return Some(exit),
            }
        }
        None
    }

    fn feed_agent_event(&mut self, conversation: &mut Conversation, event: AgentEvent) {
        match event {
            AgentEvent::Answered { call, result } => {
                if let Some(call) = self.calls.remove(&call) {
                    conversation.handle_answer(call, Ok(result));
                }
            }
            // The link says so itself, right after its calls have failed.
            AgentEvent::Failed { error, .. } if error.code == AGENT_GONE => {}
            AgentEvent::Failed { call, error } => {
                if let Some(call) = self.calls.remove(&call) {
                    conversation.handle_answer(call, Err(error));
                }
            }
            event @ (AgentEvent::Initialized { .. }
            | AgentEvent::Opened { .. }
            | AgentEvent::Ended { .. }
            | AgentEvent::Updated(_)
            | AgentEvent::Asked { .. }
            | AgentEvent::Requested { .. }
            | AgentEvent::Withdrawn { .. }
            | AgentEvent::UpdatedWhole { .. }
            | AgentEvent::Notified { .. }) => conversation.handle_event(event),
        }
    }

    fn connect_again(&mut self) {
        let (host, pause) = (Arc::clone(&self.host), self.pause);
        self.pause = (pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
        self.link = ChatLink::Connecting(Box::pin(async move {
            tokio::time::sleep(pause).await;
            host.connect().await
        }));
    }
}
