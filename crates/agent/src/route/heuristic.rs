//! Routing by the words of a prompt: a pure function, so that the same prompt always goes the same way.

use std::collections::BTreeSet;

use gander_domain::{Route, Routing, Settings};

use crate::modes::{ModeSet, ModeSpec};

/// A word that points to so many modes points to none.
const MIN_COMMON_MODES: usize = 4;

/// Less sure than this, and the session stays where it is.
const MIN_CONFIDENCE: u8 = 50;

/// Words of a prompt that are looked at: the wish stands at its beginning.
const MAX_WORDS: usize = 400;

/// How much a mode's own name counts, in words.
const NAMED_MODE_SCORE: f64 = 3.0;

/// Where a prompt goes in a session with these settings. The reasons are for people.
pub fn route_by_words(modes: &ModeSet, settings: &Settings, prompt: &str) -> Route {
    let said: BTreeSet<String> = split_routed_words(prompt).take(MAX_WORDS).collect();
    let modes: Vec<&ModeSpec> = modes.agent_specs().iter().flat_map(|agent| &agent.modes).map(|mode| &**mode).collect();
    let mut scored: Vec<(f64, Vec<&str>, &ModeSpec)> = modes
        .iter()
        .map(|mode| {
            let hits = route_word_hits(&modes, mode, &said);
            (hits.iter().map(|(_, weight)| weight).sum(), hits.into_iter().map(|(word, _)| word).collect(), *mode)
        })
        .collect();
    // Of two that fit alike the one that is listed first.
    scored.sort_by(|one, other| other.0.total_cmp(&one.0));
    let (first, second) = (scored.first(), scored.get(1).map_or(0.0, |second| second.0));
    match first {
        Some((score, words, mode)) if *score > 0.0 && route_confidence(*score, second) >= MIN_CONFIDENCE => Route {
            agent: mode.agent.clone(),
            mode: mode.id.clone(),
            confidence: route_confidence(*score, second),
            reasons: vec![format!("{} fits these words: {}", mode.name, words.join(", "))],
            by: Routing::Rules,
        },
        Some(_) | None => Route {
            agent: settings.agent.clone(),
            mode: settings.mode.clone(),
            confidence: first.map_or(0, |(score, ..)| route_confidence(*score, second)),
            reasons: vec!["no mode fits clearly better than the others".to_owned()],
            by: Routing::Rules,
        },
    }
}

/// The words that point to a mode, and how much each counts: the fewer modes it points to, the more.
fn route_word_hits<'a>(modes: &[&ModeSpec], mode: &'a ModeSpec, said: &BTreeSet<String>) -> Vec<(&'a str, f64)> {
    let shared = |word: &String| modes.iter().filter(|other| other.words.contains(word)).count();
    let pointing = mode.words.iter().filter(|word| said.contains(*word));
    let weighed = pointing.filter_map(|word| {
        let shared = shared(word);
        (shared < MIN_COMMON_MODES).then(|| (word.as_str(), 1.0 / shared.max(1) as f64))
    });
    let named = said.contains(&mode.id.replace('_', "-")) || said.contains(&mode.id);
    named.then_some((mode.id.as_str(), NAMED_MODE_SCORE)).into_iter().chain(weighed).collect()
}

/// Of a hundred: how far ahead of the next one, and how much there was to go by.
fn route_confidence(score: f64, second: f64) -> u8 {
    let ahead = score / (score + second).max(f64::MIN_POSITIVE);
    let much = score / (score + 0.5);
    // Both are from 0 to 1.
    (ahead * much * 100.0).round() as u8
}

/// Lower-case words, with the hyphens inside them.
fn split_routed_words(text: &str) -> impl Iterator<Item = String> {
    text.split(|character: char| !(character.is_alphanumeric() || character == '-' || character == '_'))
        .map(|word| word.trim_matches('-').to_lowercase())
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routed(prompt: &str) -> (String, u8, String) {
        let route = route_by_words(&ModeSet::built_in(), &Settings::new("gander", "assistant"), prompt);
        (route.mode, route.confidence, route.reasons.join("; "))
    }

    #[test]
    fn a_prompt_goes_where_its_words_point() {
        let cases = [
            ("Add an endpoint to the REST API and a migration for the database", "backend"),
            ("Make the layout responsive and fix the CSS of the button", "frontend"),
            ("Audit this for SQL injection, XSS and leaked secrets", "security"),
            ("The tests are flaky, raise the coverage with integration tests", "qa"),
            ("Write user stories with acceptance criteria for the roadmap", "pm"),
            ("Set up a GitLab pipeline that builds the docker image", "devsecops"),
            ("Define SLOs, metrics and alerts for latency, and a runbook", "sre"),
            ("ToolPreview the architecture: modules, boundaries and trade-off of each pattern", "architect"),
            ("Turn this into a reusable recipe", "recipe_maker"),
            ("Please plan the approach in steps, as an outline", "planner"),
        ];
        for (prompt, mode) in cases {
            let (found, confidence, why) = routed(prompt);
            assert_eq!(found, mode, "{prompt}: {why}");
            assert!(confidence >= MIN_CONFIDENCE, "{prompt}: {confidence}, {why}");
        }
    }

    #[test]
    fn without_a_clear_sign_it_stays() {
        for prompt in ["", "hello", "Wie geht es dir?", "\u{0}\u{202e}", &"word ".repeat(10_000)] {
            let (mode, _, why) = routed(prompt);
            assert_eq!((mode.as_str(), why.as_str()), ("assistant", "no mode fits clearly better than the others"));
        }
    }

    #[test]
    fn a_mode_that_is_named_wins_and_the_reason_says_so() {
        let (mode, confidence, why) = routed("app-iterator, make the button blue");
        assert_eq!((mode.as_str(), confidence >= MIN_CONFIDENCE), ("app_iterator", true), "{why}");
        assert!(why.starts_with("App Iterator fits these words: app_iterator"), "{why}");
    }
}
