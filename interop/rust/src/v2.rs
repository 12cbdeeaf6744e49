//! Version 2 of the protocol, a draft: a prompt is acknowledged at once, and the session says when it is idle.

use std::collections::HashMap;

use agent_client_protocol::schema::{MaybeUndefined, ProtocolVersion};
use agent_client_protocol::v2::{ConnectionTo, Responder, schema};
use agent_client_protocol::{Agent, Client, Error};
use schema::{ContentBlock, PermissionOptionKind, SessionUpdate, StateUpdate, StopReason};
use serde_json::json;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::test_server::{TestServer, Transport, endless, script, touch};
use crate::{Case, Verdict, demand};

pub const CASES: &[(&str, Case)] = &[
    ("prompt", |test_server, transport| Box::pin(prompt(test_server, transport))),
    ("permission_allowed", |test_server, transport| Box::pin(permission_allowed(test_server, transport))),
    ("permission_rejected", |test_server, transport| Box::pin(permission_rejected(test_server, transport))),
    ("cancel", |test_server, transport| Box::pin(cancel(test_server, transport))),
    ("resume_replays", |test_server, transport| Box::pin(resume_replays(test_server, transport))),
    ("option", |test_server, transport| Box::pin(option(test_server, transport))),
];

type Editor = ConnectionTo<Agent>;

/// What an editor was told and asked.
struct Seen {
    updates: UnboundedReceiver<schema::UpdateSessionNotification>,
    asked: UnboundedReceiver<()>,
    messages: HashMap<schema::MessageId, Vec<ContentBlock>>,
    order: Vec<schema::MessageId>,
    active: bool,
}

impl Seen {
    /// Reads on until this holds.
    async fn until(&mut self, holds: impl Fn(&Self) -> bool) -> Verdict {
        while !holds(self) {
            self.take().await?;
        }
        Ok(())
    }

    /// Reads on until the session rests again, and says why it does.
    async fn idle(&mut self) -> Result<Option<StopReason>, Error> {
        loop {
            let was_active = self.active;
            if let SessionUpdate::StateUpdate(StateUpdate::Idle(idle)) = self.take().await?
                && was_active
            {
                return Ok(idle.stop_reason);
            }
        }
    }

    async fn take(&mut self) -> Result<SessionUpdate, Error> {
        let update = self.updates.recv().await.ok_or_else(Error::internal_error)?.update;
        match &update {
            SessionUpdate::StateUpdate(StateUpdate::Idle(_)) => self.active = false,
            SessionUpdate::StateUpdate(_) => self.active = true,
            SessionUpdate::AgentMessageChunk(chunk) => {
                self.message(&chunk.message_id).push(chunk.content.clone());
            }
            SessionUpdate::AgentMessage(message) => match &message.content {
                MaybeUndefined::Undefined => drop(self.message(&message.message_id)),
                MaybeUndefined::Null => self.message(&message.message_id).clear(),
                MaybeUndefined::Value(content) => *self.message(&message.message_id) = content.clone(),
            },
            _ => {}
        }
        Ok(update)
    }

    fn message(&mut self, id: &schema::MessageId) -> &mut Vec<ContentBlock> {
        if !self.messages.contains_key(id) {
            self.order.push(id.clone());
        }
        self.messages.entry(id.clone()).or_default()
    }

    fn text(&self) -> String {
        let contents = self.order.iter().flat_map(|id| &self.messages[id]);
        let words = contents.map(|content| match content {
            ContentBlock::Text(text) => text.text.clone(),
            other => format!("{other:?}"),
        });
        words.collect()
    }

    fn asked(&mut self) -> usize {
        std::iter::from_fn(|| self.asked.try_recv().ok()).count()
    }
}

