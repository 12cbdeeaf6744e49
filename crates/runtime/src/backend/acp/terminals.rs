//! Terminals that an agent asks its client for: commands that run here or in the attached editor.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gander_client::Error;
use gander_client::schema::{CreateTerminalRequest, TerminalExitStatus, TerminalOutputResponse};
use gander_domain::{Part, ToolContent};
use gander_tools::sandbox::Wrap;
use gander_tools::{CommandEnd, CommandLine, Environment, Exit, Host, HostError, Live, Redactor, ToolEvent};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Terminals of one session that are open at the same time.
const MAX_TERMINALS: usize = 32;
/// What is kept of a command's output unless the agent wants less.
const OUTPUT_BYTES: usize = 1024 * 1024;
/// How long a command may take.
const TIMEOUT: Duration = Duration::from_secs(60 * 60);
/// Showings of output that wait to be taken in.
const SIGNAL_CAPACITY: usize = 8;

/// The terminals of one session.
#[derive(Default)]
pub(super) struct Terminals {
    next: AtomicU64,
    open: Mutex<HashMap<String, Arc<Terminal>>>,
}

/// Where a command runs unless the agent says otherwise, and what is around it.
pub(super) struct TerminalPlace {
    pub(super) folder: PathBuf,
    pub(super) environment: Environment,
    /// The sandbox of an agent that is set to run in one.
    pub(super) wrap: Option<Wrap>,
}

struct Terminal {
    output: Mutex<TerminalOutput>,
    exit: watch::Receiver<Option<TerminalExitStatus>>,
    cancel: CancellationToken,
    _end: DropGuard,
}

#[derive(Default)]
struct TerminalOutput {
    text: String,
    is_truncated: bool,
}

impl Terminals {
    /// Starts a command.
    pub(super) fn create(
        &self,
        request: &CreateTerminalRequest,
        host: Arc<dyn Host>,
        place: TerminalPlace,
    ) -> Result<String, Error> {
        let mut open = self.lock_open();
        if open.len() >= MAX_TERMINALS {
            return Err(Error::invalid_params(format!(
                "{MAX_TERMINALS} terminals are open: release one with terminal/release"
            )));
        }
        let output = request.output_byte_limit.and_then(|limit| usize::try_from(limit).ok());
        let command = CommandLine {
            line: terminal_command_line(request),
            cwd: request.cwd.clone().unwrap_or(place.folder),
            environment: place.environment,
            timeout: TIMEOUT,
            output: output.unwrap_or(OUTPUT_BYTES).min(OUTPUT_BYTES),
            wrap: place.wrap,
        };
        let id = format!("terminal-{}", self.next.fetch_add(1, Ordering::Relaxed) + 1);
        open.insert(id.clone(), Terminal::start(command, host));
        Ok(id)
    }

    /// What a command has printed, and how it ended if it did.
    pub(super) fn output(&self, id: &str) -> Result<TerminalOutputResponse, Error> {
        let terminal = self.find(id)?;
        let exit = terminal.exit.borrow().clone();
        let output = terminal.output.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(TerminalOutputResponse::new(output.text.clone(), output.is_truncated).exit_status(exit))
    }

    /// Waits for a command's end.
    pub(super) async fn wait_for_exit(&self, id: &str) -> Result<TerminalExitStatus, Error> {
        let mut exit = self.find(id)?.exit.clone();
        let ended = exit.wait_for(Option::is_some).await.ok().and_then(|ended| ended.clone());
        Ok(ended.unwrap_or_default())
    }

    /// Ends a command; its output stays.
    pub(super) fn kill(&self, id: &str) -> Result<(), Error> {
        self.find(id).map(|terminal| terminal.cancel.cancel())
    }

    /// Ends a command and forgets it.
    pub(super) fn release(&self, id: &str) -> Result<(), Error> {
        self.lock_open().remove(id).map(drop).ok_or_else(|| unknown_terminal(id))
    }

    fn find(&self, id: &str) -> Result<Arc<Terminal>, Error> {
        self.lock_open().get(id).cloned().ok_or_else(|| unknown_terminal(id))
    }

    fn lock_open(&self) -> MutexGuard<'_, HashMap<String, Arc<Terminal>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Terminal {
    fn start(command: CommandLine, host: Arc<dyn Host>) -> Arc<Self> {
        let (told, exit) = watch::channel(None);
        let cancel = CancellationToken::new();
        let guard = cancel.clone().drop_guard();
        let terminal = Arc::new(Self { output: Mutex::default(), exit, cancel: cancel.clone(), _end: guard });
        let shown = Arc::downgrade(&terminal);
        tokio::spawn(async move {
            let (signals, mut showings) = mpsc::channel(SIGNAL_CAPACITY);
            let live = Live { cancel, redactor: Redactor::default(), signals };
            let show = |text: String| {
                if let Some(terminal) = shown.upgrade() {
                    terminal.set_output(text, command.output);
                }
            };
            let mut ended = std::pin::pin!(host.run_command(&command, &live));
            let ended = loop {
                tokio::select! {
                    ended = &mut ended => break ended,
                    Some(event) = showings.recv() => {
                        if let ToolEvent::Shown(content) = event {
                            show(shown_terminal_text(&content));
                        }
                    }
                }
            };
            let (text, status) = terminal_exit_status(ended);
            if let Some(text) = text {
                show(text);
            }
            told.send_replace(Some(status));
        });
        terminal
    }

    /// Keeps the end of it, as the protocol wants.
    fn set_output(&self, text: String, limit: usize) {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        output.is_truncated = text.len() > limit;
        output.text = match text.len().checked_sub(limit) {
            Some(surplus @ 1..) => {
                let from = (surplus..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
                text[from..].to_owned()
            }
            Some(0) | None => text,
        };
    }
}

/// The line for a shell. A program without arguments may be a line by itself: agents send both.
fn terminal_command_line(request: &CreateTerminalRequest) -> String {
    let variables =
        request.env.iter().map(|variable| format!("{}={}", variable.name, quoted_terminal_word(&variable.value)));
    let mut words: Vec<String> = variables.collect();
    match request.args.is_empty() {
        true => words.push(request.command.clone()),
        false => {
            words.extend(std::iter::once(&request.command).chain(&request.args).map(|word| quoted_terminal_word(word)))
        }
    }
    words.join(" ")
}

fn quoted_terminal_word(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn shown_terminal_text(content: &[ToolContent]) -> String {
    let texts = content.iter().filter_map(|content| match content {
        ToolContent::Part { part: Part::Text { text, .. } } => Some(text.as_str()),
        ToolContent::Part { .. } | ToolContent::Diff { .. } | ToolContent::Terminal { .. } => None,
    });
    texts.collect()
}

fn terminal_exit_status(ended: Result<CommandEnd, HostError>) -> (Option<String>, TerminalExitStatus) {
    let status = TerminalExitStatus::new();
    match ended {
        Ok(CommandEnd { output, exit, .. }) => {
            let status = match exit {
                Exit::Code(code) => status.exit_code(u32::try_from(code).ok()),
                Exit::Signal(signal) => status.signal(format!("{signal}")),
                Exit::TimedOut => status.signal("SIGKILL".to_owned()),
                Exit::Cancelled => status.signal("SIGTERM".to_owned()),
            };
            (Some(output), status)
        }
        Err(error) => (Some(error.to_string()), status.exit_code(127)),
    }
}

fn unknown_terminal(id: &str) -> Error {
    Error::invalid_params(format!("no such terminal: {id}"))
}
