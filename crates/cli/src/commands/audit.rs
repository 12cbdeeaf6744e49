//! `gander audit`: who asked for what, who allowed it from where, what ran and how it ended.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use gander_services::units::DurationSetting;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::session_id::resolve_session_id;
use super::{client, shell_completion};
use crate::commands::{Context, Exit};
use crate::terminal::list_table::{print_list_table, table_local_time};

/// Where the system's log listens.
const SYSLOG: &str = "/dev/log";

/// Facility `authpriv`, severity `info`.
const SYSLOG_PRIORITY: u8 = 10 * 8 + 6;

/// Options of `gander audit`.
#[derive(Debug, Args)]
pub(super) struct AuditOptions {
    /// Only this session (ID, or its beginning)
    #[arg(long, value_name = "ID", add = shell_completion::complete_sessions())]
    session: Option<String>,
    /// Only what was called since: a time such as 2026-01-31T09:00:00Z, or a span such as 2d
    #[arg(long, value_name = "TIME", value_parser = read_audit_since)]
    since: Option<Timestamp>,
    /// Only what this principal asked for, answered or owns
    #[arg(long, value_name = "NAME")]
    principal: Option<String>,
    /// At most so many, the newest
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    limit: usize,
    /// One JSON object per line
    #[arg(long)]
    json: bool,
    /// Write JSON lines to this new file, readable by its owner only
    #[arg(long, value_name = "FILE", conflicts_with = "syslog")]
    output: Option<PathBuf>,
    /// Send each action to the system's log as JSON
    #[arg(long)]
    syslog: bool,
}

/// A time, or how long ago it was.
fn read_audit_since(text: &str) -> Result<Timestamp, String> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at);
    }
    let DurationSetting(span) = text.parse().map_err(|_| "a time is 2026-01-31T09:00:00Z or a span such as 2d")?;
    Timestamp::now().checked_sub(span).map_err(|_| "that is too long ago".to_owned())
}

pub(super) async fn run(context: Context, options: AuditOptions) -> anyhow::Result<Exit> {
    let mut connection = client::connect_client(&context.config, &std::env::current_dir()?).await?;
    let session = match &options.session {
        // A deleted session is found by its whole id only.
        Some(id) if id.len() < 36 => Some(resolve_session_id(&mut connection, id).await?),
        Some(id) => Some(id.clone()),
        None => None,
    };
    let since = options.since.map(Timestamp::as_microsecond);
    let params = json!({ "session": session, "since": since, "principal": options.principal, "limit": options.limit });
    let answer = connection.call_method("_gander/audit", &params).await?;
    let records = answer["records"].as_array().cloned().unwrap_or_default();
    match &options.output {
        Some(file) => write_audit_file(file, &records)?,
        None if options.syslog => send_audit_to_syslog(Path::new(SYSLOG), &records)?,
        None if options.json => records.iter().try_for_each(|record| context.output.line(&record.to_string()))?,
        None if records.is_empty() => context.output.note("Nothing was done."),
        None => {
            let rows: Vec<Vec<String>> = records.iter().map(audit_row).collect();
            let header = ["TIME", "SESSION", "ASKED BY", "DECISION", "ANSWERED BY", "END", "WHAT"];
            print_list_table(context.output, &header, &rows)?;
        }
    }
    Ok(Exit::Done)
}

fn write_audit_file(file: &Path, records: &[Value]) -> anyhow::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    let opened = options.write(true).create_new(true).mode(0o600).open(file);
    let mut out = std::io::BufWriter::new(opened.with_context(|| format!("cannot create {}", file.display()))?);
    records.iter().try_for_each(|record| writeln!(out, "{record}"))?;
    out.flush().with_context(|| format!("cannot write {}", file.display()))
}

fn send_audit_to_syslog(socket: &Path, records: &[Value]) -> anyhow::Result<()> {
    let log = UnixDatagram::unbound()?;
    if let Err(error) = log.connect(socket) {
        bail!("the system's log does not listen, {error}: {}", socket.display());
    }
    for record in records {
        log.send(format!("<{SYSLOG_PRIORITY}>gander-audit: {record}").as_bytes())?;
    }
    Ok(())
}

fn audit_row(record: &Value) -> Vec<String> {
    let text = |name: &str| record[name].as_str().unwrap_or_default().to_owned();
    let beside = |who: &str, from: &str| match (text(who), text(from)) {
        (who, from) if from.is_empty() => who,
        (who, from) => format!("{who} ({from})"),
    };
    let decision = &record["decision"];
    let decided = ["choice", "reason", "type"].iter().find_map(|name| decision[*name].as_str()).unwrap_or_default();
    let end = match record["exit_code"].as_i64() {
        Some(code) => format!("{} ({code})", text("end")),
        None => text("end"),
    };
    let what = if record["title"].is_string() { text("title") } else { format!("{} (deleted)", text("tool")) };
    vec![
        table_local_time(record["at"].as_i64().unwrap_or_default()),
        text("session").chars().take(8).collect(),
        beside("asked_by", "protocol"),
        decided.to_owned(),
        beside("answered_by", "answered_from"),
        end,
        what,
    ]
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_one_datagram_of_the_systems_log() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let log = UnixDatagram::bind(&path).unwrap();
        send_audit_to_syslog(&path, &[json!({"tool": "shell"})]).unwrap();
        let mut buffer = [0; 200];
        let length = log.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], br#"<86>gander-audit: {"tool":"shell"}"#);
    }

    #[test]
    fn a_file_is_new_and_its_owners() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("audit.jsonl");
        write_audit_file(&file, &[json!({"tool": "a"}), json!({"tool": "b"})]).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "{\"tool\":\"a\"}\n{\"tool\":\"b\"}\n");
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(write_audit_file(&file, &[]).is_err(), "nothing is overwritten");
    }

    #[test]
    fn since_is_a_time_or_a_span() {
        assert!(read_audit_since("2026-01-31T09:00:00Z").is_ok());
        assert!(read_audit_since("2d").is_ok_and(|at| at < Timestamp::now()));
        assert!(read_audit_since("yesterday").is_err());
    }
}
