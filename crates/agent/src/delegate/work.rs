//! The sub-tasks of one call, carried out: each begins when those that it waits for have ended.

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use gander_domain::{Part, Plan, PlanItem, PlanStatus, Priority, ToolCallId, ToolContent, ToolEnd, ToolResult};
use gander_tools::Signal;

use super::tasks::SubTask;
use super::{Line, SubEnd, SubResult};

/// How far a sub-task is.
enum Stage {
    Waiting,
    Running,
    Ended(SubResult),
}

/// Carries all of them out and joins their results.
pub(super) async fn work(call: ToolCallId, tasks: Vec<SubTask>, line: Line<'_>) -> ToolResult {
    let mut stages: Vec<Stage> = tasks.iter().map(|_| Stage::Waiting).collect();
    let mut running = FuturesUnordered::new();
    loop {
        for (place, task) in tasks.iter().enumerate() {
            if matches!(stages[place], Stage::Waiting) && is_free(&tasks, &stages, task) && !line.cancel.is_cancelled()
            {
                stages[place] = Stage::Running;
                let task = informed(&tasks, &stages, task);
                let (office, parent) = (line.office, line.parent());
                running.push(async move { (place, office.run(call, &task, parent).await) });
            }
        }
        tell(&line, &tasks, &stages).await;
        // Sub-agents hear the cancel themselves, and end because of it.
        match running.next().await {
            Some((place, result)) => stages[place] = Stage::Ended(result),
            None => return joined(&tasks, &stages),
        }
    }
}

fn is_free(tasks: &[SubTask], stages: &[Stage], task: &SubTask) -> bool {
    task.after.iter().all(|name| ended(tasks, stages, name).is_some())
}

fn ended<'a>(tasks: &[SubTask], stages: &'a [Stage], name: &str) -> Option<&'a SubResult> {
    let place = tasks.iter().position(|task| task.name == name)?;
    match &stages[place] {
        Stage::Ended(result) => Some(result),
        Stage::Waiting | Stage::Running => None,
    }
}

/// The task, with what it waited for.
fn informed(tasks: &[SubTask], stages: &[Stage], task: &SubTask) -> SubTask {
    let results = task.after.iter().filter_map(|name| Some((name, ended(tasks, stages, name)?)));
    let told: Vec<String> = results
        .map(|(name, result)| format!("\n\n# Result of {name} ({})\n{}", word(result.end), result.text))
        .collect();
    SubTask { prompt: format!("{}{}", task.prompt, told.concat()), ..task.clone() }
}

/// People see the sub-tasks as steps of the plan, and where each can be read.
async fn tell(line: &Line<'_>, tasks: &[SubTask], stages: &[Stage]) {
    let status = |stage: &Stage| match stage {
        Stage::Waiting => PlanStatus::Pending,
        Stage::Running => PlanStatus::InProgress,
        Stage::Ended(_) => PlanStatus::Completed,
    };
    let steps = tasks.iter().zip(stages).map(|(task, stage)| {
        let text = format!("{} ({})", task.name, task.mode.as_deref().unwrap_or("specialist"));
        PlanItem { text, priority: Priority::Medium, status: status(stage) }
    });
    let plan = Plan { items: line.plan.items.iter().cloned().chain(steps).take(Plan::MAX_ITEMS).collect() };
    let shown = vec![ToolContent::Part { part: Part::text(report(tasks, stages, |_| String::new())) }];
    for signal in [Signal::Plan(plan), Signal::Shown(shown)] {
        if line.signals.send(signal).await.is_err() {
            return; // the run is over: the cancel has come, or is about to
        }
    }
}

fn joined(tasks: &[SubTask], stages: &[Stage]) -> ToolResult {
    let text = report(tasks, stages, |result| format!("\n{}\n", result.text.trim()));
    let any = |end: SubEnd| stages.iter().any(|stage| matches!(stage, Stage::Ended(result) if result.end == end));
    let end = match (any(SubEnd::Completed), any(SubEnd::Cancelled)) {
        (true, _) => ToolEnd::Completed,
        (false, true) => ToolEnd::Cancelled,
        (false, false) => ToolEnd::Failed,
    };
    ToolResult::text(end, text)
}

fn report(tasks: &[SubTask], stages: &[Stage], more: impl Fn(&SubResult) -> String) -> String {
    let line = |(task, stage): (&SubTask, &Stage)| match stage {
        Stage::Waiting => format!("# {}: waiting", task.name),
        Stage::Running => format!("# {}: running", task.name),
        Stage::Ended(result) => {
            format!("# {}: {} (session {}){}", task.name, word(result.end), result.session, more(result))
        }
    };
    tasks.iter().zip(stages).map(line).collect::<Vec<_>>().join("\n")
}

fn word(end: SubEnd) -> &'static str {
    match end {
        SubEnd::Completed => "completed",
        SubEnd::Failed => "failed",
        SubEnd::Cancelled => "cancelled",
    }
}
