//! What every store must do, run against each of them.
//!
//! A store passes if every case here does. Another one joins by implementing [`Harness`] and one line at the end.
//!
//! Seeded bugs (`RUSTFLAGS='--cfg bug="…"'`) and the case that each must turn red:
//! - `publish_before_commit`: `sqlite::a_failed_commit_shows_nothing`
//! - `drop_entry`: `sqlite::resume_from_every_place_gives_the_suffix`
//! - `duplicate_entry`: `sqlite::the_tail_gives_exactly_what_was_written`
//! - `reorder`: `sqlite::the_tail_gives_exactly_what_was_written`
//! - `ignore_epoch`: `sqlite::an_old_writer_is_fenced`
#![allow(clippy::unwrap_used)]

mod cluster;
mod lists;
mod order;
mod side;
mod tails;

use gander_store::{MemoryStore, PostgresOptions, PostgresStore, SqliteStore, Store, StoreOptions};
use gander_testkit::postgres::new_schema;
use gander_testkit::skip::skipped;

/// Makes stores for the cases.
pub(crate) trait Harness {
    type S: Store;

    async fn open(&self) -> Self::S;

    /// Closes a store and opens what it left.
    async fn reopen(&self, store: Self::S) -> Self::S;
}

pub struct Memory;

impl Harness for Memory {
    type S = MemoryStore;

    async fn open(&self) -> MemoryStore {
        MemoryStore::new()
    }

    async fn reopen(&self, store: MemoryStore) -> MemoryStore {
        store.close().await.unwrap();
        store.reopen_with_same_data()
    }
}

pub struct Sqlite(tempfile::TempDir);

impl Sqlite {
    fn options(&self) -> StoreOptions {
        StoreOptions::new(self.0.path().join("data"))
    }
}

impl Harness for Sqlite {
    type S = SqliteStore;

    async fn open(&self) -> SqliteStore {
        SqliteStore::open(self.options()).await.unwrap()
    }

    async fn reopen(&self, store: SqliteStore) -> SqliteStore {
        store.close().await.unwrap();
        self.open().await
    }
}

/// A schema of its own in a real server.
pub struct Postgres(PostgresOptions);

impl Postgres {
    /// None if no PostgreSQL is installed.
    pub fn installed() -> Option<Self> {
        let Some(url) = new_schema(&crate::SERVER) else {
            skipped("store::postgres", "PostgreSQL is not installed");
            return None;
        };
        Some(Self(PostgresOptions::new(url.parse().unwrap())))
    }
}

impl Harness for Postgres {
    type S = PostgresStore;

    async fn open(&self) -> PostgresStore {
        PostgresStore::open(self.0.clone()).await.unwrap()
    }

    async fn reopen(&self, store: PostgresStore) -> PostgresStore {
        store.close().await.unwrap();
        self.open().await
    }
}

macro_rules! cases {
    ($store:ident, $harness:expr, $($file:ident::{$($case:ident),* $(,)?}),* $(,)?) => {
        mod $store {
            $($(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    super::$file::$case(&$harness).await;
                }
            )*)*
        }
    };
}

macro_rules! every_case {
    ($store:ident, $harness:expr) => {
        cases!(
            $store,
            $harness,
            order::{
                entries_come_back_as_written,
                deep_values_come_back_as_written,
                unknown_content_comes_back_as_written,
                gaps_and_duplicates_are_refused,
                an_old_writer_is_fenced,
                one_that_does_not_fit_does_not_hold_back_the_others,
                resume_from_every_place_gives_the_suffix,
                joined_is_exact_after_joining,
                a_limit_bounds_a_read,
                a_place_beyond_the_end_is_told,
                a_long_session_comes_back_whole,
                barriers_are_counted,
            },
            tails::{
                the_tail_gives_exactly_what_was_written,
                live_equals_stored,
                what_is_shown_can_be_read,
                a_reader_that_never_reads_changes_nothing,
                what_is_big_is_read_from_the_log,
                a_tail_ends_with_its_session,
                a_tail_ends_with_its_store,
                a_change_wakes_only_those_who_watch_its_owner,
            },
            side::{
                snapshots_are_found_by_place_and_version,
                names_lead_to_sessions_until_they_are_freed,
                names_of_one_namespace_are_listed_in_pages,
                a_taken_name_creates_nothing,
                a_deleted_session_leaves_only_its_id,
                scopes_are_logs_of_their_own,
                a_shortened_scope_goes_on_from_its_place,
                scope_facts_share_their_sessions_fate,
                runs_and_questions_follow_the_log,
                folds_can_be_made_again,
                a_closed_store_says_so,
            },
            lists::{
                cards_follow_the_log,
                filters_and_search_find_what_they_should,
                paging_gives_each_once_while_others_change,
            },
        );
    };
}

every_case!(memory, crate::conformance::Memory);
every_case!(sqlite, crate::conformance::Sqlite(tempfile::tempdir().unwrap()));
every_case!(
    postgres,
    match crate::conformance::Postgres::installed() {
        Some(postgres) => postgres,
        None => return,
    }
);

macro_rules! every_cluster_case {
    ($store:ident, $harness:expr) => {
        mod $store {
            use super::cluster;
            every_cluster_case!(@each $harness,
                one_node_owns_a_session_until_its_lease_ends,
                a_released_session_is_free_and_kept_again_by_its_writer,
                work_is_claimed_once,
                who_leaves_hands_its_sessions_over,
                a_pinned_session_stays_with_its_label,
                commands_reach_the_owner_and_answers_the_sender,
                a_command_is_answered_with_its_entries_or_not_at_all,
                commands_that_wait_are_work,
                a_withdrawn_command_is_gone,
                a_withdrawn_command_is_not_carried_out,
                a_command_that_its_reader_cannot_read_is_refused,
                a_reader_elsewhere_sees_everything_once,
                a_reader_elsewhere_needs_no_hint,
            );
        }
    };
    (@each $harness:expr, $($case:ident),* $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                cluster::$case(&$harness).await;
            }
        )*
    };
}

every_cluster_case!(memory_cluster, crate::conformance::Memory);
every_cluster_case!(
    postgres_cluster,
    match crate::conformance::Postgres::installed() {
        Some(postgres) => postgres,
        None => return,
    }
);
