//! Secrets are hidden in everything a tool says.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use gander_tools::{Environment, Limits, Redactor, ToolEnv};
use serde_json::json;

use crate::builtin::{Bench, ToolEvent};

const KEY: &str = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEAabc\nZZZ\n-----END RSA PRIVATE KEY-----";

/// Each with the piece that must not be seen again.
fn planted() -> Vec<(String, &'static str)> {
    [
        ("sk-abcdefghijklmnopqrstuvwx", "abcdefghij"),
        ("sk-ant-api03-AAAAbbbbCCCCdddd-EEEE_ffff", "AAAAbbbb"),
        ("sk-proj-1234567890abcdefghijklmnop", "1234567890"),
        ("ghp_1234567890abcdefghijklmnopqrstuvwxyz", "1234567890"),
        ("gho_1234567890abcdefghijklmnopqrstuvwxyz", "1234567890"),
        ("github_pat_11ABCDEFG0123456789_abcdefghijklmnop", "11ABCDEFG"),
        ("glpat-abcdefghij1234567890", "abcdefghij"),
        ("AKIAIOSFODNN7EXAMPLE", "IOSFODNN7"),
        ("ASIAIOSFODNN7EXAMPLE", "IOSFODNN7"),
        ("xoxb-123456789012-abcdefghijkl", "123456789012"),
        ("xoxp-123456789012-abcdefghijkl", "123456789012"),
        ("xapp-1-A0123456789-abcdef", "A0123456789"),
        ("AIzaSyA1234567890abcdefghijklmnopqrstuv", "SyA1234567890"),
        ("npm_abcdefghijklmnopqrstuvwxyz0123456789", "abcdefghij"),
        ("hf_abcdefghijklmnopqrstuvwx", "abcdefghij"),
        ("sk_live_abcdefghijklmnop1234", "abcdefghij"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlLWhlcmU", "c2lnbmF0dXJl"),
        ("Authorization: Bearer abcdefghijklmnop", "abcdefghij"),
        ("authorization: Basic dXNlcjpwYXNzd29yZA==", "dXNlcjpwYXNz"),
        ("\"Authorization\": \"token 0123456789abcdef\"", "0123456789"),
        ("curl -H 'Bearer abc.def-ghi_jkl~mno'", "abc.def"),
        ("https://me:hunter2secret@example.org/x", "hunter2"),
        ("origin\thttps://0a1b2c3d4e5f6a7b8c9d@example.org/x (fetch)", "2c3d4e5f"),
        (KEY, "MIIEpAIB"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk", "b3BlbnNz"),
        ("MIIEpAIBAAKCAQEAabcdef\nMIIEpAIBAAKCAQEAabc\n-----END PRIVATE KEY-----", "MIIEpAIB"),
        ("{\"key\": \"-----BEGIN PRIVATE KEY-----\\nMIIEpAIBAAKC\\n-----END PRIVATE KEY-----\\n\"}", "MIIEpAIB"),
        ("1\t-----BEGIN EC PRIVATE KEY-----\n2\tProc-Type: 4,ENCRYPTED\n3\tMIIEpAIBAAKC\n4\t-----END EC PRIVATE KEY-----", "MIIEpAIB"),
        ("correct horse battery", "horse"),
        ("the token is tok/en+with=odd&chars!", "en+with"),
        ("tok%2Fen%2Bwith%3Dodd%26chars%21", "2Bwith"),
        ("dG9rL2VuK3dpdGg9b2RkJmNoYXJzIQ==", "VuK3dpdGg9"),
        ("eHRvay9lbit3aXRoPW9kZCZjaGFycyE=", "9lbit3aXRoPW9kZ"),
        ("eHh0b2svZW4rd2l0aD1vZGQmY2hhcnMh", "svZW4rd2l0aD1v"),
    ]
    .map(|(text, seen)| (text.to_owned(), seen))
    .to_vec()
}

fn redactor() -> Redactor {
    Redactor::new(["correct horse battery", "tok/en+with=odd&chars!", "short"])
}

#[test]
fn planted_secrets_are_hidden_wherever_they_stand() {
    let redactor = redactor();
    assert!(planted().len() >= 20);
    for (secret, seen) in planted() {
        for text in [
            secret.clone(),
            format!("before {secret} after"),
            format!("x=\"{secret}\"\ny"),
            format!("{secret}\n{secret}"),
        ] {
            let hidden = redactor.redact_text(&text);
            assert!(!hidden.contains(seen) && hidden.contains("[redacted]"), "{text:?} became {hidden:?}");
            assert_eq!(redactor.redact_text(&hidden), hidden, "hiding twice changes nothing more");
        }
    }
}

#[test]
fn ordinary_text_stays() {
    let redactor = redactor();
    let texts = [
        "a short story about sk-learn and risk-averse people",
        "task-1234567890123456789012",
        "let authorization = Authorization::new();",
        "headers: Authorization: <token>",
        "https://example.org:8080/a@b",
        "git@github.com:me/project.git",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "bearer of bad news",
        "MIIEpAIBAAKCAQEAabcdef MIIEpAIBAAKCAQEAabc",
        "it looks for -----BEGIN PUBLIC KEY----- and goes on",
        "0123456789abcdef0123456789abcdef01234567",
    ];
    assert_eq!(texts.map(|text| redactor.redact_text(text)), texts.map(str::to_owned));
}

/// Source code that speaks of keys is still to be read.
#[test]
fn a_mention_of_a_key_hides_only_itself() {
    let code = "if text.contains(\"-----BEGIN RSA PRIVATE KEY-----\") {\n    refuse();\n}";
    assert_eq!(redactor().redact_text(code), "if text.contains(\"[redacted]\") {\n    refuse();\n}");
}

/// A token may be longer than any regular expression, and there may be many.
#[test]
fn long_and_many_values_are_hidden_in_every_form() {
    let long: Vec<String> = (0..4).map(|place| random_text(place, 40_000)).collect();
    let many: Vec<String> = (4..2_000).map(|place| random_text(place, 24)).collect();
    let redactor = Redactor::new(long.iter().chain(&many));
    for value in long.iter().chain(many.iter().step_by(97)) {
        let in_url = value.replace('/', "%2F").replace('+', "%2B");
        for form in [value.clone(), in_url, STANDARD.encode(value), URL_SAFE.encode(format!("user:{value}"))] {
            let hidden = redactor.redact_text(&format!("before {form} after"));
            assert!(hidden.starts_with("before ") && hidden.ends_with(" after"), "what stands around stays");
            assert!(hidden.contains("[redacted]") && hidden.len() < 64, "{} bytes are left", hidden.len());
        }
    }
    assert_eq!(redactor.with_more_secrets(["one value more"]).redact_text("one value more"), "[redacted]");
}

/// What looks like a token and is one of nobody.
fn random_text(seed: usize, length: usize) -> String {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut state = seed as u64 + 1;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(alphabet[(state >> 58) as usize])
    };
    (0..length).map(next).collect()
}

#[tokio::test]
async fn no_tool_lets_a_secret_out() {
    let surroundings = ToolEnv { redactor: redactor(), environment: Environment::default(), ..ToolEnv::default() };
    let mut bench = Bench::with(Limits::default(), surroundings);
    let all: Vec<String> = planted().into_iter().map(|(secret, _)| secret).collect();
    bench.put("all.txt", all.join("\n"));
    let results = [
        bench.call("read", json!({"path": "all.txt"})).await,
        bench.call("grep", json!({"pattern": "[A-Z].", "path": "all.txt"})).await,
        bench.call("shell", json!({"command": "cat all.txt; cat all.txt >&2; exit 3"})).await,
        bench.call("edit", json!({"path": "all.txt", "old": "horse", "new": "cow"})).await,
        bench.call("write", json!({"path": "new.txt", "content": all.join("\n")})).await,
        bench.call("read", json!({"path": "AKIAIOSFODNN7EXAMPLE"})).await,
        bench.call("AKIAIOSFODNN7EXAMPLE", json!({})).await,
    ];
    bench.signals.close();
    let mut shown = format!("{results:?}");
    while let Some(signal) = bench.signals.recv().await {
        let ToolEvent::Shown(content) = signal else { panic!("no plan was made") };
        shown.push_str(&format!("{content:?}"));
    }
    for (secret, seen) in planted() {
        assert!(!shown.contains(seen), "{secret}");
    }
}
