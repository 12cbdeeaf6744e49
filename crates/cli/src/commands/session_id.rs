//! Short ids of sessions: any beginning that means one session.

use anyhow::{Context as _, bail};
use gander_client::AgentConnection;
use serde_json::{Value, json};

/// A whole id has so many characters.
const WHOLE: usize = 36;

/// Shorter beginnings are more likely a slip than an id.
const SHORTEST: usize = 4;

/// The session that an id, or the beginning of one, means.
pub(super) async fn resolve_session_id(connection: &mut AgentConnection, given: &str) -> anyhow::Result<String> {
    let given = given.trim().to_ascii_lowercase();
    if given.len() == WHOLE {
        return Ok(given);
    }
    let is_id = given.len() >= SHORTEST && given.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    if !is_id {
        bail!("not a session ID, see `gander sessions list`: {given}");
    }
    let found = connection.call_method("_gander/session/find", &json!({ "prefix": given })).await?;
    let ids: Vec<&str> = found["sessions"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    match ids.as_slice() {
        [id] => Ok((*id).to_owned()),
        [] => bail!("no session has an ID that begins like this, see `gander sessions list`: {given}"),
        several => bail!("several sessions begin with {given}: {}", several.join(", ")),
    }
}

/// The sessions of this folder that do something now.
pub(super) async fn busy_sessions(connection: &mut AgentConnection) -> anyhow::Result<Vec<Value>> {
    let mut busy = Vec::new();
    for state in ["running", "waiting"] {
        let page = connection.call_method("_gander/sessions/list", &json!({ "state": state })).await?;
        let sessions = page["sessions"].as_array().context("the server listed no sessions")?;
        busy.extend(sessions.iter().filter(|session| session["parent"].is_null()).cloned());
    }
    Ok(busy)
}

/// So many characters tell these ids apart, at least eight.
pub(super) fn short_session_id_length(ids: &[&str]) -> usize {
    let mut sorted: Vec<&str> = ids.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let common = |pair: &[&str]| pair[0].bytes().zip(pair[1].bytes()).take_while(|(a, b)| a == b).count();
    let longest = sorted.windows(2).map(common).max().unwrap_or(0);
    let length = (longest + 1).max(8);
    // A dash at the end says nothing.
    if length == 9 { 10 } else { length }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_as_short_as_they_can_be_told_apart() {
        assert_eq!(short_session_id_length(&["0199aaaa-0001-7", "0199bbbb-0001-7"]), 8);
        assert_eq!(short_session_id_length(&["0199aaaa-0001-7", "0199aaaa-0002-7", "0199aaaa-0001-7"]), 13);
        assert_eq!(short_session_id_length(&[]), 8);
    }
}
