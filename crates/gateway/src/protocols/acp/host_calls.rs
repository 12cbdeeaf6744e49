//! An editor that lends its files and terminals to the runs it prompts.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gander_domain::{SessionId, ToolContent};
use gander_tools::{CommandEnd, CommandLine, Exit, Host, HostError, Live, Offers, ToolEvent};
use gander_wire::acp::host_calls::TerminalExit as WireExit;
use gander_wire::acp::{ClientAbilities, Connection, HostAnswer, HostCall, HostCallError as WireError, HostCallId};
use gander_wire::jsonrpc::Code;
use tokio::sync::{mpsc, oneshot};

/// An editor that does not answer within this time fails the tool.
const HOST_TIMEOUT: Duration = Duration::from_secs(60);

/// How often the output of a terminal is looked at that nobody can wait for: less and less.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(20);
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(1);

const TIMED_OUT: &str = "the editor did not answer within 60 seconds";

type HostResult = Result<HostAnswer, WireError>;

/// A call on its way to the client's connection.
pub(super) struct HostRequest {
    session: SessionId,
    /// Apart, as every client has room for many of them and most never send one.
    call: Box<HostCall>,
    reply: oneshot::Sender<HostResult>,
}

/// Calls that a client was sent and has not answered.
#[derive(Default)]
pub(super) struct HostCalls {
    replies: HashMap<HostCallId, oneshot::Sender<HostResult>>,
}

/// The editor of one session, as the tools see it.
pub(super) struct EditorHost {
    offers: Offers,
    session: SessionId,
    calls: mpsc::Sender<HostRequest>,
}

impl HostRequest {
    pub(super) fn session(&self) -> SessionId {
        self.session
    }

    /// Nobody is there who could be asked.
    pub(super) fn fail_unreachable(self) {
        drop(self.reply.send(Err(WireError::Gone)));
    }
}

impl HostCalls {
    /// Sends a call; what the client does not offer fails at once.
    pub(super) fn send_request(&mut self, ask: HostRequest, connection: &mut Connection) {
        match connection.send_host_call(ask.session, *ask.call) {
            Ok(id) => drop(self.replies.insert(id, ask.reply)),
            Err(error) => drop(ask.reply.send(Err(error))),
        }
    }

    /// The client answered.
    pub(super) fn handle_answer(&mut self, call: HostCallId, answer: HostResult) {
        if let Some(reply) = self.replies.remove(&call) {
            drop(reply.send(answer)); // a tool that was cancelled does not wait any more
        }
    }

    /// The next call that nobody waits for any more.
    pub(super) async fn next_abandoned(&mut self) -> HostCallId {
        std::future::poll_fn(|context| {
            let closed =
                self.replies.iter_mut().find_map(|(id, reply)| reply.poll_closed(context).is_ready().then_some(*id));
            match closed {
                Some(id) => {
                    self.replies.remove(&id);
                    std::task::Poll::Ready(id)
                }
                None => std::task::Poll::Pending,
            }
        })
        .await
    }

    /// The client is gone: whoever still waits is told by the dropped reply.
    pub(super) fn fail_all(&mut self) {
        self.replies.clear();
    }
}

impl EditorHost {
    /// The editor, if it lends anything.
    pub(super) fn from_abilities(
        abilities: ClientAbilities,
        session: SessionId,
        calls: mpsc::Sender<HostRequest>,
    ) -> Option<Arc<dyn Host>> {
        let offers = Offers { read: abilities.read_file, write: abilities.write_file, terminal: abilities.terminal };
        (offers != Offers::default()).then(|| Arc::new(Self { offers, session, calls }) as Arc<dyn Host>)
    }

    async fn call_host(&self, call: HostCall) -> Result<HostAnswer, HostError> {
        tokio::time::timeout(HOST_TIMEOUT, self.call_without_timeout(call))
            .await
            .unwrap_or_else(|_| Err(host_call_error(TIMED_OUT)))
    }

    async fn call_without_timeout(&self, call: HostCall) -> Result<HostAnswer, HostError> {
        self.send_call(call).await.map_err(|error| host_call_error(&error.to_string()))
    }

    async fn send_call(&self, call: HostCall) -> HostResult {
        let (reply, answer) = oneshot::channel();
        let ask = HostRequest { session: self.session, call: Box::new(call), reply };
        self.calls.send(ask).await.map_err(|_| WireError::Gone)?;
        answer.await.unwrap_or(Err(WireError::Gone))
    }

    /// Waits for a command's end, or brings it about.
    async fn wait_for_terminal(&self, terminal: &str, command: &CommandLine, live: &Live) -> Result<Exit, HostError> {
        tokio::select! {
            ended = self.wait_for_exit(terminal) => ended,
            () = live.cancel.cancelled() => self.kill_terminal(terminal).await.map(|()| Exit::Cancelled),
            () = tokio::time::sleep(command.timeout) => self.kill_terminal(terminal).await.map(|()| Exit::TimedOut),
        }
    }

