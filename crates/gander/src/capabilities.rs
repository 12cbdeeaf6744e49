//! What an agent can do, as its author says.

use gander_domain::LoadSession;

/// What an agent takes and can do. What is not named is refused at every protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    pub(super) image: bool,
    pub(super) audio: bool,
    pub(super) load_session: LoadSession,
    pub(super) outputs: Vec<String>,
}

impl Capabilities {
    /// Text in, text out, sessions that can be loaded.
    pub fn new() -> Self {
        Self::default()
    }

    /// It takes images.
    #[must_use]
    pub fn image(self) -> Self {
        Self { image: true, ..self }
    }

    /// It takes audio.
    #[must_use]
    pub fn audio(self) -> Self {
        Self { audio: true, ..self }
    }

    /// It gives this media type beside text, such as `image/png`.
    #[must_use]
    pub fn output(mut self, mime: impl Into<String>) -> Self {
        self.outputs.push(mime.into());
        self
    }

    /// Sessions cannot be loaded: ACP has no `session/load`, `session/resume`, `session/fork` and `session/list`, goose's
    /// REST no resume and no export, and where a session is shown (ACP-REST, ADK, goose) it is without its history.
    #[must_use]
    pub fn without_load_session(self) -> Self {
        Self { load_session: LoadSession::Unsupported, ..self }
    }
}
