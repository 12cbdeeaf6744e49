//! Who is at the other end of a line-delimited connection.

use std::path::PathBuf;

use gander_domain::Policy;
use gander_domain::caller::Caller;
use gander_models::Keys;
use gander_wire::acp::AcpOptions;

/// Who is at the other end of a line-delimited connection.
#[derive(Clone, Debug)]
pub struct ClientPeer {
    /// Who, with what authority.
    pub caller: Caller,
    /// The folder it was started in.
    pub cwd: Option<PathBuf>,
    /// The model it wants for new sessions, as `provider/model`.
    pub model: Option<String>,
    /// The permission policy it wants for new sessions.
    pub policy: Option<Policy>,
    /// Its providers' keys, for its sessions, in memory only.
    pub keys: Keys,
    /// How it wants to be spoken to, beyond what the server is set to.
    pub options: AcpOptions,
    /// The program that it was started as, which asks for a provider's key when it is called with `setup`.
    pub program: Option<PathBuf>,
}

impl ClientPeer {
    /// Somebody who brings nothing but its authority.
    pub fn new(caller: Caller) -> Self {
        Self {
            caller,
            cwd: None,
            model: None,
            policy: None,
            keys: Keys::default(),
            options: AcpOptions::default(),
            program: None,
        }
    }
}
