//! Playing a script: steps in, paced batches of events out.

use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures::stream;
use gander_domain::{Delta, DeltaKind, Part};
use tokio::task::yield_now;
use tokio::time::sleep;

use super::script::{ScriptedCall, ScriptedUsage, Step};
use crate::{Finish, ModelError, ModelEvent, ModelStop, ModelStream, Tokens};

const PICTURE: &[u8] = include_bytes!("gander.png");

/// No batch is larger, so that a script without delays still comes in pieces.
const MAX_BATCH_EVENTS: usize = 64;

/// Events that come together after a wait.
#[derive(Debug, PartialEq)]
pub struct TimedEvents {
    /// How long nothing happens before.
    pub wait: Duration,
    /// What happens.
    pub events: Result<Vec<ModelEvent>, ModelError>,
}

/// Everything one call will say, with its pace. `results` is said where the script tells of its tools' results.
pub fn schedule_played_events(call: &ScriptedCall, input: u64, results: &str) -> Vec<TimedEvents> {
    let mut timeline = EventTimeline::default();
    for step in call {
        timeline.push_step(step, results);
    }
    timeline.push_usage_and_end(input);
    timeline.batches
}

/// Streams scheduled events in real time. What fails before its first event fails at once.
pub fn play_events(batches: Vec<TimedEvents>) -> Result<ModelStream, ModelError> {
    if let Some(TimedEvents { events: Err(error), .. }) = batches.first() {
        return Err(error.clone());
    }
    Ok(ModelStream::new(stream::unfold(batches.into_iter(), |mut batches| async move {
        let TimedEvents { wait, events } = batches.next()?;
        if wait.is_zero() {
            yield_now().await
        } else {
            sleep(wait).await
        }
        Some((events, batches))
    })))
}

#[derive(Default)]
struct EventTimeline {
    batches: Vec<TimedEvents>,
    calls: u32,
    said: usize,
    thought: usize,
    spent: Option<ScriptedUsage>,
    stop: Option<ModelStop>,
    failed: bool,
}

impl EventTimeline {
    fn push_step(&mut self, step: &Step, results: &str) {
        if let Some(text) = &step.thought {
            self.thought += text.len() * step.repeat.unwrap_or(1);
            self.push_text(step, DeltaKind::Thought, text);
        }
        if let Some(text) = &step.text {
            self.push_text(step, DeltaKind::Text, text);
        }
        if step.results {
            self.push_text(&Step { chunks: Some(4), ..step.clone() }, DeltaKind::Text, results);
        }
        if let Some(name) = &step.tool {
            self.push_call(step, name);
        }
        if step.image {
            let data = BASE64_STANDARD.encode(PICTURE);
            self.push_event(step, ModelEvent::Part(Part::Image { mime: "image/png".into(), data, uri: None }));
        }
        self.spent = step.usage.or(self.spent);
        self.stop = step.stop.map(ModelStop::from).or(self.stop);
        if let Some(failure) = step.error.filter(|_| !self.failed) {
            self.failed = true;
            self.batches.push(TimedEvents { wait: Duration::from_millis(step.delay_ms), events: Err(failure.into()) });
        }
    }

    fn push_text(&mut self, step: &Step, growth: DeltaKind, text: &str) {
        for _ in 0..step.repeat.unwrap_or(1) {
            for piece in split_played_text(text, step.chunks.unwrap_or(1)) {
                self.said += piece.len();
                self.push_event(step, ModelEvent::Delta(Delta { growth, text: piece.to_owned() }));
            }
        }
    }

    fn push_call(&mut self, step: &Step, name: &str) {
        let index = self.calls;
        self.calls += 1;
        self.push_event(step, ModelEvent::ToolStarted { index, name: name.to_owned() });
        let arguments = step.args.as_ref().map_or("{}".into(), ToString::to_string);
        for piece in split_played_text(&arguments, step.chunks.unwrap_or(1)) {
            self.said += piece.len();
            self.push_event(step, ModelEvent::ToolArguments { index, text: piece.to_owned() });
        }
    }

    fn push_usage_and_end(&mut self, input: u64) {
        let tokens = |bytes: usize| bytes as u64 / 4 + 1;
        let usage = match self.spent {
            Some(ScriptedUsage { input, output, cached, thinking }) => {
                Tokens { input, output, cached, cache_write: 0, thinking }
            }
            None => Tokens {
                input,
                output: tokens(self.said),
                thinking: tokens(self.thought) * u64::from(self.thought > 0),
                ..Tokens::default()
            },
        };
        let natural = if self.calls > 0 { ModelStop::ToolUse } else { ModelStop::EndTurn };
        let stop = self.stop.unwrap_or(natural);
        self.push_event(&Step::default(), ModelEvent::Done(Finish { stop, usage, native: None }));
    }

    /// What needs no wait joins the batch before it; nothing follows a failure.
    fn push_event(&mut self, step: &Step, event: ModelEvent) {
        if self.failed {
            return;
        }
        let wait = Duration::from_millis(step.delay_ms);
        match self.batches.last_mut() {
            Some(TimedEvents { events: Ok(events), .. }) if wait.is_zero() && events.len() < MAX_BATCH_EVENTS => {
                events.push(event);
            }
            Some(_) | None => self.batches.push(TimedEvents { wait, events: Ok(vec![event]) }),
        }
    }
}

/// The text in so many pieces of about equal length, none empty, cut between characters.
fn split_played_text(text: &str, count: usize) -> impl Iterator<Item = &str> {
    let size = text.len().div_ceil(count.max(1)).max(1);
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = (size.min(rest.len())..=rest.len()).find(|at| rest.is_char_boundary(*at))?;
        let (piece, after) = rest.split_at(end);
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}
