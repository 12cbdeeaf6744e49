//! Connections to PostgreSQL: its address, what every connection is told, the schema, and which incarnation this is.

use std::str::FromStr;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Row};

use super::failure::postgres_store_error;
use crate::StoreError;

/// The schema, step by step. A step that was released is never changed.
const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/postgres/0001_log.sql"),
    include_str!("../../migrations/postgres/0002_append.sql"),
    include_str!("../../migrations/postgres/0003_node.sql"),
    include_str!("../../migrations/postgres/0004_withdrawn.sql"),
];

/// The oldest server that the schema was tried on.
const MIN_SERVER_VERSION: i32 = 150_000;

/// Whoever migrates holds this lock, so that servers which start together do it once.
const MIGRATION_LOCK: i64 = 0x6761_6e64_6572;

/// The seconds since 2020, if they are more than the last number plus one: the same copy may be restored twice, and a cursor of
/// the first time must not fit the second.
const NEXT_INCARNATION_SQL: &str =
    "GREATEST(incarnation + 1, EXTRACT(EPOCH FROM clock_timestamp())::BIGINT - 1577836800)::INTEGER";

/// How long a connection may take.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// A connection that was idle for longer is tried before it is used.
const TRUSTED_IDLE: Duration = Duration::from_secs(1);

/// Where the database is. Its password is in no text that this gives.
#[derive(Clone)]
pub struct PostgresUrl {
    options: PgConnectOptions,
}

impl FromStr for PostgresUrl {
    type Err = StoreError;

    fn from_str(url: &str) -> Result<Self, StoreError> {
        if !is_postgres_url(url) {
            return Err(StoreError::Invalid("not a URL that begins with postgres://".to_owned()));
        }
        let options = PgConnectOptions::from_str(url);
        // The parser's message may hold pieces of the URL, and so of the password.
        let options = options.map_err(|_| StoreError::Invalid("not a URL of a PostgreSQL database".to_owned()))?;
        if options.get_database().is_none() {
            return Err(StoreError::Invalid("the URL names no database".to_owned()));
        }
        let options = match options.get_application_name() {
            Some(_) => options,
            None => options.application_name("gander"),
        };
        Ok(Self { options: options.disable_statement_logging() })
    }
}

/// Without the password.
impl std::fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (user, database) = (self.options.get_username(), self.options.get_database().unwrap_or_default());
        match self.options.get_socket() {
            Some(socket) => write!(f, "postgres://{user}@/{database}?host={}", socket.display()),
            None => write!(f, "postgres://{user}@{}:{}/{database}", self.options.get_host(), self.options.get_port()),
        }
    }
}

/// The same: the options' own form shows the password.
impl std::fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

/// True if a store's address is that of a PostgreSQL database.
pub fn is_postgres_url(text: &str) -> bool {
    text.starts_with("postgres://") || text.starts_with("postgresql://")
}

/// One connection of a writer, and which process of the server is behind it.
pub(super) struct WriterConnection {
    pub(super) connection: PgConnection,
    pub(super) backend: Backend,
}

/// A process of the database server: its number and when it began, since numbers come again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Backend {
    pub(super) pid: i32,
    pub(super) began: String,
}

impl PostgresUrl {
    /// Opens a connection for a writer.
    pub(super) async fn connect_writer(&self) -> Result<WriterConnection, sqlx::Error> {
        let mut connection = self.connect().await?;
        // Every batch has the same form: plans are made once, and rows are found one by one in the order of their ids.
        let settings = "SET plan_cache_mode = force_generic_plan; SET enable_hashjoin = off; SET enable_mergejoin = off; \
             SET enable_seqscan = off; SET jit = off; SET lock_timeout = '5s'";
        sqlx::raw_sql(settings).execute(&mut connection).await?;
        let query = "SELECT pid, backend_start::text FROM pg_stat_activity WHERE pid = pg_backend_pid()";
        let row = sqlx::query(query).persistent(false).fetch_one(&mut connection).await?;
        let backend = Backend { pid: row.try_get(0)?, began: row.try_get(1)? };
        Ok(WriterConnection { connection, backend })
    }

