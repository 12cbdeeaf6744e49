//! Metrics of evaluations that need no judge: words in common with the expected answer, and the calls of tools.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::key_case::either_key_case_field;
use super::refusal::{AdkBodyProblem, AdkRefusal};

/// What [`eval_metrics_info`] lists.
const METRICS: [(&str, MetricKind, &str); 2] = [
    (
        "tool_trajectory_avg_score",
        MetricKind::ToolTrajectory,
        "The tool calls of a turn against the expected ones, by name and arguments: 1 if they match, else 0.",
    ),
    (
        "response_match_score",
        MetricKind::ResponseMatch,
        "The final answer against the expected one: the F-measure of the words in both (ROUGE-1, without stemming). 1 is the same words.",
    ),
];

/// A metric, and from which score on a case passes.
#[derive(Clone, Debug, PartialEq)]
pub struct EvalMetric {
    kind: MetricKind,
    threshold: f64,
    order: CallOrder,
    ignores_arguments: bool,
    /// As it was sent: results show it again.
    sent: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MetricKind {
    ToolTrajectory,
    ResponseMatch,
}

/// Which calls may stand between the expected ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallOrder {
    /// None.
    Exact,
    /// Any, as long as the expected ones keep their order.
    InOrder,
    /// Any, in any order.
    AnyOrder,
}

/// How a case or one of its metrics went, by the protocol's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvalStatus {
    Passed = 1,
    Failed = 2,
    NotEvaluated = 3,
}

impl EvalMetric {
    pub(super) fn from_value(sent: &Value) -> Result<Self, AdkRefusal> {
        let Some(object) = sent.as_object() else {
            let problem = AdkBodyProblem::wrong_type("dict_type", &["evalMetrics"], "a valid dictionary", sent);
            return Err(AdkRefusal::unprocessable(&[problem]));
        };
        let name = either_key_case_field(object, "metricName").and_then(Value::as_str).unwrap_or_default();
        let Some((_, kind, _)) = METRICS.iter().find(|(known, ..)| *known == name) else {
            let known = METRICS.map(|(known, ..)| known).join(", ");
            let name = &name[..name.floor_char_boundary(64)];
            return Err(AdkRefusal::new(
                400,
                format!("there is no judge here for the metric {name}, there are: {known}"),
            ));
        };
        let criterion = either_key_case_field(object, "criterion").and_then(Value::as_object);
        let of_criterion = |field| criterion.and_then(|criterion| either_key_case_field(criterion, field));
        let threshold = of_criterion("threshold").or_else(|| either_key_case_field(object, "threshold"));
        let Some(threshold) = threshold.and_then(Value::as_f64) else {
            let problem = AdkBodyProblem::missing_field(&["evalMetrics", "threshold"], sent);
            return Err(AdkRefusal::unprocessable(&[problem]));
        };
        let order = match of_criterion("matchType") {
            None => CallOrder::Exact,
            Some(said) => read_eval_metric_call_order(said)?,
        };
        let ignores_arguments = of_criterion("ignoreArgs") == Some(&json!(true));
        Ok(Self { kind: *kind, threshold, order, ignores_arguments, sent: sent.clone() })
    }

    /// How well a turn agrees with the expected one, from 0 to 1.
    pub fn score(&self, actual: &Value, expected: &Value) -> f64 {
        match self.kind {
            MetricKind::ResponseMatch => {
                eval_metric_common_words(&eval_metric_final_text(actual), &eval_metric_final_text(expected))
            }
            MetricKind::ToolTrajectory => {
                let same = self.same_calls(&eval_metric_tool_calls(actual), &eval_metric_tool_calls(expected));
                if same { 1.0 } else { 0.0 }
            }
        }
    }

    /// Whether a score is enough.
    pub fn status(&self, score: f64) -> EvalStatus {
        if score >= self.threshold { EvalStatus::Passed } else { EvalStatus::Failed }
    }

