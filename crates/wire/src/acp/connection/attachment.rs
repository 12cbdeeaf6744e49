//! A session that is open at a client, and how the log's entries reach that client.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use gander_domain::view::UsageTotals;
use gander_domain::{
    Answer, Entry, Event, Message, Outcome, Part, Question, QuestionId, QuestionKind, Reply, ResetReason, Role, RunId,
    Seq, SessionCatalog, SessionId, SessionView, Settings, SettingsPatch,
};

use super::log_meta::{own_prompt_in_log_meta, session_log_meta};
use super::{ActivePrompt, ClientQuestion, session_message_origin};
use crate::acp::abilities::ClientAbilities;
use crate::acp::agent_words::is_raw_compaction;
use crate::acp::config_options::{config_options, current_mode_option, mode_option_state};
use crate::acp::error::{acp_prompt_outcome_or_error, acp_stop_reason_meta};
use crate::acp::projection::{SessionUpdateOut, join_session_updates, project_acp_entry, title_update};
use crate::acp::schema::{CompleteElicitationNotification, LoadSessionResponse, Meta, PromptResponse, Usage};
use crate::acp::write_update::{UpdatePrefix, write_session_update};
use crate::acp::{question, slash_commands};
use crate::jsonrpc::{MessageOrigin, Outbox, Peer, RequestId, Responder};

/// How many of a client's own messages are waited for.
const MAX_AWAITED_ECHOES: usize = 16;

/// A session that is open at a client.
#[derive(Debug)]
pub(super) struct Attachment {
    /// Folded from what the client was told; absent before the first entry of a replay.
    view: Option<SessionView>,
    catalog: Arc<SessionCatalog>,
    prefix: UpdatePrefix,
    replay: Option<Replay>,
    /// What this client said into a running turn and is not told again.
    said: Vec<Vec<Part>>,
    /// The `_meta` that the session was made with, as far as its first entry went by.
    meta: Option<Meta>,
    /// What the model calls of the run used, if its beginning went by.
    turn: Option<UsageTotals>,
    /// Changes of settings that were accepted and have not gone by yet, oldest first.
    ahead: VecDeque<SettingsPatch>,
    /// Questions that were put to the client, until somebody takes note of them.
    asked: VecDeque<QuestionId>,
}

/// A history that is being told.
#[derive(Debug)]
struct Replay {
    /// Up to here it is history, after it is life.
    head: Seq,
    /// People's view begins here: what came before counts only as far as resets keep it.
    history_from: Seq,
    /// Who is answered at its end; nobody if the load was cancelled.
    responder: Option<Responder>,
    /// Told only once it is known what counts.
    tentative: Outbox,
}

impl Attachment {
    /// Goes on from this view.
    pub(super) fn attach_live(view: SessionView, catalog: Arc<SessionCatalog>) -> Self {
        Self {
            prefix: UpdatePrefix::new(view.session),
            view: Some(view),
            catalog,
            replay: None,
            said: Vec::new(),
            meta: None,
            turn: None,
            ahead: VecDeque::new(),
            asked: VecDeque::new(),
        }
    }

    /// Begins at the first entry; history ends where this view is.
    pub(super) fn attach_replaying(
        now: &SessionView,
        catalog: Arc<SessionCatalog>,
        responder: Option<Responder>,
    ) -> Self {
        let (head, history_from) = (now.head, now.history_from);
        let replay = Replay { head, history_from, responder, tentative: Outbox::default() };
        Self { replay: Some(replay), ..Self::attach_unsaved(now.session, catalog) }
    }

    /// Begins at the first entry, and none of it is history.
    pub(super) fn attach_unsaved(session: SessionId, catalog: Arc<SessionCatalog>) -> Self {
        let prefix = UpdatePrefix::new(session);
        let (ahead, asked) = (VecDeque::new(), VecDeque::new());
        Self { prefix, view: None, catalog, replay: None, said: Vec::new(), meta: None, turn: None, ahead, asked }
    }

