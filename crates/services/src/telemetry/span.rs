//! Spans, as OTLP's JSON form has them.

use gander_domain::Timestamp;
use gander_domain::trace::TraceContext;
use serde_json::{Value, json};

/// Names come from agents, tools and models, some of them from elsewhere: a longer one is cut.
const MAX_TEXT_CHARS: usize = 128;

/// A span that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    pub context: TraceContext,
    /// The span that it is part of.
    pub parent: Option<u64>,
    pub name: String,
    pub kind: SpanKind,
    pub start: Timestamp,
    pub end: Timestamp,
    pub attributes: Vec<(&'static str, Value)>,
    /// What happened meanwhile, by name.
    pub events: Vec<(Timestamp, &'static str)>,
    /// One word that says how it failed, never a message: those can hold anything.
    pub error: Option<String>,
}

/// Which side of a call a span is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    Internal,
    Server,
    Client,
}

impl Span {
    /// A span without attributes that went well.
    pub fn new(context: TraceContext, parent: Option<u64>, name: &str, kind: SpanKind, start: Timestamp) -> Self {
        let (name, end) = (cut_text(name), start);
        Self { context, parent, name, kind, start, end, attributes: Vec::new(), events: Vec::new(), error: None }
    }

    /// The same with an attribute.
    #[must_use]
    pub fn with(mut self, key: &'static str, value: impl Into<Value>) -> Self {
        self.attributes.push((key, value.into()));
        self
    }

    /// The message `Span` of OTLP.
    pub fn to_otlp(&self) -> Value {
        let attributes = self.attributes.iter().map(|(key, value)| otlp_attribute(key, value));
        let error = self.error.iter().map(|error| otlp_attribute("error.type", &Value::String(error.clone())));
        let mut span = json!({
            "traceId": format!("{:032x}", self.context.trace_id),
            "spanId": format!("{:016x}", self.context.span_id),
            "flags": u8::from(self.context.sampled),
            "name": self.name,
            "kind": match self.kind { SpanKind::Internal => 1, SpanKind::Server => 2, SpanKind::Client => 3 },
            "startTimeUnixNano": otlp_time(self.start),
            "endTimeUnixNano": otlp_time(self.end.max(self.start)),
            "attributes": attributes.chain(error).collect::<Vec<_>>(),
            "events": self.events.iter().map(|(at, name)| json!({ "timeUnixNano": otlp_time(*at), "name": name })).collect::<Vec<_>>(),
            "status": if self.error.is_some() { json!({ "code": 2 }) } else { json!({}) },
        });
        if let Some(parent) = self.parent {
            span["parentSpanId"] = json!(format!("{parent:016x}"));
        }
        span
    }
}

/// A text that is cut if it is long.
fn cut_text(text: &str) -> String {
    text.chars().take(MAX_TEXT_CHARS).collect()
}

/// Nanoseconds; 64-bit numbers are texts in protobuf's JSON.
pub fn otlp_time(at: Timestamp) -> String {
    at.as_micros().max(0).saturating_mul(1_000).to_string()
}

/// The message `KeyValue` of OTLP.
pub fn otlp_attribute(key: &str, value: &Value) -> Value {
    let value = match value {
        Value::Bool(is_set) => json!({ "boolValue": is_set }),
        Value::Number(number) if number.is_f64() => json!({ "doubleValue": number }),
        Value::Number(number) => json!({ "intValue": number.to_string() }),
        Value::String(text) => json!({ "stringValue": cut_text(text) }),
        Value::Null | Value::Array(_) | Value::Object(_) => json!({ "stringValue": cut_text(&value.to_string()) }),
    };
    json!({ "key": key, "value": value })
}
