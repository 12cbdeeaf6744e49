//! Finds out whether what was sent over a lost connection was committed.
//!
//! The process of the server behind that connection may still be at it, or may not have begun. It is ended first: only then
//! does the log say for good whether its statement was committed.

use std::time::Duration;

use gander_domain::Seq;
use sqlx::Row as _;
use sqlx::postgres::PgConnection;
use tokio::time::Instant;

use super::batch::SessionGroup;
use super::connect::Backend;
use super::failure::postgres_store_error;
use super::refusal::load_claim;
use crate::StoreError;

/// How long the lost connection's process is waited for.
const END_TIMEOUT: Duration = Duration::from_secs(5);
const END_POLL: Duration = Duration::from_millis(20);

/// What became of a session's part of a batch.
pub(super) enum Outcome {
    /// It is stored; where the session ended then.
    Committed(Seq),
    /// It is not, and may be sent again.
    NotCommitted,
    /// It is not, and cannot be any more.
    Refused(StoreError),
}

/// Says of each group what became of it.
pub(super) async fn settle_groups(
    connection: &mut PgConnection,
    backend: &Backend,
    groups: &[SessionGroup],
) -> Result<Vec<Outcome>, StoreError> {
    end_backend(connection, backend).await?;
    let mut outcomes = Vec::with_capacity(groups.len());
    for group in groups {
        outcomes.push(settle_group(connection, group).await?);
    }
    Ok(outcomes)
}

/// Ends the process behind the lost connection and waits until it is gone.
async fn end_backend(connection: &mut PgConnection, backend: &Backend) -> Result<(), StoreError> {
    let query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND backend_start::text = $2";
    let began = Instant::now();
    loop {
        let query = sqlx::query(query).persistent(false).bind(backend.pid).bind(&backend.began);
        if query.fetch_optional(&mut *connection).await.map_err(postgres_store_error)?.is_none() {
            return Ok(());
        }
        if began.elapsed() > END_TIMEOUT {
            return Err(StoreError::Busy("an earlier connection to PostgreSQL does not end".to_owned()));
        }
        tokio::time::sleep(END_POLL).await;
    }
}

async fn settle_group(connection: &mut PgConnection, group: &SessionGroup) -> Result<Outcome, StoreError> {
    let claim = load_claim(connection, group.session).await;
    if let Some(head) = group.head
        && was_written(connection, group).await?
    {
        return Ok(match claim {
            Err(error @ StoreError::Deleted(_)) => Outcome::Refused(error),
            Ok(_) | Err(_) => Outcome::Committed(head),
        });
    }
    match claim {
        // A session that is to be created is not there.
        Err(StoreError::NotFound(_)) if group.pending.iter().any(|pending| pending.aliases.is_some()) => {
            Ok(Outcome::NotCommitted)
        }
        Err(error @ (StoreError::NotFound(_) | StoreError::Deleted(_))) => Ok(Outcome::Refused(error)),
        Err(error) => Err(error),
        Ok(claim) if claim.epoch != group.epoch => Ok(Outcome::Refused(StoreError::Fenced { current: claim.epoch })),
        Ok(_) => Ok(Outcome::NotCommitted),
    }
}

/// True if the row at the group's first place is of this writer: epochs have one writer each.
async fn was_written(connection: &mut PgConnection, group: &SessionGroup) -> Result<bool, StoreError> {
    let Some(before) = group.before else { return Ok(false) };
    let query =
        sqlx::query("SELECT epoch, last FROM entry WHERE session = $1 AND first <= $2 ORDER BY first DESC LIMIT 1");
    let first = before.next().0 as i64;
    let query = query.bind(group.session.uuid()).bind(first);
    let row = query.fetch_optional(connection).await.map_err(postgres_store_error)?;
    Ok(row.is_some_and(|row| row.get::<i64, _>(0) == group.epoch.0 as i64 && row.get::<i64, _>(1) >= first))
}
