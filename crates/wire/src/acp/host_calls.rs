//! What a client's editor does for us: files and terminals.

use std::fmt;

use gander_domain::SessionId;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::abilities::ClientAbilities;
use super::schema::{
    CreateTerminalRequest, EnvVariable, KillTerminalRequest, ReadTextFileRequest, ReleaseTerminalRequest,
    TerminalExitStatus, TerminalOutputRequest, TerminalOutputResponse, WaitForTerminalExitRequest,
    WriteTextFileRequest,
};
use crate::jsonrpc::{Error, Peer, RequestId};

/// A call to a client's editor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostCall {
    /// Read a text file, unsaved changes included.
    ReadFile { path: String, line: Option<u32>, limit: Option<u32> },
    /// Write a text file.
    WriteFile { path: String, content: String },
    /// Start a command.
    CreateTerminal {
        command: String,
        args: Vec<String>,
        env: Vec<(String, String)>,
        cwd: Option<String>,
        output_limit: Option<u64>,
    },
    /// What it has printed.
    Output { terminal: String },
    /// Wait until it ends.
    WaitForExit { terminal: String },
    /// End it; its output stays.
    Kill { terminal: String },
    /// End it and forget it.
    Release { terminal: String },
}

/// Which call a reply belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostCallId(pub(super) u64);

/// What an editor answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostAnswer {
    /// A file's text.
    Text(String),
    /// It is done.
    Done,
    /// The new terminal's id.
    Terminal(String),
    /// What a terminal has printed.
    Output { text: String, truncated: bool, exit: Option<TerminalExit> },
    /// How a terminal's command ended.
    Exit(TerminalExit),
}

/// How a command ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TerminalExit {
    /// Its code, unless a signal ended it.
    pub code: Option<u32>,
    /// The signal that ended it.
    pub signal: Option<String>,
}

/// Why an editor did not do it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum HostCallError {
    /// The client did not offer it: nothing was sent.
    #[error("the client does not offer this")]
    NotOffered,
    /// It answered with an error.
    #[error("the client refused: {0}")]
    Refused(Error),
    /// It answered with something else.
    #[error("the client's answer cannot be read: {0}")]
    Unreadable(String),
    /// It is gone.
    #[error("the client is gone")]
    Gone,
}

/// Which answer is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnswerShape {
    Text,
    Done,
    Terminal,
    Output,
    Exit,
}

impl HostCallId {
    /// Its id on the wire.
    pub(super) fn request_id(self) -> RequestId {
        RequestId::text(format!("host-{}", self.0))
    }
}

impl fmt::Display for HostCallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Sends a call, if the client offers it, and says what answer to expect.
pub(super) fn send_host_call<C>(
    peer: &mut Peer<C>,
    abilities: ClientAbilities,
    session: SessionId,
    id: RequestId,
    call: HostCall,
    context: impl FnOnce(AnswerShape) -> C,
) -> Result<(), HostCallError> {
    let session = session.to_string();
    let (offered, shape) = expected_host_answer(abilities, &call);
    if !offered {
        return Err(HostCallError::NotOffered);
    }
    let context = context(shape);
    match call {
        HostCall::ReadFile { path, line, limit } => {
            let params = ReadTextFileRequest::new(session, path).line(line).limit(limit);
            peer.send_request(id, "fs/read_text_file", &params, context)
        }
        HostCall::WriteFile { path, content } => {
            peer.send_request(id, "fs/write_text_file", &WriteTextFileRequest::new(session, path, content), context)
        }
        HostCall::CreateTerminal { command, args, env, cwd, output_limit } => {
            let env = env.into_iter().map(|(name, value)| EnvVariable::new(name, value)).collect();
            let params = CreateTerminalRequest::new(session, command).args(args).env(env);
            let params = params.cwd(cwd.map(Into::into)).output_byte_limit(output_limit);
            peer.send_request(id, "terminal/create", &params, context)
        }
        HostCall::Output { terminal } => {
            peer.send_request(id, "terminal/output", &TerminalOutputRequest::new(session, terminal), context)
        }
        HostCall::WaitForExit { terminal } => peer.send_request(
            id,
            "terminal/wait_for_exit",
            &WaitForTerminalExitRequest::new(session, terminal),
            context,
        ),
        HostCall::Kill { terminal } => {
            peer.send_request(id, "terminal/kill", &KillTerminalRequest::new(session, terminal), context)
        }
        HostCall::Release { terminal } => {
            peer.send_request(id, "terminal/release", &ReleaseTerminalRequest::new(session, terminal), context)
        }
    };
    Ok(())
}

/// Reads an answer.
pub(super) fn read_host_answer(
    shape: AnswerShape,
    result: Result<&RawValue, Error>,
) -> Result<HostAnswer, HostCallError> {
    let json = result.map_err(HostCallError::Refused)?.get();
    match shape {
        AnswerShape::Text => read_host_json(json).map(|Text { content }| HostAnswer::Text(content)),
        AnswerShape::Done => Ok(HostAnswer::Done),
        AnswerShape::Terminal => read_host_json(json).map(|Terminal { terminal_id }| HostAnswer::Terminal(terminal_id)),
        AnswerShape::Output => read_host_json(json).map(|output: TerminalOutputResponse| HostAnswer::Output {
            text: output.output,
            truncated: output.truncated,
            exit: output.exit_status.map(host_terminal_exit),
        }),
        AnswerShape::Exit => read_host_json(json).map(|status| HostAnswer::Exit(host_terminal_exit(status))),
    }
}

fn expected_host_answer(abilities: ClientAbilities, call: &HostCall) -> (bool, AnswerShape) {
    match call {
        HostCall::ReadFile { .. } => (abilities.read_file, AnswerShape::Text),
        HostCall::WriteFile { .. } => (abilities.write_file, AnswerShape::Done),
        HostCall::CreateTerminal { .. } => (abilities.terminal, AnswerShape::Terminal),
        HostCall::Output { .. } => (abilities.terminal, AnswerShape::Output),
        HostCall::WaitForExit { .. } => (abilities.terminal, AnswerShape::Exit),
        HostCall::Kill { .. } | HostCall::Release { .. } => (abilities.terminal, AnswerShape::Done),
    }
}

fn host_terminal_exit(status: TerminalExitStatus) -> TerminalExit {
    TerminalExit { code: status.exit_code, signal: status.signal }
}

fn read_host_json<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, HostCallError> {
    serde_json::from_str(json).map_err(|error| HostCallError::Unreadable(error.to_string()))
}

#[derive(Deserialize)]
struct Text {
    content: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Terminal {
    terminal_id: String,
}
