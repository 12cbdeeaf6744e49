//! What comes of the calls of a conversation.

use gander_client::Error;
use gander_client::schema::SessionUpdate;
use serde_json::{Value, json};

use super::conversation::{Conversation, Work};
use super::effects::{Call, Effect, Reply};
use super::picker::{agent_picker_items, session_picker_items};
use crate::commands::Exit;
use crate::commands::run::ending::{Ending, ending_stop_text, exit_of_ending};
use crate::output::{Tone, clean_output_text};

/// Of a session that is opened so many turns are shown.
const HISTORY_TURNS: usize = 10;

impl Conversation {
    /// A call was answered.
    pub(super) fn handle_answer(&mut self, call: Call, answer: Result<Value, Error>) {
        match (call, answer) {
            (Call::New, Ok(opened)) => self.handle_new(&opened),
            (Call::Load, Ok(opened)) => self.handle_loaded(&opened),
            (Call::New | Call::Load, Err(error)) => self.fail(&error),
            (Call::Show, answer) => self.handle_shown(answer.ok().as_ref()),
            (Call::Prompt, Ok(ended)) => self.handle_prompt_ended(&ended),
            (Call::Prompt, Err(error)) => self.handle_prompt_failed(&error),
            (Call::Steer(_), Ok(_)) if self.work == Work::Idle => self.wait_for_run(),
            (Call::Steer(_), Ok(_)) => {}
            (Call::Steer(text), Err(error)) => {
                self.transcript.line(Tone::Warn, &format!("  the message was not accepted: {}", error.message));
                self.push_reply(Reply::Unsent(text));
            }
            (Call::Wait, answer) => self.handle_run_ended(answer),
            (Call::SetOption { id }, Ok(options)) => {
                self.info.read_options(&options);
                let current = self.info.option(&id).map(|option| option.current.clone()).unwrap_or_default();
                self.transcript.line(Tone::Dim, &format!("  {id} is now {current}"));
            }
            (Call::Sessions, Ok(page)) => self.push_reply(Reply::Sessions(session_picker_items(&page))),
            (Call::Agents { wanted: None }, Ok(listed)) => self.push_reply(Reply::Agents(agent_picker_items(&listed))),
            (Call::Agents { wanted: Some(name) }, Ok(listed)) => self.choose_agent(&name, &listed),
            (Call::Find, Ok(found)) => self.handle_found(&found),
            (Call::Files { query }, Ok(found)) => {
                let paths = found["paths"].as_array().into_iter().flatten().filter_map(Value::as_str);
                self.push_reply(Reply::Files { query, paths: paths.map(clean_output_text).collect() });
            }
            // Without the method there is nothing to complete.
            (Call::Files { .. }, Err(_)) => {}
            (Call::SetOption { .. } | Call::Sessions | Call::Agents { .. } | Call::Find, Err(error)) => {
                self.transcript.line(Tone::Bad, &format!("  {}", error.message));
            }
        }
    }

    fn handle_new(&mut self, opened: &Value) {
        self.session = opened["sessionId"].as_str().map(str::to_owned);
        self.info.read_options(opened);
        self.opened = true;
        self.set_wishes();
        self.show_session();
    }

    fn handle_loaded(&mut self, opened: &Value) {
        self.info.read_options(opened);
        let history = self.history.take().unwrap_or_default();
        for update in &history {
            self.info.note(update);
        }
        match self.opened {
            true => self.show_missed(history),
            false => self.show_history(history),
        }
        self.opened = true;
        self.set_wishes();
        self.show_session();
    }

    /// What the command line said about the session.
    fn set_wishes(&mut self) {
        for (id, value) in std::mem::take(&mut self.wishes) {
            self.set_option(&id, &value);
        }
    }

    /// What happened since the connection was lost.
    fn show_missed(&mut self, history: Vec<SessionUpdate>) {
        let missed = self.shown.take_missed(history);
        for update in missed.updates {
            self.ending.note(&update);
            self.transcript.show(&update.into());
        }
        if let Some(text) = missed.unsent {
            self.transcript.line(Tone::Dim, "  your last message had not arrived: it is sent again");
            self.shown.note_sent(&text);
            self.send_again(&text);
        }
    }

    fn show_history(&mut self, history: Vec<SessionUpdate>) {
        let is_user = |update: &SessionUpdate| matches!(update, SessionUpdate::UserMessageChunk(_));
        let starts: Vec<usize> = (0..history.len())
            .filter(|at| is_user(&history[*at]) && !at.checked_sub(1).is_some_and(|before| is_user(&history[before])))
            .collect();
        let hidden = starts.len().saturating_sub(HISTORY_TURNS);
        if hidden > 0 {
            let session = self.session.clone().unwrap_or_default();
            let more = format!("… {hidden} earlier turns: gander sessions show {session}");
            self.transcript.line(Tone::Dim, &more);
        }
        let first = if hidden > 0 { starts.get(hidden).copied().unwrap_or(0) } else { 0 };
        for (index, update) in history.into_iter().enumerate() {
            self.shown.note(&update);
            self.ending.note(&update);
            if index >= first {
                self.transcript.show(&update.into());
            }
        }
    }

