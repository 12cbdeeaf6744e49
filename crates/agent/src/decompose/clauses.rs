//! A prompt taken into its pieces: the items of its one list, or the clauses of its sentences. Code and quotes stay whole.

use super::verbs;

/// A prompt in pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Clauses {
    /// What could each be a request.
    pub wishes: Vec<String>,
    /// They are counted: one comes after the other.
    pub counted: bool,
    /// What holds for all of them.
    pub context: String,
}

/// The items of the prompt's list, if it has exactly one.
pub(super) fn list_item_clauses(prompt: &str) -> Option<Clauses> {
    let (mut wishes, mut context): (Vec<String>, Vec<&str>) = (Vec::new(), Vec::new());
    let (mut fenced, mut open, mut closed, mut counted) = (false, false, false, false);
    for line in prompt.lines() {
        let marked = (!fenced).then(|| list_item_clause(line)).flatten();
        fenced ^= is_fence_among_clauses(line);
        match (marked, wishes.last_mut()) {
            (Some(_), _) if closed => return None, // a second list: which of them is the request?
            (Some(text), _) => {
                wishes.push(text.to_owned());
                open = true;
                counted |= numbered_item_clause(line.trim_start()).is_some();
            }
            (None, Some(last))
                if open && (fenced || is_fence_among_clauses(line) || continues_list_item_clause(line)) =>
            {
                last.push('\n');
                last.push_str(line);
            }
            (None, Some(_)) if line.trim().is_empty() => {}
            (None, some) => {
                closed |= some.is_some();
                open = false;
                context.push(line);
            }
        }
    }
    let wishes = wishes.iter().map(|wish| wish.trim().to_owned()).collect::<Vec<_>>();
    (wishes.len() > 1).then(|| Clauses { wishes, counted, context: context.join("\n").trim().to_owned() })
}

/// The wishes in the sentences of a prompt; every sentence that holds none is context.
pub(super) fn prose_clauses(prompt: &str) -> Clauses {
    let mut pieces = Clauses::default();
    for sentence in cut_into_clauses(prompt, clause_sentence_end) {
        // "In parallel: read one" begins behind its colon.
        let led = sentence.split_once(": ").unwrap_or(("", &sentence));
        let found =
            [("", sentence.as_str()), led].into_iter().find(|(_, said)| verbs::verb_request_order(said).is_some());
        let (lead, said) = found.unwrap_or((&sentence, ""));
        pieces.wishes.extend(sentence_clauses(said));
        pieces.context = format!("{} {lead}", pieces.context).trim().to_owned();
    }
    pieces
}

/// "After that, run it" is one wish: what stands before its comma is none.
fn sentence_clauses(sentence: &str) -> Vec<String> {
    let mut wishes = cut_into_clauses(sentence, clause_conjunction_end);
    if wishes.len() > 1 && verbs::verb_request_order(&wishes[0]).is_none() {
        let first = wishes.remove(0);
        wishes[0] = format!("{first}, {}", wishes[0]);
    }
    wishes
}

/// The text of a list's item of the first level.
fn list_item_clause(line: &str) -> Option<&str> {
    let plain = line.trim_start();
    if line.len() - plain.len() > 1 {
        return None;
    }
    let bullet = ["- [ ] ", "- ", "* ", "• ", "+ "].iter().find_map(|mark| plain.strip_prefix(mark));
    bullet.or_else(|| numbered_item_clause(plain)).map(str::trim).filter(|text| !text.is_empty())
}

/// `1. text`, `2) text`, `a) text`.
fn numbered_item_clause(line: &str) -> Option<&str> {
    let digits = line.chars().take_while(char::is_ascii_digit).count();
    let letter = line.starts_with(|letter: char| letter.is_ascii_lowercase()) && line[1..].starts_with(')');
    let rest = if (1..=2).contains(&digits) { &line[digits..] } else { line.get(usize::from(letter)..)? };
    let marked = digits > 0 && digits <= 2 || letter;
    rest.strip_prefix(['.', ')']).filter(|_| marked)?.strip_prefix([' ', '\t'])
}

