//! The export of the audit trail as it grows: each action, once it has ended, to a file and to a syslog.
//!
//! What was exported is noted in the data directory after it was sent: a crash in between sends it twice, never not at all.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gander_domain::{Seq, SessionId, Timestamp};
use gander_store::clock;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::{Audit, AuditRecord, SyslogAddress};
use crate::paths::{append_private_file, write_private_file};

/// How often it is looked what has ended.
const EXPORT_INTERVAL: Duration = Duration::from_secs(2);
/// Entries of several sessions are not committed in the order of their times: so far back it is looked again.
const OVERLAP: i64 = 60_000_000;

/// Where the trail goes as it grows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditSinks {
    /// JSON lines are appended to this file.
    pub file: Option<PathBuf>,
    pub syslog: Option<SyslogAddress>,
}

/// Exports a trail until it is stopped.
pub struct AuditExport {
    audit: Audit,
    sinks: AuditSinks,
    /// Where it is noted what was exported.
    note: PathBuf,
}

/// What was exported: everything that ended between `from` and `until`, and these that ended shortly before or after.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct ExportedActions {
    /// When the export was first switched on. What ended before is not sent: `gander audit --output` has it.
    from: i64,
    until: i64,
    recent: BTreeSet<(i64, SessionId, Seq)>,
}

impl AuditExport {
    /// None if there is nowhere to export to.
    pub fn new(audit: Audit, sinks: AuditSinks, note: PathBuf) -> Option<Self> {
        (sinks != AuditSinks::default()).then_some(Self { audit, sinks, note })
    }

    /// Exports what has ended, again and again, and once more at the end.
    pub async fn run(self, stop: CancellationToken) {
        let now = clock::current_time().as_micros();
        let first = || ExportedActions { from: now, until: now, recent: BTreeSet::new() };
        let mut exported = read_exported_actions(&self.note).unwrap_or_else(first);
        let (mut every, mut is_failing) = (tokio::time::interval(EXPORT_INTERVAL), false);
        loop {
            let is_last = tokio::select! {
                () = stop.cancelled() => true,
                _ = every.tick() => false,
            };
            match self.export_new(&mut exported).await {
                Ok(()) => is_failing = false,
                Err(error) if !is_failing => {
                    tracing::error!(%error, "the audit trail cannot be exported, it is tried again");
                    is_failing = true;
                }
                Err(_) => {}
            }
            if is_last {
                return;
            }
        }
    }

    async fn export_new(&self, exported: &mut ExportedActions) -> io::Result<()> {
        let since = exported.from.max(exported.until - OVERLAP);
        let records = self.audit.ended_since(Timestamp::from_micros(since)).await.map_err(io::Error::other)?;
        let key = |record: &AuditRecord| Some((record.ended_at?.as_micros(), record.session, record.seq));
        let is_new =
            |record: &AuditRecord| key(record).is_some_and(|key| !exported.recent.contains(&key) && key.0 > since);
        let mut fresh: Vec<AuditRecord> = records.into_iter().filter(is_new).collect();
        if fresh.is_empty() {
            return Ok(());
        }
        fresh.sort_by_key(key);
        if let Some(file) = &self.sinks.file {
            append_audit_lines(file, &fresh)?;
        }
        if let Some(syslog) = &self.sinks.syslog {
            syslog.send(&fresh).await?;
        }
        exported.recent.extend(fresh.iter().filter_map(key));
        exported.until = exported.recent.last().map_or(exported.until, |last| last.0.max(exported.until));
        let oldest = exported.until - OVERLAP;
        exported.recent.retain(|(at, ..)| *at > oldest);
        write_private_file(&self.note, &serde_json::to_vec(exported).map_err(io::Error::other)?)
    }
}

fn read_exported_actions(note: &Path) -> Option<ExportedActions> {
    serde_json::from_slice(&std::fs::read(note).ok()?).ok()
}

/// Appended in one write and synced: a line is there whole or not at all.
fn append_audit_lines(file: &Path, records: &[AuditRecord]) -> io::Result<()> {
    let mut lines = Vec::new();
    for record in records {
        serde_json::to_writer(&mut lines, record).map_err(io::Error::other)?;
        lines.push(b'\n');
    }
    append_private_file(file, &lines)
}
