//! `gander run`: one prompt, its answer on the terminal.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use gander_client::schema::{ContentBlock, PermissionOption, StopReason, ToolCallUpdate};
use gander_client::{AgentConnection, AgentEvent, ShownUpdate};
use gander_wire::acp::client::{CallId, PermissionRequest};
use gander_wire::jsonrpc::Error;
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

use super::ask::{self, Person};
use super::client::{self, Standalone};
use super::options::RunOptions;
use super::terminal_view::{Piece, TerminalView};
use super::{events, recipes};
use crate::commands::{Context, Exit};
use crate::output::{Output, Tone, reveal};

/// How often a run that stands before the prompt is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

pub(super) async fn run(context: Context, options: RunOptions) -> anyhow::Result<Exit> {
    let asked = options.prompt.as_deref().map(prompt).transpose()?;
    let cwd = folder(options.cwd.as_deref())?;
    let config = &context.config;
    let found = match &options.recipe {
        Some(name) => Some(recipes::find(config, &cwd, name).await?),
        None => None,
    };
    let standalone = match options.standalone {
        true => Some(Standalone::start(config).await?),
        false => None,
    };
    let mut connection = match &standalone {
        Some(standalone) => client::within(standalone, config, &cwd).await?,
        None => client::connect(config, &cwd).await?,
    };
    let session = open(&mut connection, &options, &cwd).await?;
    configure(&mut connection, &session, &options).await?;
    let mut person = Person::at_terminal();
    let begun = match &found {
        Some(found) => {
            let at = recipes::At { context: &context, person: person.as_mut(), session: &session };
            recipes::begin(at, &mut connection, found, &options.params).await?
        }
        None => None,
    };
    let prompt: Vec<String> = begun.into_iter().chain(asked).collect();
    ensure!(!prompt.is_empty(), "the recipe asks nothing: say what to do");
    let prompt = prompt.join("\n\n");
    let person = person.filter(|_| !options.json);
    let mut turn = Turn::new(connection, session, prompt, context.output, person, options.json);
    let exit = turn.run().await;
    if let Some(standalone) = standalone {
        standalone.app.drain().await;
    }
    exit
}

fn prompt(given: &str) -> anyhow::Result<String> {
    let mut prompt = given.to_owned();
    if given == "-" {
        prompt.clear();
        io::stdin().read_to_string(&mut prompt).context("cannot read the prompt from stdin")?;
    }
    ensure!(!prompt.trim().is_empty(), "the prompt is empty");
    Ok(prompt)
}

fn folder(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    let folder = given.unwrap_or(Path::new("."));
    folder.canonicalize().with_context(|| format!("no such folder: {}", folder.display()))
}

/// The session to speak in: a named one, the last one of this folder, or a new one.
async fn open(connection: &mut AgentConnection, options: &RunOptions, cwd: &Path) -> anyhow::Result<String> {
    let folder = cwd.to_str().context("the folder's name is not UTF-8")?;
    let named = match &options.session {
        None if options.continue_last => Some(last(connection, folder).await?),
        named => named.clone(),
    };
    let call = match named {
        Some(id) => connection.client.resume_session(&id, folder),
        None => connection.client.new_session(folder),
    };
    let AgentEvent::Opened { session, .. } = connection.wait_for_answer(call, |_| {}).await? else {
        bail!("the server opened no session")
    };
    Ok(session)
}

async fn last(connection: &mut AgentConnection, folder: &str) -> anyhow::Result<String> {
    let answer = connection.call_method("session/list", &json!({ "cwd": folder })).await?;
    let id = answer["sessions"][0]["sessionId"].as_str();
    id.map(str::to_owned).with_context(|| format!("no session in this folder yet: {folder}"))
}

/// What was said on the command line holds for a session that exists already, too.
async fn configure(connection: &mut AgentConnection, session: &str, options: &RunOptions) -> anyhow::Result<()> {
    let model = options.model.as_deref().filter(|_| options.session.is_some() || options.continue_last);
    let policy = options.policy.map(|policy| policy.name());
    for (option, value) in [("mode", options.mode.as_deref()), ("model", model), ("policy", policy)] {
        if let Some(value) = value {
            let params = json!({ "sessionId": session, "configId": option, "value": value });
            connection.call_method("session/set_config_option", &params).await?;
        }
    }
    Ok(())
}

