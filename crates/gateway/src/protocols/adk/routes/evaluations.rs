//! Evaluations over HTTP, below `/dev/apps/{app}`: in the spelling with hyphens and in the older one with underscores.

use axum::Json;
use axum::response::IntoResponse;
use gander_domain::caller::Caller;
use gander_services::evaluations::{EvalSet, EvaluationError};
use gander_wire::adk::AdkRefusal;
use gander_wire::adk::evaluation::{AddSession, EvalCase, RunEvalRequest, check_eval_set_id, read_eval_set_id};
use http::Method;
use serde_json::{Value, json};

use super::HandlerResult;
use crate::protocols::adk::AdkState;
use crate::protocols::adk::error::adk_whole_response_refusal;
use crate::protocols::adk::evaluation_refusal;

/// True if a path below an app is one of evaluations.
pub(super) fn is_evaluation(steps: &[&str]) -> bool {
    matches!(steps.first(), Some(&("eval_sets" | "eval-sets" | "eval_results" | "eval-results")))
}

/// `GET /dev/apps/{app}/eval-…`.
pub(super) async fn get_evaluation(state: &AdkState, caller: &Caller, app: &str, steps: &[&str]) -> HandlerResult {
    let _whole = state.whole_response_permit().await.map_err(adk_whole_response_refusal)?;
    let evaluations = state.adk.evaluations(caller, app);
    let body = match steps {
        ["eval_sets"] => json!(evaluations.list_sets().await.map_err(evaluation_refusal)?),
        ["eval-sets"] => json!({ "evalSetIds": evaluations.list_sets().await.map_err(evaluation_refusal)? }),
        ["eval_results"] => json!(evaluations.list_results().await.map_err(evaluation_refusal)?),
        ["eval-results"] => json!({ "evalResultIds": evaluations.list_results().await.map_err(evaluation_refusal)? }),
        ["eval_results" | "eval-results", result] => state.adk.evaluation_result(caller, app, result).await?,
        ["eval_sets" | "eval-sets", set] => {
            eval_set_object(set, &evaluations.get_set(set).await.map_err(evaluation_refusal)?)
        }
        ["eval_sets" | "eval-sets", set, "evals" | "eval-cases"] => {
            let cases = evaluations.get_set(set).await.map_err(unknown_set_refusal)?;
            json!(cases.into_keys().collect::<Vec<_>>())
        }
        ["eval_sets" | "eval-sets", set, "evals" | "eval-cases", case] => {
            evaluations.get_case(set, case).await.map_err(evaluation_refusal)?
        }
        _ => return Err(AdkRefusal::new(404, "Not Found").into()),
    };
    Ok(Json(body).into_response())
}

/// `POST`, `PUT` and `DELETE` of the same.
pub(super) async fn change_evaluation(
    state: &AdkState,
    caller: &Caller,
    app: &str,
    (method, steps): (&Method, &[&str]),
    body: &[u8],
) -> HandlerResult {
    let evaluations = state.adk.evaluations(caller, app);
    let body = match (method.as_str(), steps) {
        ("POST", ["eval-sets"]) => {
            let set = read_eval_set_id(body)?;
            evaluations.create_set(&set).await.map_err(evaluation_refusal)?;
            eval_set_object(&set, &EvalSet::new())
        }
        ("POST", ["eval_sets" | "eval-sets", set]) => {
            let set = check_eval_set_id(set)?;
            evaluations.create_set(&set).await.map_err(evaluation_refusal)?;
            Value::Null
        }
        ("POST", ["eval_sets" | "eval-sets", set, "add_session" | "add-session"]) => {
            state.adk.add_session_as_case(caller, app, set, AddSession::from_body(body)?).await?;
            Value::Null
        }
        ("POST", ["eval_sets" | "eval-sets", set, way @ ("run" | "run_eval")]) => {
            let results = state.adk.run_evaluation(caller, app, set, RunEvalRequest::from_body(body)?).await?;
            if *way == "run" { json!({ "runEvalResults": results }) } else { json!(results) }
        }
        ("PUT", ["eval_sets" | "eval-sets", set, "evals" | "eval-cases", case]) => {
            let case = EvalCase::from_body(case, body)?;
            evaluations.replace_case(set, &case.id, case.value).await.map_err(evaluation_refusal)?;
            Value::Null
        }
        ("DELETE", ["eval_sets" | "eval-sets", set, "evals" | "eval-cases", case]) => {
            evaluations.remove_case(set, case).await.map_err(evaluation_refusal)?;
            Value::Null
        }
        ("DELETE", ["eval_sets" | "eval-sets", set]) => {
            evaluations.remove_set(set).await.map_err(evaluation_refusal)?;
            Value::Null
        }
        _ => return Err(AdkRefusal::new(404, "Not Found").into()),
    };
    Ok(Json(body).into_response())
}

/// A set keeps its keys in `snake_case`, its cases theirs in camelCase: so the original's types are written.
fn eval_set_object(set: &str, cases: &EvalSet) -> Value {
    let cases: Vec<&Value> = cases.values().collect();
    json!({ "eval_set_id": set, "name": set, "eval_cases": cases, "creation_timestamp": 0.0 })
}

/// The original answers 400 where a set is asked for its cases.
fn unknown_set_refusal(error: EvaluationError) -> AdkRefusal {
    let refusal = evaluation_refusal(error);
    if refusal.status == 404 { AdkRefusal { status: 400, ..refusal } } else { refusal }
}
