//! A session that is open at a client, and how the log's entries reach that client.

use std::collections::HashMap;
use std::sync::Arc;

use gander_domain::{Entry, Event, Message, Outcome, Question, ResetReason, Role, RunId, Seq, SessionView};

use super::{Asked, Prompt, of};
use crate::acp::encode::{self, Prefix};
use crate::acp::error::prompt_outcome;
use crate::acp::options::{config_options, modes};
use crate::acp::output::{Update, join, project, title_update};
use crate::acp::question;
use crate::acp::schema::{LoadSessionResponse, PromptResponse};
use crate::acp::types::{Abilities, Catalog};
use crate::jsonrpc::{Outbox, Peer, Place, RequestId, Responder};

/// A session that is open at a client.
#[derive(Debug)]
pub(super) struct Attachment {
    /// Folded from what the client was told; absent before the first entry of a replay.
    view: Option<SessionView>,
    catalog: Arc<Catalog>,
    prefix: Prefix,
    replay: Option<Replay>,
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
    pub(super) fn live(view: SessionView, catalog: Arc<Catalog>) -> Self {
        Self { prefix: Prefix::new(view.session), view: Some(view), catalog, replay: None }
    }

    /// Begins at the first entry; history ends where this view is.
    pub(super) fn replaying(now: &SessionView, catalog: Arc<Catalog>, responder: Option<Responder>) -> Self {
        let (head, history_from) = (now.head, now.history_from);
        let replay = Replay { head, history_from, responder, tentative: Outbox::default() };
        Self { prefix: Prefix::new(now.session), view: None, catalog, replay: Some(replay) }
    }

    pub(super) fn view(&self) -> Option<&SessionView> {
        self.view.as_ref()
    }

    pub(super) fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    pub(super) fn is_replaying(&self) -> bool {
        self.replay.is_some()
    }

    /// Takes the responder of this load, so that the replay goes on in silence.
    pub(super) fn stop_replaying(&mut self, id: &RequestId) -> Option<Responder> {
        let responder = &mut self.replay.as_mut()?.responder;
        responder.as_ref().is_some_and(|responder| responder.id() == id).then(|| responder.take())?
    }

    /// Offers other choices from now on.
    pub(super) fn offer(&mut self, catalog: Arc<Catalog>, out: &mut Outbox) {
        self.catalog = catalog;
        if let (Some(view), None) = (&self.view, &self.replay) {
            out.address(of(view.session));
            let settings = Box::new(view.settings.clone());
            let update = Update::Settings { settings, mode_changed: false };
            encode::update(out, &self.prefix, &self.catalog, &update);
        }
    }

    pub(super) fn ask_open_questions(&self, peer: &mut Peer<Asked>, abilities: Abilities) {
        let Some(view) = &self.view else { return };
        for question in view.run.iter().flat_map(|run| &run.questions) {
            ask(peer, abilities, view, question);
        }
    }
}

/// One batch of entries on its way to a client: adjacent pieces of text leave as one update.
pub(super) struct Feed<'c, 'e> {
    attachment: &'c mut Attachment,
    peer: &'c mut Peer<Asked>,
    prompts: &'c mut HashMap<RunId, Prompt>,
    abilities: Abilities,
    last: Option<(Update<'e>, Place)>,
}

impl<'c, 'e> Feed<'c, 'e> {
    pub(super) fn new(
        attachment: &'c mut Attachment,
        peer: &'c mut Peer<Asked>,
        prompts: &'c mut HashMap<RunId, Prompt>,
        abilities: Abilities,
    ) -> Self {
        Self { attachment, peer, prompts, abilities, last: None }
    }

    /// Tells the client what this entry means to it.
    pub(super) fn entry(&mut self, entry: &'e Entry) {
        let Some(view) = &self.attachment.view else {
            self.attachment.view = SessionView::born(entry);
            self.finish_replay();
            return;
        };
        if entry.seq <= view.head {
            return;
        }
        let place = Place { session: Some(view.session), seq: entry.seq, index: 0 };
        self.before(entry);
        if !self.is_own_words(entry) {
            self.tell(entry, place);
        }
        if let Some(view) = &mut self.attachment.view {
            view.apply(entry);
        }
        self.after(entry, place);
        self.settle_history(place);
        self.finish_replay();
    }

    /// Writes what may still have grown.
    pub(super) fn flush(&mut self) {
        let Some((update, place)) = self.last.take() else { return };
        let attachment = &mut *self.attachment;
        let out = match &mut attachment.replay {
            Some(replay) if place.seq <= replay.history_from => &mut replay.tentative,
            Some(_) | None => &mut self.peer.out,
        };
        out.address(place);
        encode::update(out, &attachment.prefix, &attachment.catalog, &update);
    }

    fn before(&mut self, entry: &Entry) {
        if let Event::HistoryReset { keep_to, reason, .. } = &entry.event
            && *reason != ResetReason::Compacted
        {
            self.flush();
            if let Some(replay) = &mut self.attachment.replay {
                replay.tentative.keep_to(*keep_to);
            }
        }
    }

