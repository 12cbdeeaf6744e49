//! The answer to `/run_sse`: one run as a stream. Pieces that come close together are sent as one.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use gander_domain::Outcome;
use gander_http::sse::{self, EventSource, KeepAlive, drive_event_stream};
use gander_store::clock;
use gander_wire::adk::projection::{adk_failure_event, split_adk_artifact_event};
use gander_wire::adk::types::adk_epoch_seconds;
use gander_wire::adk::{AdkEvent, AdkRefusal, RunStage, join_adk_events};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::protocols::adk::AdkRunSubscription;

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
    last: Option<AdkEvent>,
    /// Pieces that wait for more, and until when.
    collected: Vec<AdkEvent>,
    join_until: Option<Instant>,
}

/// What a stream waits for.
pub(crate) enum RunInput {
    /// Events of the run; `None` once everything is told.
    Events(Result<Option<Vec<AdkEvent>>, AdkRefusal>),
    /// Nothing more is joined to what was collected.
    JoinElapsed,
}

impl AdkRunStream {
    pub(crate) fn new(
        subscription: AdkRunSubscription,
        one_event: bool,
        join: Duration,
        stop: CancellationToken,
    ) -> Self {
        Self {
            subscription,
            one_event,
            join,
            stop,
            over: false,
            closes: false,
            last: None,
            collected: Vec::new(),
            join_until: None,
        }
    }

    /// A turn that went well ends with an event that says so.
    pub(crate) fn with_closing_event(self, closes: bool) -> Self {
        Self { closes, ..self }
    }

    /// The events, until the run has ended or asks.
    pub(crate) fn into_events(self) -> impl Stream<Item = Result<Bytes, Infallible>> + Send {
        let stop = self.stop.clone();
        drive_event_stream(self, KeepAlive::comment_after_silence(), stop)
    }

    /// True if what was collected is sent now and waits for nothing that could be joined to it.
    fn is_due(&self) -> bool {
        let full = self.collected.len() >= MAX_EVENTS_PER_FRAME;
        self.subscription.is_complete() || full || !all_stream_events_partial(&self.collected)
    }

    fn write_events(&mut self, problem: Option<AdkRefusal>, bytes: &mut Vec<u8>) {
        self.join_until = None;
        let events = std::mem::take(&mut self.collected);
        for event in self.join_events(events) {
            let (said, saved) = if self.one_event { (event, None) } else { split_adk_artifact_event(event) };
            append_stream_event(bytes, &said);
            self.last = Some(AdkEvent { content: None, ..said });
            saved.iter().for_each(|saved| append_stream_event(bytes, saved));
        }
        if let RunStage::Ended(outcome) = self.subscription.stage() {
            adk_failure_event(outcome, clock::current_time()).iter().for_each(|last| append_stream_event(bytes, last));
            let well = self.closes && matches!(outcome, Outcome::Completed { .. });
            self.last
                .take()
                .filter(|_| well)
                .iter()
                .for_each(|last| append_stream_event(bytes, &stream_turn_complete_event(last)));
        }
        if let Some(problem) = problem {
            append_stream_event(bytes, &stream_error_event("Error", &problem.error));
        }
    }

    fn join_events(&self, events: Vec<AdkEvent>) -> Vec<AdkEvent> {
        if self.join.is_zero() {
            return events;
        }
        let mut joined: Vec<AdkEvent> = Vec::new();
        for event in events {
            let rest = match joined.last_mut() {
                Some(last) => join_adk_events(last, event),
                None => Some(event),
            };
            joined.extend(rest);
        }
        joined
    }
}

impl EventSource for AdkRunStream {
    type Input = RunInput;

    async fn next_input(&mut self) -> RunInput {
        let elapsed = async {
            match self.join_until {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            events = self.subscription.next_events() => RunInput::Events(events),
            () = elapsed => RunInput::JoinElapsed,
        }
    }

    async fn write_input(&mut self, input: RunInput, bytes: &mut Vec<u8>) {
        let (problem, is_due) = match input {
            RunInput::Events(Ok(Some(events))) => {
                self.collected.extend(events);
                (None, self.is_due())
            }
            RunInput::Events(Ok(None)) | RunInput::JoinElapsed => (None, true),
            RunInput::Events(Err(problem)) => (Some(problem), true),
        };
        if is_due {
            self.over = self.subscription.is_complete() || problem.is_some();
            self.write_events(problem, bytes);
        } else if !self.collected.is_empty() && self.join_until.is_none() {
            self.join_until = Some(Instant::now() + self.join);
        }
    }

    fn is_complete(&self) -> bool {
        self.over
    }
}

/// The end of a turn, with what it cost.
fn stream_turn_complete_event(last: &AdkEvent) -> AdkEvent {
    let id = uuid::Uuid::now_v7().to_string();
    let mut end = AdkEvent::new(&last.invocation_id, &last.author, id, clock::current_time());
    (end.turn_complete, end.usage_metadata) = (Some(true), last.usage_metadata.clone());
    end
}

/// The last words of a stream that went wrong.
pub(crate) fn stream_error_event(kind: &str, message: &str) -> Value {
    let at = adk_epoch_seconds(clock::current_time());
    json!({
        "error": format!("{kind}: {message}"),
        "error_details": { "error_type": kind, "error_message": message, "timestamp": at },
    })
}

/// An answer to what nobody asked.
pub(crate) fn stream_unknown_question_text(id: &str) -> String {
    format!("no function call of this session has this id: {id}")
}

/// One event that is told alone.
pub(crate) fn single_stream_frame(value: &Value) -> Bytes {
    let mut bytes = Vec::new();
    append_stream_event(&mut bytes, value);
    bytes.into()
}

fn append_stream_event(bytes: &mut Vec<u8>, event: &impl Serialize) {
    let json = serde_json::to_vec(event).expect("wire types are made of what JSON can say");
    sse::append_sse_event(bytes, None, &json);
}

fn all_stream_events_partial(events: &[AdkEvent]) -> bool {
    events.iter().all(|event| event.partial == Some(true))
}
