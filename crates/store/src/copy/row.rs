//! The tables that are copied, and rows in a form that is the same for every database.

use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// A table; its first columns are its key, by which it is read in order.
pub(super) struct CopyTable {
    pub(super) name: &'static str,
    pub(super) shown_as: &'static str,
    pub(super) columns: &'static [(&'static str, ColumnKind)],
    pub(super) key: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnKind {
    Id,
    Number,
    /// A number of two bytes where that matters.
    Small,
    Flag,
    /// A text that people chose, in which anything may be.
    Text,
    /// JSON, in which no NUL can be.
    Json,
}

/// One value. Flags are numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Null,
    Id(Uuid),
    Number(i64),
    Text(String),
}

pub(super) type CopyRow = Vec<Field>;

pub(super) const TABLES: &[CopyTable] = &[
    CopyTable {
        name: "session",
        shown_as: "sessions",
        columns: &[
            ("id", ColumnKind::Id),
            ("epoch", ColumnKind::Number),
            ("owner", ColumnKind::Text),
            ("workspace", ColumnKind::Text),
            ("agent", ColumnKind::Text),
            ("created_at", ColumnKind::Number),
            ("updated_at", ColumnKind::Number),
            ("deleted_at", ColumnKind::Number),
            ("deleted_owner", ColumnKind::Text),
            ("purged", ColumnKind::Flag),
        ],
        key: 1,
    },
    CopyTable {
        name: "entry",
        shown_as: "entries",
        columns: &[
            ("session", ColumnKind::Id),
            ("first", ColumnKind::Number),
            ("last", ColumnKind::Number),
            ("kind", ColumnKind::Small),
            ("body", ColumnKind::Json),
        ],
        key: 2,
    },
    CopyTable {
        name: "alias",
        shown_as: "names",
        columns: &[
            ("principal", ColumnKind::Text),
            ("door", ColumnKind::Text),
            ("namespace", ColumnKind::Text),
            ("text", ColumnKind::Text),
            ("session", ColumnKind::Id),
        ],
        key: 4,
    },
    CopyTable {
        name: "scope",
        shown_as: "facts",
        columns: &[
            ("name", ColumnKind::Text),
            ("seq", ColumnKind::Number),
            ("at", ColumnKind::Number),
            ("fact", ColumnKind::Json),
        ],
        key: 2,
    },
];

impl CopyTable {
    pub(super) fn column_names(&self) -> String {
        self.columns.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    }

    pub(super) fn key_names(&self) -> String {
        self.columns[..self.key].iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    }

    pub(super) fn kinds(&self) -> impl Iterator<Item = ColumnKind> {
        self.columns.iter().map(|(_, kind)| *kind)
    }
}

/// The digest of rows in order: values are told apart by their lengths.
#[derive(Default)]
pub(super) struct CopyDigest(Sha256);

impl CopyDigest {
    pub(super) fn add_row(&mut self, table: &CopyTable, row: &CopyRow) {
        self.0.update(table.name);
        for field in row {
            let (tag, bytes): (u8, Vec<u8>) = match field {
                Field::Null => (0, Vec::new()),
                Field::Id(id) => (1, id.as_bytes().to_vec()),
                Field::Number(number) => (2, number.to_be_bytes().to_vec()),
                Field::Text(text) => (3, text.as_bytes().to_vec()),
            };
            self.0.update([tag]);
            self.0.update((bytes.len() as u64).to_be_bytes());
            self.0.update(bytes);
        }
    }

    pub(super) fn into_text(self) -> String {
        self.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
