//! A session's log as one document: out of one server, into another, whole or not at all.
//!
//! A document brings what was said and done. What it may do here it does not say: policy and folders are the importer's.

use gander_domain::caller::Caller;
use gander_domain::sanitize;
use gander_domain::{
    Command, Effect, Entry, Event, MachineContext, Policy, Principal, RunId, RunOrigin, Seq, Session, SessionId,
    SessionView, Timestamp,
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
struct ImportTarget {
    session: SessionId,
    owner: Principal,
    workspace: String,
    /// It has no looser policy than this.
    policy: Policy,
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
        let Document { format, version, mut entries, .. } = serde_json::from_value(document)
            .map_err(|error| refused_document(format!("not an exported session: {error}")))?;
        if format != FORMAT || version > VERSION {
            return Err(refused_document(format!(
                "unknown format: {format} {version}, this server reads {FORMAT} {VERSION}"
            )));
        }
        let ignored = adopt_document_log(&mut entries, &target)?;
        let closing = close_open_document_runs(&entries, &target.owner)?;
        entries.extend(closing);
        if let Some(event) = ignored_import_notice(&ignored) {
            push_imported_event(&mut entries, clock::current_time(), event);
        }
        self.store_imported(session, entries).await?;
        Ok(ImportedDocument { session, workspace: target.workspace, ignored })
    }
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
        ignored.push(format!("workspace {}", sanitize::visible_line(workspace)));
    }
    ignored.extend(folders.drain(..).map(|folder| format!("folder {}", sanitize::visible_line(&folder))));
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
        let cancel = Command::Cancel { run: Some(run), origin: origin.clone() };
        let mut now = MachineContext { at: clock::current_time(), ids: &mut SystemIds };
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
