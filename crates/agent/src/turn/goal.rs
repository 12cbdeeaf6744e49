//! What must hold before a run may end: a result of a given form, checks that pass.
//!
//! The turn makes these calls itself, as if the model had: they are asked about, written down and shown like any
//! other, and the model reads what came of them.

use std::sync::Arc;

use gander_domain::{Message, Part, Role, ToolCallId, ToolEnd};
use serde_json::{Value, json};

/// The tool that takes the result.
pub const OUTPUT: &str = "final_output";

/// The tool that checks are made with.
const SHELL: &str = "shell";

/// How often the model is told that its result is missing.
const REMINDERS: usize = 3;

/// What must hold before a run may end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Goal {
    /// Must there be a result?
    pub output: bool,
    /// Arguments of the commands that must succeed, in order.
    pub checks: Vec<Value>,
    /// Arguments of the command after one that failed.
    pub on_failure: Option<Value>,
    /// How often the model may go on after a check that failed.
    pub retries: u32,
}

/// What a turn does when no call is without a result.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// It is the model's turn.
    Model,
    /// The turn makes this call itself.
    Call(&'static str, Value),
    /// All holds.
    End,
    /// It will not hold: a word for programs, a sentence for people.
    Fail(&'static str, String),
}

/// A message of one call that is a step towards the goal.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Own {
    Output,
    Check(usize),
    OnFailure,
}

impl Goal {
    /// A command as it is called.
    pub fn command(line: &str, seconds: Option<u64>) -> Value {
        match seconds {
            Some(seconds) => json!({ "command": line, "timeout_seconds": seconds }),
            None => json!({ "command": line }),
        }
    }

    /// The next step of a run with these messages.
    pub(super) fn step(&self, run: &[Arc<Message>]) -> Step {
        let Some(last) = run.last().filter(|last| last.role != Role::User) else { return Step::Model };
        let spoken = run.iter().rposition(|message| message.role != Role::Tool && self.own(message).is_none());
        let tail = &run[spoken.map_or(0, |place| place + 1)..];
        let steps: Vec<(Own, Option<ToolEnd>)> =
            tail.iter().filter_map(|message| Some((self.own(message)?, end(run, calls(message).next()?.0)))).collect();
        let delivered = outputs(run).any(|call| end(run, call) == Some(ToolEnd::Completed));
        let ended = spoken.is_some_and(|place| run[place].role == Role::Agent && calls(&run[place]).next().is_none());
        let here = spoken.map_or(0, |place| place);
        let just_delivered = outputs(&run[here..]).any(|call| end(run, call) == Some(ToolEnd::Completed));
        if !ended && !just_delivered {
            return Step::Model;
        }
        if self.output && !delivered {
            return self.remind(run, last);
        }
        self.next_check(run, steps.last())
    }

    fn remind(&self, run: &[Arc<Message>], last: &Message) -> Step {
        let reminders = run.iter().flat_map(|message| calls(message)).filter(|(_, name, arguments)| {
            *name == OUTPUT && arguments.as_object().is_some_and(serde_json::Map::is_empty)
        });
        match (last.role, reminders.count()) {
            (Role::Tool, _) => Step::Model,
            (Role::User | Role::Agent, told) if told < REMINDERS => Step::Call(OUTPUT, json!({})),
            (Role::User | Role::Agent, _) => {
                Step::Fail("response", "the model did not give a result of the form that was asked for".to_owned())
            }
        }
    }

    fn next_check(&self, run: &[Arc<Message>], last: Option<&(Own, Option<ToolEnd>)>) -> Step {
        let check = |place: usize| self.checks.get(place).map_or(Step::End, |line| Step::Call(SHELL, line.clone()));
        match last {
            None | Some((Own::Output, _)) => check(0),
            Some((Own::Check(place), Some(ToolEnd::Completed))) => check(place + 1),
            Some((Own::Check(place), Some(ToolEnd::Rejected | ToolEnd::Cancelled))) => {
                let line = self.checks[*place]["command"].as_str().unwrap_or_default().to_owned();
                Step::Fail("checks", format!("a check was not allowed to run: {line}"))
            }
            Some((Own::Check(place), _)) if self.failures(run) > self.retries as usize => {
                let line = self.checks[*place]["command"].as_str().unwrap_or_default().to_owned();
                Step::Fail("checks", format!("a check fails still, after {} more tries: {line}", self.retries))
            }
            Some((Own::Check(_), _)) => {
                self.on_failure.as_ref().map_or(Step::Model, |line| Step::Call(SHELL, line.clone()))
            }
            Some((Own::OnFailure, _)) => Step::Model,
        }
    }

    fn failures(&self, run: &[Arc<Message>]) -> usize {
        let checks = run.iter().filter(|message| matches!(self.own(message), Some(Own::Check(_))));
        let calls = checks.filter_map(|message| calls(message).next());
        calls.filter(|(call, ..)| end(run, *call).is_some_and(|end| end != ToolEnd::Completed)).count()
    }

    fn own(&self, message: &Message) -> Option<Own> {
        let [Part::ToolUse { name, arguments, .. }] = message.parts.as_slice() else { return None };
        match name.as_str() {
            OUTPUT if self.output => Some(Own::Output),
            SHELL if self.on_failure.as_ref() == Some(arguments) => Some(Own::OnFailure),
            SHELL => self.checks.iter().position(|check| check == arguments).map(Own::Check),
            _ => None,
        }
    }
}

fn calls(message: &Message) -> impl Iterator<Item = (ToolCallId, &str, &Value)> {
    message.parts.iter().filter_map(|part| match part {
        Part::ToolUse { call, name, arguments } => Some((*call, name.as_str(), arguments)),
        Part::Text { .. }
        | Part::Thought { .. }
        | Part::Image { .. }
        | Part::Audio { .. }
        | Part::Link { .. }
        | Part::Resource { .. }
        | Part::ToolResult { .. }
        | Part::Unknown(_) => None,
    })
}

fn outputs(run: &[Arc<Message>]) -> impl Iterator<Item = ToolCallId> {
    run.iter().flat_map(|message| calls(message)).filter(|(_, name, _)| *name == OUTPUT).map(|(call, ..)| call)
}

/// How a call ended.
fn end(run: &[Arc<Message>], wanted: ToolCallId) -> Option<ToolEnd> {
    let results = run.iter().rev().filter(|message| message.role == Role::Tool).flat_map(|message| &message.parts);
    results
        .filter_map(|part| if let Part::ToolResult { call, result } = part { Some((call, result.end)) } else { None })
        .find_map(|(call, end)| (*call == wanted).then_some(end))
}
