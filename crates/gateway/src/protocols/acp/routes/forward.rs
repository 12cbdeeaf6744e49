//! Passes a request on to the node that holds its connection.

use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use gander_http::sse_response::{LAST_EVENT_ID, SsePermit};
use http::header::{self, HeaderName};
use http::request::Parts;
use reqwest::{Client, redirect};
use uuid::Uuid;

use super::{CONNECTION_ID, SESSION_ID, unavailable_acp_response};
use crate::protocols::acp::{AcpState, ConnectionHolder};

/// A node that takes longer to be reached is gone.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Says that a node passed the request on: it is served where it arrives.
const PASSED_ON: HeaderName = HeaderName::from_static("x-gander-passed-on");

const SECRET_KEY: HeaderName = HeaderName::from_static("x-secret-key");

/// What goes along. The guard of the other node sees the same token.
const REQUEST_HEADERS: [HeaderName; 7] =
    [header::AUTHORIZATION, SECRET_KEY, header::ACCEPT, header::CONTENT_TYPE, CONNECTION_ID, SESSION_ID, LAST_EVENT_ID];

/// What comes back.
const RESPONSE_HEADERS: [HeaderName; 5] =
    [header::CONTENT_TYPE, header::CACHE_CONTROL, header::RETRY_AFTER, CONNECTION_ID, SESSION_ID];

/// What asks other nodes: directly, and without a limit of time, since streams last.
pub(crate) fn node_client() -> Client {
    let builder = Client::builder().no_proxy().redirect(redirect::Policy::none()).connect_timeout(CONNECT_TIMEOUT);
    builder.build().unwrap_or_default()
}

/// The answer of the node that holds the connection; none if that is this one, or if it is so now.
pub(super) async fn pass_on_to_holder(state: &AcpState, id: Uuid, parts: &Parts, body: Bytes) -> Option<Response> {
    let headers = &parts.headers;
    // A browser's proof counts once, or at this node's name alone.
    let has_token = headers.contains_key(header::AUTHORIZATION) || headers.contains_key(SECRET_KEY);
    if headers.contains_key(PASSED_ON) || !has_token {
        return None;
    }
    let mut holder = match state.acp.find_other_holder(id).await {
        Ok(holder) => holder?,
        Err(error) => return Some(unknown_holder_response(&error)),
    };
    // One that does not answer is replaced, by this node or by one that was faster.
    for _ in 0..2 {
        match ask_holder(&state.node_client, &holder, parts, body.clone()).await {
            Ok(response) => return Some(response),
            Err(error) if error.is_connect() => match state.acp.take_over(id, &holder).await {
                Ok(other) => holder = other?,
                Err(error) => return Some(unknown_holder_response(&error)),
            },
            Err(error) => {
                tracing::warn!(error = %error.without_url(), "a request was not answered by the node of its connection");
                return Some(unavailable_acp_response());
            }
        }
    }
    Some(unavailable_acp_response())
}

/// Counts a stream that another node writes until it ends here, or this node does.
pub(super) fn hold_stream_permit(response: Response, permit: SsePermit) -> Response {
    let stop = permit.stop_token();
    response.map(|body| {
        let held = body.into_data_stream().map(move |piece| {
            let _counted = &permit;
            piece
        });
        Body::from_stream(held.take_until(async move { stop.cancelled().await }))
    })
}

async fn ask_holder(
    client: &Client,
    holder: &ConnectionHolder,
    parts: &Parts,
    body: Bytes,
) -> Result<Response, reqwest::Error> {
    let path = parts.uri.path_and_query().map_or("/acp", |path| path.as_str());
    let mut request = client.request(parts.method.clone(), format!("{}{path}", holder.address)).body(body);
    for name in REQUEST_HEADERS {
        for value in parts.headers.get_all(&name) {
            request = request.header(&name, value);
        }
    }
    // With `Via` it counts as what it is, a request from elsewhere.
    let answer = request.header(header::VIA, "1.1 gander").header(PASSED_ON, "1").send().await?;
    let (status, headers) = (answer.status(), answer.headers().clone());
    let mut response = Response::new(Body::from_stream(answer.bytes_stream().into_stream()));
    *response.status_mut() = status;
    for name in RESPONSE_HEADERS {
        if let Some(value) = headers.get(&name) {
            response.headers_mut().insert(name, value.clone());
        }
    }
    Ok(response)
}

fn unknown_holder_response(error: &gander_store::StoreError) -> Response {
    tracing::warn!(%error, "it is not known which node holds a connection");
    unavailable_acp_response()
}