    /// One connection, told what each is told.
    pub(super) async fn connect(&self) -> Result<PgConnection, sqlx::Error> {
        let connecting = async {
            let mut connection = self.options.connect().await?;
            prepare_connection(&mut connection).await?;
            Ok(connection)
        };
        let late = |_| sqlx::Error::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, "no connection in time"));
        tokio::time::timeout(CONNECT_TIMEOUT, connecting).await.map_err(late)?
    }

    /// Connections for everything but appends. They are made when they are needed.
    pub(super) fn pool(&self, connections: u32) -> PgPool {
        let options = PgPoolOptions::new()
            .max_connections(connections)
            .acquire_timeout(CONNECT_TIMEOUT)
            .idle_timeout(Duration::from_secs(120))
            .max_lifetime(Duration::from_secs(1_800))
            .test_before_acquire(false)
            .before_acquire(|connection, idle| {
                Box::pin(async move {
                    if idle.idle_for > TRUSTED_IDLE {
                        connection.ping().await?;
                    }
                    Ok(true)
                })
            })
            .after_connect(|connection, _| Box::pin(prepare_connection(connection)));
        options.connect_lazy_with(self.options.clone())
    }
}

/// Lists walk an index in its order and stop at their limit: a bitmap would have to be sorted as a whole.
///
/// Refuses a standby, and has every commit wait for the disk: a server that was told not to would lose what clients have seen
/// when it crashes.
async fn prepare_connection(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    let query = "SELECT pg_is_in_recovery(), \
         CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', FALSE) END, \
         set_config('statement_timeout', '30s', FALSE), set_config('lock_timeout', '10s', FALSE), \
         set_config('enable_bitmapscan', 'off', FALSE)";
    let row = sqlx::query(query).persistent(false).fetch_one(connection).await?;
    if row.try_get::<bool, _>(0)? {
        return Err(sqlx::Error::Io(std::io::Error::other("this PostgreSQL server is a standby, not the primary")));
    }
    Ok(())
}

/// Brings the schema up; refuses what a later version wrote, and servers that are too old.
pub(super) async fn run_migrations(connection: &mut PgConnection) -> Result<(), StoreError> {
    let query = sqlx::query("SELECT current_setting('server_version_num')::INTEGER").persistent(false);
    let version: i32 = query.fetch_one(&mut *connection).await.map_err(postgres_store_error)?.get(0);
    if version < MIN_SERVER_VERSION {
        return Err(StoreError::Failed(format!("PostgreSQL 15 or later is needed, found: {}", version / 10_000)));
    }
    let mut transaction = connection.begin().await.map_err(postgres_store_error)?;
    let lock = sqlx::query("SELECT pg_advisory_xact_lock($1)").persistent(false).bind(MIGRATION_LOCK);
    lock.execute(&mut *transaction).await.map_err(postgres_store_error)?;
    let found = schema_version(&mut transaction).await?;
    let known = MIGRATIONS.len() as u32;
    if found > known {
        return Err(StoreError::Newer { found, known });
    }
    for sql in MIGRATIONS.iter().skip(found as usize) {
        sqlx::raw_sql(*sql).execute(&mut *transaction).await.map_err(postgres_store_error)?;
    }
    if found < known {
        let stamp = AssertSqlSafe(format!("UPDATE meta SET version = {known}"));
        sqlx::raw_sql(stamp).execute(&mut *transaction).await.map_err(postgres_store_error)?;
    }
    transaction.commit().await.map_err(postgres_store_error)
}

/// 0 if there is none yet.
async fn schema_version(connection: &mut PgConnection) -> Result<u32, StoreError> {
    let query = sqlx::query("SELECT to_regclass('meta') IS NOT NULL, current_schema() IS NOT NULL").persistent(false);
    let row = query.fetch_one(&mut *connection).await.map_err(postgres_store_error)?;
    if !row.get::<bool, _>(1) {
        return Err(StoreError::Failed("the schema that the URL's search_path names does not exist".to_owned()));
    }
    if !row.get::<bool, _>(0) {
        return Ok(0);
    }
    let query = sqlx::query("SELECT version FROM meta").persistent(false);
    let version: i32 = query.fetch_one(connection).await.map_err(postgres_store_error)?.get(0);
    Ok(u32::try_from(version).unwrap_or(0))
}

