//! HTML as readable text: what a person would read, with line breaks where blocks end and links after their text.

/// Elements whose content nobody reads.
const UNREAD: [&str; 8] = ["script", "style", "noscript", "template", "svg", "iframe", "head", "object"];

/// Elements that stand on lines of their own.
const BLOCKS: [&str; 31] = [
    "p",
    "div",
    "section",
    "article",
    "header",
    "footer",
    "main",
    "nav",
    "aside",
    "ul",
    "ol",
    "li",
    "table",
    "tr",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "pre",
    "blockquote",
    "br",
    "hr",
    "form",
    "figure",
    "figcaption",
    "dl",
    "dt",
    "dd",
    "title",
];

/// The readable text of a page.
pub(crate) fn html_to_text(html: &str) -> String {
    let mut page = HtmlPage::default();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        page.push_words(&rest[..at]);
        rest = page.read_markup(&rest[at..]);
    }
    page.push_words(rest);
    tidy_html_blank_lines(&page.text)
}

#[derive(Default)]
struct HtmlPage {
    text: String,
    link: Option<String>,
    preformatted: usize,
}

impl HtmlPage {
    /// Takes what begins with `<` and returns what comes after it.
    fn read_markup<'a>(&mut self, rest: &'a str) -> &'a str {
        if let Some(comment) = rest.strip_prefix("<!--") {
            return comment.split_once("-->").map_or("", |(_, after)| after);
        }
        if !rest[1..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '/' || c == '!' || c == '?') {
            self.text.push('<');
            return &rest[1..];
        }
        let Some(end) = html_tag_end(rest) else { return "" };
        let (tag, after) = (&rest[1..end], &rest[end + 1..]);
        let closing = tag.starts_with('/');
        let name: String = tag
            .trim_start_matches('/')
            .chars()
            .take_while(char::is_ascii_alphanumeric)
            .collect::<String>()
            .to_ascii_lowercase();
        if !closing && UNREAD.contains(&name.as_str()) && !tag.ends_with('/') {
            let rest = skip_html_element(after, &name);
            // Only what is skipped is looked through: a page may have any number of heads.
            if name == "head" {
                self.push_title(&after[..after.len() - rest.len()]);
            }
            return rest;
        }
        match closing {
            true => self.close_tag(&name),
            false => self.open_tag(&name, tag),
        }
        after
    }

    fn open_tag(&mut self, name: &str, tag: &str) {
        match name {
            "a" => self.link = html_attribute(tag, "href").filter(|link| link.starts_with("http")),
            "pre" => self.preformatted += 1,
            "td" | "th" => self.text.push(' '),
            _ => {}
        }
        match name {
            "li" => self.text.push_str("\n- "),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                let level = usize::from(name.as_bytes()[1] - b'0');
                self.text.push_str(&format!("\n\n{} ", "#".repeat(level)));
            }
            "p" => self.text.push_str("\n\n"),
            block if BLOCKS.contains(&block) => self.text.push('\n'),
            _ => {}
        }
    }

    fn close_tag(&mut self, name: &str) {
        match name {
            "a" => {
                if let Some(link) = self.link.take() {
                    self.text.push_str(&format!(" ({link})"));
                }
            }
            "pre" => self.preformatted = self.preformatted.saturating_sub(1),
            _ => {}
        }
        if BLOCKS.contains(&name) {
            self.text.push('\n');
        }
    }

    fn push_words(&mut self, raw: &str) {
        let words = decode_html_entities(raw);
        if self.preformatted > 0 {
            return self.text.push_str(&words);
        }
        for character in words.chars() {
            match character.is_whitespace() {
                true if self.text.ends_with(char::is_whitespace) => {}
                true => self.text.push(' '),
                false => self.text.push(character),
            }
        }
    }

    fn push_title(&mut self, head: &str) {
        let lower = head.to_ascii_lowercase();
        let Some(start) = lower.find("<title").and_then(|at| Some(at + lower[at..].find('>')? + 1)) else { return };
        let Some(end) = lower[start..].find("</title") else { return };
        self.push_words(&head[start..start + end]);
        self.text.push_str("\n\n");
    }
}

/// Where the tag ends: `>` in quotes does not end it.
fn html_tag_end(tag: &str) -> Option<usize> {
    let mut quote = None;
    for (at, byte) in tag.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return Some(at),
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), _) if open == byte => quote = None,
            (None | Some(_), _) => {}
        }
    }
    None
}

