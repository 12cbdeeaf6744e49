//! What a client can do for us, as it says at `initialize`.

use super::schema::ClientCapabilities;

/// Under this name in `_meta` clients said it before the protocol had a word for it, and read what to start.
pub(super) const TERMINAL_LOGIN_META: &str = "terminal-auth";

/// What the client can do for us.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientAbilities {
    /// `fs/read_text_file`.
    pub read_file: bool,
    /// `fs/write_text_file`.
    pub write_file: bool,
    /// `terminal/*`.
    pub terminal: bool,
    /// Forms.
    pub forms: bool,
    /// Visits to an address.
    pub visits: bool,
    /// Notices.
    pub notices: bool,
    /// Compaction updates.
    pub compaction: bool,
    /// Starts the agent's program at a terminal, for a login.
    pub terminal_login: bool,
    /// States and whole messages, and prompts acknowledged at once: version 2.
    pub v2: bool,
}

impl ClientAbilities {
    /// Who can show forms, addresses or notices is more than a reader of text, and shows permission requests too.
    pub fn shows_questions(&self) -> bool {
        self.forms || self.visits || self.notices
    }
}

impl From<&ClientCapabilities> for ClientAbilities {
    fn from(client: &ClientCapabilities) -> Self {
        let session = client.session.as_ref();
        let elicitation = client.elicitation.as_ref();
        Self {
            read_file: client.fs.read_text_file,
            write_file: client.fs.write_text_file,
            terminal: client.terminal,
            forms: elicitation.is_some_and(|elicitation| elicitation.form.is_some()),
            visits: elicitation.is_some_and(|elicitation| elicitation.url.is_some()),
            notices: session.is_some_and(|session| session.notices.is_some()),
            compaction: session.is_some_and(|session| session.compaction.is_some()),
            terminal_login: client.auth.terminal
                || client.meta.as_ref().is_some_and(|meta| meta.get(TERMINAL_LOGIN_META).is_some_and(|is| is == true)),
            v2: false,
        }
    }
}
