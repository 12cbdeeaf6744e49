//! How a turn makes room when the model's window fills up.

use gander_domain::{
    Delta, DeltaKind, Event, IdGenerator, Message, MessageId, Outcome, Report, ResetReason, Role, Seq, Severity,
    StopReason, Timestamp,
};
use gander_models::{Finish, ModelError, ModelEvent};

use super::{Again, Effect, Phase, Turn};
use crate::compact::{self, Split};

/// What a person types to have room made.
const COMMAND: &str = "/compact";

/// A summary under way.
pub(super) struct Summary {
    split: Split,
    /// Messages there were when it began: a person may have spoken since.
    seen: usize,
    /// Tokens of old messages that are shown to the model at most.
    budget: u64,
    text: String,
    why: Why,
}

/// Why room is made.
enum Why {
    /// The window fills up: if it fails, the next call may still succeed.
    Full,
    /// A person asked for it, and for nothing else.
    Asked,
    /// The provider refused the conversation as too long, in these words.
    Refused(String),
}

impl Turn {
    /// True if the run is nothing but the command to make room.
    pub(super) fn is_asked_for_room(&self) -> bool {
        let run = &self.context.messages[self.context.run_start_index()..];
        matches!(run, [only] if only.role == Role::User && only.plain_text().trim() == COMMAND)
    }

    /// Summarises everything that was said before.
    pub(super) fn make_room_as_asked(&mut self) {
        let older = self.context.messages[..self.context.run_start_index()].to_vec();
        if older.is_empty() {
            self.notice(Severity::Info, "there is nothing to summarise yet", None);
            return self.end(Outcome::Completed { stop: StopReason::EndTurn });
        }
        self.summarise(Split { older, kept: Vec::new() }, Why::Asked);
    }

    pub(super) fn is_full(&self) -> bool {
        let room = self.setup.settings.room(self.setup.model.window);
        !self.squeezed && compact::used(&self.context, &self.setup.system, &self.setup.tools) > room
    }

    /// Summarises what is old; if nothing is, the call is tried as it is.
    pub(super) fn make_room(&mut self) {
        let budget = self.setup.settings.room(self.setup.model.window) / 2;
        self.squeezed = true;
        match compact::split(&self.context.messages, self.context.run_start_index(), budget) {
            Some(split) => self.summarise(split, Why::Full),
            None => self.call(),
        }
    }

    /// The provider counts otherwise than we do, or has a smaller window than we think.
    pub(super) fn make_room_or_fail(&mut self, error: &ModelError) {
        let room = self.setup.settings.room(self.setup.model.window);
        let budget = room.min(compact::estimate(&self.context.messages)) / 2;
        self.squeezed = true;
        match compact::split(&self.context.messages, self.context.run_start_index(), budget) {
            Some(split) => self.summarise(split, Why::Refused(error.to_string())),
            None => self.end(Outcome::failed("model", error.to_string())),
        }
    }

    fn summarise(&mut self, split: Split, why: Why) {
        let title = match why {
            Why::Asked => "older messages are being summarised",
            Why::Full | Why::Refused(_) => "the model's window is full: older messages are being summarised",
        };
        self.notice(Severity::Info, title, None);
        self.failures = 0;
        let budget = self.setup.settings.room(self.setup.model.window) / 2;
        let seen = self.context.messages.len();
        self.ask_summary(Summary { split, seen, budget, text: String::new(), why });
    }

    pub(super) fn ask_summary(&mut self, mut summary: Summary) {
        summary.text.clear();
        let request = compact::request(&summary.split.older, summary.budget, self.setup.settings.max_output);
        self.phase = Phase::Summarising(summary);
        self.effects.push_back(Effect::CallModel(request));
    }

    pub(super) fn summary(&mut self, events: Vec<ModelEvent>, ids: &mut dyn IdGenerator) {
        let Phase::Summarising(summary) = &mut self.phase else { return };
        for event in events {
            match event {
                ModelEvent::Delta(Delta { growth: DeltaKind::Text, text }) => summary.text.push_str(&text),
                ModelEvent::Done(finish) => return self.summarised(&finish, ids),
                ModelEvent::Delta(Delta { growth: DeltaKind::Thought, .. })
                | ModelEvent::ToolStarted { .. }
                | ModelEvent::ToolArguments { .. }
                | ModelEvent::Part(_) => {} // nobody asked for it
            }
        }
    }

    fn summarised(&mut self, finish: &Finish, ids: &mut dyn IdGenerator) {
        let Phase::Summarising(summary) = std::mem::replace(&mut self.phase, Phase::Tools) else { return };
        self.spend(&finish.usage);
        if summary.text.trim().is_empty() {
            return self.without_summary(summary.why, "the model gave an empty summary");
        }
        let spoken = self.context.messages[summary.seen..].iter();
        let kept = summary.split.kept.iter().chain(spoken).map(|message| Message::clone(message));
        let first = compact::summary_message(MessageId::make(ids), &summary.text);
        let replacement: Vec<Message> = std::iter::once(first).chain(kept).collect();
        self.report(Report::Compacted { keep_to: Seq::ZERO, replacement: replacement.clone() });
        let reason = ResetReason::Compacted;
        self.fold(Event::HistoryReset { keep_to: Seq::ZERO, replacement, reason });
        self.failures = 0;
        match summary.why {
            Why::Asked => self.end(Outcome::Completed { stop: StopReason::EndTurn }),
            Why::Full | Why::Refused(_) => self.call(),
        }
    }

    pub(super) fn summary_failed(&mut self, now: Timestamp, mut summary: Summary, error: &ModelError) {
        if matches!(error, ModelError::ContextTooLong(_)) && self.failures < self.setup.settings.retries {
            self.failures += 1;
            summary.budget /= 2;
            return self.ask_summary(summary);
        }
        match self.pause(now, error) {
            Some(pause) => self.wait(pause, Again::Summary(summary), error),
            None => self.without_summary(summary.why, &error.to_string()),
        }
    }

    fn without_summary(&mut self, why: Why, problem: &str) {
        self.failures = 0;
        match why {
            Why::Full => {
                let title = "older messages could not be summarised";
                self.notice(Severity::Warning, title, Some(problem.to_owned()));
                self.call();
            }
            Why::Asked => {
                self.end(Outcome::failed("model", format!("older messages could not be summarised: {problem}")))
            }
            Why::Refused(message) => self.end(Outcome::failed("model", message)),
        }
    }
}