/// An editor that answers permissions with an option of the wanted kind.
async fn editor<F, Fut>(test_server: &TestServer, transport: Transport, wanted: PermissionOptionKind, drive: F) -> Verdict
where
    F: FnOnce(Editor, Seen) -> Fut,
    Fut: Future<Output = Verdict>,
{
    let (told, updates) = unbounded_channel();
    let (asking, asked) = unbounded_channel();
    let seen = Seen { updates, asked, messages: HashMap::new(), order: Vec::new(), active: false };
    Client
        .v2()
        .on_receive_notification(
            async move |notification: schema::UpdateSessionNotification, _connection: Editor| {
                told.send(notification).map_err(Error::into_internal_error)
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: schema::RequestPermissionRequest,
                        responder: Responder<schema::RequestPermissionResponse>,
                        _connection: Editor| {
                asking.send(()).map_err(Error::into_internal_error)?;
                let option = request.options.iter().find(|option| option.kind == wanted);
                let option = option.ok_or_else(Error::invalid_params)?.option_id.clone();
                let chosen = schema::SelectedPermissionOutcome::new(option);
                let outcome = schema::RequestPermissionOutcome::Selected(chosen);
                responder.respond(schema::RequestPermissionResponse::new(outcome))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .connect_with(test_server.way(transport), async move |connection: Editor| {
            let ours = schema::Implementation::new("interop", "1");
            let hello = schema::InitializeRequest::new(ProtocolVersion::V2, ours);
            let hello = connection.send_request(hello).block_task().await?;
            demand(hello.protocol_version == ProtocolVersion::V2, &hello)?;
            demand(hello.capabilities.session.is_some(), &hello)?;
            drive(connection, seen).await
        })
        .await
}

async fn prompt(test_server: &TestServer, transport: Transport) -> Verdict {
    editor(test_server, transport, PermissionOptionKind::AllowOnce, async |connection, mut seen| {
        let session = connection.build_session(test_server.work()).start_session().block_task().await?.session;
        let text = script(&[json!([{"thought": "hmm"}, {"text": "hello there", "chunks": 4}])]);
        session.send_prompt(text).block_task().await?;
        let stop = seen.idle().await?;
        demand(stop == Some(StopReason::EndTurn) && seen.text() == "hello there", (stop, seen.text()))?;
        session.close().block_task().await?;
        Ok(())
    })
    .await
}

async fn permission_allowed(test_server: &TestServer, transport: Transport) -> Verdict {
    let file = format!("allowed-v2-{}", transport.name());
    editor(test_server, transport, PermissionOptionKind::AllowOnce, async |connection, mut seen| {
        let session = connection.build_session(test_server.work()).start_session().block_task().await?.session;
        session.send_prompt(touch(&file)).block_task().await?;
        let stop = seen.idle().await?;
        demand(stop == Some(StopReason::EndTurn) && seen.text() == "All done.", (stop, seen.text()))?;
        demand(seen.asked() == 1 && test_server.has(&file), "asked once, and the command ran")
    })
    .await
}

async fn permission_rejected(test_server: &TestServer, transport: Transport) -> Verdict {
    let file = format!("rejected-v2-{}", transport.name());
    editor(test_server, transport, PermissionOptionKind::RejectOnce, async |connection, mut seen| {
        let session = connection.build_session(test_server.work()).start_session().block_task().await?.session;
        session.send_prompt(touch(&file)).block_task().await?;
        let stop = seen.idle().await?;
        demand(seen.asked() == 1 && !test_server.has(&file), stop)
    })
    .await
}

async fn cancel(test_server: &TestServer, transport: Transport) -> Verdict {
    editor(test_server, transport, PermissionOptionKind::AllowOnce, async |connection, mut seen| {
        let session = connection.build_session(test_server.work()).start_session().block_task().await?.session;
        session.send_prompt(endless()).block_task().await?;
        seen.until(|seen| !seen.text().is_empty()).await?;
        session.cancel_active_work()?;
        let stop = seen.idle().await?;
        demand(stop == Some(StopReason::Cancelled), stop)
    })
    .await
}

async fn resume_replays(test_server: &TestServer, transport: Transport) -> Verdict {
    let kept = std::sync::Mutex::new(None);
    editor(test_server, transport, PermissionOptionKind::AllowOnce, async |connection, mut seen| {
        let session = connection.build_session(test_server.work()).start_session().block_task().await?.session;
        session.send_prompt(script(&[json!([{"text": "remember me", "chunks": 5}])])).block_task().await?;
        seen.idle().await?;
        *kept.lock().expect("nobody panics here") = Some(session.session_id().clone());
        Ok(())
    })
    .await?;
    let session = kept.into_inner().expect("nobody panics here").ok_or_else(Error::internal_error)?;
    editor(test_server, transport, PermissionOptionKind::AllowOnce, async |connection, mut seen| {
        let from = schema::ReplayFrom::from(schema::ReplayFromStart::new());
        let request = schema::ResumeSessionRequest::new(session, test_server.work()).replay_from(from);
        connection.resume_session_from(request).start_session().block_task().await?;
        seen.until(|seen| seen.text() == "remember me").await
    })
    .await
}

async fn option(test_server: &TestServer, transport: Transport) -> Verdict {
    let file = format!("auto-v2-{}", transport.name());
    editor(test_server, transport, PermissionOptionKind::AllowOnce, async |connection, mut seen| {
        let session = connection.build_session(test_server.work()).start_session().block_task().await?.session;
        session.set_config_option("policy", "auto").block_task().await?;
        session.send_prompt(touch(&file)).block_task().await?;
        seen.idle().await?;
        demand(seen.asked() == 0 && test_server.has(&file), "not asked, and the command ran")
    })
    .await
}