    async fn wait_for_exit(&self, terminal: &str) -> Result<Exit, HostError> {
        match self.send_call(HostCall::WaitForExit { terminal: terminal.to_owned() }).await {
            Ok(HostAnswer::Exit(exit)) => Ok(host_exit_status(&exit)),
            Ok(HostAnswer::Text(_) | HostAnswer::Done | HostAnswer::Terminal(_) | HostAnswer::Output { .. }) => {
                Err(host_call_error("the editor answered something else"))
            }
            Err(WireError::Refused(error)) if error.has_code(Code::MethodNotFound) => {
                self.poll_for_exit(terminal).await
            }
            Err(error) => Err(host_call_error(&error.to_string())),
        }
    }

    /// Some clients have terminals that nobody can wait for: their output says when they ended.
    async fn poll_for_exit(&self, terminal: &str) -> Result<Exit, HostError> {
        let mut pause = MIN_POLL_INTERVAL;
        loop {
            match self.call_host(HostCall::Output { terminal: terminal.to_owned() }).await? {
                HostAnswer::Output { exit: Some(exit), .. } => return Ok(host_exit_status(&exit)),
                HostAnswer::Output { exit: None, .. } => {}
                HostAnswer::Text(_) | HostAnswer::Done | HostAnswer::Terminal(_) | HostAnswer::Exit(_) => {
                    return Err(host_call_error("the editor answered something else"));
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(MAX_POLL_INTERVAL);
        }
    }

    /// Ends a command. A client that cannot be told so ends it when its terminal is released.
    async fn kill_terminal(&self, terminal: &str) -> Result<(), HostError> {
        let kill = self.send_call(HostCall::Kill { terminal: terminal.to_owned() });
        match tokio::time::timeout(HOST_TIMEOUT, kill).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(WireError::Refused(error))) if error.has_code(Code::MethodNotFound) => Ok(()),
            Ok(Err(error)) => Err(host_call_error(&error.to_string())),
            Err(_) => Err(host_call_error(TIMED_OUT)),
        }
    }

    async fn terminal_output(&self, terminal: &str) -> Result<String, HostError> {
        match self.call_host(HostCall::Output { terminal: terminal.to_owned() }).await? {
            HostAnswer::Output { text, .. } => Ok(text),
            HostAnswer::Text(_) | HostAnswer::Done | HostAnswer::Terminal(_) | HostAnswer::Exit(_) => {
                Err(host_call_error("the editor answered something else"))
            }
        }
    }
}

#[async_trait]
impl Host for EditorHost {
    /// A client that left lends nothing any more: the tools go on with this machine's disk.
    fn offers(&self) -> Offers {
        if self.calls.is_closed() { Offers::default() } else { self.offers }
    }

    async fn read_text(&self, path: &Path) -> Result<String, HostError> {
        let path = path.to_string_lossy().into_owned();
        match self.call_host(HostCall::ReadFile { path, line: None, limit: None }).await? {
            HostAnswer::Text(text) => Ok(text),
            HostAnswer::Done | HostAnswer::Terminal(_) | HostAnswer::Output { .. } | HostAnswer::Exit(_) => {
                Err(host_call_error("the editor answered something else"))
            }
        }
    }

    async fn write_text(&self, path: &Path, content: &str) -> Result<(), HostError> {
        let path = path.to_string_lossy().into_owned();
        self.call_host(HostCall::WriteFile { path, content: content.to_owned() }).await.map(drop)
    }

    async fn run_command(&self, command: &CommandLine, live: &Live) -> Result<CommandEnd, HostError> {
        let create = HostCall::CreateTerminal {
            command: "sh".to_owned(),
            args: vec!["-c".to_owned(), command.line.clone()],
            env: Vec::new(),
            cwd: Some(command.cwd.to_string_lossy().into_owned()),
            output_limit: Some(command.output as u64),
        };
        let HostAnswer::Terminal(terminal) = self.call_host(create).await? else {
            return Err(host_call_error("the editor gave no terminal"));
        };
        let shown = ToolEvent::Shown(vec![ToolContent::Terminal { id: terminal.clone() }]);
        drop(live.signals.try_send(shown)); // shown at the end in any case
        let ended = self.wait_for_terminal(&terminal, command, live).await;
        let output = self.terminal_output(&terminal).await;
        let released = self.call_host(HostCall::Release { terminal: terminal.clone() }).await;
        if let Err(error) = released {
            tracing::debug!(%error, "terminal was not released");
        }
        Ok(CommandEnd { output: output?, exit: ended?, terminal: Some(terminal) })
    }
}

fn host_exit_status(exit: &WireExit) -> Exit {
    match exit.code {
        Some(code) => Exit::Code(i32::try_from(code).unwrap_or(i32::MAX)),
        None => Exit::Signal(0),
    }
}

fn host_call_error(why: &str) -> HostError {
    HostError::Failed(why.to_owned())
}
