//! The export of the audit trail as it grows: each action, once it has ended, to a file, a syslog and a collector for OpenTelemetry.
//!
//! What was exported is noted in the data directory after it was sent: a crash in between sends it twice, never not at all.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gander_domain::{Seq, SessionId, Timestamp};
use gander_store::clock;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::otel::send_audit_log_records;
use super::{Audit, AuditRecord, SyslogAddress};
use crate::paths::{append_private_file, write_private_file};
use crate::telemetry::OtlpClient;

/// How often it is looked what has ended.
const EXPORT_INTERVAL: Duration = Duration::from_secs(2);
/// Entries of several sessions are not committed in the order of their times: so far back it is looked again.
const OVERLAP: i64 = 60_000_000;

/// So many actions are sent and noted at a time: a sink that gives up half-way through a long list gets the rest, not all of it
/// again.
const MAX_EXPORT_CHUNK: usize = 100;

/// Where the trail goes as it grows.
#[derive(Clone, Debug, Default)]
pub struct AuditSinks {
    /// JSON lines are appended to this file.
    pub file: Option<PathBuf>,
    pub syslog: Option<SyslogAddress>,
    /// Log records are sent to this collector for OpenTelemetry.
    pub collector: Option<OtlpClient>,
}

/// One place where the trail goes.
enum AuditSink {
    File(PathBuf),
    Syslog(SyslogAddress),
    Collector(OtlpClient),
}

/// Exports a trail until it is stopped.
pub struct AuditExport {
    audit: Audit,
    sinks: Vec<AuditSink>,
    /// Where it is noted what was exported.
    note: PathBuf,
}

/// What each sink has been given, by its name. Each for itself: one that is away must not make the others write twice.
type ExportNote = BTreeMap<String, ExportedActions>;

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
        let AuditSinks { file, syslog, collector } = sinks;
        let sinks: Vec<AuditSink> = file
            .map(AuditSink::File)
            .into_iter()
            .chain(syslog.map(AuditSink::Syslog))
            .chain(collector.map(AuditSink::Collector))
            .collect();
        (!sinks.is_empty()).then_some(Self { audit, sinks, note })
    }

    /// Exports what has ended, again and again, and once more at the end.
    pub async fn run(self, stop: CancellationToken) {
        let mut exported = self.read_note(clock::current_time().as_micros());
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

    /// What was noted before; sinks that are new begin now.
    fn read_note(&self, now: i64) -> ExportNote {
        let text = std::fs::read(&self.note).unwrap_or_default();
        let noted = serde_json::from_slice::<ExportNote>(&text).or_else(|_| {
            // A note of the version before, which had one for all.
            let shared = serde_json::from_slice::<ExportedActions>(&text)?;
            Ok::<_, serde_json::Error>(["file", "syslog"].map(|name| (name.to_owned(), shared.clone())).into())
        });
        let mut noted = noted.unwrap_or_default();
        let first = ExportedActions { from: now, until: now, recent: BTreeSet::new() };
        let names = self.sinks.iter().map(AuditSink::name);
        names.map(|name| (name.to_owned(), noted.remove(name).unwrap_or_else(|| first.clone()))).collect()
    }

    /// Gives each sink what it has not got. The first failure is told; the other sinks get theirs all the same.
    async fn export_new(&self, exported: &mut ExportNote) -> io::Result<()> {
        let since = exported.values().map(ExportedActions::since).min().unwrap_or_default();
        let records = self.audit.ended_since(Timestamp::from_micros(since)).await.map_err(io::Error::other)?;
        let mut result = Ok(());
        for sink in &self.sinks {
            let Some(progress) = exported.get(sink.name()) else { continue };
            let fresh = progress.select_new(&records);
            result = result.and(self.export_to(sink, &fresh, exported).await);
        }
        result
    }

    async fn export_to(&self, sink: &AuditSink, fresh: &[AuditRecord], exported: &mut ExportNote) -> io::Result<()> {
        for chunk in fresh.chunks(MAX_EXPORT_CHUNK) {
            sink.write(chunk).await?;
            if let Some(progress) = exported.get_mut(sink.name()) {
                progress.add(chunk);
            }
            write_private_file(&self.note, &serde_json::to_vec(exported).map_err(io::Error::other)?)?;
        }
        Ok(())
    }
}

impl ExportedActions {
    /// Nothing that ended before is looked at.
    fn since(&self) -> i64 {
        self.from.max(self.until - OVERLAP)
    }

    /// Those that were not exported, in the order of their end.
    fn select_new(&self, records: &[AuditRecord]) -> Vec<AuditRecord> {
        let since = self.since();
        let is_new =
            |record: &&AuditRecord| end_key(record).is_some_and(|key| !self.recent.contains(&key) && key.0 > since);
        let mut fresh: Vec<AuditRecord> = records.iter().filter(is_new).cloned().collect();
        fresh.sort_by_key(end_key);
        fresh
    }

    fn add(&mut self, records: &[AuditRecord]) {
        self.recent.extend(records.iter().filter_map(end_key));
        self.until = self.recent.last().map_or(self.until, |last| last.0.max(self.until));
        let oldest = self.until - OVERLAP;
        self.recent.retain(|(at, ..)| *at > oldest);
    }
}

fn end_key(record: &AuditRecord) -> Option<(i64, SessionId, Seq)> {
    Some((record.ended_at?.as_micros(), record.session, record.seq))
}

impl AuditSink {
    fn name(&self) -> &'static str {
        match self {
            Self::File(_) => "file",
            Self::Syslog(_) => "syslog",
            Self::Collector(_) => "otel",
        }
    }

    async fn write(&self, records: &[AuditRecord]) -> io::Result<()> {
        match self {
            Self::File(file) => append_audit_lines(file, records),
            Self::Syslog(syslog) => syslog.send(records).await,
            Self::Collector(client) => send_audit_log_records(client, records).await,
        }
    }
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
