//! Version 1 of the protocol: an editor as the SDK's users write it.

use std::sync::{Arc, Mutex};

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    CancelNotification, ClientCapabilities, ContentBlock, DeleteSessionRequest, FileSystemCapabilities,
    InitializeRequest, ListSessionsRequest, LoadSessionRequest, NewSessionRequest, PermissionOptionKind, PromptRequest,
    ReadTextFileRequest, ReadTextFileResponse, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, ResumeSessionRequest, SelectedPermissionOutcome, SessionId, SessionNotification,
    SessionUpdate, SetSessionConfigOptionRequest, StopReason,
};
use agent_client_protocol::{Agent, Client, Error};
use serde_json::json;
use tokio::sync::Notify;

use crate::test_server::{TestServer, Transport, endless, script, touch};
use crate::{Case, Verdict, demand};

pub const CASES: &[(&str, Case)] = &[
    ("prompt", |test_server, transport| Box::pin(prompt(test_server, transport))),
    ("permission_allowed", |test_server, transport| Box::pin(permission_allowed(test_server, transport))),
    ("permission_rejected", |test_server, transport| Box::pin(permission_rejected(test_server, transport))),
    ("cancel", |test_server, transport| Box::pin(cancel(test_server, transport))),
    ("request_taken_back", |test_server, transport| Box::pin(request_taken_back(test_server, transport))),
    ("load_replays_and_resume_does_not", |test_server, transport| Box::pin(load_and_resume(test_server, transport))),
    ("editor_lends_files", |test_server, transport| Box::pin(editor_lends_files(test_server, transport))),
    ("options", |test_server, transport| Box::pin(options(test_server, transport))),
    ("errors_are_typed", |test_server, transport| Box::pin(errors_are_typed(test_server, transport))),
    ("deleted_is_gone", |test_server, transport| Box::pin(deleted_is_gone(test_server, transport))),
];

type Editor = ConnectionTo<Agent>;

/// What an editor was told and asked.
#[derive(Default)]
struct Seen {
    updates: Mutex<Vec<SessionUpdate>>,
    asked: Mutex<usize>,
    read: Mutex<Vec<std::path::PathBuf>>,
    changed: Notify,
}

impl Seen {
    fn text(&self) -> String {
        let updates = self.updates.lock().expect("nobody panics here");
        let texts = updates.iter().filter_map(|update| match update {
            SessionUpdate::AgentMessageChunk(chunk) => Some(words(&chunk.content)),
            _ => None,
        });
        texts.collect()
    }

    fn thoughts(&self) -> String {
        let updates = self.updates.lock().expect("nobody panics here");
        let texts = updates.iter().filter_map(|update| match update {
            SessionUpdate::AgentThoughtChunk(chunk) => Some(words(&chunk.content)),
            _ => None,
        });
        texts.collect()
    }

    fn asked(&self) -> usize {
        *self.asked.lock().expect("nobody panics here")
    }

    async fn until(&self, holds: impl Fn(&Self) -> bool) {
        loop {
            let changed = self.changed.notified();
            if holds(self) {
                return;
            }
            changed.await;
        }
    }
}

fn words(content: &ContentBlock) -> String {
    match content {
        ContentBlock::Text(text) => text.text.clone(),
        other => format!("{other:?}"),
    }
}

