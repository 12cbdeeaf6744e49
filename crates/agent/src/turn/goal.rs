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
const SHELL_TOOL: &str = "shell";

/// How often the model is told that its result is missing.
const MAX_REMINDERS: usize = 3;

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
pub(super) enum GoalStep {
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
enum OwnCall {
    Output,
    Check(usize),
    OnFailure,
}

impl Goal {
    /// A command as it is called.
    pub fn check_command_arguments(line: &str, seconds: Option<u64>) -> Value {
        match seconds {
            Some(seconds) => json!({ "command": line, "timeout_seconds": seconds }),
            None => json!({ "command": line }),
        }
    }

    /// The next step of a run with these messages.
    pub(super) fn next_goal_step(&self, run: &[Arc<Message>]) -> GoalStep {
        let Some(last) = run.last().filter(|last| last.role != Role::User) else { return GoalStep::Model };
        let spoken =
            run.iter().rposition(|message| message.role != Role::Tool && self.find_own_call(message).is_none());
        let tail = &run[spoken.map_or(0, |place| place + 1)..];
        let steps: Vec<(OwnCall, Option<ToolEnd>)> = tail
            .iter()
            .filter_map(|message| {
                Some((self.find_own_call(message)?, goal_call_end(run, goal_tool_calls(message).next()?.0)))
            })
            .collect();
        let delivered = goal_output_calls(run).any(|call| goal_call_end(run, call) == Some(ToolEnd::Completed));
        let ended =
            spoken.is_some_and(|place| run[place].role == Role::Agent && goal_tool_calls(&run[place]).next().is_none());
        let here = spoken.map_or(0, |place| place);
        let just_delivered =
            goal_output_calls(&run[here..]).any(|call| goal_call_end(run, call) == Some(ToolEnd::Completed));
        if !ended && !just_delivered {
            return GoalStep::Model;
        }
        if self.output && !delivered {
            return self.reminder_step(run, last);
        }
        self.next_check(run, steps.last())
    }

    fn reminder_step(&self, run: &[Arc<Message>], last: &Message) -> GoalStep {
        let reminders = run.iter().flat_map(|message| goal_tool_calls(message)).filter(|(_, name, arguments)| {
            *name == OUTPUT && arguments.as_object().is_some_and(serde_json::Map::is_empty)
        });
        match (last.role, reminders.count()) {
            (Role::Tool, _) => GoalStep::Model,
            (Role::User | Role::Agent, told) if told < MAX_REMINDERS => GoalStep::Call(OUTPUT, json!({})),
            (Role::User | Role::Agent, _) => {
                GoalStep::Fail("response", "the model did not give a result of the form that was asked for".to_owned())
            }
        }
    }

    fn next_check(&self, run: &[Arc<Message>], last: Option<&(OwnCall, Option<ToolEnd>)>) -> GoalStep {
        let check = |place: usize| {
            self.checks.get(place).map_or(GoalStep::End, |line| GoalStep::Call(SHELL_TOOL, line.clone()))
        };
        match last {
            None | Some((OwnCall::Output, _)) => check(0),
            Some((OwnCall::Check(place), Some(ToolEnd::Completed))) => check(place + 1),
            Some((OwnCall::Check(place), Some(ToolEnd::Rejected | ToolEnd::Cancelled))) => {
                let line = self.checks[*place]["command"].as_str().unwrap_or_default().to_owned();
                GoalStep::Fail("checks", format!("a check was not allowed to run: {line}"))
            }
            Some((OwnCall::Check(place), _)) if self.count_failures(run) > self.retries as usize => {
                let line = self.checks[*place]["command"].as_str().unwrap_or_default().to_owned();
                GoalStep::Fail("checks", format!("check still failing after {} retries: {line}", self.retries))
            }
            Some((OwnCall::Check(_), _)) => {
                self.on_failure.as_ref().map_or(GoalStep::Model, |line| GoalStep::Call(SHELL_TOOL, line.clone()))
            }
            Some((OwnCall::OnFailure, _)) => GoalStep::Model,
        }
    }

    fn count_failures(&self, run: &[Arc<Message>]) -> usize {
        let checks = run.iter().filter(|message| matches!(self.find_own_call(message), Some(OwnCall::Check(_))));
        let calls = checks.filter_map(|message| goal_tool_calls(message).next());
        calls.filter(|(call, ..)| goal_call_end(run, *call).is_some_and(|end| end != ToolEnd::Completed)).count()
    }

