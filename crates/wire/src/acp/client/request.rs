//! What an agent may ask of a client that offered it.

use serde_json::Value;

use crate::acp::schema::{
    ClientCapabilities, CreateElicitationRequest, CreateTerminalRequest, ElicitationMode, KillTerminalRequest,
    ReadTextFileRequest, ReleaseTerminalRequest, TerminalOutputRequest, WaitForTerminalExitRequest,
    WriteTextFileRequest,
};
use crate::jsonrpc::{Error, Params};

/// A request of an agent, other than for a permission.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentRequest {
    /// Read a text file, unsaved changes included.
    ReadTextFile(ReadTextFileRequest),
    /// Write a text file.
    WriteTextFile(WriteTextFileRequest),
    /// Start a command.
    CreateTerminal(CreateTerminalRequest),
    /// What a command has printed.
    TerminalOutput(TerminalOutputRequest),
    /// Wait until it ends.
    WaitForTerminalExit(WaitForTerminalExitRequest),
    /// End it; its output stays.
    KillTerminal(KillTerminalRequest),
    /// End it and forget it.
    ReleaseTerminal(ReleaseTerminalRequest),
    /// Have a person fill in a form or open a page.
    Elicit(CreateElicitationRequest),
    /// A method of the agent's own, which begins with an underscore.
    Extension {
        /// Its name.
        method: String,
        /// What it is about.
        params: Value,
    },
}

impl AgentRequest {
    /// Reads a request. What was not offered is a method that nobody here knows.
    pub(super) fn from_params(offers: &ClientCapabilities, method: &str, params: Params<'_>) -> Result<Self, Error> {
        if !is_offered_to_agent(offers, method) {
            return Err(Error::method_not_found(method));
        }
        let request = match method {
            "fs/read_text_file" => Self::ReadTextFile(params.parse()?),
            "fs/write_text_file" => Self::WriteTextFile(params.parse()?),
            "terminal/create" => Self::CreateTerminal(params.parse()?),
            "terminal/output" => Self::TerminalOutput(params.parse()?),
            "terminal/wait_for_exit" => Self::WaitForTerminalExit(params.parse()?),
            "terminal/kill" => Self::KillTerminal(params.parse()?),
            "terminal/release" => Self::ReleaseTerminal(params.parse()?),
            "elicitation/create" => return read_elicitation_request(offers, params),
            extension => Self::Extension { method: extension.to_owned(), params: params.value()? },
        };
        Ok(request)
    }
}

fn is_offered_to_agent(offers: &ClientCapabilities, method: &str) -> bool {
    match method {
        "fs/read_text_file" => offers.fs.read_text_file,
        "fs/write_text_file" => offers.fs.write_text_file,
        "terminal/create" | "terminal/output" | "terminal/wait_for_exit" | "terminal/kill" | "terminal/release" => {
            offers.terminal
        }
        "elicitation/create" => offers.elicitation.is_some(),
        other => other.starts_with('_'),
    }
}

/// A mode that was not offered is refused, as a person could not answer it.
fn read_elicitation_request(offers: &ClientCapabilities, params: Params<'_>) -> Result<AgentRequest, Error> {
    let request: CreateElicitationRequest = params.parse()?;
    let offered = offers.elicitation.as_ref().is_some_and(|offered| {
        let form = offered.form.is_some() && matches!(request.mode, ElicitationMode::Form(_));
        let url = offered.url.is_some() && matches!(request.mode, ElicitationMode::Url(_));
        form || url
    });
    if offered { Ok(AgentRequest::Elicit(request)) } else { Err(Error::invalid_params("this mode was not offered")) }
}