    /// A score as results tell it; none if nothing was run.
    pub fn result(&self, score: Option<f64>) -> Value {
        let status = score.map_or(EvalStatus::NotEvaluated, |score| self.status(score));
        let mut result = json!({ "metricName": self.name(), "threshold": self.threshold });
        if let Some(criterion) = self.sent.get("criterion").filter(|criterion| !criterion.is_null()) {
            result["criterion"] = criterion.clone();
        }
        if let Some(score) = score {
            result["score"] = json!(score);
        }
        result["evalStatus"] = json!(status as u8);
        result["details"] = json!({});
        result
    }

    fn name(&self) -> &'static str {
        METRICS.iter().find(|(_, kind, _)| *kind == self.kind).map_or("", |(name, ..)| *name)
    }

    fn same_calls(&self, actual: &[&Value], expected: &[&Value]) -> bool {
        let same = |one: &Value, other: &Value| {
            let arguments = |call: &Value| call.get("args").cloned().unwrap_or_else(|| json!({}));
            one["name"] == other["name"] && (self.ignores_arguments || arguments(one) == arguments(other))
        };
        match self.order {
            CallOrder::Exact => {
                actual.len() == expected.len() && actual.iter().zip(expected).all(|(one, other)| same(one, other))
            }
            CallOrder::InOrder => {
                let mut rest = actual.iter();
                expected.iter().all(|wanted| rest.any(|call| same(call, wanted)))
            }
            CallOrder::AnyOrder => {
                let mut rest = actual.to_vec();
                expected.iter().all(|wanted| {
                    let found = rest.iter().position(|call| same(call, wanted));
                    found.map(|index| rest.remove(index)).is_some()
                })
            }
        }
    }
}

/// `GET …/metrics-info`.
pub fn eval_metrics_info() -> Value {
    let interval = json!({ "minValue": 0.0, "openAtMin": false, "maxValue": 1.0, "openAtMax": false });
    let info = |(name, _, description): (&str, MetricKind, &str)| {
        json!({
            "metricName": name,
            "description": description,
            "metricValueInfo": { "interval": interval },
            "requiresThreshold": true,
        })
    };
    json!({ "metricsInfo": METRICS.map(info) })
}

/// A name, or the number that stands for it.
fn read_eval_metric_call_order(said: &Value) -> Result<CallOrder, AdkRefusal> {
    let name = said.as_str().map(str::to_ascii_uppercase);
    match (name.as_deref(), said.as_u64()) {
        (Some("EXACT"), _) | (_, Some(0)) => Ok(CallOrder::Exact),
        (Some("IN_ORDER"), _) | (_, Some(1)) => Ok(CallOrder::InOrder),
        (Some("ANY_ORDER"), _) | (_, Some(2)) => Ok(CallOrder::AnyOrder),
        _ => {
            let message = "Input should be EXACT, IN_ORDER or ANY_ORDER";
            Err(AdkRefusal::invalid_body(&["evalMetrics", "criterion", "matchType"], message, said.clone()))
        }
    }
}

/// Thoughts are no part of an answer.
fn eval_metric_final_text(invocation: &Value) -> String {
    let parts = invocation["finalResponse"]["parts"].as_array().map_or(&[][..], Vec::as_slice);
    let text = |part: &Value| part["text"].as_str().filter(|_| part["thought"] != json!(true)).map(str::to_owned);
    parts.iter().filter_map(text).collect::<Vec<_>>().join("\n")
}

/// Cases name calls as a list, or as the events in which they were made.
fn eval_metric_tool_calls(invocation: &Value) -> Vec<&Value> {
    let data = &invocation["intermediateData"];
    if let Some(uses) = data["toolUses"].as_array() {
        return uses.iter().collect();
    }
    let events = data["invocationEvents"].as_array().map_or(&[][..], Vec::as_slice);
    let parts = events.iter().filter_map(|event| event["content"]["parts"].as_array()).flatten();
    parts.filter_map(|part| part.get("functionCall").filter(|call| call.is_object())).collect()
}

/// The F-measure of the words in both texts; two empty texts say the same.
fn eval_metric_common_words(actual: &str, expected: &str) -> f64 {
    let (actual, expected) = (eval_metric_words(actual), eval_metric_words(expected));
    if actual.is_empty() && expected.is_empty() {
        return 1.0;
    }
    let mut wanted: HashMap<&str, usize> = HashMap::new();
    expected.iter().for_each(|word| *wanted.entry(word).or_default() += 1);
    let mut common = 0_u32;
    for word in &actual {
        if let Some(left) = wanted.get_mut(word.as_str()).filter(|left| **left > 0) {
            *left -= 1;
            common += 1;
        }
    }
    let total = (actual.len() + expected.len()) as f64;
    2.0 * f64::from(common) / total
}