    fn find_own_call(&self, message: &Message) -> Option<OwnCall> {
        let [Part::ToolUse { name, arguments, .. }] = message.parts.as_slice() else { return None };
        match name.as_str() {
            OUTPUT if self.output => Some(OwnCall::Output),
            SHELL_TOOL if self.on_failure.as_ref() == Some(arguments) => Some(OwnCall::OnFailure),
            SHELL_TOOL => self.checks.iter().position(|check| check == arguments).map(OwnCall::Check),
            _ => None,
        }
    }
}

fn goal_tool_calls(message: &Message) -> impl Iterator<Item = (ToolCallId, &str, &Value)> {
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

fn goal_output_calls(run: &[Arc<Message>]) -> impl Iterator<Item = ToolCallId> {
    run.iter()
        .flat_map(|message| goal_tool_calls(message))
        .filter(|(_, name, _)| *name == OUTPUT)
        .map(|(call, ..)| call)
}

/// How a call ended.
fn goal_call_end(run: &[Arc<Message>], wanted: ToolCallId) -> Option<ToolEnd> {
    let results = run.iter().rev().filter(|message| message.role == Role::Tool).flat_map(|message| &message.parts);
    results
        .filter_map(|part| if let Part::ToolResult { call, result } = part { Some((call, result.end)) } else { None })
        .find_map(|(call, end)| (*call == wanted).then_some(end))
}

#[cfg(test)]
mod tests {
    use gander_domain::{MessageId, ToolResult};
    use uuid::Uuid;

    use super::*;

    /// A run in short: `> text` is said to the agent, `text` by it, `tool {…}` is its call, and the sign behind it says
    /// how that ended.
    fn run(lines: &[&str]) -> Vec<Arc<Message>> {
        let mut messages = Vec::new();
        for (line, number) in lines.iter().zip(1_u128..) {
            let id = MessageId::new(Uuid::from_u128(number));
            let call = ToolCallId::new(Uuid::from_u128(number));
            let mut say = |role, parts| {
                messages.push(Arc::new(Message { id, role, parts, interrupted: false, native: None }));
            };
            match (line.strip_prefix("> "), line.split_once(" {")) {
                (Some(text), _) => say(Role::User, vec![Part::text(text)]),
                (None, Some((name, rest))) => {
                    let (arguments, end) = rest.split_once("} ").expect("a call and its end");
                    let arguments = serde_json::from_str(&format!("{{{arguments}}}")).expect("arguments");
                    say(Role::Agent, vec![Part::ToolUse { call, name: name.to_owned(), arguments }]);
                    let end = match end {
                        "ok" => ToolEnd::Completed,
                        "no" => ToolEnd::Rejected,
                        _ => ToolEnd::Failed,
                    };
                    say(Role::Tool, vec![Part::ToolResult { call, result: ToolResult::text(end, "") }]);
                }
                (None, None) => say(Role::Agent, vec![Part::text(*line)]),
            }
        }
        messages
    }

    fn checks(on_failure: Option<&str>) -> Goal {
        let checks = ["one", "two"].map(|line| Goal::check_command_arguments(line, None)).to_vec();
        let on_failure = on_failure.map(|line| Goal::check_command_arguments(line, None));
        Goal { output: false, checks, on_failure, retries: 1 }
    }

    fn shell(line: &str) -> GoalStep {
        GoalStep::Call(SHELL_TOOL, Goal::check_command_arguments(line, None))
    }

    #[test]
    fn checks_follow_each_other_and_a_failed_one_gives_the_model_its_turn() {
        let (one, bad, two) =
            (r#"shell {"command":"one"} ok"#, r#"shell {"command":"one"} bad"#, r#"shell {"command":"two"} ok"#);
        let goal = checks(None);
        let cases: [(&[&str], GoalStep); 7] = [
            (&["> go"], GoalStep::Model),
            (&["> go", r#"look {"at":1} ok"#], GoalStep::Model),
            (&["> go", "done"], shell("one")),
            (&["> go", "done", one], shell("two")),
            (&["> go", "done", one, two], GoalStep::End),
            (&["> go", "done", bad], GoalStep::Model),
            (&["> go", "done", bad, "again"], shell("one")),
        ];
        for (lines, expected) in cases {
            assert_eq!(goal.next_goal_step(&run(lines)), expected, "{lines:?}");
        }
        let still = goal.next_goal_step(&run(&["> go", "done", bad, "again", bad]));
        assert_eq!(still, GoalStep::Fail("checks", "check still failing after 1 retries: one".to_owned()));
        let refused = goal.next_goal_step(&run(&["> go", "done", r#"shell {"command":"one"} no"#]));
        assert_eq!(refused, GoalStep::Fail("checks", "a check was not allowed to run: one".to_owned()));
        let tidied = r#"shell {"command":"tidy"} ok"#;
        assert_eq!(checks(Some("tidy")).next_goal_step(&run(&["> go", "done", bad])), shell("tidy"));
        assert_eq!(checks(Some("tidy")).next_goal_step(&run(&["> go", "done", bad, tidied])), GoalStep::Model);
    }

    #[test]
    fn a_result_is_reminded_of_and_ends_the_run() {
        let goal = Goal { output: true, ..Goal::default() };
        let (empty, wrong, right) =
            ("final_output {} bad", r#"final_output {"n":"x"} bad"#, r#"final_output {"n":1} ok"#);
        let remind = || GoalStep::Call(OUTPUT, json!({}));
        assert_eq!(goal.next_goal_step(&run(&["> go", "done"])), remind());
        assert_eq!(goal.next_goal_step(&run(&["> go", "done", empty])), GoalStep::Model);
        assert_eq!(goal.next_goal_step(&run(&["> go", "done", empty, wrong])), GoalStep::Model);
        assert_eq!(goal.next_goal_step(&run(&["> go", "done", empty, wrong, right])), GoalStep::End);
        assert_eq!(goal.next_goal_step(&run(&["> go", right])), GoalStep::End);
        let stubborn = ["> go", "done", empty, "done", empty, "done", empty, "done"];
        assert!(matches!(goal.next_goal_step(&run(&stubborn)), GoalStep::Fail("response", _)));
        let both = Goal { output: true, ..checks(None) };
        assert_eq!(both.next_goal_step(&run(&["> go", right])), shell("one"));
    }
}
