//! A session's log as one document: out of one server, into another, whole or not at all.

use gander_domain::{
    Command, Effect, Entry, Event, Now, Principal, RunOrigin, Seq, Session, SessionId, SessionView, Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::clock::{self, SystemIds};
use crate::hub::Hub;
use crate::log::{Append, Epoch, Form, Store, StoreError, Sync, read_all};

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
    let entries = read_all(store, session, Form::Exact).await?;
    let document = Document { format: FORMAT.to_owned(), version: VERSION, exported_at: clock::now(), entries };
    serde_json::to_value(document).map_err(|error| StoreError::Corrupt(error.to_string()))
}

/// A new session with the log of an exported one. What was open in it is closed as cancelled.
pub async fn import(hub: &Hub, owner: &Principal, document: Value) -> Result<SessionId, ImportError> {
    let Document { format, version, mut entries, .. } =
        serde_json::from_value(document).map_err(|error| refused(format!("not an exported session: {error}")))?;
    if format != FORMAT || version > VERSION {
        return Err(refused(format!("unknown format: {format} {version}, this server reads {FORMAT} {VERSION}")));
    }
    let session = SessionId::make(&mut SystemIds);
    adopt(&mut entries, session, owner)?;
    let closing = close(&entries, owner)?;
    entries.extend(closing);
    let append = Append::new(session, Epoch::FIRST, entries, Sync::Barrier);
    hub.store().create(append, Vec::new()).await?;
    Ok(session)
}

/// The log is numbered from one and begins with the session, which is a new one of the importer's.
fn adopt(entries: &mut [Entry], id: SessionId, by: &Principal) -> Result<(), ImportError> {
    let gap = entries.iter().zip(1..).find(|(entry, place)| entry.seq != Seq(*place));
    if let Some((entry, place)) = gap {
        return Err(refused(format!(
            "entries must be numbered from 1 without gaps: expected {place}, found {}",
            entry.seq
        )));
    }
    let first = entries.first_mut().ok_or_else(|| refused("the log is empty".to_owned()))?;
    let Event::SessionCreated { session, owner, parent, .. } = &mut first.event else {
        return Err(refused("the log does not begin with session_created".to_owned()));
    };
    *parent = Some(*session);
    *session = id;
    owner.clone_from(by);
    Ok(())
}

fn close(entries: &[Entry], by: &Principal) -> Result<Vec<Entry>, ImportError> {
    let view = SessionView::replay(entries).ok_or_else(|| refused("the log is not readable".to_owned()))?;
    let mut session = Session::restore(view);
    let origin = RunOrigin { by: by.clone(), door: "import".to_owned() };
    while let Some(run) = open_run(&session) {
        let cancel = Command::Cancel { run: Some(run), origin: origin.clone() };
        let mut now = Now { at: clock::now(), ids: &mut SystemIds };
        session.command(&mut now, cancel).map_err(|error| refused(error.to_string()))?;
        session.backend_died(&mut now, run, "imported");
    }
    let mut closing = Vec::new();
    while let Some(effect) = session.poll() {
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