    /// Begins again with a history that is being told.
    pub(super) fn restart_replay(self) -> Option<Self> {
        let replay = Replay { tentative: Outbox::default(), ..self.replay? };
        Some(Self { view: None, replay: Some(replay), said: Vec::new(), ..self })
    }

    pub(super) fn view(&self) -> Option<&SessionView> {
        self.view.as_ref()
    }

    /// What was told need not be kept: a message may be long, and its readers many.
    pub(super) fn drop_streamed_text(&mut self) {
        if let Some(view) = &mut self.view {
            view.clear_open_text();
        }
    }

    pub(super) fn catalog(&self) -> &SessionCatalog {
        &self.catalog
    }

    pub(super) fn is_replaying(&self) -> bool {
        self.replay.is_some()
    }

    /// True if a run was under way when this client was told last.
    pub(super) fn is_running(&self) -> bool {
        self.view.as_ref().is_some_and(|view| view.run.is_some())
    }

    /// The request that is answered once the history is told.
    pub(super) fn load_request(&self) -> Option<&RequestId> {
        self.replay.as_ref()?.responder.as_ref().map(Responder::id)
    }

    /// Takes the responder of this load, so that the replay goes on in silence.
    pub(super) fn take_load_responder(&mut self, id: &RequestId) -> Option<Responder> {
        let responder = &mut self.replay.as_mut()?.responder;
        responder.as_ref().is_some_and(|responder| responder.id() == id).then(|| responder.take())?
    }

    /// The settings with every change of this client that was accepted, though its entry may not have gone by yet.
    pub(super) fn accepted_settings(&self) -> Option<Settings> {
        let mut settings = self.view.as_ref()?.settings.clone();
        self.ahead.iter().for_each(|patch| settings.apply_patch(patch));
        Some(settings)
    }

    /// A change was accepted: the settings as they are with it, and with those that were accepted just before.
    pub(super) fn apply_accepted_patch(&mut self, patch: SettingsPatch) -> Option<Settings> {
        let before = self.accepted_settings()?;
        let mut settings = before.clone();
        settings.apply_patch(&patch);
        // A change to what is there already makes no entry, so nothing would take it away again.
        if settings != before {
            self.ahead.push_back(patch);
        }
        if self.ahead.len() > MAX_AWAITED_ECHOES {
            self.ahead.pop_front();
        }
        Some(settings)
    }

    /// Offers other choices from now on.
    pub(super) fn set_catalog(&mut self, catalog: Arc<SessionCatalog>, out: &mut Outbox) {
        let before = std::mem::replace(&mut self.catalog, catalog);
        if *before == *self.catalog {
            return;
        }
        if let (Some(view), None) = (&self.view, &self.replay) {
            out.set_origin(session_message_origin(view.session));
            let settings = Box::new(view.settings.clone());
            let mode_changed = current_mode_option(&before, &settings) != current_mode_option(&self.catalog, &settings);
            self.send_update(out, &SessionUpdateOut::Settings { settings, mode_changed });
        }
    }

    /// Tells the client something that is in no log.
    pub(super) fn send_update(&self, out: &mut Outbox, update: &SessionUpdateOut<'_>) {
        write_session_update(out, &self.prefix, &self.catalog, update);
    }

    pub(super) fn send_commands(&self, out: &mut Outbox) {
        self.send_update(out, &SessionUpdateOut::Other(Box::new(slash_commands::available_slash_commands())));
    }

    /// The client is about to say this into the running turn, and shows it by itself.
    pub(super) fn expect_echo(&mut self, parts: Vec<Part>) {
        if self.said.len() == MAX_AWAITED_ECHOES {
            self.said.remove(0);
        }
        self.said.push(parts);
    }

    pub(super) fn ask_open_questions(&mut self, peer: &mut Peer<ClientQuestion>, abilities: ClientAbilities) {
        let Some(view) = &self.view else { return };
        for question in view.run.iter().flat_map(|run| &run.questions) {
            ask_attached(peer, abilities, view, question);
            self.asked.push_back(question.id);
        }
    }

    /// The next question that was put to the client.
    pub(super) fn pop_asked(&mut self) -> Option<QuestionId> {
        self.asked.pop_front()
    }
}

