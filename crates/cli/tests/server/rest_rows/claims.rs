//! Every row of these classes is shown at both families by a test that exists, or it says why it has none.

use std::collections::BTreeSet;
use std::path::Path;

const ROWS: &str = include_str!("../../../../../interop/data/bad-inputs.tsv");

const CLASSES: [&str; 6] = ["json", "http", "run", "content", "path", "sse-out"];

/// Columns of the table.
const GOOSE: usize = 7;
const ADK: usize = 8;

/// Which test shows a row at both families; rows that are about neither are not here.
const SHOWN: [(&str, &str); 51] = [
    ("J01", "what_is_no_json_is_refused"),
    ("J02", "what_is_no_json_is_refused"),
    ("J04", "white_space_is_white_space_and_another_charset_is_not_guessed"),
    ("J05", "what_is_no_json_is_refused"),
    ("J07", "what_is_no_json_is_refused"),
    ("J08", "json_that_nobody_means_is_refused"),
    ("J10", "what_is_no_json_is_refused"),
    ("J11", "white_space_is_white_space_and_another_charset_is_not_guessed"),
    ("J13", "json_that_nobody_means_is_refused"),
    ("J14", "j14_j17_a_body_without_end_is_cut_off_and_costs_no_memory"),
    ("J16", "json_that_nobody_means_is_refused"),
    ("J17", "j14_j17_a_body_without_end_is_cut_off_and_costs_no_memory"),
    ("S01", "s01_s02_there_is_no_such_agent"),
    ("S02", "s01_s02_there_is_no_such_agent"),
    ("S04", "s04_a_prompt_without_words"),
    ("S10", "s10_there_is_no_such_session"),
    ("S11", "s11_s25_an_answer_to_nothing_is_none_and_one_counts_once"),
    ("S13", "s13_of_two_answers_at_once_one_counts"),
    ("S14", "s14_an_answer_of_another_kind_changes_nothing"),
    ("S16", "s16_a_cancelled_run_ends_once"),
    ("S17", "s17_what_was_asked_in_a_cancelled_run_takes_no_answer"),
    ("S19", "s19_s20_a_place_is_known_or_refused"),
    ("S20", "s19_s20_a_place_is_known_or_refused"),
    ("S22", "s22_a_path_has_its_methods_and_says_which"),
    ("S23", "s23_a_client_that_hangs_up_stops_nothing"),
    ("S25", "s11_s25_an_answer_to_nothing_is_none_and_one_counts_once"),
    ("S28", "s28_metadata_is_data_and_has_an_end"),
    ("S29", "s29_times_are_of_this_age"),
    ("H02", "h02_h03_h17_only_the_whole_token_in_its_header_opens"),
    ("H03", "h02_h03_h17_only_the_whole_token_in_its_header_opens"),
    ("H05", "h05_h06_pages_of_strangers_are_refused"),
    ("H06", "h05_h06_pages_of_strangers_are_refused"),
    ("H08", "h08_a_stream_is_no_picture"),
    ("H09", "h09_h12_who_sends_too_slowly_is_sent_away"),
    ("H12", "h09_h12_who_sends_too_slowly_is_sent_away"),
    ("H14", "h14_h15_addresses_and_bodies_have_an_end"),
    ("H15", "h14_h15_addresses_and_bodies_have_an_end"),
    ("H17", "h02_h03_h17_only_the_whole_token_in_its_header_opens"),
    ("H21", "h21_a_line_break_stays_in_no_header"),
    ("H23", "h23_whose_address_it_is_says_the_socket_alone"),
    ("H24", "h24_what_a_client_may_do_says_its_token_alone"),
    ("H26", "h26_streams_of_one_token_have_an_end"),
    ("H29", "h29_pipelined_requests_are_answered_in_order"),
    ("C02", "c02_c03_a_picture_is_one"),
    ("C03", "c02_c03_a_picture_is_one"),
    ("C05", "c05_a_link_is_never_followed"),
    ("C08", "c08_a_name_makes_no_file"),
    ("C09", "c09_no_file_of_the_server_is_read"),
    ("E01", "e01_e02_whatever_a_model_says_is_data"),
    ("E02", "e01_e02_whatever_a_model_says_is_data"),
    ("E04", "e04_a_silent_stream_gives_signs_of_life"),
];

/// Rows that no family can see: they are decided before there is a path. The tests of the network show them.
const BELOW: [(&str, &str); 4] = [
    ("H11", "a_header_that_never_ends_is_cut_off"),
    ("H20", "what_is_no_http_is_closed"),
    ("H27", "set_tcp_user_timeout"),
    ("H30", "a_draining_server_takes_no_new_work_but_still_shows"),
];

#[test]
fn every_row_is_shown_at_both_families() {
    let rows = ROWS.lines().map(|row| row.split('\t').collect::<Vec<_>>());
    let spoken = rows.filter(|row| CLASSES.contains(&row[1]) && (row[GOOSE] != "-" || row[ADK] != "-"));
    let rows: BTreeSet<&str> = spoken.map(|row| row[0]).collect();
    let claims = SHOWN.iter().chain(&BELOW);
    assert_eq!(claims.clone().map(|(row, _)| *row).collect::<BTreeSet<_>>(), rows);
    let (ours, below) = (read("tests/server/rest_rows"), read("tests/server/http") + &read("../http/src/serve.rs"));
    for (row, test) in claims {
        let known = ours.contains(&format!("fn {test}(")) || below.contains(&format!("{test}("));
        assert!(known, "{row}: no such test: {test}");
    }
}

/// The text of a file, or of all files of a folder.
fn read(place: &str) -> String {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join(place);
    let files = std::fs::read_dir(&place).into_iter().flatten().flatten().map(|file| file.path());
    files.chain([place.clone()]).filter_map(|path| std::fs::read_to_string(path).ok()).collect()
}
