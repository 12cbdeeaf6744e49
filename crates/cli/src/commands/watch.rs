//! `gander watch`: follows one session, or every open question of every session.

use std::collections::HashMap;
use std::time::Duration;

use clap::Args;
use gander_client::{AgentConnection, AgentEvent};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

use super::client;
use super::run::answer::{self, TypedAnswer};
use super::run::question_text::{self, DetailLimit};
use super::run::questions::{Questions, RunQuestion, Withdrawn};
use super::run::{self, FollowOptions};
use super::session_id::resolve_session_id;
use super::shell_completion;
use crate::commands::{Context, Exit, UsageError};
use crate::output::{Output, Tone, clean_output_text};
use crate::terminal::person::Person;

/// How often sessions that wait are looked for.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Options of `gander watch`.
#[derive(Debug, Args)]
pub(super) struct WatchOptions {
    /// Session ID, or its beginning [default: every session that is waiting for an answer]
    #[arg(add = shell_completion::complete_sessions())]
    session: Option<String>,
    /// Print one event per line, as JSON
    #[arg(long, requires = "session")]
    json: bool,
}

pub(super) async fn run(context: Context, options: WatchOptions) -> anyhow::Result<Exit> {
    let here = std::env::current_dir()?;
    let mut connection = client::connect_client(&context.config, &here).await?;
    if let Some(given) = &options.session {
        let session = resolve_session_id(&mut connection, given).await?;
        return run::watch_running_session(
            &context,
            connection,
            FollowOptions { session, folder: here, json: options.json },
        )
        .await;
    }
    let Some(person) = Person::at_terminal() else {
        let message = "nobody can answer here: run it in a terminal, or name a session to follow";
        return Err(UsageError(message.to_owned()).into());
    };
    let (output, folder) = (context.output, here.to_str().unwrap_or("/").to_owned());
    let watch = Watch { connection, person, output, folder, titles: HashMap::new(), questions: Questions::default() };
    watch.run().await
}

/// Every open question of every session.
struct Watch {
    connection: AgentConnection,
    person: Person,
    output: Output,
    folder: String,
    /// The sessions that are open here, and what they are called.
    titles: HashMap<String, String>,
    questions: Questions,
}

impl Watch {
    async fn run(mut self) -> anyhow::Result<Exit> {
        let mut interrupts = signal(SignalKind::interrupt())?;
        let mut looks = tokio::time::interval(LOOK_AGAIN);
        self.output.note("Waiting for questions of any session; ctrl-c leaves.");
        loop {
            let asked = self.questions.asked().is_some();
            tokio::select! {
                told = self.connection.next_event() => match told {
                    Ok(told) => self.handle_event(told),
                    Err(_) => anyhow::bail!("lost the server; start again with: gander watch"),
                },
                line = self.person.line(), if asked => match line {
                    Some(line) => self.handle_typed(&line),
                    None => return Ok(Exit::Done),
                },
                _ = looks.tick() => self.look(),
                _ = interrupts.recv() => {
                    self.output.note("");
                    return Ok(Exit::Done);
                }
            }
        }
    }

    fn look(&mut self) {
        self.connection.client.call("_gander/sessions/list", &json!({ "state": "waiting" }));
    }

    fn handle_event(&mut self, told: AgentEvent) {
        match told {
            AgentEvent::Answered { result, .. } => self.open_waiting(&result),
            AgentEvent::Asked { permission, request } => {
                if let Some(before) = self.questions.push(RunQuestion::new(permission, *request)) {
                    self.connection.client.decline(before);
                }
                self.ask_next();
            }
            AgentEvent::Withdrawn { request } => match self.questions.withdraw(&request) {
                Withdrawn::Asked(permission) => {
                    self.connection.client.decline(permission);
                    self.output.note("\n  answered by another client");
                    self.ask_next();
                }
                Withdrawn::Waiting(permission) => self.connection.client.decline(permission),
                Withdrawn::Unknown => {}
            },
            AgentEvent::Initialized { .. }
            | AgentEvent::Opened { .. }
            | AgentEvent::Ended { .. }
            | AgentEvent::Failed { .. }
            | AgentEvent::Updated(_)
            | AgentEvent::Requested { .. }
            | AgentEvent::UpdatedWhole { .. }
            | AgentEvent::Notified { .. } => {}
        }
    }

    /// Sessions that wait and are not open here yet are opened: their questions come by themselves. A sub-agent's are
    /// asked in the session that began it.
    fn open_waiting(&mut self, page: &Value) {
        for session in page["sessions"].as_array().into_iter().flatten().filter(|one| one["parent"].is_null()) {
            let Some(id) = session["sessionId"].as_str() else { continue };
            if self.titles.contains_key(id) {
                continue;
            }
            let title = session["title"].as_str().filter(|title| !title.is_empty()).unwrap_or("(no title)");
            self.titles.insert(id.to_owned(), title.to_owned());
            self.connection.client.resume_session(id, &self.folder);
        }
    }

    fn ask_next(&mut self) {
        let Some((question, waiting)) = self.questions.next_question() else { return };
        self.person.drop_typed();
        let style = self.output.error_style();
        let title = self.titles.get(&question.session).map_or("", String::as_str);
        let more = if waiting > 0 { format!(" ({waiting} more after this)") } else { String::new() };
        let short: String = question.session.chars().take(13).collect();
        self.output.note(&style.paint(Tone::Dim, &format!("\nsession {short} · {}", clean_output_text(title))));
        self.output.note(&style.paint(Tone::Warn, &format!("? {}{more}", question_text::question_headline(question))));
        let detail = question_text::question_detail(&question.tool, style, DetailLimit::Screen);
        let (menu, prompt) =
            (question_text::question_menu(&question.options), question_text::question_prompt_line(&question.options));
        self.output.aside(&format!("{detail}{menu}\n{prompt}"));
    }

    fn handle_typed(&mut self, line: &str) {
        let Some(RunQuestion { options, tool, .. }) = self.questions.asked() else { return };
        let (option, meta) = match answer::read_typed_answer(options, line) {
            TypedAnswer::Option(option) => (option, None),
            TypedAnswer::Reject { option, reason } => (option, Some(json!({ "gander/reason": reason }))),
            TypedAnswer::WhichAlways => return self.output.aside(&question_text::question_which_always(options)),
            TypedAnswer::Unclear => return self.output.aside(&question_text::question_try_again(options)),
            TypedAnswer::Help => {
                let prompt = question_text::question_prompt_line(options);
                return self.output.aside(&format!("{}\n{prompt}", question_text::HELP));
            }
            TypedAnswer::ShowAll => {
                let whole = question_text::question_detail(tool, self.output.error_style(), DetailLimit::Whole);
                let (menu, prompt) =
                    (question_text::question_menu(options), question_text::question_prompt_line(options));
                return self.output.aside(&format!("{whole}{menu}\n{prompt}"));
            }
        };
        if let Some(question) = self.questions.take_asked() {
            let response =
                json!({ "outcome": { "outcome": "selected", "optionId": option }, "_meta": meta.unwrap_or(json!({})) });
            self.connection.client.respond(question.permission.into(), &response);
        }
        self.ask_next();
    }
}
