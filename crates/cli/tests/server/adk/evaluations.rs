//! Evaluations: sets of cases made of sessions, run and compared, as the page's tab does it.

use reqwest::Method;
use serde_json::{Value, json};

use crate::adk::client::{SESSIONS, begin, says};
use crate::adk::test_server::{Answer, TestServer};

const SETS: &str = "/dev/apps/wire/eval_sets";

async fn change(server: &TestServer, method: Method, path: &str, body: &Value) -> Answer {
    let request = server.client.request(method, server.url(path)).bearer_auth(&server.token).json(body);
    Answer::of(request.send().await.unwrap()).await
}

/// A set `smoke` with a case of each session, by its name.
async fn set_of_cases(server: &TestServer, cases: &[(&str, &[&str])]) {
    let set = json!({ "evalSet": { "eval_set_id": "smoke", "eval_cases": [] } });
    let made = server.post("/dev/apps/wire/eval-sets", &set).await.ok();
    assert_eq!(made["eval_set_id"], "smoke", "{made}");
    for (case, prompts) in cases {
        begin(server, case).await;
        for prompt in *prompts {
            server.post("/run", &says(case, prompt)).await.ok();
        }
        let add = json!({ "evalId": case, "sessionId": case, "userId": "u1" });
        server.post(&format!("{SETS}/smoke/add_session"), &add).await.ok();
    }
}

fn metrics() -> Value {
    json!([
        { "metricName": "tool_trajectory_avg_score", "threshold": 1.0 },
        { "metricName": "response_match_score", "threshold": 0.8 },
    ])
}

fn scores(result: &Value) -> Vec<f64> {
    result["overallEvalMetricResults"].as_array().unwrap().iter().map(|one| one["score"].as_f64().unwrap()).collect()
}

#[tokio::test]
async fn sessions_become_cases_that_pass_until_something_else_is_expected() {
    let server = TestServer::open().await;
    set_of_cases(&server, &[("talk", &["think", "hello"]), ("weather", &["tool"])]).await;
    assert_eq!(server.get(SETS).await.ok(), json!(["smoke"]));
    assert_eq!(server.get(&format!("{SETS}/smoke/evals")).await.ok(), json!(["talk", "weather"]));

    let run = json!({ "eval_case_ids": [], "eval_metrics": metrics() });
    let ran = server.post("/dev/apps/wire/eval-sets/smoke/run", &run).await.ok();
    let results = ran["runEvalResults"].as_array().unwrap();
    for result in results {
        assert_eq!((result["finalEvalStatus"].clone(), scores(result)), (json!(1), vec![1.0, 1.0]), "{result}");
    }
    assert_eq!(results[0]["evalMetricResultPerInvocation"].as_array().unwrap().len(), 2, "{}", results[0]);

    let path = format!("{SETS}/smoke/evals/weather");
    let mut case = server.get(&path).await.ok();
    let calls = &mut case["conversation"][0]["intermediateData"]["invocationEvents"];
    let call = calls.as_array_mut().unwrap().iter_mut().find_map(|event| {
        let parts = event["content"]["parts"].as_array_mut()?;
        parts.iter_mut().find_map(|part| part.get_mut("functionCall"))
    });
    call.unwrap()["args"]["city"] = json!("Rome");
    case["conversation"][0]["finalResponse"]["parts"] = json!([{ "text": "nothing of the kind" }]);
    change(&server, Method::PUT, &path, &case).await.ok();
    let run = json!({ "evalIds": ["weather"], "evalMetrics": metrics() });
    let ran = server.post(&format!("{SETS}/smoke/run_eval"), &run).await.ok();
    assert_eq!((ran[0]["finalEvalStatus"].clone(), scores(&ran[0])[0]), (json!(2), 0.0), "{ran}");
    assert!(scores(&ran[0])[1] < 0.5, "{ran}");
}

#[tokio::test]
async fn results_are_kept_with_the_sessions_they_ran_in() {
    let server = TestServer::open().await;
    set_of_cases(&server, &[("talk", &["think"])]).await;
    let run = json!({ "evalCaseIds": ["talk"], "evalMetrics": metrics() });
    let ran = server.post(&format!("{SETS}/smoke/run_eval"), &run).await.ok();
    let ids = server.get("/dev/apps/wire/eval_results").await.ok();
    assert_eq!(server.get("/dev/apps/wire/eval-results").await.ok(), json!({ "evalResultIds": ids }));
    let result = server.get(&format!("/dev/apps/wire/eval_results/{}", ids[0].as_str().unwrap())).await.ok();
    let case = &result["evalCaseResults"][0];
    assert_eq!((&case["evalId"], &case["sessionId"]), (&json!("talk"), &ran[0]["sessionId"]), "{result}");
    assert!(case["sessionDetails"]["events"].to_string().contains("The answer is 42."), "{case}");
    let listed = server.get(SESSIONS).await.ok();
    assert_eq!(listed.as_array().unwrap().len(), 1, "sessions of evaluations are not listed: {listed}");

    // Through a second protocol: the run is a run like any other.
    let session = ran[0]["sessionId"].as_str().unwrap().to_owned();
    let events = server.get(&format!("{SESSIONS}/{session}")).await.ok()["events"].clone();
    let run = events[1]["invocationId"].as_str().unwrap().trim_start_matches("e-").to_owned();
    let run = server.get(&format!("/runs/{run}")).await.ok();
    assert!(run["output"].to_string().contains("The answer is 42."), "{run}");
}

