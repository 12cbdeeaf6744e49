//! One prompt to an agent that speaks ACP: what it tells and asks becomes reports, answers go back to it.

use std::time::Duration;

use gander_client::schema::{
    ContentBlock, CreateElicitationRequest, CreateElicitationResponse, ElicitationAction, ElicitationMode, Meta,
    PromptRequest, PromptResponse, RequestPermissionRequest, RequestPermissionResponse,
};
use gander_client::{CallError, Client};
use gander_domain::{Message, Order, Outcome, Part, QuestionId, Reply, Report};
use gander_store::clock::SystemIds;
use gander_wire::acp::content::acp_content_block;
use serde_json::json;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::agent_turn::{AgentTurn, ToldUpdate};

/// Updates that wait to be reported. Beyond them the agent has to wait.
pub(in crate::backend) const EVENT_CAPACITY: usize = 64;

/// So many reports go to the session before more is taken from the agent.
const MAX_GATHERED_REPORTS: usize = 16;

/// What an agent says while a prompt is under way.
pub(in crate::backend) enum AgentEvent {
    /// Something happened.
    Updated(Box<ToldUpdate>),
    /// It asks whether it may.
    Permission(Box<RequestPermissionRequest>, oneshot::Sender<RequestPermissionResponse>),
    /// It wants a form filled in.
    Form(Box<CreateElicitationRequest>, oneshot::Sender<CreateElicitationResponse>),
}

/// A question that the agent waits on.
enum OpenQuestion {
    Permission(oneshot::Sender<RequestPermissionResponse>),
    Form(oneshot::Sender<CreateElicitationResponse>),
}

/// A prompt under way.
pub(in crate::backend) struct PromptRun {
    turn: AgentTurn,
    open_questions: Vec<(QuestionId, OpenQuestion)>,
    reports: mpsc::Sender<Report>,
    /// How long the agent may take to end its turn once it is told to stop.
    cancel_grace: Duration,
    cancelled_at: Option<Instant>,
}

/// How a prompt ended, besides what was reported.
#[derive(Debug)]
pub(in crate::backend) enum PromptEnd {
    /// The agent ended its turn: it takes another prompt.
    Settled,
    /// It was told to stop and did not, or nobody listens any more: it may still be at work.
    Abandoned,
    /// It failed before it ended its turn. Nothing of that is reported yet.
    Failed(CallError),
}

impl PromptRun {
    /// A prompt that this model answers.
    pub(in crate::backend) fn new(model: String, reports: mpsc::Sender<Report>, cancel_grace: Duration) -> Self {
        let (turn, open_questions) = (AgentTurn::new(model), Vec::new());
        Self { turn, open_questions, reports, cancel_grace, cancelled_at: None }
    }

    /// Listens to the agent until its turn ends.
    pub(in crate::backend) async fn drive_prompt(
        &mut self,
        client: &Client,
        theirs: &str,
        blocks: Vec<ContentBlock>,
        events: &mut mpsc::Receiver<AgentEvent>,
        orders: &mut mpsc::Receiver<Order>,
    ) -> PromptEnd {
        let request = PromptRequest::new(theirs.to_owned(), blocks).meta(queued_run_prompt());
        let mut prompt = std::pin::pin!(client.prompt_with(request));
        loop {
            let goes_on = tokio::select! {
                biased;
                order = orders.recv() => self.handle_order(order, client, theirs).await,
                Some(event) = events.recv() => self.handle_events(event, events).await,
                ended = &mut prompt => {
                    while let Ok(event) = events.try_recv() {
                        self.handle_events(event, events).await;
                    }
                    return self.handle_end(ended).await;
                }
                () = prompt_run_wait_until(self.cancelled_at.map(|at| at + self.cancel_grace)) => false,
            };
            if !goes_on {
                if self.cancelled_at.is_some() {
                    self.send_reports(vec![Report::Ended(Outcome::Cancelled)]).await;
                }
                return PromptEnd::Abandoned;
            }
        }
    }

    /// The agent failed: what it said stays.
    pub(in crate::backend) async fn report_failure(&mut self, reason: &str, message: &str) {
        let reports = match self.cancelled_at {
            Some(_) => vec![Report::Ended(Outcome::Cancelled)],
            None => self.turn.handle_failure(reason, message, &mut SystemIds),
        };
        self.send_reports(reports).await;
    }

    /// What the agent said, and what else of it waits already: a burst of words is one report, not a thousand.
    async fn handle_events(&mut self, first: AgentEvent, events: &mut mpsc::Receiver<AgentEvent>) -> bool {
        let mut reports = self.event_reports(first);
        while reports.len() < MAX_GATHERED_REPORTS
            && let Ok(event) = events.try_recv()
        {
            for report in self.event_reports(event) {
                match (reports.last_mut(), report) {
                    (Some(Report::Deltas(gathered)), Report::Deltas(more)) if gathered.len() < EVENT_CAPACITY => {
                        gathered.extend(more);
                    }
                    (_, report) => reports.push(report),
                }
            }
        }
        self.send_reports(reports).await
    }

