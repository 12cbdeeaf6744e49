//! Bad input that reaches the agent's hands: every row is claimed by tests that exist, wherever they are.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The classes of rows that are about commands, files, addresses, servers, models, secrets and imports.
pub const CLASSES: [&str; 8] = ["ssrf", "path", "shell", "tool", "mcp", "llm", "secret", "import"];

/// Which tests show a row, by their names.
const SHOWN: [(&str, &[&str]); 13] = [
    (
        "C06",
        &[
            "nothing_private_is_fetched",
            "a_name_is_looked_up_once_and_that_address_is_dialled",
            "redirects_are_followed_and_checked_again",
        ],
    ),
    ("C08", &["bad_names_and_too_much_are_refused"]),
    ("C09", &["no_hostile_name_is_read", "a_huge_sparse_file_is_refused_unread"]),
    ("C11", &["no_dangerous_line_runs_unasked", "joined_lines_ask", "more_than_twenty_commands_ask"]),
    ("C12", &["no_dangerous_line_runs_unasked"]),
    ("C14", &["what_people_see_hides_nothing", "hidden_characters_ask_even_in_auto_and_cannot_be_granted"]),
    ("C15", &["bad_calls_are_told_to_the_model_and_never_run", "five_wrong_calls_in_a_row_end_the_run"]),
    ("C17", &["cancel_kills_the_whole_family", "what_is_left_in_the_background_ends_with_the_command"]),
    ("C18", &["one_that_fails_is_named_and_the_others_work", "one_that_does_not_greet_is_given_up_in_time"]),
    ("C20", &["c20_a_client_on_the_network_starts_no_program", "extensions_come_and_go"]),
    (
        "C21",
        &[
            "broken_streams_are_clear_errors",
            "silence_has_an_end",
            "an_endless_answer_has_an_end",
            "a_web_page_and_a_closed_door_are_named",
            "a_failure_in_the_middle_closes_the_half_message_and_begins_another",
        ],
    ),
    ("C23", &["planted_secrets_are_hidden_wherever_they_stand", "no_tool_lets_a_secret_out"]),
    ("C24", &["c24_nothing_is_half_imported", "c24_what_is_too_large_is_refused_whole"]),
];

#[test]
fn every_row_about_the_agents_hands_is_claimed_by_tests_that_exist() {
    let rows = crate::bad_input::ROWS.lines().map(|row| row.split('\t').collect::<Vec<_>>());
    let rows: BTreeSet<&str> = rows.filter(|row| CLASSES.contains(&row[1])).map(|row| row[0]).collect();
    let claims = BTreeMap::from(SHOWN);
    assert_eq!(claims.keys().copied().collect::<BTreeSet<_>>(), rows);
    let mut sources = String::new();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    ["agent/tests", "cli/tests", "mcp/tests", "models/tests", "tools/tests"]
        .iter()
        .for_each(|place| read(&crates.join(place), &mut sources));
    for (row, tests) in claims {
        let missing: Vec<_> = tests.iter().filter(|test| !sources.contains(&format!("fn {test}("))).collect();
        assert!(missing.is_empty(), "{row}: no such test: {missing:?}");
    }
}

fn read(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.path() {
            path if path.is_dir() => read(&path, text),
            path if path.extension().is_some_and(|ending| ending == "rs") => {
                text.push_str(&std::fs::read_to_string(path).unwrap_or_default());
            }
            _ => {}
        }
    }
}
