//! Hints between nodes: NOTIFY, gathered for a moment, on a connection of its own and never in the transaction of an append.
//!
//! A commit that carries a notification takes a lock that the whole server shares. A hint that is lost costs the time until the
//! next look, so nothing here waits or is tried again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use gander_domain::{Principal, Seq, SessionId};
use serde::{Deserialize, Serialize};
use sqlx::postgres::{PgListener, PgPool};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::shared::PostgresShared;
use crate::hints::Hints;
use crate::node::NodeId;

/// Hints that wait to be sent; more are dropped.
pub(super) const HINTS_CAPACITY: usize = 4096;

/// Hints that follow one another within this time are gathered. The first one after a pause goes at once: somebody may
/// wait for the first word of an answer.
const GATHER: Duration = Duration::from_millis(15);

/// A notification takes less than 8,000 bytes: no more is gathered for one that is longer than this.
const FULL_NOTIFICATION: usize = 5_000;

/// A principal whose name is longer goes unmentioned: what it changed is found by looking.
const MAX_OWNER_BYTES: usize = 2_000;

/// Time between two tries to listen.
const LISTEN_DELAY: Duration = Duration::from_millis(500);

/// Nobody waits for the disk because of a hint.
const NOTIFY_SQL: &str = "WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', TRUE)) \
     SELECT pg_notify($1, $2) FROM quick";

/// Something that another node may want to know.
#[derive(Clone, Debug)]
pub(super) enum HintMessage {
    /// A log grew to here; whose it is, if facts were added.
    Head(SessionId, Seq, Option<Principal>),
    /// Commands wait for sessions of this node.
    Commands(NodeId),
    /// Commands of this node were answered.
    Answers(NodeId),
    /// A session has work and no owner.
    Work,
}

/// What one notification says.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Notification {
    from: Option<NodeId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    heads: Vec<(SessionId, Seq)>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    owners: BTreeSet<Principal>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    commands: BTreeSet<NodeId>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    answers: BTreeSet<NodeId>,
    #[serde(default)]
    work: bool,
}

/// Sends what gathers until nobody can hint any more.
pub(super) async fn send_hints(pool: PgPool, channel: String, node: NodeId, mut hints: mpsc::Receiver<HintMessage>) {
    let mut next_send = Instant::now();
    while let Some(first) = hints.recv().await {
        tokio::time::sleep_until(next_send).await;
        next_send = Instant::now() + GATHER;
        let notification = gather_notification(node, first, &mut hints);
        let Ok(text) = serde_json::to_string(&notification) else { continue };
        let sent = sqlx::query(NOTIFY_SQL).bind(&channel).bind(text).execute(&pool).await;
        if let Err(error) = sent {
            tracing::debug!(%error, "a hint was not sent");
        }
    }
}

/// What waits, as much of it as one notification takes.
fn gather_notification(node: NodeId, first: HintMessage, hints: &mut mpsc::Receiver<HintMessage>) -> Notification {
    let mut heads: BTreeMap<SessionId, Seq> = BTreeMap::new();
    let mut notification = Notification { from: Some(node), ..Notification::default() };
    let (mut next, mut bytes) = (Some(first), 0);
    while let Some(hint) = next {
        bytes += 80;
        match hint {
            HintMessage::Head(session, head, owner) => {
                heads.insert(session, head);
                let size = |owner: &Principal| serde_json::to_string(owner).map_or(usize::MAX, |text| text.len());
                if let Some(owner) = owner.filter(|owner| size(owner) <= MAX_OWNER_BYTES) {
                    let length = size(&owner);
                    bytes += if notification.owners.insert(owner) { length } else { 0 };
                }
            }
            HintMessage::Commands(node) => drop(notification.commands.insert(node)),
            HintMessage::Answers(node) => drop(notification.answers.insert(node)),
            HintMessage::Work => notification.work = true,
        }
        next = if bytes < FULL_NOTIFICATION { hints.try_recv().ok() } else { None };
    }
    notification.heads = heads.into_iter().collect();
    notification
}

/// Listens until the store is closed. After a lost connection anything may have been missed.
pub(super) async fn receive_hints(pool: PgPool, channel: String, node: NodeId, shared: Arc<PostgresShared>) {
    while !pool.is_closed() {
        if let Err(error) = listen(&pool, &channel, node, &shared).await {
            tracing::debug!(%error, "hints are not heard");
        }
        tokio::select! {
            () = tokio::time::sleep(LISTEN_DELAY) => {}
            () = pool.close_event() => return,
        }
    }
}

async fn listen(pool: &PgPool, channel: &str, node: NodeId, shared: &PostgresShared) -> Result<(), sqlx::Error> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.listen(channel).await?;
    shared.hints.put(Hints::ALL);
    loop {
        let notification = tokio::select! {
            received = listener.try_recv() => received?,
            () = pool.close_event() => return Ok(()),
        };
        // None: the connection was lost and is there again.
        match notification.map(|notification| serde_json::from_str::<Notification>(notification.payload())) {
            Some(Ok(notification)) => take_notification(notification, node, shared),
            Some(Err(error)) => tracing::debug!(%error, "a hint is not readable"),
            None => shared.hints.put(Hints::ALL),
        }
    }
}

fn take_notification(notification: Notification, node: NodeId, shared: &PostgresShared) {
    if notification.from != Some(node) {
        notification.heads.iter().for_each(|(session, head)| shared.feeds.note_head(*session, *head));
        notification.owners.iter().for_each(|owner| shared.feeds.note_change(owner));
    }
    let commands = notification.commands.contains(&node);
    let answers = notification.answers.contains(&node);
    if commands || answers || notification.work {
        shared.hints.put(Hints { commands, answers, work: notification.work });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use uuid::Uuid;

    #[test]
    fn no_notification_is_longer_than_the_server_takes() {
        let (sender, mut receiver) = mpsc::channel(HINTS_CAPACITY);
        let session = |number: u128| SessionId::new(Uuid::from_u128(number));
        for number in 1..=200 {
            let owner = Principal::named(format!("{}\u{1}{number}", "long".repeat(100)));
            sender.try_send(HintMessage::Head(session(number), Seq(u64::MAX >> 1), Some(owner))).unwrap();
        }
        let endless = Principal::named("x".repeat(9_000));
        sender.try_send(HintMessage::Head(session(201), Seq(1), Some(endless))).unwrap();
        let (mut heads, mut owners) = (0, 0);
        while let Ok(first) = receiver.try_recv() {
            let told = gather_notification(NodeId(Uuid::from_u128(1)), first, &mut receiver);
            let text = serde_json::to_string(&told).unwrap();
            assert!(text.len() < 8_000, "{}", text.len());
            (heads, owners) = (heads + told.heads.len(), owners + told.owners.len());
        }
        assert_eq!((heads, owners), (201, 200), "nothing else is left out");
    }
}
