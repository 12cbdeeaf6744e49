//! Streamable HTTP: each message is a POST, what the agent says comes on one stream per connection and per session.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gander_wire::acp::client::AGENT_GONE;
use gander_wire::jsonrpc::{Error, Outbox, RequestId};
use reqwest::RequestBuilder;
use reqwest::header::{self, HeaderMap, HeaderValue};
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::stream::{self, OpenedStream};
use super::{CONNECTION_ID, SESSION_ID, send_net_request_expecting};
use crate::LinkError;
use crate::link::LinkPeer;

/// A connection over HTTP, shared by the task that posts and those that listen.
#[derive(Debug)]
pub(super) struct HttpConnection {
    client: reqwest::Client,
    url: String,
    /// What every request of this connection carries: its id, and cookies that keep it at one server.
    headers: HeaderMap,
    pub(super) incoming: mpsc::Sender<Result<Vec<u8>, LinkError>>,
    pub(super) end: CancellationToken,
    routes: Mutex<SessionRoutes>,
}

/// What belongs to which session.
#[derive(Debug, Default)]
struct SessionRoutes {
    /// Sessions whose stream is open.
    streams: HashSet<String>,
    /// Calls whose answer names a new session.
    openings: HashSet<RequestId>,
    /// Requests of the agent, by the session whose stream they came on.
    requests: HashMap<RequestId, String>,
}

/// What the transport needs to know of a message.
#[derive(Default, Deserialize)]
pub(super) struct MessageEnvelope {
    id: Option<RequestId>,
    method: Option<String>,
    #[serde(default)]
    params: SessionName,
    #[serde(default)]
    result: Option<SessionName>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SessionName {
    session_id: Option<String>,
}

/// Carries messages until one side has had enough.
pub(super) async fn run_http(client: reqwest::Client, url: String, far: LinkPeer) {
    let LinkPeer { mut outgoing, incoming, end } = far;
    let Some(hello) = outgoing.recv().await else { return };
    let exchange = match send_http_initialize(client, url, hello, &incoming, &end).await {
        Ok(exchange) => Arc::new(exchange),
        Err(error) => {
            incoming.send(Err(error)).await.ok();
            return;
        }
    };
    // Only the exchange keeps the way in open from here on.
    drop(incoming);
    while let Some(message) = outgoing.recv().await {
        if !post_http_message(&exchange, message).await {
            break;
        }
    }
    exchange.end.cancelled().await;
    let farewell = exchange.with_headers(exchange.client.delete(&exchange.url), None);
    // The connection ends by itself if this does not get through.
    tokio::time::timeout(super::CONNECT_TIMEOUT, send_net_request_expecting(farewell, &[200, 202, 204])).await.ok();
}

/// The first message is answered in the body, with the id of the connection.
async fn send_http_initialize(
    client: reqwest::Client,
    url: String,
    hello: Vec<u8>,
    incoming: &mpsc::Sender<Result<Vec<u8>, LinkError>>,
    end: &CancellationToken,
) -> Result<HttpConnection, LinkError> {
    let request = client.post(&url).header(header::CONTENT_TYPE, "application/json").body(hello);
    let response =
        send_net_request_expecting(request.header(header::ACCEPT, "application/json, text/event-stream"), &[200])
            .await?;
    let none = || LinkError::Unreachable("the server gave no Acp-Connection-Id".to_owned());
    let mut headers = HeaderMap::new();
    headers.insert(CONNECTION_ID, response.headers().get(CONNECTION_ID).ok_or_else(none)?.clone());
    if let Some(cookies) = http_cookie_header(response.headers()) {
        headers.insert(header::COOKIE, cookies);
    }
    let answer = response.bytes().await.map_err(|error| super::unreachable_server_error(&error))?;
    let exchange =
        HttpConnection { client, url, headers, incoming: incoming.clone(), end: end.clone(), routes: Mutex::default() };
    incoming.send(Ok(answer.to_vec())).await.ok();
    Ok(exchange)
}

/// Posts one message; false if the connection is over. A call that did not get through has failed at once.
async fn post_http_message(exchange: &Arc<HttpConnection>, message: Vec<u8>) -> bool {
    let envelope: MessageEnvelope = serde_json::from_slice(&message).unwrap_or_default();
    let posted = async {
        exchange.listen_to_session(None).await?;
        let session = exchange.note_leaving(&envelope);
        if let Some(session) = &session {
            exchange.listen_to_session(Some(session)).await?;
        }
        let request = exchange.client.post(&exchange.url).header(header::CONTENT_TYPE, "application/json");
        send_net_request_expecting(exchange.with_headers(request, session.as_deref()).body(message), &[200, 202]).await
    };
    let Err(error) = posted.await else { return true };
    match (envelope.method, envelope.id) {
        (Some(_), Some(id)) => exchange.incoming.send(Ok(unreachable_http_answer(&id, &error))).await.is_ok(),
        (Some(_) | None, _) => {
            tracing::warn!(%error, "a message did not get through");
            true
        }
    }
}

impl HttpConnection {
    /// The request for a stream.
    pub(super) fn stream_request(&self, session: Option<&str>) -> RequestBuilder {
        self.with_headers(self.client.get(&self.url), session).header(header::ACCEPT, "text/event-stream")
    }

