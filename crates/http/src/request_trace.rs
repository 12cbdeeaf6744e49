//! Requests that change something as spans, where requests are traced.

use axum::response::Response;
use gander_domain::caller::Caller;
use gander_services::telemetry::{Span, Telemetry};
use http::{HeaderMap, Method};

use crate::route::RouteRule;

/// A request under way. One that was admitted: what a stranger's header says counts for nothing.
pub(crate) struct RequestTrace {
    telemetry: Telemetry,
    span: Span,
}

impl RequestTrace {
    /// Begins the span and gives it to the caller, so that the run which it asks for is part of the same trace. None for
    /// requests that only read, and while nothing is traced.
    pub(crate) fn begin(
        telemetry: &Telemetry,
        route: &RouteRule,
        method: &Method,
        headers: &HeaderMap,
        caller: &mut Caller,
    ) -> Option<Self> {
        if method.is_safe() {
            return None;
        }
        let traceparent = headers.get("traceparent").and_then(|value| value.to_str().ok());
        // The route and not the path, which can hold names that people chose.
        let span = telemetry.begin_request(traceparent, &format!("{method} {}", route.path))?;
        let span = span.with("http.request.method", method.as_str()).with("http.route", route.path);
        caller.trace = Some(span.context);
        Some(Self { telemetry: telemetry.clone(), span })
    }

    /// When the head of the answer is there; what is streamed behind it is part of the run.
    pub(crate) fn end(self, response: &Response) {
        let status = response.status();
        let mut span = self.span.with("http.response.status_code", status.as_u16());
        span.error = status.is_server_error().then(|| status.as_u16().to_string());
        self.telemetry.end_span(span);
    }
}
