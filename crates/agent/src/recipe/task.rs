//! What a run gets from the recipe that its session follows.

use std::sync::Arc;

use super::output::FinalOutput;
use super::{Check, Recipe};
use crate::driver::{Guest, Task};
use crate::turn::Goal;

impl Recipe {
    /// What a run works towards. The recipe must be filled in.
    pub fn task(&self) -> Task {
        let output = self.schema().and_then(FinalOutput::new);
        let goal = Goal {
            output: output.is_some(),
            checks: self
                .retry
                .iter()
                .flat_map(|retry| {
                    let seconds = retry.timeout_seconds;
                    retry.checks.iter().map(move |Check::Shell { command }| Goal::command(command, seconds))
                })
                .collect(),
            on_failure: self.retry.as_ref().and_then(|retry| {
                let seconds = retry.on_failure_timeout_seconds.or(retry.timeout_seconds);
                retry.on_failure.as_deref().map(|command| Goal::command(command, seconds))
            }),
            retries: self.retry.as_ref().map_or(0, |retry| retry.max_retries),
        };
        Task {
            instructions: self.told(output.is_some()),
            goal: (goal != Goal::default()).then_some(goal),
            parts: None,
            guests: output.into_iter().map(|output| Arc::new(output) as Arc<dyn Guest>).collect(),
        }
    }

    fn told(&self, output: bool) -> String {
        let mut told =
            vec![format!("This session follows the recipe \"{}\": {}", self.title.trim(), self.description.trim())];
        told.extend(self.instructions.iter().map(|text| text.trim().to_owned()));
        if output {
            told.push("When you are done, call final_output with the result, in the form that it asks for. Nothing else counts as the result.".to_owned());
        }
        told.join("\n\n")
    }
}
