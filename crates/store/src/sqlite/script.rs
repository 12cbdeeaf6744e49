//! Several SQL statements and their values, sent to the database in one go.

use futures::TryStreamExt;
use gander_domain::{Seq, SessionId};
use sqlx::encode::Encode;
use sqlx::sqlite::{SqliteArguments, SqliteConnection};
use sqlx::{Arguments, AssertSqlSafe, Executor, Sqlite, Type};

/// Statements in order; every `?` takes the next value.
#[derive(Default)]
pub(super) struct SqliteScript {
    pub(super) sql: String,
    pub(super) args: SqliteArguments,
}

impl SqliteScript {
    pub(super) fn new(sql: &str) -> Self {
        Self { sql: sql.to_owned(), args: SqliteArguments::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sql.is_empty()
    }

    /// Adds a piece of SQL.
    pub(super) fn push_sql(&mut self, sql: &str) {
        self.sql.push_str(sql);
    }

    /// Adds `count` times `(?, …)`, separated by commas.
    pub(super) fn push_tuples(&mut self, count: usize, width: usize) {
        self.sql.reserve(count * (2 * width + 2));
        for index in 0..count {
            self.sql.push_str(if index == 0 { "(?" } else { ",(?" });
            (1..width).for_each(|_| self.sql.push_str(",?"));
            self.sql.push(')');
        }
    }

    /// Adds a value.
    pub(super) fn bind_value<'q>(&mut self, value: impl Encode<'q, Sqlite> + Type<Sqlite>) {
        self.args.add(value).expect("numbers, texts and blobs always encode");
    }

    pub(super) fn bind_id(&mut self, id: uuid::Uuid) {
        self.bind_value(id.into_bytes().to_vec());
    }

    pub(super) fn bind_session(&mut self, session: SessionId) {
        self.bind_id(session.uuid());
    }

    pub(super) fn bind_seq(&mut self, seq: Seq) {
        self.bind_value(seq.0 as i64);
    }

    /// Runs it all; gives the number of rows that its last change touched.
    ///
    /// One trip to the connection's thread, however many statements: a trip costs more than most of them.
    pub(super) async fn execute_script(
        self,
        connection: &mut SqliteConnection,
        cached: Cached,
    ) -> Result<u64, sqlx::Error> {
        let query = sqlx::query_with(AssertSqlSafe(self.sql), self.args).persistent(cached == Cached::Yes);
        // Statements that change nothing (`COMMIT`) repeat the count of the one before.
        let mut results = connection.execute_many(query);
        let mut changed = 0;
        while let Some(result) = results.try_next().await? {
            changed = result.rows_affected();
        }
        Ok(changed)
    }
}

/// Whether the compiled form of a script is kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Cached {
    Yes,
    No,
}
