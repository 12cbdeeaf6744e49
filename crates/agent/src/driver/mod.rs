//! The driver of one run: does what the [`Turn`] says and tells it what happened.

mod equipment;
mod feed;
mod guests;
mod hands;
mod held;
mod network;
mod orders;
mod protected;
mod tasks;

use std::collections::VecDeque;
use std::pin::Pin;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gander_domain::{Context, Order, QuestionId, Report, Timestamp};
use gander_mcp::{Attendance, Audience, News};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::Sleep;
use tokio_util::sync::CancellationToken;

use crate::turn::{Effect, Input, Turn};
use feed::Feed;
use held::{Held, Loose};
use tasks::Tasks;

pub use equipment::{Equipment, Fit, Refit, Surroundings, Task};
pub use guests::Guest;
pub(crate) use guests::plain_call;
pub use hands::{GrantBook, Grants, Hands, Workbench};
pub use orders::Orders;

/// How much servers may say before they have to wait for the driver.
const NEWS: usize = 64;

/// Drives the context's active run from [`Order::Begin`] or [`Order::Resume`] until it ended or parked.
///
/// Orders are heard at any time, also while nobody takes the reports; the model is read and tools are heard only
/// as fast as the reports are taken. When `cancel` fires it leaves at once and says nothing; likewise when nobody
/// hears its reports. Dropping it stops the model call and kills the tools.
pub async fn drive(
    equipment: Equipment,
    context: Context,
    orders: impl Into<Orders>,
    reports: mpsc::Sender<Report>,
    cancel: CancellationToken,
) {
    let mut orders = orders.into();
    let mut driver = Driver::new(equipment, context, reports);
    while let Some(input) = driver.next(&mut orders, &cancel).await {
        driver.handle(input);
    }
    driver.leave(&cancel).await;
}

struct Driver {
    turn: Turn,
    equipment: Equipment,
    feed: Feed,
    tasks: Tasks,
    pause: Option<Pin<Box<Sleep>>>,
    reports: mpsc::Sender<Report>,
    /// Reports that nobody has taken yet. While there are any, nothing is read that could make more.
    outbox: VecDeque<Report>,
    held: Held,
    news: mpsc::Receiver<News>,
    /// The session's servers speak to this run.
    _attendance: Attendance,
    over: bool,
}

impl Driver {
    fn new(equipment: Equipment, context: Context, reports: mpsc::Sender<Report>) -> Self {
        let (tell, news) = mpsc::channel(NEWS);
        let attendance = equipment.servers.attend(Audience { news: tell, model: equipment.model.clone() });
        Self {
            turn: Turn::new(equipment.setup(), context),
            feed: Feed::Idle,
            tasks: Tasks::new(equipment.hands.clone()),
            pause: None,
            equipment,
            reports,
            outbox: VecDeque::new(),
            held: Held::default(),
            news,
            _attendance: attendance,
            over: false,
        }
    }

    /// The next thing that happens; `None` if there is nothing more to do.
    async fn next(&mut self, orders: &mut Orders, cancel: &CancellationToken) -> Option<Input> {
        while !self.over {
            let free = self.outbox.is_empty();
            tokio::select! {
                biased;
                () = cancel.cancelled() => return None,
                order = orders.next() => return order.map(|order| ordered(&mut self.held, &self.equipment, order)),
                permit = self.reports.reserve(), if !free => permit.ok()?.send(self.outbox.pop_front()?),
                input = self.tasks.next(), if free => return Some(input),
                input = self.feed.next(), if free => return Some(input),
                () = over(&mut self.pause) => return Some(Input::Waited),
                question = self.held.abandoned() => return Some(Input::Abandoned(question)),
                Some(news) = self.news.recv(), if free => return Some(heard(&mut self.held, &mut self.equipment, news)),
            }
        }
        None
    }

    fn handle(&mut self, input: Input) {
        self.turn.handle(now(), input, &mut *self.equipment.ids);
        while let Some(effect) = self.turn.poll() {
            self.perform(effect);
        }
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::CallModel(request) => self.feed = Feed::call(self.equipment.model.clone(), request),
            Effect::AbortModel => self.feed = Feed::Idle,
            Effect::RunTool(call) => self.tasks.run(call),
            Effect::StopTools => self.tasks.stop(),
            Effect::Wait(pause) => self.pause = Some(Box::pin(tokio::time::sleep(pause))),
            Effect::Report(report) => self.send(report),
            Effect::End => self.over = true,
        }
    }

    /// At once if there is room and nothing waits before it.
    fn send(&mut self, report: Report) {
        if !self.outbox.is_empty() {
            return self.outbox.push_back(report);
        }
        match self.reports.try_send(report) {
            Ok(()) => {}
            Err(TrySendError::Full(report)) => self.outbox.push_back(report),
            Err(TrySendError::Closed(_)) => self.over = true,
        }
    }

    /// Hands over the last reports, then gives stopped tools a moment to end by themselves.
    async fn leave(mut self, cancel: &CancellationToken) {
        while let Some(report) = self.outbox.pop_front() {
            tokio::select! {
                biased;
                () = cancel.cancelled() => return,
                sent = self.reports.send(report) => if sent.is_err() { return },
            }
        }
        tokio::select! {
            biased;
            () = cancel.cancelled() => {}
            () = self.tasks.ended(Duration::from_secs(5)) => {}
        }
    }
}

async fn over(pause: &mut Option<Pin<Box<Sleep>>>) {
    match pause {
        Some(sleep) => sleep.await,
        None => std::future::pending().await,
    }
    *pause = None;
}

fn ordered(held: &mut Held, equipment: &Equipment, order: Order) -> Input {
    if let Order::Answered { question, answer } = &order {
        held.answer(*question, answer);
    }
    match (order, &equipment.refit) {
        (Order::Configured { settings }, Some(refit)) => {
            let Fit { system, tools } = refit(&settings);
            Input::Refitted { settings, system, tools }
        }
        (order, _) => input(order),
    }
}

fn heard(held: &mut Held, equipment: &mut Equipment, news: News) -> Input {
    match news {
        News::Tools => {
            equipment.servers.review();
            Input::Tools(equipment.hands.tools())
        }
        News::Notice(notice) => Input::Noticed(notice),
        News::Asked { title, ask, origin, reply } => {
            let id = QuestionId::make(&mut *equipment.ids);
            Input::Held(held.add(Loose { id, title, ask, origin }, reply))
        }
        News::Spent(usage) => Input::Spent(usage),
    }
}

fn input(order: Order) -> Input {
    match order {
        Order::Begin { .. } | Order::Resume { .. } => Input::Begin,
        Order::RunTool { call } => Input::RunTool(call),
        Order::Answered { question, answer } => Input::Answered(question, answer),
        Order::Steer { message } => Input::Steer(message),
        Order::Configured { settings } => Input::Configured(settings),
        Order::Cancel => Input::Cancel,
    }
}

fn now() -> Timestamp {
    let micros = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros());
    Timestamp::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
}
