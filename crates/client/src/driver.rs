//! The one task behind a client: it owns the connection, the calls that wait and the requests that are being answered.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use gander_wire::acp::client::{AgentEvent, AgentRequest, CallId, PermissionRequest};
use gander_wire::jsonrpc::{Code, Error, RequestId, Responder};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{self, AbortHandle, JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::handler::{answer_request, handler_answer_value};
use crate::schema::{RequestPermissionRequest, SessionId, SessionNotification};
use crate::{AgentConnection, CallError, Handler, LinkError};

/// How many requests of the agent are answered at the same time; one more is refused.
const MAX_CONCURRENT_REQUESTS: usize = 64;
/// How much of what was told waits for the handler before no more is read.
const EVENT_CAPACITY: usize = 256;

/// What a handle wants.
#[derive(Debug)]
pub(crate) enum DriverOrder {
    /// Call a method and answer here.
    Call { method: String, params: Value, limit: Option<Duration>, answer: CallReply },
    /// Say something.
    Notify { method: String, params: Value },
    /// Stop a turn.
    Cancel { session: SessionId },
}

type CallReply = oneshot::Sender<Result<Value, CallError>>;

/// The one task behind a client.
pub(crate) struct ConnectionDriver {
    connection: AgentConnection,
    handler: Arc<dyn Handler>,
    orders: mpsc::Receiver<DriverOrder>,
    dispose: CancellationToken,
    calls: HashMap<CallId, PendingCall>,
    requests: HashMap<task::Id, ActiveRequest>,
    tasks: JoinSet<Result<Value, Error>>,
}

/// A call that waits for its answer.
struct PendingCall {
    method: String,
    limit: Option<(Duration, Instant)>,
    answer: CallReply,
}

/// A request of the agent that is being answered.
struct ActiveRequest {
    duty: RequestDuty,
    task: AbortHandle,
}

enum RequestDuty {
    Permission(PermissionRequest, SessionId),
    Other(Responder),
}

/// What goes to the handler in order. Answers stand in the same line, so that they come after what was told before.
enum HandlerEvent {
    Update(Box<SessionNotification>),
    WholeUpdate {
        params: Value,
        known: Option<Box<SessionNotification>>,
    },
    Notice {
        method: String,
        params: Value,
    },
    /// Everything that was told before a request has been heard.
    Reached(oneshot::Sender<()>),
    Answer(CallReply, Result<Value, CallError>),
}

impl ConnectionDriver {
    pub(crate) fn new(
        connection: AgentConnection,
        handler: Arc<dyn Handler>,
        orders: mpsc::Receiver<DriverOrder>,
        dispose: CancellationToken,
    ) -> Self {
        let (calls, requests, tasks) = (HashMap::new(), HashMap::new(), JoinSet::new());
        Self { connection, handler, orders, dispose, calls, requests, tasks }
    }

    /// Runs until the agent is gone or nobody wants it any more; `gone` is told why.
    pub(crate) async fn run_connection(mut self, gone: watch::Sender<Option<Arc<LinkError>>>) {
        let (line, telling) = mpsc::channel(EVENT_CAPACITY);
        let teller = tokio::spawn(drive_handler(Arc::clone(&self.handler), telling));
        let why = self.run_loop(&line).await;
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

    async fn run_loop(&mut self, line: &mpsc::Sender<HandlerEvent>) -> Arc<LinkError> {
        let dispose = self.dispose.clone();
        loop {
            let late = self.calls.values().filter_map(|call| call.limit).map(|(_, at)| at).min();
            tokio::select! {
                () = dispose.cancelled() => return Arc::new(LinkError::Disposed),
                next = next_driver_event(&mut self.connection, line) => match next {
                    Ok((told, place)) => self.handle_event(told, place),
                    Err(lost) => return lost,
                },
                Some(order) = self.orders.recv() => self.handle_order(order),
                Some(done) = self.tasks.join_next_with_id() => self.handle_done(done),
                () = driver_sleep_until(late) => self.expire_calls(Instant::now()),
            }
        }
    }

    fn handle_event(&mut self, told: AgentEvent, place: mpsc::Permit<'_, HandlerEvent>) {
        match told {
            AgentEvent::Updated(update) => place.send(HandlerEvent::Update(update)),
            AgentEvent::UpdatedWhole { params, known } => place.send(HandlerEvent::WholeUpdate { params, known }),
            AgentEvent::Notified { method, params } => place.send(HandlerEvent::Notice { method, params }),
            AgentEvent::Answered { call, result } => self.handle_answer(call, Ok(result), place),
            AgentEvent::Failed { call, error } => {
                let error = self.connection.call_error(error);
                self.handle_answer(call, Err(error), place);
            }
            AgentEvent::Asked { permission, request } => {
                self.handle_permission(permission, *request, reach_driver_event(place));
            }
            AgentEvent::Requested { responder, request } => {
                self.handle_request(responder, *request, reach_driver_event(place));
            }
            AgentEvent::Withdrawn { request } => self.cancel_requests(|asked| asked.duty.id() == &request),
            // Only ever the answers to calls that the driver does not make.
            AgentEvent::Initialized { .. } | AgentEvent::Opened { .. } | AgentEvent::Ended { .. } => {}
        }
    }

    fn handle_answer(&mut self, call: CallId, result: Result<Value, CallError>, place: mpsc::Permit<'_, HandlerEvent>) {
        if let Some(call) = self.calls.remove(&call) {
            place.send(HandlerEvent::Answer(call.answer, result));
        }
    }

    fn handle_order(&mut self, order: DriverOrder) {
        let client = &mut self.connection.client;
        match order {
            DriverOrder::Call { method, params, limit, answer } => {
                let id = client.call(&method, &params);
                let limit = limit.map(|limit| (limit, Instant::now() + limit));
                self.calls.insert(id, PendingCall { method, limit, answer });
            }
            DriverOrder::Notify { method, params } => client.notify(&method, &params),
            DriverOrder::Cancel { session } => {
                client.cancel(&session.0);
                self.cancel_requests(|asked| matches!(&asked.duty, RequestDuty::Permission(_, of) if *of == session));
            }
        }
    }

    fn handle_permission(&mut self, permission: PermissionRequest, request: RequestPermissionRequest, turn: Reached) {
        let handler = Arc::clone(&self.handler);
        let duty = RequestDuty::Permission(permission, request.session_id.clone());
        self.spawn_request(duty, async move {
            turn.await.ok();
            handler_answer_value(handler.request_permission(request).await)
        });
    }

    fn handle_request(&mut self, responder: Responder, request: AgentRequest, turn: Reached) {
        let handler = Arc::clone(&self.handler);
        self.spawn_request(RequestDuty::Other(responder), async move {
            turn.await.ok();
            answer_request(&*handler, request).await
        });
    }

    fn spawn_request(&mut self, duty: RequestDuty, work: impl Future<Output = Result<Value, Error>> + Send + 'static) {
        if self.requests.len() >= MAX_CONCURRENT_REQUESTS {
            let error =
                Error::new(Code::Internal, format!("more than {MAX_CONCURRENT_REQUESTS} requests at the same time"));
            return self.connection.client.respond_error(duty.into_responder(), &error);
        }
        let task = self.tasks.spawn(work);
        self.requests.insert(task.id(), ActiveRequest { duty, task });
    }

    fn handle_done(&mut self, done: Result<(task::Id, Result<Value, Error>), JoinError>) {
        let (id, result) = match done {
            Ok(done) => done,
            Err(error) => (error.id(), Err(Error::new(Code::Internal, "the client could not answer"))),
        };
        // One that was taken back has been answered already.
        let Some(asked) = self.requests.remove(&id) else { return };
        match result {
            Ok(result) => self.connection.client.respond(asked.duty.into_responder(), &result),
            Err(error) => self.connection.client.respond_error(asked.duty.into_responder(), &error),
        }
    }

    /// Ends the work on these requests and answers them as cancelled.
    fn cancel_requests(&mut self, which: impl Fn(&ActiveRequest) -> bool) {
        for (_, asked) in self.requests.extract_if(|_, asked| which(asked)) {
            asked.task.abort();
            match asked.duty {
                RequestDuty::Permission(permission, _) => self.connection.client.decline(permission),
                RequestDuty::Other(responder) => {
                    let error = Error::new(Code::Cancelled, "request cancelled");
                    self.connection.client.respond_error(responder, &error);
                }
            }
        }
    }

    fn expire_calls(&mut self, now: Instant) {
        let is_late = |call: &mut PendingCall| call.limit.is_some_and(|(_, at)| at <= now);
        for (id, call) in self.calls.extract_if(|_, call| is_late(call)) {
            self.connection.client.cancel_call(id);
            let limit = call.limit.map(|(limit, _)| limit).unwrap_or_default();
            call.answer.send(Err(CallError::Late { method: call.method, limit })).ok();
        }
    }
}

impl RequestDuty {
    fn id(&self) -> &RequestId {
        match self {
            Self::Permission(permission, _) => permission.id(),
            Self::Other(responder) => responder.id(),
        }
    }

    fn into_responder(self) -> Responder {
        match self {
            Self::Permission(permission, _) => permission.into(),
            Self::Other(responder) => responder,
        }
    }
}

/// What the agent told next, once there is a place in the line. Writing goes on meanwhile.
async fn next_driver_event<'a>(
    connection: &mut AgentConnection,
    line: &'a mpsc::Sender<HandlerEvent>,
) -> Result<(AgentEvent, mpsc::Permit<'a, HandlerEvent>), Arc<LinkError>> {
    let place = tokio::select! {
        place = line.reserve() => place.map_err(|_| Arc::new(LinkError::Disposed))?,
        () = connection.write_pending() => return Err(Arc::new(LinkError::Disposed)),
    };
    Ok((connection.next_event().await?, place))
}

/// Comes true when the handler has heard what was told before a request: nothing overtakes it.
type Reached = oneshot::Receiver<()>;

fn reach_driver_event(place: mpsc::Permit<'_, HandlerEvent>) -> Reached {
    let (reached, turn) = oneshot::channel();
    place.send(HandlerEvent::Reached(reached));
    turn
}

async fn driver_sleep_until(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

async fn drive_handler(handler: Arc<dyn Handler>, mut line: mpsc::Receiver<HandlerEvent>) {
    while let Some(telling) = line.recv().await {
        match telling {
            HandlerEvent::Update(update) => handler.updated(*update).await,
            HandlerEvent::WholeUpdate { params, known } => {
                handler.updated_whole(params, known.map(|known| *known)).await;
            }
            HandlerEvent::Notice { method, params } => handler.notified(method, params).await,
            // Nobody may be waiting any more.
            HandlerEvent::Reached(reached) => drop(reached.send(())),
            HandlerEvent::Answer(answer, result) => drop(answer.send(result)),
        }
    }
}
