//! What a session keeps by name: values that clients and tools set, beside the conversation.

use serde_json::{Map, Value};

/// All values of one session together, as JSON: more is refused.
pub const MAX_STATE_BYTES: usize = 256 * 1024;

/// Values by name.
pub type State = Map<String, Value>;

/// Where a name lives, told by how it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StateScope {
    /// In this session: no prefix.
    Session,
    /// With the user, in every session: `user:`.
    User,
    /// With the agent, for every user: `app:`.
    App,
    /// Nowhere, only while a run lasts: `temp:`.
    Temporary,
}

impl StateScope {
    /// Where this name lives.
    pub fn from_name(name: &str) -> Self {
        match name.split_once(':') {
            Some(("user", _)) => Self::User,
            Some(("app", _)) => Self::App,
            Some(("temp", _)) => Self::Temporary,
            Some(_) | None => Self::Session,
        }
    }
}

/// A change without what is never stored.
pub fn state_without_temporary(mut delta: State) -> State {
    delta.retain(|name, _| StateScope::from_name(name) != StateScope::Temporary);
    delta
}

/// Only what lives there.
pub fn filter_state_by_scope(delta: &State, scope: StateScope) -> State {
    let kept = delta.iter().filter(|(name, _)| StateScope::from_name(name) == scope);
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// How much room values take, as JSON.
pub fn encoded_state_size(state: &State) -> usize {
    state.iter().map(|(name, value)| name.len() + value.to_string().len() + 6).sum()
}
