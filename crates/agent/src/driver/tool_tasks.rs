//! The tools that run, each in its own task.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use gander_domain::{ToolCall, ToolCallId, ToolEnd, ToolResult};
use gander_tools::ToolEvent;
use tokio::sync::mpsc;
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use super::session_tools::ToolExecutor;
use crate::turn::Input;

/// How much tools may say before they have to wait for the driver.
const EVENTS_CAPACITY: usize = 64;

/// The tools that run. Dropping it aborts them.
pub(super) struct ToolTasks {
    executor: Arc<dyn ToolExecutor>,
    tasks: JoinSet<()>,
    calls: HashMap<Id, ToolCallId>,
    stop: CancellationToken,
    tell: mpsc::Sender<Input>,
    news: mpsc::Receiver<Input>,
}

impl ToolTasks {
    pub(super) fn new(executor: Arc<dyn ToolExecutor>) -> Self {
        let (tell, news) = mpsc::channel(EVENTS_CAPACITY);
        Self { executor, tasks: JoinSet::new(), calls: HashMap::new(), stop: CancellationToken::new(), tell, news }
    }

    pub(super) fn spawn_call(&mut self, call: ToolCall) {
        let id = call.id;
        let task = run_tool_task_call(self.executor.clone(), call, self.tell.clone(), self.stop.clone());
        let handle = self.tasks.spawn(task);
        self.calls.insert(handle.id(), id);
    }

    pub(super) fn stop(&mut self) {
        self.stop.cancel();
    }

    /// What the tools say next; never, if none runs. Nothing is lost if the caller stops waiting.
    pub(super) async fn next_input(&mut self) -> Input {
        loop {
            // The driver's own select listens to cancel. The news never close: a sender is kept.
            tokio::select! {
                biased;
                Some(input) = self.news.recv() => return input,
                Some(ended) = self.tasks.join_next_with_id() => {
                    if let Some(input) = self.crash_result(ended) {
                        return input;
                    }
                }
            }
        }
    }

    /// Until all are gone, or have had this long.
    pub(super) async fn wait_for_end(&mut self, grace: Duration) {
        self.stop.cancel();
        // Nobody listens any more: a tool that has something to say must not wait for that.
        self.news.close();
        let gone = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(grace, gone).await.is_err() {
            self.tasks.shutdown().await;
        }
    }

    /// A task that ended well has said so itself.
    fn crash_result(&mut self, ended: Result<(Id, ()), JoinError>) -> Option<Input> {
        let (task, crash) = match ended {
            Ok((task, ())) => (task, None),
            Err(error) => (error.id(), Some(error)),
        };
        let call = self.calls.remove(&task)?;
        // Without the panic's own words, which the panic hook has written down without secrets.
        tracing::error!(%call, panicked = crash?.is_panic(), "a tool crashed");
        Some(Input::ToolDone(call, ToolResult::text(ToolEnd::Failed, "the tool crashed: this is a bug in it")))
    }
}

async fn run_tool_task_call(
    executor: Arc<dyn ToolExecutor>,
    call: ToolCall,
    tell: mpsc::Sender<Input>,
    stop: CancellationToken,
) {
    let (signals, mut heard) = mpsc::channel(EVENTS_CAPACITY);
    let mut work = executor.run(&call, signals, stop);
    let result = loop {
        // The tool itself listens to `stop`, so that it can end what it started.
        tokio::select! {
            biased;
            Some(signal) = heard.recv() => forward_tool_task_event(&tell, call.id, signal).await,
            result = &mut work => break result,
        }
    };
    while let Ok(signal) = heard.try_recv() {
        forward_tool_task_event(&tell, call.id, signal).await;
    }
    if tell.send(Input::ToolDone(call.id, result)).await.is_err() {
        tracing::debug!(call = %call.id, "a tool ended after its run");
    }
}

/// What nobody hears any more is lost, but the tool goes on: it may still have to end what it started.
async fn forward_tool_task_event(tell: &mpsc::Sender<Input>, call: ToolCallId, signal: ToolEvent) {
    if tell.send(tool_task_to_input(call, signal)).await.is_err() {
        tracing::debug!(%call, "a tool said something after its run");
    }
}

fn tool_task_to_input(call: ToolCallId, signal: ToolEvent) -> Input {
    match signal {
        ToolEvent::Shown(content) => Input::ToolShows(call, content),
        ToolEvent::Plan(plan) => Input::ToolPlans(call, plan),
        ToolEvent::Marked(mark) => Input::ToolMarked(call, mark),
        ToolEvent::Saved { name, version, mime, content } => Input::ToolSaved { call, name, version, mime, content },
        ToolEvent::Spent(usage) => Input::Spent(usage),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Mutex;

    use async_trait::async_trait;
    use gander_domain::{Answer, IdGenerator, Provenance, Question, SessionPolicy, ToolKind};
    use serde_json::{Value, json};
    use uuid::Uuid;

    use super::*;
    use crate::turn::{PermissionEvaluator, ToolDecision};
    use gander_domain::ToolSpec;

    /// Says something when it is stopped, and then ends what it started.
    #[derive(Default)]
    struct Talker {
        has_ended: Mutex<bool>,
    }

    impl PermissionEvaluator for Talker {
        fn evaluate(
            &self,
            _: SessionPolicy,
            _: &Provenance,
            _: ToolCallId,
            _: &str,
            _: &Value,
            _: &mut dyn IdGenerator,
        ) -> ToolDecision {
            ToolDecision::Bad(ToolResult::text(ToolEnd::Failed, "nobody asks"))
        }

        fn fingerprint(&self, _: &ToolCall) -> String {
            String::new()
        }

        fn record_answer(&self, _: &ToolCall, _: &Question, _: &Answer) {}
    }

    #[async_trait]
    impl ToolExecutor for Talker {
        fn tools(&self) -> Arc<[ToolSpec]> {
            Arc::new([])
        }

        async fn run(&self, _: &ToolCall, signals: mpsc::Sender<ToolEvent>, cancel: CancellationToken) -> ToolResult {
            cancel.cancelled().await;
            for _ in 0..3 * EVENTS_CAPACITY {
                signals.send(ToolEvent::Shown(Vec::new())).await.unwrap();
            }
            *self.has_ended.lock().unwrap() = true;
            ToolResult::text(ToolEnd::Cancelled, "stopped")
        }
    }

    #[tokio::test]
    async fn a_tool_that_nobody_hears_still_ends_what_it_started() {
        let talker = Arc::new(Talker::default());
        let mut tasks = ToolTasks::new(Arc::clone(&talker) as Arc<dyn ToolExecutor>);
        let (id, name, title) = (ToolCallId::new(Uuid::nil()), "talk".to_owned(), String::new());
        let arguments = json!({});
        tasks.spawn_call(ToolCall {
            id,
            name,
            title,
            kind: ToolKind::Other,
            arguments,
            locations: Vec::new(),
            idempotent: false,
        });
        tasks.wait_for_end(Duration::from_secs(60)).await;
        assert!(*talker.has_ended.lock().unwrap());
    }
}
