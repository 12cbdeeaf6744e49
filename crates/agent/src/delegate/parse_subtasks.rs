//! Sub-tasks as a model gives them: checked, with every dependency known and no circle.

use serde::Deserialize;
use serde_json::Value;

use crate::recipe::Recipe;

/// More sub-tasks than this at once help nobody.
pub(crate) const MAX_SUBTASKS: usize = 8;

/// One sub-task.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubTask {
    /// Unlike the others of its call.
    pub name: String,
    /// What is to be done.
    pub prompt: String,
    /// By whom: an agent or a mode; absent: a specialist.
    #[serde(default)]
    pub mode: Option<String>,
    /// With which model; absent: the mode's, or that of the session.
    #[serde(default)]
    pub model: Option<String>,
    /// Model calls at most.
    #[serde(default)]
    pub max_turns: Option<u32>,
    /// Tokens at most, read and written.
    #[serde(default)]
    pub max_tokens: Option<u64>,
    /// Names of tasks that have to end first.
    #[serde(default)]
    pub after: Vec<String>,
    /// The recipe that it follows, filled in: its form and its checks hold for the sub-agent.
    #[serde(skip)]
    pub recipe: Option<Box<Recipe>>,
}

impl SubTask {
    /// One for a specialist that waits for nothing.
    pub fn new(name: impl Into<String>, prompt: impl Into<String>) -> Self {
        let (name, prompt) = (name.into(), prompt.into());
        let (mode, model, recipe, after) = (None, None, None, Vec::new());
        Self { name, prompt, mode, model, max_turns: None, max_tokens: None, after, recipe }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    tasks: Vec<SubTask>,
}

/// Reads the arguments of a call, or says what is wrong with them.
pub(crate) fn parse_subtasks(arguments: &Value) -> Result<Vec<SubTask>, String> {
    let Arguments { tasks } = Arguments::deserialize(arguments).map_err(|error| format!("wrong arguments: {error}"))?;
    if tasks.is_empty() || tasks.len() > MAX_SUBTASKS {
        return Err(format!("give 1 to {MAX_SUBTASKS} tasks: {}", tasks.len()));
    }
    for (place, task) in tasks.iter().enumerate() {
        if task.name.trim().is_empty() || task.prompt.trim().is_empty() {
            return Err(format!("a task has a name and a prompt, task: {}", place + 1));
        }
        if tasks[..place].iter().any(|other| other.name == task.name) {
            return Err(format!("two tasks have the same name: {}", task.name));
        }
        if let Some(unknown) = task.after.iter().find(|name| !tasks.iter().any(|other| other.name == **name)) {
            return Err(format!("{} waits for a task that is not there: {unknown}", task.name));
        }
    }
    match find_circular_task(&tasks) {
        Some(name) => Err(format!("tasks wait for each other in a circle: {name}")),
        None => Ok(tasks),
    }
}

/// A task that can never begin.
fn find_circular_task(tasks: &[SubTask]) -> Option<&str> {
    let mut done: Vec<&str> = Vec::new();
    while done.len() < tasks.len() {
        let free = |task: &&SubTask| {
            !done.contains(&task.name.as_str()) && task.after.iter().all(|name| done.contains(&name.as_str()))
        };
        match tasks.iter().find(free) {
            Some(task) => done.push(&task.name),
            None => return tasks.iter().map(|task| task.name.as_str()).find(|name| !done.contains(name)),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_could_never_run_is_refused_before_anything_runs() {
        let task = |name: &str, after: &[&str]| json!({ "name": name, "prompt": "do", "after": after });
        let read = |tasks: Value| parse_subtasks(&json!({ "tasks": tasks })).map(|tasks| tasks.len());
        assert_eq!(read(json!([task("a", &["b"]), task("b", &[]), task("c", &["a", "b"])])), Ok(3));
        assert_eq!(read(json!([])), Err("give 1 to 8 tasks: 0".to_owned()));
        assert_eq!(read(json!([task("a", &[]), task("a", &[])])), Err("two tasks have the same name: a".to_owned()));
        let circle = Err("tasks wait for each other in a circle: a".to_owned());
        assert_eq!(read(json!([task("a", &["b"]), task("b", &["a"])])), circle);
        assert_eq!(read(json!([task("a", &["a"])])), circle);
        assert_eq!(read(json!([task("a", &["z"])])), Err("a waits for a task that is not there: z".to_owned()));
        assert_eq!(read(json!([task(" ", &[])])), Err("a task has a name and a prompt, task: 1".to_owned()));
        let unknown = read(json!([{ "name": "a", "prompt": "b", "tools": [] }]));
        assert!(unknown.is_err_and(|why| why.starts_with("wrong arguments")));
    }
}
