//! Sends spans in batches, away from whatever made them.

use std::sync::Arc;
use std::time::Duration;

use gander_domain::{Principal, RunId, Seq, SessionId};
use gander_store::{DeltaForm, Limit, RunState, Store, StoreError};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::run_spans::RunSpans;
use super::{OtlpClient, OtlpError, Span, TraceCounts};

/// So many spans are sent at once.
const BATCH_SPANS: usize = 512;
/// Spans wait so long for others.
const BATCH_INTERVAL: Duration = Duration::from_secs(1);
/// How long to wait before each further try. What fails then is dropped: the queue holds what came meanwhile.
const RETRY_DELAYS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(4)];

/// What waits to be sent.
pub(super) enum TraceItem {
    Span(Box<Span>),
    Run(EndedRun),
}

/// A run whose spans are read from its log.
pub(super) struct EndedRun {
    pub(super) session: SessionId,
    pub(super) run: RunId,
    pub(super) owner: Principal,
}

/// Sends what [`super::Telemetry`] takes in, until it is stopped.
pub struct TraceExporter {
    client: OtlpClient,
    items: mpsc::Receiver<TraceItem>,
    counts: Arc<TraceCounts>,
    batch: Vec<Value>,
    is_failing: bool,
}

impl TraceExporter {
    pub(super) fn new(client: OtlpClient, items: mpsc::Receiver<TraceItem>, counts: Arc<TraceCounts>) -> Self {
        Self { client, items, counts, batch: Vec::new(), is_failing: false }
    }

    /// Sends batches, and what is left at the end.
    pub async fn run(mut self, store: Arc<dyn Store>, stop: CancellationToken) {
        let mut every = tokio::time::interval(BATCH_INTERVAL);
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                Some(item) = self.items.recv() => self.add_item(&*store, item).await,
                _ = every.tick() => self.send_batch(&RETRY_DELAYS).await,
            }
            if self.batch.len() >= BATCH_SPANS {
                self.send_batch(&RETRY_DELAYS).await;
            }
        }
        self.items.close();
        while let Some(item) = self.items.recv().await {
            self.add_item(&*store, item).await;
        }
        self.send_batch(&[]).await;
    }

    async fn add_item(&mut self, store: &dyn Store, item: TraceItem) {
        match item {
            TraceItem::Span(span) => self.batch.push(span.to_otlp()),
            TraceItem::Run(ended) => match read_run_spans(store, &ended).await {
                Ok(spans) => self.batch.extend(spans.iter().map(Span::to_otlp)),
                Err(error) => {
                    tracing::debug!(%error, run = %ended.run, "the spans of a run cannot be read");
                    self.counts.count_dropped(1);
                }
            },
        }
    }

    /// Tries again while the collector may take it later. One warning for each time that it is away.
    async fn send_batch(&mut self, delays: &[Duration]) {
        let spans = std::mem::take(&mut self.batch);
        for some in spans.chunks(BATCH_SPANS) {
            let mut delays = delays.iter();
            let result = loop {
                match (self.client.send_spans(some).await, delays.next()) {
                    (Err(OtlpError::Retryable(_)), Some(delay)) if !self.is_failing => tokio::time::sleep(*delay).await,
                    (result, _) => break result,
                }
            };
            self.note_result(some.len(), result);
        }
    }

    fn note_result(&mut self, spans: usize, result: Result<u64, OtlpError>) {
        match result {
            Ok(rejected) => {
                let rejected = usize::try_from(rejected).unwrap_or(spans).min(spans);
                self.counts.count_sent(spans - rejected);
                self.counts.count_dropped(rejected);
                self.is_failing = false;
            }
            Err(error) => {
                self.counts.count_dropped(spans);
                if !std::mem::replace(&mut self.is_failing, true) {
                    tracing::warn!(%error, "traces cannot be sent, they are dropped until the collector takes them");
                }
            }
        }
    }
}

/// The spans of a run that ended, read from its log.
async fn read_run_spans(store: &dyn Store, ended: &EndedRun) -> Result<Vec<Span>, StoreError> {
    let mut spans = RunSpans::new(ended.session, ended.run);
    let Some(row) = store.run_of_owner(ended.run, &ended.owner).await? else { return Ok(Vec::new()) };
    let RunState::Ended(last, _) = row.state else { return Ok(Vec::new()) };
    if row.session != ended.session {
        return Ok(Vec::new());
    }
    let mut after = Seq(row.first.0.saturating_sub(1));
    while after < last {
        let page = store.read(ended.session, after, Limit::default(), DeltaForm::Joined).await?;
        let Some(newest) = page.last() else { break };
        after = newest.seq;
        page.iter().for_each(|entry| spans.apply(entry));
    }
    Ok(spans.into_spans())
}