    /// Asks what the session does now. A server that does not know the method has nothing running that we know of.
    fn show_session(&mut self) {
        let params = json!({ "sessionId": self.session });
        self.call(Call::Show, "_gander/session/show", params);
    }

    fn handle_shown(&mut self, session: Option<&Value>) {
        let run = session.is_some_and(|session| !session["run"].is_null());
        if let Some(session) = session {
            self.info.workspace = session["workspace"].as_str().map(str::to_owned);
            self.info.title = session["title"].as_str().filter(|title| !title.is_empty()).map(clean_output_text);
        }
        match run {
            true if !self.prompting || self.work == Work::Loading => {
                self.prompting = false;
                self.wait_for_run();
            }
            true => {}
            false if self.work == Work::Loading => {
                if self.prompting {
                    self.show_outcome(session);
                }
                self.end_turn();
            }
            false => {}
        }
        if let Some(text) = self.early.take() {
            self.send_message(&text);
        }
    }

    /// How our turn ended while there was no connection.
    fn show_outcome(&mut self, session: Option<&Value>) {
        let last = session.and_then(|session| session["ended"].as_array()?.last()?.get(1));
        let Some(outcome) = last else { return };
        match outcome["type"].as_str() {
            Some("failed") => {
                let message = outcome["message"].as_str().unwrap_or_default();
                self.transcript.line(Tone::Bad, &format!("failed: {message}"));
            }
            Some("cancelled") => self.transcript.line(Tone::Warn, "cancelled"),
            Some(_) | None => {}
        }
    }

    fn send_again(&mut self, text: &str) {
        let params = json!({ "sessionId": self.session, "prompt": self.blocks(text) });
        (self.prompting, self.work) = (true, Work::Running);
        self.call(Call::Prompt, "session/prompt", params);
    }

    fn handle_prompt_ended(&mut self, ended: &Value) {
        let stop = ended["stopReason"].as_str().unwrap_or_default();
        self.transcript.close();
        match exit_of_ending(stop) {
            Exit::Stopped => self.transcript.line(Tone::Warn, ending_stop_text(stop)),
            Exit::Cancelled => self.transcript.line(Tone::Warn, "cancelled"),
            Exit::Done | Exit::Failed | Exit::Usage => {}
        }
        let summary = self.ending.summary(&ended["usage"]);
        self.transcript.line(Tone::Dim, &format!("  {summary}"));
        self.end_turn();
    }

    fn handle_prompt_failed(&mut self, error: &Error) {
        let busy = error.data.as_ref().is_some_and(|data| data["reason"] == "session_busy");
        let text = self.shown.unconfirmed().map(str::to_owned);
        match text.filter(|_| busy) {
            // Somebody else was faster: the message goes into their turn.
            Some(text) => {
                self.prompting = false;
                self.steer(&text);
                self.wait_for_run();
            }
            None => {
                self.transcript.line(Tone::Bad, &format!("failed: {}", error.message));
                self.end_turn();
            }
        }
    }

    /// The end of a run that was waited for. Our own prompt's answer says it better.
    fn handle_run_ended(&mut self, answer: Result<Value, Error>) {
        if self.prompting {
            return;
        }
        match answer {
            Ok(ended) if ended["stopReason"] == "cancelled" => self.transcript.line(Tone::Warn, "cancelled"),
            Ok(_) => {}
            Err(error) => self.transcript.line(Tone::Bad, &format!("failed: {}", error.message)),
        }
        self.end_turn();
    }

    fn end_turn(&mut self) {
        self.transcript.close();
        self.shown.end_turn();
        self.ending = Ending::new();
        (self.prompting, self.work) = (false, Work::Idle);
    }

    fn handle_found(&mut self, found: &Value) {
        let ids: Vec<&str> = found["sessions"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        match ids.as_slice() {
            [id] => self.open_session(id),
            [] => self.transcript.line(Tone::Bad, "  no session has an ID that begins like this, see /sessions"),
            several => {
                self.transcript
                    .line(Tone::Bad, &format!("  several sessions begin with this id: {}", several.join(", ")));
            }
        }
    }

    /// An agent is chosen by the first of its modes. A mode's own name counts too.
    fn choose_agent(&mut self, name: &str, listed: &Value) {
        let named = listed["agents"].as_array().into_iter().flatten().find(|agent| agent["name"] == name);
        let mode = named.and_then(|agent| agent["modes"][0].as_str()).unwrap_or(name);
        self.set_option("mode", mode);
    }

    /// Without a session there is no chat.
    fn fail(&mut self, error: &Error) {
        self.transcript.line(Tone::Bad, &format!("the session cannot be opened: {}", error.message));
        self.push_effect(Effect::Leave { exit: Exit::Failed });
    }
}
