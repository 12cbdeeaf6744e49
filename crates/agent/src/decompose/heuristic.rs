//! Taking a request apart by its words: a pure function, so that the same request always comes apart the same way.

use std::collections::BTreeSet;

use gander_domain::Routing;

use super::clauses::{self, Clauses};
use super::verbs::{self, Order};
use super::{Decomposition, MAX_PROMPT_BYTES, decomposed_text_mode};
use crate::delegate::{MAX_SUBTASKS, SubTask};
use crate::modes::ModeSet;

/// Less sure than this, and it stays whole.
const MIN_CONFIDENCE: u8 = 60;

/// Words of a sub-task's name.
const MAX_NAME_WORDS: usize = 6;

/// Prose longer than this tells a story: its verbs are not wishes.
const MAX_PROSE_CHARS: usize = 1_500;

/// One part of a request.
struct RequestPart {
    text: String,
    order: Order,
    mode: Option<String>,
}

/// What a request consists of, as its words say. The reasons are for people.
pub fn decompose_by_words(modes: &ModeSet, prompt: &str) -> Decomposition {
    let whole = |why: &str| Decomposition::undivided(Routing::Rules, why);
    if prompt.len() > MAX_PROMPT_BYTES {
        return whole("it is too long to be told apart by its words");
    }
    let list = clauses::list_item_clauses(prompt);
    let is_list = list.is_some();
    if list.is_none() && (prompt.len() > MAX_PROSE_CHARS || prompt.contains("```")) {
        return whole("it holds no list of tasks");
    }
    let Clauses { wishes, counted, context } = list.unwrap_or_else(|| clauses::prose_clauses(prompt));
    // Whoever counts says in which order, unless they say otherwise.
    let order = if counted && !verbs::verbs_want_parallel(prompt) { Order::Previous } else { Order::Free };
    let Some(parts) = find_requests_by_words(modes, &wishes, order) else {
        return whole("not every point of its list is a task");
    };
    if parts.len() < 2 {
        return whole("it is one task");
    }
    if parts.len() > MAX_SUBTASKS {
        return whole(&format!("it has more parts than {MAX_SUBTASKS}: one agent takes them in turn"));
    }
    if parts.iter().filter(|part| part.order == Order::Free).count() < 2 {
        return whole("its steps build on each other");
    }
    let confidence = heuristic_split_confidence(is_list, &parts, prompt);
    if confidence < MIN_CONFIDENCE {
        return whole("its parts belong closely together");
    }
    let reasons = heuristic_split_reasons(is_list, &parts, prompt);
    Decomposition { tasks: heuristic_subtasks(&parts, &context), confidence, reasons, by: Routing::Rules }
}

/// Each wish with what it waits for, `order` if it does not say; none if one of them is no wish.
fn find_requests_by_words(modes: &ModeSet, wishes: &[String], order: Order) -> Option<Vec<RequestPart>> {
    let part = |(place, text): (usize, &String)| {
        // Nothing stands before the first.
        let order =
            verbs::verb_request_order(text).map(|said| if place == 0 { Order::Free } else { said.or(order) })?;
        (verbs::lowercase_verb_words(text).len() > 1).then(|| RequestPart {
            text: text.clone(),
            order,
            mode: decomposed_text_mode(modes, text),
        })
    };
    wishes.iter().enumerate().map(part).collect()
}

/// Of a hundred. A list is written to be taken apart, a sentence only if its parts are many or of different crafts.
fn heuristic_split_confidence(is_list: bool, parts: &[RequestPart], prompt: &str) -> u8 {
    let crafts: BTreeSet<&str> = parts.iter().filter_map(|part| part.mode.as_deref()).collect();
    let many = parts.iter().filter(|part| part.order == Order::Free).count() > 2;
    let base = match (is_list, crafts.len() > 1, many) {
        (true, ..) => 80,
        (false, true, _) => 70,
        (false, false, true) => 60,
        (false, false, false) => 40,
    };
    if verbs::verbs_want_parallel(prompt) { base + 20 } else { base }
}

fn heuristic_split_reasons(is_list: bool, parts: &[RequestPart], prompt: &str) -> Vec<String> {
    let from = if is_list { "its list has" } else { "its sentences hold" };
    let first = format!("it is several requests in one: {from} {} tasks", parts.len());
    let beside = verbs::verbs_want_parallel(prompt).then(|| "it asks for them at the same time".to_owned());
    let mode = |part: &RequestPart| {
        format!("{}: {}", heuristic_subtask_name(&part.text), part.mode.as_deref().unwrap_or("specialist"))
    };
    std::iter::once(first).chain(beside).chain(parts.iter().map(mode)).collect()
}

fn heuristic_subtasks(parts: &[RequestPart], context: &str) -> Vec<SubTask> {
    let names = heuristic_subtask_names(parts);
    let task = |(place, part): (usize, &RequestPart)| {
        let after = match part.order {
            Order::Free => Vec::new(),
            Order::Previous => vec![names[place - 1].clone()],
            Order::All => names[..place].to_vec(),
        };
        let prompt = heuristic_subtask_prompt(part, place + 1, parts.len(), context);
        SubTask { mode: part.mode.clone(), after, ..SubTask::new(names[place].clone(), prompt) }
    };
    parts.iter().enumerate().map(task).collect()
}

/// A sub-agent sees nothing of the conversation.
fn heuristic_subtask_prompt(part: &RequestPart, number: usize, of: usize, context: &str) -> String {
    let role =
        format!("This is part {number} of {of} of a larger request. Others do the rest: do this part and no other.");
    let context = if context.is_empty() { String::new() } else { format!("\n\nFor all parts holds:\n{context}") };
    format!("{}\n\n{role}{context}", part.text)
}

