//! A handle to an agent: calls from as many tasks as you like.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gander_wire::acp::client::AgentEvent;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::driver::{ConnectionDriver, DriverOrder};
use crate::schema::{
    ContentBlock, Implementation, InitializeResponse, LoadSessionRequest, LoadSessionResponse, NewSessionRequest,
    NewSessionResponse, PromptRequest, PromptResponse, ResumeSessionRequest, ResumeSessionResponse, SessionId,
};
use crate::{AgentConnection, CallError, Handler, Link, LinkError};

/// How long any call but a prompt may take.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// How many calls wait to be sent.
const CALL_CAPACITY: usize = 64;

/// A handle to an agent. Clones are handles to the same one; with the last of them the connection ends.
///
/// Dropping the future of a call only means that nobody waits for its answer: a turn goes on.
#[derive(Clone, Debug)]
pub struct Client {
    shared: Arc<ClientShared>,
}

#[derive(Debug)]
struct ClientShared {
    orders: mpsc::Sender<DriverOrder>,
    agent: InitializeResponse,
    gone: watch::Receiver<Option<Arc<LinkError>>>,
    dispose: CancellationToken,
    _end: DropGuard,
}

impl Client {
    /// Introduces itself to the agent at the other end of the link.
    pub async fn connect(link: Link, who: Implementation, handler: Arc<dyn Handler>) -> Result<Self, CallError> {
        let mut connection = AgentConnection::new(link);
        connection.client.accept_extensions();
        if handler.wants_whole_updates() {
            connection.client.keep_whole_updates();
        }
        let call = connection.client.initialize_with(who, handler.offers());
        let hello = tokio::time::timeout(CALL_TIMEOUT, connection.wait_for_answer(call, |_| {})).await;
        let late = CallError::Late { method: "initialize".to_owned(), limit: CALL_TIMEOUT };
        let AgentEvent::Initialized { agent, .. } = hello.map_err(|_| late)?? else {
            return Err(invalid_client_params("initialize", "it is something else"));
        };
        if agent.protocol_version != 1.into() {
            return Err(CallError::Version(json!(agent.protocol_version).to_string()));
        }
        let (orders, waiting) = mpsc::channel(CALL_CAPACITY);
        let (told, gone) = watch::channel(None);
        let dispose = CancellationToken::new();
        tokio::spawn(ConnectionDriver::new(connection, handler, waiting, dispose.clone()).run_connection(told));
        let end = dispose.clone().drop_guard();
        Ok(Self { shared: Arc::new(ClientShared { orders, agent: *agent, gone, dispose, _end: end }) })
    }

    /// Who the agent is and what it can do.
    pub fn initialize_response(&self) -> &InitializeResponse {
        &self.shared.agent
    }

    /// Makes a session in this folder.
    pub async fn new_session(&self, folder: impl Into<PathBuf>) -> Result<NewSessionResponse, CallError> {
        self.request("session/new", &NewSessionRequest::new(folder.into())).await
    }

    /// Opens a session and has its history told. Takes as long as it takes.
    pub async fn load_session(
        &self,
        session: impl Into<SessionId>,
        folder: impl Into<PathBuf>,
    ) -> Result<LoadSessionResponse, CallError> {
        let params = LoadSessionRequest::new(session.into(), folder.into());
        self.send_call("session/load", &params, None).await
    }

    /// Opens a session without its history.
    pub async fn resume_session(
        &self,
        session: impl Into<SessionId>,
        folder: impl Into<PathBuf>,
    ) -> Result<ResumeSessionResponse, CallError> {
        self.request("session/resume", &ResumeSessionRequest::new(session.into(), folder.into())).await
    }

    /// Says something and waits for the end of the turn, however long it takes.
    pub async fn prompt(
        &self,
        session: impl Into<SessionId>,
        content: Vec<ContentBlock>,
    ) -> Result<PromptResponse, CallError> {
        self.prompt_with(PromptRequest::new(session.into(), content)).await
    }

    /// The same with everything that a prompt can carry.
    pub async fn prompt_with(&self, request: PromptRequest) -> Result<PromptResponse, CallError> {
        self.send_call("session/prompt", &request, None).await
    }

    /// Stops the turn of a session: its open permissions are answered "cancelled", its prompt still gets its answer.
    pub async fn cancel(&self, session: impl Into<SessionId>) -> Result<(), CallError> {
        self.send_order(DriverOrder::Cancel { session: session.into() }).await
    }

    /// Calls any method; it has [`CALL_TIMEOUT`] to answer.
    pub async fn request<R: DeserializeOwned>(&self, method: &str, params: &impl Serialize) -> Result<R, CallError> {
        self.send_call(method, params, Some(CALL_TIMEOUT)).await
    }

    /// Says something that has no answer.
    pub async fn notify(&self, method: &str, params: &impl Serialize) -> Result<(), CallError> {
        let params = client_params_json(method, params)?;
        self.send_order(DriverOrder::Notify { method: method.to_owned(), params }).await
    }

    /// Ends the connection: every open call of every clone fails with -32000.
    pub fn close_connection(&self) {
        self.shared.dispose.cancel();
    }

    /// True once the agent is gone.
    pub fn is_gone(&self) -> bool {
        self.shared.gone.borrow().is_some()
    }

    /// Waits until the agent is gone, and says why.
    pub async fn wait_gone(&self) -> Arc<LinkError> {
        let mut gone = self.shared.gone.clone();
        let why = gone.wait_for(Option::is_some).await.ok().and_then(|why| why.clone());
        why.unwrap_or_else(|| Arc::new(LinkError::Disposed))
    }

    async fn send_call<R: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
        limit: Option<Duration>,
    ) -> Result<R, CallError> {
        let params = client_params_json(method, params)?;
        let (answer, answered) = oneshot::channel();
        self.send_order(DriverOrder::Call { method: method.to_owned(), params, limit, answer }).await?;
        let result = match answered.await {
            Ok(result) => result?,
            Err(_) => return Err(CallError::Gone(self.wait_gone().await)),
        };
        serde_json::from_value(result).map_err(|error| invalid_client_params(method, &error.to_string()))
    }

    async fn send_order(&self, order: DriverOrder) -> Result<(), CallError> {
        match self.shared.orders.send(order).await {
            Ok(()) => Ok(()),
            Err(_) => Err(CallError::Gone(self.wait_gone().await)),
        }
    }
}

fn client_params_json(method: &str, params: &impl Serialize) -> Result<Value, CallError> {
    serde_json::to_value(params).map_err(|error| invalid_client_params(method, &error.to_string()))
}

fn invalid_client_params(method: &str, reason: &str) -> CallError {
    CallError::Unreadable { method: method.to_owned(), reason: reason.to_owned() }
}