/// The turn under way.
struct Turn {
    connection: AgentConnection,
    session: String,
    prompt: String,
    call: CallId,
    /// The session waits for a person first: the prompt is asked again when that run is over.
    held_up: bool,
    screen: TerminalView,
    output: Output,
    json: bool,
    person: Option<Person>,
    asked: Option<Question>,
    cancelled: bool,
}

/// A question that waits for a person.
struct Question {
    permission: PermissionRequest,
    options: Vec<PermissionOption>,
}

impl Turn {
    fn new(
        mut connection: AgentConnection,
        session: String,
        prompt: String,
        output: Output,
        person: Option<Person>,
        json: bool,
    ) -> Self {
        let call = connection.client.prompt(&session, &[ContentBlock::from(prompt.as_str())]);
        let screen = TerminalView::new(output.style(), output.error_style());
        let (asked, cancelled, held_up) = (None, false, false);
        Self { connection, session, prompt, call, held_up, screen, output, json, person, asked, cancelled }
    }

    async fn run(&mut self) -> anyhow::Result<Exit> {
        if self.json {
            self.output.line(&events::session(&self.session).to_string())?;
        }
        // One listener for the whole turn: a signal between two looks is not lost.
        let mut interrupts = signal(SignalKind::interrupt())?;
        loop {
            let line = async {
                match &mut self.person {
                    Some(person) if self.asked.is_some() => person.line().await,
                    Some(_) | None => std::future::pending().await,
                }
            };
            tokio::select! {
                told = self.connection.next_event() => match told {
                    Ok(told) => if let Some(exit) = self.handle_agent_event(told)? {
                        return Ok(exit);
                    },
                    Err(_) => bail!("the server is gone; the session is kept: {}", self.session),
                },
                line = line => self.typed(line)?,
                () = tokio::time::sleep(LOOK_AGAIN), if self.held_up => self.look_again(),
                _ = interrupts.recv() => {
                    if self.cancelled {
                        return Ok(Exit::Cancelled);
                    }
                    self.cancel()?;
                }
            }
        }
    }

    fn handle_agent_event(&mut self, told: AgentEvent) -> anyhow::Result<Option<Exit>> {
        match told {
            AgentEvent::Updated(update) if *update.session_id.0 == *self.session => {
                self.show_update(&update.update.into())?
            }
            AgentEvent::Asked { permission, request } => self.ask(permission, &request.tool_call, request.options)?,
            AgentEvent::Withdrawn { request } => self.withdrawn(&request)?,
            AgentEvent::Ended { call, stop } if call == self.call => return self.ended(&stop).map(Some),
            AgentEvent::Failed { call, error } if call == self.call && self.can_wait(&error) => self.hold_up()?,
            AgentEvent::Failed { call, error } if call == self.call => return self.failed(&error.message).map(Some),
            AgentEvent::Answered { call, result } if call == self.call && result["run"].is_null() => self.ask_again(),
            AgentEvent::Initialized { .. }
            | AgentEvent::Opened { .. }
            | AgentEvent::Ended { .. }
            | AgentEvent::Answered { .. }
            | AgentEvent::Failed { .. }
            | AgentEvent::Updated(_)
            | AgentEvent::Requested { .. }
            | AgentEvent::Notified { .. } => {}
        }
        Ok(None)
    }

    fn show_update(&mut self, heard: &ShownUpdate) -> anyhow::Result<()> {
        if self.json {
            return Ok(self.event(&events::update_json(heard))?);
        }
        let pieces = self.screen.show_update(heard);
        Ok(self.show(pieces)?)
    }

    /// An open question of an earlier run stands before this prompt, and somebody is here to answer it.
    fn can_wait(&self, error: &Error) -> bool {
        let awaiting = error.data.as_ref().is_some_and(|data| data["state"] == "awaiting");
        awaiting && self.person.is_some()
    }

    fn hold_up(&mut self) -> anyhow::Result<()> {
        self.held_up = true;
        let pieces = self.screen.line(Tone::Dim, "  this session waits for your answer first");
        self.show(pieces)?;
        if self.asked.is_some() {
            self.output.aside("> ");
        }
        Ok(())
    }

    fn look_again(&mut self) {
        self.call = self.connection.client.call("_gander/session/show", &json!({ "sessionId": self.session }));
    }

    fn ask_again(&mut self) {
        self.held_up = false;
        self.call = self.connection.client.prompt(&self.session, &[ContentBlock::from(self.prompt.as_str())]);
    }

