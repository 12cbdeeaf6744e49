//! Collectors for OpenTelemetry, where the settings name some.

use std::sync::Arc;
use std::time::Duration;

use gander_domain::IdGenerator as _;
use gander_services::telemetry::{OtlpAddress, OtlpClient, Telemetry, TraceExporter};
use gander_store::Store;
use gander_store::clock::SystemIds;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::Config;

/// How long the end of the server waits for the last spans.
const FINISH_TIMEOUT: Duration = Duration::from_secs(4);

/// Sends traces while the server runs.
pub(super) struct TraceTask {
    end: CancellationToken,
    tasks: TaskTracker,
}

impl TraceTask {
    fn start(exporter: Option<TraceExporter>, store: &Arc<dyn Store>) -> Self {
        let (end, tasks) = (CancellationToken::new(), TaskTracker::new());
        if let Some(exporter) = exporter {
            tasks.spawn(exporter.run(Arc::clone(store), end.clone()));
        }
        tasks.close();
        Self { end, tasks }
    }

    /// After the last run, so that this is sent too. A collector that is away is not waited for.
    pub(super) async fn finish(&self) {
        self.end.cancel();
        if tokio::time::timeout(FINISH_TIMEOUT, self.tasks.wait()).await.is_err() {
            tracing::warn!("the last spans could not be sent in time");
        }
    }
}

/// Traces, and what sends them, if they are on.
pub(super) fn start_telemetry(config: &Config, store: &Arc<dyn Store>) -> anyhow::Result<(Telemetry, TraceTask)> {
    let Some(client) = build_collector(config, config.sections.otel.endpoint.as_ref())? else {
        return Ok((Telemetry::default(), TraceTask::start(None, store)));
    };
    let (telemetry, exporter) = Telemetry::start(client);
    Ok((telemetry, TraceTask::start(Some(exporter), store)))
}

/// Each process has an instance id of its own, as the conventions want it.
pub(super) fn build_collector(config: &Config, address: Option<&OtlpAddress>) -> anyhow::Result<Option<OtlpClient>> {
    let instance = SystemIds.next_id().to_string();
    let client = |address: &OtlpAddress| {
        OtlpClient::new(address.clone(), config.otlp_headers.clone(), &config.sections.otel.service, &instance)
    };
    Ok(address.map(client).transpose()?)
}
