//! One end of a copy that is a database.

use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Connection as _, Postgres, QueryBuilder, Row as _};
use uuid::Uuid;

use super::row::{ColumnKind, CopyRow, CopyTable, Field};
use crate::postgres::{decode_postgres_text, encode_postgres_text, open_for_copy};
use crate::{PostgresUrl, StoreError};

pub(super) struct PostgresSide {
    connection: PgConnection,
}

impl PostgresSide {
    /// Makes the tables if there are none.
    pub(super) async fn open(url: &PostgresUrl) -> Result<Self, StoreError> {
        let mut connection = open_for_copy(url).await?;
        // One picture of everything, whatever others do meanwhile.
        execute(&mut connection, "SET statement_timeout = 0; BEGIN ISOLATION LEVEL REPEATABLE READ").await?;
        Ok(Self { connection })
    }

    pub(super) async fn page(
        &mut self,
        table: &CopyTable,
        after: Option<&CopyRow>,
        limit: usize,
    ) -> Result<Vec<CopyRow>, StoreError> {
        let mut builder: QueryBuilder<Postgres> =
            QueryBuilder::new(format!("SELECT {} FROM {}", table.column_names(), table.name));
        if let Some(row) = after {
            builder.push(format!(" WHERE ({}) > (", table.key_names()));
            let mut values = builder.separated(", ");
            for field in &row[..table.key] {
                match field {
                    Field::Null => values.push("NULL"),
                    Field::Id(id) => values.push_bind(*id),
                    Field::Number(number) => values.push_bind(*number),
                    Field::Text(text) => values.push_bind(encode_postgres_text(text).into_owned()),
                };
            }
            builder.push(")");
        }
        builder.push(format!(" ORDER BY {} LIMIT {limit}", table.key_names()));
        let rows = builder.build().persistent(false).fetch_all(&mut self.connection).await.map_err(failed)?;
        Ok(rows.iter().map(|row| decode_row(table, row)).collect())
    }

    pub(super) async fn insert(&mut self, table: &CopyTable, rows: &[CopyRow]) -> Result<(), StoreError> {
        // What only this database has: ends are set in the end, and nobody wrote these rows under an epoch of its own.
        let (more, value) = match table.name {
            "session" => (", head", "0"),
            "entry" => (", epoch", "0"),
            _ => ("", ""),
        };
        let mut builder: QueryBuilder<Postgres> =
            QueryBuilder::new(format!("INSERT INTO {} ({}{more}) ", table.name, table.column_names()));
        builder.push_values(rows, |mut values, row| {
            for (field, kind) in row.iter().zip(table.kinds()) {
                match (field, kind) {
                    (Field::Null, _) => values.push("NULL"),
                    (Field::Id(id), _) => values.push_bind(*id),
                    (Field::Number(number), ColumnKind::Flag) => values.push_bind(*number != 0),
                    (Field::Number(number), ColumnKind::Small) => values.push_bind(*number as i16),
                    (Field::Number(number), _) => values.push_bind(*number),
                    (Field::Text(text), ColumnKind::Text) => values.push_bind(encode_postgres_text(text).into_owned()),
                    (Field::Text(text), _) => values.push_bind(text.clone()),
                };
            }
            if !value.is_empty() {
                values.push(value);
            }
        });
        builder.build().persistent(false).execute(&mut self.connection).await.map(drop).map_err(failed)
    }

    pub(super) async fn incarnation(&mut self) -> Result<i64, StoreError> {
        let query = sqlx::query("SELECT incarnation::BIGINT FROM meta").persistent(false);
        Ok(query.fetch_one(&mut self.connection).await.map_err(failed)?.get(0))
    }

    pub(super) async fn commit(mut self, incarnation: i64) -> Result<(), StoreError> {
        let ends = "UPDATE session SET head = COALESCE((SELECT last FROM entry WHERE entry.session = session.id \
             ORDER BY first DESC LIMIT 1), 0); \
             INSERT INTO scope_head SELECT name, max(seq) FROM scope GROUP BY name";
        execute(&mut self.connection, ends).await?;
        execute(&mut self.connection, &format!("UPDATE meta SET incarnation = {incarnation}")).await?;
        execute(&mut self.connection, "COMMIT").await?;
        execute(&mut self.connection, "ANALYZE").await?;
        self.connection.close().await.map_err(failed)
    }
}

fn decode_row(table: &CopyTable, row: &PgRow) -> CopyRow {
    let field = |(column, kind): (usize, ColumnKind)| match kind {
        ColumnKind::Id => row.get::<Option<Uuid>, _>(column).map_or(Field::Null, Field::Id),
        ColumnKind::Number => row.get::<Option<i64>, _>(column).map_or(Field::Null, Field::Number),
        ColumnKind::Small => Field::Number(row.get::<i16, _>(column).into()),
        ColumnKind::Flag => Field::Number(row.get::<bool, _>(column).into()),
        ColumnKind::Text => {
            row.get::<Option<String>, _>(column).map_or(Field::Null, |text| Field::Text(decode_postgres_text(text)))
        }
        ColumnKind::Json => row.get::<Option<String>, _>(column).map_or(Field::Null, Field::Text),
    };
    table.kinds().enumerate().map(field).collect()
}

async fn execute(connection: &mut PgConnection, sql: &str) -> Result<(), StoreError> {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(connection).await.map(drop).map_err(failed)
}

fn failed(error: sqlx::Error) -> StoreError {
    StoreError::Failed(error.to_string())
}
