//! Traces for OpenTelemetry: request, run, model call, tool call. Off unless the settings name a collector.
//!
//! What a run did is a view of its log, made once its end is stored, so that the trace is whole whichever nodes the run was
//! on: the trace stands in the meta of the run's first entry, and the ids of spans follow from the ids in the log. Requests and
//! model calls are not in the log; they are noted as they end, by the node that had them.
//!
//! Nothing waits for a collector: what does not fit into the queue is dropped and counted.

mod exporter;
mod otlp;
mod run_spans;
mod run_trace;
mod span;
mod traced_model;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gander_domain::active_run::ActiveRun;
use gander_domain::trace::TraceContext;
use gander_domain::{RunId, SessionId, SessionView};
use gander_models::Model;
use gander_runtime::hub::OnRunEnded;
use gander_store::clock;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

pub use exporter::TraceExporter;
pub use otlp::{OtlpAddress, OtlpClient, OtlpError, OtlpHeaders};
pub use run_trace::RunTrace;
pub use span::{Span, SpanKind, otlp_attribute, otlp_time};

use exporter::{EndedRun, TraceItem};
use traced_model::TracedModel;

/// Spans and ended runs that wait to be sent.
const QUEUE_CAPACITY: usize = 2048;

/// The section `otel` of the settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtelSection {
    /// Where traces go; absent: nowhere.
    #[serde(default)]
    pub endpoint: Option<OtlpAddress>,
    /// What this server is called there.
    pub service: String,
}

/// Takes in what happened. Cheap to clone, and does nothing while it is off.
#[derive(Clone, Default)]
pub struct Telemetry {
    queue: Option<Arc<TraceQueue>>,
}

struct TraceQueue {
    sender: mpsc::Sender<TraceItem>,
    counts: Arc<TraceCounts>,
}

/// What became of spans since the start.
#[derive(Debug, Default)]
pub struct TraceCounts {
    sent: AtomicU64,
    dropped: AtomicU64,
}

impl TraceCounts {
    fn count_dropped(&self, spans: usize) {
        self.dropped.fetch_add(spans as u64, Ordering::Relaxed);
    }

    fn count_sent(&self, spans: usize) {
        self.sent.fetch_add(spans as u64, Ordering::Relaxed);
    }
}

impl Telemetry {
    /// Traces are sent by the exporter that comes with it.
    pub fn start(client: OtlpClient) -> (Self, TraceExporter) {
        let (sender, items) = mpsc::channel(QUEUE_CAPACITY);
        let counts = Arc::new(TraceCounts::default());
        let exporter = TraceExporter::new(client, items, Arc::clone(&counts));
        (Self { queue: Some(Arc::new(TraceQueue { sender, counts })) }, exporter)
    }

    /// How many spans were sent and dropped; none while it is off.
    pub fn span_counts(&self) -> Option<(u64, u64)> {
        let counts = &self.queue.as_ref()?.counts;
        Some((counts.sent.load(Ordering::Relaxed), counts.dropped.load(Ordering::Relaxed)))
    }

    /// Begins the span of a request, as part of the trace that its `traceparent` names, if that is one. None while it is off.
    pub fn begin_request(&self, traceparent: Option<&str>, name: &str) -> Option<Span> {
        self.queue.as_ref()?;
        let parent: Option<TraceContext> = traceparent.and_then(|text| text.parse().ok());
        let (trace_id, span_id) = (random_id()?, random_id()?);
        let context = TraceContext {
            trace_id: parent.map_or(trace_id, |parent| parent.trace_id),
            span_id: span_id as u64 | 1,
            sampled: parent.is_none_or(|parent| parent.sampled),
        };
        let parent = parent.map(|parent| parent.span_id);
        Some(Span::new(context, parent, name, SpanKind::Server, clock::current_time()))
    }

    /// Takes in a span that ended now.
    pub fn end_span(&self, span: Span) {
        let ended = Span { end: clock::current_time(), ..span };
        self.send(ended.context.sampled.then(|| TraceItem::Span(Box::new(ended))));
    }

    /// The context that what a run does has as its parent. None while it is off.
    pub fn run_context(&self, session: SessionId, run: &ActiveRun) -> Option<TraceContext> {
        self.queue.as_ref()?;
        Some(RunTrace::new(session, run.id, run.meta.as_ref()).context())
    }

    /// The model with each of its calls as a span of this run. The model itself while it is off.
    pub fn trace_model(&self, model: Arc<dyn Model>, view: &SessionView) -> Arc<dyn Model> {
        match view.run.as_ref().and_then(|run| self.run_context(view.session, run)).filter(|run| run.sampled) {
            Some(run) => Arc::new(TracedModel { model, telemetry: self.clone(), run }),
            None => model,
        }
    }

    /// What the hub tells of every run that ended.
    pub fn on_run_ended(&self) -> OnRunEnded {
        let telemetry = self.clone();
        Arc::new(move |view, run| telemetry.handle_run_end(view, run))
    }

    fn handle_run_end(&self, view: &SessionView, run: RunId) {
        let ended = || EndedRun { session: view.session, run, owner: view.owner.clone() };
        self.send(self.queue.is_some().then(|| TraceItem::Run(ended())));
    }

    fn send(&self, item: Option<TraceItem>) {
        if let (Some(queue), Some(item)) = (&self.queue, item)
            && queue.sender.try_send(item).is_err()
        {
            queue.counts.count_dropped(1);
        }
    }
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Telemetry").field("is_on", &self.queue.is_some()).finish()
    }
}

/// A random number that is not 0.
fn random_id() -> Option<u128> {
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(u128::from_be_bytes(bytes) | 1)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test]
    async fn what_does_not_fit_is_dropped_and_counted_and_nobody_waits() {
        let address = "http://127.0.0.1:1".parse().unwrap();
        let client = OtlpClient::new(address, OtlpHeaders::default(), "test", "1").unwrap();
        let (telemetry, _exporter) = Telemetry::start(client);
        for _ in 0..QUEUE_CAPACITY + 3 {
            telemetry.end_span(telemetry.begin_request(None, "POST /runs").unwrap());
        }
        assert_eq!(telemetry.span_counts(), Some((0, 3)));
    }

    #[test]
    fn what_is_off_gives_nothing() {
        let telemetry = Telemetry::default();
        assert!(telemetry.begin_request(None, "POST /runs").is_none() && telemetry.span_counts().is_none());
    }
}
