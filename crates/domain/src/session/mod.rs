//! The session machine: the only writer of a session's log.

mod closing;
mod commands;
mod recovery;
mod reports;

use std::collections::VecDeque;

use serde_json::Value;

pub use recovery::Recovery;

use crate::{
    Entry, Event, IdGenerator, Message, MessageId, Order, Outcome, Part, Principal, Role, RunId, RunOrigin, Seq,
    SessionCommand, SessionId, SessionView, Settings, StopReason, TextMark, Timestamp,
};

/// Room for effects that a session keeps while there are none.
const IDLE_EFFECTS_CAPACITY: usize = 64;

/// The session machine. Feed it commands and reports, then take its effects with [`Session::poll_effect`] until there
/// are none; append the entries in order and send the orders when their [`OrderTiming`] has come.
///
/// # The laws
/// 1. At most one run is active. The same run id twice is one run.
/// 2. Every run that started ends exactly once: completed, cancelled or failed.
/// 3. Every tool call that was called ends before its run does; orphans are closed as cancelled or interrupted.
/// 4. Every question is answered exactly once: the first chosen option wins. A cancelled run answers its open
///    questions `Cancelled`. A tool that asked starts only after an explicit yes.
/// 5. After an accepted cancel the outcome is cancelled, whatever the back-end says afterwards. A dead back-end
///    is a failed run.
/// 6. Sequence numbers only grow, by one.
/// 7. Replay = live: the view folded from the stored entries is the view the machine has, and a whole message
///    equals its joined deltas. There is one open message, only its last part grows, and a durable entry first
///    closes it, an opaque update excepted.
/// 8. Commit, then publish: an order to run a tool carries [`OrderTiming::AfterCommit`] or [`OrderTiming::AfterSync`]. (That nobody
///    sees an uncommitted entry is the store's half of this law.)
/// 9. A turn belongs to the session: no command tells the machine that a client came or went.
#[derive(Clone, Debug)]
pub struct Session {
    view: SessionView,
    /// Is there a back-end that hears orders? Not a fact of the log: after a restart there is none.
    has_backend: bool,
    /// Was the back-end sent an answer that it may have missed, because it was about to park?
    answer_may_be_missed: bool,
    /// What people said into the turn since the agent last did something: it may not have heard of it.
    unconfirmed_steering: Vec<Message>,
    effects: VecDeque<Effect>,
}

/// What a session wants done, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Append this to the log.
    Append(Entry),
    /// Tell the back-end.
    Order {
        /// Not before this.
        when: OrderTiming,
        order: Order,
    },
}

/// When an order may go out, seen from the entries appended before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OrderTiming {
    /// At once.
    Immediately,
    /// After they are committed.
    AfterCommit,
    /// After they would survive a power cut.
    AfterSync,
}

/// What the machine may not get by itself: the time and new ids.
pub struct MachineContext<'a> {
    /// The time.
    pub at: Timestamp,
    /// Where ids come from.
    pub ids: &'a mut dyn IdGenerator,
}

/// How a session begins.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionInit {
    /// Its id.
    pub session: SessionId,
    /// Whose it is.
    pub owner: Principal,
    /// The folder it works in.
    pub workspace: String,
    /// Further folders.
    pub folders: Vec<String>,
    /// What it is set to.
    pub settings: Settings,
    /// Where it comes from.
    pub parent: Option<SessionId>,
    /// What the door left for itself.
    pub meta: Option<Value>,
    /// What is known about the origin of the text that it begins with.
    pub inherited: TextMark,
}

impl Session {
    /// A new session, with its first entry among the effects.
    pub fn create(at: Timestamp, init: SessionInit) -> Self {
        let SessionInit { session, owner, workspace, folders, settings, parent, meta, inherited } = init;
        let event = Event::SessionCreated {
            session,
            owner: owner.clone(),
            workspace: workspace.clone(),
            folders: folders.clone(),
            settings: settings.clone(),
            parent,
            inherited: Box::new(inherited),
        };
        let entry = Entry { seq: Seq::ZERO.next(), at, run: None, event, meta: meta.map(Box::new) };
        let view = SessionView::from_created(&entry).expect("the entry is a SessionCreated");
        Self { effects: VecDeque::from([Effect::Append(entry)]), ..Self::restore(view) }
    }

    /// A session as its log says it is, with no back-end.
    pub fn restore(view: SessionView) -> Self {
        Self {
            view,
            has_backend: false,
            answer_may_be_missed: false,
            unconfirmed_steering: Vec::new(),
            effects: VecDeque::new(),
        }
    }

    /// What the session is now, effects included that were not taken yet.
    pub fn view(&self) -> &SessionView {
        &self.view
    }

    /// True if a back-end was ordered to work and did not park, end or die.
    pub fn has_backend(&self) -> bool {
        self.has_backend
    }

    /// The next effect.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        let effect = self.effects.pop_front();
        if effect.is_none() && self.effects.capacity() > IDLE_EFFECTS_CAPACITY {
            self.effects = VecDeque::new(); // a burst is over, hundreds of sessions may have had one
        }
        effect
    }

    fn append(&mut self, at: Timestamp, run: Option<RunId>, event: Event) {
        self.append_with_meta(at, run, event, None);
    }

    fn append_with_meta(&mut self, at: Timestamp, run: Option<RunId>, event: Event, meta: Option<Value>) {
        let entry = Entry { seq: self.view.head.next(), at, run, event, meta: meta.map(Box::new) };
        self.view.apply(&entry);
        let spoke = matches!(&entry.event, Event::MessageDone { message } if message.role != Role::User);
        if spoke || matches!(entry.event, Event::ToolDone { .. } | Event::RunEnded { .. }) {
            self.unconfirmed_steering.clear();
        }
        self.effects.push_back(Effect::Append(entry));
    }

    fn push_order(&mut self, when: OrderTiming, order: Order) {
        self.effects.push_back(Effect::Order { when, order });
    }

    /// The model call need not wait for the prompt's commit: only the acknowledgement does.
    fn start_run(
        &mut self,
        context: &mut MachineContext<'_>,
        run: RunId,
        origin: RunOrigin,
        parts: Vec<Part>,
        meta: Option<Value>,
    ) {
        self.append_with_meta(context.at, Some(run), Event::RunStarted { origin }, meta);
        // What cannot be carried out was refused before it came here.
        let command = SessionCommand::in_prompt(&parts).unwrap_or_default();
        let message = session_user_message(context, parts);
        self.append(context.at, Some(run), Event::MessageDone { message });
        if let Some(command) = command {
            self.say_command_done(context, run, &command);
            self.carry_out(context, Some(run), command);
            self.end_run(context, Outcome::Completed { stop: StopReason::EndTurn });
            return;
        }
        self.has_backend = true;
        self.push_order(OrderTiming::Immediately, Order::Begin { run });
    }
}

fn session_user_message(context: &mut MachineContext<'_>, parts: Vec<Part>) -> Message {
    Message { id: MessageId::make(context.ids), role: Role::User, parts, interrupted: false, native: None }
}
