//! The answer to `/run_sse`: one run as a stream. Pieces that come close together are sent as one.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use gander_domain::Outcome;
use gander_store::clock;
use gander_wire::adk::output::{failure, split};
use gander_wire::adk::types::seconds;
use gander_wire::adk::{Event, Refusal, Stage, join};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::protocols::adk::Watched;
use crate::sse::{self, KEEP_ALIVE, SILENCE};

/// So many events at most go out in one piece.
const MOST: usize = 256;

/// A run that somebody listens to.
pub(crate) struct Listening {
    watched: Watched,
    one_event: bool,
    join: Duration,
    stop: CancellationToken,
    over: bool,
    closes: bool,
    /// The last whole event, without what it said.
    last: Option<Event>,
}

impl Listening {
    pub(crate) fn new(watched: Watched, one_event: bool, join: Duration, stop: CancellationToken) -> Self {
        Self { watched, one_event, join, stop, over: false, closes: false, last: None }
    }

    /// A turn that went well ends with an event that says so.
    pub(crate) fn closing(self, closes: bool) -> Self {
        Self { closes, ..self }
    }

    /// The events, until the run has ended or asks.
    pub(crate) fn events(self) -> impl Stream<Item = Result<Bytes, Infallible>> + Send {
        futures::stream::unfold(self, |mut listening| async move {
            let piece = listening.next().await?;
            Some((Ok(piece), listening))
        })
    }

    async fn next(&mut self) -> Option<Bytes> {
        if self.over {
            return None;
        }
        let silence = Instant::now() + SILENCE;
        let (mut events, mut until) = (Vec::new(), silence);
        let problem = loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return None,
                more = self.watched.next() => match more {
                    Ok(Some(more)) => events.extend(more),
                    Ok(None) => break None,
                    Err(problem) => break Some(problem),
                },
                () = tokio::time::sleep_until(until) => break None,
            }
            if self.watched.is_over() || events.len() >= MOST || !only_pieces(&events) {
                break None;
            }
            if !events.is_empty() && until == silence {
                until = Instant::now() + self.join;
            }
        };
        self.over = self.watched.is_over() || problem.is_some();
        Some(self.written(events, problem)).filter(|bytes| !bytes.is_empty() || !self.over)
    }

    fn written(&mut self, events: Vec<Event>, problem: Option<Refusal>) -> Bytes {
        let mut bytes = Vec::new();
        for event in self.joined(events) {
            let (said, saved) = if self.one_event { (event, None) } else { split(event) };
            add(&mut bytes, &said);
            self.last = Some(Event { content: None, ..said });
            saved.iter().for_each(|saved| add(&mut bytes, saved));
        }
        if let Stage::Ended(outcome) = self.watched.stage() {
            failure(outcome, clock::now()).iter().for_each(|last| add(&mut bytes, last));
            let well = self.closes && matches!(outcome, Outcome::Completed { .. });
            self.last.take().filter(|_| well).iter().for_each(|last| add(&mut bytes, &closed(last)));
        }
        if let Some(problem) = problem {
            add(&mut bytes, &error("Error", &problem.error));
        }
        if bytes.is_empty() && !self.over { KEEP_ALIVE } else { bytes.into() }
    }

    fn joined(&self, events: Vec<Event>) -> Vec<Event> {
        if self.join.is_zero() {
            return events;
        }
        let mut joined: Vec<Event> = Vec::new();
        for event in events {
            let rest = match joined.last_mut() {
                Some(last) => join(last, event),
                None => Some(event),
            };
            joined.extend(rest);
        }
        joined
    }
}

/// The end of a turn, with what it cost.
fn closed(last: &Event) -> Event {
    let id = uuid::Uuid::now_v7().to_string();
    let mut end = Event::new(&last.invocation_id, &last.author, id, clock::now());
    (end.turn_complete, end.usage_metadata) = (Some(true), last.usage_metadata.clone());
    end
}

/// The last words of a stream that went wrong.
pub(crate) fn error(kind: &str, message: &str) -> Value {
    let at = seconds(clock::now());
    json!({
        "error": format!("{kind}: {message}"),
        "error_details": { "error_type": kind, "error_message": message, "timestamp": at },
    })
}

/// An answer to what nobody asked.
pub(crate) fn unknown(id: &str) -> String {
    format!("no function call of this session has this id: {id}")
}

/// One event that is told alone.
pub(crate) fn frame(value: &Value) -> Bytes {
    let mut bytes = Vec::new();
    add(&mut bytes, value);
    bytes.into()
}

fn add(bytes: &mut Vec<u8>, event: &impl Serialize) {
    let json = serde_json::to_vec(event).expect("wire types are made of what JSON can say");
    sse::event(bytes, None, &json);
}

fn only_pieces(events: &[Event]) -> bool {
    events.iter().all(|event| event.partial == Some(true))
}
