//! What a client does when its agent asks.

use async_trait::async_trait;
use gander_wire::acp::client::AgentRequest;
use gander_wire::jsonrpc::{Code, Error};
use serde::Serialize;
use serde_json::Value;

use crate::schema::{
    ClientCapabilities, CreateElicitationRequest, CreateElicitationResponse, CreateTerminalRequest,
    CreateTerminalResponse, KillTerminalRequest, KillTerminalResponse, ReadTextFileRequest, ReadTextFileResponse,
    ReleaseTerminalRequest, ReleaseTerminalResponse, RequestPermissionRequest, RequestPermissionResponse,
    SessionNotification, TerminalOutputRequest, TerminalOutputResponse, WaitForTerminalExitRequest,
    WaitForTerminalExitResponse, WriteTextFileRequest, WriteTextFileResponse,
};

/// What a client does when its agent asks or tells something. Whatever is not implemented answers "method not found".
///
/// Requests run beside each other, each in a task of its own, which is ended when the agent takes its request back. Each
/// begins once everything was told that came before it.
/// What is told comes one after the other and in order, and the answer to a prompt comes after everything that was told
/// before it. So do not wait for a call of the same client in [`updated`](Self::updated): its answer would stand behind it.
#[async_trait]
pub trait Handler: Send + Sync + 'static {
    /// What the agent may ask: what is not offered here is refused without asking this handler.
    fn offers(&self) -> ClientCapabilities {
        ClientCapabilities::new()
    }

    /// Something happened in a session. A slow handler slows the agent down, nothing is dropped.
    async fn updated(&self, _update: SessionNotification) {}

    /// True if updates that the types of the schema may not hold whole go to [`updated_whole`](Self::updated_whole).
    fn wants_whole_updates(&self) -> bool {
        false
    }

    /// Something happened in a session that the types may not hold whole: a kind of update or content that they do not
    /// know, `_meta`. `params` is all of it, `known` what they hold, if anything.
    async fn updated_whole(&self, _params: Value, known: Option<SessionNotification>) {
        if let Some(known) = known {
            self.updated(known).await;
        }
    }

    /// The agent says something else, such as `elicitation/complete`.
    async fn notified(&self, _method: String, _params: Value) {}

    /// May it? Answered with "cancelled" by itself when the turn is cancelled meanwhile.
    async fn request_permission(&self, _request: RequestPermissionRequest) -> Result<RequestPermissionResponse, Error> {
        Err(Error::method_not_found("session/request_permission"))
    }

    /// Reads a text file, unsaved changes included.
    async fn read_text_file(&self, _request: ReadTextFileRequest) -> Result<ReadTextFileResponse, Error> {
        Err(Error::method_not_found("fs/read_text_file"))
    }

    /// Writes a text file.
    async fn write_text_file(&self, _request: WriteTextFileRequest) -> Result<WriteTextFileResponse, Error> {
        Err(Error::method_not_found("fs/write_text_file"))
    }

    /// Starts a command.
    async fn create_terminal(&self, _request: CreateTerminalRequest) -> Result<CreateTerminalResponse, Error> {
        Err(Error::method_not_found("terminal/create"))
    }

    /// What a command has printed.
    async fn terminal_output(&self, _request: TerminalOutputRequest) -> Result<TerminalOutputResponse, Error> {
        Err(Error::method_not_found("terminal/output"))
    }

    /// Waits until a command ends.
    async fn wait_for_terminal_exit(
        &self,
        _request: WaitForTerminalExitRequest,
    ) -> Result<WaitForTerminalExitResponse, Error> {
        Err(Error::method_not_found("terminal/wait_for_exit"))
    }

    /// Ends a command; its output stays.
    async fn kill_terminal(&self, _request: KillTerminalRequest) -> Result<KillTerminalResponse, Error> {
        Err(Error::method_not_found("terminal/kill"))
    }

    /// Ends a command and forgets it.
    async fn release_terminal(&self, _request: ReleaseTerminalRequest) -> Result<ReleaseTerminalResponse, Error> {
        Err(Error::method_not_found("terminal/release"))
    }

    /// Has a person fill in a form or open a page.
    async fn elicit(&self, _request: CreateElicitationRequest) -> Result<CreateElicitationResponse, Error> {
        Err(Error::method_not_found("elicitation/create"))
    }

    /// Anything else: a method that begins with an underscore.
    async fn extension(&self, method: String, _params: Value) -> Result<Value, Error> {
        Err(Error::method_not_found(&method))
    }
}

/// Offers nothing and listens to nothing.
#[async_trait]
impl Handler for () {}

/// Has the handler answer a request.
pub(crate) async fn answer_request(handler: &dyn Handler, request: AgentRequest) -> Result<Value, Error> {
    match request {
        AgentRequest::ReadTextFile(request) => handler_answer_value(handler.read_text_file(request).await),
        AgentRequest::WriteTextFile(request) => handler_answer_value(handler.write_text_file(request).await),
        AgentRequest::CreateTerminal(request) => handler_answer_value(handler.create_terminal(request).await),
        AgentRequest::TerminalOutput(request) => handler_answer_value(handler.terminal_output(request).await),
        AgentRequest::WaitForTerminalExit(request) => {
            handler_answer_value(handler.wait_for_terminal_exit(request).await)
        }
        AgentRequest::KillTerminal(request) => handler_answer_value(handler.kill_terminal(request).await),
        AgentRequest::ReleaseTerminal(request) => handler_answer_value(handler.release_terminal(request).await),
        AgentRequest::Elicit(request) => handler_answer_value(handler.elicit(request).await),
        AgentRequest::Extension { method, params } => handler.extension(method, params).await,
    }
}

pub(crate) fn handler_answer_value<T: Serialize>(answer: Result<T, Error>) -> Result<Value, Error> {
    let unwritable = |error: serde_json::Error| Error::new(Code::Internal, format!("cannot answer: {error}"));
    serde_json::to_value(answer?).map_err(unwritable)
}
