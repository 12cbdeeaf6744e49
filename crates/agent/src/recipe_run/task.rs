//! What a run gets from the recipe that its session follows.

use std::sync::Arc;

use gander_tools::Tool;

use super::final_output::FinalOutput;
use crate::RunTask;
use crate::recipe::{Check, Recipe};
use crate::turn::Goal;

impl Recipe {
    /// What a run works towards. The recipe must be filled in.
    pub fn run_task(&self) -> RunTask {
        let output = self.response_schema().and_then(FinalOutput::new);
        let goal = Goal {
            output: output.is_some(),
            checks: self
                .retry
                .iter()
                .flat_map(|retry| {
                    let seconds = retry.timeout_seconds;
                    retry
                        .checks
                        .iter()
                        .map(move |Check::Shell { command }| Goal::check_command_arguments(command, seconds))
                })
                .collect(),
            on_failure: self.retry.as_ref().and_then(|retry| {
                let seconds = retry.on_failure_timeout_seconds.or(retry.timeout_seconds);
                retry.on_failure.as_deref().map(|command| Goal::check_command_arguments(command, seconds))
            }),
            retries: self.retry.as_ref().map_or(0, |retry| retry.max_retries),
        };
        RunTask {
            instructions: self.session_instructions(output.is_some()),
            goal: (goal != Goal::default()).then_some(goal),
            tools: output.into_iter().map(|output| Arc::new(output) as Arc<dyn Tool>).collect(),
        }
    }

    fn session_instructions(&self, output: bool) -> String {
        let mut sections =
            vec![format!("This session follows the recipe \"{}\": {}", self.title.trim(), self.description.trim())];
        sections.extend(self.instructions.iter().map(|text| text.trim().to_owned()));
        if output {
            sections.push("When you are done, call final_output with the result, in the form that it asks for. Nothing else counts as the result.".to_owned());
        }
        sections.join("\n\n")
    }
}