/// A line that goes on with the item before it.
fn continues_list_item_clause(line: &str) -> bool {
    line.trim().is_empty() || line.starts_with("  ") || line.starts_with('\t')
}

fn is_fence_among_clauses(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("```") || line.starts_with("~~~")
}

/// Cuts a text where `at` finds an end: it is given what follows each place outside of quotes, and says how much to leave out.
fn cut_into_clauses(text: &str, at: fn(&str) -> Option<usize>) -> Vec<String> {
    let (mut parts, mut from, mut quote, mut skip) = (Vec::new(), 0, None::<char>, 0);
    for (place, letter) in text.char_indices() {
        if place < skip {
            continue;
        }
        match quote {
            Some(mark) if letter == mark => quote = None,
            Some(_) => {}
            None if matches!(letter, '"' | '`') => quote = Some(letter),
            None => {
                if let Some(length) = at(&text[place..]) {
                    parts.push(&text[from..place]);
                    (from, skip) = (place + length, place + length);
                }
            }
        }
    }
    parts.push(&text[from..]);
    parts
        .into_iter()
        .map(|part| part.trim().trim_end_matches(['.', ',']).to_owned())
        .filter(|part| !part.is_empty())
        .collect()
}

fn clause_sentence_end(rest: &str) -> Option<usize> {
    let ends = [". ", "! ", "? ", "; ", ".\n", "!\n", "?\n", ";\n", "\n\n"];
    ends.iter().find(|end| rest.starts_with(**end)).map(|end| end.len())
}

/// Where one wish ends and the next begins: the word that orders them stays.
fn clause_conjunction_end(rest: &str) -> Option<usize> {
    let joints = [", and ", ", ", " and ", " then "];
    let length = joints.iter().find(|joint| rest.starts_with(**joint)).map(|joint| joint.len())?;
    let kept = if rest.starts_with(" then ") { 1 } else { length };
    verbs::verb_request_order(rest[kept..].split(", ").next()?).map(|_| kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(wishes: &[&str], context: &str) -> Clauses {
        let wishes = wishes.iter().map(|wish| (*wish).to_owned()).collect();
        Clauses { wishes, counted: false, context: context.to_owned() }
    }

    #[test]
    fn a_list_is_taken_into_its_items() {
        let list = "In this repository:\n\n1. Fix the build\n   on Linux\n2) Write docs\n```\n- not an item\n```\n\nKeep it short.";
        let wishes = ["Fix the build\n   on Linux", "Write docs\n```\n- not an item\n```"];
        let counted = Clauses { counted: true, ..of(&wishes, "In this repository:\n\nKeep it short.") };
        assert_eq!(list_item_clauses(list), Some(counted));
        assert_eq!(list_item_clauses("- one\n  - inner\n- two"), Some(of(&["one\n  - inner", "two"], "")));
        for none in ["", "no list", "- only one", "1.5 is a number\n2.5 too", "- a\n- b\n\nand\n\n- c\n- d"] {
            assert_eq!(list_item_clauses(none), None, "{none}");
        }
    }

    #[test]
    fn sentences_are_taken_into_wishes_and_context() {
        let prompt =
            "The app is slow. Profile the parser, fix the cache and then write a report. Say \"a. b, and run\".";
        let wishes = ["Profile the parser", "fix the cache", "then write a report", "Say \"a. b, and run\""];
        assert_eq!(prose_clauses(prompt), of(&wishes, "The app is slow"));
        assert_eq!(
            prose_clauses("Add salt and pepper, oil and vinegar").wishes,
            ["Add salt and pepper, oil and vinegar"]
        );
        let later = prose_clauses("Read the log. After that, write a report");
        assert_eq!(later.wishes, ["Read the log", "After that, write a report"]);
        assert_eq!(prose_clauses("Why is it so?"), of(&[], "Why is it so?"));
    }
}
