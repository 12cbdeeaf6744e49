//! A credential that is taken back ends what it opened: event streams, gRPC and WebSockets.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::header;
use hyper::body::Frame;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Cancelled when whatever a browser's credential opened has to end.
#[derive(Clone, Debug)]
pub struct Revoked(pub CancellationToken);

/// A stream of events or of gRPC ends when the credential that opened it does.
pub fn end_when_revoked(response: Response, revoked: Option<CancellationToken>) -> Response {
    let kind = response.headers().get(header::CONTENT_TYPE);
    let streams: [&[u8]; 2] = [b"text/event-stream", b"application/grpc"];
    let lasts = kind.is_some_and(|kind| streams.iter().any(|stream| kind.as_bytes().starts_with(stream)));
    match revoked {
        Some(revoked) if lasts => response.map(|body| {
            let revoked = Box::pin(revoked.cancelled_owned());
            Body::new(RevocableBody { body, revoked, is_over: false })
        }),
        Some(_) | None => response,
    }
}

/// A body that ends when a credential does.
struct RevocableBody {
    body: Body,
    revoked: Pin<Box<WaitForCancellationFutureOwned>>,
    is_over: bool,
}

impl hyper::body::Body for RevocableBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.is_over || self.revoked.as_mut().poll(context).is_ready() {
            self.is_over = true;
            return Poll::Ready(None);
        }
        Pin::new(&mut self.body).poll_frame(context)
    }

    /// An answer of gRPC without a message says so: its clients do not take an empty frame for an end.
    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}
