//! How a turn makes room when the model's window fills up.

use gander_domain::{
    Delta, DeltaKind, Event, IdGenerator, Message, MessageId, Outcome, Part, ProviderPayload, Report, ResetReason,
    Role, Seq, Severity, StopReason, Timestamp,
};
use gander_models::{Finish, ModelError, ModelEvent};

use super::{Effect, Phase, RetryStep, Turn};
use crate::compact::{self, HistorySplit};

/// What a person types to have room made.
const COMPACT_COMMAND: &str = "/compact";

/// A summary under way.
pub(super) struct Summary {
    split: HistorySplit,
    /// Messages there were when it began: a person may have spoken since.
    seen: usize,
    /// Tokens of old messages that are shown to the model at most.
    budget: u64,
    text: String,
    why: CompactionReason,
}

/// CompactionReason room is made.
enum CompactionReason {
    /// The window fills up: if it fails, the next call may still succeed.
    Full,
    /// A person asked for it, and for nothing else.
    Asked,
    /// The provider refused the conversation as too long, in these words.
    Refused(String),
}

impl Turn {
    /// True if the run is nothing but the command to make room.
    pub(super) fn is_compaction_requested(&self) -> bool {
        let run = &self.context.messages[self.context.run_start_index()..];
        matches!(run, [only] if only.role == Role::User && only.plain_text().trim() == COMPACT_COMMAND)
    }

    /// Summarises everything that was said before.
    pub(super) fn compact_on_request(&mut self) {
        let older = self.context.messages[..self.context.run_start_index()].to_vec();
        if older.is_empty() {
            self.push_notice(Severity::Info, "there is nothing to summarise yet", None);
            return self.end_run(Outcome::Completed { stop: StopReason::EndTurn });
        }
        self.start_summary(HistorySplit { older, kept: Vec::new() }, CompactionReason::Asked);
    }

    pub(super) fn is_context_full(&self) -> bool {
        let room = self.setup.settings.context_budget(self.setup.model.window);
        !self.squeezed
            && compact::used_tokens_before_compaction(&self.context, &self.setup.system, &self.setup.tools) > room
    }

    /// Summarises what is old; if nothing is, the call is tried as it is.
    pub(super) fn compact_context(&mut self) {
        let budget = self.setup.settings.context_budget(self.setup.model.window) / 2;
        self.squeezed = true;
        match compact::split_history_to_compact(&self.context.messages, self.context.run_start_index(), budget) {
            Some(split) => self.start_summary(split, CompactionReason::Full),
            None => self.call_model(),
        }
    }

    /// The provider counts otherwise than we do, or has a smaller window than we think.
    pub(super) fn compact_or_fail(&mut self, error: &ModelError) {
        let room = self.setup.settings.context_budget(self.setup.model.window);
        let budget = room.min(compact::estimate_tokens(&self.context.messages)) / 2;
        self.squeezed = true;
        match compact::split_history_to_compact(&self.context.messages, self.context.run_start_index(), budget) {
            Some(split) => self.start_summary(split, CompactionReason::Refused(error.to_string())),
            None => self.end_run(Outcome::failed("model", error.to_string())),
        }
    }

    fn start_summary(&mut self, split: HistorySplit, why: CompactionReason) {
        let title = match why {
            CompactionReason::Asked => "older messages are being summarised",
            CompactionReason::Full | CompactionReason::Refused(_) => {
                "the model's window is full: older messages are being summarised"
            }
        };
        self.push_notice(Severity::Info, title, None);
        self.failures = 0;
        let budget = self.setup.settings.context_budget(self.setup.model.window) / 2;
        let seen = self.context.messages.len();
        self.request_summary(Summary { split, seen, budget, text: String::new(), why });
    }

    pub(super) fn request_summary(&mut self, mut summary: Summary) {
        summary.text.clear();
        let request =
            compact::compaction_summary_request(&summary.split.older, summary.budget, self.setup.settings.max_output);
        self.phase = Phase::Summarising(summary);
        self.effects.push_back(Effect::CallModel(request));
    }

    pub(super) fn handle_summary_events(&mut self, events: Vec<ModelEvent>, ids: &mut dyn IdGenerator) {
        let Phase::Summarising(summary) = &mut self.phase else { return };
        for event in events {
            match event {
                ModelEvent::Delta(Delta { growth: DeltaKind::Text, text }) => summary.text.push_str(&text),
                ModelEvent::Done(finish) => return self.finish_compaction(&finish, ids),
                ModelEvent::Delta(Delta { growth: DeltaKind::Thought, .. })
                | ModelEvent::ToolStarted { .. }
                | ModelEvent::ToolArguments { .. }
                | ModelEvent::Part(_) => {} // nobody asked for it
            }
        }
    }

    fn finish_compaction(&mut self, finish: &Finish, ids: &mut dyn IdGenerator) {
        let Phase::Summarising(summary) = std::mem::replace(&mut self.phase, Phase::Tools) else { return };
        self.add_model_usage(&finish.usage);
        if summary.text.trim().is_empty() {
            return self.continue_without_summary(summary.why, "the model gave an empty summary");
        }
        let spoken = self.context.messages[summary.seen..].iter();
        let kept = summary.split.kept.iter().chain(spoken).map(|message| Message::clone(message));
        let first = compact::compaction_summary_message(MessageId::make(ids), &summary.text);
        let replacement: Vec<Message> = std::iter::once(first).chain(kept).collect();
        self.push_report(Report::Compacted { keep_to: Seq::ZERO, replacement: replacement.clone() });
        let reason = ResetReason::Compacted;
        self.apply_event(Event::HistoryReset { keep_to: Seq::ZERO, replacement, reason });
        self.failures = 0;
        match summary.why {
            CompactionReason::Asked => {
                self.say_to_people("The conversation so far is summarised.", ids);
                self.end_run(Outcome::Completed { stop: StopReason::EndTurn });
            }
            CompactionReason::Full | CompactionReason::Refused(_) => self.call_model(),
        }
    }

    /// Says something that is for people alone: no model hears it.
    fn say_to_people(&mut self, text: &str, ids: &mut dyn IdGenerator) {
        self.push_report(Report::MessageStarted { message: MessageId::make(ids) });
        let native = Some(ProviderPayload::made_by_session());
        self.push_report(Report::MessageDone { tail: vec![Part::text(text)], native, interrupted: false });
    }

    pub(super) fn handle_summary_failure(&mut self, now: Timestamp, mut summary: Summary, error: &ModelError) {
        if matches!(error, ModelError::ContextTooLong(_)) && self.failures < self.setup.settings.retries {
            self.failures += 1;
            summary.budget /= 2;
            return self.request_summary(summary);
        }
        match self.next_retry_delay(now, error) {
            Some(pause) => self.wait_and_retry(pause, RetryStep::Summary(summary), error),
            None => self.continue_without_summary(summary.why, &error.to_string()),
        }
    }

    fn continue_without_summary(&mut self, why: CompactionReason, problem: &str) {
        self.failures = 0;
        match why {
            CompactionReason::Full => {
                let title = "older messages could not be summarised";
                self.push_notice(Severity::Warning, title, Some(problem.to_owned()));
                self.call_model();
            }
            CompactionReason::Asked => {
                self.end_run(Outcome::failed("model", format!("older messages could not be summarised: {problem}")))
            }
            CompactionReason::Refused(message) => self.end_run(Outcome::failed("model", message)),
        }
    }
}
