//! What several nodes share in the database: leases, owners, commands. Safety rests on epochs; leases say when to try.

use std::time::Duration;

use async_trait::async_trait;
use gander_domain::{Principal, Seq, SessionId};
use serde_json::Value;
use sqlx::Row as _;
use sqlx::postgres::{PgExecutor, PgPool, PgRow};
use uuid::Uuid;

use super::PostgresStore;
use super::failure::postgres_store_error;
use super::hints::HintMessage;
use super::read::{read_head, seq_column, text_column};
use super::text::encode_postgres_text;
use crate::cluster::{ClusterStore, encode_command_body};
use crate::hints::Hints;
use crate::node::{CommandAnswer, CommandId, NodeId, NodeInfo, NodeStatus, SessionCommand};
use crate::{Claim, Epoch, StoreError};

/// Whether node `$1` may claim a session `s`: it has the label that the session is pinned to, and no other owner has a lease.
const MAY_CLAIM_SQL: &str = "(s.pinned_to IS NULL OR s.pinned_to = (SELECT label FROM node WHERE id = $1)) \
     AND (s.node IS NULL OR s.node = $1 \
     OR (SELECT 1 FROM node n WHERE n.id = s.node AND n.lease_until > clock_timestamp()) IS NULL)";

/// Makes a node the only writer of a session. Without a node there is only one.
pub(super) async fn claim_session(
    pool: &PgPool,
    session: SessionId,
    node: Option<NodeId>,
) -> Result<Claim, StoreError> {
    let may_claim = if node.is_some() { MAY_CLAIM_SQL } else { "$1::UUID IS NULL" };
    let query = sqlx::query(sqlx::AssertSqlSafe(format!(
        "UPDATE session s SET epoch = s.epoch + 1, node = $1, has_work = $1 IS NOT NULL \
         WHERE s.id = $2 AND s.deleted_at IS NULL AND {may_claim} RETURNING s.epoch, s.head"
    )));
    let query = query.bind(node.map(|node| node.0)).bind(session.uuid());
    match query.fetch_optional(pool).await.map_err(postgres_store_error)? {
        Some(row) => Ok(claim_of(&row, 0)),
        None => Err(claim_refusal(pool, session, node).await?),
    }
}

async fn claim_refusal(pool: &PgPool, session: SessionId, node: Option<NodeId>) -> Result<StoreError, StoreError> {
    read_head(pool, session).await?;
    let query = sqlx::query(
        "SELECT s.node, s.pinned_to, s.pinned_to = (SELECT label FROM node WHERE id = $2) FROM session s WHERE s.id = $1",
    );
    let query = query.bind(session.uuid()).bind(node.map(|node| node.0));
    let row = query.fetch_one(pool).await.map_err(postgres_store_error)?;
    let has_label = row.get::<Option<bool>, _>(2) == Some(true);
    if let Some(label) = row.get::<Option<String>, _>(1).filter(|_| !has_label) {
        return Ok(StoreError::Pinned(super::text::decode_postgres_text(label)));
    }
    Ok(match row.get::<Option<Uuid>, _>(0) {
        Some(owner) => StoreError::Owned(NodeId(owner)),
        None => StoreError::Busy("session was released meanwhile".to_owned()),
    })
}

/// Every node that has a row, by id.
pub(super) async fn list_nodes(database: impl PgExecutor<'_>) -> Result<Vec<NodeStatus>, StoreError> {
    let query = sqlx::query(
        "SELECT n.id, n.label, n.role, n.version, n.draining, \
         EXTRACT(EPOCH FROM n.lease_until - clock_timestamp())::FLOAT8, \
         (SELECT count(*) FROM session s WHERE s.node = n.id), \
         EXTRACT(EPOCH FROM clock_timestamp() - n.renewed_at)::FLOAT8 FROM node n ORDER BY n.id",
    );
    let rows = query.fetch_all(database).await.map_err(postgres_store_error)?;
    Ok(rows.iter().map(decode_status).collect())
}

/// Forgets nodes that have been gone for a while, and commands and answers that nobody waits for any more.
pub(super) async fn forget_gone_nodes(pool: &PgPool) -> Result<(), StoreError> {
    let statements = [
        "DELETE FROM node n WHERE n.lease_until < clock_timestamp() - INTERVAL '10 minutes' \
         AND NOT EXISTS (SELECT 1 FROM session s WHERE s.node = n.id)",
        "DELETE FROM command c WHERE c.answer IS NOT NULL AND NOT EXISTS (SELECT 1 FROM node n WHERE n.id = c.origin)",
        // Only its origin withdraws a command. The sessions' rows first and in order, as whoever answers does.
        "WITH orphan AS (SELECT c.id FROM session s JOIN command c ON c.session = s.id WHERE s.commands > 0 \
         AND c.answer IS NULL AND NOT EXISTS (SELECT 1 FROM node n WHERE n.id = c.origin) ORDER BY s.id FOR UPDATE OF s), \
         gone AS (DELETE FROM command c USING orphan WHERE c.id = orphan.id AND c.answer IS NULL RETURNING c.session) \
         UPDATE session s SET commands = s.commands - g.number \
         FROM (SELECT gone.session, count(*) AS number FROM gone GROUP BY gone.session) g WHERE s.id = g.session",
    ];
    for sql in statements {
        sqlx::query(sql).execute(pool).await.map_err(postgres_store_error)?;
    }
    Ok(())
}

