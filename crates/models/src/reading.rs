//! Reading one answer from the network, in batches of whatever has arrived.

use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use reqwest::Response;
use tokio::task::yield_now;
use tokio::time::{Instant, timeout};

use super::http::{Limits, causes};
use super::wire::Decoder;
use super::{ModelError, ModelEvent};

/// No batch is larger, however fast the network.
const LARGEST_BATCH: usize = 256;

/// How many turns the connection's task gets to bring more before a batch goes out.
const TURNS: u32 = 4;

/// An answer that is being read. Dropping it closes the connection.
pub struct Reading {
    response: Option<Response>,
    decoder: Decoder,
    limits: Limits,
    provider: String,
    bytes: usize,
    last_event: Instant,
    /// An error that came right behind events.
    error: Option<ModelError>,
}

impl Reading {
    /// Begins to read.
    pub fn new(response: Response, decoder: Decoder, limits: Limits, provider: String) -> Self {
        let (response, last_event) = (Some(response), Instant::now());
        Self { response, decoder, limits, provider, bytes: 0, last_event, error: None }
    }

    /// Everything that has arrived, at least one event; `None` after the end.
    pub async fn batch(&mut self) -> Option<Result<Vec<ModelEvent>, ModelError>> {
        let mut events = Vec::new();
        while events.is_empty() && self.error.is_none() {
            let response = self.response.as_mut()?;
            match timeout(self.limits.idle, response.chunk()).await {
                Ok(came) => self.take(came, &mut events),
                Err(_) => self.error = Some(quiet(&self.provider, self.limits.idle)),
            }
        }
        self.take_what_waits(&mut events).await;
        if events.is_empty() {
            self.response = None;
            return self.error.take().map(Err);
        }
        self.last_event = Instant::now();
        Some(Ok(events))
    }

    /// The connection's own task hands over one piece at a time and needs turns in between to bring more.
    async fn take_what_waits(&mut self, events: &mut Vec<ModelEvent>) {
        let mut turns = 0;
        while self.error.is_none() && events.len() < LARGEST_BATCH && turns < TURNS {
            let Some(response) = self.response.as_mut() else { break };
            if let Some(came) = response.chunk().now_or_never() {
                turns = 0;
                self.take(came, events);
            } else {
                turns += 1;
                yield_now().await;
            }
        }
    }

    fn take(&mut self, came: Result<Option<Bytes>, reqwest::Error>, events: &mut Vec<ModelEvent>) {
        let taken = match came {
            Ok(Some(bytes)) => self.decode(&bytes, events),
            Ok(None) => {
                self.response = None;
                self.decoder.finish(events)
            }
            Err(error) => {
                Err(ModelError::Network(format!("the answer of {} broke off: {}", self.provider, causes(&error))))
            }
        };
        if let Err(error) = taken {
            self.error = Some(error);
        }
        if self.decoder.is_done()
            && let Some(response) = self.response.take()
        {
            tokio::spawn(drain(response));
        }
    }

    fn decode(&mut self, bytes: &[u8], events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        self.bytes += bytes.len();
        if self.bytes > self.limits.bytes {
            let (provider, most) = (&self.provider, self.limits.bytes);
            return Err(ModelError::BadStream(format!("the answer of {provider} does not end, bytes allowed: {most}")));
        }
        self.decoder.feed(bytes, events)?;
        if events.is_empty() && self.last_event.elapsed() > self.limits.silence {
            return Err(quiet(&self.provider, self.limits.silence));
        }
        Ok(())
    }
}

fn quiet(provider: &str, span: Duration) -> ModelError {
    let secs = span.as_secs_f64();
    ModelError::Idle(format!("{provider} began to answer and then fell silent, seconds: {secs}"))
}

/// Reads the end of a body after its last event, so that the connection can serve the next request.
async fn drain(mut response: Response) {
    let end = async { while let Ok(Some(_)) = response.chunk().await {} };
    if timeout(Duration::from_secs(1), end).await.is_err() {
        tracing::debug!("a provider kept its connection open after the end");
    }
}
