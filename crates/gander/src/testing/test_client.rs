//! The client of a test: it notes what it is told and answers as the test says.

use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use gander_client::Error;
use gander_client::schema::{
    ClientCapabilities, CreateElicitationRequest, CreateElicitationResponse, ElicitationAction,
    ElicitationCapabilities, ElicitationFormCapabilities, RequestPermissionRequest, RequestPermissionResponse,
    SessionNotification,
};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::TestTurn;

/// What the client of a test saw and how it answers.
#[derive(Debug, Default)]
pub(super) struct TestClient {
    state: Mutex<ClientState>,
    /// Told when permission requests are answered otherwise than before.
    answers_changed: Notify,
}

#[derive(Debug, Default)]
pub(super) struct ClientState {
    pub(super) turn: TestTurn,
    permissions: PermissionAnswer,
    /// What forms are filled with; none: they are declined.
    pub(super) form: Option<Value>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) enum PermissionAnswer {
    Allow,
    AllowAlways,
    #[default]
    Reject,
    /// Nobody answers, until the test says otherwise.
    Silence,
}

impl TestClient {
    pub(super) fn lock(&self) -> MutexGuard<'_, ClientState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn leave_permissions_open(&self) {
        self.answer_permissions(PermissionAnswer::Silence);
    }

    pub(super) fn answer_permissions(&self, answer: PermissionAnswer) {
        self.lock().permissions = answer;
        self.answers_changed.notify_waiters();
    }

    /// The kinds of option to choose, the best first, once somebody answers.
    async fn wanted_options(&self) -> [&'static str; 2] {
        loop {
            let mut changed = std::pin::pin!(self.answers_changed.notified());
            // From here on no change is missed.
            changed.as_mut().enable();
            match self.permissions() {
                PermissionAnswer::Allow => return ["allow_once", "allow_always"],
                PermissionAnswer::AllowAlways => return ["allow_always", "allow_once"],
                PermissionAnswer::Reject => return ["reject_once", "reject_always"],
                PermissionAnswer::Silence => changed.await,
            }
        }
    }

    fn permissions(&self) -> PermissionAnswer {
        self.lock().permissions
    }
}

#[async_trait]
impl gander_client::Handler for TestClient {
    fn offers(&self) -> ClientCapabilities {
        let forms = ElicitationCapabilities::new().form(ElicitationFormCapabilities::new());
        ClientCapabilities::new().elicitation(forms)
    }

    async fn updated(&self, update: SessionNotification) {
        self.lock().turn.handle_update(json!(update.update));
    }

    async fn request_permission(&self, request: RequestPermissionRequest) -> Result<RequestPermissionResponse, Error> {
        let request = json!(request);
        let title = request["toolCall"]["title"].as_str().unwrap_or_default();
        self.lock().turn.questions.push(title.to_owned());
        let wanted = self.wanted_options().await;
        let options = request["options"].as_array().cloned().unwrap_or_default();
        let of_kind = |kind: &&str| options.iter().find(|option| option["kind"] == **kind);
        let outcome = match wanted.iter().find_map(of_kind) {
            Some(option) => json!({ "outcome": { "outcome": "selected", "optionId": option["optionId"] } }),
            None => json!({ "outcome": { "outcome": "cancelled" } }),
        };
        serde_json::from_value(outcome).map_err(|error| Error::invalid_params(error.to_string()))
    }

    async fn elicit(&self, request: CreateElicitationRequest) -> Result<CreateElicitationResponse, Error> {
        let mut state = self.lock();
        state.turn.questions.push(request.message.clone());
        match state.form.clone() {
            Some(content) => serde_json::from_value(json!({ "action": "accept", "content": content }))
                .map_err(|error| Error::invalid_params(error.to_string())),
            None => Ok(CreateElicitationResponse::new(ElicitationAction::Decline)),
        }
    }
}
