//! One stream of server-sent events: read, and opened again after its last event when it breaks.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use gander_wire::sse::SseParser;
use reqwest::Response;

use super::http::HttpConnection;
use super::{MAX_MESSAGE, send_net_request_expecting};
use crate::LinkError;

/// How long to wait before the stream is opened again, each time longer; after the last there is no other.
const RECONNECT_PAUSES: [u64; 9] = [0, 100, 200, 400, 800, 1600, 3200, 5000, 5000];
/// A server that says nothing for so long, not even that it is there, is gone.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(90);

/// A stream that a server has agreed to.
pub(super) struct OpenedStream {
    /// Whose: a session's, or the connection's own.
    pub(super) session: Option<String>,
    pub(super) response: Response,
}

/// What is known of the place in a stream.
#[derive(Default)]
struct StreamPlace {
    last: Option<String>,
    /// An event had no id: where it stood cannot be said.
    lost: bool,
}

/// Asks for a stream, from after this event.
pub(super) async fn request_stream(
    exchange: &HttpConnection,
    session: Option<&str>,
    last: Option<&str>,
) -> Result<Response, LinkError> {
    let request = exchange.stream_request(session);
    let request = match last {
        Some(last) => request.header("last-event-id", last),
        None => request,
    };
    send_net_request_expecting(request, &[200]).await
}

/// Passes on what the stream carries for as long as anybody wants it.
///
/// Boxed, because a stream may open another one.
pub(super) fn follow_stream(exchange: Arc<HttpConnection>, opened: OpenedStream) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let end = exchange.end.clone();
        tokio::select! {
            () = end.cancelled() => {}
            error = read_stream_with_reconnects(&exchange, opened) => {
                exchange.incoming.send(Err(error)).await.ok();
            }
        }
    })
}

/// Reads until there is no way on, and says why.
async fn read_stream_with_reconnects(exchange: &Arc<HttpConnection>, opened: OpenedStream) -> LinkError {
    let OpenedStream { session, mut response } = opened;
    let mut place = StreamPlace::default();
    loop {
        let broken = read_stream_until_broken(exchange, session.as_deref(), &mut response, &mut place).await;
        if place.lost {
            return LinkError::Interrupted(broken);
        }
        response = match reopen_stream(exchange, session.as_deref(), &place).await {
            Ok(response) => response,
            Err(error) => return error,
        };
    }
}

/// Opens the stream again. A refusal is final, unless the server has not noticed yet that the old one broke.
async fn reopen_stream(
    exchange: &HttpConnection,
    session: Option<&str>,
    place: &StreamPlace,
) -> Result<Response, LinkError> {
    let mut last = LinkError::Closed;
    for pause in RECONNECT_PAUSES {
        tokio::time::sleep(Duration::from_millis(pause)).await;
        match request_stream(exchange, session, place.last.as_deref()).await {
            Ok(response) => return Ok(response),
            Err(LinkError::Refused { status, message }) if ![409, 429, 502, 503, 504].contains(&status) => {
                return Err(LinkError::Refused { status, message });
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Reads until the stream breaks, and says how.
async fn read_stream_until_broken(
    exchange: &Arc<HttpConnection>,
    session: Option<&str>,
    response: &mut Response,
    place: &mut StreamPlace,
) -> String {
    let mut events = SseParser::with_limit(MAX_MESSAGE);
    loop {
        let chunk = match tokio::time::timeout(SILENCE_TIMEOUT, response.chunk()).await {
            Ok(Ok(Some(chunk))) => chunk,
            Ok(Ok(None)) => return "the stream ended".to_owned(),
            Ok(Err(error)) => return error.to_string(),
            Err(_) => return format!("not a word for {SILENCE_TIMEOUT:?}"),
        };
        let arrived = match events.push_bytes(&chunk) {
            Ok(arrived) => arrived,
            Err(too_long) => {
                place.lost = true;
                return too_long.to_string();
            }
        };
        for event in arrived {
            place.lost |= event.id.is_none();
            if let Some(made) = exchange.note_arriving(session, &event.data)
                && let Err(error) = exchange.listen_to_session(Some(&made)).await
            {
                tracing::warn!(%error, session = made, "no stream of the new session");
            }
            // It counts as heard once it is passed on, not before.
            if exchange.incoming.send(Ok(event.data)).await.is_err() {
                return "nobody listens".to_owned();
            }
            place.last = event.id.or(place.last.take());
        }
    }
}
