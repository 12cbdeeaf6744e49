//! The sub-tasks of one call, carried out: each begins when those that it waits for have ended.

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use gander_domain::{Part, Plan, PlanItem, PlanStatus, Priority, ToolCallId, ToolContent, ToolEnd, ToolResult};
use gander_tools::ToolEvent;

use super::parse_subtasks::SubTask;
use super::{DelegateContext, SubEnd, SubResult};

/// How far a sub-task is.
enum SubTaskStage {
    Waiting,
    Running,
    Ended(SubResult),
}

/// Carries all of them out and joins their results.
pub(super) async fn run_subtasks(call: ToolCallId, tasks: Vec<SubTask>, context: DelegateContext<'_>) -> ToolResult {
    let mut stages: Vec<SubTaskStage> = tasks.iter().map(|_| SubTaskStage::Waiting).collect();
    let mut running = FuturesUnordered::new();
    loop {
        for (index, task) in tasks.iter().enumerate() {
            if matches!(stages[index], SubTaskStage::Waiting)
                && is_subtask_ready_to_run(&tasks, &stages, task)
                && !context.parent.cancel.is_cancelled()
            {
                stages[index] = SubTaskStage::Running;
                let task = with_results_of_run_subtasks(&tasks, &stages, task);
                let (subagents, parent) = (context.subagents, context.parent);
                running.push(async move { (index, subagents.run(call, &task, parent).await) });
            }
        }
        report_run_subtasks_progress(&context, &tasks, &stages).await;
        // Sub-agents hear the cancel themselves, and end because of it.
        match running.next().await {
            Some((index, result)) => stages[index] = SubTaskStage::Ended(result),
            None => return join_run_subtask_results(&tasks, &stages),
        }
    }
}

fn is_subtask_ready_to_run(tasks: &[SubTask], stages: &[SubTaskStage], task: &SubTask) -> bool {
    task.after.iter().all(|name| run_subtask_result(tasks, stages, name).is_some())
}

fn run_subtask_result<'a>(tasks: &[SubTask], stages: &'a [SubTaskStage], name: &str) -> Option<&'a SubResult> {
    let index = tasks.iter().position(|task| task.name == name)?;
    match &stages[index] {
        SubTaskStage::Ended(result) => Some(result),
        SubTaskStage::Waiting | SubTaskStage::Running => None,
    }
}

/// The task, with what it waited for.
fn with_results_of_run_subtasks(tasks: &[SubTask], stages: &[SubTaskStage], task: &SubTask) -> SubTask {
    let results = task.after.iter().filter_map(|name| Some((name, run_subtask_result(tasks, stages, name)?)));
    let sections: Vec<String> = results
        .map(|(name, result)| format!("\n\n# Result of {name} ({})\n{}", run_subtask_end_name(result.end), result.text))
        .collect();
    SubTask { prompt: format!("{}{}", task.prompt, sections.concat()), ..task.clone() }
}

/// People see the sub-tasks as steps of the plan, and where each can be read.
async fn report_run_subtasks_progress(context: &DelegateContext<'_>, tasks: &[SubTask], stages: &[SubTaskStage]) {
    let status = |stage: &SubTaskStage| match stage {
        SubTaskStage::Waiting => PlanStatus::Pending,
        SubTaskStage::Running => PlanStatus::InProgress,
        SubTaskStage::Ended(_) => PlanStatus::Completed,
    };
    let steps = tasks.iter().zip(stages).map(|(task, stage)| {
        let text = format!("{} ({})", task.name, task.mode.as_deref().unwrap_or("specialist"));
        PlanItem { text, priority: Priority::Medium, status: status(stage) }
    });
    let plan = Plan { items: context.plan.items.iter().cloned().chain(steps).take(Plan::MAX_ITEMS).collect() };
    let shown =
        vec![ToolContent::Part { part: Part::text(run_subtask_results_text(tasks, stages, |_| String::new())) }];
    for signal in [ToolEvent::Plan(plan), ToolEvent::Shown(shown)] {
        if context.parent.signals.send(signal).await.is_err() {
            return; // the run is over: the cancel has come, or is about to
        }
    }
}

fn join_run_subtask_results(tasks: &[SubTask], stages: &[SubTaskStage]) -> ToolResult {
    let text = run_subtask_results_text(tasks, stages, |result| format!("\n{}\n", result.text.trim()));
    let any =
        |end: SubEnd| stages.iter().any(|stage| matches!(stage, SubTaskStage::Ended(result) if result.end == end));
    let end = match (any(SubEnd::Completed), any(SubEnd::Cancelled)) {
        (true, _) => ToolEnd::Completed,
        (false, true) => ToolEnd::Cancelled,
        (false, false) => ToolEnd::Failed,
    };
    ToolResult::text(end, text)
}

fn run_subtask_results_text(tasks: &[SubTask], stages: &[SubTaskStage], more: impl Fn(&SubResult) -> String) -> String {
    let line = |(task, stage): (&SubTask, &SubTaskStage)| match stage {
        SubTaskStage::Waiting => format!("# {}: waiting", task.name),
        SubTaskStage::Running => format!("# {}: running", task.name),
        SubTaskStage::Ended(result) => {
            format!(
                "# {}: {} (session {}){}",
                task.name,
                run_subtask_end_name(result.end),
                result.session,
                more(result)
            )
        }
    };
    tasks.iter().zip(stages).map(line).collect::<Vec<_>>().join("\n")
}

fn run_subtask_end_name(end: SubEnd) -> &'static str {
    match end {
        SubEnd::Completed => "completed",
        SubEnd::Failed => "failed",
        SubEnd::Cancelled => "cancelled",
    }
}
