//! Lists of tasks, page by page.

use gander_domain::Timestamp;
use gander_store::{RunPage, RunQuery, RunSort};
use gander_wire::a2a::requests::ListRequest;
use gander_wire::a2a::{A2aError, TaskPage, TaskState};

use super::{A2a, A2aCaller, TaskRef, a2a_session_error};

impl A2a {
    /// The caller's tasks with this agent, those whose state changed last first.
    pub(super) async fn list_tasks(&self, caller: &A2aCaller, list: ListRequest) -> Result<TaskPage, A2aError> {
        let mut page =
            TaskPage { tasks: Vec::new(), next_page_token: String::new(), page_size: list.page_size, total_size: 0 };
        let Some(query) = self.run_query(caller, &list).await? else { return Ok(page) };
        let page_of_runs = self.services.sessions.list_runs(&caller.identity, query).await;
        let RunPage { rows, total, next } = page_of_runs.map_err(a2a_session_error)?;
        (page.total_size, page.next_page_token) = (total, next.map(|key| key.to_string()).unwrap_or_default());
        for row in rows {
            let context = self.context_id(&caller.identity, row.session).await?;
            let after = gander_domain::Seq(row.first.0.saturating_sub(1));
            let task_ref =
                TaskRef { session: row.session, context, run: row.run, after, check_from: row.first, newborn: None };
            let (_, task, _) = self.rebuild_task(caller, &task_ref).await?;
            let Some(mut task) = task.filter(|task| task_matches_state(task.status.state, list.state)) else {
                continue;
            };
            if !list.artifacts {
                task.artifacts.clear();
            }
            page.tasks.push(task.with_history_length(list.history));
        }
        Ok(page)
    }

    /// `None` if nothing can fit: a context that nobody knows.
    async fn run_query(&self, caller: &A2aCaller, list: &ListRequest) -> Result<Option<RunQuery>, A2aError> {
        let principal = caller.identity.principal.clone();
        let session = match &list.context {
            None => None,
            Some(context) => match self.find_session(&caller.identity, context).await? {
                Some(session) => Some(session),
                None => return Ok(None),
            },
        };
        let bad = |_| A2aError::invalid_field("pageToken", "is not one of this server");
        Ok(Some(RunQuery {
            principal,
            agent: self
                .services
                .agents
                .settings_for_agent(&caller.agent.name, &self.services.default_session_settings())
                .map(|settings| settings.agent),
            session,
            state: list.state.map(run_sort_of_task_state),
            since: list.since.map(Timestamp::from_micros),
            after: list.page_token.as_deref().map(str::parse).transpose().map_err(bad)?,
            limit: list.page_size,
        }))
    }
}

/// The store knows that a run asks, not what.
fn task_matches_state(state: TaskState, wanted: Option<TaskState>) -> bool {
    wanted.is_none_or(|wanted| wanted == state || !wanted.is_interrupted())
}

fn run_sort_of_task_state(state: TaskState) -> RunSort {
    match state {
        TaskState::Submitted => RunSort::Queued,
        TaskState::Working => RunSort::Running,
        TaskState::InputRequired | TaskState::AuthRequired => RunSort::Awaiting,
        TaskState::Completed => RunSort::Completed,
        TaskState::Rejected => RunSort::Refused,
        TaskState::Canceled => RunSort::Cancelled,
        TaskState::Failed => RunSort::Failed,
    }
}
