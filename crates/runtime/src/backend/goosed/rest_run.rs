//! One run over goose's REST: a prompt, its stream, and answers to what goose asks.

use gander_domain::{Answer, Context, Notice, Order, Outcome, Part, QuestionId, Report, Role, SessionView, Severity};
use gander_store::clock::{SystemIds, current_time};
use gander_wire::adk::run_meta::{self, RequestedModel};
use gander_wire::goose::client::request::{self, ProviderChoice};
use gander_wire::goose::client::{GoosedError, GoosedRequest, GoosedTurn};
use gander_wire::sse::SseParser;
use reqwest::Response;
use serde_json::Value;
use tokio::sync::mpsc;

use super::{Goosed, http_client};
use crate::backend::BackendRun;
use crate::backend::orders::wait_for_cancel_order;

/// The longest event: a whole conversation that was replaced.
const MAX_EVENT_BYTES: usize = 64 << 20;

/// A turn under way.
struct RestRun<'a> {
    goosed: &'a Goosed,
    view: SessionView,
    theirs: String,
    turn: GoosedTurn,
    reports: mpsc::Sender<Report>,
}

/// What the stream said next.
enum StreamInput {
    Bytes(Result<Option<bytes::Bytes>, GoosedError>),
    Order(Option<Order>),
}

/// Drives a run from its prompt to its end.
pub(super) async fn drive_rest_run(goosed: &Goosed, backend_run: BackendRun) {
    let BackendRun { view, context, mut orders, reports, stop, .. } = backend_run;
    let opened = tokio::select! {
        biased;
        () = stop.cancelled() => return,
        () = wait_for_cancel_order(&mut orders) => Err(Outcome::Cancelled),
        opened = send_rest_run_prompt(goosed, &view, &context) => {
            opened.map_err(|trouble| Outcome::failed(trouble.reason_code(), trouble.to_string()))
        }
    };
    let (theirs, notice, response) = match opened {
        Ok(opened) => opened,
        Err(outcome) => {
            // Nobody hears it only if the session is gone.
            drop(reports.send(Report::Ended(outcome)).await);
            return;
        }
    };
    let model = view.settings.model.clone().unwrap_or_else(|| goosed.name.clone());
    goosed.session_mapping(&view).note_last_prompt(&context).await;
    if let Some(notice) = notice {
        drop(reports.send(Report::Noticed(notice)).await);
    }
    let run = RestRun { goosed, view, theirs, turn: GoosedTurn::new(model), reports };
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        () = run.drive_stream(response, orders) => {}
    }
}

/// Which model the session or this very prompt wants, and how.
pub(super) fn rest_run_provider(view: &SessionView) -> ProviderChoice {
    let RequestedModel { model, parameters } = run_meta::requested_model_in_adk_run_meta(rest_run_meta(view));
    ProviderChoice { model: model.or_else(|| view.settings.model.clone()), parameters }
}

fn rest_run_meta(view: &SessionView) -> Option<&Value> {
    view.run.as_ref().and_then(|run| run.meta.as_ref())
}

async fn send_rest_run_prompt(
    goosed: &Goosed,
    view: &SessionView,
    context: &Context,
) -> Result<(String, Option<Notice>, Response), GoosedError> {
    let hand_over = goosed.hand_over(view, context).await?;
    let theirs = goosed.ensure_awake(view).await?;
    let sent = async {
        goosed.update_provider(view, &theirs).await?;
        let own = &context.messages[context.run_start_index()..];
        let prompt = own.iter().find(|message| message.role == Role::User);
        let given = run_meta::function_responses_in_adk_run_meta(rest_run_meta(view));
        let said: &[Part] = prompt.map_or(&[], |message| &message.parts);
        let parts = if given.is_empty() { said } else { &given };
        let transcript = hand_over.transcript().map(Part::text);
        let parts: Vec<Part> = transcript.into_iter().chain(parts.iter().cloned()).collect();
        let message = request::goosed_prompt_message(&parts, &context.messages, current_time());
        goosed.http.post_reply(&request::goosed_reply_body(&theirs, message)).await
    };
    match sent.await {
        Ok(response) => Ok((theirs, hand_over.notice(&goosed.name), response)),
        Err(trouble) => Err(goosed.forget_if_lost(view, trouble).await),
    }
}