/// Words in small letters. Scripts without spaces count letter by letter.
fn eval_metric_words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for letter in text.chars().flat_map(char::to_lowercase) {
        if is_unspaced_eval_metric_text(letter) {
            words.push(letter.to_string());
            words.push(String::new());
        } else if letter.is_alphanumeric() {
            if let Some(word) = words.last_mut() {
                word.push(letter);
            }
        } else {
            words.push(String::new());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Chinese, Japanese, Korean, Thai, Lao, Khmer, Burmese.
fn is_unspaced_eval_metric_text(letter: char) -> bool {
    matches!(u32::from(letter), 0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0x3040..=0x30FF | 0x4E00..=0x9FFF | 0xAC00..=0xD7AF)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::float_cmp)]

    use super::*;

    fn turn(text: &str, calls: &[(&str, Value)]) -> Value {
        let uses: Vec<Value> = calls.iter().map(|(name, args)| json!({ "name": name, "args": args })).collect();
        json!({ "finalResponse": { "parts": [{ "text": text }] }, "intermediateData": { "toolUses": uses } })
    }

    fn metric(sent: Value) -> EvalMetric {
        EvalMetric::from_value(&sent).unwrap()
    }

    #[test]
    fn answers_agree_by_the_words_in_both() {
        let metric = metric(json!({ "metricName": "response_match_score", "threshold": 0.8 }));
        let score = |actual: &str, expected: &str| metric.score(&turn(actual, &[]), &turn(expected, &[]));
        assert_eq!(score("The answer is 42.", "the answer: is 42"), 1.0);
        assert_eq!(score("", ""), 1.0);
        assert_eq!(score("yes", "no"), 0.0);
        assert_eq!(score("a a b", "a b b"), 2.0 / 3.0);
        assert_eq!(score("東京です", "東京"), 2.0 / 3.0);
        assert_eq!(metric.status(0.8), EvalStatus::Passed);
        assert_eq!(metric.status(0.79), EvalStatus::Failed);
    }

    #[test]
    fn calls_agree_exactly_in_order_or_in_any_order() {
        let of = |order: Value| {
            let criterion = json!({ "threshold": 1.0, "match_type": order });
            metric(json!({ "metric_name": "tool_trajectory_avg_score", "criterion": criterion }))
        };
        let (a, b, c) = (("a", json!({"x": 1})), ("b", json!({})), ("c", json!({})));
        let expected = turn("", &[a.clone(), b.clone()]);
        let more = turn("", &[a.clone(), c.clone(), b.clone()]);
        let swapped = turn("", &[b.clone(), a.clone()]);
        let other = turn("", &[("a", json!({"x": 2})), b.clone()]);
        for (order, scores) in [
            (json!("EXACT"), [1.0, 0.0, 0.0, 0.0]),
            (json!("IN_ORDER"), [1.0, 1.0, 0.0, 0.0]),
            (json!(2), [1.0, 1.0, 1.0, 0.0]),
        ] {
            let metric = of(order.clone());
            let found = [&expected, &more, &swapped, &other].map(|actual| metric.score(actual, &expected));
            assert_eq!(found, scores, "{order}");
        }
        let criterion = json!({ "threshold": 1.0, "ignoreArgs": true });
        let blind = metric(json!({ "metricName": "tool_trajectory_avg_score", "criterion": criterion }));
        assert_eq!(blind.score(&other, &expected), 1.0);
    }

    #[test]
    fn a_metric_that_needs_a_judge_is_refused_with_those_that_there_are() {
        let refused = EvalMetric::from_value(&json!({ "metricName": "safety_v1", "threshold": 1 })).unwrap_err();
        assert!(refused.status == 400 && refused.error.contains("response_match_score"), "{refused}");
        let refused = EvalMetric::from_value(&json!({ "metricName": "response_match_score" })).unwrap_err();
        assert_eq!(refused.status, 422);
    }
}
