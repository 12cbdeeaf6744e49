//! Who may run what unasked: the corpora of shell lines, grants, rules, protected files and the order of verdicts.
#![allow(clippy::unwrap_used)]

mod grants;
mod outward;
mod paths;
mod policies;
mod property;
mod shell;

use std::path::PathBuf;
use std::sync::LazyLock;

use gander_domain::{Location, Policy, Provenance, ToolCall, ToolCallId, ToolKind};
use gander_tools::permission::{
    CallContext, Grant, Outlet, PermissionPrompt, Rule, Verdict, WorkspaceFolders, decide_permission,
};
use gander_tools::{Limits, ToolEffect, Toolbox};
use serde_json::{Value, json};
use uuid::Uuid;

const ROOT: &str = "/ws";

/// Around a call of a built-in tool; any other is unknown.
fn context(call: &ToolCall) -> CallContext {
    static TOOLBOX: LazyLock<Toolbox> = LazyLock::new(|| Toolbox::builtin(Limits::default()));
    let effect = TOOLBOX.find_tool(&call.name).map_or(ToolEffect::Unknown, |tool| tool.effect());
    let folders = WorkspaceFolders { root: PathBuf::from(ROOT), extra: vec![PathBuf::from("/lib")] };
    CallContext {
        effect,
        folders,
        sandboxed: true,
        isolated: true,
        objection: None,
        outlet: Outlet::None,
        provenance: Provenance::default(),
    }
}

fn call(name: &str, arguments: Value, paths: &[&str]) -> ToolCall {
    let locations = paths.iter().map(|path| Location::file(*path));
    ToolCall {
        id: ToolCallId::new(Uuid::from_u128(7)),
        name: name.to_owned(),
        title: format!("{name} {arguments}"),
        kind: ToolKind::Other,
        arguments,
        locations: locations.collect(),
        idempotent: false,
    }
}

fn shell(line: &str) -> ToolCall {
    call("shell", json!({"command": line}), &[])
}

fn write(path: &str) -> ToolCall {
    call("write", json!({"path": path, "content": "x"}), &[path])
}

fn read(path: &str) -> ToolCall {
    call("read", json!({"path": path}), &[path])
}

fn fetch(url: &str) -> ToolCall {
    call("fetch", json!({"url": url}), &[])
}

fn rule(text: &str) -> Rule {
    #[derive(serde::Deserialize)]
    struct Config {
        rule: Rule,
    }
    toml::from_str::<Config>(&format!("rule = {text}")).unwrap().rule
}

fn verdict(policy: Policy, call: &ToolCall) -> Verdict {
    decide_permission(policy, &[], &[], call, &context(call))
}

fn ruled(policy: Policy, rules: &[&str], call: &ToolCall) -> &'static str {
    let rules: Vec<Rule> = rules.iter().map(|text| rule(text)).collect();
    word(&decide_permission(policy, &rules, &[], call, &context(call)))
}

fn granted(grants: &[Grant], call: &ToolCall) -> &'static str {
    word(&decide_permission(Policy::Ask, &[], grants, call, &context(call)))
}

fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Allow { .. } => "allow",
        Verdict::Ask(_) => "ask",
        Verdict::Deny { .. } => "deny",
    }
}

fn asked(policy: Policy, call: &ToolCall) -> PermissionPrompt {
    match verdict(policy, call) {
        Verdict::Ask(asked) => asked,
        other @ (Verdict::Allow { .. } | Verdict::Deny { .. }) => panic!("not asked: {other:?}"),
    }
}

fn always(call: &ToolCall) -> Grant {
    asked(Policy::Ask, call).grants.swap_remove(0).1
}
