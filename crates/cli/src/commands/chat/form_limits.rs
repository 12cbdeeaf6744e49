//! What a form says a value must be like: checked before it is sent, so that a person is told at once.

use std::net::Ipv6Addr;

use serde_json::Value;

/// The limits of one field, as its schema says them.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Limits {
    /// Letters of a text, or chosen values.
    least: Option<u64>,
    most: Option<u64>,
    /// Of a number.
    minimum: Option<f64>,
    maximum: Option<f64>,
    format: Option<Format>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Email,
    Uri,
    Date,
    DateTime,
}

impl Limits {
    /// Reads a property of the form's schema.
    pub(super) fn new(property: &Value) -> Self {
        let count = |names: [&str; 2]| names.iter().find_map(|name| property[name].as_u64());
        let format = match property["format"].as_str() {
            Some("email") => Some(Format::Email),
            Some("uri") => Some(Format::Uri),
            Some("date") => Some(Format::Date),
            Some("date-time") => Some(Format::DateTime),
            Some(_) | None => None,
        };
        Self {
            least: count(["minLength", "minItems"]),
            most: count(["maxLength", "maxItems"]),
            minimum: property["minimum"].as_f64(),
            maximum: property["maximum"].as_f64(),
            format,
        }
    }

    /// What is expected, in a few words; nothing if everything will do.
    pub(super) fn hint(&self, unit: &str) -> Option<String> {
        let format = self.format.map(|format| format.example().to_owned());
        let count = limit_range_text(self.least, self.most).map(|range| format!("{range} {unit}"));
        let range = limit_range_text(self.minimum, self.maximum);
        let known: Vec<String> = format.into_iter().chain(count).chain(range).collect();
        (!known.is_empty()).then(|| known.join(", "))
    }

    /// Says what is wrong with a text.
    pub(super) fn check_text(&self, text: &str) -> Result<(), String> {
        self.check_count(text.chars().count(), "characters")?;
        match self.format {
            Some(format) if !format.fits(text) => Err(format!("not {}", format.example())),
            Some(_) | None => Ok(()),
        }
    }

    /// Says what is wrong with so many chosen values.
    pub(super) fn check_count(&self, count: usize, unit: &str) -> Result<(), String> {
        let count = count as u64;
        let is_within = self.least.is_none_or(|least| count >= least) && self.most.is_none_or(|most| count <= most);
        if is_within { Ok(()) } else { Err(self.expected(limit_range_text(self.least, self.most), unit)) }
    }

    /// Says what is wrong with a number.
    pub(super) fn check_number(&self, number: f64) -> Result<(), String> {
        let is_within =
            self.minimum.is_none_or(|least| number >= least) && self.maximum.is_none_or(|most| number <= most);
        if is_within { Ok(()) } else { Err(self.expected(limit_range_text(self.minimum, self.maximum), "")) }
    }

    fn expected(&self, range: Option<String>, unit: &str) -> String {
        format!("must be {} {unit}", range.unwrap_or_default()).trim_end().to_owned()
    }
}

impl Format {
    fn example(self) -> &'static str {
        match self {
            Self::Email => "an e-mail address",
            Self::Uri => "an address such as https://example.org",
            Self::Date => "a date such as 2026-01-31",
            Self::DateTime => "a time such as 2026-01-31T12:00:00Z",
        }
    }

    fn fits(self, text: &str) -> bool {
        match self {
            Self::Email => {
                let named = text.split_once('@').is_some_and(|(name, host)| !name.is_empty() && is_host_format(host));
                named && !text.contains(char::is_whitespace)
            }
            Self::Uri => {
                let parts = text.split_once(':');
                let is_scheme = |scheme: &str| {
                    scheme.starts_with(|first: char| first.is_ascii_alphabetic())
                        && scheme.chars().all(|one| one.is_ascii_alphanumeric() || "+-.".contains(one))
                };
                let named = parts.is_some_and(|(scheme, rest)| is_scheme(scheme) && !rest.is_empty() && rest != "//");
                named && !text.contains(char::is_whitespace)
            }
            Self::Date => text.len() == "2026-01-31".len() && text.parse::<jiff::civil::Date>().is_ok(),
            Self::DateTime => text.parse::<jiff::Timestamp>().is_ok(),
        }
    }
}

fn is_host_format(host: &str) -> bool {
    let literal = host.strip_prefix("[IPv6:").and_then(|rest| rest.strip_suffix(']'));
    match literal {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => !host.is_empty() && !host.contains('@') && host.split('.').all(|label| !label.is_empty()),
    }
}

fn limit_range_text<T: PartialEq + ToString>(least: Option<T>, most: Option<T>) -> Option<String> {
    match (least, most) {
        (Some(least), Some(most)) if least == most => Some(least.to_string()),
        (Some(least), Some(most)) => Some(format!("{} to {}", least.to_string(), most.to_string())),
        (Some(least), None) => Some(format!("at least {}", least.to_string())),
        (None, Some(most)) => Some(format!("at most {}", most.to_string())),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_has_a_length_and_a_form() {
        let name = Limits::new(&json!({ "minLength": 2, "maxLength": 4 }));
        assert_eq!(name.check_text("äöü"), Ok(()));
        assert_eq!(name.check_text("a"), Err("must be 2 to 4 characters".to_owned()));
        assert_eq!(name.hint("characters"), Some("2 to 4 characters".to_owned()));
        let of = |format: &str| Limits::new(&json!({ "format": format }));
        let fits = |format: &str, text: &str| of(format).check_text(text).is_ok();
        let good = [
            ("email", "a@example.org"),
            ("uri", "https://example.org/x"),
            ("uri", "mailto:a@b"),
            ("date", "2026-02-28"),
            ("date-time", "2026-02-28T12:00:00+01:00"),
            ("hostname", "anything"),
        ];
        assert!(good.iter().all(|(format, text)| fits(format, text)), "{good:?}");
        let bad = [
            ("email", "a@"),
            ("email", "a b@c"),
            ("email", "a@b..c"),
            ("uri", "example"),
            ("uri", "https://"),
            ("date", "2026-02-30"),
            ("date-time", "2026-02-28"),
        ];
        assert!(bad.iter().all(|(format, text)| !fits(format, text)), "{bad:?}");
        assert_eq!(of("email").check_text("x"), Err("not an e-mail address".to_owned()));
    }

    #[test]
    fn numbers_and_choices_have_a_range() {
        let seats = Limits::new(&json!({ "minimum": 1, "maximum": 8 }));
        assert_eq!(seats.check_number(8.0), Ok(()));
        assert_eq!(seats.check_number(0.0), Err("must be 1 to 8".to_owned()));
        assert_eq!(Limits::new(&json!({ "minimum": 1 })).check_number(0.5), Err("must be at least 1".to_owned()));
        let some = Limits::new(&json!({ "maxItems": 2 }));
        assert_eq!(some.check_count(3, "values"), Err("must be at most 2 values".to_owned()));
        assert_eq!(Limits::default().hint("values"), None);
    }
}
