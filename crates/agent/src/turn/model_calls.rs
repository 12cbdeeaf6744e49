//! What a turn does with what the model says, or fails to say.

use std::time::Duration;

use gander_domain::{Event, IdGenerator, MessageId, Outcome, Report, Severity, StopReason, Timestamp};
use gander_models::{Finish, ModelError, ModelEvent, ModelStop, Tokens};

use super::draft::{Draft, drafted_message};
use super::{Effect, Phase, RetryStep, Turn};

impl Turn {
    pub(super) fn handle_model_events(&mut self, events: Vec<ModelEvent>, ids: &mut dyn IdGenerator) {
        match &mut self.phase {
            Phase::Calling(_) => self.handle_answer_events(events, ids),
            Phase::Summarising(_) => self.handle_summary_events(events, ids),
            Phase::New | Phase::Waiting(_) | Phase::Tools | Phase::Over => {} // a call that was dropped
        }
    }

    /// One batch of the network is one report.
    fn handle_answer_events(&mut self, events: Vec<ModelEvent>, ids: &mut dyn IdGenerator) {
        let Phase::Calling(draft) = &mut self.phase else { return };
        let mut deltas = Vec::with_capacity(events.len());
        let mut end = None;
        for event in events {
            match event {
                ModelEvent::Done(finish) => {
                    end = Some(finish);
                    break;
                }
                ModelEvent::Delta(_)
                | ModelEvent::ToolStarted { .. }
                | ModelEvent::ToolArguments { .. }
                | ModelEvent::Part(_) => deltas.extend(draft.apply_event(event)),
            }
        }
        if !deltas.is_empty() {
            self.open_message(ids);
            self.push_report(Report::Deltas(deltas));
        }
        if let Some(finish) = end {
            self.finish_answer(finish, ids);
        }
    }

    fn open_message(&mut self, ids: &mut dyn IdGenerator) {
        let Phase::Calling(draft) = &mut self.phase else { return };
        if draft.message.is_none() {
            let message = MessageId::make(ids);
            draft.message = Some(message);
            self.effects.push_back(Effect::Report(Report::MessageStarted { message }));
        }
    }

    /// The answer is whole: it is written down, then what it asks for is done.
    fn finish_answer(&mut self, finish: Finish, ids: &mut dyn IdGenerator) {
        let Phase::Calling(draft) = std::mem::replace(&mut self.phase, Phase::Tools) else { return };
        let Finish { stop, usage, native } = finish;
        let open = draft.message;
        let said = draft.finish_draft(stop, ids);
        let empty = said.parts.is_empty();
        if !empty {
            let id = open.unwrap_or_else(|| self.start_message(ids));
            // A form with calls in it that we dropped would not be taken back by the provider.
            let native = native.filter(|_| said.half.is_none() && stop != ModelStop::Refusal);
            let message = gander_domain::Message { native: native.clone(), ..drafted_message(id, said.parts) };
            self.push_report(Report::MessageDone { tail: said.tail, native, interrupted: false });
            self.apply_event(Event::MessageDone { message });
        }
        self.add_model_usage(&usage);
        (self.failures, self.squeezed) = (0, false);
        self.silent = empty && !self.silent;
        if let Some(tool) = said.half {
            self.push_notice(
                Severity::Warning,
                format!("the model's answer was cut off inside a call of {tool}"),
                None,
            );
        }
        self.continue_after_stop(stop, empty, ids);
    }

    fn start_message(&mut self, ids: &mut dyn IdGenerator) -> MessageId {
        let message = MessageId::make(ids);
        self.push_report(Report::MessageStarted { message });
        message
    }

    fn continue_after_stop(&mut self, stop: ModelStop, empty: bool, ids: &mut dyn IdGenerator) {
        if !self.context.pending.is_empty() {
            self.pick_up_calls(ids);
            return self.continue_after_tools(ids);
        }
        match stop {
            ModelStop::Refusal => self.end_run(Outcome::Completed { stop: StopReason::Refusal }),
            ModelStop::MaxTokens => self.end_run(Outcome::Completed { stop: StopReason::MaxTokens }),
            // Once, it is often a hiccup.
            ModelStop::EndTurn | ModelStop::ToolUse | ModelStop::StopSequence if self.silent => self.call_model(),
            ModelStop::EndTurn | ModelStop::ToolUse | ModelStop::StopSequence => {
                if empty {
                    self.push_notice(Severity::Warning, "the model gave an empty answer", None);
                }
                match self.setup.goal {
                    Some(_) => self.go_on_to_goal(ids),
                    None if stop == ModelStop::StopSequence => {
                        self.end_run(Outcome::Completed { stop: StopReason::StopSequence });
                    }
                    None => self.end_run(Outcome::Completed { stop: StopReason::EndTurn }),
                }
            }
        }
    }

