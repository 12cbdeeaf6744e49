//! `gander chat`: a conversation at the terminal. A pure machine in the middle, the terminal and the server at its ends.

mod app;
mod commands;
mod completion;
mod conversation;
mod conversation_questions;
mod conversation_results;
mod driver;
mod editor;
mod effects;
pub(crate) mod flags;
mod form;
mod form_limits;
mod history;
mod host;
mod interactive;
mod key_parser;
mod key_reader;
mod picker;
mod plain;
mod resume;
mod screen;
mod session_info;
mod session_options;
#[cfg(test)]
mod tests;
mod transcript;
mod view;

use std::io::IsTerminal;

use anyhow::Context as _;

use self::app::ChatApp;
use self::conversation::Conversation;
use self::driver::ChatDriver;
use self::flags::ChatOptions;
use self::history::InputHistory;
use self::host::ChatHost;
pub(crate) use self::host::is_local_host;
use self::transcript::{Echo, Transcript};
use super::run;
use super::run::session::{find_last_session, session_folder_name};
use super::session_id::resolve_session_id;
use crate::commands::{Context, Exit, UsageError};
use crate::output::{Style, Tone};
use crate::terminal::person::Person;

/// True if a chat can be held here: a person sees what is printed, and types.
pub(super) fn is_chat_possible() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

pub(super) async fn run(context: Context, options: ChatOptions) -> anyhow::Result<Exit> {
    if !is_chat_possible() {
        let message = "a chat needs a terminal; from a script: gander run \"…\"";
        return Err(UsageError(message.to_owned()).into());
    }
    let folder = run::run_folder(options.settings.folder.as_deref())?;
    let folder_text = session_folder_name(&folder)?.to_owned();
    let host = ChatHost::new(&context.config, folder, &options)?;
    let mut connection = host.connect().await?;
    let session = match &options.session {
        Some(given) => Some(resolve_session_id(&mut connection, given).await?),
        None if options.continue_last => Some(find_last_session(&mut connection, &folder_text).await?),
        None => None,
    };
    let driver = ChatDriver::new(host, connection);
    let mut transcript = match options.plain {
        true => Transcript::new(Style::Plain, usize::MAX, Echo::Typed),
        false => Transcript::new(context.output.style(), context.output.columns(), Echo::Shown),
    };
    transcript.line(Tone::Dim, &format!("gander chat in {folder_text} · /help"));
    let mut conversation = Conversation::new(transcript, folder_text, session);
    let policy = options.settings.policy.map(|policy| policy.name().to_owned());
    let settings = options.settings;
    let wishes = [("agent", settings.agent), ("mode", settings.mode), ("model", settings.model), ("policy", policy)];
    conversation.wishes = wishes.into_iter().filter_map(|(id, value)| Some((id.to_owned(), value?))).collect();
    // Only one reader of the keyboard: a person is listened to in plain lines alone.
    if options.plain {
        let person = Person::at_terminal().context("a chat needs a terminal")?;
        return plain::run_plain(driver, conversation, person, context.output).await;
    }
    let history = InputHistory::open(context.config.paths.data_directory().join("chat_history"));
    interactive::run_interactive(driver, ChatApp::new(conversation, history)).await
}
