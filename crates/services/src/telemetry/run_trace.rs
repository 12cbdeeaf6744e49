//! The ids of a run's trace, which follow from what its log says: every node gets the same.

use gander_domain::trace::{TRACE_META, TraceContext};
use gander_domain::{RunId, SessionId};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// A run as a part of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunTrace {
    trace_id: u128,
    span_id: u64,
    /// The span of whoever asked.
    pub parent: Option<u64>,
    sampled: bool,
}

impl RunTrace {
    /// From what a run's first entry keeps. The span of the request comes first, then what an ACP client names in `_meta`
    /// (the protocol reserves the key for this), else the run begins a trace of its own.
    pub fn new(session: SessionId, run: RunId, meta: Option<&Value>) -> Self {
        let named = |pointer: &str| meta?.pointer(pointer)?.as_str()?.parse::<TraceContext>().ok();
        let parent = named(&format!("/{TRACE_META}")).or_else(|| named("/acp/_meta/traceparent"));
        Self {
            trace_id: parent.map_or_else(|| derived_id("trace", session, &run.to_string()), |parent| parent.trace_id),
            span_id: derived_id("run", session, &run.to_string()) as u64 | 1,
            parent: parent.map(|parent| parent.span_id),
            sampled: parent.is_none_or(|parent| parent.sampled),
        }
    }

    /// The run's own span, the parent of what it does.
    pub fn context(&self) -> TraceContext {
        TraceContext { trace_id: self.trace_id, span_id: self.span_id, sampled: self.sampled }
    }

    /// The span of something that the run did.
    pub fn part(&self, session: SessionId, kind: &str, id: &str) -> TraceContext {
        TraceContext { span_id: derived_id(kind, session, id) as u64 | 1, ..self.context() }
    }
}

/// Never 0. Ids of runs can be chosen by clients, so that they are no ids of spans themselves.
fn derived_id(kind: &str, session: SessionId, id: &str) -> u128 {
    let digest = Sha256::digest(format!("{kind} {session} {id}"));
    digest.iter().take(16).fold(0, |number: u128, byte| number << 8 | u128::from(*byte)) | 1
}
