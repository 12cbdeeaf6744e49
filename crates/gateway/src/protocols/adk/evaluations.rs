//! Evaluations: cases made of sessions, run in sessions of their own, and compared with what is expected.

use gander_domain::Command;
use gander_domain::caller::Caller;
use gander_services::evaluations::{EvaluationError, Evaluations};
use gander_store::clock::{SystemIds, current_time};
use gander_wire::adk::eval_metrics::{EvalMetric, EvalStatus};
use gander_wire::adk::evaluation::{AddSession, EvalCase, RunEvalRequest, ran_evaluation_invocation};
use gander_wire::adk::requests::SessionAddress;
use gander_wire::adk::types::adk_epoch_seconds;
use gander_wire::adk::{AdkRefusal, AdkRunRequest, NewAdkSession};
use serde_json::{Value, json};

use super::{Adk, AppUser, BeginOutcome, adk_run_origin, adk_store_refusal};

/// How the sessions of evaluations are called: lists of sessions leave them out, as the original does.
pub(super) const EVAL_SESSION_PREFIX: &str = "___eval___session___";

impl Adk {
    /// What this caller keeps of an agent's evaluations.
    pub fn evaluations(&self, caller: &Caller, app: &str) -> Evaluations {
        Evaluations::open(self.services.hub.store(), caller, app)
    }

    /// Makes a case of what happened in a session.
    pub async fn add_session_as_case(
        &self,
        caller: &Caller,
        app: &str,
        set: &str,
        request: AddSession,
    ) -> Result<(), AdkRefusal> {
        let app_user = AppUser { app: app.to_owned(), user: request.user.clone() };
        let events = self.session_events(caller, app_user, &request.session).await?;
        let case = EvalCase::from_events(&request, app, adk_epoch_seconds(current_time()), &events)?;
        self.evaluations(caller, app).add_case(set, &case.id, case.value).await.map_err(evaluation_refusal)
    }

    /// Runs cases one after the other, keeps the result and gives that of each case.
    pub async fn run_evaluation(
        &self,
        caller: &Caller,
        app: &str,
        set: &str,
        request: RunEvalRequest,
    ) -> Result<Vec<Value>, AdkRefusal> {
        let evaluations = self.evaluations(caller, app);
        let cases = evaluations.get_set(set).await.map_err(|error| AdkRefusal::new(400, error.to_string()))?;
        if let Some(unknown) = request.cases.iter().find(|case| !cases.contains_key(*case)) {
            return Err(AdkRefusal::new(400, format!("Eval `{unknown}` not found in eval set `{set}`.")));
        }
        let is_wanted = |id: &String| request.cases.is_empty() || request.cases.contains(id);
        let mut results = Vec::new();
        for (id, value) in cases.into_iter().filter(|(id, _)| is_wanted(id)) {
            let case = EvalCase { id, value };
            results.push(self.run_case(caller, app, set, &case, &request.metrics).await?);
        }
        let at = adk_epoch_seconds(current_time());
        let id = format!("{app}_{set}_{at}");
        let result = json!({
            "evalSetResultId": id,
            "evalSetResultName": id,
            "evalSetId": set,
            "evalCaseResults": results,
            "creationTimestamp": at,
        });
        evaluations.save_result(&id, result).await.map_err(evaluation_refusal)?;
        Ok(results)
    }

    /// A result, with the sessions that its cases ran in as far as they are still there.
    pub async fn evaluation_result(&self, caller: &Caller, app: &str, id: &str) -> Result<Value, AdkRefusal> {
        let mut result = self.evaluations(caller, app).get_result(id).await.map_err(evaluation_refusal)?;
        for case in result["evalCaseResults"].as_array_mut().into_iter().flatten() {
            let text = |name: &str| case[name].as_str().unwrap_or_default().to_owned();
            let (session, app_user) = (text("sessionId"), AppUser { app: app.to_owned(), user: text("userId") });
            let Ok(located) = self.find_session(caller, app_user, &session).await else { continue };
            case["sessionDetails"] = json!(self.describe_session(caller, &located).await?);
        }
        Ok(result)
    }