    fn ask(
        &mut self,
        permission: PermissionRequest,
        tool: &ToolCallUpdate,
        options: Vec<PermissionOption>,
    ) -> anyhow::Result<()> {
        if let Some(person) = &mut self.person {
            person.forget();
            let title = reveal(tool.fields.title.as_deref().unwrap_or("this"));
            let pieces = self.screen.line(Tone::Warn, &format!("? may it: {title}"));
            self.show(pieces)?;
            self.output.aside(&ask::detail(tool));
            self.output.note(&reveal(&ask::menu(&options)));
            self.output.aside("> ");
            self.asked = Some(Question { permission, options });
            return Ok(());
        }
        let refusal = ask::refusal(&options).map(|option| option.option_id.0.to_string());
        if self.json {
            self.event(&events::question(tool, &options, refusal.as_deref()))?;
        } else {
            let title = tool.fields.title.as_deref().unwrap_or("a tool");
            let pieces = self.screen.line(Tone::Warn, &format!("refused, nobody can be asked here: {title}"));
            self.show(pieces)?;
            self.output.note("  (use --policy auto_edit or auto, a rule in the settings, or a terminal)");
        }
        match refusal {
            Some(option) => self.connection.client.select_option(permission, &option),
            None => self.connection.client.decline(permission),
        }
        Ok(())
    }

    fn typed(&mut self, line: Option<String>) -> anyhow::Result<()> {
        let Some(Question { permission, options }) = self.asked.take() else { return Ok(()) };
        match line {
            // ctrl-d: nobody there any more.
            None => {
                self.person = None;
                self.connection.client.decline(permission);
            }
            Some(line) => match ask::choice(&options, &line) {
                Some(option) => self.connection.client.select_option(permission, &option.option_id.0),
                None => {
                    self.output.aside("a number, please > ");
                    self.asked = Some(Question { permission, options });
                }
            },
        }
        Ok(())
    }

    fn withdrawn(&mut self, id: &gander_wire::jsonrpc::RequestId) -> anyhow::Result<()> {
        match self.asked.take() {
            Some(question) if question.permission.id() == id => {
                self.connection.client.decline(question.permission);
                self.output.note("");
                let pieces = self.screen.line(Tone::Dim, "  answered elsewhere");
                self.show(pieces)?;
            }
            other => self.asked = other,
        }
        Ok(())
    }

    fn cancel(&mut self) -> anyhow::Result<()> {
        self.cancelled = true;
        self.connection.client.cancel(&self.session);
        if let Some(question) = self.asked.take() {
            self.connection.client.decline(question.permission);
        }
        if !self.json {
            let pieces = self.screen.line(Tone::Warn, "cancelling; once more to leave at once");
            self.show(pieces)?;
        }
        Ok(())
    }

    fn ended(&mut self, stop: &StopReason) -> anyhow::Result<Exit> {
        let exit = if *stop == StopReason::EndTurn {
            Exit::Done
        } else if *stop == StopReason::Cancelled {
            Exit::Cancelled
        } else {
            Exit::Stopped
        };
        if self.json {
            self.event(&events::end(stop))?;
            return Ok(exit);
        }
        let pieces = match exit {
            Exit::Stopped => {
                self.screen.line(Tone::Warn, &format!("stopped early: {}", json!(stop).as_str().unwrap_or("?")))
            }
            Exit::Done | Exit::Cancelled | Exit::Failed | Exit::Usage => self.screen.close(),
        };
        self.show(pieces)?;
        if self.output.error_style().is_terminal() {
            let pieces = self.screen.line(Tone::Dim, &format!("session {}", self.session));
            self.show(pieces)?;
        }
        Ok(exit)
    }

    fn failed(&mut self, message: &str) -> anyhow::Result<Exit> {
        if self.json {
            self.event(&events::failed(message))?;
        } else {
            let pieces = self.screen.line(Tone::Bad, &format!("failed: {message}"));
            self.show(pieces)?;
        }
        Ok(Exit::Failed)
    }

    fn event(&self, event: &Value) -> io::Result<()> {
        self.output.line(&event.to_string())
    }

    fn show(&self, pieces: Vec<Piece>) -> io::Result<()> {
        for piece in pieces {
            match piece {
                Piece::Out(text) => self.output.piece(&text)?,
                Piece::Err(text) => self.output.aside(&text),
            }
        }
        Ok(())
    }
}
