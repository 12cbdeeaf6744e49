//! The open session as a machine: what the server says and what the person wants go in, lines and effects come out.

use std::collections::VecDeque;

use gander_client::AgentEvent;
use gander_client::schema::{ContentBlock, ResourceLink, SessionUpdate, TextContent};
use serde_json::{Value, json};

use super::commands::{ChatCommand, chat_command_help, known_chat_commands, read_chat_command};
use super::completion::mentioned_files;
use super::effects::{Call, Effect, Reply};
use super::form::ChatForm;
use super::resume::ResumeProgress;
use super::session_info::SessionInfo;
use super::transcript::Transcript;
use crate::commands::Exit;
use crate::commands::run::ending::Ending;
use crate::commands::run::questions::Questions;
use crate::output::Tone;

/// The open session.
///
/// Feed it with `handle_*`, then take [`poll_effect`](Self::poll_effect) and [`poll_reply`](Self::poll_reply) until both are
/// empty, and the lines of the transcript.
pub(super) struct Conversation {
    pub(super) transcript: Transcript,
    pub(super) info: SessionInfo,
    pub(super) questions: Questions,
    pub(super) forms: VecDeque<ChatForm>,
    pub(super) work: Work,
    /// The folder of new sessions.
    pub(super) folder: String,
    pub(super) session: Option<String>,
    pub(super) shown: ResumeProgress,
    pub(super) ending: Ending,
    /// The history that is being told.
    pub(super) history: Option<Vec<SessionUpdate>>,
    /// Whether the open session was shown before its history is told: then only what is new is shown.
    pub(super) opened: bool,
    /// A prompt of our own is under way: its answer tells the end of the turn.
    pub(super) prompting: bool,
    /// Options that a new session is set to at once.
    pub(super) wishes: Vec<(String, String)>,
    /// A message that was typed before the session was open.
    pub(super) early: Option<String>,
    /// Why there was no connection, as told last.
    unreachable: Option<String>,
    effects: VecDeque<Effect>,
    replies: VecDeque<Reply>,
}

/// What goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// There is no server.
    Connecting,
    /// The session is being opened.
    Loading,
    Idle,
    Running,
    /// The turn was cancelled and has not ended yet.
    Cancelling,
}

impl Conversation {
    pub(super) fn new(transcript: Transcript, folder: String, session: Option<String>) -> Self {
        Self {
            transcript,
            info: SessionInfo::default(),
            questions: Questions::default(),
            forms: VecDeque::new(),
            work: Work::Connecting,
            folder,
            session,
            shown: ResumeProgress::default(),
            ending: Ending::new(),
            history: None,
            opened: false,
            prompting: false,
            wishes: Vec::new(),
            early: None,
            unreachable: None,
            effects: VecDeque::new(),
            replies: VecDeque::new(),
        }
    }

    /// There is a connection: the session is opened on it.
    pub(super) fn handle_connected(&mut self) {
        self.unreachable = None;
        if self.opened {
            self.transcript.line(Tone::Dim, "  reconnected");
        }
        match self.session.clone() {
            Some(session) => self.load(&session),
            None => self.begin_session(),
        }
    }

    /// The connection is lost. Its questions cannot be answered any more; the next one asks them again.
    pub(super) fn handle_lost(&mut self) {
        self.questions.drain();
        self.forms.clear();
        self.history = None;
        if self.work != Work::Connecting {
            let saved = if self.is_running() { "The turn is saved and resumes; " } else { "" };
            self.transcript.line(Tone::Warn, &format!("! Lost the server. {saved}reconnecting …"));
        }
        self.work = Work::Connecting;
    }

    /// There is no server yet. It is told once; then it is only tried again.
    pub(super) fn handle_unreachable(&mut self, reason: &str) {
        if self.unreachable.as_deref() != Some(reason) {
            self.transcript.line(Tone::Warn, &format!("! No connection: {reason}; trying again …"));
            self.unreachable = Some(reason.to_owned());
        }
    }

    /// The server says something of its own accord.
    pub(super) fn handle_event(&mut self, event: AgentEvent) {
        match event {
            AgentEvent::Updated(told) => {
                if self.session.as_deref() == Some(&*told.session_id.0) {
                    self.handle_update(told.update);
                }
            }
            AgentEvent::Asked { permission, request } => self.handle_question(permission, *request),
            AgentEvent::Withdrawn { request } => self.handle_withdrawn(&request),
            AgentEvent::Requested { responder, request } => self.handle_request(responder, &request),
            AgentEvent::Initialized { .. }
            | AgentEvent::Opened { .. }
            | AgentEvent::Ended { .. }
            | AgentEvent::Answered { .. }
            | AgentEvent::Failed { .. }
            | AgentEvent::UpdatedWhole { .. }
            | AgentEvent::Notified { .. } => {}
        }
    }