/// What there is at a URL. Nothing is made or changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseInfo {
    pub server_version: String,
    /// The version of the tables; 0 if there are none yet.
    pub schema: u32,
    pub incarnation: u32,
    /// As the server estimates.
    pub sessions: u64,
    /// What the database takes up on its disk.
    pub bytes: u64,
}

pub(super) async fn read_database_info(connection: &mut PgConnection) -> Result<DatabaseInfo, StoreError> {
    let schema = schema_version(connection).await?;
    let query = "SELECT current_setting('server_version'), pg_database_size(current_database()), \
         COALESCE((SELECT GREATEST(reltuples, 0)::BIGINT FROM pg_class WHERE oid = to_regclass('session')), 0)";
    let row = sqlx::query(query).persistent(false).fetch_one(&mut *connection).await.map_err(postgres_store_error)?;
    let incarnation: i32 = match schema {
        0 => 0,
        _ => {
            let query = sqlx::query("SELECT incarnation FROM meta").persistent(false);
            query.fetch_one(connection).await.map_err(postgres_store_error)?.get(0)
        }
    };
    Ok(DatabaseInfo {
        server_version: row.get(0),
        schema,
        incarnation: incarnation.unsigned_abs(),
        sessions: row.get::<i64, _>(2).unsigned_abs(),
        bytes: row.get::<i64, _>(1).unsigned_abs(),
    })
}

/// Which incarnation this is. Another server, timeline or database than the last time is a copy or a promoted standby, whose end
/// may be missing: it begins a new one, once, whoever sees it first.
pub(super) async fn read_incarnation(connection: &mut PgConnection) -> Result<u32, StoreError> {
    let identity = read_identity(connection).await?;
    let query = sqlx::query(AssertSqlSafe(format!(
        "UPDATE meta SET incarnation = CASE WHEN identity = '' THEN incarnation ELSE {NEXT_INCARNATION_SQL} END, \
         identity = $1 WHERE identity <> $1"
    )));
    query.persistent(false).bind(&identity).execute(&mut *connection).await.map_err(postgres_store_error)?;
    let query = sqlx::query("SELECT incarnation FROM meta").persistent(false);
    let incarnation: i32 = query.fetch_one(connection).await.map_err(postgres_store_error)?.get(0);
    Ok(incarnation.unsigned_abs())
}

/// Starts a new incarnation: cursors of earlier ones are refused from now on.
pub(super) async fn begin_incarnation(connection: &mut PgConnection) -> Result<u32, StoreError> {
    let query = AssertSqlSafe(format!("UPDATE meta SET incarnation = {NEXT_INCARNATION_SQL} RETURNING incarnation"));
    let query = sqlx::query(query).persistent(false);
    let incarnation: i32 = query.fetch_one(connection).await.map_err(postgres_store_error)?.get(0);
    Ok(incarnation.unsigned_abs())
}

/// A connection to a database whose tables are there and whose identity is noted.
pub(crate) async fn open_for_copy(url: &PostgresUrl) -> Result<PgConnection, StoreError> {
    let mut connection = url.connect().await.map_err(postgres_store_error)?;
    run_migrations(&mut connection).await?;
    read_incarnation(&mut connection).await?;
    Ok(connection)
}

/// Where hints of this log's nodes are sent: other schemas of the database have their own.
pub(super) async fn hint_channel(connection: &mut PgConnection) -> Result<String, StoreError> {
    let query = sqlx::query("SELECT 'gander_' || 'meta'::regclass::oid").persistent(false);
    Ok(query.fetch_one(connection).await.map_err(postgres_store_error)?.get(0))
}

/// The server, its timeline, the database and the table itself. A restored dump has another table, a promoted standby another
/// timeline.
async fn read_identity(connection: &mut PgConnection) -> Result<String, StoreError> {
    let query = "SELECT format('%s/%s/%s/%s', (SELECT system_identifier FROM pg_control_system()), \
         left(pg_walfile_name(pg_current_wal_insert_lsn()), 8), \
         (SELECT oid FROM pg_database WHERE datname = current_database()), 'meta'::regclass::oid)";
    let row = sqlx::query(query).persistent(false).fetch_one(connection).await.map_err(postgres_store_error)?;
    Ok(row.get(0))
}
