//! A connection that outlives its transport: its prompts carry its name in the log, and a session can be told again
//! from any place of it.

use std::sync::Arc;

use gander_domain::{Seq, SessionCatalog, SessionId, SessionView};
use serde_json::{Value, json};

use super::attachment::Attachment;
use super::{ClientQuestion, Connection};
use crate::jsonrpc::{RequestId, Responder};

impl Connection {
    /// A connection whose prompts are found again in the log under this name.
    #[must_use]
    pub fn with_log_name(mut self, name: String) -> Self {
        self.name = Some(name);
        self
    }

    /// Tells a session again: as if the client had been attached when the session was this, before its first entry
    /// if there is no view. A load that is under way begins anew. Gives the place after which entries are to be fed.
    ///
    /// Begin before the start of a run that was under way, so that its prompt and its questions are known.
    pub fn resume_from(&mut self, session: SessionId, view: Option<SessionView>, catalog: Arc<SessionCatalog>) -> Seq {
        self.peer.forget_requests(|asked| match asked {
            ClientQuestion::Question { session: of, .. } => *of == session,
            ClientQuestion::Host { .. } => false,
        });
        let before = self.sessions.remove(&session);
        let attachment = before.and_then(Attachment::restart_replay).unwrap_or_else(|| match view {
            Some(view) => Attachment::attach_live(view, catalog),
            None => Attachment::attach_unsaved(session, catalog),
        });
        let from = attachment.view().map_or(Seq::ZERO, |view| view.head);
        let loading = attachment.is_replaying();
        self.sessions.insert(session, attachment);
        if !loading {
            self.release_queued(session);
        }
        from
    }

    /// The request whose history is being told.
    pub fn pending_load(&self, session: SessionId) -> Option<&RequestId> {
        self.sessions.get(&session)?.load_request()
    }

    /// Tells the history of a session for a request that came before this connection was restored.
    pub fn restart_load(&mut self, request: RequestId, now: &SessionView, catalog: Arc<SessionCatalog>) {
        let responder = Some(Responder::for_past_request(request));
        self.sessions.insert(now.session, Attachment::attach_replaying(now, catalog, responder));
    }

    /// What a prompt leaves in the log, so that its answer finds back here.
    pub(super) fn mark_prompt_meta(&self, meta: Option<Value>, request: &RequestId) -> Option<Value> {
        let Some(name) = &self.name else { return meta };
        // Whatever else a client sends under our own name is not kept.
        let mut meta = meta.filter(Value::is_object).unwrap_or_else(|| json!({}));
        let acp = meta["acp"].take();
        meta["acp"] = if acp.is_object() { acp } else { json!({}) };
        meta["acp"]["connection"] = json!(name);
        meta["acp"]["request"] = json!(request);
        Some(meta)
    }
}