/// One batch of entries on its way to a client: adjacent pieces of text leave as one update.
pub(super) struct AttachmentFeed<'c, 'e> {
    pub(super) attachment: &'c mut Attachment,
    pub(super) peer: &'c mut Peer<ClientQuestion>,
    pub(super) prompts: &'c mut HashMap<RunId, ActivePrompt>,
    abilities: ClientAbilities,
    /// The name under which the connection's prompts are in the log.
    name: Option<&'c str>,
    /// The client is told each message of the agent whole.
    pub(super) whole: bool,
    last: Option<(SessionUpdateOut<'e>, MessageOrigin)>,
}

impl<'c, 'e> AttachmentFeed<'c, 'e> {
    pub(super) fn new(
        attachment: &'c mut Attachment,
        peer: &'c mut Peer<ClientQuestion>,
        prompts: &'c mut HashMap<RunId, ActivePrompt>,
        abilities: ClientAbilities,
    ) -> Self {
        Self { attachment, peer, prompts, abilities, name: None, whole: false, last: None }
    }

    /// Knows the prompts of this name again.
    pub(super) fn for_connection(mut self, name: Option<&'c str>) -> Self {
        self.name = name;
        self
    }

    /// Tells the client what this entry means to it.
    pub(super) fn handle_entry(&mut self, entry: &'e Entry) {
        let Some(view) = &self.attachment.view else {
            self.attachment.view = SessionView::from_created(entry);
            self.attachment.meta = session_log_meta(entry.meta.as_deref());
            self.finish_replay();
            return;
        };
        if entry.seq <= view.head {
            return;
        }
        let origin = MessageOrigin { session: Some(view.session), seq: entry.seq, index: 0 };
        let visit = answered_attachment_visit(view, entry);
        self.handle_before(entry);
        if !self.is_own_message(entry, origin) {
            self.send_entry(entry, origin);
        }
        if let Some(view) = &mut self.attachment.view {
            view.apply(entry);
        }
        self.handle_after(entry, origin);
        if let Some(question) = visit.filter(|_| self.abilities.visits && self.attachment.replay.is_none()) {
            self.peer
                .out
                .push_notification("elicitation/complete", &CompleteElicitationNotification::new(question.to_string()));
        }
        if self.abilities.v2 {
            self.send_state(entry, origin);
        }
        self.finish_history(origin);
        self.finish_replay();
    }

    pub(super) fn is_replaying(&self) -> bool {
        self.attachment.is_replaying()
    }

    /// Writes what may still have grown.
    pub(super) fn flush_update(&mut self) {
        let Some((update, origin)) = self.last.take() else { return };
        let attachment = &mut *self.attachment;
        let out = match &mut attachment.replay {
            Some(replay) if origin.seq <= replay.history_from => &mut replay.tentative,
            Some(_) | None => &mut self.peer.out,
        };
        out.set_origin(origin);
        write_session_update(out, &attachment.prefix, &attachment.catalog, &update);
    }

    fn handle_before(&mut self, entry: &Entry) {
        if let Event::HistoryReset { keep_to, reason, .. } = &entry.event
            && *reason != ResetReason::Compacted
        {
            self.flush_update();
            if let Some(replay) = &mut self.attachment.replay {
                replay.tentative.truncate_after(*keep_to);
            }
        }
    }

    fn send_entry(&mut self, entry: &'e Entry, origin: MessageOrigin) {
        let Some(view) = &self.attachment.view else { return };
        let draft = self.abilities.v2.then(|| self.v2_updates(entry)).flatten();
        let draft = draft.or_else(|| self.whole_updates(entry));
        for update in draft.unwrap_or_else(|| project_acp_entry(view, entry)) {
            if self.wants_update(&update) {
                self.push_update(update, origin);
            }
        }
    }

    fn push_update(&mut self, update: SessionUpdateOut<'e>, origin: MessageOrigin) {
        let separate = match &mut self.last {
            None => Some(update),
            Some((last, at)) => {
                let separate = join_session_updates(last, update);
                if separate.is_none() {
                    *at = origin;
                }
                separate
            }
        };
        if let Some(update) = separate {
            self.flush_update();
            self.last = Some((update, origin));
        }
    }