#[tokio::test]
async fn a_case_whose_tool_asks_ends_without_an_answer() {
    let server = TestServer::open().await;
    set_of_cases(&server, &[("hello", &["hello"])]).await;
    let case = json!({
        "eval_id": "hello",
        "conversation": [
            { "user_content": { "role": "user", "parts": [{ "text": "confirm" }] },
              "intermediate_data": { "tool_uses": [{ "name": "delete_file", "args": { "path": "/data/a.txt" } }] } },
        ],
    });
    change(&server, Method::PUT, &format!("{SETS}/smoke/evals/hello"), &case).await.ok();
    let metric = json!({ "metricName": "tool_trajectory_avg_score", "criterion": { "threshold": 1.0, "matchType": "IN_ORDER" } });
    let ran = server.post(&format!("{SETS}/smoke/run_eval"), &json!({ "evalMetrics": [metric] })).await.ok();
    assert_eq!(ran[0]["finalEvalStatus"], 1, "the call was made: {ran}");
    let session = ran[0]["sessionId"].as_str().unwrap().to_owned();
    let session = server.get(&format!("/apps/wire/users/user/sessions/{session}")).await.ok();
    assert!(!session.to_string().contains("'deleted'"), "nobody said yes: {session}");
}

#[tokio::test]
async fn what_cannot_be_evaluated_is_refused_in_the_protocols_words() {
    let server = TestServer::open().await;
    set_of_cases(&server, &[("talk", &["think"])]).await;
    let set = json!({ "evalSet": { "eval_set_id": "smoke" } });
    let run = |body: Value| (format!("{SETS}/smoke/run_eval"), body);
    let judged = json!([{ "metricName": "safety_v1", "threshold": 1.0 }]);
    for ((path, body), status) in [
        (("/dev/apps/wire/eval-sets".to_owned(), set), 400),
        (("/dev/apps/wire/eval-sets".to_owned(), json!({})), 422),
        ((format!("{SETS}/..%2F..%2Fx"), json!({})), 404),
        ((format!("{SETS}/a b"), json!({})), 400),
        ((format!("{SETS}/none/add_session"), json!({ "evalId": "x", "sessionId": "talk", "userId": "u1" })), 404),
        ((format!("{SETS}/smoke/add_session"), json!({ "evalId": "talk", "sessionId": "talk", "userId": "u1" })), 400),
        ((format!("{SETS}/smoke/add_session"), json!({ "evalId": "x", "sessionId": "none", "userId": "u1" })), 404),
        (run(json!({})), 422),
        (run(json!({ "evalMetrics": judged })), 400),
        (run(json!({ "evalMetrics": metrics(), "evalCaseIds": ["none"] })), 400),
        (run(json!({ "evalMetrics": metrics(), "liveModelConfig": {} })), 501),
        ((format!("{SETS}/none/run_eval"), json!({ "evalMetrics": metrics() })), 400),
    ] {
        let refused = server.post(&path, &body).await;
        assert_eq!(refused.status, status, "{path} {body}: {}", refused.text);
        assert!(refused.json()["error"].is_string(), "{path}");
    }
    for (path, status) in [
        (format!("{SETS}/none/evals"), 400),
        (format!("{SETS}/smoke/evals/none"), 404),
        ("/dev/apps/wire/eval-results/none".to_owned(), 404),
    ] {
        assert_eq!(server.get(&path).await.status, status, "{path}");
    }
    let case = format!("{SETS}/smoke/evals/talk");
    for (body, status) in [
        (json!({ "evalId": "other", "conversation": [] }), 400),
        (json!({ "evalId": "talk" }), 422),
        (json!({ "conversation": [{ "finalResponse": {} }] }), 422),
    ] {
        assert_eq!(change(&server, Method::PUT, &case, &body).await.status, status, "{body}");
    }
    change(&server, Method::DELETE, &case, &Value::Null).await.ok();
    assert_eq!(change(&server, Method::DELETE, &case, &Value::Null).await.status, 404);
    change(&server, Method::DELETE, &format!("{SETS}/smoke"), &Value::Null).await.ok();
    assert_eq!(server.get(SETS).await.ok(), json!([]));
    let known = server.get("/dev/apps/wire/metrics-info").await.ok();
    assert_eq!(known["metricsInfo"].as_array().unwrap().len(), 2, "{known}");
}
