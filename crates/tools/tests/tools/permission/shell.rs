//! Shell lines: none of the dangerous ones runs unasked, all of the plain ones do.

use gander_domain::Policy;
use gander_tools::permission::plain_script_words;
use serde_json::json;

use crate::permission::{asked, call, shell, verdict, word};

const BYPASS: &str = include_str!("bypass.txt");
const PLAIN: &str = include_str!("plain.txt");

/// Lines that cannot stand in a text file.
const UNPRINTABLE: [&str; 14] = [
    "git status\nrm -rf x",
    "git status\r\nrm -rf x",
    "git status\rrm -rf x",
    "ls\n",
    "ls\t-la",
    "ls\\\nrm",
    "ls \u{202e}x",
    "ls \u{200b}x",
    "ls\u{a0}-la",
    "ls \x1b[2Kx",
    "ls \u{feff}",
    "ls \x07",
    "cat << EOT\nx\nEOT",
    "ls\u{2028}rm",
];

fn unasked(policy: Policy, lines: impl Iterator<Item = &'static str>) -> Vec<&'static str> {
    lines.filter(|line| word(&verdict(policy, &shell(line))) == "allow").collect()
}

#[test]
fn no_dangerous_line_runs_unasked() {
    assert!(BYPASS.lines().count() >= 200);
    for policy in [Policy::Ask, Policy::AutoEdit] {
        assert_eq!(unasked(policy, BYPASS.lines()), [""; 0]);
        assert_eq!(unasked(policy, UNPRINTABLE.into_iter()), [""; 0]);
    }
}

#[test]
fn every_plain_line_runs_unasked() {
    assert!(PLAIN.lines().count() >= 120);
    let asked: Vec<&str> = PLAIN.lines().filter(|line| word(&verdict(Policy::Ask, &shell(line))) != "allow").collect();
    assert_eq!(asked, [""; 0]);
}

/// Whatever is joined to a plain line by whatever means, the whole asks.
#[test]
fn joined_lines_ask() {
    let joints = [
        ";", " ; ", "&&", " && ", "||", " || ", "|", " | ", "&", " & ", "\n", "\r", "|&", " $(", " `", " <(", " > ",
        " >> ", " <<< ",
    ];
    for plain in PLAIN.lines() {
        for joint in joints {
            let line = format!("{plain}{joint}rm -rf x");
            assert_eq!(word(&verdict(Policy::Ask, &shell(&line))), "ask", "{line:?}");
        }
    }
}

#[test]
fn more_than_twenty_commands_ask() {
    let many = |count| vec!["true"; count].join("; ");
    assert_eq!(word(&verdict(Policy::Ask, &shell(&many(20)))), "allow");
    assert_eq!(word(&verdict(Policy::Ask, &shell(&many(21)))), "ask");
}

#[test]
fn nothing_runs_in_read_only_and_everything_in_auto() {
    for line in BYPASS.lines().chain(PLAIN.lines()) {
        assert_eq!(word(&verdict(Policy::ReadOnly, &shell(line))), "deny", "{line}");
        assert_eq!(word(&verdict(Policy::Auto, &shell(line))), "allow", "{line}");
    }
}

#[test]
fn hidden_characters_ask_even_in_auto_and_cannot_be_granted() {
    for line in ["ls \u{202e}x", "ls \u{200b}x", "ls \x1b[2Kx", "ls\u{a0}-la", "a\x1b]52;c;aGk=\x07", "x\ry"] {
        let asked = asked(Policy::Auto, &shell(line));
        assert_eq!((asked.grants, asked.choices.len()), (vec![], 2), "{line:?}");
    }
    assert_eq!(word(&verdict(Policy::Auto, &shell("cat <<X\n\tindented\nX"))), "allow");
}

#[test]
fn a_link_that_leads_out_asks() {
    let outside = call("shell", json!({"command": "cat notes.txt"}), &["/home/me/.ssh/id_rsa"]);
    let secret = call("shell", json!({"command": "cat notes.txt"}), &["/ws/.env"]);
    let inside = call("shell", json!({"command": "cat notes.txt"}), &["/ws/docs/notes.txt"]);
    let words = [outside, secret, inside].map(|call| word(&verdict(Policy::Ask, &call)));
    assert_eq!(words, ["ask", "ask", "allow"]);
}

#[test]
fn another_directory_inside_is_fine() {
    let at = |cwd: &str| word(&verdict(Policy::Ask, &call("shell", json!({"command": "cat x", "cwd": cwd}), &[])));
    assert_eq!([at("src"), at("/lib"), at("/etc"), at("..")], ["allow", "allow", "ask", "ask"]);
}

#[test]
fn what_people_see_hides_nothing() {
    let mut call = shell("ls");
    call.title = format!("ls{}; rm \u{202e}x\n\x1b[31m", " ".repeat(5_000));
    call.arguments = json!({"command": call.title});
    assert_eq!(asked(Policy::Ask, &call).title, "ls⟨5000 spaces⟩; rm ⟨U+202E⟩x␊␛[31m");
}

/// What we take for a word, bash takes for the same word.
#[test]
fn bash_reads_plain_lines_as_we_do() {
    // What is redirected is not seen by this test.
    for line in PLAIN.lines().filter(|line| !line.contains('>')) {
        let commands = plain_script_words(line).unwrap();
        if let [words] = commands.as_slice() {
            let ours: String = words.iter().map(|word| format!("[{word}]")).collect();
            assert_eq!(bash(line), ours, "{line}");
        }
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    #[test]
    fn bash_reads_random_plain_words_as_we_do(line in r#"[ab'" ./:=,@%+^~$\\(){}\[\]<>#!&|;-]{1,24}"#) {
        let line = format!("x {line}");
        if let Some(commands) = plain_script_words(&line) && let [words] = commands.as_slice() {
            let ours: String = words.iter().map(|word| format!("[{word}]")).collect();
            proptest::prop_assert_eq!(bash(&line), ours);
        }
    }
}

/// The words of a simple command as bash sees them.
fn bash(line: &str) -> String {
    let script = format!("set -f; words() {{ printf '[%s]' \"$@\"; }}; words {line}");
    let output = std::process::Command::new("bash").args(["-c", &script]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}
