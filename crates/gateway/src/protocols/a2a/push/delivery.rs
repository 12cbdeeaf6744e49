//! One receiver's delivery: from the log, in order, at least once, until the task is over.

use std::sync::Arc;
use std::time::Duration;

use gander_domain::Seq;
use gander_runtime::hub::FollowedBatch;
use gander_store::{DeltaForm, Durability};
use gander_wire::a2a::{A2aDialect, A2aProjection, A2aTask, DetailLevel, TaskOpening, TaskSubject, TaskUpdate, json};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::http_post::{PostOutcome, post_notification};
use super::{PushFact, PushInner, Receiver};

/// The first pause after a failure; each further one is twice as long.
const FIRST_RETRY_PAUSE: Duration = Duration::from_secs(1);
const MAX_RETRY_PAUSE: Duration = Duration::from_secs(300);

/// A receiver that fails so often for one update is given up: that takes about four hours.
const MAX_TRIES: u32 = 60;

/// Delivers until the task is over, nobody wants it any more, or the server stops.
pub(super) async fn deliver_push_updates(inner: Arc<PushInner>, receiver: Receiver, stop: CancellationToken) {
    let mut follower = inner.hub.follow_session(receiver.session, receiver.first, DeltaForm::Joined);
    let subject = TaskSubject {
        task: receiver.run,
        context: receiver.context.clone(),
        artifacts_url: receiver.artifacts_url.clone(),
    };
    let mut writer = NotificationWriter {
        watch: A2aProjection::new(subject, DetailLevel::Plain, TaskOpening::AtOnce),
        task: None,
        delivered_to: receiver.delivered_to,
        over: false,
    };
    loop {
        let batch = tokio::select! {
            () = stop.cancelled() => return,
            batch = follower.next_batch() => batch,
        };
        let Ok(Some(batch)) = batch else { return };
        let notices = writer.notifications(&receiver, &batch);
        for notice in &notices {
            if deliver_until_taken(&inner, &receiver, notice, &stop).await == DeliveryOutcome::GivenUp {
                return;
            }
        }
        if writer.over {
            // A receiver that came after the end has nothing to wait for.
            if !notices.iter().any(|notice| notice.last) {
                append_delivery_fact(&inner, &PushFact::Finished { run: receiver.run, id: receiver.config.id.clone() })
                    .await;
            }
            return;
        }
    }
}

/// What is sent in one piece.
struct Notification {
    seq: Seq,
    index: usize,
    body: Value,
    last: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeliveryOutcome {
    Delivered,
    GivenUp,
}

struct NotificationWriter {
    watch: A2aProjection,
    task: Option<A2aTask>,
    delivered_to: Seq,
    /// The task's last state was seen.
    over: bool,
}

impl NotificationWriter {
    /// What the receiver has not heard yet. Text that waits together goes together.
    fn notifications(&mut self, receiver: &Receiver, batch: &FollowedBatch) -> Vec<Notification> {
        let mut updates: Vec<(Seq, usize, TaskUpdate<'static>)> = Vec::new();
        for entry in batch.iter() {
            for (index, update) in self.watch.project_entry(entry).into_iter().enumerate() {
                match (updates.last_mut(), update) {
                    (Some((seq, at, TaskUpdate::Chunk(whole))), TaskUpdate::Chunk(more))
                        if whole.artifact == more.artifact =>
                    {
                        whole.text.to_mut().push_str(&more.text);
                        (*seq, *at) = (entry.seq, index);
                    }
                    (_, update) => updates.push((entry.seq, index, update.into_owned())),
                }
            }
        }
        let mut notices = Vec::new();
        for (seq, index, update) in updates {
            let last = update.state().is_some_and(|state| state.is_terminal());
            self.over |= last;
            A2aTask::apply_update(&mut self.task, update.clone());
            let body = self.notification_body(receiver, &update).filter(|_| seq > self.delivered_to);
            notices.extend(body.map(|body| Notification { seq, index, body, last }));
        }
        notices
    }

    /// 0.3 is told the whole task whenever its state changes, 1.0 each update as a subscriber would be.
    fn notification_body(&self, receiver: &Receiver, update: &TaskUpdate<'static>) -> Option<Value> {
        match (receiver.dialect, update) {
            (_, TaskUpdate::Said(_)) => None,
            (
                A2aDialect::V1,
                TaskUpdate::Begin(_)
                | TaskUpdate::Chunk(_)
                | TaskUpdate::Artifact(_)
                | TaskUpdate::Status(_)
                | TaskUpdate::Reply(_),
            ) => Some(json::a2a_stream_event_json_with_ids(A2aDialect::V1, self.watch.subject(), update)),
            (A2aDialect::V03 | A2aDialect::V03Rest, TaskUpdate::Begin(_) | TaskUpdate::Status(_)) => {
                self.task.as_ref().map(|task| json::a2a_task_json(A2aDialect::V03, task))
            }
            (
                A2aDialect::V03 | A2aDialect::V03Rest,
                TaskUpdate::Chunk(_) | TaskUpdate::Artifact(_) | TaskUpdate::Reply(_),
            ) => None,
        }
    }
}

/// Tries until it is there. The receiver tells two copies of one notice apart by its id.
async fn deliver_until_taken(
    inner: &PushInner,
    receiver: &Receiver,
    notice: &Notification,
    stop: &CancellationToken,
) -> DeliveryOutcome {
    let id = format!("{}.{}.{}", receiver.run, notice.seq, notice.index);
    let mut pause = FIRST_RETRY_PAUSE;
    for attempt in 1..=MAX_TRIES {
        let sent = tokio::select! {
            () = stop.cancelled() => return DeliveryOutcome::GivenUp,
            sent = post_notification(&inner.guard, &receiver.config, &id, &notice.body) => sent,
        };
        match sent {
            PostOutcome::Taken => {
                record_delivered(inner, receiver, notice).await;
                return DeliveryOutcome::Delivered;
            }
            PostOutcome::Unwanted => break,
            PostOutcome::Failed(reason) => {
                tracing::debug!(task = %receiver.run, attempt, reason, "a notification was not taken")
            }
        }
        tokio::select! {
            () = stop.cancelled() => return DeliveryOutcome::GivenUp,
            () = tokio::time::sleep(pause) => {}
        }
        pause = (pause * 2).min(MAX_RETRY_PAUSE);
    }
    tracing::warn!(task = %receiver.run, config = receiver.config.id, "a receiver of notifications is given up");
    append_delivery_fact(inner, &PushFact::Finished { run: receiver.run, id: receiver.config.id.clone() }).await;
    DeliveryOutcome::GivenUp
}

async fn record_delivered(inner: &PushInner, receiver: &Receiver, notice: &Notification) {
    let (run, id) = (receiver.run, receiver.config.id.clone());
    append_delivery_fact(inner, &PushFact::Delivered { run, id: id.clone(), seq: notice.seq }).await;
    if notice.last {
        append_delivery_fact(inner, &PushFact::Finished { run, id }).await;
    }
}

/// What is not noted is sent again after a restart: that is what the id is for.
async fn append_delivery_fact(inner: &PushInner, fact: &PushFact) {
    if let Err(error) = inner.append_fact(fact, Durability::Relaxed).await {
        tracing::warn!(%error, "the delivery of a notification was not noted");
    }
}
