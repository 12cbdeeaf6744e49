//! Records of the audit trail as log records of OpenTelemetry.

use std::io;

use gander_store::clock;
use serde_json::{Value, json};

use super::syslog::audit_record_text;
use super::{AuditDecision, AuditRecord};
use crate::telemetry::{OtlpClient, otlp_attribute, otlp_time};

/// So many are sent at once.
const BATCH_RECORDS: usize = 100;
/// What makes a record longer is left out.
const MAX_BODY_BYTES: usize = 64 * 1024;
/// Severity `INFO`.
const SEVERITY: u8 = 9;

/// Sends these, or fails: what was sent before the failure is sent again.
pub(super) async fn send_audit_log_records(client: &OtlpClient, records: &[AuditRecord]) -> io::Result<()> {
    for some in records.chunks(BATCH_RECORDS) {
        let messages: Vec<Value> = some.iter().map(audit_log_record).collect();
        let rejected = client.send_log_records(&messages).await.map_err(io::Error::other)?;
        if rejected > 0 {
            tracing::warn!(rejected, "the collector takes some records of the audit trail never");
        }
    }
    Ok(())
}

/// The record as it is in the exported file, and what one searches by.
fn audit_log_record(record: &AuditRecord) -> Value {
    let decision = match &record.decision {
        AuditDecision::Unasked => "unasked",
        AuditDecision::Pending => "pending",
        AuditDecision::Chosen { choice } => choice,
        AuditDecision::Declined { reason } => reason,
        AuditDecision::Refused => "refused",
    };
    let attributes = [
        ("gen_ai.conversation.id", Some(json!(record.session))),
        ("gen_ai.tool.name", Some(json!(record.tool))),
        ("gander.asked_by", record.asked_by.as_ref().map(|principal| json!(principal))),
        ("gander.protocol", record.protocol.as_ref().map(|protocol| json!(protocol))),
        ("gander.decision", Some(json!(decision))),
        ("process.exit.code", record.exit_code.map(|code| json!(code))),
    ];
    let known = attributes.iter().filter_map(|(key, value)| Some(otlp_attribute(key, value.as_ref()?)));
    json!({
        "timeUnixNano": otlp_time(record.ended_at.unwrap_or(record.at)),
        "observedTimeUnixNano": otlp_time(clock::current_time()),
        "severityNumber": SEVERITY,
        "severityText": "INFO",
        "eventName": "gander.audit",
        "body": { "stringValue": audit_record_text(record, MAX_BODY_BYTES) },
        "attributes": known.collect::<Vec<_>>(),
    })
}