    fn wants_update(&self, update: &SessionUpdateOut<'_>) -> bool {
        let replay = self.attachment.replay.as_ref();
        let silent = replay.is_some_and(|replay| replay.responder.is_none());
        let told = match update {
            SessionUpdateOut::Notice(_) => self.abilities.notices && replay.is_none(),
            SessionUpdateOut::Compaction(_) => self.abilities.compaction,
            SessionUpdateOut::Raw(raw) => self.abilities.compaction || !is_raw_compaction(raw),
            SessionUpdateOut::Text(_) | SessionUpdateOut::Settings { .. } | SessionUpdateOut::Other(_) => true,
        };
        told && !silent
    }

    /// A client shows what its user typed by itself; telling it again would show it twice.
    /// In version 2 the session tells everybody everything.
    fn is_own_message(&mut self, entry: &Entry, origin: MessageOrigin) -> bool {
        let Event::MessageDone { message: message @ Message { role: Role::User, .. } } = &entry.event else {
            return false;
        };
        if self.is_replaying() {
            return false;
        }
        if self.abilities.v2 {
            self.acknowledge_prompt(entry.run, message, origin);
            return false;
        }
        let own = entry.run.and_then(|run| self.prompts.get_mut(&run));
        if own.is_some_and(|prompt| !std::mem::replace(&mut prompt.echoed, true)) {
            return true;
        }
        let said = &mut self.attachment.said;
        let steered = said.iter().position(|parts| parts == &message.parts);
        steered.map(|index| said.remove(index)).is_some()
    }

    fn handle_after(&mut self, entry: &Entry, origin: MessageOrigin) {
        match &entry.event {
            Event::QuestionAsked { question } if self.attachment.replay.is_none() => {
                self.ask_question(question, origin)
            }
            Event::QuestionAnswered { question, .. } => {
                self.flush_update();
                self.peer.out.set_origin(origin);
                self.peer.cancel_request(&question::acp_question_request_id(*question));
            }
            Event::RunEnded { outcome } => self.handle_run_ended(entry.run, outcome, origin),
            Event::RunStarted { .. } => self.handle_run_started(entry),
            Event::UsageAdded { usage } => self.attachment.add_usage(usage),
            // Changes go by in the order in which they were accepted.
            Event::SettingsChanged { .. } => drop(self.attachment.ahead.pop_front()),
            Event::SessionCreated { .. }
            | Event::TitleSet { .. }
            | Event::ArchiveSet { .. }
            | Event::HistoryReset { .. }
            | Event::Noticed { .. }
            | Event::PlanSet { .. }
            | Event::StateChanged { .. }
            | Event::ArtifactSaved { .. }
            | Event::TextMarked { .. }
            | Event::Routed { .. }
            | Event::RunQueued { .. }
            | Event::RunRecovered { .. }
            | Event::CancelRequested { .. }
            | Event::MessageStarted { .. }
            | Event::PartDelta { .. }
            | Event::MessageDone { .. }
            | Event::ToolCalled { .. }
            | Event::ToolStarted { .. }
            | Event::ToolUpdated { .. }
            | Event::ToolDone { .. }
            | Event::QuestionAsked { .. }
            | Event::OpaqueUpdate { .. }
            | Event::Unknown(_) => {}
        }
    }

    /// A run that is told again is told from its beginning.
    fn handle_run_started(&mut self, entry: &Entry) {
        self.attachment.turn = Some(UsageTotals::default());
        if let Some(prompt) = entry.run.and_then(|run| self.prompts.get_mut(&run)) {
            prompt.echoed = false;
        } else if let Some(view) = self.attachment.view.as_ref().filter(|_| self.attachment.replay.is_none()) {
            self.prompts.extend(own_prompt_in_log_meta(self.name, view.session, entry));
        }
    }

    fn ask_question(&mut self, question: &Question, origin: MessageOrigin) {
        self.flush_update();
        self.peer.out.set_origin(origin);
        if let Some(view) = &self.attachment.view {
            ask_attached(self.peer, self.abilities, view, question);
            self.attachment.asked.push_back(question.id);
        }
    }

