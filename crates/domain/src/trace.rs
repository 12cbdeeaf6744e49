//! The trace that a request belongs to, as W3C Trace Context has it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Where in the meta of a run's first entry its [`TraceContext`] stands. Every node finds it there, whoever was asked.
pub const TRACE_META: &str = "trace";

/// A span of a trace, as the parent of others: what the header `traceparent` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TraceContext {
    /// Never 0.
    pub trace_id: u128,
    /// Never 0.
    pub span_id: u64,
    /// Whoever began the trace wants it recorded.
    pub sampled: bool,
}

/// It is no `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a traceparent")]
pub struct BadTraceContext;

impl FromStr for TraceContext {
    type Err = BadTraceContext;

    /// Versions to come may have more fields behind these; version `ff` is forbidden.
    fn from_str(text: &str) -> Result<Self, BadTraceContext> {
        let mut fields = text.split('-');
        let mut next = |length: usize| fields.next().and_then(|field| lower_hex(field, length)).ok_or(BadTraceContext);
        let (version, trace_id, span_id, flags) = (next(2)?, next(32)?, next(16)?, next(2)?);
        let has_more = fields.next().is_some();
        if version == 0xff || (version == 0 && has_more) || trace_id == 0 || span_id == 0 {
            return Err(BadTraceContext);
        }
        let span_id = u64::try_from(span_id).map_err(|_| BadTraceContext)?;
        Ok(Self { trace_id, span_id, sampled: flags & 1 == 1 })
    }
}

fn lower_hex(field: &str, length: usize) -> Option<u128> {
    let is_hex = field.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (field.len() == length && is_hex).then(|| u128::from_str_radix(field, 16).ok())?
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace_id, self.span_id, u8::from(self.sampled))
    }
}

impl TryFrom<String> for TraceContext {
    type Error = BadTraceContext;

    fn try_from(text: String) -> Result<Self, BadTraceContext> {
        text.parse()
    }
}

impl From<TraceContext> for String {
    fn from(context: TraceContext) -> Self {
        context.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn the_example_of_the_specification_is_read_and_written_again() {
        let context: TraceContext = EXAMPLE.parse().expect("the specification's example");
        assert_eq!((context.span_id, context.sampled), (0x00f0_67aa_0ba9_02b7, true));
        assert_eq!(context.to_string(), EXAMPLE);
        let later: TraceContext = format!("cc{}-more", &EXAMPLE[2..]).parse().expect("a later version");
        assert_eq!(later, context);
    }

    #[test]
    fn anything_else_is_refused() {
        let (zero_trace, zero_span) = ("0".repeat(32), "0".repeat(16));
        for bad in [
            "",
            "00",
            &EXAMPLE[..EXAMPLE.len() - 1],
            &format!("{EXAMPLE}-more"),
            &format!("ff{}", &EXAMPLE[2..]),
            &EXAMPLE.to_uppercase(),
            &EXAMPLE.replace("4bf92f3577b34da6a3ce929d0e0e4736", &zero_trace),
            &EXAMPLE.replace("00f067aa0ba902b7", &zero_span),
            &EXAMPLE.replace("4b", "+b"),
        ] {
            assert_eq!(bad.parse::<TraceContext>(), Err(BadTraceContext), "{bad}");
        }
    }
}