    /// The person sends a line: a command or a prompt.
    pub(super) fn handle_line(&mut self, line: &str) {
        let line = line.trim();
        if line.is_empty() {
            return;
        }
        match read_chat_command(line, &self.info.options) {
            Some(command) => self.handle_command(command),
            None => self.send_message(line),
        }
    }

    /// A command of the chat. Lists to choose from are the front's: here they are printed.
    pub(super) fn handle_command(&mut self, command: ChatCommand) {
        match command {
            ChatCommand::Help => {
                let lines = chat_command_help(&self.commands());
                self.transcript.painted(lines);
            }
            ChatCommand::New => self.begin_session(),
            ChatCommand::Sessions(None) => self.call(Call::Sessions, "_gander/sessions/list", json!({})),
            ChatCommand::Sessions(Some(id)) => {
                self.call(Call::Find, "_gander/session/find", json!({ "prefix": id.to_ascii_lowercase() }));
            }
            ChatCommand::Agent(wanted) => {
                let params = json!({ "sessionId": self.session });
                self.call(Call::Agents { wanted }, "_gander/agents/list", params);
            }
            ChatCommand::Option { id, value: Some(value) } => self.set_option(&id, &value),
            ChatCommand::Option { id, value: None } => self.list_choices(&id),
            ChatCommand::Queue(text) => self.send_prompt(&text, json!({ "gander/ifBusy": "queue" })),
            ChatCommand::Cancel => self.cancel(),
            ChatCommand::Quit => self.leave(),
        }
    }

    /// Cancels the turn, whoever began it.
    pub(super) fn cancel(&mut self) {
        let Some(session) = self.session.clone().filter(|_| self.is_running()) else {
            self.transcript.line(Tone::Dim, "  no turn is running");
            return;
        };
        self.work = Work::Cancelling;
        self.drop_forms();
        for question in self.questions.drain() {
            self.effects.push_back(Effect::Decline { permission: question.permission });
        }
        self.effects.push_back(Effect::Cancel { session });
        self.transcript.line(Tone::Warn, "cancelling; ctrl-c again leaves");
    }

    /// Leaves. A turn that runs goes on without us.
    pub(super) fn leave(&mut self) {
        self.transcript.close();
        if let Some(session) = &self.session.clone() {
            let goes_on = if self.is_running() { "The turn continues. " } else { "" };
            self.transcript.line(Tone::Dim, &format!("{goes_on}Come back: gander chat --session {session}"));
        }
        self.effects.push_back(Effect::Leave { exit: Exit::Done });
    }

    /// Opens another session.
    pub(super) fn open_session(&mut self, session: &str) {
        if self.session.as_deref() == Some(session) {
            return;
        }
        self.forget_session();
        self.load(session);
    }

    pub(super) fn set_option(&mut self, id: &str, value: &str) {
        let Some(session) = &self.session else { return };
        let params = json!({ "sessionId": session, "configId": id, "value": value });
        self.call(Call::SetOption { id: id.to_owned() }, "session/set_config_option", params);
    }

    /// Asks for files whose names fit.
    pub(super) fn find_files(&mut self, query: &str) {
        let Some(session) = &self.session else { return };
        let params = json!({ "sessionId": session, "query": query });
        self.call(Call::Files { query: query.to_owned() }, "_gander/workspace/files", params);
    }

    /// All slash commands that can be typed.
    pub(super) fn commands(&self) -> Vec<(String, String)> {
        known_chat_commands(&self.info.options, &self.info.commands)
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(self.work, Work::Running | Work::Cancelling)
    }

    /// What is waited for, in a few words.
    pub(super) fn waits_for(&self) -> Option<String> {
        match self.work {
            Work::Idle => None,
            Work::Connecting => Some("connecting".to_owned()),
            Work::Loading => Some("opening the session".to_owned()),
            Work::Cancelling => Some("cancelling".to_owned()),
            Work::Running => {
                let running = self.transcript.running();
                Some(running.unwrap_or_else(|| format!("waiting for {}", self.info.model())))
            }
        }
    }

    pub(super) fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    pub(super) fn poll_reply(&mut self) -> Option<Reply> {
        self.replies.pop_front()
    }

    pub(super) fn push_effect(&mut self, effect: Effect) {
        self.effects.push_back(effect);
    }

    pub(super) fn push_reply(&mut self, reply: Reply) {
        self.replies.push_back(reply);
    }

    pub(super) fn call(&mut self, call: Call, method: &'static str, params: Value) {
        self.effects.push_back(Effect::Call { call, method, params });
    }

    /// Waits for the end of the run under way.
    pub(super) fn wait_for_run(&mut self) {
        let Some(session) = &self.session else { return };
        self.work = Work::Running;
        let params = json!({ "sessionId": session });
        self.call(Call::Wait, "_gander/session/wait", params);
    }

