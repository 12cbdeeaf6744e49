//! Random sequences of everything that can happen, in any order, with crashes.

use std::time::Duration;

use gander_agent::turn::Input;
use gander_domain::{Event, IfBusy, Outcome, ToolCallId};
use gander_models::{ModelError, ModelEvent, ModelStop};
use proptest::prelude::*;
use uuid::Uuid;

use crate::turn::script::{calls, done, ok, says, thinks, user, yes};
use crate::turn::world::World;

const TOOLS: [&str; 5] = ["look", "write", "danger", "forbidden", "unheard_of"];

#[derive(Clone, Debug)]
enum Step {
    Hear,
    Obey,
    Speak(Vec<ModelEvent>),
    Fail(ModelError),
    Wait,
    Finish(usize),
    Answer(usize, &'static str),
    Prompt(IfBusy),
    Cancel,
    Crash,
    Stray(Stray),
}

/// What no driver would say.
#[derive(Clone, Debug)]
enum Stray {
    Begin,
    Waited,
    Model,
    Failed,
    Run(u8),
    Done(u8),
    Answered(u8),
    Steer,
}

fn answer() -> impl Strategy<Value = Vec<ModelEvent>> {
    let words = prop_oneof![Just(Vec::new()), Just(vec![says("word")]), Just(vec![thinks("hm"), says("word")])];
    let tools = prop::collection::vec(prop::sample::select(&TOOLS[..]), 0..4);
    let stop = prop_oneof![
        6 => Just(Some(ModelStop::ToolUse)),
        2 => Just(Some(ModelStop::EndTurn)),
        1 => Just(Some(ModelStop::MaxTokens)),
        1 => Just(Some(ModelStop::Refusal)),
        2 => Just(None),
    ];
    (words, tools, stop, prop::sample::select(&["{}", "", "{\"half", "7"][..])).prop_map(
        |(words, tools, stop, last)| {
            let mut events = words;
            let count = tools.len();
            for (index, name) in tools.into_iter().enumerate() {
                events.extend(calls(index as u32, name, if index + 1 == count { last } else { "{}" }));
            }
            events.extend(stop.map(done));
            events
        },
    )
}

fn failure() -> impl Strategy<Value = ModelError> {
    prop_oneof![
        4 => Just(ModelError::Network("broke".into())),
        1 => Just(ModelError::RateLimited { message: "slow".into(), retry_after: Some(Duration::from_secs(9)) }),
        1 => Just(ModelError::ContextTooLong("long".into())),
        1 => Just(ModelError::Unauthorized("key".into())),
        1 => Just(ModelError::Refused("no".into())),
    ]
}

fn stray() -> impl Strategy<Value = Stray> {
    prop_oneof![
        Just(Stray::Begin),
        Just(Stray::Waited),
        Just(Stray::Model),
        Just(Stray::Failed),
        any::<u8>().prop_map(Stray::Run),
        any::<u8>().prop_map(Stray::Done),
        any::<u8>().prop_map(Stray::Answered),
        Just(Stray::Steer),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let choice = prop::sample::select(&["once", "always", "no"][..]);
    let busy = prop::sample::select(&[IfBusy::Steer, IfBusy::Queue, IfBusy::QueueOrSupersede][..]);
    prop_oneof![
        12 => Just(Step::Hear),
        8 => Just(Step::Obey),
        8 => answer().prop_map(Step::Speak),
        2 => failure().prop_map(Step::Fail),
        2 => Just(Step::Wait),
        5 => any::<usize>().prop_map(Step::Finish),
        4 => (any::<usize>(), choice).prop_map(|(n, choice)| Step::Answer(n, choice)),
        1 => busy.prop_map(Step::Prompt),
        1 => Just(Step::Cancel),
        1 => Just(Step::Crash),
        1 => stray().prop_map(Step::Stray),
    ]
}

fn take(world: &mut World, step: Step) {
    match step {
        Step::Hear => drop(world.hear()),
        Step::Obey => drop(world.obey()),
        Step::Speak(events) => world.speak(events),
        Step::Fail(error) => world.fail(error),
        Step::Wait => drop(world.wait()),
        Step::Finish(n) => drop(world.finish(n)),
        Step::Answer(n, choice) => drop(world.answer(n, choice)),
        Step::Prompt(busy) => world.prompt(busy),
        Step::Cancel => world.cancel(),
        Step::Crash => world.crash(),
        Step::Stray(stray) => world.feed(input(&stray)),
    }
}

/// Ids that were mostly never given, and sometimes were.
fn input(stray: &Stray) -> Input {
    let call = |n: &u8| ToolCallId::new(Uuid::from_u128(0x1000 + u128::from(*n)));
    match stray {
        Stray::Begin => Input::Begin,
        Stray::Waited => Input::Waited,
        Stray::Model => Input::Model(vec![ModelEvent::ToolArguments { index: 77, text: "{".into() }]),
        Stray::Failed => Input::ModelFailed(ModelError::BadStream("?".into())),
        Stray::Run(n) if *n > 200 => Input::RunTool(call(n)),
        Stray::Run(_) => Input::Configured(crate::turn::script::prompted("").settings),
        Stray::Done(n) => Input::ToolDone(call(n), ok()),
        Stray::Answered(n) => Input::Answered(gander_domain::QuestionId::new(Uuid::from_u128(u128::from(*n))), yes()),
        Stray::Steer => Input::Steer(user("hey")),
    }
}

/// From here on everybody behaves. Every run must come to its end.
fn settle(world: &mut World) {
    for _ in 0..2_000 {
        if world.hear() || world.obey() || world.wait() || world.finish(0) || world.answer(0, "once") {
            continue;
        }
        if world.model.is_some() {
            world.speak(vec![says("done"), done(ModelStop::EndTurn)]);
            continue;
        }
        assert!(world.idle(), "a run hangs: {:#?}", world.entries.last());
        return;
    }
    panic!("no end");
}

fn assert_lawful(world: &World) {
    for outcome in world.outcomes() {
        assert!(!matches!(&outcome, Outcome::Failed { reason, .. } if reason == "backend"), "{outcome:?}");
    }
    let count = |wanted: &dyn Fn(&Event) -> bool| world.entries.iter().filter(|entry| wanted(&entry.event)).count();
    let started = count(&|event| matches!(event, Event::RunStarted { .. }));
    assert_eq!(
        world.outcomes().len(),
        started + count(&|event| matches!(event, Event::RunQueued { .. })) - queued_and_started(world)
    );
    for entry in &world.entries {
        if let Event::ToolCalled { call } = &entry.event {
            let ends = count(&|event| matches!(event, Event::ToolDone { call: of, .. } if *of == call.id));
            assert_eq!(ends, 1, "ends of {}", call.id);
        }
    }
}

fn queued_and_started(world: &World) -> usize {
    let runs = |wanted: fn(&Event) -> bool| -> Vec<_> {
        world.entries.iter().filter(|entry| wanted(&entry.event)).filter_map(|entry| entry.run).collect()
    };
    let started = runs(|event| matches!(event, Event::RunStarted { .. }));
    runs(|event| matches!(event, Event::RunQueued { .. })).iter().filter(|run| started.contains(run)).count()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_the_laws_hold(
        window in prop::sample::select(&[None, Some(60)][..]),
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let mut world = World::with_window(window);
        steps.into_iter().for_each(|step| take(&mut world, step));
        settle(&mut world);
        assert_lawful(&world);
    }
}