#[async_trait]
impl ClusterStore for PostgresStore {
    fn node(&self) -> NodeId {
        self.node.unwrap_or(NodeId(Uuid::nil()))
    }

    async fn renew_lease(&self, info: &NodeInfo, ttl: Duration) -> Result<(), StoreError> {
        let query = sqlx::query(
            "INSERT INTO node (id, label, role, version, draining, lease_until) \
             VALUES ($1, $2, $3, $4, $5, clock_timestamp() + make_interval(secs => $6)) \
             ON CONFLICT (id) DO UPDATE SET label = excluded.label, role = excluded.role, version = excluded.version, \
             draining = excluded.draining, lease_until = excluded.lease_until, renewed_at = clock_timestamp()",
        );
        let query = query.bind(self.node().0).bind(encode_postgres_text(&info.label).into_owned());
        let query = query
            .bind(encode_postgres_text(&info.role).into_owned())
            .bind(encode_postgres_text(&info.version).into_owned());
        let query = query.bind(info.draining).bind(ttl.as_secs_f64());
        query.execute(&self.pool).await.map(drop).map_err(postgres_store_error)
    }

    async fn end_lease_of(&self, node: NodeId) -> Result<(), StoreError> {
        let mut transaction = self.pool.begin().await.map_err(postgres_store_error)?;
        for sql in ["UPDATE session SET node = NULL WHERE node = $1", "DELETE FROM node WHERE id = $1"] {
            sqlx::query(sql).bind(node.0).execute(&mut *transaction).await.map_err(postgres_store_error)?;
        }
        transaction.commit().await.map_err(postgres_store_error)?;
        self.shared.hint(HintMessage::Work);
        Ok(())
    }

    async fn nodes(&self) -> Result<Vec<NodeStatus>, StoreError> {
        list_nodes(&self.pool).await
    }

    async fn claim_work(&self, limit: u32) -> Result<Vec<(SessionId, Claim)>, StoreError> {
        let query = sqlx::query(sqlx::AssertSqlSafe(format!(
            "WITH free AS (SELECT s.id FROM session s WHERE (s.has_work OR s.commands > 0) AND s.deleted_at IS NULL \
             AND s.node IS DISTINCT FROM $1 AND {MAY_CLAIM_SQL} ORDER BY s.id LIMIT $2 FOR UPDATE OF s SKIP LOCKED) \
             UPDATE session s SET epoch = s.epoch + 1, node = $1, has_work = TRUE FROM free WHERE s.id = free.id \
             RETURNING s.id, s.epoch, s.head"
        )));
        let query = query.bind(self.node().0).bind(i64::from(limit));
        let rows = query.fetch_all(&self.pool).await.map_err(postgres_store_error)?;
        Ok(rows.iter().map(|row| (SessionId::new(row.get(0)), claim_of(row, 1))).collect())
    }

    async fn owned_sessions(&self) -> Result<Vec<SessionId>, StoreError> {
        let query = sqlx::query("SELECT id FROM session WHERE node = $1 AND deleted_at IS NULL ORDER BY id");
        let rows = query.bind(self.node().0).fetch_all(&self.pool).await.map_err(postgres_store_error)?;
        Ok(rows.iter().map(|row| SessionId::new(row.get(0))).collect())
    }

    /// The session's row is locked before the command gets its place, so that those of one session are in order.
    async fn send_command(&self, command: SessionCommand) -> Result<(), StoreError> {
        let body = encode_command_body(&command.body)?;
        let query = sqlx::query(
            "WITH target AS (UPDATE session SET commands = commands + 1 WHERE id = $2 AND deleted_at IS NULL \
             RETURNING id, node) INSERT INTO command (id, session, origin, body) \
             SELECT $1, target.id, $3, $4 FROM target RETURNING (SELECT node FROM target)",
        );
        let query = query.bind(command.id.0).bind(command.session.uuid()).bind(command.origin.0);
        let query = query.bind(body);
        let row = query.fetch_optional(&self.pool).await.map_err(postgres_store_error)?;
        let Some(row) = row else {
            return Err(read_head(&self.pool, command.session)
                .await
                .err()
                .unwrap_or(StoreError::NotFound(command.session)));
        };
        self.shared.hint(match row.get::<Option<Uuid>, _>(0) {
            Some(owner) => HintMessage::Commands(NodeId(owner)),
            None => HintMessage::Work,
        });
        Ok(())
    }

