//! One server of a session: started when it is wanted, started again when it dies, asleep when nobody needs it.

use std::sync::Arc;
use std::time::Duration;

use gander_domain::Severity;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::catalogue::Catalogue;
use super::invite::Invitation;
use super::link::{Ground, Line, Link, Unopened};
use super::seats::Seats;
use super::spec::Spec;

/// The first pause after a failure; each further one is twice as long.
const PAUSE: Duration = Duration::from_millis(500);

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Tries in a row while a run waits; then only who asks for it starts it again.
const TRIES: u32 = 5;

/// A server that lived this long did not fail to start.
const WELL: Duration = Duration::from_secs(60);

/// One server of a session, or of several. Dropping it ends it.
pub(super) struct Server {
    /// Its name before its tools.
    pub name: String,
    pub spec: Spec,
    /// The login that people were asked for.
    pub invitation: Invitation,
    /// The sessions that use it.
    pub seats: Seats,
    view: watch::Receiver<View>,
    wanted: Arc<Notify>,
    renewed: Arc<Notify>,
    start: Duration,
    _stop: DropGuard,
}

/// How long things may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// From a server's start to its lists.
    pub start: Duration,
    /// Before one that nobody needs goes to sleep.
    pub idle: Duration,
}

/// How a server is.
#[derive(Clone, Default)]
pub(super) struct View {
    pub phase: Phase,
    /// What it offered when it was last asked: a server that is being started again keeps its tools.
    pub catalogue: Arc<Catalogue>,
    pub line: Option<Line>,
    /// It failed, and seems to have missed the network.
    pub offline: bool,
    /// It failed when it was last tried. Stays while it is tried again.
    pub outage: Option<Outage>,
}

/// A server that does not work, from its first failure until it is ready again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outage {
    /// When it began: tells it from the one before.
    pub since: Instant,
    /// Why, as of the last try.
    pub reason: String,
}

/// What a server is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing: nobody has wanted it, or nobody did for long.
    #[default]
    Asleep,
    Starting,
    Ready,
    /// It wants a login first.
    Locked,
    Failed(String),
}

impl Server {
    /// A server that sleeps until it is wanted.
    pub(super) fn new(name: String, spec: Spec, ground: Ground, times: Times) -> Self {
        let (tell, view) = watch::channel(View::default());
        let (wanted, renewed, stop) = (Arc::new(Notify::new()), Arc::new(Notify::new()), CancellationToken::new());
        let seats = Seats::default();
        let keeper = Keeper {
            seats: seats.clone(),
            name: name.clone(),
            spec: spec.clone(),
            ground,
            tell,
            wanted: Arc::clone(&wanted),
            renewed: Arc::clone(&renewed),
            stop: stop.clone(),
            times,
            failures: 0,
        };
        tokio::spawn(keeper.keep());
        Self {
            name,
            spec,
            invitation: Invitation::default(),
            seats,
            view,
            wanted,
            renewed,
            start: times.start,
            _stop: stop.drop_guard(),
        }
    }

    pub(super) fn view(&self) -> View {
        self.view.borrow().clone()
    }

    /// Somebody needs it, now or soon.
    pub(super) fn want(&self) {
        self.wanted.notify_one();
    }

    /// Until it is ready or has failed. It is wanted by this; a failure of before is not the answer.
    pub(super) async fn settled(&self) {
        let mut view = self.view.clone();
        let ready = view.borrow_and_update().phase == Phase::Ready;
        self.want();
        while !ready && view.changed().await.is_ok() {
            match view.borrow_and_update().phase {
                Phase::Ready | Phase::Locked | Phase::Failed(_) => return,
                Phase::Asleep | Phase::Starting => {}
            }
        }
    }

    /// Until it was tried once. It is wanted by this; one that is down is tried again beside, and nobody waits for that.
    pub(super) async fn started(&self) {
        self.want();
        let tried = |view: &View| {
            view.outage.is_some() || matches!(view.phase, Phase::Ready | Phase::Locked | Phase::Failed(_))
        };
        // An error means that the server is no more: nothing is there to wait for.
        drop(self.view.clone().wait_for(tried).await);
    }

    /// Its live connection, once it is there.
    pub(super) async fn line(&self) -> Result<Line, String> {
        if tokio::time::timeout(self.start, self.settled()).await.is_err() {
            return Err(format!("the server {} does not start", self.name));
        }
        let View { phase, line, .. } = self.view();
        line.ok_or_else(|| match phase {
            Phase::Failed(reason) => format!("the server {} is not running: {reason}", self.name),
            Phase::Locked => needs_login(&self.name),
            Phase::Asleep | Phase::Starting | Phase::Ready => format!("the server {} is not running", self.name),
        })
    }

    /// Starts its program anew, and waits for that.
    pub(super) async fn renew(&self) {
        if let Some(old) = self.view().line {
            self.renewed.notify_one();
            // What it is then, the next call tells.
            drop(self.line_after(&old).await);
        }
    }

    /// The connection after this one, which is over: a death is noticed a little later than it is felt.
    pub(super) async fn line_after(&self, old: &Line) -> Result<Line, String> {
        let mut view = self.view.clone();
        let other = view.wait_for(|view| view.line.as_ref().is_none_or(|line| !line.is(old)));
        drop(tokio::time::timeout(self.start, other).await);
        self.line().await
    }
}

/// What people do about it.
pub(super) fn needs_login(name: &str) -> String {
    format!("{name} needs authorization: gander extensions login {name}")
}

/// The task behind a server.
struct Keeper {
    seats: Seats,
    name: String,
    spec: Spec,
    ground: Ground,
    tell: watch::Sender<View>,
    wanted: Arc<Notify>,
    renewed: Arc<Notify>,
    stop: CancellationToken,
    times: Times,
    failures: u32,
}

