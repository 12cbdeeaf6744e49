//! Sessions that come from a file.

use gander_domain::{Policy, Principal, SessionView};
use gander_services::sessions::{ImportTarget, adopt_session_document};
use gander_wire::goose::requests::{goose_exported_meta, read_goose_conversation};
use serde_json::Value;

use crate::sample_session::{CountingIds, session_id};

/// Sessions that come from a file of gander or of goose: what is taken in is a log that can be replayed, has no looser policy
/// and nothing open.
pub fn fuzz_session_import(data: &[u8]) {
    let Ok(document) = serde_json::from_slice::<Value>(data) else { return };
    if let Some(object) = document.as_object() {
        let said = object.get("conversation").and_then(Value::as_array).cloned().unwrap_or_default();
        drop(read_goose_conversation(&said, &mut CountingIds::default()));
        drop(goose_exported_meta(object));
    }
    let target = ImportTarget {
        session: session_id(),
        owner: Principal::owner(),
        workspace: "/workspace".to_owned(),
        policy: Policy::Ask,
    };
    let Ok(adopted) = adopt_session_document(document, &target) else { return };
    let view = SessionView::replay(&adopted.entries).expect("an imported log can be replayed");
    assert!(view.settings.policy <= Policy::Ask, "a looser policy: {:?}", view.settings.policy);
    assert!(view.run.is_none() && view.queue.is_empty(), "a run is open in what was imported");
    assert_eq!(view.workspace, "/workspace");
}
