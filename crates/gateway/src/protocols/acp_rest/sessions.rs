//! Sessions as this protocol knows them: an id, and the addresses of what was said.

use gander_domain::caller::Caller;
use gander_domain::{
    Entry, Event, LoadSession, LoggedMessage, Outcome, Principal, Role, Seq, SessionId, SessionView, Timestamp,
};
use gander_runtime::hub::HubError;
use gander_services::sessions::SessionError;
use gander_store::{Alias, DeltaForm, Limit, StoreError, clock, read_all};
use gander_wire::acp_rest::types::WireTime;
use gander_wire::acp_rest::{AcpRestMessage, AcpRestRefusal, AcpRestSession, PROTOCOL_NAME, content};

use super::resource_urls::RESOURCE_TTL_MICROS;
use super::{AcpRest, BaseUrl, acp_rest_session_refusal, acp_rest_store_refusal};

/// There is nothing at this address, or not for everybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownResource;

/// Where a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MessageReference {
    pub(super) session: SessionId,
    pub(super) seq: Seq,
    /// Which of the entry's messages.
    pub(super) index: u32,
}

impl AcpRest {
    /// The session of this id: ours, or one that the client named so.
    pub async fn find_session(&self, caller: &Caller, id: SessionId) -> Result<Option<SessionView>, AcpRestRefusal> {
        match self.services.sessions.view(caller, id).await {
            Ok(view) => return Ok(Some(view)),
            // One that the caller deleted is not looked for under a name: ids of ours are given once.
            Err(SessionError::Hub(HubError::Store(StoreError::NotFound(_)))) => {}
            Err(error) => return Err(acp_rest_session_refusal(error)),
        }
        let alias = self.session_alias(caller, id);
        let named = self.services.sessions.find_by_alias(&alias).await.map_err(acp_rest_session_refusal)?;
        let Some(session) = named else { return Ok(None) };
        self.services.sessions.view(caller, session).await.map(Some).map_err(acp_rest_session_refusal)
    }

    /// The session as this protocol describes it.
    pub async fn describe_session(
        &self,
        id: SessionId,
        view: &SessionView,
        base: &BaseUrl,
    ) -> Result<AcpRestSession, AcpRestRefusal> {
        let mut history = Vec::new();
        if self.resources.forwarded && self.services.load_session(&view.settings.agent) == LoadSession::Supported {
            let until = Timestamp::from_micros(clock::current_time().as_micros() + RESOURCE_TTL_MICROS);
            for kept in self.completed_messages(view.session).await? {
                let reference = MessageReference { session: view.session, seq: kept.seq, index: kept.index };
                history.push(format!("{}/resources/{}", base.0, self.resources.resource_id(reference, until)));
            }
        }
        Ok(AcpRestSession { id: id.to_string(), history, state: None })
    }

    /// The message at an address.
    pub async fn find_resource(&self, id: &str) -> Result<AcpRestMessage, UnknownResource> {
        let known = self.resources.verify_resource_id(id, clock::current_time()).filter(|_| self.resources.forwarded);
        let reference = known.ok_or(UnknownResource)?;
        let summary = self.services.sessions.find_proven(reference.session).await.map_err(|_| UnknownResource)?;
        let kept = self.load_message(reference).await.ok_or(UnknownResource)?;
        Ok(shown_session_message(&summary.agent, &kept))
    }

    pub(super) async fn load_message(&self, reference: MessageReference) -> Option<LoggedMessage> {
        let MessageReference { session, seq, index } = reference;
        let (after, limit) = (Seq(seq.0.checked_sub(1)?), Limit { entries: 1, ..Limit::default() });
        let page = self.services.hub.store().read(session, after, limit, DeltaForm::Joined).await.ok()?;
        let entry = page.first().filter(|entry| entry.seq == seq)?;
        session_entry_messages(entry).find(|kept| kept.index == index)
    }

    /// What was said in runs that came to their end, since the history began.
    pub(super) async fn completed_messages(&self, session: SessionId) -> Result<Vec<LoggedMessage>, AcpRestRefusal> {
        let log =
            read_all(&**self.services.hub.store(), session, DeltaForm::Joined).await.map_err(acp_rest_store_refusal)?;
        let (mut kept, mut pending) = (Vec::new(), Vec::new());
        for entry in &log {
            match &entry.event {
                Event::HistoryReset { .. } => {
                    LoggedMessage::apply_reset(&mut kept, entry);
                    kept.retain(is_shown_session_message);
                }
                Event::RunEnded { outcome: Outcome::Completed { .. } } => kept.append(&mut pending),
                Event::RunStarted { .. } | Event::RunEnded { .. } => pending.clear(),
                Event::MessageDone { .. } => pending.extend(session_entry_messages(entry)),
                Event::SessionCreated { .. }
                | Event::TitleSet { .. }
                | Event::SettingsChanged { .. }
                | Event::ArchiveSet { .. }
                | Event::Noticed { .. }
                | Event::PlanSet { .. }
                | Event::StateChanged { .. }
                | Event::ArtifactSaved { .. }
                | Event::TextMarked { .. }
                | Event::Routed { .. }
                | Event::UsageAdded { .. }
                | Event::RunQueued { .. }
                | Event::RunRecovered { .. }
                | Event::CancelRequested { .. }
                | Event::MessageStarted { .. }
                | Event::PartDelta { .. }
                | Event::ToolCalled { .. }
                | Event::ToolStarted { .. }
                | Event::ToolUpdated { .. }
                | Event::ToolDone { .. }
                | Event::QuestionAsked { .. }
                | Event::QuestionAnswered { .. }
                | Event::OpaqueUpdate { .. }
                | Event::Unknown(_) => {}
            }
        }
        Ok(kept)
    }

    pub(super) fn session_alias(&self, caller: &Caller, name: SessionId) -> Alias {
        let principal: Principal = caller.principal.clone();
        Alias { principal, door: PROTOCOL_NAME.to_owned(), namespace: "session".to_owned(), text: name.to_string() }
    }
}

/// The messages of an entry that a client can be shown.
fn session_entry_messages(entry: &Entry) -> impl Iterator<Item = LoggedMessage> + '_ {
    LoggedMessage::from_entry(entry).filter(is_shown_session_message)
}

fn is_shown_session_message(kept: &LoggedMessage) -> bool {
    let message = &kept.message;
    message.role != Role::Tool
        && !message.interrupted
        && message.parts.iter().any(|part| content::acp_rest_message_part(part).is_some())
}

fn shown_session_message(agent: &str, kept: &LoggedMessage) -> AcpRestMessage {
    let role = match kept.message.role {
        Role::User => "user".to_owned(),
        Role::Agent | Role::Tool => format!("agent/{agent}"),
    };
    let parts = kept.message.parts.iter().filter_map(content::acp_rest_message_part).collect();
    AcpRestMessage { role, parts, created_at: Some(WireTime(kept.at)), completed_at: Some(WireTime(kept.at)) }
}
