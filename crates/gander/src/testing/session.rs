//! A session as a test's client has it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use gander_client::schema::{
    ClientCapabilities, ContentBlock, CreateElicitationRequest, CreateElicitationResponse, ElicitationAction,
    ElicitationCapabilities, ElicitationFormCapabilities, RequestPermissionRequest, RequestPermissionResponse,
    SessionId, SessionNotification,
};
use gander_client::{Client, Error};
use gander_domain::Part;
use gander_wire::acp::content::acp_content_block;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{TestError, TestTurn};

/// A session of a test's client. Permission requests are rejected and forms are declined until the test says otherwise.
#[derive(Debug)]
pub struct TestSession {
    client: Client,
    recorder: Arc<TestClient>,
    id: SessionId,
}

/// What the client of a test saw and how it answers.
#[derive(Debug, Default)]
pub(super) struct TestClient {
    state: Mutex<ClientState>,
    /// Told when permission requests are answered otherwise than before.
    answers_changed: Notify,
}

#[derive(Debug, Default)]
struct ClientState {
    turn: TestTurn,
    permissions: PermissionAnswer,
    /// What forms are filled with; none: they are declined.
    form: Option<Value>,
}

#[derive(Clone, Copy, Debug, Default)]
enum PermissionAnswer {
    Allow,
    AllowAlways,
    #[default]
    Reject,
    /// Nobody answers, until the test says otherwise.
    Silence,
}

impl TestSession {
    pub(super) fn new(client: Client, recorder: Arc<TestClient>, id: SessionId) -> Self {
        Self { client, recorder, id }
    }

    /// Its id, as every protocol shows it.
    pub fn id(&self) -> String {
        self.id.to_string()
    }

    /// Sends a text and waits until the turn has ended.
    pub async fn prompt(&self, text: &str) -> Result<TestTurn, TestError> {
        self.prompt_parts(&[Part::text(text)]).await
    }

    /// Sends a prompt of any parts and waits until the turn has ended.
    pub async fn prompt_parts(&self, parts: &[Part]) -> Result<TestTurn, TestError> {
        self.recorder.lock().turn = TestTurn::default();
        let blocks: Vec<ContentBlock> = parts.iter().filter_map(acp_content_block).collect();
        let response = self.client.prompt(self.id.clone(), blocks).await?;
        let mut turn = self.seen();
        turn.stop_reason = json!(response.stop_reason).as_str().unwrap_or_default().to_owned();
        Ok(turn)
    }

    /// What the client has seen since its last prompt began; after [`Harness::load_session`](super::Harness::load_session)
    /// the whole history.
    pub fn seen(&self) -> TestTurn {
        self.recorder.lock().turn.clone()
    }

    /// Cancels the turn that is under way.
    pub async fn cancel(&self) -> Result<(), TestError> {
        Ok(self.client.cancel(self.id.clone()).await?)
    }

    /// From now on permission requests are allowed, each once.
    pub fn allow_permissions(&self) {
        self.recorder.answer_permissions(PermissionAnswer::Allow);
    }

    /// From now on permission requests are allowed always, where that is offered.
    pub fn always_allow_permissions(&self) {
        self.recorder.answer_permissions(PermissionAnswer::AllowAlways);
    }

    /// From now on permission requests are rejected.
    pub fn reject_permissions(&self) {
        self.recorder.answer_permissions(PermissionAnswer::Reject);
    }

    /// Nobody answers permission requests until the test says otherwise. So it begins in a session that was loaded.
    pub fn leave_permissions_open(&self) {
        self.recorder.answer_permissions(PermissionAnswer::Silence);
    }

    /// From now on forms are answered with this.
    pub fn fill_forms(&self, content: Value) {
        self.recorder.lock().form = Some(content);
    }

    /// The client underneath, for what has no method here.
    pub fn client(&self) -> &Client {
        &self.client
    }
}

impl TestClient {
    fn lock(&self) -> MutexGuard<'_, ClientState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn leave_permissions_open(&self) {
        self.answer_permissions(PermissionAnswer::Silence);
    }

    fn answer_permissions(&self, answer: PermissionAnswer) {
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
