//! What an agent says beyond the words that are known here: updates and content of unknown kinds, and `_meta`.
//!
//! It stands in the log as it came, beside the fact that it belongs to, and is told again to clients that speak ACP. Other
//! protocols are told the fact alone.

use gander_client::schema::{RequestPermissionRequest, SessionUpdate};
use gander_domain::{Notice, Question, Report, Severity, ToolCall};
use gander_wire::acp::content::acp_tool_content;
use gander_wire::acp::projection::acp_permission_tool_call;
use gander_wire::acp::{AGENT_WORDS, unsaid_agent_words};
use serde_json::{Value, json};

/// What is larger is not kept: the line that tells it again has to fit into readers with a buffer of 64 KiB.
const MAX_WORDS_BYTES: usize = 48 * 1024;
/// How the notice of something too large begins.
const LOSS_TITLE: &str = "The agent sent more than is kept";

/// An update as it came.
#[derive(Debug)]
pub(in crate::backend) struct ToldUpdate {
    /// As far as the schema's types hold it.
    pub(in crate::backend) known: Option<SessionUpdate>,
    /// All parameters of the notification, if the types may not hold everything.
    pub(in crate::backend) whole: Option<Value>,
}

impl From<SessionUpdate> for ToldUpdate {
    fn from(known: SessionUpdate) -> Self {
        Self { known: Some(known), whole: None }
    }
}

/// The parameters of a notification, of which some were understood.
#[derive(Clone, Debug)]
pub(super) struct SaidBesides {
    update: Value,
    /// The `_meta` beside the update.
    meta: Option<Value>,
}

impl SaidBesides {
    pub(super) fn new(mut params: Value) -> Self {
        let meta = params.get_mut("_meta").map(Value::take).filter(|meta| !meta.is_null());
        Self { update: params["update"].take(), meta }
    }

    pub(super) fn update(&self) -> &Value {
        &self.update
    }

    /// To put our ids in place of the agent's.
    pub(super) fn update_mut(&mut self) -> &mut Value {
        &mut self.update
    }

    pub(super) fn kind(&self) -> &str {
        self.update["sessionUpdate"].as_str().unwrap_or_default()
    }

    /// Adds the report, with what of the update is not shown by it.
    pub(super) fn push_annotated(whole: Option<Self>, shown: &Value, report: Report, reports: &mut Vec<Report>) {
        let words = whole.and_then(|whole| whole.into_words(shown, reports));
        reports.push(match words {
            Some(meta) => Report::WithMeta { report: Box::new(report), meta: Box::new(meta) },
            None => report,
        });
    }

    /// The words for the meta of an entry, without what is shown anyway. If they are too large, people are told.
    pub(super) fn into_words(self, shown: &Value, reports: &mut Vec<Report>) -> Option<Value> {
        let kind = self.kind().to_owned();
        let update = unsaid_agent_words(&self.update, shown);
        if update.is_none() && self.meta.is_none() {
            return None;
        }
        let mut words = json!({ "update": update.unwrap_or_else(|| json!({})) });
        if let Some(meta) = self.meta {
            words["_meta"] = meta;
        }
        within_size(json!({ AGENT_WORDS: words }), &kind).map_err(|notice| reports.push(Report::Noticed(notice))).ok()
    }

    /// An update that is told as it came, and means nothing to anybody else.
    pub(super) fn into_opaque(self) -> Report {
        let kind = self.kind().to_owned();
        let mut body = json!({ "update": self.update });
        if let Some(meta) = self.meta {
            body["_meta"] = meta;
        }
        match within_size(body, &kind) {
            Ok(body) => Report::OpaqueUpdate { protocol: AGENT_WORDS.to_owned(), body: Box::new(body) },
            Err(notice) => Report::Noticed(notice),
        }
    }

    /// What an agent says of its session besides the title, which is ours to choose.
    pub(super) fn without_title(mut self) -> Option<Report> {
        let fields = self.update.as_object_mut()?;
        fields.retain(|key, _| !matches!(key.as_str(), "title" | "updatedAt"));
        (fields.len() > 1 || self.meta.is_some()).then(|| self.into_opaque())
    }
}

/// What the request of a permission says besides: it stands in the question, which is asked again whenever a client comes.
pub(super) fn permission_words(
    request: &RequestPermissionRequest,
    call: &ToolCall,
    question: &Question,
) -> Option<Box<Value>> {
    let mut said = json!(request);
    let mut shown = json!({ "toolCall": acp_permission_tool_call(call), "options": said["options"] });
    shown["toolCall"]["content"] = json!(acp_tool_content(&question.preview));
    let has_meta = |option: &Value| option.get("_meta").is_some();
    if said["options"].as_array().into_iter().flatten().any(has_meta) {
        shown["options"] = Value::Null;
    }
    // Ids are ours; that it is pending is said by the question.
    for (of, key) in [("", "sessionId"), ("/toolCall", "toolCallId"), ("/toolCall", "status")] {
        said.pointer_mut(of).and_then(Value::as_object_mut).and_then(|fields| fields.remove(key));
    }
    // Text was made readable, a terminal of the agent's is none of a client's: what is left is told as it is shown.
    said["toolCall"].as_object_mut().and_then(|fields| fields.remove("content"));
    let words = unsaid_agent_words(&said, &shown)?;
    within_size(json!({ AGENT_WORDS: words }), "session/request_permission").ok().map(Box::new)
}

/// The same words, or what people are told of them.
fn within_size(words: Value, kind: &str) -> Result<Value, Notice> {
    let bytes = words.to_string().len();
    if bytes <= MAX_WORDS_BYTES {
        return Ok(words);
    }
    let kind = gander_domain::sanitize::sanitized_prefix(kind, 60);
    let title = format!("{LOSS_TITLE}: {kind}, {bytes} bytes");
    Err(Notice { severity: Severity::Warning, title, detail: None })
}

pub(super) fn is_loss_notice(report: &Report) -> bool {
    matches!(report, Report::Noticed(notice) if notice.title.starts_with(LOSS_TITLE))
}
