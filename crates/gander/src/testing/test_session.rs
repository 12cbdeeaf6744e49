//! A session as a test's client has it.

use std::sync::Arc;

use gander_client::Client;
use gander_client::schema::{ContentBlock, SessionId};
use gander_domain::Part;
use gander_wire::acp::content::acp_content_block;
use serde_json::{Value, json};

use super::test_client::{PermissionAnswer, TestClient};
use super::{TestError, TestTurn};

/// A session of a test's client. Permission requests are rejected and forms are declined until the test says otherwise.
#[derive(Debug)]
pub struct TestSession {
    client: Client,
    recorder: Arc<TestClient>,
    id: SessionId,
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
