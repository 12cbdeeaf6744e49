//! What this protocol leaves for itself in the meta of log entries, read back.

use gander_domain::{Entry, RunId, SessionId};
use serde_json::Value;

use super::ActivePrompt;
use crate::acp::schema::Meta;
use crate::jsonrpc::Responder;

/// The `_meta` that a session was made with.
pub(super) fn session_log_meta(kept: Option<&Value>) -> Option<Meta> {
    kept?.get("acp")?.get("_meta")?.as_object().cloned()
}

/// The prompt of this connection that began the run, as its first entry says.
pub(super) fn own_prompt_in_log_meta(
    name: Option<&str>,
    session: SessionId,
    entry: &Entry,
) -> Option<(RunId, ActivePrompt)> {
    let acp = entry.meta.as_deref()?.get("acp")?;
    (acp.get("connection")?.as_str() == Some(name?)).then_some(())?;
    let request = serde_json::from_value(acp.get("request")?.clone()).ok()?;
    Some((entry.run?, ActivePrompt::new(Responder::for_past_request(request), session)))
}
