//! Hides secrets in what tools say, before it reaches a model, a log or a screen.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use gander_domain::{Part, ToolContent, ToolResult};
use regex::{Captures, Regex};
use serde_json::Value;

use crate::known_values::KnownValues;

/// What stands where a secret was.
pub(crate) const MASK: &str = "[redacted]";

/// Hides secrets: known values first, then what looks like one. Hiding twice changes nothing more.
#[derive(Clone)]
pub struct Redactor {
    /// Known values in every form in which they may stand somewhere, longest first.
    forms: Arc<[String]>,
    known: Arc<Late<KnownValues>>,
    patterns: Arc<Late<Vec<Regex>>>,
}

/// Made when first needed: most starts of the program hide nothing.
type Late<T> = LazyLock<T, Box<dyn FnOnce() -> T + Send>>;

/// The groups `keep` and `rest`, where there are any, stay: they say what was hidden.
const PATTERNS: [&str; 12] = [
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:[A-Za-z0-9+/=\s\\:,._-]*?-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|[A-Za-z0-9+/=\s\\]*)",
    r"(?:[A-Za-z0-9+/=]{16,}\s+)+[A-Za-z0-9+/=]*\s*-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----",
    r"\bsk-[A-Za-z0-9_-]{16,}",
    r"\b(?:gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,})",
    r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b",
    r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\bxapp-[A-Za-z0-9-]{10,}",
    r"\b(?:AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,}|npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{20,}|hf_[A-Za-z0-9]{20,}|[rs]k_(?:live|test)_[A-Za-z0-9]{16,})",
    r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
    r#"(?i)(?P<keep>\bauthorization["']?\s*[:=]\s*["']?(?:(?:bearer|basic|token|digest)\s+)?)[A-Za-z0-9+/=._~-]{16,}"#,
    r"(?i)(?P<keep>\bbearer\s+)[A-Za-z0-9+/=._~-]{16,}",
    r"(?P<keep>\b[a-z][a-z0-9+.-]*://[^\s/:@\[\]]*:)[^\s/@\[\]]{3,}(?P<rest>@)",
    // A token in the place of a name, as `git remote -v` shows it.
    r"(?P<keep>\bhttps?://)[^\s/:@\[\]]{16,}(?P<rest>@)",
];

impl Default for Redactor {
    fn default() -> Self {
        Self::new(std::iter::empty::<&str>())
    }
}

impl Redactor {
    /// Hides these values, also in base64 and in URLs, and everything that looks like a secret.
    pub fn new<S: AsRef<str>>(known: impl IntoIterator<Item = S>) -> Self {
        let patterns = || PATTERNS.map(|pattern| Regex::new(pattern).expect("a pattern of ours is a regex")).into();
        let none = lazily_built_redactor(|| KnownValues::new(Arc::new([])));
        Self { forms: Arc::new([]), known: none, patterns: lazily_built_redactor(patterns) }.with_more_secrets(known)
    }

    /// Hides these values too.
    #[must_use]
    pub fn with_more_secrets<S: AsRef<str>>(&self, more: impl IntoIterator<Item = S>) -> Self {
        let mut forms: Vec<String> = more.into_iter().flat_map(|value| redacted_secret_forms(value.as_ref())).collect();
        forms.extend(self.forms.iter().cloned());
        // What stands inside the mask would be masked again and again.
        forms.retain(|form| form.len() >= KnownValues::SHORTEST && !MASK.contains(form.as_str()));
        // A value that begins like another must not leave the other's end in sight.
        forms.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        forms.dedup();
        let forms: Arc<[String]> = forms.into();
        let all = Arc::clone(&forms);
        Self {
            forms,
            known: lazily_built_redactor(move || KnownValues::new(all)),
            patterns: Arc::clone(&self.patterns),
        }
    }

    /// This text without secrets.
    pub fn redact_text(&self, text: &str) -> String {
        let known = self.known.replace_all(text, MASK);
        self.patterns.iter().fold(known.into_owned(), |text, pattern| {
            match pattern.replace_all(&text, mask_redacted_match) {
                Cow::Borrowed(_) => text,
                Cow::Owned(changed) => changed,
            }
        })
    }

    /// Hides secrets in all texts of a result.
    pub fn redact_result(&self, result: &mut ToolResult) {
        for content in &mut result.content {
            self.redact_content(content);
        }
        if let Some(raw) = &mut result.raw {
            self.redact_value(raw);
        }
    }

    fn redact_content(&self, content: &mut ToolContent) {
        match content {
            ToolContent::Part { part } => self.redact_part(part),
            ToolContent::Diff { old, new, .. } => {
                *new = self.redact_text(new);
                if let Some(old) = old {
                    *old = self.redact_text(old);
                }
            }
            ToolContent::Terminal { .. } => {}
        }
    }

    fn redact_part(&self, part: &mut Part) {
        match part {
            Part::Text { text } | Part::Thought { text } | Part::Resource { text: Some(text), .. } => {
                *text = self.redact_text(text);
            }
            Part::Unknown(value) => self.redact_value(value),
            Part::ToolResult { result, .. } => self.redact_result(result),
            Part::ToolUse { arguments, .. } => self.redact_value(arguments),
            Part::Image { .. } | Part::Audio { .. } | Part::Link { .. } | Part::Resource { text: None, .. } => {}
        }
    }

    fn redact_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.redact_text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_value(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.redact_value(field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

fn lazily_built_redactor<T>(make: impl FnOnce() -> T + Send + 'static) -> Arc<Late<T>> {
    Arc::new(LazyLock::new(Box::new(make)))
}

fn mask_redacted_match(found: &Captures<'_>) -> String {
    let group = |name| found.name(name).map_or("", |group| group.as_str());
    format!("{}{MASK}{}", group("keep"), group("rest"))
}

/// A value as it is, as it stands in a URL, and as base64 shows it at each of three offsets.
fn redacted_secret_forms(value: &str) -> Vec<String> {
    let value = value.trim();
    let encoded: String = value.bytes().map(redacted_percent_form).collect();
    let mut forms = vec![value.to_owned(), encoded];
    for offset in 0..3 {
        let padded = [&[0; 2][..offset.min(2)], value.as_bytes()].concat();
        for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
            forms.push(redacted_base64_core(&engine.encode(&padded), offset, padded.len()).to_owned());
        }
    }
    forms.dedup();
    forms
}

/// The characters of a base64 text that depend on the value alone.
fn redacted_base64_core(text: &str, offset: usize, bytes: usize) -> &str {
    let first = [0, 2, 3][offset];
    let last = bytes / 3 * 4 + [0, 1, 2][bytes % 3];
    text.get(first..last).unwrap_or_default()
}

fn redacted_percent_form(byte: u8) -> String {
    match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    }
}