    /// Shows an update; one that belongs to a run which nobody here began says that one is under way.
    pub(super) fn show_update(&mut self, update: SessionUpdate) {
        let begins_run = matches!(
            update,
            SessionUpdate::UserMessageChunk(_) | SessionUpdate::AgentMessageChunk(_) | SessionUpdate::ToolCall(_)
        );
        self.shown.note(&update);
        self.note_update(&update);
        self.transcript.show(&update.into());
        if begins_run && self.work == Work::Idle {
            self.ending = Ending::new();
            self.wait_for_run();
        }
    }

    pub(super) fn note_update(&mut self, update: &SessionUpdate) {
        self.ending.note(update);
        self.info.note(update);
    }

    pub(super) fn send_prompt(&mut self, text: &str, meta: Value) {
        let Some(session) = self.session.clone() else { return };
        self.transcript.own_prompt(text);
        self.shown.note_sent(text);
        self.ending = Ending::new();
        (self.prompting, self.work) = (true, Work::Running);
        let params = json!({ "sessionId": session, "prompt": self.blocks(text), "_meta": meta });
        self.call(Call::Prompt, "session/prompt", params);
    }

    pub(super) fn steer(&mut self, text: &str) {
        let Some(session) = &self.session else { return };
        let params = json!({ "sessionId": session, "prompt": self.blocks(text) });
        self.call(Call::Steer(text.to_owned()), "_session/steering", params);
    }

    pub(super) fn send_message(&mut self, text: &str) {
        match self.work {
            // It goes as soon as the session is open.
            Work::Loading if self.early.is_none() => self.early = Some(text.to_owned()),
            Work::Connecting | Work::Loading => {
                self.transcript.line(Tone::Warn, "  not connected yet: your message is kept below");
                self.replies.push_back(Reply::Unsent(text.to_owned()));
            }
            Work::Idle => self.send_prompt(text, json!({})),
            Work::Running | Work::Cancelling => {
                self.transcript.own_prompt(text);
                self.shown.note_sent(text);
                self.steer(text);
            }
        }
    }

    fn handle_update(&mut self, update: SessionUpdate) {
        match &mut self.history {
            Some(history) => history.push(update),
            None => self.show_update(update),
        }
    }

    fn begin_session(&mut self) {
        self.forget_session();
        self.session = None;
        self.work = Work::Loading;
        let params = json!({ "cwd": self.folder, "mcpServers": [] });
        self.call(Call::New, "session/new", params);
    }

    fn load(&mut self, session: &str) {
        (self.session, self.work) = (Some(session.to_owned()), Work::Loading);
        self.history = Some(Vec::new());
        let params = json!({ "sessionId": session, "cwd": self.folder, "mcpServers": [] });
        self.call(Call::Load, "session/load", params);
    }

    /// What was known of the session before. Its turn and its questions stay with the server.
    fn forget_session(&mut self) {
        self.transcript.close();
        self.drop_forms();
        for question in self.questions.drain() {
            self.effects.push_back(Effect::Decline { permission: question.permission });
        }
        (self.info, self.shown) = (SessionInfo::default(), ResumeProgress::default());
        (self.opened, self.prompting, self.history) = (false, false, None);
    }

    fn list_choices(&mut self, id: &str) {
        let Some(option) = self.info.option(id) else { return };
        let mark = |value: &str| if value == option.current { "*" } else { " " };
        let row = |choice: &super::session_options::OptionChoice| {
            format!("{} {}  {}", mark(&choice.value), choice.value, choice.description).trim_end().to_owned()
        };
        let mut lines: Vec<String> = option.choices.iter().map(row).collect();
        lines.push(format!("  set it with: /{id} VALUE"));
        self.transcript.painted(lines);
    }

    /// A prompt as the protocol sends it, with a link for each file that it mentions.
    pub(super) fn blocks(&self, text: &str) -> Vec<ContentBlock> {
        let workspace = self.info.workspace.as_deref().unwrap_or(&self.folder);
        let link = |path: String| {
            let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or(&path).to_owned();
            let whole = if path.starts_with('/') { path } else { format!("{workspace}/{path}") };
            ContentBlock::ResourceLink(ResourceLink::new(name, format!("file://{}", encode_mentioned_path(&whole))))
        };
        let text_block = ContentBlock::Text(TextContent::new(text.to_owned()));
        std::iter::once(text_block).chain(mentioned_files(text).into_iter().map(link)).collect()
    }
}

/// A path as it stands in an address.
fn encode_mentioned_path(path: &str) -> String {
    path.bytes().fold(String::new(), |mut encoded, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => encoded.push(byte.into()),
            other => encoded.push_str(&format!("%{other:02X}")),
        }
        encoded
    })
}