    pub(super) fn add_model_usage(&mut self, tokens: &Tokens) {
        if *tokens == Tokens::default() {
            return; // the provider does not say
        }
        let usage = self.setup.model.priced_usage(tokens);
        self.add_usage(usage.clone());
        self.apply_event(Event::UsageAdded { usage });
    }

    pub(super) fn handle_model_failure(&mut self, now: Timestamp, error: &ModelError) {
        match std::mem::replace(&mut self.phase, Phase::Tools) {
            Phase::Calling(draft) => self.handle_answer_failure(now, draft, error),
            Phase::Summarising(summary) => self.handle_summary_failure(now, summary, error),
            other @ (Phase::New | Phase::Waiting(_) | Phase::Tools | Phase::Over) => self.phase = other,
        }
    }

    fn handle_answer_failure(&mut self, now: Timestamp, draft: Draft, error: &ModelError) {
        if let Some(half) = draft.into_message() {
            self.push_report(Report::MessageDone { tail: Vec::new(), native: None, interrupted: true });
            self.apply_event(Event::MessageDone { message: gander_domain::Message { interrupted: true, ..half } });
        }
        match error {
            ModelError::ContextTooLong(_) if !self.squeezed => self.compact_or_fail(error),
            ModelError::Refused(why) => {
                self.push_notice(Severity::Warning, "the request was refused", Some(why.clone()));
                self.end_run(Outcome::Completed { stop: StopReason::Refusal });
            }
            ModelError::RateLimited { .. }
            | ModelError::Overloaded { .. }
            | ModelError::Network(_)
            | ModelError::TimedOut(_)
            | ModelError::Idle(_)
            | ModelError::BadStream(_)
            | ModelError::BadArguments(_)
            | ModelError::Unauthorized(_)
            | ModelError::NoCredit(_)
            | ModelError::ContextTooLong(_)
            | ModelError::NotFound(_)
            | ModelError::BadRequest(_) => match self.next_retry_delay(now, error) {
                Some(pause) => self.wait_and_retry(pause, RetryStep::Call, error),
                None => self.end_run(Outcome::failed("model", error.to_string())),
            },
        }
    }

    /// How long to wait before the next try; `None` if there is none.
    pub(super) fn next_retry_delay(&mut self, now: Timestamp, error: &ModelError) -> Option<Duration> {
        let settings = &self.setup.settings;
        if !error.is_retryable() || self.failures >= settings.retries {
            return None;
        }
        let grown = settings.retry_after_ms.saturating_mul(1 << self.failures.min(16));
        // Many sessions fail together: the odd microseconds spread their next tries.
        let spread = grown / 4 * (now.as_micros().unsigned_abs() % 256) / 256;
        let own = Duration::from_millis(grown + spread).min(settings.max_total_wait());
        let pause = error.retry_after().unwrap_or(own);
        self.failures += 1;
        (pause <= settings.max_total_wait()).then_some(pause)
    }

    pub(super) fn wait_and_retry(&mut self, pause: Duration, again: RetryStep, error: &ModelError) {
        let (attempt, attempts) = (self.failures + 1, self.setup.settings.retries + 1);
        let detail = format!("retrying in {:.1} s (attempt {attempt} of {attempts})", pause.as_secs_f64());
        self.push_notice(Severity::Warning, error.to_string(), Some(detail));
        self.phase = Phase::Waiting(again);
        self.effects.push_back(Effect::Wait(pause));
    }

    pub(super) fn handle_waited(&mut self) {
        match std::mem::replace(&mut self.phase, Phase::Tools) {
            Phase::Waiting(RetryStep::Call) => self.call_model(),
            Phase::Waiting(RetryStep::Summary(summary)) => self.request_summary(summary),
            other @ (Phase::New | Phase::Calling(_) | Phase::Summarising(_) | Phase::Tools | Phase::Over) => {
                self.phase = other;
            }
        }
    }
}
