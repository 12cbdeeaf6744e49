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

/// A notification takes 8,000 bytes.
const MAX_HEADS: usize = 60;

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
        let mut heads: BTreeMap<SessionId, Seq> = BTreeMap::new();
        let mut notification = Notification { from: Some(node), ..Notification::default() };
        let mut next = Some(first);
        while let Some(hint) = next {
            match hint {
                HintMessage::Head(session, head, owner) => {
                    heads.insert(session, head);
                    notification.owners.extend(owner);
                }
                HintMessage::Commands(node) => drop(notification.commands.insert(node)),
                HintMessage::Answers(node) => drop(notification.answers.insert(node)),
                HintMessage::Work => notification.work = true,
            }
            next = if heads.len() < MAX_HEADS { hints.try_recv().ok() } else { None };
        }
        notification.heads = heads.into_iter().collect();
        let Ok(text) = serde_json::to_string(&notification) else { continue };
        let sent = sqlx::query(NOTIFY_SQL).bind(&channel).bind(text).execute(&pool).await;
        if let Err(error) = sent {
            tracing::debug!(%error, "a hint was not sent");
        }
    }
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
