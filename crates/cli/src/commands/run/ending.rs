//! How a turn ended: its exit status, what it used and what that cost.

use std::time::Instant;

use gander_client::schema::{Cost, SessionUpdate};
use serde_json::Value;

use super::events;
use super::turn::RunTurn;
use crate::commands::Exit;
use crate::output::Tone;
use crate::terminal::spinner::spinner_elapsed;

/// What is told at the end.
#[derive(Debug)]
pub(crate) struct Ending {
    began: Instant,
    /// What the session cost so far, as told last.
    cost: Option<Cost>,
}

impl Ending {
    pub(crate) fn new() -> Self {
        Self { began: Instant::now(), cost: None }
    }

    /// Remembers what the session costs.
    pub(crate) fn note(&mut self, update: &SessionUpdate) {
        if let SessionUpdate::UsageUpdate(usage) = update {
            self.cost = usage.cost.clone().or(self.cost.take());
        }
    }

    /// Tokens, cost and time in one line.
    pub(crate) fn summary(&self, usage: &Value) -> String {
        let tokens = |name: &str| usage[name].as_u64().filter(|tokens| *tokens > 0);
        let used = tokens("inputTokens").zip(tokens("outputTokens"));
        let used =
            used.map(|(input, output)| format!("{} tokens in, {} out", grouped_number(input), grouped_number(output)));
        let cost = self.cost.as_ref().map(|cost| format!("session cost {}", ending_cost_text(cost)));
        let time = spinner_elapsed(self.began.elapsed());
        used.into_iter().chain(cost).chain([time]).collect::<Vec<_>>().join(" · ")
    }
}

impl RunTurn<'_> {
    /// The run ended in good order.
    pub(super) fn finish(&mut self, result: &Value) -> anyhow::Result<Exit> {
        let stop = &result["stopReason"];
        let exit = exit_of_ending(stop.as_str().unwrap_or_default());
        if self.screen.is_json() {
            let usage = result.get("usage").filter(|usage| !usage.is_null());
            self.screen.event(&events::end_event_json(stop, usage))?;
            return Ok(exit);
        }
        self.screen.close()?;
        match exit {
            Exit::Stopped => self.screen.line(Tone::Warn, ending_stop_text(stop.as_str().unwrap_or_default()))?,
            Exit::Cancelled => self.screen.line(Tone::Warn, "cancelled")?,
            Exit::Done | Exit::Failed | Exit::Usage => {}
        }
        if self.screen.output().error_style().is_terminal() {
            let summary = format!("{} · session {}", self.ending.summary(&result["usage"]), self.session);
            self.screen.line(Tone::Dim, &summary)?;
        }
        Ok(exit)
    }

    /// Nothing runs in the session.
    pub(super) fn finish_idle(&mut self, last: &Value) -> anyhow::Result<Exit> {
        if self.screen.is_json() {
            self.screen.event(&events::end_event_json(&Value::Null, None))?;
            return Ok(Exit::Done);
        }
        self.screen.close()?;
        if last["type"] == "failed" {
            let message = last["message"].as_str().unwrap_or_default();
            self.screen.line(Tone::Bad, &format!("the last turn failed: {message}"))?;
            return Ok(Exit::Failed);
        }
        let hint = format!("No turn is running. To continue: gander run --session {} \"…\"", self.session);
        self.screen.line(Tone::Dim, &hint)?;
        Ok(Exit::Done)
    }
}

/// A price for people.
pub(crate) fn ending_cost_text(cost: &Cost) -> String {
    match cost.currency.as_str() {
        "USD" if cost.amount < 1.0 => format!("${:.4}", cost.amount),
        "USD" => format!("${:.2}", cost.amount),
        other => format!("{:.4} {other}", cost.amount),
    }
}

/// A number with its thousands apart.
pub(crate) fn grouped_number(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(|group| String::from_utf8_lossy(group).into_owned());
    groups.collect::<Vec<_>>().join(",")
}

/// The exit status that a stop reason means.
pub(crate) fn exit_of_ending(stop: &str) -> Exit {
    match stop {
        "end_turn" => Exit::Done,
        "cancelled" => Exit::Cancelled,
        _ => Exit::Stopped,
    }
}

/// Why a turn stopped before it was done.
pub(crate) fn ending_stop_text(stop: &str) -> &'static str {
    match stop {
        "max_tokens" => "stopped early: the model reached its output limit",
        "max_turn_requests" => "stopped early: the turn reached its limit of model calls (max_turns)",
        "refusal" => "stopped early: the model refused",
        _ => "stopped early",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_easy_to_read() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped_number), ["0", "999", "1,000", "1,234,567"]);
        let cost = |amount| ending_cost_text(&Cost::new(amount, "USD"));
        assert_eq!([cost(0.01234), cost(12.345)], ["$0.0123", "$12.35"]);
    }

    #[test]
    fn stops_have_their_exit_status() {
        assert_eq!(
            [exit_of_ending("end_turn"), exit_of_ending("cancelled"), exit_of_ending("refusal")],
            [Exit::Done, Exit::Cancelled, Exit::Stopped]
        );
    }
}
