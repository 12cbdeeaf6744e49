//! A session's log as one document: out of one server, into another, whole or not at all.
//!
//! A document brings what was said and done. What it may do here it does not say: policy and folders are the importer's.

use gander_domain::sanitize;
use gander_domain::{
    Command, Effect, Entry, Event, MachineContext, Notice, Policy, Principal, RunOrigin, Seq, Session, SessionId,
    SessionView, Severity, Timestamp,
};
use gander_runtime::hub::Hub;
use gander_store::clock::{self, SystemIds};
use gander_store::{Append, DeltaForm, Durability, Epoch, Store, StoreError, read_all};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a document says it is.
const FORMAT: &str = "gander-session";

/// The version of the document's form.
const VERSION: u32 = 1;

/// Why a document is not taken in.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// Something is wrong with it.
    #[error("{0}")]
    Refused(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

#[derive(Serialize, Deserialize)]
struct Document {
    format: String,
    version: u32,
    exported_at: Timestamp,
    entries: Vec<Entry>,
}

/// The whole log of a session.
pub async fn export(store: &dyn Store, session: SessionId) -> Result<Value, StoreError> {
    let entries = read_all(store, session, DeltaForm::Exact).await?;
    let document = Document { format: FORMAT.to_owned(), version: VERSION, exported_at: clock::now(), entries };
    serde_json::to_value(document).map_err(|error| StoreError::Corrupt(error.to_string()))
}

/// Whose an imported session is, and what it may do.
#[derive(Clone, Debug)]
pub struct ImportTarget {
    /// The new session's id.
    pub session: SessionId,
    /// Whose it is.
    pub owner: Principal,
    /// The folder it works in.
    pub workspace: String,
    /// It has no looser policy than this.
    pub policy: Policy,
}

/// A new session with the log of an exported one. What was open in it is closed as cancelled. Gives what of the
/// document does not hold here.
pub async fn import(hub: &Hub, target: &ImportTarget, document: Value) -> Result<Vec<String>, ImportError> {
    let Document { format, version, mut entries, .. } =
        serde_json::from_value(document).map_err(|error| refused(format!("not an exported session: {error}")))?;
    if format != FORMAT || version > VERSION {
        return Err(refused(format!("unknown format: {format} {version}, this server reads {FORMAT} {VERSION}")));
    }
    let reset = adopt(&mut entries, target)?;
    let closing = close(&entries, &target.owner)?;
    entries.extend(closing);
    entries.extend(notice(&reset, entries.len()));
    let append = Append::new(target.session, Epoch::FIRST, entries, Durability::Barrier);
    hub.store().create(append, Vec::new()).await?;
    Ok(reset)
}

/// Says in the session itself what of its document does not hold here.
pub fn notice(reset: &[String], entries: usize) -> Option<Entry> {
    let title = format!("Imported; not taken from the file: {}", reset.join(", "));
    let notice = Notice { severity: Severity::Info, title, detail: None };
    let entry = |notice| Entry {
        seq: Seq(entries as u64).next(),
        at: clock::now(),
        run: None,
        event: Event::Noticed { notice },
        meta: None,
    };
    (!reset.is_empty()).then(|| entry(notice))
}

/// The log is numbered from one and begins with the session, which is a new one of the importer's. Gives what was reset.
fn adopt(entries: &mut [Entry], target: &ImportTarget) -> Result<Vec<String>, ImportError> {
    let gap = entries.iter().zip(1..).find(|(entry, place)| entry.seq != Seq(*place));
    if let Some((entry, place)) = gap {
        return Err(refused(format!(
            "entries must be numbered from 1 without gaps: expected {place}, found {}",
            entry.seq
        )));
    }
    let claimed = SessionView::replay(&*entries).map(|view| view.settings.policy).unwrap_or(target.policy);
    let first = entries.first_mut().ok_or_else(|| refused("the log is empty".to_owned()))?;
    let Event::SessionCreated { session, owner, parent, workspace, folders, settings } = &mut first.event else {
        return Err(refused("the log does not begin with session_created".to_owned()));
    };
    let mut reset = Vec::new();
    if claimed > target.policy {
        reset.push(format!("policy {}", name(claimed)));
    }
    if *workspace != target.workspace {
        reset.push(format!("workspace {}", sanitize::visible_line(workspace)));
    }
    reset.extend(folders.drain(..).map(|folder| format!("folder {}", sanitize::visible_line(&folder))));
    *parent = Some(*session);
    *session = target.session;
    owner.clone_from(&target.owner);
    workspace.clone_from(&target.workspace);
    settings.policy = claimed.min(target.policy);
    // Nor does any later entry loosen it.
    for entry in entries.iter_mut() {
        if let Event::SettingsChanged { patch } = &mut entry.event {
            patch.policy = None;
        }
    }
    Ok(reset)
}

fn name(policy: Policy) -> String {
    serde_json::to_value(policy).ok().and_then(|name| Some(name.as_str()?.to_owned())).unwrap_or_default()
}

fn close(entries: &[Entry], by: &Principal) -> Result<Vec<Entry>, ImportError> {
    let view = SessionView::replay(entries).ok_or_else(|| refused("the log is not readable".to_owned()))?;
    let mut session = Session::restore(view);
    let origin = RunOrigin { by: by.clone(), door: "import".to_owned() };
    while let Some(run) = open_run(&session) {
        let cancel = Command::Cancel { run: Some(run), origin: origin.clone() };
        let mut now = MachineContext { at: clock::now(), ids: &mut SystemIds };
        session.handle_command(&mut now, cancel).map_err(|error| refused(error.to_string()))?;
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
fn open_run(session: &Session) -> Option<gander_domain::RunId> {
    let view = session.view();
    view.queue.first().map(|queued| queued.id).or_else(|| view.run.as_ref().map(|run| run.id))
}

fn refused(text: String) -> ImportError {
    ImportError::Refused(text)
}
