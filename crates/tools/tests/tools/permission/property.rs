//! Whatever is asked, the decision never panics, and deny beats ask beats allow.

use gander_domain::sanitize;
use gander_domain::{Policy, ToolCall};
use gander_tools::permission::{Action, Grant, Rule, Scope, Stand, Verdict, decide_permission};
use proptest::prelude::*;
use serde_json::json;

use crate::permission::{call, context, fetch, read, shell, verdict, word, write};

fn line() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("git status"),
        Just("ls"),
        Just("rm -rf x"),
        Just(" "),
        Just(";"),
        Just("&&"),
        Just("|"),
        Just("&"),
        Just("$("),
        Just(")"),
        Just("`"),
        Just("'"),
        Just("\""),
        Just("<"),
        Just(">"),
        Just("<<EOF\n"),
        Just("\n"),
        Just("{"),
        Just("}"),
        Just("("),
        Just("\\"),
        Just("*"),
        Just("$x"),
        Just("#"),
        Just("é"),
        Just("\u{202e}"),
        Just("--"),
        Just("-e"),
        Just("if"),
        Just("then"),
        Just("done"),
        Just("=1 "),
        Just("~"),
        Just("/etc"),
        Just(".."),
    ];
    prop_oneof![proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat()), ".{0,80}"]
}

fn any_call() -> impl Strategy<Value = ToolCall> {
    prop_oneof![
        line().prop_map(|line| shell(&line)),
        ".{0,40}".prop_map(|path| write(&format!("/ws/{path}"))),
        ".{0,40}".prop_map(|path| read(&path)),
        ".{0,40}".prop_map(|url| fetch(&url)),
        (".{0,10}", ".{0,10}").prop_map(|(name, value)| call(&name, json!({"x": value}), &[])),
    ]
}

fn policy() -> impl Strategy<Value = Policy> {
    prop_oneof![Just(Policy::ReadOnly), Just(Policy::Ask), Just(Policy::AutoEdit), Just(Policy::Auto)]
}

fn rules() -> impl Strategy<Value = Vec<Rule>> {
    let action = prop_oneof![Just(Action::Allow), Just(Action::Ask), Just(Action::Deny)];
    let tool = prop_oneof![Just("*".to_owned()), Just("shell".to_owned()), Just("write".to_owned()), ".{0,4}"];
    let pattern = proptest::option::of(prop_oneof![Just("*".to_owned()), Just("git *".to_owned()), ".{0,6}"]);
    let rule = (tool, pattern, action).prop_map(|(tool, pattern, action)| Rule {
        tool,
        pattern,
        action,
        even_untrusted: false,
    });
    proptest::collection::vec(rule, 0..5)
}

fn grants() -> impl Strategy<Value = Vec<Grant>> {
    let scope = prop_oneof![
        line().prop_map(|line| Scope::Line { line, cwd: "/ws".into() }),
        Just(Scope::Command { argv: vec!["ls".into()], cwd: "/ws".into() }),
        ".{0,10}".prop_map(|path| Scope::Change { path: path.into() }),
    ];
    let stand = prop_oneof![Just(Stand::Allow), Just(Stand::Deny)];
    proptest::collection::vec(
        (scope, stand).prop_map(|(scope, stand)| Grant { workspace: "/ws".into(), scope, stand }),
        0..3,
    )
}

fn rank(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Allow { .. } => 0,
        Verdict::Ask(_) => 1,
        Verdict::Deny { .. } => 2,
    }
}

proptest! {
    #[test]
    fn a_total_rule_decides_at_least_as_strictly(call in any_call(), policy in policy(), mut rules in rules(), grants in grants()) {
        let before = rank(&decide_permission(policy, &rules, &grants, &call, &context(&call)));
        rules.push(Rule { tool: "*".into(), pattern: None, action: Action::Ask, even_untrusted: false });
        let asked = rank(&decide_permission(policy, &rules, &grants, &call, &context(&call)));
        prop_assert_eq!(asked, before.max(1));
        rules.push(Rule { tool: "*".into(), pattern: None, action: Action::Deny, even_untrusted: false });
        prop_assert_eq!(rank(&decide_permission(policy, &rules, &grants, &call, &context(&call))), 2);
    }

    #[test]
    fn a_stricter_policy_never_allows_more(call in any_call(), rules in rules(), grants in grants()) {
        let ranks = [Policy::Auto, Policy::AutoEdit, Policy::Ask, Policy::ReadOnly].map(|policy| rank(&decide_permission(policy, &rules, &grants, &call, &context(&call))));
        prop_assert!(ranks.is_sorted(), "{:?}", ranks);
    }

    #[test]
    fn no_line_with_a_dangerous_command_runs_unasked(before in line(), after in line()) {
        let text = format!("{before} ; rm -rf x {after}");
        prop_assert_ne!(word(&verdict(Policy::AutoEdit, &shell(&text))), "allow");
    }

    #[test]
    fn what_is_shown_has_no_hidden_character(text in ".{0,200}") {
        prop_assert!(!sanitize::sanitized_line(&text).chars().any(|c| sanitize::is_deceptive_char(c) || c.is_control()));
    }
}