    /// Opens a stream unless it is open: of a session, or of the connection.
    pub(super) async fn listen_to_session(self: &Arc<Self>, session: Option<&str>) -> Result<(), LinkError> {
        // The connection's own has a name that no session can have.
        let name = session.unwrap_or_default().to_owned();
        if !self.lock_routes().streams.insert(name.clone()) {
            return Ok(());
        }
        match stream::request_stream(self, session, None).await {
            Ok(response) => {
                let opened = OpenedStream { session: session.map(str::to_owned), response };
                tokio::spawn(stream::follow_stream(Arc::clone(self), opened));
                Ok(())
            }
            Err(error) => {
                self.lock_routes().streams.remove(&name);
                Err(error)
            }
        }
    }

    /// A message has arrived on a stream. True if it was the answer that names a new session: that is to be listened to.
    pub(super) fn note_arriving(&self, stream: Option<&str>, message: &[u8]) -> Option<String> {
        let envelope: MessageEnvelope = serde_json::from_slice(message).unwrap_or_default();
        let id = envelope.id?;
        let mut routes = self.lock_routes();
        match (envelope.method, stream) {
            (Some(_), Some(session)) => {
                routes.requests.insert(id, session.to_owned());
                None
            }
            (Some(_), None) => None,
            (None, _) if routes.openings.remove(&id) => envelope.result?.session_id,
            (None, _) => None,
        }
    }

    /// The session that a message about to leave belongs to.
    fn note_leaving(&self, envelope: &MessageEnvelope) -> Option<String> {
        let mut routes = self.lock_routes();
        match (&envelope.method, &envelope.id) {
            (Some(method), id) => {
                if let (Some(id), "session/new" | "session/fork") = (id, method.as_str()) {
                    routes.openings.insert(id.clone());
                }
                envelope.params.session_id.clone()
            }
            (None, Some(id)) => routes.requests.remove(id),
            (None, None) => None,
        }
    }

    fn with_headers(&self, request: RequestBuilder, session: Option<&str>) -> RequestBuilder {
        let request = request.headers(self.headers.clone());
        match session.and_then(|session| HeaderValue::try_from(session).ok()) {
            Some(session) => request.header(SESSION_ID, session),
            None => request,
        }
    }

    /// A panic while the lock was held leaves nothing half done here.
    fn lock_routes(&self) -> MutexGuard<'_, SessionRoutes> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The answer of an agent that cannot be reached.
fn unreachable_http_answer(id: &RequestId, error: &LinkError) -> Vec<u8> {
    let mut outbox = Outbox::default();
    outbox.push_error(Some(id), &Error { code: AGENT_GONE, message: error.to_string(), data: None });
    outbox.bytes().trim_ascii_end().to_vec()
}

/// What the server wants to be sent back, without where and for how long: it is all the same server.
fn http_cookie_header(headers: &HeaderMap) -> Option<HeaderValue> {
    let set = headers.get_all(header::SET_COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs: Vec<&str> = set.filter_map(|cookie| cookie.split(';').next()).map(str::trim).collect();
    if pairs.is_empty() { None } else { HeaderValue::try_from(pairs.join("; ")).ok() }
}