/// Why a connection is over.
enum End {
    Stopped,
    Idle,
    /// It is to be started anew.
    Renewed,
    /// It wants an authorization that it does not get.
    Unauthorized,
    Died(String),
}

impl Keeper {
    async fn keep(mut self) {
        loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                () = self.wanted.notified() => {}
            }
            while let Some(pause) = self.stay().await {
                tokio::select! {
                    biased;
                    () = self.stop.cancelled() => return,
                    () = tokio::time::sleep(pause) => {}
                }
                if !self.seats.is_attended() || self.failures >= TRIES {
                    break;
                }
            }
            if self.stop.is_cancelled() {
                return;
            }
        }
    }

    /// One connection from start to end; the pause before the next if it failed.
    async fn stay(&mut self) -> Option<Duration> {
        self.turn(Phase::Starting);
        let opened = tokio::select! {
            biased;
            () = self.stop.cancelled() => return None,
            opened = tokio::time::timeout(self.times.start, self.open()) => opened,
        };
        let link = match opened {
            Ok(Ok(link)) => link,
            Ok(Err(Unopened::Locked)) => return self.locked(),
            Ok(Err(Unopened::Offline(reason))) => return Some(self.offline(&reason)),
            Ok(Err(Unopened::Failed(reason))) => return Some(self.failed(&reason)),
            Err(_) => return Some(self.failed(&format!("it did not start in {} s", self.times.start.as_secs()))),
        };
        let since = Instant::now();
        let (link, end) = self.attend(link).await;
        if since.elapsed() >= WELL {
            self.failures = 0;
        }
        let pause = self.over(&end);
        link.close().await;
        pause
    }

    /// Whoever calls from here on waits for the next connection, not for this one's farewell.
    fn over(&mut self, end: &End) -> Option<Duration> {
        match end {
            End::Stopped | End::Idle => {
                self.turn(Phase::Asleep);
                None
            }
            End::Renewed | End::Unauthorized => {
                self.turn(Phase::Asleep);
                // Where it was unauthorized the greeting of the next one tells what is missing, with or without a run.
                self.wanted.notify_one();
                None
            }
            End::Died(reason) => Some(self.failed(reason)),
        }
    }

    async fn open(&self) -> Result<Link, Unopened> {
        let link = Link::open(&self.name, &self.spec, &self.ground, &self.seats).await?;
        link.line.quiet().await;
        let catalogue = link.line.catalogue(&self.name).await.map_err(|reason| {
            let unauthorized = link.line.unauthorized.is_cancelled();
            if unauthorized { Unopened::unauthorized(&self.spec) } else { Unopened::Failed(reason) }
        })?;
        self.ready(&link.line, catalogue);
        Ok(link)
    }

    /// Stays with a live connection until it is over.
    async fn attend(&self, mut link: Link) -> (Link, End) {
        let (changed, unauthorized) = (Arc::clone(&link.line.handler.changed), link.line.unauthorized.clone());
        let end = loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => break End::Stopped,
                reason = link.over() => break End::Died(self.ground.redactor_for(&self.spec).text(&reason)),
                () = unauthorized.cancelled() => break End::Unauthorized,
                () = changed.notified() => self.reread(&link.line).await,
                () = self.renewed.notified() => break End::Renewed,
                () = self.wanted.notified() => {}
                () = tokio::time::sleep(self.times.idle), if !self.seats.is_attended() => break End::Idle,
            }
        };
        (link, end)
    }

    async fn reread(&self, line: &Line) {
        match tokio::time::timeout(self.times.start, line.catalogue(&self.name)).await {
            Ok(Ok(catalogue)) => self.ready(line, catalogue),
            Ok(Err(error)) => tracing::debug!(server = self.name, error, "a server's lists stay as they were"),
            Err(_) => tracing::debug!(server = self.name, "a server does not tell its lists in time"),
        }
    }

    fn ready(&self, line: &Line, catalogue: Catalogue) {
        let (catalogue, line) = (Arc::new(catalogue), Some(line.clone()));
        let ready = View { phase: Phase::Ready, catalogue, line, offline: false, outage: None };
        self.tell.send_replace(ready);
        self.seats.tell_tools();
    }

    /// Trying again helps nobody before a person logged in.
    fn locked(&self) -> Option<Duration> {
        tracing::info!(server = self.name, "an MCP server wants a login");
        self.turn(Phase::Locked);
        self.seats.notice(Severity::Warning, &needs_login(&self.name));
        self.seats.tell_tools();
        None
    }

    /// The run under way may ask its people.
    fn offline(&mut self, reason: &str) -> Duration {
        let pause = self.failed(reason);
        self.tell.send_modify(|view| view.offline = true);
        self.seats.tell_tools();
        pause
    }

    fn failed(&mut self, reason: &str) -> Duration {
        self.failures += 1;
        tracing::info!(server = self.name, reason, "an MCP server failed");
        let since = self.tell.borrow().outage.as_ref().map_or_else(Instant::now, |outage| outage.since);
        let outage = Outage { since, reason: reason.to_owned() };
        self.seats.tell_outage(&self.name, &outage);
        self.turn(Phase::Failed(reason.to_owned()));
        self.tell.send_modify(|view| view.outage = Some(outage));
        PAUSE.saturating_mul(1 << (self.failures - 1).min(10)).min(LONGEST_PAUSE)
    }

    /// Both at once: nobody may see a server that is ready and has no connection.
    fn turn(&self, phase: Phase) {
        self.tell.send_modify(|view| {
            view.phase = phase;
            view.line = None;
            view.offline = false;
        });
    }
}
