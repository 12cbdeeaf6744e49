//! A session machine on a string: feed it, then compare what it appended and ordered.

use gander_domain::{
    Accepted, Command, CommandError, Effect, Entry, Event, IfBusy, MachineContext, Order, OrderTiming, Part, Recovery,
    Report, RunId, Session, SessionView, Timestamp,
};

use crate::build;
use crate::ids::CountingIds;

/// A session machine with a log and a clock that tests turn.
#[derive(Clone, Debug)]
pub struct SessionScript {
    /// The machine.
    pub session: Session,
    /// What it appended so far.
    pub log: Vec<Entry>,
    /// What it ordered so far, with when and with the log's length at that moment.
    pub orders: Vec<(OrderTiming, Order, usize)>,
    /// The time, in microseconds.
    pub clock: i64,
    ids: CountingIds,
}

impl SessionScript {
    /// A new session.
    pub fn begin() -> Self {
        let session = Session::create(Timestamp::from_micros(0), build::birth(build::session(1)));
        let mut script =
            Self { session, log: Vec::new(), orders: Vec::new(), clock: 0, ids: CountingIds::after(1_000_000) };
        script.drain();
        script
    }

    /// A command.
    pub fn command(&mut self, command: Command) -> Result<Accepted, CommandError> {
        let result = self.session.handle_command(&mut now(self.clock, &mut self.ids), command);
        self.drain();
        result
    }

    /// A prompt of one text.
    pub fn prompt(&mut self, run: RunId, if_busy: IfBusy) -> Result<Accepted, CommandError> {
        let (origin, parts) = (build::origin(), vec![Part::text("hello")]);
        self.command(Command::Prompt { run, origin, parts, if_busy, meta: None })
    }

    /// A report of the back-end.
    pub fn report(&mut self, run: RunId, report: Report) {
        self.session.handle_report(&mut now(self.clock, &mut self.ids), run, report);
        self.drain();
    }

    /// The back-end is gone.
    pub fn backend_dies(&mut self, run: RunId) {
        self.session.handle_backend_exit(&mut now(self.clock, &mut self.ids), run, "gone");
        self.drain();
    }

    /// The process dies and the next one reads the log.
    pub fn crash(&mut self, recovery: &Recovery) {
        let view = SessionView::replay(&self.log).expect("the log has a first entry");
        self.session = Session::restore(view);
        self.session.recover(&mut now(self.clock, &mut self.ids), recovery);
        self.drain();
    }

    /// One line per entry from this place on, without times.
    pub fn lines(&self, from: usize) -> String {
        self.log.iter().skip(from).map(|entry| format!("{} {}\n", entry.seq, line(&entry.event))).collect()
    }

    fn drain(&mut self) {
        while let Some(effect) = self.session.poll_effect() {
            match effect {
                Effect::Append(entry) => self.log.push(entry),
                Effect::Order { when, order } => self.orders.push((when, order, self.log.len())),
            }
        }
    }
}

fn now(clock: i64, ids: &mut CountingIds) -> MachineContext<'_> {
    MachineContext { at: Timestamp::from_micros(clock), ids }
}

/// The event as compact JSON, its kind first.
fn line(event: &Event) -> String {
    serde_json::to_string(event).expect("events are plain data")
}
