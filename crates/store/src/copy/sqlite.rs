//! One end of a copy that is a file.

use std::path::Path;

use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, Connection as _, QueryBuilder, Row as _, Sqlite};
use uuid::Uuid;

use super::row::{ColumnKind, CopyRow, CopyTable, Field};
use crate::StoreError;
use crate::sqlite::{ExclusiveFile, open_exclusive};

pub(super) struct SqliteSide {
    file: ExclusiveFile,
}

impl SqliteSide {
    /// Makes the file if there is none. Nobody else can have it open.
    pub(super) async fn open(folder: &Path) -> Result<Self, StoreError> {
        let mut file = open_exclusive(folder).await?;
        execute(&mut file.connection, "BEGIN IMMEDIATE").await?;
        Ok(Self { file })
    }

    pub(super) async fn page(
        &mut self,
        table: &CopyTable,
        after: Option<&CopyRow>,
        limit: usize,
    ) -> Result<Vec<CopyRow>, StoreError> {
        let mut builder: QueryBuilder<Sqlite> =
            QueryBuilder::new(format!("SELECT {} FROM {}", table.column_names(), table.name));
        if let Some(row) = after {
            builder.push(format!(" WHERE ({}) > (", table.key_names()));
            let mut values = builder.separated(", ");
            for field in &row[..table.key] {
                match field {
                    Field::Null => values.push("NULL"),
                    Field::Id(id) => values.push_bind(id.as_bytes().to_vec()),
                    Field::Number(number) => values.push_bind(*number),
                    Field::Text(text) => values.push_bind(text.clone()),
                };
            }
            builder.push(")");
        }
        builder.push(format!(" ORDER BY {} LIMIT {limit}", table.key_names()));
        let rows = builder.build().persistent(false).fetch_all(&mut self.file.connection).await.map_err(failed)?;
        rows.iter().map(|row| decode_row(table, row)).collect()
    }

    pub(super) async fn insert(&mut self, table: &CopyTable, rows: &[CopyRow]) -> Result<(), StoreError> {
        let mut builder: QueryBuilder<Sqlite> =
            QueryBuilder::new(format!("INSERT INTO {} ({}) ", table.name, table.column_names()));
        builder.push_values(rows, |mut values, row| {
            for field in row {
                match field {
                    Field::Null => values.push("NULL"),
                    Field::Id(id) => values.push_bind(id.as_bytes().to_vec()),
                    Field::Number(number) => values.push_bind(*number),
                    Field::Text(text) => values.push_bind(text.clone()),
                };
            }
        });
        builder.build().persistent(false).execute(&mut self.file.connection).await.map(drop).map_err(failed)
    }

    pub(super) async fn incarnation(&mut self) -> Result<i64, StoreError> {
        let query = sqlx::query("SELECT incarnation FROM meta").persistent(false);
        Ok(query.fetch_one(&mut self.file.connection).await.map_err(failed)?.get(0))
    }

    pub(super) async fn commit(mut self, incarnation: i64) -> Result<(), StoreError> {
        execute(&mut self.file.connection, &format!("UPDATE meta SET incarnation = {incarnation}")).await?;
        execute(&mut self.file.connection, "COMMIT").await?;
        self.file.connection.close().await.map_err(failed)
    }
}

fn decode_row(table: &CopyTable, row: &SqliteRow) -> Result<CopyRow, StoreError> {
    let field = |(column, kind): (usize, ColumnKind)| {
        Ok(match kind {
            ColumnKind::Id => match row.get::<Option<&[u8]>, _>(column) {
                Some(bytes) => {
                    Field::Id(Uuid::from_slice(bytes).map_err(|error| StoreError::Corrupt(error.to_string()))?)
                }
                None => Field::Null,
            },
            ColumnKind::Number | ColumnKind::Small | ColumnKind::Flag => {
                row.get::<Option<i64>, _>(column).map_or(Field::Null, Field::Number)
            }
            ColumnKind::Text | ColumnKind::Json => {
                row.get::<Option<String>, _>(column).map_or(Field::Null, Field::Text)
            }
        })
    };
    table.kinds().enumerate().map(field).collect()
}

async fn execute(connection: &mut SqliteConnection, sql: &str) -> Result<(), StoreError> {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(connection).await.map(drop).map_err(failed)
}

fn failed(error: sqlx::Error) -> StoreError {
    StoreError::Failed(error.to_string())
}
