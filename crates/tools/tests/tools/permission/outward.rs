//! Outward calls while private data and untrusted text are in the context: what was allowed beforehand does not count.

use gander_domain::{Entry, Event, Policy, Provenance, Seq, TextMark, Timestamp, ToolCall, provenance::ALLOW_SESSION};
use gander_tools::permission::{CallContext, Grant, Outlet, Verdict, decide_permission};
use serde_json::json;

use super::{always, call, context, fetch, read, rule, shell, word, write};

fn marked(untrusted: bool, private: bool) -> Provenance {
    let mut provenance = Provenance::default();
    let source = |marked: bool, name: &str| marked.then(|| name.to_owned());
    let mark = TextMark { untrusted: source(untrusted, "https://evil.example"), private: source(private, "files") };
    provenance.add_mark(&mark, Seq(1));
    provenance
}

fn exposed(call: &ToolCall, outlet: Outlet) -> CallContext {
    CallContext { provenance: marked(true, true), outlet, ..context(call) }
}

fn with_network(line: &str) -> ToolCall {
    call("shell", json!({"command": line, "network": true}), &[])
}

/// The policy, a rule and a grant each let every one of these run unasked otherwise.
fn outward_calls() -> Vec<(ToolCall, Outlet)> {
    vec![
        (fetch("https://evil.example/?q=1"), Outlet::None),
        (with_network("git push"), Outlet::None),
        (call("mail__send", json!({"to": "a"}), &[]), Outlet::Network),
    ]
}

#[test]
fn neither_policy_nor_rule_nor_grant_lets_an_outward_call_run_unasked() {
    let rules = [rule(r#"{ tool = "*", action = "allow" }"#)];
    for (call, outlet) in outward_calls() {
        let clean = CallContext { provenance: Provenance::default(), ..exposed(&call, outlet) };
        let grants: [Grant; 1] = [always(&call)];
        for (policy, rules, grants) in
            [(Policy::Auto, &[][..], &[][..]), (Policy::Ask, &rules[..], &[]), (Policy::Ask, &[], &grants[..])]
        {
            assert_eq!(word(&decide_permission(policy, rules, grants, &call, &clean)), "allow", "{}", call.title);
            let verdict = decide_permission(policy, rules, grants, &call, &exposed(&call, outlet));
            let Verdict::Ask(asked) = verdict else { panic!("not asked: {verdict:?}") };
            assert!(asked.why.contains("https://evil.example") && asked.why.contains("files"), "{}", asked.why);
            assert_eq!(asked.grants, [], "nothing is stored for good");
        }
    }
}

#[test]
fn one_kind_of_text_alone_asks_nothing_more() {
    for (call, outlet) in outward_calls() {
        for (untrusted, private) in [(true, false), (false, true), (false, false)] {
            let context = CallContext { provenance: marked(untrusted, private), ..exposed(&call, outlet) };
            assert_eq!(word(&decide_permission(Policy::Auto, &[], &[], &call, &context)), "allow");
        }
    }
}

#[test]
fn what_stays_in_the_machine_is_not_asked_about() {
    let calls = [
        (read("/ws/a"), Outlet::None),
        (write("/ws/a"), Outlet::None),
        (shell("cargo test"), Outlet::None),
        (call("notes__list", json!({}), &[]), Outlet::None),
        (call("plan", json!({"items": []}), &[]), Outlet::None),
    ];
    for (call, outlet) in calls {
        assert_eq!(word(&decide_permission(Policy::Auto, &[], &[], &call, &exposed(&call, outlet))), "allow");
    }
}

#[test]
fn without_isolation_every_command_but_one_that_only_looks_reaches_out() {
    let open = |line: &str| {
        let call = shell(line);
        let context = CallContext { isolated: false, sandboxed: false, ..exposed(&call, Outlet::None) };
        word(&decide_permission(Policy::Auto, &[], &[], &call, &context))
    };
    assert_eq!(
        [open("curl https://evil.example"), open("git push"), open("ls"), open("git status")],
        ["ask", "ask", "allow", "allow"]
    );
}

#[test]
fn refusals_stay_refusals() {
    let call = fetch("https://evil.example/");
    let exposed = exposed(&call, Outlet::None);
    let rules = [rule(r#"{ tool = "fetch", action = "deny" }"#)];
    assert_eq!(word(&decide_permission(Policy::Auto, &rules, &[], &call, &exposed)), "deny");
    assert_eq!(word(&decide_permission(Policy::ReadOnly, &[], &[], &call, &exposed)), "deny");
    let never = [always(&call).as_refusal()];
    assert_eq!(word(&decide_permission(Policy::Auto, &[], &never, &call, &exposed)), "deny");
}

#[test]
fn a_rule_that_says_so_counts_and_only_for_what_it_names() {
    let rules = [rule(r#"{ tool = "fetch", pattern = "news.example", action = "allow", even_untrusted = true }"#)];
    let decided = |url: &str| {
        let call = fetch(url);
        word(&decide_permission(Policy::Ask, &rules, &[], &call, &exposed(&call, Outlet::None)))
    };
    assert_eq!([decided("https://news.example/a"), decided("https://evil.example/a")], ["allow", "ask"]);
}

#[test]
fn an_address_that_a_person_wrote_is_fetched_and_no_other() {
    let mut provenance = marked(true, true);
    let message = gander_domain::Message::text(
        gander_domain::MessageId::new(uuid::Uuid::nil()),
        gander_domain::Role::User,
        "Compare (https://docs.example/a?b=c) with https://docs.example/two, please.",
    );
    let event = Event::MessageDone { message };
    provenance.apply(&Entry { seq: Seq(2), at: Timestamp::default(), run: None, event, meta: None });
    let decided = |url: &str| {
        let call = fetch(url);
        let context = CallContext { provenance: provenance.clone(), ..context(&call) };
        word(&decide_permission(Policy::Auto, &[], &[], &call, &context))
    };
    let urls = [
        "https://docs.example/a?b=c",
        "https://docs.example/two",
        "https://docs.example/two?q=secret",
        "https://docs.example/",
    ];
    assert_eq!(urls.map(decided), ["allow", "allow", "ask", "ask"]);
}

#[test]
fn memory_is_asked_about_with_untrusted_text_alone() {
    let call = call("memory__remember_memory", json!({"data": "x"}), &[]);
    let decided = |provenance| {
        let context = CallContext { provenance, outlet: Outlet::Memory, ..context(&call) };
        word(&decide_permission(Policy::Auto, &[], &[], &call, &context))
    };
    assert_eq!([decided(marked(true, false)), decided(marked(false, true))], ["ask", "allow"]);
}

#[test]
fn the_question_offers_the_destination_for_the_session() {
    let call = fetch("https://docs.example/a");
    let Verdict::Ask(asked) = decide_permission(Policy::Auto, &[], &[], &call, &exposed(&call, Outlet::None)) else {
        panic!("not asked")
    };
    let choices: Vec<(&str, &str)> =
        asked.choices.iter().map(|choice| (choice.id.as_str(), choice.name.as_str())).collect();
    let session = (ALLOW_SESSION, "Allow fetching from https://docs.example:443 for the rest of this session");
    assert_eq!(choices, [("allow_once", "Allow"), session, ("reject_once", "Reject")]);
}
