//! Random hostile sequences of commands, reports and crashes against every law of the session machine.
//!
//! `PROPTEST_CASES=200000 cargo test -p gander-domain laws::` runs more of them. Each law is also shown to
//! bite: see `scripts/mutation-check` for the seeded bugs that turn these tests red.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, clippy::large_enum_variant)]

use crate::common::checks;
use crate::common::steps::{Step, play, steps};
use gander_domain::{Accepted, Command, CommandError, Entry, IfBusy, SessionView};
use gander_testkit::{SessionScript, build};
use proptest::prelude::*;

fn config() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(500);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

fn played(steps: &[Step]) -> SessionScript {
    let mut script = SessionScript::begin();
    steps.iter().for_each(|step| play(&mut script, step));
    script
}

/// The same, and then whatever is open is brought to its end.
fn ended(steps: &[Step]) -> SessionScript {
    let mut script = played(steps);
    while let Some(run) = script.session.view().run.as_ref().map(|run| run.id) {
        play(&mut script, &Step::CancelAny);
        script.backend_dies(run);
    }
    script
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn law_1_one_active_run_and_one_run_per_id(steps in steps()) {
        checks::one_active_run(&played(&steps).log)?;
    }

    #[test]
    fn law_2_every_run_ends_exactly_once(steps in steps()) {
        checks::ends_once(&ended(&steps).log)?;
    }

    #[test]
    fn law_3_every_tool_call_ends_before_its_run(steps in steps()) {
        checks::tools_end(&ended(&steps).log)?;
    }

    #[test]
    fn law_4_every_question_has_one_answer_and_no_tool_starts_without_a_yes(steps in steps()) {
        checks::one_answer(&ended(&steps).log)?;
    }

    #[test]
    fn law_5_a_cancelled_run_is_cancelled_and_a_dead_back_end_is_a_failure(steps in steps()) {
        checks::cancel_wins(&ended(&steps).log)?;
        let mut script = played(&steps);
        checks::death_fails(&mut script)?;
    }

    #[test]
    fn law_6_numbers_grow_by_one(steps in steps()) {
        checks::numbered(&played(&steps).log)?;
    }

    #[test]
    fn law_7_replay_is_live(steps in steps()) {
        let script = played(&steps);
        prop_assert_eq!(&SessionView::replay(&script.log).unwrap(), script.session.view());
        checks::whole_is_joined(&script.log)?;
    }

    #[test]
    fn law_8_a_tool_is_ordered_after_its_start_and_once(steps in steps()) {
        checks::ordered_after_start(&played(&steps))?;
    }

    #[test]
    fn a_prompt_after_a_cancel_waits_for_the_end_of_the_cancelled_run(steps in steps(), steers in any::<bool>()) {
        let mut script = played(&steps);
        let (cancelled, next) = (script.session.view().run.as_ref().map(|run| run.id), build::run(99));
        play(&mut script, &Step::CancelAny);
        let still = script.session.view().run.as_ref().is_some_and(|run| Some(run.id) == cancelled && run.cancelling);
        let full = script.session.view().queue.len() == 16;
        let accepted = script.prompt(next, if steers { IfBusy::Steer } else { IfBusy::Refuse });
        if still {
            let expected = if full { Err(CommandError::QueueFull(16)) } else { Ok(Accepted::Queued(next)) };
            prop_assert_eq!(accepted, expected);
        }
        checks::one_active_run(&script.log)?;
        while let Some(run) = script.session.view().run.as_ref().map(|run| run.id).filter(|run| *run != next) {
            script.backend_dies(run);
            play(&mut script, &Step::Cancel(0)); // of no run: changes nothing
            if script.session.view().run.as_ref().is_some_and(|active| active.id == run) {
                script.command(Command::Cancel { run: Some(run), origin: build::origin() }).unwrap();
            }
        }
        if still && !full {
            prop_assert_eq!(script.session.view().run.as_ref().map(|run| run.id), Some(next));
        }
        checks::one_active_run(&script.log)?;
        checks::cancel_wins(&script.log)?;
    }

    #[test]
    fn entries_and_views_survive_json(steps in steps()) {
        let script = played(&steps);
        for entry in &script.log {
            let text = serde_json::to_string(entry).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Entry>(&text).unwrap(), entry);
        }
        let text = serde_json::to_string(script.session.view()).unwrap();
        prop_assert_eq!(&serde_json::from_str::<SessionView>(&text).unwrap(), script.session.view());
    }
}