    async fn run_case(
        &self,
        caller: &Caller,
        app: &str,
        set: &str,
        case: &EvalCase,
        metrics: &[EvalMetric],
    ) -> Result<Value, AdkRefusal> {
        let Some(turns) = case.invocations() else {
            let message = format!("there is no simulated user here for a conversation scenario, eval: {}", case.id);
            return Err(AdkRefusal::new(501, message));
        };
        let input = &case.value["sessionInput"];
        let user = caller.adk_user.as_deref().or(input["userId"].as_str()).unwrap_or(&self.settings.user).to_owned();
        let session = format!("{EVAL_SESSION_PREFIX}{}", gander_domain::SessionId::make(&mut SystemIds));
        let (app_user, address) = (
            AppUser { app: app.to_owned(), user: user.clone() },
            SessionAddress { app: app.to_owned(), user: user.clone(), session: session.clone() },
        );
        let state = input["state"].as_object().cloned().unwrap_or_default();
        let new = NewAdkSession { id: Some(session.clone()), state, events: Vec::new() };
        self.create_session(caller, app_user, new).await?;
        let mut per_turn: Vec<(Value, Vec<f64>)> = Vec::new();
        for expected in turns {
            let events = self.run_turn(caller, &address, &expected["userContent"]).await?;
            let actual = ran_evaluation_invocation(&expected["userContent"], &events);
            let scores = metrics.iter().map(|metric| metric.score(&actual, expected)).collect();
            per_turn.push((actual, scores));
        }
        self.cancel_waiting_run(caller, &address).await?;
        let overall = |index: usize| {
            let total: f64 = per_turn.iter().filter_map(|(_, scores)| scores.get(index)).sum();
            (!per_turn.is_empty()).then(|| total / per_turn.len() as f64)
        };
        let overall: Vec<Option<f64>> = (0..metrics.len()).map(overall).collect();
        let results = |scores: Vec<Option<f64>>| {
            metrics.iter().zip(scores).map(|(metric, score)| metric.result(score)).collect::<Vec<Value>>()
        };
        let per_invocation = per_turn.iter().zip(turns).map(|((actual, scores), expected)| {
            json!({
                "actualInvocation": actual,
                "expectedInvocation": expected,
                "evalMetricResults": results(scores.iter().copied().map(Some).collect()),
            })
        });
        Ok(json!({
            "evalSetFile": set,
            "evalSetId": set,
            "evalId": case.id,
            "finalEvalStatus": final_evaluation_status(metrics, &overall) as u8,
            "evalMetricResults": [],
            "evalMetricResultPerInvocation": per_invocation.collect::<Vec<_>>(),
            "overallEvalMetricResults": results(overall),
            "userId": user,
            "sessionId": session,
        }))
    }

    /// One turn until it ends or asks. Nobody is there to answer: the next turn supersedes what waits.
    async fn run_turn(
        &self,
        caller: &Caller,
        address: &SessionAddress,
        content: &Value,
    ) -> Result<Vec<Value>, AdkRefusal> {
        let body = json!({ "newMessage": content }).to_string();
        let request = AdkRunRequest::from_body(body.as_bytes(), Some(address.clone()))?;
        let mut subscription = match self.begin_run(caller, request).await? {
            BeginOutcome::Watching(subscription) => subscription,
            BeginOutcome::Nothing | BeginOutcome::Unknown(_) => return Ok(Vec::new()),
        };
        let mut events = Vec::new();
        while let Some(more) = subscription.next_events().await? {
            events.extend(more.iter().map(|event| json!(event)));
        }
        Ok(events)
    }

    async fn cancel_waiting_run(&self, caller: &Caller, address: &SessionAddress) -> Result<(), AdkRefusal> {
        let app_user = AppUser { app: address.app.clone(), user: address.user.clone() };
        let located = self.find_session(caller, app_user, &address.session).await?;
        let cancel = Command::Cancel { run: None, origin: adk_run_origin(caller) };
        self.send_command(caller, located.session, cancel).await
    }

    async fn session_events(
        &self,
        caller: &Caller,
        app_user: AppUser,
        session: &str,
    ) -> Result<Vec<Value>, AdkRefusal> {
        let (_, mut list) = self.load_session(caller, app_user, session).await?;
        let mut events = Vec::new();
        while let Some(more) = list.next_items().await.map_err(adk_store_refusal)? {
            events.extend(more);
        }
        Ok(events)
    }
}

/// A case passes if every metric does.
fn final_evaluation_status(metrics: &[EvalMetric], overall: &[Option<f64>]) -> EvalStatus {
    let statuses = || metrics.iter().zip(overall).filter_map(|(metric, score)| score.map(|score| metric.status(score)));
    if statuses().next().is_none() {
        return EvalStatus::NotEvaluated;
    }
    if statuses().all(|status| status == EvalStatus::Passed) { EvalStatus::Passed } else { EvalStatus::Failed }
}

/// Why an evaluation is not kept or not found, in the words of this protocol.
pub(super) fn evaluation_refusal(error: EvaluationError) -> AdkRefusal {
    match error {
        EvaluationError::Unknown(_) => AdkRefusal::new(404, format!("{error}.")),
        EvaluationError::Exists(_) | EvaluationError::Full(_) => AdkRefusal::new(400, format!("{error}.")),
        EvaluationError::Denied(denied) => AdkRefusal::new(403, denied.to_string()),
        EvaluationError::Store(error) => adk_store_refusal(error),
    }
}
