//! [`ResponseStream`]: one answer from the network, in batches of whatever has arrived.

use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use reqwest::Response;
use tokio::task::yield_now;
use tokio::time::{Instant, timeout};

use super::failure::describe_network_failure;
use super::timeouts::Limits;
use super::wire::Decoder;
use super::{ModelError, ModelEvent};

/// No batch is larger, however fast the network.
const MAX_BATCH_EVENTS: usize = 256;

/// How many turns the connection's task gets to bring more before a batch goes out.
const MAX_YIELDS: u32 = 4;

/// An answer that is being read. Dropping it closes the connection.
pub struct ResponseStream {
    response: Option<Response>,
    decoder: Decoder,
    limits: Limits,
    provider: String,
    bytes: usize,
    last_event: Instant,
    /// An error that came right behind events.
    error: Option<ModelError>,
}

impl ResponseStream {
    /// Begins to read.
    pub fn new(response: Response, decoder: Decoder, limits: Limits, provider: String) -> Self {
        let (response, last_event) = (Some(response), Instant::now());
        Self { response, decoder, limits, provider, bytes: 0, last_event, error: None }
    }

    /// Everything that has arrived, at least one event; `None` after the end.
    pub async fn next_batch(&mut self) -> Option<Result<Vec<ModelEvent>, ModelError>> {
        let mut events = Vec::new();
        while events.is_empty() && self.error.is_none() {
            let response = self.response.as_mut()?;
            match timeout(self.limits.idle, response.chunk()).await {
                Ok(came) => self.handle_chunk(came, &mut events),
                Err(_) => self.error = Some(response_idle_error(&self.provider, self.limits.idle)),
            }
        }
        self.drain_ready_chunks(&mut events).await;
        if events.is_empty() {
            self.response = None;
            return self.error.take().map(Err);
        }
        self.last_event = Instant::now();
        Some(Ok(events))
    }

    /// The connection's own task hands over one piece at a time and needs turns in between to bring more.
    async fn drain_ready_chunks(&mut self, events: &mut Vec<ModelEvent>) {
        let mut turns = 0;
        while self.error.is_none() && events.len() < MAX_BATCH_EVENTS && turns < MAX_YIELDS {
            let Some(response) = self.response.as_mut() else { break };
            if let Some(came) = response.chunk().now_or_never() {
                turns = 0;
                self.handle_chunk(came, events);
            } else {
                turns += 1;
                yield_now().await;
            }
        }
    }

    fn handle_chunk(&mut self, came: Result<Option<Bytes>, reqwest::Error>, events: &mut Vec<ModelEvent>) {
        let taken = match came {
            Ok(Some(bytes)) => self.decode(&bytes, events),
            Ok(None) => {
                self.response = None;
                self.decoder.finish_stream(events)
            }
            Err(error) => Err(ModelError::Network(format!(
                "the answer of {} broke off: {}",
                self.provider,
                describe_network_failure(&error)
            ))),
        };
        if let Err(error) = taken {
            self.error = Some(error);
        }
        if self.decoder.is_done()
            && let Some(response) = self.response.take()
        {
            tokio::spawn(drain_model_response_body(response));
        }
    }

    fn decode(&mut self, bytes: &[u8], events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        self.bytes += bytes.len();
        if self.bytes > self.limits.bytes {
            let (provider, most) = (&self.provider, self.limits.bytes);
            return Err(ModelError::BadStream(format!("the answer of {provider} does not end, bytes allowed: {most}")));
        }
        self.decoder.feed_bytes(bytes, events)?;
        if events.is_empty() && self.last_event.elapsed() > self.limits.silence {
            return Err(response_idle_error(&self.provider, self.limits.silence));
        }
        Ok(())
    }
}

fn response_idle_error(provider: &str, span: Duration) -> ModelError {
    let secs = span.as_secs_f64();
    ModelError::Idle(format!("{provider} began to answer and then fell silent, seconds: {secs}"))
}

/// Reads the end of a body after its last event, so that the connection can serve the next request.
async fn drain_model_response_body(mut response: Response) {
    let end = async { while let Ok(Some(_)) = response.chunk().await {} };
    if timeout(Duration::from_secs(1), end).await.is_err() {
        tracing::debug!("a provider kept its connection open after the end");
    }
}
