//! Several SQL statements and their values, carried out in one go.

use gander_domain::{Seq, SessionId};
use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection, Row, Statement, params_from_iter};
use uuid::Uuid;

use crate::StoreError;

/// The compiled form of a longer statement is not kept: what many sessions write together is another one each time.
const MAX_CACHED_SQL: usize = 4 * 1024;

/// Ends a statement that others follow.
const STATEMENT_END: &str = ";\n";

/// Statements in order; every `?` takes the next value.
#[derive(Default)]
pub(super) struct SqliteScript {
    pub(super) sql: String,
    /// Where statements end that others may follow.
    ends: Vec<usize>,
    values: Vec<SqliteValue>,
}

/// What a `?` stands for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum SqliteValue {
    Null,
    Number(i64),
    Text(String),
    Bytes(Vec<u8>),
    /// Sixteen bytes.
    Id(Uuid),
}

impl SqliteScript {
    pub(super) fn new(sql: &str) -> Self {
        let mut script = Self::default();
        script.push_sql(sql);
        script
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sql.is_empty()
    }

    /// Adds a piece of SQL, of one statement. Another one begins after a piece that ends with a semicolon and a new line.
    pub(super) fn push_sql(&mut self, sql: &str) {
        self.sql.push_str(sql);
        if sql.ends_with(STATEMENT_END) {
            self.ends.push(self.sql.len());
        }
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
    pub(super) fn bind_value(&mut self, value: impl Into<SqliteValue>) {
        self.values.push(value.into());
    }

    pub(super) fn bind_id(&mut self, id: Uuid) {
        self.values.push(SqliteValue::Id(id));
    }

    pub(super) fn bind_session(&mut self, session: SessionId) {
        self.bind_id(session.uuid());
    }

    pub(super) fn bind_seq(&mut self, seq: Seq) {
        self.bind_value(seq.0 as i64);
    }

    /// Runs it all; gives the number of rows that its last change touched.
    pub(super) fn execute_script(&self, connection: &Connection) -> rusqlite::Result<u64> {
        let mut values = self.values.iter();
        let mut changed = 0;
        for sql in self.statements() {
            let mut statement = ScriptStatement::prepare(connection, sql)?;
            let statement = statement.as_mut();
            for (place, value) in (1..=statement.parameter_count()).zip(&mut values) {
                statement.raw_bind_parameter(place, value)?;
            }
            changed = statement.raw_execute()? as u64;
        }
        Ok(changed)
    }

    fn statements(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let ends = self.ends.iter().copied().chain(std::iter::once(self.sql.len()));
        starts.zip(ends).map(|(start, end)| &self.sql[start..end]).filter(|sql| !sql.is_empty())
    }

    /// The rows that its one statement finds.
    pub(super) fn query_rows<T>(
        &self,
        connection: &Connection,
        mut decode: impl FnMut(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut statement = connection.prepare_cached(&self.sql)?;
        let mut rows = statement.query(params_from_iter(&self.values))?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(decode(row)?);
        }
        Ok(found)
    }
}

/// A compiled statement, kept for the next time or not.
enum ScriptStatement<'c> {
    Kept(CachedStatement<'c>),
    Once(Statement<'c>),
}

impl<'c> ScriptStatement<'c> {
    fn prepare(connection: &'c Connection, sql: &str) -> rusqlite::Result<Self> {
        Ok(match sql.len() <= MAX_CACHED_SQL {
            true => Self::Kept(connection.prepare_cached(sql)?),
            false => Self::Once(connection.prepare(sql)?),
        })
    }

    fn as_mut(&mut self) -> &mut Statement<'c> {
        match self {
            Self::Kept(statement) => statement,
            Self::Once(statement) => statement,
        }
    }
}

impl ToSql for SqliteValue {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Number(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
            Self::Id(id) => ValueRef::Blob(id.as_bytes()),
        }))
    }
}

impl From<i64> for SqliteValue {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<bool> for SqliteValue {
    fn from(flag: bool) -> Self {
        Self::Number(i64::from(flag))
    }
}

impl From<String> for SqliteValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<u8>> for SqliteValue {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<Uuid> for SqliteValue {
    fn from(id: Uuid) -> Self {
        Self::Id(id)
    }
}

impl<T: Into<SqliteValue>> From<Option<T>> for SqliteValue {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}
