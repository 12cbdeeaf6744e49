//! Who creates, finds and authorises sessions: `services::sessions`, and no protocol.

use crate::report;
use crate::source::rust_sources;

/// Where protocols are, and what they share.
const GATEWAY: [&str; 2] = ["crates/gateway/src/", "crates/http/src/"];

/// What no protocol does by itself: another's session would not be unknown everywhere.
const SESSIONS: &[(&str, &str)] = &[
    ("SessionInit", "create it with Sessions::create"),
    ("hub.create(", "create it with Sessions::create"),
    ("hub.create_with_prompt(", "create it with Sessions::create_with_prompt"),
    ("hub.delete(", "delete it with Sessions::delete"),
    ("hub.view(", "take Sessions::view, which asks whose it is"),
    ("hub.stored_view(", "take Sessions::stored_view, which asks whose it is"),
    ("hub.view_for(", "take Sessions::view"),
    (".owner ==", "Sessions::find decides whose a session is"),
    (".owner !=", "Sessions::find decides whose a session is"),
    (".session_summary(", "find it with Sessions::find"),
    (".sessions(", "list them with Sessions::list"),
    (".run_of_owner(", "find it with Sessions::find_run"),
    (".runs(query", "list them with Sessions::list_runs"),
    ("store().question(", "find it with Sessions::find_question"),
    ("store.question(", "find it with Sessions::find_question"),
    (".resolve_alias(", "find it with Sessions::find_by_alias"),
    (".aliases_in(", "list them with Sessions::list_aliases"),
];

/// Who compares a caller's scopes with what it asks for: services, through `domain::authorize`.
const SCOPES: &[(&str, &str)] = &[
    (".may_", "let the service decide that carries it out"),
    (".has_scope(", "let the service decide that carries it out"),
    (".require_scope(", "let the service decide that carries it out"),
    (".allowed_policy(", "create the session with Sessions::create"),
    ("authorize_any_command(", "Hub::command decides"),
    ("authorize_creation(", "Sessions::create decides"),
    ("services.control)(", "take permission_changes::control_server"),
    (".grants.revoke(", "take permission_changes::revoke_grant"),
    (".trust.trust(", "take permission_changes::trust_folder"),
    (".trust.revoke(", "take permission_changes::distrust_folder"),
    (".servers_of(", "take direct_calls"),
];

/// The guard compares a token with what the route table says of the whole route.
const GUARD: &str = "crates/http/src/guard.rs";

/// What writes to the store.
const WRITES: [&str; 13] = [
    "Append::new",
    "Append {",
    "append_fact(&*",
    ".append_scope(",
    ".compact_scope(",
    ".delete_scope(",
    ".set_alias(",
    ".remove_alias(",
    "store().create(",
    "store().append(",
    "store().claim(",
    "store().delete(",
    "Epoch",
];

/// Who in the gateway writes all the same: logs of a protocol's own, never a session's.
const WRITERS: [(&str, &str); 3] = [
    ("crates/gateway/src/protocols/acp/streamable_http/journal.rs", "what a connection was told, gone with it"),
    ("crates/gateway/src/protocols/acp/streamable_http/holder.rs", "which node holds a connection, gone with it"),
    ("crates/gateway/src/protocols/a2a/push/journal.rs", "removes logs that an earlier version left behind"),
];

fn is_gateway(name: &str) -> bool {
    GATEWAY.iter().any(|folder| name.starts_with(folder))
}

#[test]
fn protocols_leave_sessions_to_the_service() {
    let mut faults = Vec::new();
    for source in rust_sources().iter().filter(|source| is_gateway(&source.name)) {
        let found = SESSIONS.iter().filter(|(code, _)| source.product.contains(code));
        faults.extend(found.map(|(code, instead)| format!("{} has {code}: {instead}", source.name)));
    }
    report(&faults);
}

#[test]
fn protocols_leave_scopes_to_the_services() {
    let mut faults = Vec::new();
    let gateway = |name: &str| is_gateway(name) && name != GUARD;
    for source in rust_sources().iter().filter(|source| gateway(&source.name)) {
        let found = SCOPES.iter().filter(|(code, _)| source.product.contains(code));
        faults.extend(found.map(|(code, instead)| format!("{} decides by {code}…: {instead}", source.name)));
    }
    report(&faults);
}

#[test]
fn the_gateway_writes_to_no_store() {
    let mut faults = Vec::new();
    let mut used = Vec::new();
    for source in rust_sources().iter().filter(|source| is_gateway(&source.name)) {
        let writes: Vec<&str> = WRITES.into_iter().filter(|code| source.product.contains(code)).collect();
        match WRITERS.iter().find(|(name, _)| *name == source.name) {
            Some((name, _)) if !writes.is_empty() => used.push(*name),
            Some(_) => {}
            None => faults.extend(writes.iter().map(|code| format!("{} writes to the store: {code}", source.name))),
        }
    }
    let stale = WRITERS.iter().filter(|(name, _)| !used.contains(name));
    faults.extend(stale.map(|(name, why)| format!("nothing is written there any more: {name} ({why})")));
    report(&faults);
}
