//! Why an append was not stored.

use gander_domain::{Entry, Seq, SessionId};
use sqlx::Row as _;
use sqlx::postgres::PgConnection;
use uuid::Uuid;

use super::aliases::find_alias;
use super::batch::SessionGroup;
use super::failure::{PostgresFailure, postgres_store_error};
use super::writer::{PostgresPending, postgres_writer_creates_session, postgres_writer_epoch};
use crate::{Claim, Epoch, NodeId, Ownership, StoreError};

/// An append by itself.
pub(super) fn single_refused_group(pending: PostgresPending, node: Option<NodeId>) -> SessionGroup {
    let entries = &pending.append.entries;
    let before = entries.first().map(|entry| Seq(entry.seq.0.saturating_sub(1)));
    let head = entries.last().map(|entry| entry.seq);
    let epoch = postgres_writer_epoch(&pending);
    let node = owner_after_refusal(&pending, node);
    SessionGroup { session: pending.append.session, epoch, before, head, node, pending: vec![pending] }
}

/// The node that owns the session after an append of this node.
pub(super) fn owner_after_refusal(pending: &PostgresPending, node: Option<NodeId>) -> Option<Uuid> {
    match pending.append.ownership {
        Ownership::Keep => node.map(|node| node.0),
        Ownership::Release => None,
    }
}

/// True if the entries follow each other, and a new session's begin it.
pub(super) fn is_refused_in_order(pending: &PostgresPending) -> bool {
    let entries = &pending.append.entries;
    let follows = entries.windows(2).all(|pair| pair[0].seq.next() == pair[1].seq);
    let begins = pending.aliases.is_none()
        || (postgres_writer_creates_session(&pending.append)
            && entries.first().is_some_and(|entry| entry.seq == Seq(1)));
    follows && begins && entries.first().is_none_or(|entry| entry.seq > Seq::ZERO)
}

/// Looks for the reason in the database.
pub(super) async fn refusal_reason(
    connection: &mut PgConnection,
    pending: &PostgresPending,
    failure: &PostgresFailure,
) -> StoreError {
    let reason = match &pending.aliases {
        Some(_) => creation_refusal(connection, pending).await,
        None => append_refusal(connection, pending).await,
    };
    match reason {
        Ok(()) => failure.to_store_error(),
        Err(error) => error,
    }
}

async fn creation_refusal(connection: &mut PgConnection, pending: &PostgresPending) -> Result<(), StoreError> {
    let session = pending.append.session;
    match load_claim(connection, session).await {
        Ok(_) => return Err(StoreError::Exists(session)),
        Err(StoreError::NotFound(_)) => {}
        Err(error) => return Err(error),
    }
    if !postgres_writer_creates_session(&pending.append) {
        return Err(StoreError::Invalid("first entry does not create the session".to_owned()));
    }
    check_postgres_order(Seq::ZERO, &pending.append.entries)?;
    for alias in pending.aliases.iter().flatten() {
        if let Some(taken) = find_alias(&mut *connection, alias).await? {
            return Err(StoreError::AliasTaken(taken));
        }
    }
    Ok(())
}

async fn append_refusal(connection: &mut PgConnection, pending: &PostgresPending) -> Result<(), StoreError> {
    let claim = load_claim(connection, pending.append.session).await?;
    if claim.epoch != pending.append.epoch {
        return Err(StoreError::Fenced { current: claim.epoch });
    }
    check_postgres_order(claim.head, &pending.append.entries)
}

/// Who may write to a session, and where it ends.
pub(super) async fn load_claim(connection: &mut PgConnection, session: SessionId) -> Result<Claim, StoreError> {
    let query = sqlx::query("SELECT epoch, head, deleted_at IS NOT NULL FROM session WHERE id = $1");
    let row = query.bind(session.uuid()).fetch_optional(connection).await.map_err(postgres_store_error)?;
    let row = row.ok_or(StoreError::NotFound(session))?;
    if row.get::<bool, _>(2) {
        return Err(StoreError::Deleted(session));
    }
    let (epoch, head): (i64, i64) = (row.get(0), row.get(1));
    Ok(Claim { epoch: Epoch(epoch as u64), head: Seq(head as u64) })
}

fn check_postgres_order(head: Seq, entries: &[Entry]) -> Result<(), StoreError> {
    let follow = entries.iter().try_fold(head, |head, entry| {
        let expected = head.next();
        if entry.seq == expected { Ok(expected) } else { Err(StoreError::Gap { expected, found: entry.seq }) }
    });
    follow.map(drop)
}
