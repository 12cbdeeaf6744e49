//! The filters that templates of recipes have: those of which no result is much longer than what went in, and three that
//! check that first.

use minijinja::value::Kwargs;
use minijinja::{Environment, Error, ErrorKind, Value, filters, tests};

/// Adds them, and the tests.
pub(super) fn add_recipe_filters(environment: &mut Environment<'static>, limit: usize) {
    add_unbounded_recipe_filters(environment);
    environment.add_filter("replace", move |text: String, from: String, to: String| {
        let found = if from.is_empty() { text.chars().count() + 1 } else { text.matches(&from).count() };
        let length = (text.len() - found * from.len()).saturating_add(found.saturating_mul(to.len()));
        check_filter_length(length, limit).map(|()| text.replace(&from, &to))
    });
    environment.add_filter("join", move |list: Value, separator: Option<String>| {
        let (separator, mut joined) = (separator.unwrap_or_default(), String::new());
        for (place, item) in list.try_iter()?.enumerate() {
            let item = item.to_string();
            check_filter_length(joined.len() + separator.len() + item.len(), limit)?;
            joined.push_str(if place > 0 { &separator } else { "" });
            joined.push_str(&item);
        }
        Ok::<_, Error>(joined)
    });
    environment.add_filter("indent", move |text: String, width: Option<usize>, more: Kwargs| {
        let width = more.get::<Option<usize>>("width")?.or(width).unwrap_or(4);
        let (first, blank) = (more.get::<Option<bool>>("first")?, more.get::<Option<bool>>("blank")?);
        more.assert_all_used()?;
        let lines = text.split('\n').count();
        check_filter_length(text.len().saturating_add(lines.saturating_mul(width)), limit)?;
        let pad = " ".repeat(width);
        let indented = text.split('\n').enumerate().map(|(place, line)| {
            let wanted = if place == 0 { first == Some(true) } else { !line.is_empty() || blank == Some(true) };
            if wanted { format!("{pad}{line}") } else { line.to_owned() }
        });
        Ok::<_, Error>(indented.collect::<Vec<_>>().join("\n"))
    });
    // Each use of it may double what is in it.
    environment.add_filter("tojson", move |value: Value| {
        let text = serde_json::to_string(&value).map_err(|error| filter_error(error.to_string()))?;
        check_filter_length(text.len(), limit).map(|()| text)
    });
}

fn add_unbounded_recipe_filters(environment: &mut Environment<'static>) {
    environment.add_filter("lower", filters::lower);
    environment.add_filter("upper", filters::upper);
    environment.add_filter("title", filters::title);
    environment.add_filter("capitalize", filters::capitalize);
    environment.add_filter("trim", filters::trim);
    environment.add_filter("length", filters::length);
    environment.add_filter("count", filters::length);
    environment.add_filter("default", filters::default);
    environment.add_filter("d", filters::default);
    environment.add_filter("split", filters::split);
    environment.add_filter("lines", filters::lines);
    environment.add_filter("list", filters::list);
    environment.add_filter("first", filters::first);
    environment.add_filter("last", filters::last);
    environment.add_filter("reverse", filters::reverse);
    environment.add_filter("sort", filters::sort);
    environment.add_filter("unique", filters::unique);
    environment.add_filter("string", filters::string);
    environment.add_filter("int", filters::int);
    environment.add_filter("float", filters::float);
    environment.add_filter("bool", filters::bool);
    environment.add_filter("abs", filters::abs);
    environment.add_filter("round", filters::round);
    environment.add_filter("safe", filters::safe);
    environment.add_test("defined", tests::is_defined);
    environment.add_test("undefined", tests::is_undefined);
    environment.add_test("none", tests::is_none);
    environment.add_test("true", tests::is_true);
    environment.add_test("false", tests::is_false);
    environment.add_test("string", tests::is_string);
    environment.add_test("number", tests::is_number);
    environment.add_test("eq", tests::is_eq);
    environment.add_test("ne", tests::is_ne);
    environment.add_test("in", tests::is_in);
    environment.add_test("startingwith", tests::is_startingwith);
    environment.add_test("endingwith", tests::is_endingwith);
}

fn check_filter_length(length: usize, limit: usize) -> Result<(), Error> {
    if length <= limit { Ok(()) } else { Err(filter_error(format!("it becomes larger than {limit} bytes"))) }
}

fn filter_error(reason: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, reason)
}