/// The first words of each, made unlike each other.
fn heuristic_subtask_names(parts: &[RequestPart]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for part in parts {
        let name = heuristic_subtask_name(&part.text);
        let taken = names.contains(&name);
        names.push(if taken { format!("{name} ({})", names.len() + 1) } else { name });
    }
    names
}

fn heuristic_subtask_name(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let words: Vec<&str> = line.split_whitespace().take(MAX_NAME_WORDS).collect();
    gander_domain::sanitize::sanitized_line(words.join(" ").trim_end_matches([',', ':', '.']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(prompt: &str) -> Decomposition {
        decompose_by_words(&ModeSet::built_in(), prompt)
    }

    /// Name, mode and what it waits for.
    fn shown(prompt: &str) -> Vec<String> {
        let line = |task: &SubTask| {
            let after =
                if task.after.is_empty() { String::new() } else { format!(" after {}", task.after.join(" + ")) };
            format!("{} [{}]{after}", task.name, task.mode.as_deref().unwrap_or("-"))
        };
        split(prompt).tasks.iter().map(line).collect()
    }

    #[test]
    fn a_list_of_tasks_comes_apart_and_each_goes_where_it_belongs() {
        let prompt = "For this repository:\n- Audit the login for XSS and injection\n- Write integration tests for the \
                      parser\n- Sort the imports\n- Finally, summarise what was found";
        let expected = [
            "Audit the login for XSS and [security]",
            "Write integration tests for the parser [qa]",
            "Sort the imports [-]",
            "Finally, summarise what was found [-] after Audit the login for XSS and + Write integration tests for the \
             parser + Sort the imports",
        ];
        assert_eq!(shown(prompt), expected);
        let Decomposition { tasks, confidence, reasons, .. } = split(prompt);
        assert_eq!(confidence, 80);
        assert_eq!(reasons[0], "it is several requests in one: its list has 4 tasks");
        assert!(tasks[2].prompt.starts_with("Sort the imports\n\nThis is part 3 of 4"), "{}", tasks[2].prompt);
        assert!(tasks[2].prompt.ends_with("For all parts holds:\nFor this repository:"), "{}", tasks[2].prompt);
    }

    #[test]
    fn sentences_come_apart_only_for_a_reason() {
        let crafts = "Add an endpoint with a database migration, and audit the login for XSS.";
        assert_eq!(shown(crafts), ["Add an endpoint with a database [backend]", "audit the login for XSS [security]"]);
        let beside = "In parallel: read one.txt. Read two.txt. Read three.txt";
        assert_eq!(shown(beside), ["read one.txt [-]", "Read two.txt [-]", "Read three.txt [-]"]);
        assert_eq!(split(beside).confidence, 80, "no wish is lost behind a colon");
        let asked = "Read one.txt, count two.txt and sort three.txt, all at the same time";
        assert_eq!((shown(asked).len(), split(asked).confidence), (3, 80));
        assert_eq!(split(asked).reasons[1], "it asks for them at the same time");
    }

    #[test]
    fn what_is_counted_comes_apart_only_if_it_says_so() {
        let list = "1. Read one.txt\n2. Read two.txt\n3. Sort the lines of it";
        assert!(!split(list).is_compound());
        let beside = ["Read one.txt [-]", "Read two.txt [-]", "Sort the lines of it [-] after Read two.txt"];
        assert_eq!(shown(&format!("In parallel:\n{list}")), beside);
    }

    #[test]
    fn a_simple_request_stays_whole() {
        let cases = [
            ("", "it is one task"),
            ("hello", "it is one task"),
            ("Fix the failing test", "it is one task"),
            ("Why is the build slow, and what can be done?", "it is one task"),
            ("Fix the bug and run the tests", "its parts belong closely together"),
            ("Write a parser, test it and then document it", "its steps build on each other"),
            ("1. Write a parser\n2. Then test it\n3. Finally document it", "its steps build on each other"),
            ("1. Write a parser\n2. Publish the crate\n3. Update the site", "its steps build on each other"),
            ("a) Write a parser\nb) Publish the crate", "its steps build on each other"),
            ("- Write a parser\n- Write unit tests for it", "its steps build on each other"),
            ("Write a function that:\n- handles empty input\n- is fast", "not every point of its list is a task"),
            ("Explain this:\n```\n- add one\n- add two\n```", "it holds no list of tasks"),
        ];
        for (prompt, why) in cases {
            let split = split(prompt);
            assert_eq!((split.is_compound(), split.reasons), (false, vec![why.to_owned()]), "{prompt}");
        }
        let many: String = (1..=9).map(|number| format!("{number}. Read file number {number}\n")).collect();
        assert!(!split(&many).is_compound());
        assert!(!split(&"1. Read a file\n".repeat(5_000)).is_compound());
    }

    #[test]
    fn parts_of_the_same_name_are_told_apart_and_all_of_them_can_run() {
        let split = split("- Read the file a\n- Read the file a\n- Read the file b");
        assert_eq!(split.tasks.len(), 3);
        assert_eq!(crate::delegate::parse_subtasks(&split.as_tool_arguments()), Ok(split.tasks));
    }

    proptest::proptest! {
        #[test]
        fn whatever_is_written_what_comes_apart_can_run(prompt in "([0-9]\\. |- |Fix |then |it |, and |write |\\. |\n|`|\"|é| )*") {
            let split = split(&prompt);
            if split.is_compound() {
                proptest::prop_assert_eq!(crate::delegate::parse_subtasks(&split.as_tool_arguments()), Ok(split.tasks));
            }
        }
    }
}
