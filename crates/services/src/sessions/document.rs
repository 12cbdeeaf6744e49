//! A session's log as one document: out of one server, into another, whole or not at all.
//!
//! A document brings what was said and done. What it may do here it does not say: policy and folders are the importer's.

use gander_domain::caller::Caller;
use gander_domain::sanitize;
use gander_domain::{
    Command, Effect, Entry, Event, MachineContext, Policy, Principal, Recovery, RunId, RunOrigin, Seq, Session,
    SessionId, SessionView, Timestamp,
};
use gander_store::clock::{self, SystemIds};
use gander_store::{DeltaForm, StoreError, read_all};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::import::{ignored_import_notice, push_imported_event};
use super::{NewSession, SessionError, SessionFolder, Sessions};

/// What a document says it is.
const FORMAT: &str = "gander-session";

/// The version of the document's form.
const VERSION: u32 = 1;

/// Times from 1970 to the end of the year 9999.
const CALENDAR_MICROS: std::ops::RangeInclusive<i64> = 0..=253_402_300_799_999_999;

/// What a document holds, so that nobody shares it unawares.
const CONTAINS: &str = "the whole session: every prompt and answer, every tool call with its arguments and results, questions with who \
     answered them, names of principals and paths of folders; known secrets and what looks like one are masked in results \
     of tools, not in what people wrote";

#[derive(Serialize, Deserialize)]
struct Document {
    format: String,
    version: u32,
    exported_at: Timestamp,
    /// For whoever is handed it.
    #[serde(default)]
    contains: String,
    entries: Vec<Entry>,
}

/// A session that was made from a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedDocument {
    /// Its id.
    pub session: SessionId,
    /// The folder it works in.
    pub workspace: String,
    /// What of the document does not hold here.
    pub ignored: Vec<String>,
}

/// Whose an imported session is, and what it may do.
#[derive(Clone, Debug)]
pub struct ImportTarget {
    /// Its new id.
    pub session: SessionId,
    /// Whose it is here.
    pub owner: Principal,
    /// Where it works here.
    pub workspace: String,
    /// It has no looser policy than this.
    pub policy: Policy,
}

/// A document's log as it is stored here.
#[derive(Clone, Debug, PartialEq)]
pub struct AdoptedLog {
    /// The log, in which nothing is open.
    pub entries: Vec<Entry>,
    /// What of the document does not hold here.
    pub ignored: Vec<String>,
}

impl Sessions {
    /// The whole log of a session.
    pub async fn export_document(&self, caller: &Caller, session: SessionId) -> Result<Value, SessionError> {
        self.find(caller, session).await?;
        let entries = read_all(&**self.hub.store(), session, DeltaForm::Exact).await?;
        let (format, contains) = (FORMAT.to_owned(), CONTAINS.to_owned());
        let document = Document { format, version: VERSION, exported_at: clock::current_time(), contains, entries };
        Ok(serde_json::to_value(document).map_err(|error| StoreError::Corrupt(error.to_string()))?)
    }

    /// Creates a session with the log of an exported one. What was open in it is closed as cancelled.
    pub async fn import_document(
        &self,
        caller: &Caller,
        workspace: Option<SessionFolder>,
        document: Value,
    ) -> Result<ImportedDocument, SessionError> {
        caller.may_prompt()?;
        let new = NewSession { workspace, ..NewSession::with_id(self.new_id().await?, (self.defaults)()) };
        let (init, _) = self.resolve_init(caller, new).await?;
        let (session, owner, workspace) = (init.session, init.owner, init.workspace);
        let target = ImportTarget { session, owner, workspace, policy: (self.defaults)().policy };
        let AdoptedLog { entries, ignored } = adopt_session_document(document, &target)?;
        self.store_imported(session, entries).await?;
        Ok(ImportedDocument { session, workspace: target.workspace, ignored })
    }
}

/// Makes the log of a new session of a document.
pub fn adopt_session_document(document: Value, target: &ImportTarget) -> Result<AdoptedLog, SessionError> {
    let Document { format, version, mut entries, .. } = serde_json::from_value(document)
        .map_err(|error| refused_document(format!("not an exported session: {error}")))?;
    if format != FORMAT || version > VERSION {
        return Err(refused_document(format!(
            "unknown format: {format} {version}, this server reads {FORMAT} {VERSION}"
        )));
    }
    let ignored = adopt_document_log(&mut entries, target)?;
    let closing = close_open_document_runs(&entries, &target.owner)?;
    entries.extend(closing);
    if let Some(event) = ignored_import_notice(&ignored) {
        push_imported_event(&mut entries, clock::current_time(), event);
    }
    Ok(AdoptedLog { entries, ignored })
}