    fn event_reports(&mut self, event: AgentEvent) -> Vec<Report> {
        if self.cancelled_at.is_some() {
            // Whatever it still asks is not answered: the client cancels what is open.
            return Vec::new();
        }
        match event {
            AgentEvent::Updated(update) => self.turn.handle_update(*update, &mut SystemIds),
            AgentEvent::Permission(request, answer) => {
                let (question, reports) = self.turn.handle_permission(&request, &mut SystemIds);
                self.open_questions.push((question, OpenQuestion::Permission(answer)));
                reports
            }
            AgentEvent::Form(request, answer) => self.ask_form(&request, answer),
        }
    }

    fn ask_form(
        &mut self,
        request: &CreateElicitationRequest,
        answer: oneshot::Sender<CreateElicitationResponse>,
    ) -> Vec<Report> {
        let ElicitationMode::Form(form) = &request.mode else {
            answer.send(CreateElicitationResponse::new(ElicitationAction::Cancel)).ok();
            return Vec::new();
        };
        let schema = json!(form.requested_schema);
        let (question, report) = self.turn.handle_form(&request.message, schema, &mut SystemIds);
        self.open_questions.push((question, OpenQuestion::Form(answer)));
        vec![report]
    }

    async fn handle_order(&mut self, order: Option<Order>, client: &Client, theirs: &str) -> bool {
        match order {
            Some(Order::Cancel) => {
                client.cancel(theirs.to_owned()).await.ok();
                self.open_questions.clear();
                self.cancelled_at.get_or_insert_with(Instant::now);
                !self.cancel_grace.is_zero()
            }
            Some(Order::Answered { question, answer }) => self.handle_answer(question, &answer.reply).await,
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

    async fn handle_answer(&mut self, question: QuestionId, reply: &Reply) -> bool {
        let Some(place) = self.open_questions.iter().position(|(asked, _)| *asked == question) else { return true };
        let (_, open) = self.open_questions.remove(place);
        let (response, ready) = self.turn.answer_question(question, reply);
        let goes_on = self.send_reports(ready.into_iter().collect()).await;
        // An agent that is gone says so by the end of its prompt.
        match open {
            OpenQuestion::Permission(answer) => drop(answer.send(response)),
            OpenQuestion::Form(answer) => drop(answer.send(prompt_run_form_response(reply))),
        }
        goes_on
    }

    async fn handle_end(&mut self, ended: Result<PromptResponse, CallError>) -> PromptEnd {
        let reports = match (ended, self.cancelled_at) {
            (Err(error), _) => return PromptEnd::Failed(error),
            (Ok(_), Some(_)) => vec![Report::Ended(Outcome::Cancelled)],
            (Ok(response), None) => self.turn.handle_end(&response, &mut SystemIds),
        };
        self.send_reports(reports).await;
        PromptEnd::Settled
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

/// An agent that is itself a durable server may still be stopping the turn of before: then the prompt waits for that.
fn queued_run_prompt() -> Meta {
    Meta::from_iter([("ifBusy".to_owned(), json!("queue"))])
}

/// What a prompt says, in the protocol's blocks.
pub(in crate::backend) fn prompt_run_blocks(message: &Message) -> Vec<ContentBlock> {
    message.parts.iter().filter_map(prompt_run_block).collect()
}

/// Parts that the protocol has no block for are what a function gave: told as text.
fn prompt_run_block(part: &Part) -> Option<ContentBlock> {
    acp_content_block(part).or_else(|| match part {
        Part::Unknown(value) => Some(value.to_string().into()),
        Part::Text { .. }
        | Part::Thought { .. }
        | Part::Image { .. }
        | Part::Audio { .. }
        | Part::Link { .. }
        | Part::Resource { .. }
        | Part::ToolUse { .. }
        | Part::ToolResult { .. } => None,
    })
}

fn prompt_run_form_response(reply: &Reply) -> CreateElicitationResponse {
    let value = match reply {
        Reply::Filled { content } => json!({ "action": "accept", "content": content }),
        Reply::Declined | Reply::Rejected { .. } => json!({ "action": "decline" }),
        Reply::Chosen { .. } | Reply::Cancelled | Reply::Interrupted | Reply::Superseded => {
            json!({ "action": "cancel" })
        }
    };
    serde_json::from_value(value).unwrap_or_else(|_| CreateElicitationResponse::new(ElicitationAction::Cancel))
}

async fn prompt_run_wait_until(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}
