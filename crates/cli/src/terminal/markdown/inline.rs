//! Markdown inside of one line: emphasis, code and links.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::output::Style;

/// A line of Markdown, painted. What begins like a block of its own is shown as it was written.
pub(super) fn render_markdown_inline(text: &str, style: Style) -> String {
    let mut run = InlineRun { style, text: String::new(), bold: 0, italic: 0, struck: 0, link: None };
    for (index, event) in Parser::new_ext(text, Options::ENABLE_STRIKETHROUGH).enumerate() {
        if index == 0 && !matches!(event, Event::Start(Tag::Paragraph)) {
            return text.to_owned();
        }
        run.handle(event);
    }
    run.text
}

struct InlineRun {
    style: Style,
    text: String,
    bold: usize,
    italic: usize,
    struck: usize,
    /// Where the link leads, and where its text begins.
    link: Option<(String, usize)>,
}

impl InlineRun {
    #[expect(clippy::wildcard_enum_match_arm, reason = "only what occurs inside of a line is shown in its own way")]
    fn handle(&mut self, event: Event<'_>) {
        match event {
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => self.push(&text, false),
            Event::Code(code) if self.style == Style::Colour => self.push(&code, true),
            Event::Code(code) => self.push(&format!("`{code}`"), true),
            Event::SoftBreak | Event::HardBreak => self.text.push(' '),
            Event::Start(Tag::Strong) => self.bold += 1,
            Event::End(TagEnd::Strong) => self.bold -= 1,
            Event::Start(Tag::Emphasis) => self.italic += 1,
            Event::End(TagEnd::Emphasis) => self.italic -= 1,
            Event::Start(Tag::Strikethrough) => self.struck += 1,
            Event::End(TagEnd::Strikethrough) => self.struck -= 1,
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                self.link = Some((dest_url.to_string(), self.text.len()));
            }
            Event::End(TagEnd::Link | TagEnd::Image) => self.end_link(),
            _ => {}
        }
    }

    fn push(&mut self, text: &str, code: bool) {
        let codes = [(self.bold > 0, "1"), (self.italic > 0, "3"), (self.struck > 0, "9"), (code, "36")];
        let codes: Vec<&str> = codes.into_iter().filter(|(on, _)| *on).map(|(_, code)| code).collect();
        match codes.is_empty() || self.style != Style::Colour {
            true => self.text.push_str(text),
            false => self.text.push_str(&format!("\x1b[{}m{text}\x1b[0m", codes.join(";"))),
        }
    }

    /// A link that does not show where it leads says so.
    fn end_link(&mut self) {
        if let Some((address, start)) = self.link.take()
            && !self.text[start..].contains(&address)
        {
            self.push(&format!(" ({address})"), false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emphasis_is_painted_or_left_out() {
        assert_eq!(
            render_markdown_inline("a **b *c*** `d`", Style::Colour),
            "a \x1b[1mb \x1b[0m\x1b[1;3mc\x1b[0m \x1b[36md\x1b[0m"
        );
        assert_eq!(render_markdown_inline("a **b** _c_ ~~d~~", Style::Plain), "a b c d");
        assert_eq!(
            render_markdown_inline("2 * 3 * 4 and snake_case_name", Style::Plain),
            "2 * 3 * 4 and snake_case_name"
        );
    }

    #[test]
    fn links_say_where_they_lead() {
        assert_eq!(render_markdown_inline("[docs](https://a.example/x)", Style::Plain), "docs (https://a.example/x)");
        assert_eq!(render_markdown_inline("<https://a.example>", Style::Plain), "https://a.example");
        assert_eq!(render_markdown_inline("# not here", Style::Plain), "# not here");
    }
}
