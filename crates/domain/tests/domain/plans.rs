//! Plans that are approved and prompts that are routed: what the machine makes of them.

#![allow(clippy::unwrap_used)]

use gander_domain::{
    Accepted, ChoiceKind, Command, CommandError, IfBusy, Order, Plan, PlanProposal, Question, Reply, Report, Route,
    Routing, SettingsPatch, ToolGate,
};
use gander_testkit::{SessionScript, build};
use serde_json::json;

fn running() -> SessionScript {
    let mut script = SessionScript::begin();
    assert_eq!(script.prompt(build::run(1), IfBusy::Refuse), Ok(Accepted::Started(build::run(1))));
    script
}

fn plan(steps: &[&str]) -> Plan {
    Plan::parse_edited(&json!({ "items": steps })).unwrap()
}

/// Set to a mode that only plans, with a proposal on the table.
fn proposed() -> SessionScript {
    let mut script = running();
    script.command(configured("planner")).unwrap();
    let call = build::shell(build::call_id(1));
    let proposal = PlanProposal { plan: plan(&["one", "two"]), then: Some("assistant".to_owned()) };
    let question = build::permission(build::question_id(1), call.id);
    let question = Question { plan: Some(Box::new(proposal)), ..question };
    script.report(build::run(1), Report::ToolWanted { call, gate: ToolGate::Ask(question) });
    script
}

fn configured(mode: &str) -> Command {
    Command::Configure { patch: SettingsPatch { mode: Some(mode.to_owned()), ..SettingsPatch::default() } }
}

fn answer(reply: Reply) -> Command {
    Command::Answer { question: build::question_id(1), reply, origin: build::origin(), meta: None }
}

fn chosen(choice: &str) -> Reply {
    Reply::Chosen { choice: choice.to_owned(), kind: ChoiceKind::AllowOnce }
}

#[test]
fn an_approved_plan_is_set_and_handed_to_the_mode_that_carries_it_out() {
    let mut script = proposed();
    script.command(answer(chosen("allow"))).unwrap();
    let view = script.session.view();
    assert_eq!((view.settings.mode.as_str(), &view.plan), ("assistant", &plan(&["one", "two"])));
    let orders: Vec<&Order> = script.orders.iter().rev().take(2).map(|(_, order, _)| order).collect();
    assert!(
        matches!(orders[..], [Order::Answered { .. }, Order::Configured { .. }]),
        "the mode comes first: {orders:?}"
    );
}

#[test]
fn a_plan_can_be_answered_with_a_changed_one_and_with_nothing_else() {
    let mut script = proposed();
    let wrong = script.command(answer(Reply::Filled { content: json!({ "items": [{ "text": " " }] }) }));
    assert_eq!(wrong, Err(CommandError::BadAnswer("an item of a plan has a text".to_owned())));
    let many = json!({ "items": vec!["x"; 101] });
    assert!(script.command(answer(Reply::Filled { content: many })).is_err());
    let changed = json!({ "plan": { "items": ["three", { "text": "four", "priority": "high" }] } });
    script.command(answer(Reply::Filled { content: changed.clone() })).unwrap();
    assert_eq!(script.session.view().plan, Plan::parse_edited(&changed).unwrap());
    assert_eq!(script.session.view().settings.mode, "assistant");
}

#[test]
fn a_plan_that_is_turned_down_changes_nothing() {
    let mut script = proposed();
    script.command(answer(chosen("reject"))).unwrap();
    let view = script.session.view();
    assert_eq!((view.settings.mode.as_str(), &view.plan), ("planner", &Plan::default()));
}

#[test]
fn a_route_counts_only_where_routing_is_on_and_a_chosen_mode_ends_it() {
    let (agent, mode, reasons) = ("coding".to_owned(), "qa".to_owned(), Vec::new());
    let route = Route { agent, mode, confidence: 90, reasons, by: Routing::Rules };
    let mut script = running();
    script.report(build::run(1), Report::Routed(route.clone()));
    assert_eq!(script.session.view().settings.mode, "assistant", "nobody asked for it");
    let patch = SettingsPatch { routing: Some(Routing::Rules), ..SettingsPatch::default() };
    script.command(Command::Configure { patch }).unwrap();
    script.report(build::run(1), Report::Routed(route.clone()));
    let settings = script.session.view().settings.clone();
    assert_eq!((settings.agent.as_str(), settings.mode.as_str()), ("coding", "qa"));
    assert_eq!(settings.routing, Routing::Rules, "the next prompt may go elsewhere");
    script.command(configured("sre")).unwrap();
    script.report(build::run(1), Report::Routed(route));
    let settings = &script.session.view().settings;
    assert_eq!((settings.mode.as_str(), settings.routing), ("sre", Routing::Off));
}