    fn tell(&mut self, entry: &'e Entry, place: Place) {
        let Some(view) = &self.attachment.view else { return };
        for update in project(view, entry) {
            if self.wants(&update) {
                self.push(update, place);
            }
        }
    }

    fn push(&mut self, update: Update<'e>, place: Place) {
        let separate = match &mut self.last {
            None => Some(update),
            Some((last, at)) => {
                let separate = join(last, update);
                if separate.is_none() {
                    *at = place;
                }
                separate
            }
        };
        if let Some(update) = separate {
            self.flush();
            self.last = Some((update, place));
        }
    }

    fn wants(&self, update: &Update<'_>) -> bool {
        let replay = self.attachment.replay.as_ref();
        let silent = replay.is_some_and(|replay| replay.responder.is_none());
        let told = match update {
            Update::Notice(_) => self.abilities.notices && replay.is_none(),
            Update::Compaction(_) => self.abilities.compaction,
            Update::Text(_) | Update::Settings { .. } | Update::Other(_) => true,
        };
        told && !silent
    }

    /// A client shows what its user typed by itself; telling it again would show it twice.
    fn is_own_words(&mut self, entry: &Entry) -> bool {
        let Event::MessageDone { message: Message { role: Role::User, .. } } = &entry.event else { return false };
        let Some(prompt) = entry.run.and_then(|run| self.prompts.get_mut(&run)) else { return false };
        !std::mem::replace(&mut prompt.echoed, true) && self.attachment.replay.is_none()
    }

    fn after(&mut self, entry: &Entry, place: Place) {
        match &entry.event {
            Event::QuestionAsked { question } if self.attachment.replay.is_none() => self.asked(question, place),
            Event::QuestionAnswered { question, .. } => {
                self.flush();
                self.peer.out.address(place);
                self.peer.withdraw(&question::request_id(*question));
            }
            Event::RunEnded { outcome } => self.ended(entry.run, outcome, place),
            Event::SessionCreated { .. }
            | Event::TitleSet { .. }
            | Event::SettingsChanged { .. }
            | Event::ArchiveSet { .. }
            | Event::HistoryReset { .. }
            | Event::Noticed { .. }
            | Event::PlanSet { .. }
            | Event::UsageAdded { .. }
            | Event::RunQueued { .. }
            | Event::RunStarted { .. }
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
            | Event::Unknown(_) => {}
        }
    }

    fn asked(&mut self, question: &Question, place: Place) {
        self.flush();
        self.peer.out.address(place);
        if let Some(view) = &self.attachment.view {
            ask(self.peer, self.abilities, view, question);
        }
    }

    fn ended(&mut self, run: Option<RunId>, outcome: &Outcome, place: Place) {
        let Some(prompt) = run.and_then(|run| self.prompts.remove(&run)) else { return };
        self.flush();
        self.peer.out.address(place);
        match prompt_outcome(outcome) {
            Ok(stop) => self.peer.respond(prompt.responder, &PromptResponse::new(stop)),
            Err(error) => self.peer.fail(prompt.responder, &error),
        }
    }

    /// Past the last reset it is known what counts. A title outlives every reset.
    fn settle_history(&mut self, place: Place) {
        if self.attachment.replay.as_ref().is_none_or(|replay| place.seq != replay.history_from) {
            return;
        }
        self.flush();
        let attachment = &mut *self.attachment;
        let (Some(view), Some(replay)) = (&attachment.view, &mut attachment.replay) else { return };
        self.peer.out.append(&mut replay.tentative);
        if let (Some(title), Some(_)) = (&view.title, &replay.responder) {
            self.peer.out.address(place);
            encode::update(&mut self.peer.out, &attachment.prefix, &attachment.catalog, &title_update(title));
        }
    }

    /// Once the history is told: answer the load, then ask what is still open.
    fn finish_replay(&mut self) {
        let head = self.attachment.view.as_ref().map(|view| view.head);
        if self.attachment.replay.as_ref().is_none_or(|replay| head < Some(replay.head)) {
            return;
        }
        self.flush();
        let attachment = &mut *self.attachment;
        let (Some(view), Some(replay)) = (&attachment.view, attachment.replay.take()) else { return };
        self.peer.out.address(of(view.session));
        if let Some(responder) = replay.responder {
            let response = LoadSessionResponse::new()
                .modes(modes(&attachment.catalog, &view.settings))
                .config_options(config_options(&attachment.catalog, &view.settings));
            self.peer.respond(responder, &response);
        }
        attachment.ask_open_questions(self.peer, self.abilities);
    }
}

fn ask(peer: &mut Peer<Asked>, abilities: Abilities, view: &SessionView, question: &Question) {
    let context = Asked::Question { session: view.session, question: question.id };
    question::ask(peer, abilities, view, question, context);
}
