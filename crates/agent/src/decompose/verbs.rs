//! Words that say what a clause is: a wish, what it waits for, what it refers to.

/// Words that a wish begins with.
const WISHES: &str = "\
    add analyse analyze answer audit benchmark build calculate change check clean collect commit compare compile \
    configure convert copy count create debug define delete deploy describe design document download draft draw \
    estimate evaluate explain export extract fetch find fix format generate give implement import improve inspect \
    install investigate list look make measure merge migrate move optimise optimize plan port prepare print profile \
    propose prove publish put read refactor release remove rename replace replay report reproduce research review \
    rewrite run say search send set show simplify sketch sort split start store suggest summarise summarize tell \
    test translate try tune turn update upgrade use validate verify write";

/// Words before a wish that say nothing about it.
const POLITE: &str = "\
    please also and just kindly can could would will you i want need like to we should must first firstly second \
    secondly third thirdly additionally separately independently meanwhile task todo step";

/// Words before a wish that say it comes after the one before.
const THEN: &str = "then next afterwards afterward after once when using based with";

/// Words before a wish that say it comes after all others.
const LAST: &str = "finally lastly last";

/// Words anywhere behind a verb that can mean what was spoken of before: rather waited for in vain than begun without it.
const BACK: &str = "it its them their this that these those";

/// Words that mean it only right behind a verb.
const BACK_FIRST: &str = "both everything all";

/// Phrases anywhere that mean what other parts give.
const RESULTS: &[&str] =
    &["the result", "the above", "the previous", "the findings", "the outcome", "mentioned above", "from step"];

/// Phrases that ask for work side by side.
const BESIDE: &[&str] =
    &["in parallel", "at the same time", "simultaneously", "concurrently", "independently", "separately"];

/// What a clause waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Nothing.
    Free,
    /// The one before it.
    Previous,
    /// All before it.
    All,
}

/// What a clause waits for, if it is a wish at all.
pub(super) fn verb_request_order(text: &str) -> Option<Order> {
    let words = lowercase_verb_words(text);
    let (mut order, mut rest) = (Order::Free, words.as_slice());
    while let Some((word, more)) = rest.split_first() {
        let word = word.as_str();
        if is_one_of_verbs(WISHES, word) {
            return Some(order.or(verb_back_reference_order(more, text)));
        } else if is_one_of_verbs(LAST, word) {
            order = Order::All;
        } else if is_one_of_verbs(THEN, word) {
            // "After that, test it" says its verb only behind the comma.
            order = Order::Previous;
            rest = verb_behind_comma(text, more).unwrap_or(more);
            continue;
        } else if !is_one_of_verbs(POLITE, word) && !word.chars().all(|letter| letter.is_ascii_digit()) {
            return None;
        }
        rest = more;
    }
    None
}

/// True if the request itself asks for work side by side.
pub(super) fn verbs_want_parallel(prompt: &str) -> bool {
    let prompt = prompt.to_lowercase();
    BESIDE.iter().any(|phrase| prompt.contains(phrase))
}

/// Lower-case words.
pub(super) fn lowercase_verb_words(text: &str) -> Vec<String> {
    let split = text.split(|letter: char| !(letter.is_alphanumeric() || letter == '\'' || letter == '-'));
    split.map(|word| word.trim_matches(['\'', '-']).to_lowercase()).filter(|word| !word.is_empty()).collect()
}

impl Order {
    /// This, unless it waits for nothing.
    pub(super) fn or(self, other: Self) -> Self {
        if self == Self::Free { other } else { self }
    }
}

fn is_one_of_verbs(list: &str, word: &str) -> bool {
    list.split(' ').any(|known| known == word)
}

/// Words behind the verb, and phrases anywhere, that mean what came before.
fn verb_back_reference_order(behind: &[String], text: &str) -> Order {
    let text = text.to_lowercase();
    let first = behind.first().is_some_and(|word| is_one_of_verbs(BACK_FIRST, word));
    let back = first || behind.iter().any(|word| is_one_of_verbs(BACK, word));
    if RESULTS.iter().any(|phrase| text.contains(phrase)) {
        Order::All
    } else if back {
        Order::Previous
    } else {
        Order::Free
    }
}

/// The words behind the first comma, as a part of `rest`.
fn verb_behind_comma<'a>(text: &str, rest: &'a [String]) -> Option<&'a [String]> {
    let (_, behind) = text.split_once(',')?;
    let count = lowercase_verb_words(behind).len();
    (count < rest.len()).then(|| &rest[rest.len() - count..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_is_known_by_its_verb_and_waits_for_what_it_says() {
        let cases = [
            ("Write the docs", Some(Order::Free)),
            ("please also fix the build", Some(Order::Free)),
            ("Could you review the parser", Some(Order::Free)),
            ("then run the tests", Some(Order::Previous)),
            ("After that, publish the page", Some(Order::Previous)),
            ("Finally, summarise what changed", Some(Order::All)),
            ("test it", Some(Order::Previous)),
            ("Write unit tests for it", Some(Order::Previous)),
            ("Document the options of these", Some(Order::Previous)),
            ("compare both", Some(Order::Previous)),
            ("Read all of the files", Some(Order::Previous)),
            ("Count the lines of all files", Some(Order::Free)),
            ("Write a summary of the results", Some(Order::All)),
            ("handles empty input", None),
            ("The parser is slow", None),
            ("after lunch", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(verb_request_order(text), expected, "{text}");
        }
    }
}
