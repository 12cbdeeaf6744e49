//! A connection that outlives its transport: its prompts carry its name in the log, and a session can be told again
//! from any place of it.

use std::sync::Arc;

use gander_domain::{Seq, SessionCatalog, SessionId, SessionView};
use serde_json::{Value, json};

use super::attachment::Attachment;
use super::{Asked, Connection};
use crate::jsonrpc::{RequestId, Responder};

impl Connection {
    /// A connection whose prompts are found again in the log under this name.
    #[must_use]
    pub fn named(mut self, name: String) -> Self {
        self.name = Some(name);
        self
    }

    /// Tells a session again: as if the client had been attached when the session was this, before its first entry
    /// if there is no view. A load that is under way begins anew. Gives the place after which entries are to be fed.
    ///
    /// Begin before the start of a run that was under way, so that its prompt and its questions are known.
    pub fn rewind(&mut self, session: SessionId, view: Option<SessionView>, catalog: Arc<SessionCatalog>) -> Seq {
        self.peer.forget(|asked| match asked {
            Asked::Question { session: of, .. } => *of == session,
            Asked::Host { .. } => false,
        });
        let before = self.sessions.remove(&session);
        let attachment = before.and_then(Attachment::reloading).unwrap_or_else(|| match view {
            Some(view) => Attachment::live(view, catalog),
            None => Attachment::unborn(session, catalog),
        });
        let from = attachment.view().map_or(Seq::ZERO, |view| view.head);
        let loading = attachment.is_replaying();
        self.sessions.insert(session, attachment);
        if !loading {
            self.release(session);
        }
        from
    }

    /// The request whose history is being told.
    pub fn load_under_way(&self, session: SessionId) -> Option<&RequestId> {
        self.sessions.get(&session)?.loads()
    }

    /// Tells the history of a session for a request that came before this connection was restored.
    pub fn load_again(&mut self, request: RequestId, now: &SessionView, catalog: Arc<SessionCatalog>) {
        let responder = Some(Responder::again(request));
        self.sessions.insert(now.session, Attachment::replaying(now, catalog, responder));
    }

    /// What a prompt leaves in the log, so that its answer finds back here.
    pub(super) fn marked(&self, meta: Option<Value>, request: &RequestId) -> Option<Value> {
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
