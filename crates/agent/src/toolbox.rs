//! The tools that every native agent has: the built-in ones, and the two that need the loop itself.

use std::path::PathBuf;

use gander_tools::{Limits, ToolEnv, Toolbox};

use crate::context_files::LoadSkill;
use crate::propose::ProposePlan;

/// The built-in tools, with skills from the person's own folders and proposals of plans.
pub fn native_toolbox(limits: Limits, surroundings: ToolEnv, skill_folders: Vec<PathBuf>) -> Toolbox {
    Toolbox::with_env(limits, surroundings)
        .with_tool(Box::new(LoadSkill { own: skill_folders }))
        .with_tool(Box::new(ProposePlan))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loop_adds_skills_and_proposals_behind_the_built_in_tools() {
        let tools = native_toolbox(Limits::default(), ToolEnv::default(), vec![]).listed_tools();
        let names: Vec<&str> = tools.iter().map(|tool| tool.spec.name.as_str()).collect();
        let built_in = ["read", "write", "edit", "list", "grep", "shell", "fetch", "plan"];
        assert_eq!(names, [&built_in[..], &["skill", "propose_plan"]].concat());
        assert!(tools.iter().all(|tool| tool.spec.schema["additionalProperties"] == false));
    }
}
