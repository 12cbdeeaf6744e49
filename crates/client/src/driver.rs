//! The one task behind a client: it owns the connection, the calls that wait and the requests that are being answered.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use gander_wire::acp::client::{CallId, Permission, Request, Told};
use gander_wire::jsonrpc::{Code, Error, RequestId, Responder};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{self, AbortHandle, JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::handler::{answer, value};
use crate::schema::{RequestPermissionRequest, SessionId, SessionNotification};
use crate::{CallError, Connection, Handler, LinkError};

/// How many requests of the agent are answered at the same time; one more is refused.
const REQUESTS: usize = 64;
/// How much of what was told waits for the handler before no more is read.
const TOLD: usize = 256;

/// What a handle wants.
#[derive(Debug)]
pub(crate) enum Order {
    /// Call a method and answer here.
    Call { method: String, params: Value, limit: Option<Duration>, answer: Answer },
    /// Say something.
    Notify { method: String, params: Value },
    /// Stop a turn.
    Cancel { session: SessionId },
}

type Answer = oneshot::Sender<Result<Value, CallError>>;

/// The one task behind a client.
pub(crate) struct Driver {
    connection: Connection,
    handler: Arc<dyn Handler>,
    orders: mpsc::Receiver<Order>,
    dispose: CancellationToken,
    calls: HashMap<CallId, Call>,
    requests: HashMap<task::Id, Asked>,
    tasks: JoinSet<Result<Value, Error>>,
}

/// A call that waits for its answer.
struct Call {
    method: String,
    limit: Option<(Duration, Instant)>,
    answer: Answer,
}

/// A request of the agent that is being answered.
struct Asked {
    duty: Duty,
    task: AbortHandle,
}

enum Duty {
    Permission(Permission, SessionId),
    Other(Responder),
}

/// What goes to the handler in order. Answers stand in the same line, so that they come after what was told before.
enum Telling {
    Update(Box<SessionNotification>),
    Notice { method: String, params: Value },
    Answer(Answer, Result<Value, CallError>),
}

impl Driver {
    pub(crate) fn new(
        connection: Connection,
        handler: Arc<dyn Handler>,
        orders: mpsc::Receiver<Order>,
        dispose: CancellationToken,
    ) -> Self {
        let (calls, requests, tasks) = (HashMap::new(), HashMap::new(), JoinSet::new());
        Self { connection, handler, orders, dispose, calls, requests, tasks }
    }

    /// Runs until the agent is gone or nobody wants it any more; `gone` is told why.
    pub(crate) async fn run(mut self, gone: watch::Sender<Option<Arc<LinkError>>>) {
        let (line, telling) = mpsc::channel(TOLD);
        let teller = tokio::spawn(tell(Arc::clone(&self.handler), telling));
        let why = self.serve(&line).await;
        gone.send_replace(Some(Arc::clone(&why)));
        for (_, call) in self.calls.drain() {
            call.answer.send(Err(CallError::Gone(Arc::clone(&why)))).ok();
        }
        self.tasks.abort_all();
        drop(line);
        if matches!(*why, LinkError::Disposed) {
            teller.abort();
        }
    }

    async fn serve(&mut self, line: &mpsc::Sender<Telling>) -> Arc<LinkError> {
        let dispose = self.dispose.clone();
        loop {
            let late = self.calls.values().filter_map(|call| call.limit).map(|(_, at)| at).min();
            tokio::select! {
                () = dispose.cancelled() => return Arc::new(LinkError::Disposed),
                next = next(&mut self.connection, line) => match next {
                    Ok((told, place)) => self.told(told, place),
                    Err(lost) => return lost,
                },
                Some(order) = self.orders.recv() => self.order(order),
                Some(done) = self.tasks.join_next_with_id() => self.done(done),
                () = until(late) => self.late(Instant::now()),
            }
        }
    }

    fn told(&mut self, told: Told, place: mpsc::Permit<'_, Telling>) {
        match told {
            Told::Updated(update) => place.send(Telling::Update(update)),
            Told::Notified { method, params } => place.send(Telling::Notice { method, params }),
            Told::Answered { call, result } => self.answered(call, Ok(result), place),
            Told::Failed { call, error } => {
                let error = self.connection.failure(error);
                self.answered(call, Err(error), place);
            }
            Told::Asked { permission, request } => self.ask(permission, *request),
            Told::Requested { responder, request } => self.request(responder, *request),
            Told::Withdrawn { request } => self.withdraw(|asked| asked.duty.id() == &request),
            // Only ever the answers to calls that the driver does not make.
            Told::Initialized { .. } | Told::Opened { .. } | Told::Ended { .. } => {}
        }
    }

    fn answered(&mut self, call: CallId, result: Result<Value, CallError>, place: mpsc::Permit<'_, Telling>) {
        if let Some(call) = self.calls.remove(&call) {
            place.send(Telling::Answer(call.answer, result));
        }
    }

    fn order(&mut self, order: Order) {
        let client = &mut self.connection.client;
        match order {
            Order::Call { method, params, limit, answer } => {
                let id = client.call(&method, &params);
                let limit = limit.map(|limit| (limit, Instant::now() + limit));
                self.calls.insert(id, Call { method, limit, answer });
            }
            Order::Notify { method, params } => client.notify(&method, &params),
            Order::Cancel { session } => {
                client.cancel(&session.0);
                self.withdraw(|asked| matches!(&asked.duty, Duty::Permission(_, of) if *of == session));
            }
        }
    }

    fn ask(&mut self, permission: Permission, request: RequestPermissionRequest) {
        let handler = Arc::clone(&self.handler);
        let duty = Duty::Permission(permission, request.session_id.clone());
        self.start(duty, async move { value(handler.request_permission(request).await) });
    }

    fn request(&mut self, responder: Responder, request: Request) {
        let handler = Arc::clone(&self.handler);
        self.start(Duty::Other(responder), async move { answer(&*handler, request).await });
    }

    fn start(&mut self, duty: Duty, work: impl Future<Output = Result<Value, Error>> + Send + 'static) {
        if self.requests.len() >= REQUESTS {
            let error = Error::new(Code::Internal, format!("more than {REQUESTS} requests at the same time"));
            return self.connection.client.refuse(duty.responder(), &error);
        }
        let task = self.tasks.spawn(work);
        self.requests.insert(task.id(), Asked { duty, task });
    }

    fn done(&mut self, done: Result<(task::Id, Result<Value, Error>), JoinError>) {
        let (id, result) = match done {
            Ok(done) => done,
            Err(error) => (error.id(), Err(Error::new(Code::Internal, "the client could not answer"))),
        };
        // One that was taken back has been answered already.
        let Some(asked) = self.requests.remove(&id) else { return };
        match result {
            Ok(result) => self.connection.client.respond(asked.duty.responder(), &result),
            Err(error) => self.connection.client.refuse(asked.duty.responder(), &error),
        }
    }

    /// Ends the work on these requests and answers them as cancelled.
    fn withdraw(&mut self, which: impl Fn(&Asked) -> bool) {
        for (_, asked) in self.requests.extract_if(|_, asked| which(asked)) {
            asked.task.abort();
            match asked.duty {
                Duty::Permission(permission, _) => self.connection.client.decline(permission),
                Duty::Other(responder) => {
                    let error = Error::new(Code::Cancelled, "request cancelled");
                    self.connection.client.refuse(responder, &error);
                }
            }
        }
    }

    fn late(&mut self, now: Instant) {
        let is_late = |call: &mut Call| call.limit.is_some_and(|(_, at)| at <= now);
        for (id, call) in self.calls.extract_if(|_, call| is_late(call)) {
            self.connection.client.withdraw(id);
            let limit = call.limit.map(|(limit, _)| limit).unwrap_or_default();
            call.answer.send(Err(CallError::Late { method: call.method, limit })).ok();
        }
    }
}

impl Duty {
    fn id(&self) -> &RequestId {
        match self {
            Self::Permission(permission, _) => permission.id(),
            Self::Other(responder) => responder.id(),
        }
    }

    fn responder(self) -> Responder {
        match self {
            Self::Permission(permission, _) => permission.into(),
            Self::Other(responder) => responder,
        }
    }
}

/// What the agent told next, once there is a place in the line. Writing goes on meanwhile.
async fn next<'a>(
    connection: &mut Connection,
    line: &'a mpsc::Sender<Telling>,
) -> Result<(Told, mpsc::Permit<'a, Telling>), Arc<LinkError>> {
    let place = tokio::select! {
        place = line.reserve() => place.map_err(|_| Arc::new(LinkError::Disposed))?,
        () = connection.write() => return Err(Arc::new(LinkError::Disposed)),
    };
    Ok((connection.next().await?, place))
}

async fn until(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

async fn tell(handler: Arc<dyn Handler>, mut line: mpsc::Receiver<Telling>) {
    while let Some(telling) = line.recv().await {
        match telling {
            Telling::Update(update) => handler.updated(*update).await,
            Telling::Notice { method, params } => handler.notified(method, params).await,
            // Nobody may be waiting any more.
            Telling::Answer(answer, result) => drop(answer.send(result)),
        }
    }
}
