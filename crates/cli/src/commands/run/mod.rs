//! `gander run`: one prompt, its answer on the terminal; or back into a turn that runs already.

pub(crate) mod answer;
pub(crate) mod busy;
pub(crate) mod ending;
pub(crate) mod events;
pub(crate) mod flags;
mod prompt;
pub(crate) mod question_text;
pub(crate) mod questions;
pub(crate) mod reconnect;
pub(crate) mod screen;
pub(crate) mod seen;
pub(crate) mod session;
pub(crate) mod turn;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use gander_client::AgentConnection;
use serde_json::json;

use self::flags::RunOptions;
use self::prompt::Prompt;
use self::reconnect::RunHost;
use self::screen::{Format, Screen};
use self::seen::last_turn_seen;
use self::session::{Opened, configure_run_session, load_session_history, open_run_session, session_folder_name};
use self::turn::{RunTurn, Then, Work};
use super::client::StandaloneClient;
use super::recipes::{self, FoundRecipe};
use crate::commands::{Context, Exit, UsageError};
use crate::terminal::person::Person;
use crate::terminal::view::AnswerKind;

pub(super) async fn run(context: Context, options: RunOptions) -> anyhow::Result<Exit> {
    let prompt = Prompt::read(&options, context.output)?;
    let attaches = options.session.is_some() || options.continue_last;
    if prompt.is_empty() && options.recipe.is_none() && !attaches {
        let message =
            "nothing to do: give a prompt (gander run \"…\"), --recipe FILE, or --session ID to follow a session";
        return Err(UsageError(message.to_owned()).into());
    }
    let follows = prompt.is_empty() && options.recipe.is_none();
    let folder = run_folder(options.settings.folder.as_deref())?;
    let config = &context.config;
    let found = match &options.recipe {
        Some(name) => Some(recipes::find_recipe(config, &folder, name).await?),
        None => None,
    };
    let host = match options.standalone {
        true => RunHost::StandaloneClient(StandaloneClient::start(config).await?),
        false => RunHost::Server { config, folder: &folder },
    };
    let mut connection = host.connect(config, &folder).await?;
    let (session, opened) = open_run_session(&mut connection, &options, session_folder_name(&folder)?, follows).await?;
    let exit =
        follow_run(&context, &options, Opening { host: &host, connection, session, opened, prompt, found }).await;
    if let RunHost::StandaloneClient(standalone) = host {
        standalone.app.drain().await;
    }
    exit
}

/// A session that is open, and what is wanted of it.
struct Opening<'a> {
    host: &'a RunHost<'a>,
    connection: AgentConnection,
    session: String,
    opened: Opened,
    prompt: Prompt,
    found: Option<FoundRecipe>,
}

async fn follow_run(context: &Context, options: &RunOptions, opening: Opening<'_>) -> anyhow::Result<Exit> {
    let Opening { host, mut connection, session, opened, prompt, found } = opening;
    configure_run_session(&mut connection, &session, options, opened).await?;
    let mut person = Person::at_terminal();
    let first = match &found {
        Some(found) => {
            let at = recipes::RecipeStart { context, person: person.as_mut(), session: &session };
            recipes::apply_recipe_to_session(at, &mut connection, found, &options.params).await?
        }
        None => None,
    };
    let prompt = prompt.after(first);
    let person = person.filter(|_| !options.json);
    let wants_result = found.is_some_and(|found| found.recipe.response.is_some());
    let answer = if wants_result { AnswerKind::Result } else { AnswerKind::Text };
    let format = if options.json { Format::Json } else { Format::Text };
    let screen = Screen::new(context.output, format, answer);
    let waits_for = format!("waiting for {}", run_model_name(&mut connection, &session).await);
    let mut turn =
        RunTurn { prompt, if_busy: options.if_busy, person, ..RunTurn::new(host, connection, session, screen) };
    turn.waits_for = waits_for;
    if options.json {
        let session = events::session_event_json(&turn.session);
        turn.screen.event(&session)?;
    }
    match turn.prompt.is_empty() {
        true => {
            turn.attach(session_folder_name(&run_folder(options.settings.folder.as_deref())?)?).await?;
            turn.wait_for_run(Then::Leave);
        }
        false => turn.send_prompt(),
    }
    turn.run().await
}

/// A session that is watched.
pub(super) struct FollowOptions {
    pub(super) session: String,
    pub(super) folder: PathBuf,
    pub(super) json: bool,
}

/// Follows a session, turn after turn, until somebody interrupts.
pub(super) async fn watch_running_session(
    context: &Context,
    connection: AgentConnection,
    options: FollowOptions,
) -> anyhow::Result<Exit> {
    let FollowOptions { session, folder, json } = options;
    let host = RunHost::Server { config: &context.config, folder: &folder };
    let format = if json { Format::Json } else { Format::Text };
    let screen = Screen::new(context.output, format, AnswerKind::Text);
    let person = Person::at_terminal().filter(|_| !json);
    let mut turn = RunTurn { person, ..RunTurn::new(&host, connection, session, screen) };
    turn.attach(session_folder_name(&folder)?).await?;
    turn.work = Work::Watch;
    turn.run().await
}

impl RunTurn<'_> {
    /// Shows the turn under way from its beginning, then goes on with it.
    async fn attach(&mut self, folder: &str) -> anyhow::Result<()> {
        let history = load_session_history(&mut self.connection, &self.session, folder).await?;
        for update in self.seen.take_unseen(last_turn_seen(history)) {
            self.ending.note(&update);
            self.screen.show_update(update.into())?;
        }
        Ok(())
    }
}

/// The folder to work in.
pub(super) fn run_folder(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    let folder = given.unwrap_or(Path::new("."));
    folder.canonicalize().with_context(|| format!("no such folder: {}", folder.display()))
}

/// What the session's model is called, for people who wait for it.
pub(super) async fn run_model_name(connection: &mut AgentConnection, session: &str) -> String {
    let view = connection.call_method("_gander/session/show", &json!({ "sessionId": session })).await;
    let model = view.ok().and_then(|view| view["settings"]["model"].as_str().map(str::to_owned));
    model.unwrap_or_else(|| "the model".to_owned())
}