    fn handle_run_ended(&mut self, run: Option<RunId>, outcome: &Outcome, origin: MessageOrigin) {
        let Some(prompt) = run.and_then(|run| self.prompts.remove(&run)) else { return };
        self.flush_update();
        self.peer.out.set_origin(origin);
        let usage = self.attachment.turn_usage();
        for responder in prompt.into_responders() {
            match acp_prompt_outcome_or_error(outcome) {
                Ok(stop) => {
                    let response = PromptResponse::new(stop).usage(usage.clone()).meta(acp_stop_reason_meta(outcome));
                    self.peer.respond_result(responder, &response);
                }
                Err(error) => self.peer.respond_error(responder, &error),
            }
        }
    }

    /// Past the last reset it is known what counts. A title outlives every reset.
    fn finish_history(&mut self, origin: MessageOrigin) {
        if self.attachment.replay.as_ref().is_none_or(|replay| origin.seq != replay.history_from) {
            return;
        }
        self.flush_update();
        let attachment = &mut *self.attachment;
        let (Some(view), Some(replay)) = (&attachment.view, &mut attachment.replay) else { return };
        self.peer.out.append(&mut replay.tentative);
        if let (Some(title), Some(_)) = (&view.title, &replay.responder) {
            self.peer.out.set_origin(origin);
            write_session_update(&mut self.peer.out, &attachment.prefix, &attachment.catalog, &title_update(title));
        }
    }

    /// Once the history is told: answer the load, then ask what is still open.
    fn finish_replay(&mut self) {
        let head = self.attachment.view.as_ref().map(|view| view.head);
        if self.attachment.replay.as_ref().is_none_or(|replay| head < Some(replay.head)) {
            return;
        }
        self.flush_update();
        let attachment = &mut *self.attachment;
        let (Some(view), Some(replay)) = (&attachment.view, attachment.replay.take()) else { return };
        self.peer.out.set_origin(session_message_origin(view.session));
        if let Some(responder) = replay.responder {
            let response = LoadSessionResponse::new()
                .modes(mode_option_state(&attachment.catalog, &view.settings))
                .config_options(config_options(&attachment.catalog, &view.settings))
                .meta(attachment.meta.clone());
            self.peer.respond_result(responder, &response);
            attachment.send_commands(&mut self.peer.out);
        }
        if self.abilities.v2 {
            attachment.send_present_v2_state(&mut self.peer.out);
        }
        attachment.ask_open_questions(self.peer, self.abilities);
    }
}

impl Attachment {
    fn add_usage(&mut self, usage: &gander_domain::Usage) {
        let Some(turn) = &mut self.turn else { return };
        turn.input += usage.input;
        turn.output += usage.output;
        turn.cached += usage.cached;
        turn.thinking += usage.thinking;
    }

    /// What the turn used, if anybody counted.
    pub(super) fn turn_usage(&self) -> Option<Usage> {
        let UsageTotals { input, output, cached, thinking, .. } = self.turn?;
        let known = |tokens: u64| (tokens > 0).then_some(tokens);
        let usage = Usage::new(input + output, input, output);
        (input + output > 0).then(|| usage.cached_read_tokens(known(cached)).thought_tokens(known(thinking)))
    }
}

/// The question of an address that was visited, if this entry says so.
fn answered_attachment_visit(view: &SessionView, entry: &Entry) -> Option<QuestionId> {
    let Event::QuestionAnswered { question, answer: Answer { reply: Reply::Filled { .. }, .. } } = &entry.event else {
        return None;
    };
    let asked = view.run.as_ref()?.find_question(*question)?;
    matches!(asked.ask, QuestionKind::Visit { .. }).then_some(*question)
}

fn ask_attached(peer: &mut Peer<ClientQuestion>, abilities: ClientAbilities, view: &SessionView, question: &Question) {
    let context = ClientQuestion::Question { session: view.session, question: question.id };
    question::send_acp_question(peer, abilities, view, question, context);
}