impl RestRun<'_> {
    /// Reads the stream to its end. Dropping it is how goose is told to stop.
    async fn drive_stream(mut self, mut response: Response, mut orders: mpsc::Receiver<Order>) {
        let (mut events, patience) = (SseParser::with_limit(MAX_EVENT_BYTES), self.goosed.http.silence_timeout());
        while !self.turn.is_over() {
            let next = tokio::select! {
                biased;
                order = orders.recv() => StreamInput::Order(order),
                piece = tokio::time::timeout(patience, response.chunk()) => StreamInput::Bytes(match piece {
                    Ok(piece) => piece.map_err(|error| http_client::goosed_connection_trouble(&error)),
                    Err(_) => Err(GoosedError::Unavailable("not a word, not even a sign of life".to_owned())),
                }),
            };
            let going = match next {
                StreamInput::Order(order) => self.handle_order(order).await,
                StreamInput::Bytes(piece) => self.handle_bytes(&mut events, piece).await,
            };
            if !going {
                return;
            }
        }
    }

    /// Takes in a piece of the stream; false if nobody hears any more.
    async fn handle_bytes(&mut self, events: &mut SseParser, piece: Result<Option<bytes::Bytes>, GoosedError>) -> bool {
        let reports = match piece {
            Ok(Some(bytes)) => match events.push_bytes(&bytes) {
                Ok(arrived) => arrived.iter().flat_map(|event| self.handle_event(&event.data)).collect(),
                Err(error) => self.turn.handle_stream_end(&error.to_string()),
            },
            Ok(None) => self.turn.handle_stream_end("it ended before the turn did"),
            Err(trouble) => self.turn.handle_stream_end(&trouble.to_string()),
        };
        if let Some(trouble) = self.turn.failure().cloned() {
            self.goosed.forget_if_lost(&self.view, trouble).await;
        }
        self.send_reports(join_rest_run_deltas(reports)).await
    }

    fn handle_event(&mut self, data: &[u8]) -> Vec<Report> {
        match serde_json::from_slice::<Value>(data) {
            Ok(event) => self.turn.handle_event(&event, &mut SystemIds),
            Err(error) => self.turn.handle_stream_end(&format!("an event is no JSON: {error}")),
        }
    }

    async fn handle_order(&mut self, order: Option<Order>) -> bool {
        match order {
            Some(Order::Cancel) => {
                self.send_reports(vec![Report::Ended(Outcome::Cancelled)]).await;
                false
            }
            Some(Order::Answered { question, answer }) => self.handle_answer(question, &answer).await,
            Some(
                Order::Begin { .. }
                | Order::Resume { .. }
                | Order::RunTool { .. }
                | Order::Steer { .. }
                | Order::Configured { .. },
            ) => true,
            None => false,
        }
    }

    /// Passes an answer on to goose, which goes on with it.
    async fn handle_answer(&mut self, question: QuestionId, answer: &Answer) -> bool {
        let Some((tell, ready)) = self.turn.answer_question(question, answer) else { return true };
        if !self.send_reports(ready.into_iter().collect()).await {
            return false;
        }
        match self.goosed.send_answer(&self.theirs, &tell).await {
            Ok(()) => true,
            Err(trouble) => {
                let title = format!("Goose did not take the answer: {trouble}");
                self.send_reports(vec![Report::Noticed(Notice { severity: Severity::Error, title, detail: None })])
                    .await
            }
        }
    }

    async fn send_reports(&self, reports: Vec<Report>) -> bool {
        for report in reports {
            if self.reports.send(report).await.is_err() {
                return false;
            }
        }
        true
    }
}

impl Goosed {
    async fn send_answer(&self, theirs: &str, tell: &GoosedRequest) -> Result<(), GoosedError> {
        match tell {
            GoosedRequest::Confirm { id, action } => {
                let body = request::goosed_confirmation_body(theirs, id, action);
                match self.http.post_json("/action-required/tool-confirmation", &body).await {
                    // Before 1.16 it was called so.
                    Err(GoosedError::NotFound | GoosedError::Refused(405, _)) => {
                        self.http.post_json("/confirm", &body).await.map(drop)
                    }
                    told => told.map(drop),
                }
            }
            GoosedRequest::Elicited { id, data } => {
                let message = request::goosed_elicitation_message(id, data, current_time());
                // What it answers is told by the stream that is open.
                self.http.post_reply(&request::goosed_reply_body(theirs, message)).await.map(drop)
            }
        }
    }
}

/// Words that came together are reported together.
fn join_rest_run_deltas(reports: Vec<Report>) -> Vec<Report> {
    let mut joined: Vec<Report> = Vec::with_capacity(reports.len());
    for report in reports {
        match (joined.last_mut(), report) {
            (Some(Report::Deltas(grown)), Report::Deltas(mut more)) => grown.append(&mut more),
            (_, report) => joined.push(report),
        }
    }
    joined
}
