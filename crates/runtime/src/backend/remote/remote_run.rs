//! One run of an agent behind another server: requests out, events in, orders in between.

use std::sync::Arc;
use std::time::Duration;

use gander_domain::{Notice, Order, Outcome, QuestionId, Reply, Report};
use gander_store::clock::SystemIds;
use gander_wire::remote::{RemoteRequest, RemoteTurn, TurnStage};
use gander_wire::sse::SseParser;
use reqwest::Response;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::http_client::{RemoteError, RemoteHttp, RemoteResponse, remote_connection_error, silent_remote_error};
use crate::backend::session_mapping::SessionMapping;

/// The longest event: a whole task with pictures.
const MAX_EVENT_BYTES: usize = 64 << 20;
/// How long the server may take to hear that its turn is to stop.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a broken stream is tried to be taken up again, unless the server is given less time, and the pause before each.
const RESUME_TIMEOUT: Duration = Duration::from_secs(60);
const RESUME_PAUSE: Duration = Duration::from_millis(500);

/// A run under way.
pub(super) struct RemoteRun {
    agent: String,
    turn: Box<dyn RemoteTurn>,
    http: Arc<RemoteHttp>,
    /// The answer to the last request, while there is more of it.
    response: Option<RemoteResponse>,
    /// What a person should know before anything else.
    pub(super) notice: Option<Notice>,
    /// The server's session as the store has it.
    pub(super) saved_session: Option<String>,
    /// When something was last told, or a stream broke off.
    last_told: Instant,
}

/// Whether a run goes on.
enum Flow {
    GoesOn,
    Ends,
}

impl RemoteRun {
    /// Sends the first request of a turn.
    pub(super) async fn open(
        agent: String,
        turn: Box<dyn RemoteTurn>,
        http: Arc<RemoteHttp>,
    ) -> Result<Self, RemoteError> {
        let response = Some(http.send(&turn.first_request()).await?);
        Ok(Self { agent, turn, http, response, notice: None, saved_session: None, last_told: Instant::now() })
    }

    /// Drives the run to its end.
    pub(super) async fn drive(
        mut self,
        mapping: &SessionMapping<'_>,
        mut orders: mpsc::Receiver<Order>,
        reports: mpsc::Sender<Report>,
    ) {
        let notice = self.notice.take().map(Report::Noticed);
        if !send_remote_run_reports(&reports, notice.into_iter().collect()).await {
            return;
        }
        loop {
            let flow = match (self.turn.stage(), self.response.take()) {
                (TurnStage::Over, _) => return,
                (TurnStage::Asking, _) => {
                    let order = orders.recv().await;
                    self.handle_order(order, &reports).await
                }
                (TurnStage::Running, Some(RemoteResponse::Stream(stream))) => {
                    self.read_stream(stream, mapping, &mut orders, &reports).await
                }
                (TurnStage::Running, Some(RemoteResponse::Whole(value))) => {
                    let told = self.turn.handle_event(&value, &mut SystemIds);
                    self.report(told, mapping, &reports).await
                }
                (TurnStage::Running, None) => self.resume(&mut orders, &reports).await,
            };
            if let Flow::Ends = flow {
                return;
            }
        }
    }

    /// Reads a stream to its end, or until the agent asks.
    async fn read_stream(
        &mut self,
        mut stream: Response,
        mapping: &SessionMapping<'_>,
        orders: &mut mpsc::Receiver<Order>,
        reports: &mpsc::Sender<Report>,
    ) -> Flow {
        let (mut events, patience) = (SseParser::with_limit(MAX_EVENT_BYTES), self.http.silence_timeout());
        while self.turn.stage() == TurnStage::Running {
            let piece = tokio::select! {
                biased;
                order = orders.recv() => {
                    if let Flow::Ends = self.handle_order(order, reports).await {
                        return Flow::Ends;
                    }
                    continue;
                }
                piece = tokio::time::timeout(patience, stream.chunk()) => piece,
            };
            let piece = piece
                .map_err(|_| silent_remote_error())
                .and_then(|piece| piece.map_err(|error| remote_connection_error(&error)));
            let is_end = matches!(piece, Ok(None));
            let told = match piece {
                Ok(Some(bytes)) => match events.push_bytes(&bytes) {
                    Ok(arrived) => arrived.iter().flat_map(|event| self.handle_event_data(&event.data)).collect(),
                    Err(error) => self.turn.handle_failure("agent_unreadable", &error.to_string()),
                },
                Ok(None) => self.turn.handle_stream_end(),
                Err(error) => {
                    tracing::warn!(agent = self.agent, %error, "the stream of an agent broke off");
                    self.last_told = Instant::now();
                    return Flow::GoesOn;
                }
            };
            let flow = self.report(told, mapping, reports).await;
            if is_end || matches!(flow, Flow::Ends) {
                return flow;
            }
        }
        Flow::GoesOn
    }