/// An editor that answers permissions with an option of the wanted kind and lends its files.
async fn editor<F, Fut>(test_server: &TestServer, transport: Transport, wanted: PermissionOptionKind, drive: F) -> Verdict
where
    F: FnOnce(Editor, Arc<Seen>) -> Fut,
    Fut: Future<Output = Verdict>,
{
    let seen = Arc::new(Seen::default());
    let (told, asked, read) = (Arc::clone(&seen), Arc::clone(&seen), Arc::clone(&seen));
    Client
        .v1()
        .on_receive_notification(
            async move |notification: SessionNotification, _connection| {
                told.updates.lock().expect("nobody panics here").push(notification.update);
                told.changed.notify_waiters();
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: RequestPermissionRequest, responder, _connection| {
                *asked.asked.lock().expect("nobody panics here") += 1;
                asked.changed.notify_waiters();
                let option = request.options.iter().find(|option| option.kind == wanted);
                let option = option.ok_or_else(Error::invalid_params)?.option_id.clone();
                let outcome = RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option));
                responder.respond(RequestPermissionResponse::new(outcome))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: ReadTextFileRequest, responder, _connection| {
                read.read.lock().expect("nobody panics here").push(request.path);
                responder.respond(ReadTextFileResponse::new("unsaved text"))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .connect_with(test_server.way(transport), async move |connection: Editor| {
            let files = FileSystemCapabilities::new().read_text_file(true);
            let hello =
                InitializeRequest::new(ProtocolVersion::V1).client_capabilities(ClientCapabilities::new().fs(files));
            let hello = connection.send_request(hello).block_task().await?;
            demand(hello.protocol_version == ProtocolVersion::V1, &hello)?;
            drive(connection, seen).await
        })
        .await
}

async fn open(test_server: &TestServer, connection: &Editor) -> Result<SessionId, Error> {
    let made = connection.send_request(NewSessionRequest::new(test_server.work())).block_task().await?;
    Ok(made.session_id)
}

async fn say(connection: &Editor, session: &SessionId, text: String) -> Result<StopReason, Error> {
    let prompt = PromptRequest::new(session.clone(), vec![text.into()]);
    Ok(connection.send_request(prompt).block_task().await?.stop_reason)
}

async fn prompt(test_server: &TestServer, transport: Transport) -> Verdict {
    editor(test_server, transport, PermissionOptionKind::AllowOnce, async |connection, seen| {
        let session = open(test_server, &connection).await?;
        let text = script(&[json!([{"thought": "hmm"}, {"text": "hello there", "chunks": 4}])]);
        let stop = say(&connection, &session, text).await?;
        demand(stop == StopReason::EndTurn, stop)?;
        demand((seen.thoughts().as_str(), seen.text().as_str()) == ("hmm", "hello there"), seen.text())
    })
    .await
}

async fn permission_allowed(test_server: &TestServer, transport: Transport) -> Verdict {
    let file = format!("allowed-{}", transport.name());
    editor(test_server, transport, PermissionOptionKind::AllowOnce, async |connection, seen| {
        let session = open(test_server, &connection).await?;
        let stop = say(&connection, &session, touch(&file)).await?;
        demand(stop == StopReason::EndTurn && seen.text() == "All done.", seen.text())?;
        demand(seen.asked() == 1 && test_server.has(&file), seen.asked())
    })
    .await
}

async fn permission_rejected(test_server: &TestServer, transport: Transport) -> Verdict {
    let file = format!("rejected-{}", transport.name());
    editor(test_server, transport, PermissionOptionKind::RejectOnce, async |connection, seen| {
        let session = open(test_server, &connection).await?;
        let stop = say(&connection, &session, touch(&file)).await?;
        demand(stop == StopReason::EndTurn && seen.asked() == 1 && !test_server.has(&file), (stop, seen.asked()))
    })
    .await
}

async fn cancel(test_server: &TestServer, transport: Transport) -> Verdict {
    editor(test_server, transport, PermissionOptionKind::AllowOnce, async |connection, seen| {
        let session = open(test_server, &connection).await?;
        let prompt = PromptRequest::new(session.clone(), vec![endless().into()]);
        let turn = connection.send_request(prompt);
        seen.until(|seen| !seen.text().is_empty()).await;
        connection.send_notification(CancelNotification::new(session.clone()))?;
        let stop = turn.block_task().await?.stop_reason;
        demand(stop == StopReason::Cancelled, stop)?;
        let stop = say(&connection, &session, script(&[json!([{"text": "still here"}])])).await?;
        demand(stop == StopReason::EndTurn && seen.text().ends_with("still here"), stop)
    })
    .await
}

async fn request_taken_back(test_server: &TestServer, transport: Transport) -> Verdict {
    editor(test_server, transport, PermissionOptionKind::AllowOnce, async |connection, seen| {
        let session = open(test_server, &connection).await?;
        let turn = connection.send_request(PromptRequest::new(session, vec![endless().into()]));
        seen.until(|seen| !seen.text().is_empty()).await;
        turn.cancel()?;
        match turn.block_task().await {
            Ok(turn) => demand(turn.stop_reason == StopReason::Cancelled, turn),
            Err(error) => demand(i32::from(error.code) == -32800, error),
        }
    })
    .await
}

async fn load_and_resume(test_server: &TestServer, transport: Transport) -> Verdict {
    let kept = Mutex::new(None);
    editor(test_server, transport, PermissionOptionKind::AllowOnce, async |connection, _| {
        let session = open(test_server, &connection).await?;
        say(&connection, &session, script(&[json!([{"text": "remember me", "chunks": 5}])])).await?;
        *kept.lock().expect("nobody panics here") = Some(session);
        Ok(())
    })
    .await?;
    let session = kept.into_inner().expect("nobody panics here").ok_or_else(Error::internal_error)?;
    editor(test_server, transport, PermissionOptionKind::AllowOnce, async |connection, seen| {
        connection.send_request(LoadSessionRequest::new(session.clone(), test_server.work())).block_task().await?;
        seen.until(|seen| seen.text() == "remember me").await;
        let listed = connection.send_request(ListSessionsRequest::new().cwd(test_server.work())).block_task().await?;
        demand(listed.sessions.iter().any(|listed| listed.session_id == session), &listed)
    })
    .await?;
    editor(test_server, transport, PermissionOptionKind::AllowOnce, async |connection, seen| {
        connection.send_request(ResumeSessionRequest::new(session.clone(), test_server.work())).block_task().await?;
        say(&connection, &session, script(&[json!([{"text": "go on"}])])).await?;
        demand(seen.text() == "go on", seen.text())
    })
    .await
}

async fn editor_lends_files(test_server: &TestServer, transport: Transport) -> Verdict {
    editor(test_server, transport, PermissionOptionKind::AllowOnce, async |connection, seen| {
        let session = open(test_server, &connection).await?;
        let read = json!([{"tool": "read", "args": {"path": "unsaved.txt"}}]);
        say(&connection, &session, script(&[read, json!([{"text": "read"}])])).await?;
        let read = seen.read.lock().expect("nobody panics here").clone();
        demand(read == [test_server.work().join("unsaved.txt")], read)
    })
    .await
}

async fn options(test_server: &TestServer, transport: Transport) -> Verdict {
    let file = format!("auto-{}", transport.name());
    editor(test_server, transport, PermissionOptionKind::AllowOnce, async |connection, seen| {
        let session = open(test_server, &connection).await?;
        let set = SetSessionConfigOptionRequest::new(session.clone(), "policy", "auto");
        let options = connection.send_request(set).block_task().await?.config_options;
        demand(options.iter().any(|option| &*option.id.0 == "policy"), &options)?;
        say(&connection, &session, touch(&file)).await?;
        demand(seen.asked() == 0 && test_server.has(&file), seen.asked())
    })
    .await
}

async fn errors_are_typed(test_server: &TestServer, transport: Transport) -> Verdict {
    editor(test_server, transport, PermissionOptionKind::AllowOnce, async |connection, _| {
        let relative = connection.send_request(NewSessionRequest::new("relative")).block_task().await;
        demand(relative.as_ref().is_err_and(|error| i32::from(error.code) == -32602), &relative)?;
        let nowhere = SessionId::new("0199aaaa-0000-7000-8000-000000000000");
        let unknown = say(&connection, &nowhere, "hi".to_owned()).await;
        // Over HTTP an unknown session is a 404, which the SDK gives a code of its own.
        let known = |error: &Error| transport == Transport::Http || i32::from(error.code) == -32002;
        demand(unknown.as_ref().is_err_and(known), unknown)
    })
    .await
}

async fn deleted_is_gone(test_server: &TestServer, transport: Transport) -> Verdict {
    editor(test_server, transport, PermissionOptionKind::AllowOnce, async |connection, _| {
        let session = open(test_server, &connection).await?;
        say(&connection, &session, script(&[json!([{"text": "soon gone"}])])).await?;
        connection.send_request(DeleteSessionRequest::new(session.clone())).block_task().await?;
        let listed = connection.send_request(ListSessionsRequest::new()).block_task().await?;
        demand(listed.sessions.iter().all(|listed| listed.session_id != session), &listed)
    })
    .await
}
