//! Policies and rules, tool by tool.

use gander_domain::Policy::{self, Ask, Auto, AutoEdit, ReadOnly};
use gander_tools::permission::{Action, Rule};
use serde_json::json;

use crate::permission::{call, fetch, read, rule, ruled, shell, verdict, word, write};

#[test]
fn each_policy_for_each_tool() {
    let row = |call| [ReadOnly, Ask, AutoEdit, Auto].map(|policy: Policy| word(&verdict(policy, &call)));
    assert_eq!(row(read("/ws/a")), ["allow", "allow", "allow", "allow"]);
    assert_eq!(row(call("list", json!({}), &["/ws"])), ["allow", "allow", "allow", "allow"]);
    assert_eq!(row(call("grep", json!({"pattern": "x"}), &["/ws"])), ["allow", "allow", "allow", "allow"]);
    assert_eq!(row(call("plan", json!({"items": []}), &[])), ["allow", "allow", "allow", "allow"]);
    assert_eq!(row(write("/ws/a")), ["deny", "ask", "allow", "allow"]);
    assert_eq!(row(call("edit", json!({}), &["/ws/a"])), ["deny", "ask", "allow", "allow"]);
    assert_eq!(row(shell("ls")), ["deny", "allow", "allow", "allow"]);
    assert_eq!(row(shell("make")), ["deny", "ask", "ask", "allow"]);
    assert_eq!(row(fetch("https://example.org")), ["deny", "ask", "ask", "allow"]);
    assert_eq!(row(call("mcp__thing", json!({}), &[])), ["deny", "ask", "ask", "allow"]);
}

#[test]
fn a_stranger_with_a_familiar_name_is_still_checked() {
    let row = |call| [ReadOnly, Ask, AutoEdit].map(|policy: Policy| word(&verdict(policy, &call)));
    assert_eq!(row(call("read", json!({"path": "/etc/passwd"}), &[])), ["deny", "ask", "ask"]);
    assert_eq!(row(call("write", json!({}), &[])), ["deny", "ask", "ask"]);
    assert_eq!(row(call("shell", json!({"command": 1}), &[])), ["deny", "ask", "ask"]);
    assert_eq!(row(call("fetch", json!({"url": "::"}), &[])), ["deny", "ask", "ask"]);
    assert_eq!(row(call("Read", json!({}), &["/ws/a"])), ["deny", "ask", "ask"]);
}

#[test]
fn deny_beats_ask_beats_allow() {
    let allow = r#"{ tool = "shell", pattern = "make *", action = "allow" }"#;
    let ask = r#"{ tool = "shell", pattern = "make deploy*", action = "ask" }"#;
    let deny = r#"{ tool = "shell", pattern = "make deploy prod", action = "deny" }"#;
    let lines = [
        "make test",
        "make deploy x",
        "make deploy prod",
        "make test && make deploy prod",
        "echo $(make deploy prod)",
        "make test; make deploy y",
    ];
    for rules in [[allow, ask, deny], [deny, ask, allow]] {
        let words = lines.map(|line| ruled(Ask, &rules, &shell(line)));
        assert_eq!(words, ["allow", "ask", "deny", "deny", "deny", "ask"]);
    }
    assert_eq!(ruled(Auto, &[ask], &shell("make deploy")), "ask");
    assert_eq!(ruled(Auto, &[deny], &shell("make deploy prod")), "deny");
    assert_eq!(ruled(Ask, &[r#"{ tool = "shell", pattern = "ls*", action = "ask" }"#], &shell("ls")), "ask");
    assert_eq!(ruled(Ask, &[r#"{ tool = "*", action = "deny" }"#], &read("/ws/a")), "deny");
}

#[test]
fn an_allowed_command_carries_nothing_along() {
    let rules = [r#"{ tool = "shell", pattern = "cargo test*", action = "allow" }"#];
    let allowed = ["cargo test", "cargo test --lib", "cargo test && ls", "cargo test 'a b'", "cargo test | tail -5"];
    let others = [
        "cargo test; rm x",
        "cargo test > x",
        "cargo test $(rm x)",
        "cargo test `rm x`",
        "cargo test & rm x",
        "cargo test\nrm x",
        "X=1 cargo test",
        "cat x | cargo test",
        "cargo build",
        "'cargo test' x",
        // What searches or asks git has the folder to itself: it is kept from writing and from secrets.
        "cargo test && git status",
        "cargo test; grep -r x .",
    ];
    assert_eq!(allowed.map(|line| ruled(Ask, &rules, &shell(line))), ["allow"; 5]);
    assert_eq!(others.map(|line| ruled(Ask, &rules, &shell(line))), ["ask"; 12]);
    assert_eq!(ruled(ReadOnly, &rules, &shell("cargo test")), "deny");
}

#[test]
fn a_rule_for_all_of_the_shell_allows_all_but_the_hidden() {
    let rules = [r#"{ tool = "shell", action = "allow" }"#];
    assert_eq!(ruled(Ask, &rules, &shell("rm x > y; (z)")), "allow");
    assert_eq!(ruled(Ask, &rules, &shell("rm \u{202e}x")), "ask");
}

#[test]
fn rules_for_files_and_hosts() {
    let docs = [r#"{ tool = "write", pattern = "docs/*", action = "allow" }"#];
    let words = ["/ws/docs/a.md", "/ws/docs/b/c.md", "/ws/src/a.rs", "/ws/docs/.git/config"]
        .map(|path| ruled(Ask, &docs, &write(path)));
    assert_eq!(words, ["allow", "allow", "ask", "ask"]);
    let exact = [r#"{ tool = "write", pattern = "gander.toml", action = "allow" }"#];
    assert_eq!(ruled(Ask, &exact, &write("/ws/gander.toml")), "allow");
    let env = [r#"{ tool = "*", pattern = "*.env*", action = "deny" }"#];
    assert_eq!(ruled(Auto, &env, &read("/ws/.env")), "deny");
    let hosts = [
        r#"{ tool = "fetch", pattern = "docs.rs", action = "allow" }"#,
        r#"{ tool = "fetch", pattern = "https://x.org/a/*", action = "allow" }"#,
    ];
    let words = [
        "https://docs.rs/x",
        "https://evil.org/?docs.rs",
        "https://x.org/a/b",
        "https://x.org/b",
        "https://docs.rs@evil.org/",
    ]
    .map(|url| ruled(Ask, &hosts, &fetch(url)));
    assert_eq!(words, ["allow", "ask", "allow", "ask", "ask"]);
}

#[test]
fn rules_read_from_config_and_refuse_what_they_do_not_know() {
    let read = rule(r#"{ tool = "shell", pattern = "cargo test*", action = "allow" }"#);
    assert_eq!(
        read,
        Rule {
            tool: "shell".into(),
            pattern: Some("cargo test*".into()),
            action: Action::Allow,
            even_untrusted: false
        }
    );
    assert!(serde_json::from_value::<Rule>(json!({"tool": "shell", "patern": "x", "action": "allow"})).is_err());
    assert!(serde_json::from_value::<Rule>(json!({"tool": "shell", "action": "permit"})).is_err());
}