    fn handle_event_data(&mut self, data: &[u8]) -> Vec<Report> {
        match serde_json::from_slice::<Value>(data) {
            Ok(event) => self.turn.handle_event(&event, &mut SystemIds),
            // Comments and signs of life of some servers.
            Err(_) => Vec::new(),
        }
    }

    /// Takes up a turn whose stream is gone, or looks again at one that does not stream.
    async fn resume(&mut self, orders: &mut mpsc::Receiver<Order>, reports: &mpsc::Sender<Report>) -> Flow {
        let patience = self.http.silence_timeout().min(RESUME_TIMEOUT);
        let request = self.turn.resume_request().filter(|_| self.last_told.elapsed() < patience);
        let Some(request) = request else {
            let message = format!("the stream of the agent {} broke off", self.agent);
            let told = self.turn.handle_failure("stream_cut", &message);
            return remote_run_flow(send_remote_run_reports(reports, told).await);
        };
        let sent = tokio::select! {
            biased;
            order = orders.recv() => return self.handle_order(order, reports).await,
            sent = pause_and_send_remote_run(&self.http, &request) => sent,
        };
        match sent {
            Ok(response) => self.response = Some(response),
            Err(error @ (RemoteError::Unauthorized(_) | RemoteError::Settings(_))) => {
                let message = format!("the agent {} {error}", self.agent);
                let told = self.turn.handle_failure(error.reason_code(), &message);
                return remote_run_flow(send_remote_run_reports(reports, told).await);
            }
            Err(error) => tracing::debug!(agent = self.agent, %error, "the stream is not there yet"),
        }
        Flow::GoesOn
    }

    async fn handle_order(&mut self, order: Option<Order>, reports: &mpsc::Sender<Report>) -> Flow {
        match order {
            Some(Order::Cancel) => {
                self.cancel().await;
                send_remote_run_reports(reports, vec![Report::Ended(Outcome::Cancelled)]).await;
                Flow::Ends
            }
            Some(Order::Answered { question, answer }) => self.handle_answer(question, &answer.reply, reports).await,
            Some(
                Order::Begin { .. }
                | Order::Resume { .. }
                | Order::RunTool { .. }
                | Order::Steer { .. }
                | Order::Configured { .. },
            ) => Flow::GoesOn,
            None => Flow::Ends,
        }
    }

    async fn cancel(&self) {
        let Some(request) = self.turn.cancel_request() else { return };
        match tokio::time::timeout(CANCEL_TIMEOUT, self.http.send_whole(&request)).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::warn!(agent = self.agent, %error, "an agent did not take a cancel"),
            Err(_) => tracing::warn!(agent = self.agent, "an agent did not answer a cancel"),
        }
    }

    /// Passes an answer on; the agent goes on with it.
    async fn handle_answer(&mut self, question: QuestionId, reply: &Reply, reports: &mpsc::Sender<Report>) -> Flow {
        let answer = self.turn.answer_question(question, reply);
        if !send_remote_run_reports(reports, answer.report.into_iter().collect()).await {
            return Flow::Ends;
        }
        let Some(request) = answer.request else { return Flow::GoesOn };
        match self.http.send(&request).await {
            Ok(response) => {
                self.response = Some(response);
                Flow::GoesOn
            }
            Err(error) => {
                let message = format!("the agent {} did not take the answer: it {error}", self.agent);
                let told = self.turn.handle_failure(error.reason_code(), &message);
                remote_run_flow(send_remote_run_reports(reports, told).await)
            }
        }
    }

    async fn report(
        &mut self,
        told: Vec<Report>,
        mapping: &SessionMapping<'_>,
        reports: &mpsc::Sender<Report>,
    ) -> Flow {
        if !told.is_empty() {
            self.last_told = Instant::now();
        }
        let session = self.turn.remote_session().filter(|theirs| self.saved_session.as_deref() != Some(theirs));
        if let Some(theirs) = session.map(str::to_owned) {
            if let Err(error) = mapping.set_remote_id(&theirs).await {
                tracing::error!(%error, "the session of an agent is not remembered");
            }
            self.saved_session = Some(theirs);
        }
        remote_run_flow(send_remote_run_reports(reports, told).await)
    }
}

async fn pause_and_send_remote_run(http: &RemoteHttp, request: &RemoteRequest) -> Result<RemoteResponse, RemoteError> {
    tokio::time::sleep(RESUME_PAUSE).await;
    http.send(request).await
}

/// False if nobody hears any more.
async fn send_remote_run_reports(reports: &mpsc::Sender<Report>, told: Vec<Report>) -> bool {
    for report in told {
        if reports.send(report).await.is_err() {
            return false;
        }
    }
    true
}

fn remote_run_flow(goes_on: bool) -> Flow {
    if goes_on { Flow::GoesOn } else { Flow::Ends }
}
