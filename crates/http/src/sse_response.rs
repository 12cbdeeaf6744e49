//! Streams of events as responses: counted per token, ended with the server.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use gander_domain::caller::Caller;
use http::header::{self, HeaderMap, HeaderName};
use http::{Extensions, HeaderValue, StatusCode};
use tokio_util::sync::CancellationToken;

use crate::error::retry_later_response;
use crate::serve::ConnectionPermit;
use crate::sse::{EventId, InvalidEventId};
use crate::state::HttpState;
use crate::stream_limits;

pub const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// A stream that may be opened. What it takes up is given back when its response is dropped.
pub struct SsePermit {
    stream: stream_limits::StreamPermit,
    seat: Option<Arc<ConnectionPermit>>,
}

impl SsePermit {
    /// One more stream of this caller, unless it has too many.
    pub fn new(state: &HttpState, caller: &Caller, request: &Extensions) -> Result<Self, Box<Response>> {
        let Some(stream) = state.streams.acquire(caller, &state.limits) else {
            let status = StatusCode::TOO_MANY_REQUESTS;
            return Err(Box::new(retry_later_response(status, "too_many_streams", "too many streams are open", 1)));
        };
        Ok(Self { stream, seat: request.get::<Arc<ConnectionPermit>>().cloned() })
    }

    /// Cancelled when streams end.
    pub fn stop_token(&self) -> CancellationToken {
        self.seat.as_ref().map(|seat| seat.stop.clone()).unwrap_or_default()
    }

    /// JSON that is made while it is read.
    pub fn json_response<S, E>(self, pieces: S) -> Response
    where
        S: Stream<Item = Result<Bytes, E>> + Send + 'static,
        E: Into<axum::BoxError> + 'static,
    {
        let mut response = self.streaming_response(pieces);
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }

    fn streaming_response<S, E>(self, pieces: S) -> Response
    where
        S: Stream<Item = Result<Bytes, E>> + Send + 'static,
        E: Into<axum::BoxError> + 'static,
    {
        let pieces = pieces.inspect(move |_| {
            let _held = (&self.stream, &self.seat);
        });
        Response::new(Body::from_stream(pieces))
    }

    /// The response.
    pub fn sse_response<S>(self, events: S) -> Response
    where
        S: Stream<Item = Result<Bytes, Infallible>> + Send + 'static,
    {
        let mut response = self.streaming_response(events);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
        headers.insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
        response
    }
}

/// What the client has of a stream, if it says so. An id that is none is never read as the beginning.
pub fn last_event_id(headers: &HeaderMap) -> Result<Option<EventId>, InvalidEventId> {
    let mut values = headers.get_all(LAST_EVENT_ID).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map_err(|_| InvalidEventId)?.trim().parse().map(Some),
        (Some(_), Some(_)) => Err(InvalidEventId),
    }
}
