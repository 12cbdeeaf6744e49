//! A turn that is cut anywhere ends as it would have ended.

use gander_agent::turn::TurnSetup;
use gander_domain::{Event, Outcome, Part, Role};
use gander_models::{ModelEvent, ModelStop};
use proptest::prelude::*;
use serde_json::json;

use crate::turn::script::{calls, done, says};
use crate::turn::world::World;

/// What the model answers when it has answered so many times: a function of what it is shown.
#[derive(Clone, Debug)]
struct Plan(Vec<Vec<&'static str>>);

impl Plan {
    /// In two pieces, so that it can be cut in its middle.
    fn answer(&self, world: &World) -> [Vec<ModelEvent>; 2] {
        let messages = &world.model.as_ref().unwrap().messages;
        let answered = messages.iter().filter(|message| message.role == Role::Agent).count();
        let mut events = Vec::new();
        let tools = self.0.get(answered).cloned().unwrap_or_default();
        for (index, name) in tools.iter().enumerate() {
            events.extend(calls(index as u32, name, "{}"));
        }
        events.push(done(if tools.is_empty() { ModelStop::EndTurn } else { ModelStop::ToolUse }));
        [vec![says("well ")], events]
    }
}

fn plan() -> impl Strategy<Value = Plan> {
    let tools = prop::sample::select(&["look", "write", "danger", "forbidden", "unheard_of"][..]);
    prop::collection::vec(prop::collection::vec(tools, 1..4), 0..4).prop_map(Plan)
}

/// Plays the plan, with a crash after so many steps. Gives the world and how many steps it took.
fn play(plan: &Plan, cut: Option<usize>) -> (World, usize) {
    let mut world = World::new();
    let mut half: Option<Vec<ModelEvent>> = None;
    for step in 0..1_000 {
        if cut == Some(step) {
            world.crash();
            half = None;
        }
        if world.hear() || world.obey() || world.finish(0) {
            continue;
        }
        if let Some(rest) = half.take() {
            world.speak(rest);
        } else if world.model.is_some() {
            world.assert_folded();
            let [first, rest] = plan.answer(&world);
            world.speak(first);
            half = Some(rest);
        } else if !world.answer(0, if step % 3 == 0 { "no" } else { "once" }) {
            return (world, step);
        }
        if world.model.is_none() {
            half = None;
        }
    }
    panic!("no end");
}

/// What the run amounts to: its end, and which tools it used in which order.
fn sense(world: &World) -> (Vec<Outcome>, Vec<String>) {
    let said = world.entries.iter().filter_map(|entry| match &entry.event {
        Event::MessageDone { message } if !message.interrupted => Some(message.parts.clone()),
        _ => None,
    });
    let used = said.flatten().filter_map(|part| match part {
        Part::ToolUse { name, .. } => Some(name),
        _ => None,
    });
    (world.outcomes(), used.collect())
}

fn assert_same_wherever_cut(plan: &Plan) {
    let (whole, steps) = play(plan, None);
    for cut in 0..=steps {
        let (resumed, _) = play(plan, Some(cut));
        assert_eq!(sense(&whole), sense(&resumed), "cut after {cut} of {steps} steps");
    }
}

#[test]
fn a_run_with_every_kind_of_call_ends_the_same_wherever_it_is_cut() {
    let everything = vec!["look", "danger", "write", "forbidden", "unheard_of"];
    assert_same_wherever_cut(&Plan(vec![everything.clone(), vec!["danger"], everything]));
}

#[test]
fn five_wrong_calls_in_a_row_are_counted_across_a_crash() {
    assert_same_wherever_cut(&Plan(vec![vec!["a", "b"], vec!["c"], vec!["d", "e"], vec!["f"]]));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_cut_changes_nothing_that_counts(plan in plan()) {
        assert_same_wherever_cut(&plan);
    }
}

/// What the loop hands out before the model is asked is no turn of the model's, however often it is picked up.
#[test]
fn a_run_that_was_taken_apart_has_all_its_turns_after_a_crash() {
    let setup = crate::turn::script::setup();
    let settings = gander_agent::AgentSettings { max_turns: 1, ..setup.settings.clone() };
    for cut in 0..6 {
        let mut world =
            World::with(TurnSetup { subtasks: Some(json!({})), settings: settings.clone(), ..setup.clone() });
        for step in 0..100 {
            if step == cut {
                world.crash();
            }
            if !(world.hear() || world.obey() || world.finish(0)) {
                break;
            }
        }
        assert!(world.model.is_some(), "cut after {cut} steps the model is not asked: {:?}", world.outcomes());
        let joined =
            world.model.as_ref().unwrap().messages.iter().filter(|message| message.role == Role::Agent).count();
        assert_eq!(joined, 1, "it is handed out once");
    }
}