    async fn pending_commands(&self, limit: u32) -> Result<Vec<SessionCommand>, StoreError> {
        let query = sqlx::query(
            "SELECT c.id, c.session, c.origin, c.body FROM session s JOIN command c ON c.session = s.id \
             WHERE s.node = $1 AND s.commands > 0 AND c.answer IS NULL ORDER BY c.place LIMIT $2",
        );
        let rows = query
            .bind(self.node().0)
            .bind(i64::from(limit))
            .fetch_all(&self.pool)
            .await
            .map_err(postgres_store_error)?;
        let command = |row: &PgRow| SessionCommand {
            id: CommandId(row.get(0)),
            session: SessionId::new(row.get(1)),
            origin: NodeId(row.get(2)),
            body: parse_postgres_command_body(CommandId(row.get(0)), row.get(3)),
        };
        Ok(rows.iter().map(command).collect())
    }

    async fn take_answers(&self) -> Result<Vec<CommandAnswer>, StoreError> {
        let query = sqlx::query("DELETE FROM command WHERE origin = $1 AND answer IS NOT NULL RETURNING id, answer");
        let rows = query.bind(self.node().0).fetch_all(&self.pool).await.map_err(postgres_store_error)?;
        let answer = |row: &PgRow| {
            let command = CommandId(row.get(0));
            CommandAnswer { command, body: parse_postgres_command_body(command, row.get(1)) }
        };
        Ok(rows.iter().map(answer).collect())
    }

    /// The session's row first, as whoever answers does: the two never wait for each other.
    async fn withdraw_command(&self, command: CommandId) -> Result<bool, StoreError> {
        let mut transaction = self.pool.begin().await.map_err(postgres_store_error)?;
        let lock = sqlx::query(
            "SELECT s.id FROM session s JOIN command c ON c.session = s.id WHERE c.id = $1 FOR UPDATE OF s",
        );
        lock.bind(command.0).fetch_optional(&mut *transaction).await.map_err(postgres_store_error)?;
        let query = sqlx::query(
            "WITH gone AS (DELETE FROM command WHERE id = $1 AND answer IS NULL RETURNING session) \
             UPDATE session s SET commands = s.commands - 1 FROM gone WHERE s.id = gone.session",
        );
        let done = query.bind(command.0).execute(&mut *transaction).await.map_err(postgres_store_error)?;
        transaction.commit().await.map_err(postgres_store_error)?;
        Ok(done.rows_affected() > 0)
    }

    async fn refresh_tails(&self) -> Result<(), StoreError> {
        let followed: Vec<Uuid> = self.shared.feeds.followed_sessions().iter().map(|session| session.uuid()).collect();
        if followed.is_empty() {
            return Ok(());
        }
        let query =
            sqlx::query("SELECT id, head, deleted_at IS NOT NULL, deleted_owner FROM session WHERE id = ANY ($1)");
        for row in query.bind(followed).fetch_all(&self.pool).await.map_err(postgres_store_error)? {
            let session = SessionId::new(row.get(0));
            if row.get(2) {
                let owner = row.get::<Option<String>, _>(3).map(|_| Principal::named(text_column(&row, 3)));
                self.shared.feeds.end_session(session, owner.as_ref());
            } else {
                self.shared.feeds.note_head(session, seq_column(&row, 1));
            }
        }
        Ok(())
    }

    async fn scope_heads(&self, scopes: &[&str]) -> Result<Vec<(String, Seq)>, StoreError> {
        let names: Vec<String> = scopes.iter().map(|scope| encode_postgres_text(scope).into_owned()).collect();
        let query = sqlx::query("SELECT name, head FROM scope_head WHERE name = ANY ($1)").bind(names);
        let rows = query.fetch_all(&self.pool).await.map_err(postgres_store_error)?;
        Ok(rows.iter().map(|row| (text_column(row, 0), seq_column(row, 1))).collect())
    }

    async fn next_hint(&self) -> Hints {
        self.shared.hints.take().await
    }
}

fn claim_of(row: &PgRow, column: usize) -> Claim {
    Claim { epoch: Epoch(row.get::<i64, _>(column) as u64), head: seq_column(row, column + 1) }
}

fn decode_status(row: &PgRow) -> NodeStatus {
    let info = NodeInfo {
        label: text_column(row, 1),
        role: text_column(row, 2),
        version: text_column(row, 3),
        draining: row.get(4),
    };
    let seconds: f64 = row.get(5);
    let lease = (seconds > 0.0).then(|| Duration::from_secs_f64(seconds));
    let renewed = Duration::from_secs_f64(row.get::<f64, _>(7).max(0.0));
    NodeStatus { node: NodeId(row.get(0)), info, lease, renewed, sessions: row.get::<i64, _>(6).unsigned_abs() }
}

/// Null if it cannot be read, which no request or answer is: whoever gets it says so, and the others go on.
fn parse_postgres_command_body(command: CommandId, body: &str) -> Value {
    serde_json::from_str(body).unwrap_or_else(|error| {
        tracing::warn!(command = %command.0, %error, "a command or its answer is not readable");
        Value::Null
    })
}