/// What comes after the end of an element that nobody reads.
fn skip_html_element<'a>(rest: &'a str, name: &str) -> &'a str {
    let mut at = 0;
    while let Some(found) = rest[at..].find("</") {
        let start = at + found + 2;
        let tail = &rest[start..];
        if tail.get(..name.len()).is_some_and(|end| end.eq_ignore_ascii_case(name)) {
            return tail.split_once('>').map_or("", |(_, after)| after);
        }
        at = start;
    }
    ""
}

fn html_attribute(tag: &str, name: &str) -> Option<String> {
    let at = tag.to_ascii_lowercase().find(&format!("{name}="))? + name.len() + 1;
    let value = &tag[at..];
    let value = match value.chars().next()? {
        quote @ ('"' | '\'') => value[1..].split(quote).next()?,
        _ => value.split(|c: char| c.is_whitespace() || c == '>').next()?,
    };
    Some(decode_html_entities(value))
}

fn decode_html_entities(text: &str) -> String {
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        decoded.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest.bytes().take(12).position(|byte| byte == b';');
        match end.and_then(|end| Some((named_html_entity(&rest[1..end])?, end))) {
            Some((character, end)) => {
                decoded.push(character);
                rest = &rest[end + 1..];
            }
            None => {
                decoded.push('&');
                rest = &rest[1..];
            }
        }
    }
    decoded.push_str(rest);
    decoded
}

fn named_html_entity(name: &str) -> Option<char> {
    let number = name.strip_prefix('#').and_then(|number| match number.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => number.parse().ok(),
    });
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        "nbsp" => Some(' '),
        "copy" => Some('©'),
        "hellip" => Some('…'),
        "mdash" => Some('—'),
        "ndash" => Some('–'),
        "lsquo" => Some('‘'),
        "rsquo" => Some('’'),
        "ldquo" => Some('“'),
        "rdquo" => Some('”'),
        _ => number.and_then(char::from_u32),
    }
}

/// No blanks at the ends of lines, no more than one empty line.
fn tidy_html_blank_lines(text: &str) -> String {
    let mut tidy = String::with_capacity(text.len());
    let mut empty = 0;
    for line in text.lines().map(str::trim_end) {
        empty = if line.is_empty() { empty + 1 } else { 0 };
        if empty <= 1 && !(line.is_empty() && tidy.is_empty()) {
            tidy.push_str(line);
            tidy.push('\n');
        }
    }
    tidy.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_becomes_text() {
        let page = r#"<!DOCTYPE html><html><head><title>Ducks &amp; geese</title><style>p{}</style></head>
            <body><script>if (a < b) { alert("</p>") }</script><h1>About <b>geese</b></h1><p>A goose
            is a <a href="https://example.org/bird">bird</a>.<!-- not <p> this --></p>
            <ul><li>one</li><li>1 &lt; 2 &#x2014; ok</li></ul><pre>  keep
    this</pre></body></html>"#;
        let expected = "Ducks & geese\n\n# About geese\n\nA goose is a bird (https://example.org/bird).\n\n- one\n\n- 1 < 2 — ok\n\n  keep\n    this";
        assert_eq!(html_to_text(page), expected);
    }

    /// Each of these has more elements than a pass over the page for each of them could ever look at.
    #[test]
    fn every_letter_is_looked_at_a_few_times_at_most() {
        let page = |piece: &str| piece.repeat((512 << 10) / piece.len());
        for piece in
            ["<head></head>", "<head><title>x</title></head>", "<script></script>", "<a href=\"", "<a <a ", "<!--"]
        {
            assert!(html_to_text(&page(piece)).len() <= 512 << 10, "{piece}");
        }
        for piece in ["<", "</", "&#", "&amp", "<p>", "</p><a href='http://x'>", "<pre> ", "x<\"'>"] {
            assert!(html_to_text(&page(piece)).len() <= 768 << 10, "{piece}");
        }
    }

    #[test]
    fn broken_pages_do_no_harm() {
        let pages = [
            "<",
            "<a",
            "<a href=",
            "<script>",
            "<!--",
            "&",
            "&#xffffffff;",
            "</",
            "a < b",
            "<p title='>'>x",
            "é<é>é</é",
            "<head><title>é",
        ];
        for page in pages {
            assert!(html_to_text(page).len() <= page.len() + 2, "{page}");
        }
    }
}
