//! Sessions that come from a file: whole or not at all, with this server's permissions.

use gander_domain::caller::Caller;
use gander_domain::{
    Effect, Entry, Event, Message, Notice, ResetReason, Seq, Session, SessionView, Settings, Severity, Timestamp, Usage,
};
use gander_store::{Append, Durability, Epoch, clock};
use serde_json::Value;

use super::{NewSession, SessionError, Sessions};

/// What a file of another program says about a session.
#[derive(Clone, Debug)]
pub struct ImportedSession {
    /// What the session is set to. The file does not loosen the policy: that is this server's.
    pub settings: Settings,
    /// What the protocol keeps for itself.
    pub meta: Option<Value>,
    /// What was said.
    pub messages: Vec<Message>,
    /// Its title, if it has one.
    pub title: Option<String>,
    /// What was spent, call by call.
    pub usage: Vec<Usage>,
    /// What of the file does not hold here: the session itself says so.
    pub ignored: Vec<String>,
}

impl Sessions {
    /// Creates a session from what a file says about it, in a private folder: a file does not choose where an agent
    /// works.
    pub async fn import(&self, caller: &Caller, imported: ImportedSession) -> Result<SessionView, SessionError> {
        caller.may_prompt()?;
        let ImportedSession { settings, meta, messages, title, usage, ignored } = imported;
        let new = NewSession { meta, ..NewSession::with_id(self.new_id().await?, settings) };
        let (init, _) = self.resolve_init(caller, new).await?;
        let (session, at) = (init.session, clock::current_time());
        let mut machine = Session::create(at, init);
        let mut entries = Vec::new();
        while let Some(Effect::Append(entry)) = machine.poll_effect() {
            entries.push(entry);
        }
        let history = Event::HistoryReset { keep_to: Seq::ZERO, replacement: messages, reason: ResetReason::Replaced };
        let events = std::iter::once(history)
            .chain(title.map(|title| Event::TitleSet { title }))
            .chain(usage.into_iter().map(|usage| Event::UsageAdded { usage: usage.clamped() }))
            .chain(ignored_import_notice(&ignored));
        events.for_each(|event| push_imported_event(&mut entries, at, event));
        self.store_imported(session, entries).await?;
        self.view(caller, session).await
    }

    pub(super) async fn store_imported(
        &self,
        session: gander_domain::SessionId,
        entries: Vec<Entry>,
    ) -> Result<(), SessionError> {
        let append = Append::new(session, Epoch::FIRST, entries, Durability::Barrier);
        self.hub.store().create(append, Vec::new()).await?;
        Ok(())
    }
}

/// Adds an event at the end of a log that begins with its session's creation.
pub(super) fn push_imported_event(entries: &mut Vec<Entry>, at: Timestamp, event: Event) {
    let seq = entries.last().map_or(Seq::ZERO, |entry| entry.seq).next();
    entries.push(Entry { seq, at, run: None, event, meta: None });
}

/// Says in the session itself what of its file does not hold here.
pub(super) fn ignored_import_notice(ignored: &[String]) -> Option<Event> {
    let title = format!("Imported; not taken from the file: {}", ignored.join(", "));
    let notice = Notice { severity: Severity::Info, title, detail: None };
    (!ignored.is_empty()).then_some(Event::Noticed { notice })
}
