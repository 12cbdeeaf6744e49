//! Copies of sessions.

use std::sync::Arc;

use gander_domain::caller::Caller;
use gander_domain::{Command, Context, Message, ResetReason, Seq, SessionView};
use gander_runtime::hub::Ack;
use gander_store::{DeltaForm, read_all};
use serde_json::Value;

use super::{NewSession, SessionError, SessionFolder, Sessions};

/// A copy that is to be made of a session.
#[derive(Clone, Debug)]
pub struct Fork {
    /// The folder it works in; a private one if none is named.
    pub workspace: Option<SessionFolder>,
    /// Further folders.
    pub folders: Vec<SessionFolder>,
    /// What was said in it.
    pub messages: Vec<Message>,
    /// Its title, if it has one.
    pub title: Option<String>,
    /// What the protocol keeps for itself.
    pub meta: Option<Value>,
}

impl Sessions {
    /// What was said in a session before the turn that is under way.
    pub async fn messages_before_run(&self, view: &SessionView) -> Result<Vec<Message>, SessionError> {
        let log = read_all(&**self.hub.store(), view.session, DeltaForm::Joined).await?;
        let end = view.run.as_ref().map_or(view.head.next(), |run| run.from);
        let context = Context::replay(log.iter().take_while(|entry| entry.seq < end));
        let messages = context.map(|context| context.messages).unwrap_or_default();
        Ok(messages.into_iter().map(Arc::unwrap_or_clone).collect())
    }

    /// Creates a copy of a session of the caller's, set as it is; its policy is no looser than the caller may choose.
    pub async fn fork(&self, caller: &Caller, source: &SessionView, fork: Fork) -> Result<SessionView, SessionError> {
        let Fork { workspace, folders, messages, title, meta } = fork;
        let settings = self.inherited_settings(caller, source);
        let parent = Some(source.session);
        let new =
            NewSession { workspace, folders, parent, meta, ..NewSession::with_id(self.new_id().await?, settings) };
        let session = new.id;
        self.create(caller, new).await?;
        let history = Command::Reset { keep_to: Seq::ZERO, replacement: messages, reason: ResetReason::Replaced };
        // The messages alone do not tell: what they quote may have been summarised.
        let mark = Command::MarkText { mark: source.provenance.text_mark() };
        for command in [history, mark].into_iter().chain(title.map(|title| Command::SetTitle { title })) {
            self.hub.execute_command(caller, session, command, Ack::Synced).await?;
        }
        self.view(caller, session).await
    }

    fn inherited_settings(&self, caller: &Caller, source: &SessionView) -> gander_domain::Settings {
        caller.inherited_settings((self.defaults)().policy, source.settings.clone())
    }
}