/// The log is numbered from one and begins with the session, which is a new one of the importer's. Gives what of the document is ignored.
fn adopt_document_log(entries: &mut [Entry], target: &ImportTarget) -> Result<Vec<String>, SessionError> {
    let gap = entries.iter().zip(1..).find(|(entry, number)| entry.seq != Seq(*number));
    if let Some((entry, number)) = gap {
        return Err(refused_document(format!(
            "entries must be numbered from 1 without gaps: expected {number}, found {}",
            entry.seq
        )));
    }
    // Durations are differences of these, and every protocol writes them as dates.
    if let Some(entry) = entries.iter().find(|entry| !CALENDAR_MICROS.contains(&entry.at.as_micros())) {
        return Err(refused_document(format!("the time of an entry is none that a calendar has: entry {}", entry.seq)));
    }
    let claimed = SessionView::replay(&*entries).map(|view| view.settings.policy).unwrap_or(target.policy);
    let first = entries.first_mut().ok_or_else(|| refused_document("the log is empty".to_owned()))?;
    let Event::SessionCreated { session, owner, parent, workspace, folders, settings, inherited: _ } = &mut first.event
    else {
        return Err(refused_document("the log does not begin with session_created".to_owned()));
    };
    let mut ignored = Vec::new();
    if claimed > target.policy {
        ignored.push(format!("policy {}", document_policy_name(claimed)));
    }
    if *workspace != target.workspace {
        ignored.push(format!("workspace {}", sanitize::sanitized_line(workspace)));
    }
    ignored.extend(folders.drain(..).map(|folder| format!("folder {}", sanitize::sanitized_line(&folder))));
    *parent = Some(*session);
    *session = target.session;
    owner.clone_from(&target.owner);
    workspace.clone_from(&target.workspace);
    (settings.policy, settings.policy_chosen) = (claimed.min(target.policy), false);
    // Nor does any later entry loosen it.
    for entry in entries.iter_mut() {
        if let Event::SettingsChanged { patch } = &mut entry.event {
            patch.policy = None;
        }
        // Whoever allowed outward calls there did not do so here.
        if let Event::QuestionAsked { question } = &mut entry.event {
            question.outward = None;
        }
    }
    Ok(ignored)
}

fn document_policy_name(policy: Policy) -> String {
    serde_json::to_value(policy).ok().and_then(|name| Some(name.as_str()?.to_owned())).unwrap_or_default()
}

fn close_open_document_runs(entries: &[Entry], by: &Principal) -> Result<Vec<Entry>, SessionError> {
    let view = SessionView::replay(entries).ok_or_else(|| refused_document("the log is not readable".to_owned()))?;
    let mut session = Session::restore(view);
    let origin = RunOrigin { by: by.clone(), door: "import".to_owned() };
    while let Some(run) = open_document_run(&session) {
        let mut now = MachineContext { at: clock::current_time(), ids: &mut SystemIds };
        if session.view().run.as_ref().is_some_and(|active| active.id == run && active.cancelling) {
            // A second cancel changes nothing: whoever carried out the first is not here.
            session.recover(&mut now, &Recovery::default());
            continue;
        }
        let cancel = Command::Cancel { run: Some(run), origin: origin.clone() };
        session.handle_command(&mut now, cancel).map_err(|error| refused_document(error.to_string()))?;
        session.handle_backend_exit(&mut now, run, "imported");
    }
    let mut closing = Vec::new();
    while let Some(effect) = session.poll_effect() {
        if let Effect::Append(entry) = effect {
            closing.push(entry);
        }
    }
    Ok(closing)
}

/// What waits goes first, so that nothing starts when the active one ends.
fn open_document_run(session: &Session) -> Option<RunId> {
    let view = session.view();
    view.queue.first().map(|queued| queued.id).or_else(|| view.run.as_ref().map(|run| run.id))
}

fn refused_document(text: String) -> SessionError {
    SessionError::Document(text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use gander_domain::Outcome;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    /// The log of a session with these events of one run.
    fn document(events: &[Value]) -> Value {
        let settings = json!({ "agent": "gander", "mode": "assistant", "policy": "ask" });
        let created = json!({ "kind": "session_created", "session": Uuid::from_u128(9), "owner": "owner",
            "workspace": "/elsewhere", "settings": settings });
        let run = Uuid::from_u128(5);
        let entries: Vec<Value> = std::iter::once(json!({ "seq": 1, "at": 0, "event": created }))
            .chain((2..).zip(events).map(|(seq, event)| json!({ "seq": seq, "at": 0, "run": run, "event": event })))
            .collect();
        json!({ "format": FORMAT, "version": VERSION, "exported_at": 0, "entries": entries })
    }

    fn target() -> ImportTarget {
        ImportTarget {
            session: SessionId::new(Uuid::from_u128(1)),
            owner: Principal::owner(),
            workspace: "/here".to_owned(),
            policy: Policy::Ask,
        }
    }

    fn adopted(events: &[Value]) -> SessionView {
        SessionView::replay(&adopt_session_document(document(events), &target()).unwrap().entries).unwrap()
    }

    #[test]
    fn figures_and_times_that_cannot_be_true_break_no_sum() {
        let usage = json!({ "model": "m", "input": u64::MAX, "output": u64::MAX, "cost": u64::MAX });
        let added = json!({ "kind": "usage_added", "usage": usage });
        let view = adopted(&[added.clone(), added.clone(), added]);
        assert_eq!((view.spent.input, view.spent.cost), (3_000_000_000_000, 3_000_000_000_000));
        for at in [i64::MIN, -1, i64::MAX] {
            let mut document = document(&[json!({ "kind": "title_set", "title": "t" })]);
            document["entries"][1]["at"] = json!(at);
            let refused = adopt_session_document(document, &target()).unwrap_err().to_string();
            assert!(refused.contains("entry 2"), "{at}: {refused}");
        }
    }

    /// Found with the fuzz target `session_import`: the import went round for ever.
    #[test]
    fn a_session_that_was_being_cancelled_is_taken_in_and_its_runs_are_closed() {
        let origin = json!({ "by": "owner", "door": "acp" });
        let started = json!({ "kind": "run_started", "origin": origin });
        let cancelling = json!({ "kind": "cancel_requested", "by": "owner" });
        let queued = json!({ "kind": "run_queued", "origin": origin, "parts": [{ "type": "text", "text": "x" }] });
        let again = [started.clone(), cancelling.clone(), queued];
        for events in [&[started.clone()][..], &[started, cancelling], &again] {
            let view = adopted(events);
            assert!(view.run.is_none() && view.queue.is_empty(), "{events:?}");
            assert_eq!(view.run_outcome(RunId::new(Uuid::from_u128(5))), Some(&Outcome::Cancelled), "{events:?}");
        }
    }
}
