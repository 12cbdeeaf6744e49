//! The answer to `/run_sse`: one run as a stream. Pieces that come close together are sent as one.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use gander_domain::Outcome;
use gander_store::clock;
use gander_wire::adk::output::{failure_event, split_artifact_event};
use gander_wire::adk::types::epoch_seconds;
use gander_wire::adk::{AdkRefusal, Event, RunStage, join_events};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::protocols::adk::AdkRunSubscription;
use crate::sse::{self, KEEP_ALIVE, KEEP_ALIVE_INTERVAL};

/// So many events at most go out in one piece.
const MAX_EVENTS_PER_FRAME: usize = 256;

/// A run that somebody listens to.
pub(crate) struct AdkRunStream {
    subscription: AdkRunSubscription,
    one_event: bool,
    join: Duration,
    stop: CancellationToken,
    over: bool,
    closes: bool,
    /// The last whole event, without what it said.
    last: Option<Event>,
}

impl AdkRunStream {
    pub(crate) fn new(
        subscription: AdkRunSubscription,
        one_event: bool,
        join: Duration,
        stop: CancellationToken,
    ) -> Self {
        Self { subscription, one_event, join, stop, over: false, closes: false, last: None }
    }

    /// A turn that went well ends with an event that says so.
    pub(crate) fn with_closing_event(self, closes: bool) -> Self {
        Self { closes, ..self }
    }

    /// The events, until the run has ended or asks.
    pub(crate) fn into_events(self) -> impl Stream<Item = Result<Bytes, Infallible>> + Send {
        futures::stream::unfold(self, |mut listening| async move {
            let piece = listening.next_bytes().await?;
            Some((Ok(piece), listening))
        })
    }

    async fn next_bytes(&mut self) -> Option<Bytes> {
        if self.over {
            return None;
        }
        let silence = Instant::now() + KEEP_ALIVE_INTERVAL;
        let (mut events, mut until) = (Vec::new(), silence);
        let problem = loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return None,
                more = self.subscription.next_events() => match more {
                    Ok(Some(more)) => events.extend(more),
                    Ok(None) => break None,
                    Err(problem) => break Some(problem),
                },
                () = tokio::time::sleep_until(until) => break None,
            }
            if self.subscription.is_complete() || events.len() >= MAX_EVENTS_PER_FRAME || !all_partial(&events) {
                break None;
            }
            if !events.is_empty() && until == silence {
                until = Instant::now() + self.join;
            }
        };
        self.over = self.subscription.is_complete() || problem.is_some();
        Some(self.write_events(events, problem)).filter(|bytes| !bytes.is_empty() || !self.over)
    }

    fn write_events(&mut self, events: Vec<Event>, problem: Option<AdkRefusal>) -> Bytes {
        let mut bytes = Vec::new();
        for event in self.join_events(events) {
            let (said, saved) = if self.one_event { (event, None) } else { split_artifact_event(event) };
            append_event(&mut bytes, &said);
            self.last = Some(Event { content: None, ..said });
            saved.iter().for_each(|saved| append_event(&mut bytes, saved));
        }
        if let RunStage::Ended(outcome) = self.subscription.stage() {
            failure_event(outcome, clock::now()).iter().for_each(|last| append_event(&mut bytes, last));
            let well = self.closes && matches!(outcome, Outcome::Completed { .. });
            self.last
                .take()
                .filter(|_| well)
                .iter()
                .for_each(|last| append_event(&mut bytes, &turn_complete_event(last)));
        }
        if let Some(problem) = problem {
            append_event(&mut bytes, &error_event("Error", &problem.error));
        }
        if bytes.is_empty() && !self.over { KEEP_ALIVE } else { bytes.into() }
    }

    fn join_events(&self, events: Vec<Event>) -> Vec<Event> {
        if self.join.is_zero() {
            return events;
        }
        let mut joined: Vec<Event> = Vec::new();
        for event in events {
            let rest = match joined.last_mut() {
                Some(last) => join_events(last, event),
                None => Some(event),
            };
            joined.extend(rest);
        }
        joined
    }
}

/// The end of a turn, with what it cost.
fn turn_complete_event(last: &Event) -> Event {
    let id = uuid::Uuid::now_v7().to_string();
    let mut end = Event::new(&last.invocation_id, &last.author, id, clock::now());
    (end.turn_complete, end.usage_metadata) = (Some(true), last.usage_metadata.clone());
    end
}

/// The last words of a stream that went wrong.
pub(crate) fn error_event(kind: &str, message: &str) -> Value {
    let at = epoch_seconds(clock::now());
    json!({
        "error": format!("{kind}: {message}"),
        "error_details": { "error_type": kind, "error_message": message, "timestamp": at },
    })
}

/// An answer to what nobody asked.
pub(crate) fn unknown_question_text(id: &str) -> String {
    format!("no function call of this session has this id: {id}")
}

/// One event that is told alone.
pub(crate) fn single_frame(value: &Value) -> Bytes {
    let mut bytes = Vec::new();
    append_event(&mut bytes, value);
    bytes.into()
}

fn append_event(bytes: &mut Vec<u8>, event: &impl Serialize) {
    let json = serde_json::to_vec(event).expect("wire types are made of what JSON can say");
    sse::append_event(bytes, None, &json);
}

fn all_partial(events: &[Event]) -> bool {
    events.iter().all(|event| event.partial == Some(true))
}
